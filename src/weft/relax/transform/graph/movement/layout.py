"""Combines transposes and reshapes that follow each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from weft.ir.expr import PrimExpr
from weft.relax import op
from weft.relax.expr import Call, Expr
from weft.relax.ir.shape_arith import same_dims
from weft.relax.transform.graph.movement.scope import (
    MOVEMENTS,
    PERMUTE,
    RESHAPE,
    Scope,
    axes_of,
    dims_of,
    is_unit,
    moves_units_only,
    name_of,
    permuted,
    producer,
    without_units,
)

RESHAPES: Final = ("reshape", "expand_dims", "squeeze", "flatten")
"""Operators that change the shape of a tensor and not the order of its elements."""


@MOVEMENTS.of(*RESHAPES)
def reshape(scope: Scope, call: Call) -> Expr | None:
    """``reshape(reshape(x))`` becomes one reshape; a reshape to the same shape is removed."""
    dims, before = dims_of(call), dims_of(call.args[0])
    if dims is None or before is None:
        return None
    if same_dims(dims, before):
        return call.args[0]
    inner = producer(scope, call.args[0], RESHAPE)
    if inner is not None:
        return op.reshape(inner.args[0], dims)
    return None if name_of(call) == RESHAPE else op.reshape(call.args[0], dims)


@MOVEMENTS.of("permute_dims")
def permute(scope: Scope, call: Call) -> Expr | None:
    """``permute(permute(x))`` becomes one; moving only axes of extent 1 becomes a reshape."""
    axes, dims, operand = axes_of(call), dims_of(call.args[0]), call.args[0]
    if axes is None or dims is None:
        return None
    if axes == sorted(axes):
        return operand
    moved = [axis for axis in axes if not is_unit(dims[axis])]
    if moved == sorted(moved):
        return op.reshape(operand, [dims[axis] for axis in axes])
    inner = producer(scope, operand, PERMUTE)
    before = None if inner is None else axes_of(inner)
    if inner is not None and before is not None:
        return op.permute_dims(inner.args[0], [before[axis] for axis in axes])
    inner = producer(scope, operand, RESHAPE)
    return None if inner is None else _below(scope, inner, axes, dims)


def _below(scope: Scope, inner: Call, axes: Sequence[int], dims: Sequence[PrimExpr]) -> Expr | None:
    """``permute(reshape(y))`` as ``reshape(permute(y))``, if the reshape only adds or removes axes
    of extent 1.
    """
    before = dims_of(inner.args[0])
    if before is None or not moves_units_only(before, dims):
        return None
    units = [axis for axis, dim in enumerate(before) if is_unit(dim)]
    kept = [axis for axis, dim in enumerate(before) if not is_unit(dim)]
    place = [axis for axis, dim in enumerate(dims) if not is_unit(dim)]
    order = [kept[place.index(axis)] for axis in axes if axis in place]
    return op.reshape(permuted(scope, inner.args[0], [*units, *order]), [dims[a] for a in axes])


@MOVEMENTS.of("broadcast_to")
def broadcast(scope: Scope, call: Call) -> Expr | None:
    """A broadcast to the same shape is removed; one that only adds axes of 1 becomes a reshape."""
    del scope
    dims, before = dims_of(call), dims_of(call.args[0])
    if dims is None or before is None:
        return None
    if same_dims(dims, before):
        return call.args[0]
    same = same_dims(without_units(dims), without_units(before)) and len(dims) > len(before)
    return op.reshape(call.args[0], dims) if same else None
