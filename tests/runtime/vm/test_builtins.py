"""Builtins of bytecode, one by one, and operators whose results have sizes that the data tell."""

from __future__ import annotations

import numpy as np
import pytest

from weft.runtime.containers import ShapeTuple
from weft.runtime.ndarray import NDArray, array
from weft.runtime.registry import get_global_func, register_func, remove_global_func
from weft.runtime.vm.builtins import BUILTINS, operator_runner
from weft.runtime.vm.data_dependent import nonzero, unique
from weft.runtime.vm.host_services import mismatch
from weft.runtime.vm.stack import MAX_DEPTH, stack_floor, too_deep
from weft.support.errors import AssertionFault, IRTypeError, IRValueError, RuntimeFault


def test_tensors_are_allocated():
    made = BUILTINS["alloc_tensor"]((2, 3), "int8")
    assert (made.shape, made.dtype) == ((2, 3), "int8")


def test_a_copy_has_memory_of_its_own_and_the_type():
    given = array(np.ones(3, "float16"))
    copied = BUILTINS["copy"](given)
    copied[0] = 5
    assert given[0] == 1
    assert copied.dtype == "float16"


def test_shapes_of_tensors_and_tensors_of_shapes():
    assert BUILTINS["shape_of"](array(np.zeros((2, 3)))) == ShapeTuple((2, 3))
    assert BUILTINS["tensor_to_shape"](array([4, 5])) == (4, 5)
    back = BUILTINS["shape_to_tensor"](ShapeTuple((4, 5)))
    assert (back.tolist(), back.dtype) == ([4, 5], "int64")
    with pytest.raises(IRValueError, match=r"expected one dimension, got \(1, 1\)"):
        BUILTINS["tensor_to_shape"](array([[4]]))


def test_fields_of_tuples():
    assert BUILTINS["tuple_getitem"]((1, 2), 1) == 2
    for index in (-1, 2):
        with pytest.raises(IndexError, match=f"field {index} of a tuple of 2"):
            BUILTINS["tuple_getitem"]((1, 2), index)


PRINTED = [
    (("{} and {}", 3, 4), "3 and 4\n"), ((3, "x"), "3 x\n"), (("plain",), "plain\n"), ((), "\n"),
    (("{:.1f}", array(2.25)), "2.2\n"), ((array([1, 2]),), "[1 2]\n"),
    (("{}", (array([1]), (2,))), "([1], (2,))\n"),
]  # fmt: skip


@pytest.mark.parametrize(("values", "text"), PRINTED)
def test_values_are_printed(values, text, capsys):
    assert BUILTINS["print"](*values) == ()
    assert capsys.readouterr().out == text


def test_a_tensor_is_printed_under_its_line(capsys):
    BUILTINS["debug_print"]("model.py:3", array([1, 2]))
    assert capsys.readouterr().out == "[model.py:3]:\n[1 2]\n"


ASSERTIONS = [
    ((False,), "^Assertion Failed$"), ((False, "n is {}", 3), "Assertion Failed: n is 3"),
    ((array(False), "plain"), "Assertion Failed: plain"),
    ((False, "", 1, 2), "Assertion Failed: 1, 2"),
]  # fmt: skip


@pytest.mark.parametrize(("values", "text"), ASSERTIONS)
def test_assertions_say_their_values(values, text):
    with pytest.raises(AssertionFault, match=text):
        BUILTINS["assert_op"](*values)
    assert BUILTINS["assert_op"](True, *values[1:]) == ()


def test_functions_that_only_look_are_called_in_order():
    seen = []
    register_func("test.builtins.look", lambda line, *values: seen.append((line, values)))
    try:
        assert BUILTINS["invoke_debug_func"]("io", "test.builtins.look", "a.py:1", 3) == "io"
    finally:
        remove_global_func("test.builtins.look")
    assert seen == [("a.py:1", (3,))]
    with pytest.raises(RuntimeFault, match="debug_func at a.py:1: no function is registered under"):
        BUILTINS["invoke_debug_func"]("io", "test.builtins.look", "a.py:1", 3)


