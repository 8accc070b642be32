"""An object that stands in many places of a statement is computed once, and where that is right."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import weft
from weft import te
from weft.ir.functor import collect
from weft.ir.module import IRModule
from weft.tir import interp, op
from weft.tir.analysis.integer_values import values_of
from weft.tir.buffer import BufferLoad, decl_buffer
from weft.tir.expr import Broadcast, Call, Let, Max, Mul, Ramp, Select, Var
from weft.tir.function import PrimFunc
from weft.tir.stmt import Allocate, BufferStore, DeclBuffer

N = 64


def instructions(compute, times, lanes=1):
    """LLVM's lines for the value and so many steps ``value = compute(value, a, b)``."""
    return len(weft.build(chain(compute, times, lanes)).get_source("ll").splitlines())


def chain(compute, times, lanes=1):
    a, b = (decl_buffer((N,), "int32", name) for name in "ab")
    out = decl_buffer((N,), "int32", "out")
    place = op.const(1) if lanes == 1 else Ramp(op.const(0), op.const(1), lanes)
    value = BufferLoad(a, [place])
    for step in range(times):
        value = compute(value, BufferLoad(b, [place]), unlike_others(b, lanes, step), step)
    return PrimFunc([a, b, out], BufferStore(out, value, [place]))


def unlike_others(buffer, lanes, step):
    """A condition of which those of other steps say nothing."""
    if lanes == 1:
        return BufferLoad(buffer, [op.const(step)]) > 3
    place = Ramp(op.const(step), op.const(1), lanes)
    return BufferLoad(buffer, [place]) > Broadcast(op.const(3), lanes)


def choice(x, b, condition, step):
    """Both arms use x, and the condition does not."""
    return op.if_then_else(condition, op.floordiv(x, b), x * 3)


def perhaps(x, b, condition, step):
    """One arm uses x, and what follows does."""
    return op.if_then_else(condition, op.floordiv(x, b), 7) * x


def unsure(x, b, condition, step):
    """Either choice may need x, and each needs it under its own condition."""
    first = op.if_then_else(condition, op.floordiv(step, b) + x, 7)
    return first * op.if_then_else(b != step, op.floordiv(b + step, b) - x, 7)


def let(x, b, condition, step):
    t = Var("t", "int32")
    return Let(t, x + 1, t * t + x)


CASES = [
    lambda x, b, condition, step: x * x,
    lambda x, b, condition, step: op.minimum(x, x + b),
    lambda x, b, condition, step: op.select(b > x, x, x * x),
    lambda x, b, condition, step: op.if_then_else(x > b, x, x * b),
    choice, perhaps, unsure, let,
]  # fmt: skip
VECTORS = [
    lambda x, b, condition, step: x * x,
    lambda x, b, condition, step: Select(b > x, x, x * x),
    lambda x, b, condition, step: Select(condition, op.floordiv(x, b), x * x),
    lambda x, b, condition, step: Select(condition, op.floordiv(x, b), b) * x,
]


@pytest.mark.parametrize("compute", CASES)
def test_code_grows_with_the_number_of_objects(compute):
    ten, twenty, forty = (instructions(compute, times) for times in (10, 20, 40))
    assert forty - twenty == 2 * (twenty - ten)


@pytest.mark.parametrize("compute", VECTORS)
def test_vector_code_grows_with_the_number_of_objects(compute):
    ten, twenty, forty = (instructions(compute, times, 8) for times in (10, 20, 40))
    assert forty - twenty == 2 * (twenty - ten)


@pytest.mark.parametrize("compute", CASES)
def test_values_are_those_of_the_interpreter(compute):
    func = chain(compute, 5)
    for seed in range(4):
        given = np.random.default_rng(seed).integers(1, 9, (2, N)).astype("int32")
        expected, result = np.zeros(N, "int32"), weft.nd.array(np.zeros(N, "int32"))
        interp.run(func, *given, expected)
        weft.build(func)(*map(weft.nd.array, given), result)
        np.testing.assert_array_equal(result.numpy(), expected)


