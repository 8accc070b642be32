"""Packed functions: whose error is whose, and the small values of the runtime."""

from __future__ import annotations

import pickle
import weakref

import numpy as np
import pytest

from weft.runtime import registry
from weft.runtime.containers import ShapeTuple, String
from weft.runtime.ndarray import array
from weft.runtime.registry import PackedFunc, convert, get_global_func, register_func
from weft.support.errors import IRTypeError, IRValueError


@pytest.fixture(autouse=True)
def own_table(monkeypatch):
    monkeypatch.setattr(registry, "_TABLE", {})


@pytest.mark.parametrize("value", [
    None, True, 3, -(2**70), 2.5, "text", b"bytes", (1, (2, "x")), [1, 2], {"a": 1}, array([1.0]),
    ShapeTuple((2, 3)), np.float32(1.5), np.arange(3), len, object,
], ids=[
    "none", "bool", "int", "large", "float", "str", "bytes", "tuple", "list", "dict", "array",
    "shape", "numpy", "ndarray", "function", "class",
])  # fmt: skip
def test_arguments_and_results_of_python_functions_are_themselves(value):
    echo = PackedFunc(lambda *arguments: arguments)
    (result,) = echo(value)
    assert result is value


def test_keywords_are_refused():
    with pytest.raises(IRTypeError, match="f: expected arguments by position, got the keywords"):
        PackedFunc(lambda **_: 1, "f")(x=1, y=2)


def test_a_function_of_the_caller_keeps_its_own_error():
    def takes_one(x):
        return x

    with pytest.raises(TypeError, match="takes_one") as caught:
        PackedFunc(takes_one, "f")(1, 2)
    assert not isinstance(caught.value, IRTypeError)
    error = ZeroDivisionError("mine")

    def fails():
        raise error

    with pytest.raises(ZeroDivisionError) as raised:
        PackedFunc(fails)()
    assert raised.value is error


def test_a_function_of_weft_says_by_its_name_what_it_cannot_be_called_with():
    with pytest.raises(IRTypeError, match=r"my\.name: .*argument"):
        PackedFunc(ShapeTuple.__new__.__get__(ShapeTuple), "my.name")(1, 2, 3)


def test_names_of_functions():
    def named():
        """Has a name."""

    assert PackedFunc(named).name == "named"
    assert PackedFunc(named, "other").name == "other"
    register_func("test.f", named)
    function = get_global_func("test.f")
    assert function.is_global
    register_func("test.f", lambda: 2, override=True)
    assert not function.is_global
    assert function() is None  # whoever holds the old one goes on with it


def test_a_callable_without_a_name_is_registered_under_one():
    class Callable:
        def __call__(self):
            return 5

    with pytest.raises(IRTypeError, match="a Callable has no name of its own: call register_func"):
        register_func(Callable())
    register_func("test.callable", Callable())
    assert get_global_func("test.callable")() == 5


def test_registered_functions_are_kept_and_removed_ones_are_not():
    class Held:
        def __call__(self):
            return 1

    held = Held()
    gone = weakref.ref(held)
    register_func("test.held", held)
    del held
    assert get_global_func("test.held")() == 1
    registry.remove_global_func("test.held")
    assert gone() is None


def test_functions_on_several_workers_have_to_be_brought():
    with pytest.raises(IRValueError, match="weft runs programs on one worker"):
        get_global_func("runtime.disco.allreduce")
    with pytest.raises(IRTypeError, match="expected the name of a function, got NoneType"):
        get_global_func(None)


def test_conversion_leaves_what_is_converted():
    function = PackedFunc(len)
    assert convert(function) is function
    assert convert(int) is int
    assert isinstance(convert("x"), String)
    assert convert([1]) == [1]


def test_shapes_are_tuples_of_integers():
    shape = ShapeTuple([np.int64(2), 3])
    assert shape == (2, 3)
    assert hash(shape) == hash((2, 3))
    assert [type(extent) for extent in shape] == [int, int]
    assert pickle.loads(pickle.dumps(shape)) == shape
    assert ShapeTuple() == ()
    for wrong in ((2.5,), ("3",), 3, None):
        with pytest.raises(IRTypeError, match="expected a sequence of integers"):
            ShapeTuple(wrong)


def test_strings_are_strings():
    assert String("a") + "b" == "ab"
    assert {String("a"): 1}["a"] == 1
    assert isinstance(String("a"), str)
