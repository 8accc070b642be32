"""Level 0: data types, errors, facades, slots, settings, deep recursion, diagnostics."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor

import ml_dtypes
import numpy as np
import pytest

from tests.lib.python_process import output_of
from weft.support import config, errors
from weft.support.diagnostics import Source, render
from weft.support.dtype import DataType, make_dtype, to_numpy_dtype
from weft.support.facade import module_getattr
from weft.support.recursion import deep_recursion
from weft.support.slots import Slot

# ---- data types


@pytest.mark.parametrize(
    ("name", "kind", "bits", "lanes", "canonical"),
    [
        ("float32", "float", 32, 1, "float32"), ("int8x4", "int", 8, 4, "int8x4"),
        ("bool", "bool", 1, 1, "bool"), ("uint1", "bool", 1, 1, "bool"),
        ("int", "int", 32, 1, "int32"),
        ("float", "float", 32, 1, "float32"), ("handle", "handle", 64, 1, "handle"),
        ("bfloat16", "bfloat", 16, 1, "bfloat16"), ("", "void", 0, 1, "void"),
        ("float8_e4m3fn", "float8_e4m3fn", 8, 1, "float8_e4m3fn"),
        ("int4", "int", 4, 1, "int4"),
        ("float32xvscalex4", "float", 32, 4, "float32xvscalex4"),
        ("boolx4", "bool", 1, 4, "boolx4"),
    ],
)  # fmt: skip
def test_names_have_parts(name, kind, bits, lanes, canonical):
    dtype = DataType(name)
    assert (dtype.kind, dtype.bits, dtype.lanes, str(dtype)) == (kind, bits, lanes, canonical)
    assert dtype == canonical
    assert DataType(canonical) is dtype
    assert isinstance(dtype, str)


@pytest.mark.parametrize(
    ("given", "name"),
    [(np.float32, "float32"), (np.dtype("int16"), "int16"), (float, "float64"), (bool, "bool"),
     (int, "int64"), (ml_dtypes.bfloat16, "bfloat16")],
)  # fmt: skip
def test_types_of_python_and_numpy_are_understood(given, name):
    assert DataType(given) == name


@pytest.mark.parametrize("name", ["flot32", "float31", "int32x", "bfloat32", "int32y4", " int32"])
def test_unknown_names_are_refused(name):
    with pytest.raises(errors.IRTypeError, match="expected"):
        DataType(name)


def test_derived_types():
    assert DataType("int8x4").element is DataType("int8")
    assert DataType("int8").with_lanes(4) is DataType("int8x4")
    assert DataType("float32x4").itemsize == 16
    assert DataType("bool").itemsize == 1
    assert make_dtype("int", 16, 2) is DataType("int16x2")
    assert make_dtype("float", 32, 4, scalable=True).is_scalable


@pytest.mark.parametrize(
    ("dtype", "numpy"),
    [("float32x4", "float32"), ("bool", "bool"), ("handle", "uint64"), ("int4", "int8"),
     ("bfloat16", ml_dtypes.bfloat16), ("float8_e5m2", ml_dtypes.float8_e5m2)],
)  # fmt: skip
def test_numpy_types_of_one_lane(dtype, numpy):
    assert to_numpy_dtype(dtype) == np.dtype(numpy)


# ---- errors


def test_every_error_is_a_tvm_error_and_argument_errors_are_pythons_too():
    kinds = [
        kind for kind in vars(errors).values()
        if getattr(kind, "__module__", "") == errors.__name__ and isinstance(kind, type)
        and not issubclass(kind, Warning)
    ]  # fmt: skip
    assert all(issubclass(kind, errors.TVMError) for kind in kinds)
    assert issubclass(errors.TVMError, RuntimeError)
    pairs = {
        errors.IRTypeError: TypeError, errors.IRValueError: ValueError, errors.IRKeyError: KeyError,
        errors.IRIndexError: IndexError, errors.IRAttributeError: AttributeError,
        errors.UnsupportedError: NotImplementedError,
    }  # fmt: skip
    assert all(issubclass(ours, python) for ours, python in pairs.items())
    assert str(errors.IRKeyError("a text")) == "a text"


# ---- facades


def test_a_facade_imports_at_first_use_and_names_the_nearest():
    import weft.support.facade as this

    resolve, names = module_getattr(
        this.__name__,
        {"DataType": "weft.support.dtype", "Kind": "weft.support.dtype:DataType"},
        planned={"Later": "what comes later"},
    )
    try:
        assert resolve("DataType") is DataType
        assert resolve("Kind") is DataType
        assert names() == ["DataType", "Kind"]
        with pytest.raises(
            AttributeError, match="has no attribute 'DataTyp'; did you mean DataType"
        ):
            resolve("DataTyp")
        with pytest.raises(
            AttributeError, match=r"Later is a name of TVM 0\.20 that weft does not "
        ):
            resolve("Later")
        with pytest.raises(AttributeError, match="has no attribute '__path_'"):
            resolve("__path_")
    finally:
        vars(this).pop("DataType", None)
        vars(this).pop("Kind", None)


# ---- slots


def test_a_slot_is_filled_once_and_imports_its_owner():
    slot = Slot("sample", "json")
    with pytest.raises(errors.InternalError, match="importing json did not fill the slot sample"):
        slot.get()
    slot.fill(3)
    slot.fill(3)
    assert slot.get() == 3
    with pytest.raises(errors.InternalError, match="slot sample is already filled by json"):
        slot.fill(4)


# ---- settings


def test_settings_are_read_and_checked(monkeypatch):
    monkeypatch.setenv("WEFT_NUM_THREADS", "3")
    assert config.environment_int("WEFT_NUM_THREADS") == 3
    monkeypatch.setenv("WEFT_NUM_THREADS", "three")
    with pytest.raises(ValueError, match="WEFT_NUM_THREADS: expected an integer, got 'three'"):
        config.environment_int("WEFT_NUM_THREADS")
    monkeypatch.setenv("WEFT_NUM_THREADS", "0")
    with pytest.raises(ValueError, match="at least 1, got 0"):
        config.environment_int("WEFT_NUM_THREADS", 1)
    monkeypatch.delenv("WEFT_NUM_THREADS")
    assert config.environment_int("WEFT_NUM_THREADS") is None
    with pytest.raises(errors.InternalError, match="WEFT_NONE is not in"):
        config.environment_text("WEFT_NONE")


@pytest.mark.parametrize(
    ("text", "value"), [("1", True), ("off", False), ("0", False), ("", False)]
)
def test_flags(monkeypatch, text, value):
    monkeypatch.setenv("WEFT_NO_CACHE", text)
    assert config.environment_flag("WEFT_NO_CACHE") is value


# ---- recursion


def test_deep_walks_run_and_endless_ones_are_an_error():
    @deep_recursion
    def depth(n):
        return n if n == 0 else 1 + depth.__wrapped__(n - 1)

    @deep_recursion
    def endless():
        return 1 + endless.__wrapped__()

    assert depth(30_000) == 30_000
    with pytest.raises(errors.TVMError, match="endless: the program is nested more than about"):
        endless()


HOOKED = """
import pytest, torch
from weft import tir
from weft.support.errors import TVMError
from weft.support.recursion import calls_use_the_stack

