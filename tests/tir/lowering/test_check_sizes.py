"""Sizes, views and arguments in InsertChecks: what is tested, what is proved, the same results."""

from __future__ import annotations

import operator

import numpy as np
import pytest

import weft
from weft.ir.functor import collect
from weft.ir.module import IRModule
from weft.runtime.faults import IndexFault
from weft.script import from_source
from weft.script import tir as T
from weft.support.errors import RuntimeFault
from weft.tir import expr as e
from weft.tir import interp
from weft.tir.exact_steps import exact_steps
from weft.tir.expr import is_call
from weft.tir.lowering.insert_checks import InsertChecks
from weft.tir.lowering.pipeline import lower_meaning


def calls(func, name):
    return [call for call in collect(func.body, e.Call) if is_call(call, name)]


def after(func, tests=True):
    return InsertChecks(tests)(IRModule({"main": func}))["main"]


def test_a_loop_whose_bound_may_wrap(becomes):
    @T.prim_func
    def before(m: T.int64, n: T.int64, a: T.Buffer((4,), "int32")):
        for i in range(m * n):
            a[0] = T.Cast("int32", i)

    @T.prim_func
    def expected(m: T.int64, n: T.int64, a: T.Buffer((4,), "int32")):
        for i in range(
            T.checked(m * n, T.is_exact(m * n), "index", "a loop's bound does not fit in 64 bits")
        ):
            a[0] = T.Cast("int32", i)

    becomes(InsertChecks(), before, expected)


def test_bounds_that_cannot_wrap_stay():
    @T.prim_func
    def before(n: T.int32, p: T.handle):
        m = T.int64()
        a = T.match_buffer(p, (m, 4), "int32")
        for _ in range(n + 1):
            for i, j in T.grid(m, T.int64(4)):
                a[i, j] = 1

    assert after(before).body is before.body


def test_memory_is_allocated_once_its_size_is_known_to_be_one(becomes):
    @T.prim_func
    def before(n: T.int64, a: T.Buffer((4,), "int32")):
        b = T.allocate([n], "int32", "global")
        buffer = T.Buffer((n,), "int32", data=b)
        buffer[0] = a[0]

    func = after(before)
    first = func.body.seq[0].value
    assert str(first.args[1]) == (
        "T.bitwise_and(T.bitwise_and(T.int64(0) <= n, T.is_exact(T.int64(4) * n)), "
        "T.int64(4) * n <= T.int64(140737488355328))"
    )
    assert first.args[2].value == "allocation"
    for n in (-1, 1 << 45, 1 << 62):
        with pytest.raises(weft.TVMError, match="cannot allocate"):
            weft.build(before)(n, np.zeros(4, "int32"))


def test_a_view_is_tested_where_it_is_declared(becomes):
    @T.prim_func
    def before(n: T.int64, a: T.Buffer((4,), "int32")):
        v = T.decl_buffer((n, 2), "int8", data=a.data)
        v[0, 0] = T.int8(7)

    func = after(before)
    test, declaration = func.body.seq
    assert isinstance(declaration, type(before.body))
    assert str(test.value.args[1]) == (
        "T.bitwise_and(T.int64(0) <= n, T.bitwise_or("
        "T.bitwise_and(T.is_exact(T.max(n, T.int64(1)) * T.int64(2)), "
        "T.max(n, T.int64(1)) * T.int64(2) <= T.int64(16)), n == T.int64(0)))"
    )
    assert not calls(after(before, tests=False), "checked")


def test_a_view_that_is_never_declared_is_tested_at_its_uses():
    @T.prim_func
    def before(n: T.int32, a: T.Buffer((4,), "int32")):
        v = T.Buffer((n,), "int32", data=a.data)
        if n > 0:
            v[n - 1] = v[0]

    messages = [call.args[3].value for call in calls(after(before), "checked")]
    assert sum("view v" in message for message in messages) == 2
    a = np.arange(4, dtype="int32")
    weft.build(before)(4, a)
    assert a.tolist() == [0, 1, 2, 0]
    with pytest.raises(IndexError, match="view v: reaches to byte 20 of a memory of 16 bytes"):
        weft.build(before)(5, a)
    weft.build(before)(0, a)


