"""Random PrimFuncs: programs that are legal by construction, for testing one executor against
another.

``random_prim_func(seed)`` returns a function and its arguments. A program is a few stages; each
writes one new buffer from earlier ones: an elementwise stage (permuted, shifted, wrapped or
gathered indices, predicates, conditionals, lets), a reduction, a serial scan, or a vectorised,
unrolled or parallel copy. All types mix by casts; divisors may be zero only where ``faults`` asks
for it. The same seed gives the same program in every process.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import numpy as np

from weft.ir.expr import IntImm, PrimExpr, Range
from weft.support.dtype import DataType
from weft.tir import op
from weft.tir.buffer import Buffer, decl_buffer
from weft.tir.expr import BufferLoad, IterType, IterVar, Let, Var
from weft.tir.function import PrimFunc
from weft.tir.stmt import (
    Block,
    BlockRealize,
    BufferStore,
    For,
    ForKind,
    IfThenElse,
    LetStmt,
    Stmt,
    seq,
)

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
FLOATS = ("float32", "float64", "float16", "bfloat16")
_UNARY = ("exp", "tanh", "sigmoid", "sqrt", "floor", "ceil", "trunc", "erf", "cos", "sin")


@dataclass
class RandomProgram:
    """A function, its arguments (outputs are zero), and which of them it writes."""

    func: PrimFunc
    arguments: list[np.ndarray]
    outputs: tuple[int, ...]
    seed: int


class _Generator:
    def __init__(self, seed: int, dtypes: tuple[str, ...], intrinsics: bool) -> None:
        self.random = random.Random(seed)
        self.seed = seed
        self.dtypes = dtypes
        self.intrinsics = intrinsics
        self.sources: list[Buffer] = []
        self.serial = 0

    def name(self, stem: str) -> str:
        """A fresh name."""
        self.serial += 1
        return f"{stem}{self.serial}"

    def program(self) -> RandomProgram:
        """A whole function."""
        pick = self.random
        inputs = [self.buffer("a") for _ in range(pick.randint(1, 3))]
        self.sources = list(inputs)
        stages = pick.randint(1, 3)
        made: list[tuple[Buffer, Stmt]] = []
        for _ in range(stages):
            target, stmt = self.stage()
            made.append((target, stmt))
            self.sources.append(target)
        temporaries = [buffer for buffer, _ in made[:-1] if pick.random() < 0.6]
        outputs = [buffer for buffer, _ in made if not any(buffer is t for t in temporaries)]
        root = Block((), (), (), "root", seq(*[stmt for _, stmt in made]), None, temporaries)
        body = BlockRealize((), IntImm(DataType("bool"), 1), root)
        func = PrimFunc([*inputs, *outputs], body, attrs={"global_symbol": "main"})
        arguments = [self.data(buffer) for buffer in inputs]
        arguments += [np.zeros(_shape(buffer), buffer.dtype.numpy) for buffer in outputs]
        written = tuple(range(len(inputs), len(inputs) + len(outputs)))
        return RandomProgram(func, arguments, written, self.seed)

    def buffer(self, stem: str, shape: tuple[int, ...] | None = None) -> Buffer:
        """A buffer of a random type and small shape."""
        if shape is None:
            shape = tuple(self.random.randint(1, 6) for _ in range(self.random.randint(0, 3)))
        return decl_buffer(shape, self.random.choice(self.dtypes), self.name(stem))

    def data(self, buffer: Buffer) -> np.ndarray:
        """Values for an input: small ones mostly, sometimes the ends of the type's range."""
        generator = np.random.default_rng(self.random.randrange(1 << 30))
        dtype, shape = buffer.dtype, _shape(buffer)
        if dtype.is_float:
            return (generator.standard_normal(shape) * 4).astype(dtype.numpy)
        if dtype.is_bool:
            return generator.integers(0, 2, shape).astype("bool")
        info = np.iinfo(dtype.numpy)
        values = generator.integers(max(info.min, -9), 10, shape, dtype.numpy)
        ends = generator.choice(np.array([info.min, info.max, 0], dtype.numpy), shape)
        return np.where(generator.random(shape) < 0.1, ends, values).astype(dtype.numpy)

    def stage(self) -> tuple[Buffer, Stmt]:
        """One stage: a new buffer and the statement that fills it."""
        kind = self.random.choice(("map", "map", "map", "reduce", "reduce", "scan", "kinds"))
        target = self.buffer("b")
        return target, getattr(self, f"stage_{kind}")(target)

    def axes(self, target: Buffer, spatial: bool = True) -> tuple[list[Var], list[IterVar]]:
        """Loop variables and block axes over a buffer's shape."""
        loops = [Var(self.name("i"), extent.dtype) for extent in target.shape]
        axes = [
            IterVar(Range(0, extent), Var(self.name("v"), extent.dtype), IterType.DataPar)
            for extent in target.shape
        ]
        return loops, axes

    def stage_map(self, target: Buffer, kinds: tuple[ForKind, ...] = ()) -> Stmt:
        """target[axes] = expression, perhaps under a predicate or a branch."""
        pick = self.random
        loops, axes = self.axes(target)
        variables = [axis.var for axis in axes]
        store: Stmt = BufferStore(target, self.value(target.dtype, variables, 3), variables)
        style = pick.random()
        if style < 0.2 and variables:
            other = BufferStore(target, self.value(target.dtype, variables, 1), variables)
            store = IfThenElse(self.condition(variables), store, other)
        elif style < 0.35:
            bound = Var(self.name("t"), pick.choice(self.dtypes))
            value = op.cast(target.dtype, bound) + self.value(target.dtype, variables, 1)
            inner = BufferStore(target, value, variables)
            store = LetStmt(bound, self.value(bound.dtype, variables, 2), inner)
        predicate: PrimExpr = IntImm(DataType("bool"), 1)
        if pick.random() < 0.15 and loops:
            predicate = self.condition(loops)
        block = Block(axes, (), (), self.name("block"), store)
        return self.nest(loops, target, BlockRealize(loops, predicate, block), kinds)

    def stage_kinds(self, target: Buffer) -> Stmt:
        """A map whose loops are vectorised, unrolled or parallel."""
        choices = [ForKind.SERIAL] * len(target.shape)
        for axis in range(len(choices)):
            choices[axis] = self.random.choice(
                (ForKind.SERIAL, ForKind.PARALLEL, ForKind.UNROLLED, ForKind.VECTORIZED)
            )
        return self.stage_map(target, tuple(choices))

    def nest(
        self, loops: list[Var], target: Buffer, body: Stmt, kinds: tuple[ForKind, ...] = ()
    ) -> Stmt:
        """Loops around a body, over the buffer's shape."""
        for axis in reversed(range(len(loops))):
            kind = kinds[axis] if kinds else ForKind.SERIAL
            body = For(loops[axis], 0, target.shape[axis], kind, body)
        return body

    def stage_reduce(self, target: Buffer) -> Stmt:
        """A reduction with init: sum, product, minimum or maximum."""
        pick = self.random
        loops, axes = self.axes(target)
        extents = [pick.randint(1, 5) for _ in range(pick.randint(1, 2))]
        outer = [axis.var for axis in axes]
        inner_loops = [Var(self.name("k"), "int32") for _ in extents]
        inner = [
            IterVar(Range(0, extent), Var(self.name("r"), "int32"), IterType.CommReduce)
            for extent in extents
        ]
        variables = [*outer, *[axis.var for axis in inner]]
        self.bounds = {id(axis.var): extent for axis, extent in zip(inner, extents, strict=True)}
        source = self.value(target.dtype, variables, 2)
        current = BufferLoad(target, outer)
        combine, identity = pick.choice(
            ((op.add, op.const(0, target.dtype)), (op.minimum, op.max_value(target.dtype)),
             (op.maximum, op.min_value(target.dtype)))
        )  # fmt: skip
        block = Block(
            [*axes, *inner], (), (), self.name("block"),
            BufferStore(target, combine(current, source), outer),
            BufferStore(target, identity, outer),
        )  # fmt: skip
        body: Stmt = BlockRealize([*loops, *inner_loops], IntImm(DataType("bool"), 1), block)
        for loop, extent in reversed(list(zip(inner_loops, extents, strict=True))):
            body = For(loop, 0, extent, ForKind.SERIAL, body)
        return self.nest(loops, target, body)

    bounds: dict[int, int] = {}

    def stage_scan(self, target: Buffer) -> Stmt:
        """A serial loop outside of blocks' axes: each element depends on the one before it."""
        loops = [Var(self.name("s"), extent.dtype) for extent in target.shape]
        value = self.value(target.dtype, loops, 2)
        store: Stmt = BufferStore(target, value, loops)
        if loops:
            last = loops[-1]
            before = BufferLoad(target, [*loops[:-1], last - 1])
            chained = BufferStore(target, value + before, loops)
            store = IfThenElse(last > 0, chained, store)
        block = Block((), (), (), self.name("opaque"), self.nest(loops, target, store))
        return BlockRealize((), IntImm(DataType("bool"), 1), block)

    # Expressions.

    def value(self, dtype: DataType, variables: list[Var], depth: int) -> PrimExpr:
        """An expression of a type over variables and earlier buffers."""
        pick = self.random
        if depth <= 0 or pick.random() < 0.15:
            return self.leaf(dtype, variables)
        choice = pick.random()
        if choice < 0.5:
            return self.arithmetic(dtype, variables, depth)
        if choice < 0.62:
            other = DataType(pick.choice(self.dtypes))
            return op.cast(dtype, self.value(other, variables, depth - 1))
        if choice < 0.78:
            make = pick.choice((op.if_then_else, op.select))
            return make(
                self.condition(variables), self.value(dtype, variables, depth - 1),
                self.value(dtype, variables, depth - 1),
            )  # fmt: skip
        if choice < 0.85:
            bound = Var(self.name("t"), pick.choice(self.dtypes))
            body = op.cast(dtype, bound) + self.value(dtype, variables, depth - 1)
            return Let(bound, self.value(bound.dtype, variables, depth - 1), body)
        return self.special(dtype, variables, depth)

    def arithmetic(self, dtype: DataType, variables: list[Var], depth: int) -> PrimExpr:
        """A binary operator; divisors are made non-zero."""
        pick = self.random
        a, b = (self.value(dtype, variables, depth - 1) for _ in range(2))
        operators: list[Any] = [op.add, op.subtract, op.multiply, op.minimum, op.maximum]
        if dtype.is_bool:
            return pick.choice((op.logical_and, op.logical_or))(a, b)
        if dtype.is_integral and pick.random() < 0.3:
            divide = pick.choice((op.floordiv, op.floormod, op.truncdiv, op.truncmod))
            return divide(a, op.maximum(b, op.const(1, dtype)))
        return pick.choice(operators)(a, b)

    def special(self, dtype: DataType, variables: list[Var], depth: int) -> PrimExpr:
        """Bit operations on integers, intrinsics on floats."""
        pick = self.random
        value = self.value(dtype, variables, depth - 1)
        if dtype.is_bool:
            return op.logical_not(value)
        if dtype.is_float:
            if not self.intrinsics:
                return op.abs(value)
            name = pick.choice(_UNARY)
            if name == "sqrt":
                value = op.abs(value)
            if name == "exp":
                value = op.minimum(value, op.const(4, dtype))
            return getattr(op, name)(value)
        other = self.value(dtype, variables, depth - 1)
        return pick.choice(
            (op.bitwise_and, op.bitwise_or, op.bitwise_xor, op.shift_left, op.shift_right)
        )(value, other)

    def condition(self, variables: list[Var]) -> PrimExpr:
        """A boolean expression."""
        dtype = DataType(self.random.choice(self.dtypes))
        compare = self.random.choice((op.less, op.less_equal, op.equal, op.not_equal, op.greater))
        a, b = (self.value(dtype, variables, 1) for _ in range(2))
        return compare(a, b)

    def leaf(self, dtype: DataType, variables: list[Var]) -> PrimExpr:
        """A constant, a variable or a load."""
        pick = self.random
        choice = pick.random()
        if choice < 0.2 or (not self.sources and not variables):
            if dtype.is_float:
                return op.const(pick.choice((0.0, 1.0, -2.5, 0.125)), dtype)
            return op.const(pick.randint(0, 1 if dtype.is_bool else 7), dtype)
        if choice < 0.35 and variables:
            return op.cast(dtype, pick.choice(variables))
        return op.cast(dtype, self.load(pick.choice(self.sources), variables))

    def load(self, buffer: Buffer, variables: list[Var]) -> PrimExpr:
        """A load that stays inside the buffer: every index is wrapped or clamped."""
        return BufferLoad(buffer, [self.index(extent, variables) for extent in buffer.shape])

    def index(self, extent: PrimExpr, variables: list[Var]) -> PrimExpr:
        """An index in [0, extent): a constant, a wrapped variable, or a clamped gathered value."""
        pick = self.random
        size = extent.value  # type: ignore[attr-defined]
        if not variables or pick.random() < 0.1:
            return op.const(pick.randrange(size), extent.dtype)
        base: PrimExpr = pick.choice(variables)
        style = pick.random()
        if style < 0.3:
            base = base + pick.randint(0, 3)
        elif style < 0.4:
            base = op.const(size - 1, base.dtype) - base
            return op.maximum(op.minimum(base, size - 1), 0)
        elif style < 0.5 and self.sources:
            scalars = [b for b in self.sources if b.dtype in ("int32", "int64", "uint8", "int8")]
            if scalars:
                chosen = pick.choice(scalars)
                origin = [op.const(0, e.dtype) for e in chosen.shape]
                gathered = op.cast("int32", BufferLoad(chosen, origin))
                return op.maximum(op.minimum(gathered, size - 1), 0)
        return op.floormod(base, op.const(size, base.dtype))


def _shape(buffer: Buffer) -> tuple[int, ...]:
    return tuple(extent.value for extent in buffer.shape)


def random_prim_func(
    seed: int, dtypes: tuple[str, ...] = (*INTEGERS, *FLOATS, "bool"), intrinsics: bool = True
) -> RandomProgram:
    """The program of a seed, over the given element types."""
    return _Generator(seed, dtypes, intrinsics).program()
