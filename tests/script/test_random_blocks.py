"""Random programs of blocks, buffers and regions: what is printed comes back, and prints alike."""

from __future__ import annotations

import random

import pytest

from weft.ir.expr import IntImm, Range
from weft.ir.structural import structural_equal
from weft.script import from_source
from weft.tir import expr as nodes
from weft.tir import stmt as S
from weft.tir.buffer import BufferLoad, BufferRegion, decl_buffer
from weft.tir.function import PrimFunc

TRUE = IntImm("bool", 1)
SCOPES = ("global", "shared", "local", "global")
DTYPES = ("float32", "float32", "int8", "float16", "bool", "int32")
AXIS_KINDS = (0, 0, 0, 2, 2, 3, 4)


class Programs:
    """Random nests of loops and blocks with their buffers."""

    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.sizes = [nodes.Var(name, "int32") for name in ("n", "m")]
        self.count = 0
        self.buffers = [self.buffer(f"P{k}", simple=True) for k in range(2)]
        self.indices = [IntImm("int32", 1)]

    def extent(self):
        return self.rng.choice([4, 8, 16, self.sizes[0], self.sizes[1], self.sizes[0] + 1])

    def buffer(self, name, simple=False):
        rng = self.rng
        shape = tuple(rng.choice([4, 8, 16]) if simple else self.extent()
                      for _ in range(rng.randrange(1, 4)))  # fmt: skip
        options = {}
        if not simple and rng.random() < 0.3:
            options["data_alignment"] = rng.choice([16, 128])
        if not simple and rng.random() < 0.3:
            options["scope"] = rng.choice(SCOPES)
        if not simple and rng.random() < 0.2:
            options["axis_separators"] = [rng.randrange(len(shape) + 1)]
        return decl_buffer(shape, rng.choice(DTYPES), name, **options)

    def index(self):
        base = self.rng.choice(self.indices)
        return self.rng.choice([base, base, base + 1, base * 2, IntImm("int32", 0)])

    def region(self, buffer):
        bounds = []
        for size in buffer.shape:
            begin = self.index()
            bounds.append(self.rng.choice([
                Range.from_min_extent(0, size), Range.from_min_extent(begin, 1),
                Range.from_min_extent(begin, 4), Range.from_min_extent(begin, self.sizes[0]),
            ]))  # fmt: skip
        return BufferRegion(buffer, bounds)

    def load(self, buffer):
        return BufferLoad(buffer, [self.index() for _ in buffer.shape])

    def store(self):
        target, source = self.rng.choice(self.buffers), self.rng.choice(self.buffers)
        value = nodes.Cast(target.dtype, self.load(source))
        return S.BufferStore(target, value if target.dtype != source.dtype else value.value,
                             [self.index() for _ in target.shape])  # fmt: skip

    def block(self, depth):
        rng = self.rng
        self.count += 1
        loops, before = list(self.indices), list(self.buffers)
        axes, values = [], []
        for number in range(rng.randrange(4)):
            loop = rng.choice(loops)
            extent = rng.choice([8, 16, self.sizes[0]])
            dtype = rng.choice(["int32", "int32", "int32", "int64"])
            first = rng.choice([0, 0, 2])
            axes.append(
                nodes.IterVar(
                    Range.from_min_extent(first, extent),
                    nodes.Var(f"v{number}", dtype),
                    rng.choice(AXIS_KINDS),
                )
            )
            values.append(rng.choice([loop, loop, loop + first]))  # fmt: skip
        self.indices = [axis.var for axis in axes if axis.var.dtype == "int32"] or loops
        allocated = [self.buffer(f"B{self.count}_{k}") for k in range(rng.randrange(2))]
        matches = []
        if rng.random() < 0.3:
            source = self.region(rng.choice(self.buffers))
            shape = [item.extent for item in source.region]
            view = decl_buffer(shape, source.buffer.dtype, f"M{self.count}", offset_factor=1,
                               scope=source.buffer.scope())  # fmt: skip
            matches.append(S.MatchBufferRegion(view, source))
        self.buffers += [*allocated, *[match.buffer for match in matches]]
        reads = [self.region(rng.choice(before)) for _ in range(rng.randrange(3))]
        writes = [self.region(rng.choice(before)) for _ in range(rng.randrange(2))]
        notes = {"hint": rng.choice([1, "x", [1, 2]])} if rng.random() < 0.3 else {}
        init = self.store() if rng.random() < 0.3 else None
        block = S.Block(axes, reads, writes, f"b{self.count}", self.body(depth), init, allocated,
                        matches, notes)  # fmt: skip
        predicate = self.index() < 3 if rng.random() < 0.3 else TRUE
        self.indices, self.buffers = loops, before
        if predicate is not TRUE:
            predicate = rng.choice(loops) < 3
        return S.BlockRealize(values, predicate, block)

    def body(self, depth):
        rng = self.rng
        if depth == 0:
            return self.store()
        kind = rng.choice(["loop", "loop", "loop", "block", "block", "seq", "if", "memory"])
        if kind == "loop":
            return self.loop(depth)
        if kind == "block":
            return self.block(depth - 1)
        if kind == "seq":
            return S.seq(self.body(depth - 1), self.store(), self.body(depth - 1))
        if kind == "if":
            other = self.body(depth - 1) if rng.random() < 0.5 else None
            return S.IfThenElse(self.index() < 4, self.body(depth - 1), other)
        return self.memory(depth)

    def loop(self, depth):
        rng = self.rng
        var = nodes.Var(rng.choice("ijk"), "int32")
        extent = self.extent()
        before, self.indices = self.indices, [*self.indices, var]
        body = self.body(depth - 1)
        self.indices = before
        kind = rng.choice([S.ForKind.SERIAL, S.ForKind.SERIAL, S.ForKind.PARALLEL,
                           S.ForKind.UNROLLED])  # fmt: skip
        notes = {"pragma": 1} if rng.random() < 0.2 else {}
        return S.For(var, rng.choice([0, 0, 0, 2]), extent, kind, body, None, notes)

    def memory(self, depth):
        self.count += 1
        buffer = self.buffer(f"D{self.count}", simple=True)
        self.buffers.append(buffer)
        body = self.body(depth - 1)
        self.buffers.pop()
        declared = S.DeclBuffer(buffer, body)
        extents = list(buffer.shape) if self.rng.random() < 0.7 else [64]
        return S.Allocate(buffer.data, buffer.dtype, extents, TRUE, declared)

    def function(self):
        handles = {nodes.Var(f"h{k}", "handle"): buffer for k, buffer in enumerate(self.buffers)}
        body = self.body(self.rng.randrange(1, 6))
        attrs = {"global_symbol": "main"} if self.rng.random() < 0.5 else {"note": 1}
        return PrimFunc([*handles, *self.sizes], body, None, handles, attrs)


@pytest.mark.parametrize("begin", [0, 1000, 2000])
def test_what_is_printed_comes_back(begin):
    for seed in range(begin, begin + 40):
        func = Programs(seed).function()
        text = func.script(show_meta=True)
        back = from_source(text, check_well_formed=False)
        assert structural_equal(back, func, map_free_vars=True), f"seed {seed}:\n{text}\n{back}"
        assert back.script(show_meta=True) == text, f"seed {seed}"


@pytest.mark.parametrize("begin", [5000])
def test_without_sugar_it_comes_back_too(begin):
    for seed in range(begin, begin + 40):
        func = Programs(seed).function()
        text = func.script(show_meta=True, syntax_sugar=False)
        back = from_source(text, check_well_formed=False)
        assert structural_equal(back, func, map_free_vars=True), f"seed {seed}:\n{text}\n{back}"