def test_views_that_fit_are_not_tested():
    @T.prim_func
    def before(n: T.int64, p: T.handle):
        m = T.int64()
        a = T.match_buffer(p, (m, 8), "int32")
        flat = T.decl_buffer((m * T.int64(8),), "int32", data=a.data)
        for i in range(m):
            row = T.decl_buffer((4,), "int32", data=a.data, elem_offset=i * T.int64(8))
            row[0] = flat[0]

    assert not calls(after(before), "checked")


CALL = """
@I.ir_module
class Module:
    @T.prim_func
    def inner(x: T.handle, y: T.Buffer((8,), "int32")):
        T.func_attr({"tir.noalias": True})
        n = T.int64()
        a = T.match_buffer(x, (n,), "int32")
        if n > T.int64(0):
            y[0] = a[n - T.int64(1)]

    @T.prim_func
    def main(p: T.handle, y: T.Buffer((8,), "int32"), k: T.int64):
        m = T.int64()
        a = T.match_buffer(p, (m,), "int32")
        Module.inner(a, y, m // k)
"""


def test_a_call_is_made_once_its_arguments_are_large_enough_and_apart():
    module = InsertChecks()(from_source(CALL))
    outer = collect(module["main"].body, e.Let)[0].body
    inner = outer.args[0]
    assert outer.args[3].value.startswith("inner: argument a: reaches to byte {a}")
    assert inner.args[3].value.startswith("inner promises tir.noalias, but its arguments a and y")
    (named,) = collect(module["main"].body, e.Let)
    assert str(named.value) == "m // k"
    assert inner.args[0].args[2] is named.var
    built, y = weft.build(from_source(CALL)), np.zeros(8, "int32")
    built["main"](np.arange(6, dtype="int32"), y, 2)
    assert y[0] == 2
    with pytest.raises(IndexError, match="inner: argument a: reaches to byte -?"):
        built["main"](np.arange(6, dtype="int32"), y, -1)
    with pytest.raises(weft.TVMError, match="division by zero"):
        built["main"](np.arange(6, dtype="int32"), y, 0)
    both = np.zeros(8, "int32")
    with pytest.raises(IndexError, match="a and y overlap"):
        built["main"](both, both, 1)


def test_an_extent_of_a_parameter_that_may_wrap_is_tested_first():
    @T.prim_func
    def before(p: T.int64, q: T.int64, a: T.handle):
        buffer = T.match_buffer(a, (T.max(p * q, T.int64(1)),), "int8")
        buffer[0] = T.int8(1)

    test, _ = after(before).body.seq
    assert str(test.value.args[1]) == "T.is_exact(p * q)"


def test_the_pass_finds_nothing_to_do_the_second_time():
    for func in (*from_source(CALL).functions.values(),):
        lowered = lower_meaning()(IRModule({"main": func}))
        again = lower_meaning()(lowered)
        weft.ir.assert_structural_equal(lowered, again)


