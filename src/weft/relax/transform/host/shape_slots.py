"""The places of symbolic extents on the heap of VMShapeLower: one slot for each expression."""

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
    """One expression and its place on the heap."""

    def __init__(self, expr: PrimExpr, index: int) -> None:
        self.expr, self.index = expr, index
        self.computed = False
        self.symbols: Sequence[Var] = ()
        self.missing: set[PrimExpr] = set()


class Slots:
    """The slots of one function, by structure of their expressions."""

    def __init__(self) -> None:
        self.all: list[Slot] = []
        self._by_key: dict[bytes, Slot] = {}
        self._waiting: dict[PrimExpr, list[Slot]] = {}
        self._ready: list[Slot] = []

    def add(self, expr: PrimExpr) -> None:
        """A slot for an expression that is no constant."""
        if isinstance(expr, IntImm):
            return
        key = structural_key(expr)
        if key not in self._by_key:
            self._by_key[key] = slot = Slot(expr, len(self.all))
            self.all.append(slot)

    def find(self, expr: PrimExpr) -> Slot | None:
        """The slot of an expression."""
        return self._by_key.get(structural_key(expr))

    def at(self, expr: PrimExpr, function: str) -> Slot:
        """The slot of an expression whose value is known."""
        slot = self.find(expr)
        if slot is None or not slot.computed:
            raise IRValueError(
                f"VMShapeLower: {function}: {expr} has no value here: its symbols follow from no "
                "parameter and no match_cast before"
            )
        return slot

    def prepare(self) -> None:
        """Find out what each expression waits for."""
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
        """The slot of a symbol has its value: expressions that waited for it may be ready."""
        slot.computed = True
        for other in self._waiting.pop(slot.expr, ()):
            other.missing.discard(slot.expr)
            if not other.missing:
                self._ready.append(other)

    def places(self, slot: Slot) -> list[tuple[Var, int]]:
        """The symbols of an expression and where their values are."""
        return [(var, self._by_key[structural_key(var)].index) for var in slot.symbols]

    def take_ready(self) -> list[Slot]:
        """Expressions that can be computed now and have not been taken, in order of their slots."""
        ready, self._ready = self._ready, []
        return sorted(ready, key=lambda slot: slot.index)


class SlotCollector(PyExprVisitor):
    """Gives a slot to every extent that the function speaks of."""

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
        """A local function has slots of its own once it is lifted."""


def extents_of(info: StructInfo | None) -> Sequence[PrimExpr] | None:
    """The expressions that a struct info other than a tuple is about."""
    if isinstance(info, TensorStructInfo):
        values: Sequence[PrimExpr] | None = getattr(info.shape, "values", None)
        return values
    if isinstance(info, ShapeStructInfo):
        return info.values
    if isinstance(info, PrimStructInfo) and info.value is not None:
        return [info.value]
    return None