assert not calls_use_the_stack()

def refuses(graph, inputs):
    raise ValueError("a backend that fails")

with pytest.raises(Exception, match="a backend that fails"):
    torch.compile(lambda x: x + 1, backend=refuses)(torch.ones(3))
assert calls_use_the_stack(), "torch takes its hook away now: nothing is left to test"
value = tir.Var("x", "int32")
for _ in range(40_000):
    value = value + 1 - tir.Var("y", "int32")
with pytest.raises(TVMError, match="nested more than about"):
    value.script()
print("alive")
"""


@pytest.mark.torch
def test_walks_stay_on_the_stack_where_torch_evaluates_frames():
    """torch.compile leaves its evaluator of frames behind when a backend raises."""
    pytest.importorskip("torch")
    printed = output_of(HOOKED)
    assert printed == "alive\n"


# ---- diagnostics


SOURCE = Source.from_text("file.py", "first\n    x = größe + y\nlast\n")


def test_the_place_is_shown_with_a_caret():
    span = SOURCE.span(2, 2, 8, 15)  # bytes, as Python's ast counts
    assert render("undefined", SOURCE, span).splitlines() == [
        "error: undefined",
        " --> file.py:2:9",
        "  |",
        "2 |     x = größe + y",
        "  |         ^^^^^",
    ]


def test_a_message_without_a_place_names_the_file():
    assert render("text", SOURCE, None) == "error: text\n  --> file.py"


def test_long_messages_and_lines_are_cut():
    long = Source.from_text("f", "x" * 1000)
    text = render("\n".join(["m"] * 50), long, long.span(1, 1, 900, 903))
    assert len(text.splitlines()) == 10
    assert max(len(line) for line in text.splitlines()) < 200
    assert "^^^" in text


def test_the_users_recursion_limit_holds_after_a_walk():
    before = sys.getrecursionlimit()
    seen = []

    @deep_recursion
    def walk(depth):
        seen.append(sys.getrecursionlimit())
        return walk(depth - 1) if depth else 0

    walk(3)
    assert seen == [200_000] * 4
    assert sys.getrecursionlimit() == before


def test_walks_of_many_threads_share_the_limit():
    before = sys.getrecursionlimit()

    @deep_recursion
    def walk(depth):
        return nested(depth)

    def nested(depth):
        return nested(depth - 1) if depth else 0

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(walk, [3000] * 200)) == [0] * 200
    assert sys.getrecursionlimit() == before