STEPS = {"+": operator.add, "-": operator.sub, "*": operator.mul}


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64"])
@pytest.mark.parametrize("text", [
    "x + y", "x - y", "x * y", "x * y + x", "T.max(x * y, y) - x", "(x + y) // T.DTYPE(3)",
    "T.Cast('int64', x * y) + T.int64(1)", "x",
])  # fmt: skip
def test_is_exact_means_the_same_everywhere(dtype, text):
    """Against Python's integers, in the interpreter and in native code."""
    source = f"""
@T.prim_func
def main(x: T.{dtype}, y: T.{dtype}, out: T.Buffer((1,), "bool")):
    out[0] = T.is_exact({text.replace("DTYPE", dtype)})
"""
    func, bits = from_source(source), int(dtype[3:])
    built = weft.build(func)
    rng = np.random.default_rng(7)
    edges = [0, 1, -1, 2, -(2 ** (bits - 1)), 2 ** (bits - 1) - 1, 2 ** (bits // 2)]
    for _ in range(60):
        x, y = (
            int(rng.choice(edges)) if rng.random() < 0.5 else int(rng.integers(-100, 100))
            for _ in range(2)
        )
        expected = _is_exact(text, x, y, bits)
        for run in (built, lambda *args: interp.run(func, *args)):
            out = np.zeros(1, "bool")
            run(x, y, out)
            assert bool(out[0]) is expected, (text, x, y)


def _is_exact(text, x, y, bits):
    """Each sum, difference and product on Python's integers."""

    def fits(number, width=bits):
        return -(2 ** (width - 1)) <= number < 2 ** (width - 1)

    parts = {
        "x + y": [x + y], "x - y": [x - y], "x * y": [x * y], "x * y + x": [x * y, x * y + x],
        "T.max(x * y, y) - x": [x * y, max(x * y, y) - x], "(x + y) // T.DTYPE(3)": [x + y],
        "T.Cast('int64', x * y) + T.int64(1)": [x * y], "x": [],
    }[text]  # fmt: skip
    wide = [x * y + 1] if text.startswith("T.Cast") else []
    return all(map(fits, parts)) and all(fits(number, 64) for number in wide)


def test_steps_stop_at_what_gives_a_number():
    x = e.Var("x", "int64")
    inner = e.Add(x, x)
    choice = e.Select(e.EQ(x, x), inner, x)
    assert exact_steps(choice) == []
    (step,) = exact_steps(e.Mul(choice, choice))
    assert isinstance(step, e.Mul)


def test_a_checked_allocation_is_a_fault_of_the_interpreter_too():
    @T.prim_func
    def func(n: T.int64, a: T.Buffer((4,), "int32")):
        b = T.decl_buffer((n * n,), "int32")
        b[0] = a[0]

    lowered = after(func)
    with pytest.raises(RuntimeFault, match="cannot allocate"):
        interp.run(lowered, 1 << 33, np.zeros(4, "int32"))


@pytest.mark.parametrize("extent", [2**63 - 4, 2**62, 2**61 + 1])
def test_a_view_of_more_bytes_than_64_bits_count_is_refused(extent):
    """Its size in bytes, as an expression of constants, is folded to -16: less than any memory."""

    @T.prim_func
    def main(x: T.handle):
        n = T.int32()
        a = T.match_buffer(x, (n, 4, T.int64(2)), "int32")
        b = T.decl_buffer((T.int64(extent),), "int32", data=a.data)
        b[T.int64(extent - 4)] = 1

    values = np.zeros((3, 4, 2), "int32")
    with pytest.raises(IndexFault, match="view b: reaches to byte"):
        weft.build(main)["main"](weft.nd.array(values))


@pytest.mark.parametrize("dtype", ["int64", "uint64", "int32"])
@pytest.mark.parametrize("stride", [1, -1, 3])
def test_a_vector_whose_last_index_wraps_is_outside(dtype, stride):
    low, high = (int(end) for end in (np.iinfo(dtype).min, np.iinfo(dtype).max))

    text = f"""
@T.prim_func
def main(first: T.{dtype}, a: T.Buffer((16,), "float32"), b: T.Buffer((4,), "float32")):
    b[T.Ramp(0, 1, 4)] = a[T.Ramp(first, T.Cast("{dtype}", {stride}), 4)]
"""
    build = weft.build(from_source(text))["main"]
    data, wanted = np.arange(16, dtype="float32"), range(16)
    given = [low, low + 2, -3, -1, 0, 2, 3, 6, 7, 12, 13, 15, 16, high - 3, high - 1, high]
    for first in sorted({place for place in given if low <= place <= high}):
        places = [first + lane * stride for lane in range(4)]
        result = weft.nd.empty((4,))
        arguments = first, weft.nd.array(data), result
        if all(place in wanted for place in places):
            build(*arguments)
            np.testing.assert_array_equal(result.numpy(), places)
        else:
            with pytest.raises(IndexFault, match="out of bounds for buffer a"):
                build(*arguments)
