"""Where VMShapeLower keeps the values of symbolic extents: one slot of its heap per expression.

For a function that uses the extents ``n`` and ``n * 2`` there are two slots. ``n`` is read from an
argument; from then on ``n * 2`` can be computed.
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.ir.expr import IntImm, PrimExpr
from weft.ir.functor import collect
from weft.ir.structural import structural_key
from weft.relax.expr import (
    Function,
    MatchCast,
    PrimValue,
    ShapeExpr,
)
from weft.relax.expr_functor import PyExprVisitor
from weft.relax.struct_info import (
    FuncStructInfo,
    PrimStructInfo,
    ShapeStructInfo,
    StructInfo,
    TensorStructInfo,
    TupleStructInfo,
)
from weft.support.errors import IRValueError
from weft.tir.expr import Var


class Slot:
    """One expression, its index on the heap and the symbols in it whose values are not yet known.

    ``computed`` is True from the point of the function on where the slot holds its value.
    """

    def __init__(self, expr: PrimExpr, index: int) -> None:
        self.expr, self.index = expr, index
        self.computed = False
        self.symbols: Sequence[Var] = ()
        self.missing: set[PrimExpr] = set()


class Slots:
    """The slots of one function; structurally equal expressions share a slot."""

    def __init__(self) -> None:
        self.all: list[Slot] = []
        self._by_key: dict[bytes, Slot] = {}
        self._waiting: dict[PrimExpr, list[Slot]] = {}
        self._ready: list[Slot] = []

    def add(self, expr: PrimExpr) -> None:
        """Give the expression a slot unless it is a constant or has one."""
        if isinstance(expr, IntImm):
            return
        key = structural_key(expr)
        if key not in self._by_key:
            self._by_key[key] = slot = Slot(expr, len(self.all))
            self.all.append(slot)

    def find(self, expr: PrimExpr) -> Slot | None:
        """The slot of the expression, or None."""
        return self._by_key.get(structural_key(expr))

    def at(self, expr: PrimExpr, function: str) -> Slot:
        """The slot of an expression that has its value at this point.

        Raises IRValueError if it has none; ``function`` names the function in the message.
        """
        slot = self.find(expr)
        if slot is None or not slot.computed:
            raise IRValueError(
                f"VMShapeLower: {function}: {expr} has no value here: its symbols follow from no "
                "parameter and no match_cast before"
            )
        return slot

    def prepare(self) -> None:
        """Note for each expression which symbols it needs, and give those symbols slots, too."""
        for slot in list(self.all):
            if isinstance(slot.expr, Var):
                continue
            slot.symbols = collect(slot.expr, Var)
            slot.missing = set(slot.symbols)
            for var in slot.symbols:
                self.add(var)
                self._waiting.setdefault(var, []).append(slot)
            if not slot.missing:
                self._ready.append(slot)

    def learn(self, slot: Slot) -> None:
        """Note that a symbol's slot has its value; expressions that lacked only it become ready."""
        slot.computed = True
        for other in self._waiting.pop(slot.expr, ()):
            other.missing.discard(slot.expr)
            if not other.missing:
                self._ready.append(other)

    def places(self, slot: Slot) -> list[tuple[Var, int]]:
        """Each symbol in the slot's expression, with the index of the symbol's own slot."""
        return [(var, self._by_key[structural_key(var)].index) for var in slot.symbols]

    def take_ready(self) -> list[Slot]:
        """The slots that became ready since the last call, by index."""
        ready, self._ready = self._ready, []
        return sorted(ready, key=lambda slot: slot.index)


class SlotCollector(PyExprVisitor):
    """Adds a slot for every extent in a function: in struct infos, shapes and scalar values."""

    def __init__(self, slots: Slots) -> None:
        self.slots = slots

    def function(self, func: Function) -> None:
        for param in func.params:
            self.info(param.struct_info)
        self.visit_expr(func.body)
        self.info(func.ret_struct_info)

    def info(self, info: StructInfo | None) -> None:
        if isinstance(info, TupleStructInfo):
            for item in info.fields:
                self.info(item)
        elif not isinstance(info, FuncStructInfo):
            for value in extents_of(info) or ():
                self.slots.add(value)

    def visit_match_cast_(self, binding: MatchCast) -> None:
        super().visit_match_cast_(binding)
        self.info(binding.struct_info)

    def visit_shape_expr_(self, op: ShapeExpr) -> None:
        for value in op.values:
            self.slots.add(value)

    def visit_prim_value_(self, op: PrimValue) -> None:
        if op.value.dtype.is_integral and collect(op.value, Var):
            self.slots.add(op.value)

    def visit_function_(self, op: Function) -> None:
        """Skip local functions: LambdaLift makes them global, and they get slots of their own."""


def extents_of(info: StructInfo | None) -> Sequence[PrimExpr] | None:
    """The extents of a tensor or shape, or the value of a scalar; None where they are unknown."""
    if isinstance(info, TensorStructInfo):
        return getattr(info.shape, "values", None)
    if isinstance(info, ShapeStructInfo):
        return info.values
    if isinstance(info, PrimStructInfo) and info.value is not None:
        return [info.value]
    return None
