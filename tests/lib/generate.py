"""Random PrimFuncs: programs that are legal by construction, for testing one executor against
another.

``random_prim_func(seed)`` returns a function and its arguments. A program is a few stages; each
fills one new buffer from earlier ones: elementwise (permuted, shifted, wrapped or gathered indices,
predicates, branches, lets, asserts), a reduction, a serial scan, a while loop, nested blocks, a
temporary inside a loop, a matched region, vector statements, vectorised, unrolled or parallel
loops. Between stages views of earlier buffers are declared. Shapes may be symbolic, parameters
scalars. The same seed gives the same program in every process.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.lib.random_values import ValueGenerator
from weft.ir.expr import IntImm, PrimExpr, Range, StringImm
from weft.ir.node import expect
from weft.support.dtype import DataType
from weft.tir import op
from weft.tir.buffer import Buffer, BufferLoad, BufferRegion, decl_buffer
from weft.tir.expr import Broadcast, IterType, IterVar, Ramp, Var
from weft.tir.function import PrimFunc
from weft.tir.intrinsic import assume, ret
from weft.tir.stmt import (
    AssertStmt,
    Block,
    BlockRealize,
    BufferStore,
    DeclBuffer,
    Evaluate,
    For,
    ForKind,
    IfThenElse,
    LetStmt,
    MatchBufferRegion,
    Stmt,
    While,
    seq,
)

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
FLOATS = ("float32", "float64", "float16", "bfloat16")
STAGES = (
    "map", "map", "map", "reduce", "reduce", "scan", "kinds", "kinds", "while", "nested",
    "temporary", "matched", "vector",
)  # fmt: skip
TRUE = IntImm(DataType("bool"), 1)


@dataclass
class RandomProgram:
    """A function, its arguments (outputs are zero), which of them it writes, how many stages."""

    func: PrimFunc
    arguments: list[Any]
    outputs: tuple[int, ...]
    seed: int
    stages: int = 1

    def copy_arguments(self) -> list[Any]:
        """Fresh arguments."""
        return [a.copy() if isinstance(a, np.ndarray) else a for a in self.arguments]


class ProgramGenerator(ValueGenerator):
    """Draws a program; stages not in ``keep`` become zero inputs (for shrinking)."""

    keep: frozenset[int] | None = None
    symbol: Var | None = None
    partial = False

    def program(self) -> RandomProgram:
        """A whole function."""
        pick = self.random
        if pick.random() < 0.3:
            self.symbol = Var("n", pick.choice(("int32", "int64")))
            self.sizes[id(self.symbol)] = pick.randint(1, 6)
        inputs = [self.buffer("a", index == 0) for index in range(pick.randint(1, 3))]
        if pick.random() < 0.3:
            self.scalars.append(Var(self.name("p"), pick.choice(("int32", "int64", "float32"))))
        self.sources = list(inputs)
        pieces: list[Stmt | Buffer] = []
        outputs: list[Buffer] = []
        temporaries: list[Buffer] = []
        count = pick.randint(1, 3)
        for index in range(count):
            self.view_of_source(pieces)
            target, stmt = self.stage(index == count - 1)
            wanted = self.keep is None or index in self.keep
            temporary = index < count - 1 and pick.random() < 0.6 and not self.partial
            (temporaries if temporary and wanted else outputs).append(target)
            if wanted:
                pieces.append(stmt)
            if 0 not in self.shape(target):
                self.sources.append(target)
        self.result(pieces)
        root = Block((), (), (), "root", _nested(pieces), None, temporaries)
        body = BlockRealize((), TRUE, root)
        params = [*inputs, *self.scalars, *outputs]
        func = PrimFunc(params, body, attrs={"global_symbol": "main"})
        arguments: list[Any] = [self.data(buffer) for buffer in inputs]
        arguments += [3.5 if var.dtype.is_float else pick.randint(0, 9) for var in self.scalars]
        first = len(arguments)
        arguments += [np.zeros(self.shape(buffer), buffer.dtype.numpy) for buffer in outputs]
        written = tuple(range(first, first + len(outputs)))
        return RandomProgram(func, arguments, written, self.seed, count)

    def result(self, pieces: list[Stmt | Buffer]) -> None:
        """Perhaps a returned value at the end."""
        if self.random.random() > 0.1:
            return
        dtype = DataType(self.random.choice(("int32", "int64", "float32")))
        value = self.value(dtype, [], 1)
        if self.keep is None:
            pieces.append(Evaluate(ret(value)))

    def shape(self, buffer: Buffer) -> tuple[int, ...]:
        """The extents that the arguments have."""
        return tuple(self.size(extent) for extent in buffer.shape)

    def buffer(self, stem: str, symbolic: bool = False, empty: bool = False) -> Buffer:
        """A buffer of a random type and small shape; with ``symbolic`` it defines the symbol."""
        pick = self.random
        kind = pick.choice(("int32", "int32", "int64"))
        shape: list[Any] = []
        for _ in range(pick.randint(0, 3)):
            extent = op.const(pick.randint(0 if empty else 1, 6), kind)
            shape.append(self.symbol if self.symbol is not None and pick.random() < 0.4 else extent)
        if symbolic and self.symbol is not None:
            shape = [self.symbol, *shape[:2]]
        return decl_buffer(shape, pick.choice(self.dtypes), self.name(stem))

    def data(self, buffer: Buffer) -> np.ndarray:
        """Values for an input: small ones mostly, sometimes the ends of the type's range."""
        generator = np.random.default_rng(self.random.randrange(1 << 30))
        dtype, shape = buffer.dtype, self.shape(buffer)
        if dtype.is_float:
            values = np.asarray(generator.standard_normal(shape) * 4)
            odd = generator.choice(np.array([np.nan, np.inf, -np.inf, 0.0, 1e30]), shape)
            with np.errstate(over="ignore"):
                return np.where(generator.random(shape) < 0.05, odd, values).astype(dtype.numpy)
        if dtype.is_bool:
            return np.asarray(generator.integers(0, 2, shape)).astype("bool")
        info = np.iinfo(dtype.numpy)
        values = generator.integers(max(info.min, -9), 10, shape, dtype.numpy)
        ends = generator.choice(np.array([info.min, info.max, 0], dtype.numpy), shape)
        return np.where(generator.random(shape) < 0.1, ends, values).astype(dtype.numpy)

    def view_of_source(self, pieces: list[Stmt | Buffer]) -> None:
        """Perhaps declare a view over an earlier buffer: flattened, or transposed by strides."""
        source = self.random.choice(self.sources)
        constant = all(isinstance(extent, IntImm) for extent in source.shape)
        if self.random.random() > 0.15 or not constant or not source.shape:
            return
        sizes = self.shape(source)
        name = self.name("view")
        if len(sizes) == 2 and self.random.random() < 0.5:
            view = decl_buffer(sizes[::-1], source.dtype, name, source.data, [1, sizes[1]])
        else:
            count = int(np.prod(sizes))
            view = decl_buffer([count], source.dtype, name, source.data)
        pieces.append(view)
        self.sources.append(view)

    def stage(self, last: bool) -> tuple[Buffer, Stmt]:
        """One stage: a new buffer and the statement that fills it."""
        kind = self.random.choice(STAGES)
        self.partial = False
        target = self.buffer("b", empty=last and self.random.random() < 0.1)
        return target, getattr(self, f"stage_{kind}")(target)

    def axes(self, target: Buffer) -> tuple[list[Var], list[IterVar]]:
        """Loop variables and block axes over a buffer's shape."""
        loops = [Var(self.name("i"), extent.dtype) for extent in target.shape]
        axes = [
            IterVar(Range(op.const(0, extent.dtype), extent), Var(self.name("v"), extent.dtype),
                    IterType.DataPar)
            for extent in target.shape
        ]  # fmt: skip
        return loops, axes

    def stage_map(self, target: Buffer, kinds: tuple[ForKind, ...] = ()) -> Stmt:
        """target[axes] = expression, perhaps under a predicate or a branch."""
        loops, axes = self.axes(target)
        store = self.store(target, [axis.var for axis in axes])
        predicate: PrimExpr = TRUE
        if self.random.random() < 0.15 and loops:
            predicate, self.partial = self.condition(loops), True
        block = Block(axes, (), (), self.name("block"), store)
        return self.nest(loops, target, BlockRealize(loops, predicate, block), kinds)

    def store(self, target: Buffer, variables: list[Var], indices: Any = None) -> Stmt:
        """target[variables] = expression: plain, in a branch, with a let, after an assertion."""
        pick = self.random
        where = variables if indices is None else indices
        store: Stmt = BufferStore(target, self.value(target.dtype, variables, 3), where)
        style = pick.random()
        if style < 0.2 and variables:
            other = BufferStore(target, self.value(target.dtype, variables, 1), where)
            return IfThenElse(self.condition(variables), store, other)
        if style < 0.35:
            bound = Var(self.name("t"), pick.choice(self.dtypes))
            value = op.cast(target.dtype, bound) + self.value(target.dtype, variables, 1)
            inner = BufferStore(target, value, where)
            return LetStmt(bound, self.value(bound.dtype, variables, 2), inner)
        if style < 0.4 and variables:
            fact = variables[0] >= 0
            if pick.random() < 0.5:
                return seq(Evaluate(assume(fact)), store)
            return AssertStmt(fact, StringImm("negative"), store)
        return store

    def stage_kinds(self, target: Buffer) -> Stmt:
        """A map whose loops are vectorised, unrolled or parallel."""
        kinds = (ForKind.SERIAL, ForKind.PARALLEL, ForKind.UNROLLED, ForKind.VECTORIZED)
        return self.stage_map(target, tuple([self.random.choice(kinds) for _ in target.shape]))

    def nest(
        self, loops: list[Var], target: Buffer, body: Stmt, kinds: tuple[ForKind, ...] = ()
    ) -> Stmt:
        """Loops around a body, over the buffer's shape."""
        for axis in reversed(range(len(loops))):
            kind = kinds[axis] if kinds else ForKind.SERIAL
            body = For(loops[axis], op.const(0, loops[axis].dtype), target.shape[axis], kind, body)
        return body

    def stage_reduce(self, target: Buffer) -> Stmt:
        """A reduction with init: sum, minimum or maximum."""
        pick = self.random
        loops, axes = self.axes(target)
        extents = [pick.randint(1, 5) for _ in range(pick.randint(1, 2))]
        outer = [axis.var for axis in axes]
        inner_loops = [Var(self.name("k"), "int32") for _ in extents]
        inner = [
            IterVar(Range(0, extent), Var(self.name("r"), "int32"), IterType.CommReduce)
            for extent in extents
        ]
        source = self.value(target.dtype, [*outer, *[axis.var for axis in inner]], 2)
        choices = [
            (op.minimum, op.max_value(target.dtype)), (op.maximum, op.min_value(target.dtype)),
            (op.logical_or if target.dtype.is_bool else op.add, op.const(0, target.dtype)),
        ]  # fmt: skip
        combine, identity = pick.choice(choices)
        update = BufferStore(target, combine(BufferLoad(target, outer), source), outer)
        init = BufferStore(target, identity, outer)
        block = Block([*axes, *inner], (), (), self.name("block"), update, init)
        body: Stmt = BlockRealize([*loops, *inner_loops], TRUE, block)
        for loop, extent in reversed(list(zip(inner_loops, extents, strict=True))):
            body = For(loop, 0, extent, ForKind.SERIAL, body)
        return self.nest(loops, target, body)

    def opaque(self, body: Stmt, allocated: tuple[Buffer, ...] = (), matched: Any = ()) -> Stmt:
        """A block without axes."""
        block = Block((), (), (), self.name("opaque"), body, None, allocated, matched)
        return BlockRealize((), TRUE, block)

    def stage_scan(self, target: Buffer) -> Stmt:
        """A serial loop outside of blocks' axes: each element depends on the one before it."""
        loops = self.axes(target)[0]
        value = self.value(target.dtype, loops, 2)
        store: Stmt = BufferStore(target, value, loops)
        if loops:
            last = loops[-1]
            before = BufferLoad(target, [*loops[:-1], last - 1])
            value = self.value(target.dtype, loops, 2)
            joined = op.logical_or(value, before) if target.dtype.is_bool else value + before
            store = IfThenElse(last > 0, BufferStore(target, joined, loops), store)
        return self.opaque(self.nest(loops, target, store))

    def stage_while(self, target: Buffer) -> Stmt:
        """The last dimension is walked by a while loop with its counter in a buffer."""
        if not target.shape:
            return self.stage_map(target)
        loops = self.axes(target)[0]
        counter = decl_buffer([1], loops[-1].dtype, self.name("counter"))
        zero = op.const(0, "int32")
        count = BufferLoad(counter, [zero])
        position = Var(self.name("p"), loops[-1].dtype)
        store = self.store(target, [*loops[:-1], position])
        step = seq(LetStmt(position, count, store), BufferStore(counter, count + 1, [zero]))
        walk = seq(
            BufferStore(counter, op.const(0, counter.dtype), [zero]),
            While(count < op.cast(count.dtype, target.shape[-1]), step),
        )
        body = self.opaque(walk, (counter,))
        return self.opaque(self.nest(loops[:-1], target, body))

    def stage_nested(self, target: Buffer) -> Stmt:
        """A block over the first dimension that holds a nest of blocks over the others."""
        if len(target.shape) < 2:
            return self.stage_map(target)
        loops, axes = self.axes(target)
        variables = [axis.var for axis in axes]
        inner = Block(axes[1:], (), (), self.name("inner"), self.store(target, variables))
        body: Stmt = BlockRealize(loops[1:], TRUE, inner)
        for axis in reversed(range(1, len(loops))):
            low = op.const(0, loops[axis].dtype)
            body = For(loops[axis], low, target.shape[axis], ForKind.SERIAL, body)
        outer = BlockRealize(loops[:1], TRUE, Block(axes[:1], (), (), self.name("outer"), body))
        kind = self.random.choice((ForKind.SERIAL, ForKind.PARALLEL))
        return For(loops[0], op.const(0, loops[0].dtype), target.shape[0], kind, outer)

    def stage_temporary(self, target: Buffer) -> Stmt:
        """A row computed into memory allocated inside the loop, then used."""
        if not target.shape or 0 in self.shape(target):
            return self.stage_map(target)
        loops = self.axes(target)[0]
        extent = target.shape[-1]
        again = Var(self.name("j"), extent.dtype)
        row = decl_buffer([extent], self.random.choice(self.dtypes), self.name("row"))
        zero = op.const(0, extent.dtype)
        store = self.store(row, [*loops[:-1], again], [again])
        fill = For(again, zero, extent, ForKind.SERIAL, store)
        wrapped = op.floormod(loops[-1] + self.random.randint(0, 2), extent)
        value = op.cast(target.dtype, BufferLoad(row, [wrapped]))
        use = For(loops[-1], zero, extent, ForKind.SERIAL, BufferStore(target, value, loops))
        body = self.opaque(seq(fill, use), (row,))
        kinds = (ForKind.SERIAL, ForKind.PARALLEL, ForKind.UNROLLED)
        chosen = tuple([self.random.choice(kinds) for _ in loops[:-1]])
        return self.opaque(self.nest(loops[:-1], target, body, chosen))

    def stage_matched(self, target: Buffer) -> Stmt:
        """Rows of the target written through ``match_buffer``, strides and offset symbolic."""
        if not target.shape:
            return self.stage_map(target)
        loops = self.axes(target)[0]
        extent = target.shape[-1]
        strides, offset = None, None
        if self.random.random() < 0.5:
            strides = [Var(self.name("s"), extent.dtype)]
            offset = Var(self.name("o"), extent.dtype)
        row = decl_buffer([extent], target.dtype, self.name("row"), None, strides, offset,
                          offset_factor=1)  # fmt: skip
        one, zero = op.const(1, extent.dtype), op.const(0, extent.dtype)
        region = [Range.from_min_extent(var, op.const(1, var.dtype)) for var in loops[:-1]]
        region.append(Range.from_min_extent(zero, extent))
        match = MatchBufferRegion(row, BufferRegion(target, region))
        store = self.store(row, loops, [loops[-1] * one])
        inner = For(loops[-1], zero, extent, ForKind.SERIAL, store)
        return self.opaque(self.nest(loops[:-1], target, self.opaque(inner, (), (match,))))

    def stage_vector(self, target: Buffer) -> Stmt:
        """The last dimension, 4 lanes at a time, by Ramp loads and stores."""
        target.shape = type(target.shape)([*target.shape[:-1], op.const(8, "int32")])  # unused yet
        loops = self.axes(target)[0]
        ramp = Ramp(loops[-1] * 4, op.const(1, "int32"), 4)
        value = self.vector(target.dtype, loops, 2)
        store = BufferStore(target, value, [*loops[:-1], ramp])
        body: Stmt = For(loops[-1], 0, 2, ForKind.SERIAL, store)
        return self.opaque(self.nest(loops[:-1], target, body))

    def vector(self, dtype: DataType, variables: list[Var], depth: int) -> PrimExpr:
        """A value of four lanes."""
        pick = self.random
        if depth == 0 or pick.random() < 0.2:
            long = [b for b in self.sources if b.shape and isinstance(b.shape[-1], IntImm)
                    and b.shape[-1].value >= 4]  # fmt: skip
            if long and pick.random() < 0.7:
                source = pick.choice(long)
                lead = [self.index(extent, variables) for extent in source.shape[:-1]]
                last = source.shape[-1]
                start = op.const(pick.randint(0, int(expect(last, IntImm)) - 4), last.dtype)
                loaded = BufferLoad(source, [*lead, Ramp(start, op.const(1, last.dtype), 4)])
                return op.cast(dtype.with_lanes(4), loaded)
            return Broadcast(self.value(dtype, variables, 1), 4)
        a, b = [self.vector(dtype, variables, depth - 1) for _ in range(2)]
        if dtype.is_bool:
            return op.logical_and(a, b)
        if pick.random() < 0.2:
            yes, no = [self.vector(dtype, variables, 0) for _ in range(2)]
            return op.select(a < b, yes, no)
        if dtype.is_integral and pick.random() < 0.2:
            return op.floordiv(a, op.maximum(b, Broadcast(op.const(1, dtype), 4)))
        return pick.choice((op.add, op.subtract, op.multiply, op.minimum, op.maximum))(a, b)


def _nested(pieces: list[Stmt | Buffer]) -> Stmt:
    """The pieces in a row; a buffer among them is declared around what follows it."""
    rest: list[Stmt] = []
    for piece in reversed(pieces):
        if isinstance(piece, Buffer):
            rest = [DeclBuffer(piece, seq(*rest) if rest else Evaluate(0))]
        else:
            rest.insert(0, piece)
    return seq(*rest) if rest else Evaluate(0)


def random_prim_func(
    seed: int,
    dtypes: tuple[str, ...] = (*INTEGERS, *FLOATS, "bool"),
    intrinsics: bool = True,
    *,
    faults: bool = False,
    keep: frozenset[int] | None = None,
) -> RandomProgram:
    """The program of a seed, over the given element types.

    ``intrinsics`` allows functions whose results differ by rounding; ``faults`` divisors that may
    be zero; ``keep`` only some of the stages.
    """
    generator = ProgramGenerator(seed, dtypes, intrinsics, faults)
    generator.keep = keep
    return generator.program()
