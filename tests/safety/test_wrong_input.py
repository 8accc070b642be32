"""Wrong input gives a TVMError that says what was expected, what came, and where."""

from __future__ import annotations

import numpy as np
import pytest

import weft
from weft import te, topi
from weft.script import tir as T
from weft.tir.interp import run


@T.prim_func
def add(x: T.Buffer((2, 3), "float32"), y: T.Buffer((2, 3), "float32")):
    for i, j in T.grid(2, 3):
        y[i, j] = x[i, j] + T.float32(1)


@pytest.fixture(scope="module")
def built():
    return weft.build(add)


def zeros(shape=(2, 3), dtype="float32"):
    return weft.nd.array(np.zeros(shape, dtype))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (lambda: (zeros((2, 4)), zeros()), r"argument 0 \(x\).*\(2, 3\).*\(2, 4\)"),
        (lambda: (zeros((6,)), zeros()), r"argument 0 \(x\)"),
        (lambda: (zeros(), zeros((2, 3), "float64")), r"argument 1 \(y\).*float32.*float64"),
        (lambda: (zeros(),), r"expected 2 arguments.*1"),
        (lambda: (zeros(), zeros(), zeros()), r"expected 2 arguments.*3"),
        (lambda: (zeros(), 1.0), r"argument 1 \(y\)"),
        (lambda: (zeros(), "y"), r"argument 1 \(y\)"),
        (lambda: (None, zeros()), r"argument 0 \(x\)"),
    ],
)
def test_arguments_of_a_native_call(built, arguments, message):
    with pytest.raises(weft.TVMError, match=message) as caught:
        built(*arguments())
    assert len(str(caught.value).splitlines()) <= 10


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((np.zeros((2, 4), "float32"), np.zeros((2, 3), "float32")), "x: expected an extent 3"),
        ((np.zeros((2, 3)), np.zeros((2, 3), "float32")), "x: expected float32"),
        ((np.zeros((2, 3), "float32"),), "expected 2 arguments, got 1"),
        ((np.zeros((2, 3), "float32"), 1.0), "expected an NDArray or a numpy array"),
    ],
)  # fmt: skip
def test_arguments_of_the_interpreter(arguments, message):
    with pytest.raises(weft.TVMError, match=message):
        run(add, *arguments)


def test_symbolic_extents_must_agree():
    @T.prim_func
    def same(a: T.handle, b: T.handle):
        n = T.int32()
        x = T.match_buffer(a, (n,))
        y = T.match_buffer(b, (n,))
        for i in range(n):
            y[i] = x[i]

    with pytest.raises(weft.TVMError, match=r"argument 1 \(y\).*3"):
        weft.build(same)(zeros((3,)), zeros((4,)))


def test_a_scalar_must_be_of_its_type():
    @T.prim_func
    def scalar(n: T.int32, y: T.Buffer((1,), "int32")):
        y[0] = n

    f = weft.build(scalar)
    for value in ("1", None, 2**40):
        with pytest.raises(weft.TVMError, match=r"argument 0 \(n\)"):
            f(value, zeros((1,), "int32"))


def test_memory_in_another_order_is_taken_or_refused_in_words(built):
    x = np.asfortranarray(np.arange(6, dtype="float32").reshape(2, 3))
    y = zeros()
    try:
        built(weft.nd.from_dlpack(x), y)
    except weft.TVMError as error:
        assert "strides" in str(error) or "contiguous" in str(error)  # noqa: PT017
    else:
        np.testing.assert_array_equal(y.numpy(), x + 1)


def test_a_name_that_is_not_defined():
    with pytest.raises(weft.TVMError, match="undefined_thing"):
        weft.script.from_source(
            """
from tvm.script import tir as T

@T.prim_func
def main(x: T.Buffer((4,), "float32")):
    for i in range(4):
        x[i] = undefined_thing
"""
        )


def test_a_script_that_is_no_python():
    with pytest.raises((weft.TVMError, SyntaxError)):
        weft.script.from_source("@T.prim_func\ndef main(:\n")


def test_the_wrong_number_of_indices():
    with pytest.raises(weft.TVMError, match="dimension"):
        weft.script.from_source(
            """
from tvm.script import tir as T

@T.prim_func
def main(x: T.Buffer((4, 4), "float32")):
    for i in range(4):
        x[i] = T.float32(0)
"""
        )


def test_axis_out_of_range():
    x = te.placeholder((2, 3), name="x")
    for call in (lambda: topi.sum(x, axis=2), lambda: topi.squeeze(x, axis=5)):
        with pytest.raises(weft.TVMError, match="axis"):
            call()


def test_targets_and_devices_that_are_not_there():
    with pytest.raises(weft.TVMError, match="llwm"):
        weft.target.Target("llwm")
    with pytest.raises(weft.TVMError, match="cuda"):
        weft.nd.array(np.zeros(3), weft.cuda(0))


def test_nothing_to_build():
    with pytest.raises(weft.TVMError, match="IRModule or a function"):
        weft.build(3)
    with pytest.raises(weft.TVMError, match="empty"):
        weft.build(weft.IRModule({}))