@pytest.mark.parametrize("compute", VECTORS)
def test_vectors_are_those_of_the_interpreter(compute):
    func = chain(compute, 5, 8)
    given = np.random.default_rng(1).integers(1, 9, (2, N)).astype("int32")
    expected, result = np.zeros(N, "int32"), weft.nd.array(np.zeros(N, "int32"))
    interp.run(func, *given, expected)
    weft.build(func)(*map(weft.nd.array, given), result)
    np.testing.assert_array_equal(result.numpy(), expected)


def test_steps_of_a_tensor_expression():
    def kernel(times):
        x = te.placeholder((N,), "float32", name="x")

        def body(i):
            value = x[i]
            for _ in range(times):
                value = value * value
            return value

        return weft.build(te.create_prim_func([x, te.compute((N,), body, name="y")]))

    lines = [kernel(times).get_source("ll").count("fmul") for times in (15, 30, 200)]
    assert lines == [15, 30, 200]


def test_a_call_that_writes_ends_what_was_loaded(native):
    """Code generation reads A[0] anew after the call."""

    @weft.register_global_func("tests.shared.change", override=True)
    def change(array):
        changed = array.numpy() + 10
        array.copyfrom(changed)
        return int(changed[0])

    a, out = decl_buffer((1,), "int32", "A"), decl_buffer((1,), "int32", "out")
    load = BufferLoad(a, [op.const(0)])
    call = Call("int32", "tir.tvm_call_packed", ["tests.shared.change", a])
    func = PrimFunc([a, out], BufferStore(out, load * 100 + call + load, [op.const(0)]))
    result = np.zeros(1, "int32")
    native(func.with_attr("global_symbol", "main"))(np.ones(1, "int32"), result)
    assert result[0] == 1 * 100 + 11 + 11


def test_an_object_in_two_statements_is_loaded_in_each():
    a = decl_buffer((2,), "int32", "a")
    load = BufferLoad(a, [op.const(0)])
    more = op.add(load, op.const(1))
    stores = [BufferStore(a, more, [op.const(0)]), BufferStore(a, more, [op.const(1)])]
    func = PrimFunc([a], weft.tir.SeqStmt(stores))
    result = weft.nd.array(np.zeros(2, "int32"))
    weft.build(IRModule({"main": func}))["main"](result)
    assert result.numpy().tolist() == [1, 2]


def test_stages_that_are_inlined_into_each_other():
    """``b[i] = a[i] * a[i]`` loads twice: inlined, both are the same value."""

    def stages(times):
        tensors = [te.placeholder((N,), "float32", name="x")]
        for number in range(times):
            square = functools.partial(lambda a, i: a[i] * a[i], tensors[-1])
            tensors.append(te.compute((N,), square, name=f"stage{number}"))
        sch = weft.tir.Schedule(te.create_prim_func([tensors[0], tensors[-1]]))
        for number in range(times - 1):
            sch.compute_inline(sch.get_block(f"stage{number}"))
        return sch.mod["main"]

    assert [len(collect(stages(times), Mul)) for times in (5, 10, 40)] == [5, 10, 40]
    assert weft.build(stages(40)).get_source("ll").count("fmul") == 40


def allocated(times):
    """A buffer of ``s`` elements, s = max(s + s, s * (n + k)) so many times over: each may wrap."""
    n = Var("n", "int64")
    size = n
    for step in range(times):
        size = Max(size + size, size * (n + step))
    held, given = decl_buffer((size,), "float32", "held"), decl_buffer((n,), "float32", "given")
    store = BufferStore(held, op.const(1.0, "float32"), [op.const(0, "int64")])
    body = Allocate(held.data, "float32", [size], op.const(True, "bool"), DeclBuffer(held, store))
    return PrimFunc([given], body)


def test_the_size_of_memory_is_computed_once_with_each_of_its_steps():
    lines = [
        len(weft.build(allocated(times)).get_source("ll").splitlines()) for times in (4, 8, 12)
    ]
    assert lines[2] - lines[1] == lines[1] - lines[0] > 0


def test_values_of_integers_are_computed_once():
    i = Var("i", "int64")
    value = i
    for _ in range(60):
        value = op.min(value + value, 1000) - Max(value, i)
    asked = []

    def lookup(var):
        asked.append(var)
        return np.arange(4)

    assert values_of(value, lookup).shape == (4,)
    assert asked == [i]
