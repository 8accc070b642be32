"""Extents that share their parts are printed in as many lines as there are parts."""

from __future__ import annotations

import pytest

from weft.ir.expr import IntImm
from weft.ir.structural import structural_equal
from weft.script.parser.entry import from_source
from weft.tir.buffer import decl_buffer
from weft.tir.expr import Var
from weft.tir.function import PrimFunc
from weft.tir.stmt import Allocate, Block, BlockRealize, BufferStore, DeclBuffer, Evaluate


def squared(var, times):
    """``n`` → ``n * n + 1`` → ``(n * n + 1) * (n * n + 1) + 1``: two places for each object."""
    for _ in range(times):
        var = var * var + 1
    return var


def argument(extent, data):
    return Evaluate(0), {"b": decl_buffer((extent, extent + 1), "float32", "B")}


def allocated_in_a_block(extent, data):
    buffer = decl_buffer((extent,), "float32", "B")
    block = Block([], [], [], "root", BufferStore(buffer, 1.0, [0]), alloc_buffers=[buffer])
    return BlockRealize([], IntImm("bool", 1), block), {}


def allocated(extent, data):
    pointer = decl_buffer((extent,), "float32", "B").data
    return Allocate(pointer, "float32", [extent], IntImm("bool", 1), Evaluate(0)), {}


def declared(extent, data):
    return DeclBuffer(decl_buffer((extent,), "float32", "B", data=data), Evaluate(0)), {}


def strided(extent, data):
    return Evaluate(0), {"b": decl_buffer((4, 4), "float32", "B", strides=[extent, 1])}


def function(kind, times):
    n, handles = Var("n", "int64"), {name: Var(name, "handle") for name in "ab"}
    first = decl_buffer((n,), "float32", "A")
    body, more = kind(squared(n, times), first.data)
    buffers = {handles["a"]: first, **{handles[name]: buffer for name, buffer in more.items()}}
    return PrimFunc(list(buffers), body, buffer_map=buffers)


@pytest.mark.parametrize("kind", [argument, allocated_in_a_block, allocated, declared, strided])
def test_the_text_grows_with_the_number_of_objects(kind):
    sizes = [len(function(kind, times).script()) for times in (20, 40, 60)]
    assert sizes[2] - sizes[1] <= 1.1 * (sizes[1] - sizes[0])
    assert sizes[2] < 6000


@pytest.mark.parametrize("kind", [argument, allocated_in_a_block, allocated, declared, strided])
@pytest.mark.parametrize("times", [1, 9])
def test_the_text_gives_the_same_function(kind, times):
    before = function(kind, times)
    after = from_source(before.script(), check_well_formed=False)
    assert structural_equal(before, after)


def test_arguments_in_any_order_share_names():
    n, a, b = Var("n", "int64"), Var("a", "handle"), Var("b", "handle")
    wide = decl_buffer((squared(n, 12), n), "float32", "B")
    before = PrimFunc(
        [b, a], Evaluate(0), buffer_map={b: wide, a: decl_buffer((n,), "float32", "A")}
    )
    text = before.script()
    assert len(text) < 1200
    assert structural_equal(before, from_source(text))
