"""Random integers of TensorIR that nothing keeps in bounds: sizes, indices, guards and values.

Sizes are sums, products, quotients, extremes, choices and casts over parameters; indices are often
right (``i < n`` in a dimension of ``n``), often off by one, and sometimes anything. What may be
outside has to be refused or tested by what runs it.
"""

from __future__ import annotations

import random
from typing import Final

from weft.ir.expr import IntImm, PrimExpr
from weft.support.dtype import DataType
from weft.tir import op
from weft.tir.buffer import Buffer, BufferLoad
from weft.tir.expr import Call, Select, Var

SIZES: Final = ("int32", "int64")
NARROW: Final = ("int8", "int16", "uint8", "uint16", "uint32")
ELEMENTS: Final = (
    "float32", "float32", "int32", "int32", "int64", "int8", "int16", "uint8", "float16", "float64",
    "bfloat16", "bool",
)  # fmt: skip
_NEAR: Final = (-2, -1, 1, 1, 2, 3)


class IndexGenerator:
    """Draws expressions over the integers and buffers that are in scope."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.serial = 0
        self.integers: list[Var] = []
        self.loops: list[tuple[Var, PrimExpr]] = []
        self.floats: list[Var] = []
        self.buffers: list[Buffer] = []
        self.nested = 0

    def name(self, stem: str) -> str:
        """A fresh name."""
        self.serial += 1
        return f"{stem}{self.serial}"

    def chance(self, share: float) -> bool:
        """True in that share of cases."""
        return self.random.random() < share

    # Integers.

    def size(self, depth: int, dtype: str = "") -> PrimExpr:
        """A size over parameters and symbols, which may be negative, wrap, or be huge."""
        kind = DataType(dtype or self.random.choice(SIZES))
        return self.integer(kind, [v for v in self.integers if not self.is_local(v)], depth)

    def is_local(self, var: Var) -> bool:
        """Whether a variable changes while the function runs."""
        return any(var is loop for loop, _ in self.loops)

    def integer(
        self, dtype: DataType, variables: list[Var], depth: int, casts: bool = True
    ) -> PrimExpr:
        """An integer of a type over variables."""
        pick = self.random
        if depth <= 0 or pick.random() < 0.25:
            return self.leaf(dtype, variables)
        a = self.integer(dtype, variables, depth - 1, casts)
        kind = pick.random() * (1 if casts else 0.8)
        if kind < 0.3:
            return pick.choice((op.add, op.subtract))(a, self.constant(dtype))
        if kind < 0.55:
            b = self.integer(dtype, variables, depth - 1, casts)
            return pick.choice((op.add, op.subtract, op.multiply, op.multiply))(a, b)
        if kind < 0.7:
            divide = pick.choice((op.floordiv, op.floormod, op.truncdiv, op.truncmod))
            return divide(a, self.divisor(dtype, variables if casts else [], depth))
        if kind < 0.8:
            b = self.integer(dtype, variables, depth - 1, casts)
            return pick.choice((op.minimum, op.maximum))(a, b)
        if kind < 0.9:
            b = self.integer(dtype, variables, depth - 1)
            condition = self.comparison(variables, depth - 1)
            return Select(condition, a, b) if pick.random() < 0.5 else (
                op.if_then_else(condition, a, b))  # fmt: skip
        other = DataType(pick.choice((*SIZES, *NARROW)))
        return op.cast(dtype, self.integer(other, variables, depth - 1))

    def leaf(self, dtype: DataType, variables: list[Var]) -> PrimExpr:
        """A variable, cast where it is of another type, or a constant."""
        if variables and self.chance(0.75):
            same = [var for var in variables if var.dtype is dtype]
            return op.cast(dtype, self.random.choice(same or variables))
        return self.constant(dtype)

    def constant(self, dtype: DataType) -> IntImm:
        """A small constant, rarely a large one."""
        if self.chance(0.04):
            high = (1 << (dtype.bits - 1)) - 1
            return IntImm(dtype, high - self.random.randint(0, 3))
        value = self.random.choice((0, 1, 1, 2, 3, 4, 7, 8, 16, -1))
        return IntImm(dtype, value if dtype.is_int else abs(value))

    def divisor(self, dtype: DataType, variables: list[Var], depth: int) -> PrimExpr:
        """A divisor; rarely one that may be 0."""
        if self.chance(0.8):
            value = self.random.choice((1, 2, 2, 3, 4, 8, -2))
            return IntImm(dtype, value if dtype.is_int else abs(value))
        found = self.integer(dtype, variables, depth - 1)
        return found if self.chance(0.3) else op.maximum(found, IntImm(dtype, 1))

    def comparison(self, variables: list[Var], depth: int) -> PrimExpr:
        """A condition over integers."""
        dtype = DataType(self.random.choice(SIZES))
        a = self.integer(dtype, variables, depth)
        b = self.integer(dtype, variables, depth - 1)
        return self.compared(a, b)

    def compared(self, a: PrimExpr, b: PrimExpr) -> PrimExpr:
        """Two integers compared somehow."""
        pick = self.random.randrange(8)
        forms = (lambda: a < b, lambda: a <= b, lambda: a > b, lambda: a >= b,
                 lambda: op.equal(a, b), lambda: op.not_equal(a, b))  # fmt: skip
        return forms[pick if pick < len(forms) else 0]()

    # Places in buffers.

    def indices(self, buffer: Buffer) -> list[PrimExpr]:
        """One index a dimension."""
        return [self.index(extent) for extent in buffer.shape]

    def index(self, extent: PrimExpr) -> PrimExpr:
        """An index into a dimension: mostly right or nearly so."""
        pick = self.random
        kind = pick.random()
        fitting = [var for var, size in self.loops if size is extent]
        if fitting and kind < 0.55:
            return self.moved(pick.choice(fitting), extent)
        if self.loops and kind < 0.7:
            return self.moved(pick.choice(self.loops)[0], extent)
        if kind < 0.75 and not isinstance(extent, IntImm):
            return op.cast(pick.choice(SIZES), extent) - 1
        if kind < 0.9:
            found = self.anything()
            return self.within(found, extent) if self.chance(0.85) else self.unsigned(found, kind)
        if kind < 0.92:
            return self.unsigned(self.anything(), kind)
        size = extent.value if isinstance(extent, IntImm) else 4
        if size > 0 and self.chance(0.97):
            return IntImm("int32", pick.randrange(size))
        return IntImm("int32", pick.choice((0, size, -1)))

    def unsigned(self, index: PrimExpr, kind: float) -> PrimExpr:
        """The index, or its bits as a number that is not negative, for half of the ``kind``s."""
        return op.cast("uint64", index) if int(kind * 1000) % 2 else index

    def moved(self, var: PrimExpr, extent: PrimExpr) -> PrimExpr:
        """A loop variable, or something near it."""
        pick = self.random
        kind = pick.random()
        if kind < 0.6:
            return var
        if kind < 0.7:
            return var + pick.choice(_NEAR)
        if kind < 0.76:
            return op.cast(var.dtype, extent) - 1 - var
        if kind < 0.8:
            step = pick.choice((2, 3, 4))
            return pick.choice((op.floordiv, op.floormod))(var, IntImm(var.dtype, step))
        if kind < 0.9:
            return var * pick.choice((2, 3)) + pick.choice((0, 1))
        other = self.any_integer()
        moved = var + op.cast(var.dtype, other)
        return self.within(moved, extent) if self.chance(0.5) else moved

    def within(self, index: PrimExpr, extent: PrimExpr) -> PrimExpr:
        """An index wrapped or clamped into a dimension, or almost."""
        size = op.cast(index.dtype, extent)
        kind = self.random.random()
        if kind < 0.4:
            return op.floormod(index, op.maximum(size, IntImm(index.dtype, 1)))
        if kind < 0.5:
            return op.truncmod(index, op.maximum(size, IntImm(index.dtype, 1)))
        last = size - 1 if kind < 0.95 else size
        return op.maximum(op.minimum(index, last), IntImm(index.dtype, 0))

    def anything(self) -> PrimExpr:
        """An integer of an index's type: of variables, or read from memory."""
        dtype = DataType(self.random.choice(SIZES))
        readable = [b for b in self.buffers if b.dtype.is_integral and b.dtype.lanes == 1]
        if readable and self.nested < 2 and self.chance(0.5):
            self.nested += 1
            loaded = self.load(self.random.choice(readable), 2 - self.nested)
            self.nested -= 1
            return op.cast(dtype, loaded)
        return self.integer(dtype, self.integers, self.random.choice((1, 1, 2)))

    def any_integer(self) -> PrimExpr:
        """Some variable, or 1."""
        return self.random.choice(self.integers) if self.integers else IntImm("int32", 1)

    def load(self, buffer: Buffer, depth: int) -> PrimExpr:
        """An element, perhaps behind a guard of its own."""
        indices = self.indices(buffer) if depth > 0 else self.simple(buffer)
        loaded = BufferLoad(buffer, indices)
        if indices and self.chance(0.35):
            other = op.const(0, buffer.dtype)
            return op.if_then_else(self.guard(buffer, indices), loaded, other)
        return loaded

    def simple(self, buffer: Buffer) -> list[PrimExpr]:
        """Indices that read no memory."""
        found: list[PrimExpr] = []
        for extent in buffer.shape:
            fitting = [var for var, size in self.loops if size is extent]
            found.append(self.random.choice(fitting) if fitting else IntImm("int32", 0))
        return found

    def guard(self, buffer: Buffer, indices: list[PrimExpr]) -> PrimExpr:
        """A condition that keeps indices inside, or nearly all of them."""
        parts: list[PrimExpr] = []
        for index, extent in zip(indices, buffer.shape, strict=True):
            size = op.cast(index.dtype, extent)
            if self.chance(0.9):
                parts.append(index < size)
            if self.chance(0.9):
                parts.append(index >= 0)
        self.random.shuffle(parts)
        if not parts:
            return self.comparison(self.integers, 1)
        whole = parts[0]
        for part in parts[1:]:
            whole = op.logical_and(whole, part)
        return Call("bool", "tir.likely", [whole]) if self.chance(0.1) else whole

    # Elements.

    def value(self, dtype: DataType, depth: int) -> PrimExpr:
        """A value for an element."""
        pick = self.random
        if depth <= 0 or pick.random() < 0.2 or not self.buffers:
            return self.plain(dtype)
        if pick.random() < 0.5:
            loaded = self.load(pick.choice(self.buffers), 1)
            return op.cast(dtype, loaded)
        a, b = self.value(dtype, depth - 1), self.value(dtype, depth - 1)
        if pick.random() < 0.2:
            make = pick.choice((Select, op.if_then_else))
            return make(self.comparison(self.integers, 1), a, b)
        if dtype.is_bool:
            return op.logical_and(a, b)
        return pick.choice((op.add, op.multiply, op.minimum, op.maximum))(a, b)

    def plain(self, dtype: DataType) -> PrimExpr:
        """A constant, or a variable."""
        choices = [*self.integers, *self.floats]
        if choices and self.chance(0.3):
            return op.cast(dtype, self.random.choice(choices))
        return op.const(self.random.randint(0, 7) if not dtype.is_bool else 1, dtype)
