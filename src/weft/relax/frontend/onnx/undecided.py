"""Which extents of a tensor can be told before the program runs, where not all of them can.

Struct info knows all dimensions of a tensor or only their number. A converter goes on with what is
known; for the rest it makes symbols, which the tensor defines when the program runs.
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.ir.expr import Extent
from weft.ir.traits import Trait, has
from weft.relax.block_builder import BlockBuilder
from weft.relax.expr import Call, Expr, Var
from weft.relax.ir.lattice import tensor_dims
from weft.relax.ir.shape_arith import broadcast_extents
from weft.relax.struct_info import TensorStructInfo
from weft.tir.expr import SizeVar


def undecided_dims(builder: BlockBuilder, tensor: Expr) -> list[Extent | None] | None:
    """The dimensions of a tensor of known rank, None for each that is not known.

    None if there is nothing to add: all are known, or their number is not.
    """
    info = tensor.struct_info
    if not isinstance(info, TensorStructInfo) or info.ndim < 0 or tensor_dims(info) is not None:
        return None
    value = builder.lookup_binding(tensor) if isinstance(tensor, Var) else None
    known = _joint_dims(value) if isinstance(value, Call) else None
    return [None] * info.ndim if known is None or len(known) != info.ndim else known


def _joint_dims(call: Call) -> list[Extent | None] | None:
    """What is known of the result of an operator whose arguments broadcast."""
    infos = [arg.struct_info for arg in call.args]
    shapes = [
        list(tensor_dims(info) or ())
        for info in infos
        if isinstance(info, TensorStructInfo)
        if info.ndim == 0 or tensor_dims(info) is not None
    ]
    if len(shapes) < len(infos):
        return None
    if has(call.op, Trait.ELEMENTWISE):
        return _broadcast(shapes)
    if call.op.name == "relax.matmul" and min(len(shape) for shape in shapes) >= 2:
        batch = _broadcast([shape[:-2] for shape in shapes])
        return None if batch is None else [*batch, shapes[0][-2], shapes[1][-1]]
    return None


def _broadcast(shapes: Sequence[Sequence[Extent]]) -> list[Extent | None] | None:
    """The joint dimensions of two or more shapes."""
    undecided: list[SizeVar] = []
    joint = list(shapes[0])
    for shape in shapes[1:]:
        pair = broadcast_extents(joint, shape)
        if isinstance(pair, str):
            return None
        for axis, dim in enumerate(pair):
            if dim is None:
                undecided.append(SizeVar("undecided", "int64"))
                pair[axis] = undecided[-1]
        joint = [dim for dim in pair if dim is not None]
    return [None if any(dim is other for other in undecided) else dim for dim in joint]
