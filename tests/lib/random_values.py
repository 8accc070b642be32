"""Random TensorIR expressions, legal by construction: the values and indices of ``generate``.

Every index is wrapped or clamped into its buffer, every divisor made positive (unless ``faults``),
every load reads what an earlier stage has written. Some values are the same object as an earlier
one: what a pass or code generation computes once for all of its places.
"""

from __future__ import annotations

import random
from typing import Any

from weft.ir.expr import IntImm, PrimExpr
from weft.ir.functor import collect
from weft.support.dtype import DataType
from weft.tir import op
from weft.tir.buffer import Buffer, BufferLoad
from weft.tir.expr import Call, Let, Var

_UNARY = ("exp", "tanh", "sigmoid", "sqrt", "floor", "ceil", "trunc", "erf", "cos", "sin")
_EXACT = ("sqrt", "floor", "ceil", "trunc")
_INDEX_TYPES = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
_REPEATED = 0.15
"""How often a value is an earlier one."""
_BITS = ("bitwise_and", "bitwise_or", "bitwise_xor", "shift_left", "shift_right")


class ValueGenerator:
    """Draws expressions over variables and the buffers in ``sources``."""

    def __init__(
        self, seed: int, dtypes: tuple[str, ...], intrinsics: bool, faults: bool = False
    ) -> None:
        self.random = random.Random(seed)
        self.seed = seed
        self.dtypes = dtypes
        self.intrinsics = intrinsics
        self.faults = faults
        self.sources: list[Buffer] = []
        self.scalars: list[Var] = []
        self.sizes: dict[int, int] = {}
        self.serial = 0
        self.repeats = random.Random(f"repeats {seed}")  # apart: seeds keep their programs
        self.earlier: dict[Any, list[PrimExpr]] = {}
        """Values by type and by what they may use."""
        self.kept: list[Any] = []
        """What the keys of ``earlier`` name by ``id``, which a dead variable would pass on."""

    def name(self, stem: str) -> str:
        """A fresh name."""
        self.serial += 1
        return f"{stem}{self.serial}"

    def size(self, extent: Any) -> int:
        """What an extent is in this program's arguments."""
        return extent.value if isinstance(extent, IntImm) else self.sizes[id(extent)]

    def value(self, dtype: DataType, variables: list[Var], depth: int) -> PrimExpr:
        """An expression of a type over variables and earlier buffers; it may be an earlier one."""
        key = (dtype, *map(id, (*variables, *self.sources)))
        if key not in self.earlier:
            self.kept.extend((*variables, *self.sources))
        earlier = self.earlier.setdefault(key, [])
        fresh = self.fresh(dtype, variables, depth)
        if earlier and self.repeats.random() < _REPEATED:
            return self.repeats.choice(earlier)
        if not collect(fresh, Let):  # its variable would be defined in two places
            earlier.append(fresh)
        return fresh

    def fresh(self, dtype: DataType, variables: list[Var], depth: int) -> PrimExpr:
        """A new expression, of which parts may be earlier ones."""
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
            condition = self.condition(variables)
            yes, no = [self.value(dtype, variables, depth - 1) for _ in range(2)]
            return make(condition, yes, no)
        if choice < 0.85:
            bound = Var(self.name("t"), pick.choice(self.dtypes))
            body = op.cast(dtype, bound) + self.value(dtype, variables, depth - 1)
            return Let(bound, self.value(bound.dtype, variables, depth - 1), body)
        return self.special(dtype, variables, depth)

    def arithmetic(self, dtype: DataType, variables: list[Var], depth: int) -> PrimExpr:
        """A binary operator; divisors are made positive, unless faults are wanted."""
        pick = self.random
        a, b = [self.value(dtype, variables, depth - 1) for _ in range(2)]
        operators: list[Any] = [op.add, op.subtract, op.multiply, op.minimum, op.maximum]
        if dtype.is_bool:
            return pick.choice((op.logical_and, op.logical_or))(a, b)
        if dtype.is_integral and pick.random() < 0.3:
            divide = pick.choice((op.floordiv, op.floormod, op.truncdiv, op.truncmod))
            return divide(a, self.divisor(b, dtype))
        if dtype.is_float and pick.random() < 0.1:
            return op.div(a, b)
        result: PrimExpr = pick.choice(operators)(a, b)
        return result

    def divisor(self, value: PrimExpr, dtype: DataType) -> PrimExpr:
        """A divisor: positive, negative, or (with ``faults``) anything."""
        style = self.random.random()
        if self.faults and style < 0.5 and not isinstance(value, IntImm):
            return value
        if dtype.is_int and style < 0.7:
            return op.minimum(value, op.const(-1, dtype))
        return op.maximum(value, op.const(1, dtype))

    def special(self, dtype: DataType, variables: list[Var], depth: int) -> PrimExpr:
        """Bit operations on integers, intrinsics on floats."""
        pick = self.random
        value = self.value(dtype, variables, depth - 1)
        if dtype.is_bool:
            return op.logical_not(value)
        if dtype.is_float:
            name = pick.choice(_UNARY if self.intrinsics else (*_EXACT, "abs"))
            if name == "exp":
                value = op.minimum(value, op.const(4, dtype))
            result: PrimExpr = getattr(op, name)(value)
            return result
        if pick.random() < 0.1:
            return op.bitwise_not(value)
        other = self.value(dtype, variables, depth - 1)
        bits: PrimExpr = getattr(op, pick.choice(_BITS))(value, other)
        return bits

    def condition(self, variables: list[Var]) -> PrimExpr:
        """A boolean expression."""
        dtype = DataType(self.random.choice(self.dtypes))
        compare = self.random.choice((op.less, op.less_equal, op.equal, op.not_equal, op.greater))
        a, b = [self.value(dtype, variables, 1) for _ in range(2)]
        return compare(a, b)

    def leaf(self, dtype: DataType, variables: list[Var]) -> PrimExpr:
        """A constant, a variable or a load."""
        pick = self.random
        choice = pick.random()
        if choice < 0.2 or not (self.sources or variables):
            if dtype.is_float:
                return op.const(pick.choice((0.0, 1.0, -2.5, 0.125, 300.0)), dtype)
            return op.const(pick.randint(0, 1 if dtype.is_bool else 7), dtype)
        known = [*variables, *self.scalars]
        if (choice < 0.35 and known) or not self.sources:
            return op.cast(dtype, pick.choice(known))
        return op.cast(dtype, self.load(pick.choice(self.sources), variables))

    def load(self, buffer: Buffer, variables: list[Var]) -> PrimExpr:
        """A load that stays inside the buffer: every index is wrapped or clamped."""
        return BufferLoad(buffer, [self.index(extent, variables) for extent in buffer.shape])

    def index(self, extent: PrimExpr, variables: list[Var]) -> PrimExpr:
        """An index in [0, extent): a constant, a wrapped variable, or a clamped gathered value."""
        pick = self.random
        if not variables or pick.random() < 0.1:
            return op.const(pick.randrange(self.size(extent)), extent.dtype)
        base: PrimExpr = pick.choice(variables)
        style = pick.random()
        if style < 0.3:
            base = base + pick.randint(0, 3)
        elif style < 0.4:
            last = op.cast(base.dtype, extent) - 1
            return op.maximum(op.minimum(last - base, last), op.const(0, base.dtype))
        elif style < 0.5:
            gathered = self.gathered()
            if gathered is not None:
                last = op.cast("int32", extent) - 1
                return op.maximum(op.minimum(gathered, last), 0)
        elif style < 0.6:
            base = op.cast(pick.choice(_INDEX_TYPES), base)
        return op.floormod(base, op.cast(base.dtype, extent))

    def gathered(self) -> PrimExpr | None:
        """An integer read from a buffer, or None where there is none."""
        holders = [b for b in self.sources if b.dtype.is_integral and not b.dtype.is_bool]
        if not holders:
            return None
        chosen = self.random.choice(holders)
        origin = [op.const(0, extent.dtype) for extent in chosen.shape]
        loaded = op.cast("int32", BufferLoad(chosen, origin))
        return Call("int32", "tir.likely", [loaded]) if self.random.random() < 0.1 else loaded
