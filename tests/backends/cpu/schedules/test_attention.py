"""The schedule of attention: a block of queries at a time, no matrix of all scores."""

from __future__ import annotations

import re

import numpy as np
import pytest

import weft
from weft import relax, tir
from weft.backends.cpu.schedules import attention, default
from weft.driver.pipeline import lower_tir
from weft.ir.functor import collect
from weft.target.machine import machine_of
from weft.tir.interp import run
from weft.tir.stmt import For, ForKind

pytestmark = pytest.mark.sampled(3)

SMALL = weft.target.Target("llvm -vector-width=128 -num-cores=2")
"""Vectors of four floats, so that small shapes have whole tiles and tails."""
RNG = np.random.default_rng(5)


def function_of(shapes, **options):
    """The legalised attention of tensors of those shapes, and of a bias if there is a fourth."""
    given = [
        relax.Var(name, relax.TensorStructInfo(shape, "float32"))
        for name, shape in zip("qkvb", shapes, strict=False)
    ]
    builder = relax.BlockBuilder()
    with builder.function("main", given):
        with builder.dataflow():
            out = builder.emit_output(relax.op.nn.attention(*given, **options))
        builder.emit_func_output(out)
    mod = relax.transform.LegalizeOps()(builder.get())
    [func] = [func for func in mod.functions.values() if isinstance(func, tir.PrimFunc)]
    return func


def scheduled(func, target=SMALL, debug_mask="none"):
    """The function by the program; None where it is for others.

    ``debug_mask="all"`` checks every step, which takes ten times as long, and replays the trace.
    """
    schedule = tir.Schedule(func, debug_mask=debug_mask)
    return schedule.mod["main"] if attention.schedule(schedule, machine_of(target)) else None


def shapes_of(queries, keys, heads=2, owners=2, features=6, batch=1):
    return [
        (batch, queries, heads, features), (batch, keys, owners, features),
        (batch, keys, owners, features),
    ]  # fmt: skip


CASES = {
    "whole blocks": (shapes_of(16, 8, features=8), {}),
    "tails everywhere": (shapes_of(13, 7, features=5), {}),
    "one head, tails": (shapes_of(11, 9, heads=1, owners=1), {}),
    "shared heads": (shapes_of(9, 5, heads=6, owners=2, batch=2), {"scale": 0.3}),
    "tiles that divide all": (shapes_of(20, 7), {}),
    "one vector divides": (shapes_of(12, 7), {}),
    "few heads, odd tiles": (shapes_of(14, 6, heads=1, owners=1, features=9), {}),
    "bias for all heads": ([*shapes_of(10, 7, batch=2), (2, 1, 1, 7)], {}),
    "bias for each": ([*shapes_of(8, 8, heads=3, owners=3), (1, 3, 8, 8)], {"scale": 0.5}),
    "causal": (shapes_of(12, 12), {"causal_mask": "TopLeft"}),
    "causal, more keys": (shapes_of(6, 11), {"causal_mask": "BottomRight"}),
    "window": (shapes_of(9, 9), {"causal_mask": "TopLeft", "window_size": 3}),
    "no key for some": (shapes_of(9, 3), {"causal_mask": "TopLeft", "window_size": 2}),
}


