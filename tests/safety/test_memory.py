"""design.md 3.13: no data and no argument reaches memory that is not the program's."""

from __future__ import annotations

import numpy as np
import pytest

import weft
from weft import te
from weft.script import tir as T
from weft.support.errors import RuntimeFault, TVMError
from weft.tir import op
from weft.tir.buffer import BufferLoad, decl_buffer
from weft.tir.expr import Var
from weft.tir.function import PrimFunc
from weft.tir.interp import run
from weft.tir.stmt import BufferStore, For, ForKind


@T.prim_func
def divide(x: T.Buffer((4,), "int32"), y: T.Buffer((4,), "int32"), z: T.Buffer((4,), "int32")):
    for i in range(4):
        z[i] = x[i] // y[i]


@T.prim_func
def gather(x: T.Buffer((4,), "float32"), k: T.Buffer((3,), "int64"), y: T.Buffer((3,), "float32")):
    for i in range(3):
        y[i] = x[k[i]]


def arrays(*values):
    return [weft.nd.array(np.array(v)) for v in values]


def both(func, *given):
    """The error messages of the interpreter and of native code."""
    messages = []
    for call in (lambda *a: run(func, *a), weft.build(func)):
        with pytest.raises(RuntimeFault) as caught:
            call(*[weft.nd.array(np.array(v)) for v in given])
        messages.append(str(caught.value))
    return messages


def test_division_by_zero_in_data():
    for text in both(divide, np.ones(4, "int32"), np.array([1, 2, 0, 1], "int32"),
                     np.zeros(4, "int32")):  # fmt: skip
        assert "by zero" in text


@pytest.mark.parametrize("index", [4, -1, 2**40, -(2**40)])
def test_gather_past_the_end(index):
    for text in both(gather, np.ones(4, "float32"), np.array([0, index, 1], "int64"),
                     np.zeros(3, "float32")):  # fmt: skip
        assert str(index) in text


def test_scatter_past_the_end_writes_nothing_there():
    @T.prim_func
    def scatter(k: T.Buffer((3,), "int32"), y: T.Buffer((4,), "float32")):
        for i in range(3):
            y[k[i]] = T.float32(1)

    memory = np.zeros(8, "float32")
    target = weft.nd.array(memory[:4])
    with pytest.raises(RuntimeFault):
        weft.build(scatter)(weft.nd.array(np.array([0, 5, 1], "int32")), target)
    assert not memory[4:].any()


def test_an_output_that_overlaps_an_argument_is_refused():
    @T.prim_func
    def copy(x: T.Buffer((4,), "float32"), y: T.Buffer((4,), "float32")):
        T.func_attr({"tir.noalias": T.bool(True)})
        for i in range(4):
            y[i] = x[i]

    built = weft.build(copy)
    memory = np.arange(8, dtype="float32")
    built(weft.nd.from_dlpack(memory[:4]), weft.nd.from_dlpack(memory[4:]))
    np.testing.assert_array_equal(memory[4:], memory[:4])
    with pytest.raises(TVMError, match="overlap"):
        built(weft.nd.from_dlpack(memory[:4]), weft.nd.from_dlpack(memory[2:6]))


def test_unaligned_memory_works():
    raw = np.zeros(4 * 5 + 1, "uint8")
    unaligned = raw[4:20].view("float32")
    unaligned[...] = [1, 2, 3, 4]
    x = te.placeholder((4,), name="x")
    built = weft.build(te.create_prim_func([x, te.compute((4,), lambda i: x[i] + 1.0)]))
    out = weft.nd.empty((4,))
    built(weft.nd.array(unaligned), out)
    np.testing.assert_array_equal(out.numpy(), [2, 3, 4, 5])


def test_proved_out_of_bounds_is_refused_with_the_numbers():
    x, y = decl_buffer((4,), "float32", "x"), decl_buffer((4,), "float32", "y")
    i = Var("i", "int32")
    store = BufferStore(y, BufferLoad(x, [i + 4]), [i])
    func = PrimFunc([x, y], For(i, 0, 4, ForKind.SERIAL, store))
    with pytest.raises(TVMError, match=r"x.*4"):
        weft.build(func)


def test_not_proved_is_checked_and_checks_can_be_left_out():
    @T.prim_func
    def shifted(k: T.int32, x: T.Buffer((8,), "float32"), y: T.Buffer((4,), "float32")):
        for i in range(4):
            y[i] = x[i + k]

    x, y = arrays(np.arange(8, dtype="float32"), np.zeros(4, "float32"))
    built = weft.build(shifted)
    built(4, x, y)
    np.testing.assert_array_equal(y.numpy(), [4, 5, 6, 7])
    with pytest.raises(RuntimeFault):
        built(5, x, y)
    free = weft.build(shifted, checks=False)
    free(4, x, y)
    np.testing.assert_array_equal(y.numpy(), [4, 5, 6, 7])
    assert len(free.get_source("ll")) < len(built.get_source("ll"))


