"""What loops carry from step to step, where the number of steps is not known at import.

The body is translated again and again until it changes no more of what is known of its states.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from weft.ir.node import expect
from weft.relax import op
from weft.relax.expr import Expr, Var
from weft.relax.frontend.onnx.context import Context
from weft.relax.frontend.onnx.run_sequences import (
    joint_dims,
    joint_type,
    run_sequence,
    visible,
)
from weft.relax.frontend.onnx.value import Dim, GraphValue, RunSequence, Value
from weft.relax.ir.lattice import symbolic_vars
from weft.relax.ir.shape_arith import same_dim
from weft.relax.struct_info import ObjectStructInfo, StructInfo, TensorStructInfo


def has_one_axis(value: Value) -> bool:
    """Whether a tensor has the shape (1,)."""
    return value.shape is not None and _is_one_axis(value.shape)


def _is_one_axis(dims: Sequence[Dim | None]) -> bool:
    return len(dims) == 1 and isinstance(dims[0], int) and dims[0] == 1


def with_one_axis(context: Context, value: Value) -> Value:
    """A number without dimensions as a tensor (1,); another tensor is itself."""
    if value.rank != 0:
        return value
    expr = context.emit(op.reshape(value.expr, [1]))
    return Value(context.builder, expr, None, value.elem, value.sources)


class State(Protocol):
    """A value that the loop carries: what of it stays the same from step to step."""

    def param(self, context: Context, name: str) -> Var:
        """The parameter of it; dimensions that change are new symbols."""

    def info(self) -> StructInfo:
        """What the function says of it when the loop has ended."""

    def value(self, context: Context, expr: Expr) -> GraphValue:
        """The value of a parameter."""

    def ended(self, context: Context, expr: Expr) -> GraphValue:
        """The value when the loop has ended."""

    def weaken(self, context: Context, param: Var, after: GraphValue) -> bool:
        """Forget what a step that begins with ``param`` changes; whether it changes anything."""

    def first(self, context: Context, value: GraphValue) -> GraphValue:
        """What the loop begins with, as a state of this kind."""

    def given(self, context: Context, value: GraphValue | None) -> GraphValue:
        """A result of the body as the next state, in the body's block."""


@dataclass
class TensorState:
    """A tensor: its dimensions (None: the body changes it) and type.

    A number, of no dimensions, is a tensor (1,) in all steps if a step makes it one.
    """

    dims: list[Dim | None]
    elem: int
    dtype: str

    def param(self, context: Context, name: str) -> Var:
        """The parameter of it; dimensions that change are new symbols."""
        dims = [context.new_dim("size") if dim is None else dim for dim in self.dims]
        return Var(name, TensorStructInfo(dims, self.dtype))

    def info(self) -> TensorStructInfo:
        """What is known of it when the loop has ended."""
        if None in self.dims:
            return TensorStructInfo(None, self.dtype, ndim=len(self.dims))
        return TensorStructInfo(self.dims, self.dtype)

    def value(self, context: Context, expr: Expr) -> Value:
        """The value of a parameter."""
        return Value(context.builder, expr, None, self.elem)

    def ended(self, context: Context, expr: Expr) -> Value:
        """The value when the loop has ended: what the body changes is a new symbol."""
        if None in self.dims:
            dims = [context.new_dim("loop") if dim is None else dim for dim in self.dims]
            expr = context.matched(expr, dims)
        return Value(context.builder, expr, None, self.elem)

    def weaken(self, context: Context, param: Var, after: GraphValue) -> bool:
        """Forget the dimensions that a step changes."""
        tensor = expect(after, Value)
        new, old = context.shape(tensor, "body"), param.struct_info.shape.values
        if not old and has_one_axis(tensor) and tensor.dtype == self.dtype:
            self.dims = [1]
            return True
        if len(new) != len(old) or tensor.dtype != self.dtype:
            context.fail("its body changes the rank or the type of a carried value")
        changed = [
            axis
            for axis, (dim, before) in enumerate(zip(new, old, strict=True))
            if self.dims[axis] is not None and not same_dim(before, dim)
        ]
        for axis in changed:
            self.dims[axis] = None
        return bool(changed)

    def differs(self, tensor: Value) -> bool:
        """Whether a tensor is of another type or rank."""
        return tensor.dtype != self.dtype or tensor.rank != len(self.dims)

    def become(self, context: Context, tensor: Value) -> None:
        """Be what a step gives: nobody reads what the loop begins with."""
        outside = context.builder.known_symbols()
        self.dims = [
            dim if all(symbol in outside for symbol in symbolic_vars(dim)) else None
            for dim in context.shape(tensor, "body")
        ]
        self.elem, self.dtype = tensor.elem or 0, tensor.dtype

    def first(self, context: Context, value: GraphValue) -> Value:
        """What the loop begins with; zeros in its place if a step gives another type or rank."""
        tensor = self.given(context, value)
        if self.differs(tensor):
            dims = [0 if dim is None else dim for dim in self.dims]
            zeros = context.emit(op.zeros(dims, self.dtype))
            return Value(context.builder, zeros, None, self.elem)
        return tensor

    def given(self, context: Context, value: GraphValue | None) -> Value:
        """A result of the body, which must be a tensor; what the loop begins with, too."""
        if not isinstance(value, Value):
            context.fail("its body gives no tensor as the next value of a tensor")
        return with_one_axis(context, value) if _is_one_axis(self.dims) else value


@dataclass
class SequenceState:
    """A sequence of tensors: what all items have in common (see RunSequence)."""

    dims: list[Dim | None] | None
    elem: int | None

    def param(self, _context: Context, name: str) -> Var:
        """The parameter of it, an object."""
        return Var(name, self.info())

    def info(self) -> ObjectStructInfo:
        """An object is all that the function says."""
        return ObjectStructInfo()

    def value(self, _context: Context, expr: Expr) -> RunSequence:
        """The value of a parameter."""
        return RunSequence(expr, self.elem, self.dims)

    ended = value

    def weaken(self, context: Context, _param: Var, after: GraphValue) -> bool:
        """Forget what the items that a step adds do not have in common with the others."""
        sequence, before = expect(after, RunSequence), self._known()
        self.elem = joint_type(context, self.elem, sequence.elem)
        self.dims = joint_dims(context, self.dims, visible(context, sequence.dims))
        return before != self._known()

    def _known(self) -> tuple[bool, list[int]]:
        """Whether items are known, and which of their extents all have in common."""
        dims = self.dims or []
        return self.dims is not None, [axis for axis, dim in enumerate(dims) if dim is not None]

    def given(self, context: Context, value: GraphValue | None) -> RunSequence:
        """A result of the body, as an object."""
        return run_sequence(context, value)

    first = given


def state_of(context: Context, value: Value | RunSequence) -> TensorState | SequenceState:
    """What is known of a value before the first step."""
    if isinstance(value, RunSequence):
        return SequenceState(None if value.dims is None else list(value.dims), value.elem)
    return TensorState(list(context.shape(value, "v_initial")), value.elem or 0, value.dtype)