@pytest.mark.parametrize("case", CASES)
def test_results(case):
    shapes, options = CASES[case]
    func = function_of(shapes, **options)
    made = scheduled(func, debug_mask="all")
    assert made is not None
    arrays = [RNG.standard_normal(shape).astype("float32") for shape in shapes]
    out = [np.full(shapes[0], 7, "float32") for _ in range(4)]
    run(func, *arrays, out[0])
    run(made, *arrays, out[1])
    run(lower_tir()(weft.IRModule({"main": made}))["main"], *arrays, out[2])
    given = [weft.nd.array(array) for array in (*arrays, out[3])]
    weft.build(made, SMALL)["main"](*given)
    for result in (out[1], out[2], given[-1].numpy()):
        np.testing.assert_allclose(result, out[0], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("target", ["llvm", "llvm -mcpu=x86-64-v3"])
@pytest.mark.parametrize("size", [(37, 41), (64, 64)])
def test_on_this_machine(target, size):
    shapes = [*shapes_of(*size, heads=4, owners=2, features=40), (1, 1, *size)]
    func = function_of(shapes)
    arrays = [RNG.standard_normal(shape).astype("float32") for shape in shapes]
    want = np.zeros(shapes[0], "float32")
    given = [weft.nd.array(array) for array in (*arrays, want)]
    weft.build(scheduled(func, target), target)["main"](*given)
    plain = [weft.nd.array(array) for array in (*arrays, want)]
    weft.build(func, target)["main"](*plain)
    np.testing.assert_allclose(given[-1].numpy(), plain[-1].numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("target", ["llvm", "llvm -mcpu=x86-64-v3"])
def test_not_a_number_reaches_the_queries_that_see_it(target):
    shapes = shapes_of(37, 20, features=8)
    func = function_of(shapes, causal_mask="TopLeft")
    arrays = [RNG.standard_normal(shape).astype("float32") for shape in shapes]
    arrays[0][0, 3, 0, 0] = np.nan  # one query of the first head
    arrays[1][0, 18, 1, 2] = np.nan  # a key of the second head, seen from query 18 on
    given = [weft.nd.array(array) for array in (*arrays, np.zeros(shapes[0], "float32"))]
    weft.build(scheduled(func, target), target)["main"](*given)
    broken = np.isnan(given[-1].numpy()).any(-1)[0]
    assert np.flatnonzero(broken[:, 0]).tolist() == [3]
    assert np.flatnonzero(broken[:, 1]).tolist() == list(range(18, 37))


@pytest.mark.parametrize("options", [{}, {"causal_mask": "BottomRight"}], ids=["all", "causal"])
def test_symbolic_lengths(options):
    n, m = tir.Var("n", "int64"), tir.Var("m", "int64")
    func = function_of(shapes_of(n, m, heads=4), **options)
    made = scheduled(func, debug_mask="all")
    assert made is not None
    lowered = lower_tir()(weft.IRModule({"main": made}))["main"]
    for allocation in collect(lowered.body, tir.Allocate):  # of all queries, nothing
        assert n not in collect(list(allocation.extents), tir.Var)
    built = weft.build(made, SMALL)["main"]
    for queries, keys in ((1, 1), (8, 4), (13, 9)):
        shapes = shapes_of(queries, keys, heads=4)
        arrays = [RNG.standard_normal(shape).astype("float32") for shape in shapes]
        want, interpreted = np.zeros((2, *shapes[0]), "float32")
        run(func, *arrays, want)
        run(lowered, *arrays, interpreted)
        np.testing.assert_allclose(interpreted, want, rtol=1e-4, atol=1e-5)
        given = [weft.nd.array(array) for array in (*arrays, np.zeros_like(want))]
        built(*given)
        np.testing.assert_allclose(given[-1].numpy(), want, rtol=1e-4, atol=1e-5)


def test_scores_are_those_of_a_block():
    made = lower_tir()(weft.IRModule({"main": scheduled(function_of(shapes_of(64, 16)))}))["main"]
    [loop] = [loop for loop in collect(made.body, For) if loop.kind is ForKind.PARALLEL]
    sizes = [
        int(np.prod([int(extent) for extent in allocation.extents]))
        for allocation in collect(loop.body, tir.Allocate)
    ]
    assert sizes
    assert max(sizes) <= 16 * 4 * 2  # keys by two vectors of queries
    assert not [a for a in collect(made.body, tir.Allocate) if a not in collect(loop, tir.Allocate)]


def test_the_diagonal_of_a_mask_is_crossed_in_vectors():
    func = scheduled(function_of(shapes_of(16, 16, features=8), causal_mask="TopLeft"))
    made = lower_tir()(weft.IRModule({"main": func}))["main"]
    chosen = collect(made.body, tir.Select)
    assert [choice for choice in chosen if isinstance(choice.condition, tir.LE)]
    assert all(store.value.dtype.lanes > 1 for store in collect(made.body, tir.BufferStore))


def test_queries_are_transposed_in_registers():
    func = scheduled(function_of(shapes_of(16, 8, features=8)))
    made = lower_tir()(weft.IRModule({"main": func}))["main"]
    assert collect(made.body, tir.Shuffle)


@pytest.mark.parametrize("length", [128, 197])
@pytest.mark.parametrize(("cpu", "register"), [("x86-64-v3", "ymm"), ("skylake-avx512", "zmm")])
def test_both_products_keep_their_tiles_in_registers(cpu, register, length):
    """Innermost loops with most multiply-adds neither spill nor move vectors."""
    target = weft.target.Target(f"llvm -mcpu={cpu} -num-cores=1")
    made = scheduled(function_of(shapes_of(length, length, features=64)), target)
    text = weft.build(weft.IRModule({"main": made}), target).get_source("asm")
    bodies = [re.split(r"\tj\w+\t", body)[0]
              for body in re.split(r"^\.LBB\w+:", text, flags=re.MULTILINE)]  # fmt: skip
    results = {body: set(re.findall(rf"vfmadd\w+\s.*%{register}(\d+)$", body, re.MULTILINE))
               for body in bodies}  # fmt: skip
    products = [body for body in bodies if len(results[body]) >= 8]
    assert len(products) >= 2
    for body in products:
        assert len(results[body]) == body.count("vfmadd")  # one step each: all accumulate
        assert not re.search(r"\(%rsp\).*%[xyz]mm|%[xyz]mm\d+, -?\d*\(%rsp", body)


def test_trace_can_be_replayed():
    func = function_of(shapes_of(13, 7))
    schedule = tir.Schedule(func, debug_mask="none")
    assert attention.schedule(schedule, machine_of(SMALL))
    again = tir.Schedule(func, debug_mask="none")
    schedule.trace.apply_to_schedule(again, remove_postproc=False)
    weft.ir.assert_structural_equal(again.mod, schedule.mod)


@pytest.mark.parametrize(
    "shapes",
    [shapes_of(1, 8), shapes_of(0, 8), shapes_of(8, 0), shapes_of(9, 1),
     shapes_of(5, 6, features=1)],
    ids=["one query", "no query", "no key", "one key", "one feature"],
)  # fmt: skip
def test_others_keep_their_results(shapes):
    func = function_of(shapes)
    made = default.schedule(tir.Schedule(func), machine_of(SMALL), ()).mod["main"]
    arrays = [RNG.standard_normal(shape).astype("float32") for shape in shapes]
    want = np.full(shapes[0], 7, "float32")
    run(func, *arrays, want)
    given = [weft.nd.array(array) for array in (*arrays, np.zeros_like(want))]
    weft.build(made, SMALL)["main"](*given)
    np.testing.assert_allclose(given[-1].numpy(), want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "make",
    [
        relax.op.nn.softmax,
        lambda x: relax.op.nn.adaptive_avg_pool2d(relax.op.reshape(x, (1, 1, 4, 8)), (4, 3)),
    ],
    ids=["softmax", "a pool whose windows differ, a loop in its block"],
)
def test_other_functions_are_left_alone(make):
    x = relax.Var("x", relax.TensorStructInfo((4, 8), "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        builder.emit_func_output(builder.emit(make(x)))
    mod = relax.transform.LegalizeOps()(builder.get())
    funcs = [func for func in mod.functions.values() if isinstance(func, tir.PrimFunc)]
    assert [scheduled(func) for func in funcs] == [None] * len(funcs)
