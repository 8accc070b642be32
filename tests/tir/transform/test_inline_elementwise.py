"""InlineElementwise: which blocks go, which stay, and that programs compute what they did."""

from __future__ import annotations

import random

import numpy as np
import pytest

import weft
from weft import te, tir
from weft.ir.functor import collect
from weft.tir.interp import run
from weft.tir.stmt import Block
from weft.tir.transform.inline_elementwise import InlineElementwise

SHAPE = (4, 4)


def inlined(*tensors):
    """The function that computes the last tensor of the others, after the pass."""
    func = te.create_prim_func(tensors)
    return InlineElementwise()(weft.IRModule({"main": func}))["main"]


def blocks(func):
    return [block.name_hint for block in collect(func.body, Block) if block.name_hint != "root"]


@pytest.fixture
def x():
    return te.placeholder(SHAPE, name="X")


def elementwise(name, function, *sources):
    return te.compute(SHAPE, lambda i, j: function(*[source[i, j] for source in sources]), name)


def test_a_chain_becomes_its_last_block(x):
    s = te.placeholder((4,), name="S")
    divided = te.compute(SHAPE, lambda i, j: x[i, j] / s[j], "divided")
    rounded = elementwise("rounded", tir.round, divided)
    limited = elementwise("limited", lambda a: tir.max(a, tir.const(0, "float32")), rounded)
    func = inlined(x, s, limited)
    assert blocks(func) == ["limited"]
    [block] = [item for item in collect(func.body, Block) if item.name_hint == "limited"]
    assert [region.buffer.name for region in block.reads] == ["X", "S"]
    root = func.body.block
    assert list(root.alloc_buffers) == []


def test_what_a_block_reads_twice_is_computed_once(x):
    root = elementwise("root_of", tir.sqrt, x)
    square = elementwise("square", lambda a: a * a, root)
    func = inlined(x, square)
    assert blocks(func) == ["square"]
    assert len(collect(func.body, tir.Call)) == 1  # one object, in two places


@pytest.mark.parametrize("count", [10, 40])
def test_a_chain_of_squares_does_not_double_for_ever(x, count):
    tensor = x
    for step in range(count):
        tensor = elementwise(f"step{step}", lambda a: a * a + 1.0, tensor)
    left = blocks(inlined(x, tensor))
    assert 1 < len(left) < count / 4


def test_what_two_blocks_read_stays(x):
    shared = elementwise("shared", tir.exp, x)
    largest = te.reduce_axis((0, 4), "k")
    total = te.compute((4,), lambda i: te.sum(shared[i, largest], axis=largest), "total")
    share = te.compute(SHAPE, lambda i, j: shared[i, j] / total[i], "share")
    assert blocks(inlined(x, share)) == ["shared", "total", "share"]


@pytest.mark.parametrize(
    "index",
    [
        lambda i, j: (j, i),
        lambda i, j: (i, 0),
        lambda i, j: (i, i),
        lambda i, j: (3 - i, j),
    ],
    ids=["transposed", "repeated", "diagonal", "reversed"],
)
def test_elements_read_at_other_indices_stay(x, index):
    before = elementwise("before", lambda a: a + 1.0, x)
    moved = te.compute(SHAPE, lambda i, j: before[index(i, j)], "moved")
    assert blocks(inlined(x, moved)) == ["before", "moved"]


def test_elements_may_come_from_other_places(x):
    """A transpose before is a transposed load after; which loop is outermost is left open."""
    moved = te.compute(SHAPE, lambda i, j: x[j, i], "moved")
    after = elementwise("after", lambda a: a + 1.0, moved)
    assert blocks(inlined(x, after)) == ["after"]


def test_elements_at_computed_places_stay(x):
    before = te.compute(SHAPE, lambda i, j: x[3 - i, j], "before")
    after = elementwise("after", lambda a: a + 1.0, before)
    assert blocks(inlined(x, after)) == ["before", "after"]


def test_results_stay(x):
    first = elementwise("first", lambda a: a + 1.0, x)
    second = elementwise("second", lambda a: a * 2.0, first)
    assert blocks(inlined(x, first, second)) == ["first", "second"]


def test_a_call_with_an_effect_stays(x):
    drawn = elementwise("drawn", lambda a: tir.call_extern("float32", "draw", a), x)
    after = elementwise("after", lambda a: a + 1.0, drawn)
    assert blocks(inlined(x, after)) == ["drawn", "after"]


def test_a_let_stays(x):
    y = tir.Var("y", "float32")
    bound = elementwise("bound", lambda a: tir.Let(y, a + 1.0, y * y), x)
    after = elementwise("after", lambda a: a + 1.0, bound)
    assert blocks(inlined(x, after)) == ["bound", "after"]


def test_programs_as_written_stay(x):
    first = elementwise("first", lambda a: a + 1.0, x)
    func = te.create_prim_func([x, elementwise("second", lambda a: a * 2.0, first)])
    written = tir.PrimFunc(func.params, func.body, buffer_map=func.buffer_map)
    mod = weft.IRModule({"main": written})
    assert InlineElementwise()(mod)["main"] is mod["main"]


def random_tensors(seed):
    """Inputs and a result of some blocks: element-wise, moved, broadcast, summed."""
    choose = random.Random(seed)
    x, y = te.placeholder(SHAPE, name="X"), te.placeholder((4,), name="Y")
    known = [x]

    def compute(step, a, b):
        k = te.reduce_axis((0, 4), "k")
        forms = (
            lambda i, j: a[i, j] + b[i, j],
            lambda i, j: tir.max(a[i, j], -a[i, j]) + y[j],
            lambda i, j: a[i, j] * y[j] + a[i, j],
            lambda i, j: tir.if_then_else(i < 2, a[i, j], b[i, j]),
            lambda i, j: a[j, i],
            lambda i, j: te.sum(a[i, k] * y[k], axis=k),
        )
        form = choose.choices(forms, [4, 4, 4, 3, 1, 1])[0]
        return te.compute(SHAPE, form, f"step{step}")

    for step in range(choose.randint(3, 9)):
        known.append(compute(step, choose.choice(known[-3:]), choose.choice(known)))
    return x, y, known[-1]


@pytest.mark.parametrize("seed", range(40))
def test_random_programs_compute_what_they_did(seed):
    tensors = random_tensors(seed)
    func = te.create_prim_func(tensors)
    after = InlineElementwise()(weft.IRModule({"main": func}))["main"]
    data = np.random.default_rng(seed)
    given = [data.integers(-3, 4, shape).astype("float32") for shape in (SHAPE, (4,))]
    results = []
    for program in (func, after):
        results.append(np.zeros(SHAPE, "float32"))
        run(program, *given, results[-1])
    np.testing.assert_array_equal(results[0], results[1])
    assert len(blocks(after)) <= len(blocks(func))


def test_random_programs_lose_blocks():
    """The generator makes what the pass is for."""
    functions = [te.create_prim_func(random_tensors(seed)) for seed in range(40)]
    fewer = [
        len(blocks(InlineElementwise()(weft.IRModule({"main": func}))["main"])) < len(blocks(func))
        for func in functions
    ]
    assert sum(fewer) > 20
