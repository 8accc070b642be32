"""Element-wise operators on transposed or reshaped tensors: compute first, move afterwards.

Before: ``add(permute(matmul(x, w)), permute(y))``. After: ``permute(add(matmul(x, w), y))``. The
element-wise operator can now be fused with the product's kernel, and the transpose may meet its
inverse further on. The rule applies only if the tensor comes from a product: elsewhere it might
move the operator away from the kernel after it, with which it could be fused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from weft.ir.expr import IntImm, PrimExpr
from weft.ir.traits import Trait
from weft.relax import op
from weft.relax.expr import Call, Constant, Expr, Tuple
from weft.relax.ir.shape_arith import same_dim, same_dims
from weft.relax.transform.graph.movement.scope import (
    MOVEMENTS,
    PERMUTE,
    RESHAPE,
    Scope,
    axes_of,
    constant_of,
    dims_of,
    inverse,
    is_unit,
    name_of,
    permuted,
    producer,
    reshaped,
    without_units,
)


@MOVEMENTS.of(Trait.ELEMENTWISE)
def sink(scope: Scope, call: Call) -> Expr | None:
    """The operator applied before the movement of its arguments; None if that is not possible."""
    if name_of(call) == "relax.where":
        chosen = _decided(call)
        if chosen is not None:
            return chosen
    dims = dims_of(call)
    if dims is None:
        return None
    for arg in call.args:
        if not same_dims(dims_of(arg), dims) or not scope.follows_product(arg):
            continue
        for name, below in ((PERMUTE, _below_permute), (RESHAPE, _below_reshape)):
            inner = producer(scope, arg, name)
            moved = None if inner is None else below(scope, call, inner, dims)
            if moved is not None:
                return moved
    return None


def _decided(call: Call) -> Expr | None:
    """The branch that ``where`` takes if its condition is the same constant everywhere."""
    condition = constant_of(call.args[0])
    if condition is None or not condition.size or condition.all() != condition.any():
        return None
    chosen = call.args[1 if condition.all() else 2]
    return chosen if same_dims(dims_of(chosen), dims_of(call)) else None


def _applied(call: Call, replaced: Mapping[int, Expr]) -> Call:
    """The call with some of its arguments replaced."""
    args = [replaced.get(index, arg) for index, arg in enumerate(call.args)]
    return Call(call.op, args, call.attrs, call.sinfo_args)


def _below_permute(scope: Scope, call: Call, inner: Call, dims: Sequence[PrimExpr]) -> Expr | None:
    axes = axes_of(inner)
    assert axes is not None
    moved: dict[int, Expr] = {}
    spread = []
    for index, arg in enumerate(call.args):
        shape, other = dims_of(arg), producer(scope, arg, PERMUTE)
        if other is not None and axes_of(other) == axes:
            moved[index] = other.args[0]
        elif shape is None or not without_units(shape):
            continue  # a single number stays the same in every shape
        elif len(shape) == len(dims) and (_is_small(shape, dims) or isinstance(arg, Constant)):
            spread.append(index)
        else:
            return None
    for index in spread:
        moved[index] = permuted(scope, call.args[index], inverse(axes))
    return op.permute_dims(scope.emit(_applied(call, moved)), axes)


def _is_small(shape: Sequence[PrimExpr], dims: Sequence[PrimExpr]) -> bool:
    """Whether an operand is broadcast along an axis of the result."""
    return any(
        is_unit(mine) and not is_unit(whole) for mine, whole in zip(shape, dims, strict=True)
    )


def _below_reshape(scope: Scope, call: Call, inner: Call, dims: Sequence[PrimExpr]) -> Expr | None:
    before = dims_of(inner.args[0])
    if before is None:
        return None
    moved: dict[int, Expr] = {}
    wanted = {}
    for index, arg in enumerate(call.args):
        shape, other = dims_of(arg), producer(scope, arg, RESHAPE)
        if other is not None and same_dims(dims_of(other.args[0]), before):
            moved[index] = other.args[0]
            continue
        if shape is None or not without_units(shape):
            continue  # a single number stays the same in every shape
        place = _shape_below(shape, dims, before)
        if place is None or (len(place) == len(before) and not _may_move(scope, arg)):
            return None
        wanted[index] = place
    for index, place in wanted.items():
        moved[index] = reshaped(scope, call.args[index], place)
    return op.reshape(scope.emit(_applied(call, moved)), dims)


def _shape_below(
    shape: Sequence[PrimExpr], dims: Sequence[PrimExpr], before: Sequence[PrimExpr]
) -> list[PrimExpr] | None:
    """The shape in which an operand broadcasts to the tensor before its reshape; None: in none."""
    if same_dims(shape, dims):
        return list(before)
    leading = next((axis for axis, dim in enumerate(shape) if not is_unit(dim)), len(shape))
    trailing = list(shape[leading:])
    count = len(trailing)
    kept = count <= len(before) and all(
        same_dim(mine, other) for mine, other in zip(before[-count:], dims[-count:], strict=True)
    )
    return trailing if kept else _spread_below(shape, dims, before)


def _spread_below(
    shape: Sequence[PrimExpr], dims: Sequence[PrimExpr], before: Sequence[PrimExpr]
) -> list[PrimExpr] | None:
    """The same for an operand that is broadcast over all axes that the reshape changes (a bias)."""
    first = len(dims) - len(shape)
    whole = [*dims[:first], *shape]
    uses = [axis for axis in range(first, len(dims)) if not is_unit(whole[axis])]
    count = uses[-1] + 1
    if count > len(before) or not same_dims(dims[:count], before[:count]):
        return None
    units: list[PrimExpr] = [IntImm("int64", 1)] * len(before)
    return [*units[:first], *whole[first:count], *units[count:]]


def _may_move(scope: Scope, arg: Expr) -> bool:
    """Whether an operand is a constant, an argument, or used elsewhere too.

    Else the kernel that computes it could be fused with the operator, which a reshape prevents.
    """
    return isinstance(arg, Constant) or not (scope.is_used_once(arg) and scope.value(arg))


@MOVEMENTS.of("concat")
def concat(scope: Scope, call: Call) -> Expr | None:
    """Concatenate tensors before their transpose, if all are transposed in the same way."""
    fields = list(call.args[0].fields) if isinstance(call.args[0], Tuple) else []
    inner = [producer(scope, field, PERMUTE) for field in fields]
    if not fields or any(lower is None for lower in inner):
        return None
    axes = [axes_of(lower) for lower in inner if lower is not None]
    if any(other != axes[0] for other in axes) or axes[0] is None:
        return None
    rank = len(axes[0])
    axis = axes[0][int(call.attrs["axis"]) % rank]
    joined = op.concat(Tuple([lower.args[0] for lower in inner if lower is not None]), axis)
    return op.permute_dims(scope.emit(joined), axes[0])
