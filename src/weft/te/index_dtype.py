"""Gives every loop, index and extent of a function one integer type.

Shapes in Relax are int64, while tensor expressions that users write have int32. This rewrites loop
variables, block axes, shapes, indices and the integer constants among them. Computed values keep
their types: where an index is used as a value it is cast back.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from weft.ir.expr import IntImm, PrimExpr, Range
from weft.ir.functor import Mutator
from weft.ir.node import Array, Map
from weft.support.dtype import DataType
from weft.tir import op
from weft.tir.buffer import Buffer, BufferLoad, BufferRegion
from weft.tir.expr import (
    EQ,
    GE,
    GT,
    LE,
    LT,
    NE,
    Add,
    BinaryExpr,
    Call,
    Cast,
    CompareExpr,
    FloorDiv,
    FloorMod,
    IterVar,
    Let,
    Max,
    Min,
    Mod,
    Mul,
    Select,
    Sub,
    Var,
    is_call,
)
from weft.tir.expr import Div as TruncDiv
from weft.tir.function import PrimFunc
from weft.tir.stmt import BlockRealize, BufferStore, For, LetStmt

LetNode = TypeVar("LetNode", Let, LetStmt)

_REBUILD: dict[type[PrimExpr], Callable[[PrimExpr, PrimExpr], PrimExpr]] = {
    Add: op.add, Sub: op.subtract, Mul: op.multiply, TruncDiv: op.div, Mod: op.truncmod,
    FloorDiv: op.floordiv, FloorMod: op.floormod, Min: op.minimum, Max: op.maximum,
    EQ: op.equal, NE: op.not_equal, LT: op.less, LE: op.less_equal, GT: op.greater,
    GE: op.greater_equal,
}  # fmt: skip


def normalize_index_dtype(func: PrimFunc, dtype: DataType) -> PrimFunc:
    """The function with indices of ``dtype``; scalar parameters keep their types."""
    mutator = _IndexDtype(dtype, frozenset([id(param) for param in func.params]))
    buffer_map = Map({var: mutator.visit(buf) for var, buf in func.buffer_map.items()})
    return func.with_(body=mutator.visit(func.body), buffer_map=buffer_map)


class _IndexDtype(Mutator):
    def __init__(self, dtype: DataType, parameters: frozenset[int]) -> None:
        super().__init__()
        self.dtype = dtype
        self.parameters = parameters
        self.variables: dict[int, Var] = {}
        self.kept: list[Var] = []

    def index(self, expr: PrimExpr) -> PrimExpr:
        """An index or extent, with its constants and its result in the index type."""
        result: PrimExpr = self.visit(expr)
        if isinstance(result, IntImm) and not result.dtype.is_bool:
            return IntImm(self.dtype, result.value)
        if isinstance(result, Cast) and result.dtype.is_integral and expr.dtype.lanes == 1:
            return op.cast(self.dtype, result.value)
        return result

    def indices(self, values: Array[PrimExpr]) -> Array[PrimExpr]:
        """Index expressions; the same object if nothing changed."""
        retyped = [self.index(value) for value in values]
        changed = [1 for new, old in zip(retyped, values, strict=True) if new is not old]
        return Array(retyped) if changed else values

    def rename(self, variable: Var) -> Var:
        """The variable of the index type that replaces a loop variable, axis or symbol."""
        if variable.dtype is self.dtype or not variable.dtype.is_integral:
            return variable
        if id(variable) not in self.variables:
            self.kept.append(variable)
            self.variables[id(variable)] = type(variable)(variable.name, self.dtype)
        return self.variables[id(variable)]

    def visit_Var(self, variable: Var) -> PrimExpr:
        return self.variables.get(id(variable), variable)

    def visit_Range(self, domain: Range) -> Range:
        return domain.with_(min=self.index(domain.min), extent=self.index(domain.extent))

    def visit_IterVar(self, axis: IterVar) -> IterVar:
        domain = None if axis.dom is None else self.visit(axis.dom)
        return axis.with_(dom=domain, var=self.rename(axis.var))

    def visit_Buffer(self, buffer: Buffer) -> Buffer:
        for extent in (*buffer.shape, *buffer.strides, buffer.elem_offset):
            if isinstance(extent, Var) and id(extent) not in self.parameters:
                self.rename(extent)
        return buffer.with_(
            shape=self.indices(buffer.shape),
            strides=self.indices(buffer.strides),
            elem_offset=self.visit(buffer.elem_offset),
        )

    def visit_BufferRegion(self, region: BufferRegion) -> BufferRegion:
        return region.with_(buffer=self.visit(region.buffer), region=self.visit(region.region))

    def visit_For(self, loop: For) -> For:
        variable = self.rename(loop.loop_var)
        return loop.with_(
            loop_var=variable,
            min=self.index(loop.min),
            extent=self.index(loop.extent),
            body=self.visit(loop.body),
            thread_binding=loop.thread_binding,
        )

    def visit_BlockRealize(self, realize: BlockRealize) -> BlockRealize:
        return realize.with_(
            iter_values=self.indices(realize.iter_values),
            predicate=self.visit(realize.predicate),
            block=self.visit(realize.block),
        )

    def visit_BufferLoad(self, load: BufferLoad) -> BufferLoad:
        return load.with_(buffer=self.visit(load.buffer), indices=self.indices(load.indices))

    def visit_BufferStore(self, store: BufferStore) -> BufferStore:
        return store.with_(
            buffer=self.visit(store.buffer),
            value=op.cast(store.value.dtype, self.visit(store.value)),
            indices=self.indices(store.indices),
        )

    def visit_Let(self, let: LetNode) -> LetNode:
        value = op.cast(let.value.dtype, self.visit(let.value))
        return let.with_(value=value, body=self.visit(let.body))

    visit_LetStmt = visit_Let

    def visit_BinaryExpr(self, expr: BinaryExpr) -> PrimExpr:
        a, b = self.visit(expr.a), self.visit(expr.b)
        if a is expr.a and b is expr.b:
            return expr
        if a.dtype is b.dtype:
            return expr.with_(a=a, b=b)
        if not isinstance(expr, CompareExpr):
            a, b = _both_narrow(a, expr.a, b), _both_narrow(b, expr.b, a)
        return _REBUILD[type(expr)](a, b)

    def visit_Cast(self, expr: Cast) -> PrimExpr:
        value = self.visit(expr.value)
        return expr if value is expr.value else op.cast(expr.dtype, value)

    def visit_Select(self, expr: Select) -> PrimExpr:
        condition = self.visit(expr.condition)
        yes, no = op.match_types(self.visit(expr.true_value), self.visit(expr.false_value))
        return expr.with_(condition=condition, true_value=yes, false_value=no)

    def visit_Call(self, call: Call) -> PrimExpr:
        args = [self.visit(arg) for arg in call.args]
        changed = [1 for new, old in zip(args, call.args, strict=True) if new is not old]
        if not changed:
            return call
        if is_call(call, "if_then_else"):
            condition, yes, no = args
            return op.if_then_else(condition, yes, no)
        typed = []
        for new, old in zip(args, call.args, strict=True):
            keep = isinstance(new, PrimExpr) and isinstance(old, PrimExpr)
            typed.append(op.cast(old.dtype, new) if keep else new)
        return call.with_(args=Array(typed))


def _both_narrow(mine: PrimExpr, old: PrimExpr, other: PrimExpr) -> PrimExpr:
    """An index that meets data of its old type is cast back; with a constant it stays wide."""
    if mine.dtype is old.dtype or isinstance(other, IntImm):
        return mine
    has_data = isinstance(other, BufferLoad | Call | Cast)
    return op.cast(old.dtype, mine) if has_data else mine