def test_assume_takes_the_check_away():
    @T.prim_func
    def plain(k: T.int64, x: T.Buffer((8,), "float32"), y: T.Buffer((4,), "float32")):
        for i in range(4):
            y[i] = x[k + i]

    @T.prim_func
    def promised(k: T.int64, x: T.Buffer((8,), "float32"), y: T.Buffer((4,), "float32")):
        T.evaluate(T.assume(T.And(T.int64(0) <= k, k < T.int64(5))))
        for i in range(4):
            y[i] = x[k + i]

    text = [weft.build(f).get_source("ll") for f in (plain, promised)]
    assert text[0].count("br i1") > text[1].count("br i1")
    with pytest.raises(RuntimeFault, match="assume"):
        run(promised, 9, np.zeros(8, "float32"), np.zeros(4, "float32"))


def test_large_temporaries_do_not_go_on_the_stack():
    @T.prim_func
    def big(x: T.Buffer((1 << 20,), "float32"), y: T.Buffer((1 << 20,), "float32")):
        t = T.alloc_buffer((1 << 20,), "float32")
        for i in range(1 << 20):
            t[i] = x[i] + T.float32(1)
        for i in range(1 << 20):
            y[i] = t[(1 << 20) - 1 - i]

    x, y = arrays(np.arange(1 << 20, dtype="float32"), np.zeros(1 << 20, "float32"))
    weft.build(big)(x, y)
    np.testing.assert_array_equal(y.numpy(), x.numpy()[::-1] + 1)


def test_size_arithmetic_that_overflows_is_refused():
    @T.prim_func
    def huge(n: T.int64, k: T.Buffer((2,), "int64"), y: T.Buffer((1,), "float32")):
        with T.block("root"):
            t = T.alloc_buffer((n, n), "float32")
            t[k[0], k[1]] = T.float32(1)
            t[k[1], k[0]] = T.float32(2)
            y[0] = t[k[0], k[1]]

    y, k = weft.nd.empty((1,)), weft.nd.array(np.array([1, 2]))
    built = weft.build(huge)
    built(3, k, y)
    assert y.numpy()[0] == 1
    for n in (2**33, 2**32, 2**62, -1):
        with pytest.raises(TVMError):
            built(n, k, y)


@T.prim_func
def guarded(k: T.Buffer((1,), "int64"), x: T.Buffer((4,), "float32"), y: T.Buffer((1,), "float32")):
    v: T.int64 = k[0]
    if v >= T.int64(0) and v + T.int64(1) <= T.int64(3):
        y[0] = x[v]


@T.prim_func
def guarded_scalar(v: T.int64, x: T.Buffer((4,), "float32"), y: T.Buffer((1,), "float32")):
    if v >= T.int64(0) and v + T.int64(1) <= T.int64(3):
        y[0] = x[v]


def test_a_guard_that_wraps_proves_nothing():
    """2**63 - 1 + 1 is negative, so the guard lets it through; the access is still tested."""
    x, y = arrays(np.ones(4, "float32"), np.zeros(1, "float32"))
    for func, value in ((guarded, arrays(np.array([2**63 - 1]))[0]), (guarded_scalar, 2**63 - 1)):
        built = weft.build(func)
        try:
            built(value, x, y)
        except RuntimeFault:
            pass
        assert y.numpy()[0] == 0


def test_deep_expressions_work_or_say_so():
    x, y = decl_buffer((1,), "int32", "x"), decl_buffer((1,), "int32", "y")
    value = BufferLoad(x, [0])
    for _ in range(10_000):
        value = op.add(value, BufferLoad(x, [0]))
    func = PrimFunc([x, y], BufferStore(y, value, [0]), attrs={"global_symbol": "main"})
    given = [np.full(1, 3, "int32"), np.zeros(1, "int32")]
    steps = {
        "interpret": lambda: run(func, *given),
        "print": lambda: func.script(),
        "parse": lambda: weft.script.from_source(func.script()),
        "build": lambda: weft.build(func)(*arrays(*given)),
    }
    for name, step in steps.items():
        message = ""
        try:
            step()
        except TVMError as error:
            message = str(error)
        assert len(message.splitlines()) <= 12, name
    if given[1][0]:
        assert given[1][0] == 30_003