def test_operators_that_are_compiled_at_the_call_need_the_compiler(monkeypatch):
    from weft.runtime import registry

    monkeypatch.setattr(registry, "_TABLE", {})
    with pytest.raises(RuntimeFault, match=r"relax.add works on a tensor of unknown rank"):
        operator_runner("relax.add")


VALUES = np.array([3, 1, 3, 2, 1, 3])
UNIQUE = [
    # by value, which parts, the results
    (True, (False, False, False), [[1, 2, 3]]), (False, (False, False, False), [[3, 1, 2]]),
    (True, (True, True, True), [[1, 2, 3], [1, 3, 0], [2, 0, 2, 1, 0, 2], [2, 1, 3]]),
    (False, (True, True, True), [[3, 1, 2], [0, 1, 3], [0, 1, 0, 2, 1, 0], [3, 2, 1]]),
    (False, (False, False, True), [[3, 1, 2], [3, 2, 1]]),
]  # fmt: skip


@pytest.mark.parametrize(("by_value", "parts", "expected"), UNIQUE)
def test_distinct_elements(by_value, parts, expected):
    results = unique(VALUES, by_value, parts, None)
    assert [result.tolist() for result in results] == expected
    run = get_global_func("relax.run.unique")(array(VALUES), by_value, *parts, None)
    tensors = run if isinstance(run, tuple) else (run,)
    assert [tensor.tolist() for tensor in tensors] == expected
    assert all(tensor.dtype == "int64" for tensor in tensors[1:])


def test_distinct_rows_and_parts_that_say_where_each_went():
    rows = np.array([[2, 2], [1, 0], [2, 2]])
    values, inverse = unique(rows, False, (False, True, False), 0)
    assert values.tolist() == [[2, 2], [1, 0]]
    assert (values[inverse] == rows).all()
    (columns,) = unique(rows, True, (False, False, False), 1)
    assert columns.tolist() == [[2, 2], [0, 1], [2, 2]]


def test_not_a_number_is_one_value():
    (values,) = unique(np.array([np.nan, 1, np.nan]), True, (False, False, False), None)
    assert values[0] == 1
    assert np.isnan(values[1:]).sum() == len(values) - 1 == 1


@pytest.mark.parametrize(("given", "expected"), [
    ([0, 2, 0, 3], [[1, 3]]), ([[0, 1], [1, 0]], [[0, 1], [1, 0]]), (5, [[0]]), (0, [[]]),
    ([0.0, -0.0, np.nan], [[2]]),
])  # fmt: skip
def test_places_of_elements_that_are_not_zero(given, expected):
    assert nonzero(np.array(given)).tolist() == expected
    run = get_global_func("relax.run.nonzero")(array(np.array(given)))
    assert isinstance(run, NDArray)
    assert (run.tolist(), run.dtype) == (expected, "int64")


def test_a_mismatch_of_native_code_is_that_of_bytecode():
    with pytest.raises(IRValueError, match=r"x: expected shape \(n, 4\), n=3, got \(3, 5\)"):
        mismatch((3, 5), {"n": 3}, "shape", ("n", 4), "x")
    with pytest.raises(IRValueError, match=r"k: expected 6 \(n \* 2\), got 5"):
        mismatch((5,), {"n": 3}, "prim", ("n * 2",), "k")


def test_errors_of_recursion_say_which_limit():
    with pytest.raises(RuntimeFault, match=f"f: calls are nested more than {MAX_DEPTH} deep"):
        too_deep("f", MAX_DEPTH)
    with pytest.raises(RuntimeFault, match="nested 700 deep, and this thread's stack holds"):
        too_deep("f", 700)


def test_the_stack_has_a_floor_of_its_own_in_each_thread():
    import threading

    floors = [stack_floor()]
    thread = threading.Thread(target=lambda: floors.append(stack_floor()))
    thread.start()
    thread.join()
    assert stack_floor() == floors[0]
    assert floors[0] != floors[1]


def test_conditions():
    for given, expected in ((array(True), True), (array(0), False), (1, True), ((), False)):
        assert BUILTINS["to_condition"](given) is expected


def test_what_is_no_tensor_has_no_shape():
    with pytest.raises(IRTypeError, match="shape_of: expected a tensor, got tuple"):
        BUILTINS["shape_of"]((1, 2))
