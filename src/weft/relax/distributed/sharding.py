"""Struct info of operators on distributed tensors.

A graph of distributed tensors computes the same as the graph of the whole tensors; placements only
say where the parts are stored. So the operator's own rule infers the whole result, and its
placement follows from *labels*: a rule of ``LABELS`` gives every axis of the operands and of the
result a label, as einsum does, and axes with the same label are sharded in the same way. If a
dimension of the mesh shards a label, it shards the axis of the result that has this label; if the
result has no such axis (it was reduced), the result is replicated. Two different labels on one
dimension of the mesh are an error.

Operators without a rule take only operands that are replicated on every device.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from typing import Final

from weft.ir.operator_rules import OperatorRules
from weft.ir.structural import structural_equal
from weft.ir.traits import Trait
from weft.relax.distributed.global_info import DeviceMesh
from weft.relax.distributed.struct_info import (
    DTensorStructInfo,
    Placement,
    PlacementSpec,
    replicated,
)
from weft.relax.expr import Call, Constant, Expr, Var
from weft.relax.ir.lattice import tensor_dims
from weft.relax.ir.shape_arith import constant_value, same_dim
from weft.relax.struct_info import StructInfo, TensorStructInfo, TupleStructInfo
from weft.support.errors import IRTypeError, IRValueError

Infer = Callable[[Call], StructInfo]
Labels = list[Hashable]
LabelRule = Callable[[Call, list[DTensorStructInfo], TensorStructInfo], tuple[list[Labels], Labels]]
"""The labels of each distributed operand, and of the result, from the infos of both."""

RULES: Final[dict[str, Infer]] = {}
"""Operators with a rule of their own for distributed tensors."""


def infer_operator(call: Call, rule: Infer) -> StructInfo:
    """The struct info of an operator's call, also of one with distributed operands."""
    for arg in call.args:
        info = arg.struct_info
        if type(info) is DTensorStructInfo or (
            type(info) is TupleStructInfo and _distributed_fields(info)
        ):
            return _infer_distributed(call, rule)
    return rule(call)


def _distributed_fields(info: TupleStructInfo) -> bool:
    return any(
        type(item) is DTensorStructInfo
        or (type(item) is TupleStructInfo and _distributed_fields(item))
        for item in info.fields
    )


def _infer_distributed(call: Call, rule: Infer) -> StructInfo:
    name = call.op.name
    if name in RULES:
        return RULES[name](call)
    if call.sinfo_args:
        return rule(call)
    infos = [info for arg in call.args for info in _tensors(call, arg.struct_info)]
    mesh = infos[0].device_mesh
    for info in infos:
        if not structural_equal(info.device_mesh, mesh):
            raise IRValueError(
                f"{name}: the operands lie on two device meshes, {mesh} and {info.device_mesh}; "
                "redistribute one of them first"
            )
    whole = rule(Call(call.op, [_whole_operand(arg) for arg in call.args], call.attrs))
    if all(spec.axis == -1 for info in infos for spec in info.placement.dim_specs):
        return _replicated(whole, mesh)
    labels = LABELS.get(call.op)
    if labels is None or not isinstance(whole, TensorStructInfo):
        placement = Placement([PlacementSpec.replica()] * len(mesh.shape)).to_text()
        raise IRTypeError(
            f"{name}: nothing says how it goes on with parts of tensors; redistribute its operands "
            f"to {placement!r} first"
        )
    return DTensorStructInfo(whole, mesh, _placement(call, infos, whole, labels))


def _tensors(call: Call, info: StructInfo) -> list[DTensorStructInfo]:
    """The distributed tensors in an operand; IRTypeError if it has others."""
    if isinstance(info, TupleStructInfo):
        return [tensor for field in info.fields for tensor in _tensors(call, field)]
    if isinstance(info, TensorStructInfo):
        raise IRTypeError(
            f"{call.op.name}: expected distributed tensors (R.DTensor) alone, got {info} too"
        )
    return [info] if isinstance(info, DTensorStructInfo) else []


def _whole_operand(arg: Expr) -> Expr:
    """An operand like this one whose tensors are not distributed."""
    info = _whole(arg.struct_info)
    if info is arg.struct_info:
        return arg
    return Constant(arg.data, info) if isinstance(arg, Constant) else Var("whole", info)


def _whole(info: StructInfo) -> StructInfo:
    if isinstance(info, DTensorStructInfo):
        return info.tensor_sinfo
    if isinstance(info, TupleStructInfo) and _distributed_fields(info):
        return TupleStructInfo([_whole(field) for field in info.fields])
    return info


def _replicated(info: StructInfo, mesh: DeviceMesh) -> StructInfo:
    if isinstance(info, TensorStructInfo):
        return replicated(info, mesh)
    if isinstance(info, TupleStructInfo):
        return TupleStructInfo([_replicated(field, mesh) for field in info.fields])
    return info


def _placement(
    call: Call, infos: list[DTensorStructInfo], whole: TensorStructInfo, rule: LabelRule
) -> Placement:
    if -1 in (whole.ndim, *[info.tensor_sinfo.ndim for info in infos]):
        raise IRTypeError(f"{call.op.name}: parts of tensors of unknown rank have no placement")
    operands, result = rule(call, infos, whole)
    specs = []
    for dimension in range(len(infos[0].device_mesh.shape)):
        divided: dict[Hashable, str] = {}
        for info, labels in zip(infos, operands, strict=True):
            axis = info.placement.dim_specs[dimension].axis
            if axis != -1:
                divided.setdefault(labels[axis], info.placement.to_text())
        if len(divided) > 1:
            raise IRValueError(
                f"{call.op.name}: dimension {dimension} of the mesh divides two different axes, by "
                f"{' and '.join(map(repr, divided.values()))}; redistribute one operand first"
            )
        label = next(iter(divided), None)
        known = label is not None and label in result
        specs.append(
            PlacementSpec.sharding(result.index(label)) if known else PlacementSpec.replica()
        )
    return Placement(specs)


# ---- labels by family

LABELS: Final = OperatorRules[LabelRule]("relax.")
"""Operator -> how the axes of its operands correspond to those of its result."""


def _broadcast_labels(
    infos: Sequence[DTensorStructInfo], whole: TensorStructInfo
) -> tuple[list[Labels], Labels]:
    """Axes correspond from the last one on; an axis of extent 1 that is broadcast has no label."""
    result = tensor_dims(whole)
    operands = []
    for info in infos:
        ndim = info.tensor_sinfo.ndim
        labels: Labels = list(range(whole.ndim - ndim, whole.ndim))
        dims = tensor_dims(info.tensor_sinfo)
        if dims is not None and result is not None:
            for axis, (own, shared) in enumerate(zip(dims[::-1], result[::-1], strict=False), 1):
                if constant_value(own) == 1 and constant_value(shared) != 1:
                    labels[-axis] = None
        operands.append(labels)
    return operands, list(range(whole.ndim))


@LABELS.of(Trait.ELEMENTWISE, Trait.SAME_VALUE, "ccl.allreduce")
def _elementwise(
    call: Call,  # noqa: ARG001 - a LabelRule
    infos: list[DTensorStructInfo],
    whole: TensorStructInfo,
) -> tuple[list[Labels], Labels]:
    return _broadcast_labels(infos, whole)


@LABELS.of("matmul")
def _matmul(
    call: Call,  # noqa: ARG001 - a LabelRule
    infos: list[DTensorStructInfo],
    whole: TensorStructInfo,
) -> tuple[list[Labels], Labels]:
    left, right = (info.tensor_sinfo.ndim for info in infos)
    lhs: Labels = ["inner"] if left == 1 else ["row", "inner"]
    rhs: Labels = ["inner"] if right == 1 else ["inner", "column"]
    own = ([] if left == 1 else ["row"]) + ([] if right == 1 else ["column"])
    batch = whole.ndim - len(own)
    above, below = range(batch - left + len(lhs), batch), range(batch - right + len(rhs), batch)
    return [[*above, *lhs], [*below, *rhs]], [*range(batch), *own]


@LABELS.of("permute_dims")
def _permutation(
    call: Call, infos: list[DTensorStructInfo], whole: TensorStructInfo
) -> tuple[list[Labels], Labels]:
    ndim = infos[0].tensor_sinfo.ndim
    axes = call.attrs["axes"]
    order = range(ndim)[::-1] if axes is None else [axis % ndim for axis in axes]
    return [list(range(whole.ndim))], list(order)


@LABELS.of(Trait.REDUCTION)
def _reduction(
    call: Call, infos: list[DTensorStructInfo], whole: TensorStructInfo
) -> tuple[list[Labels], Labels]:
    ndim, axes = infos[0].tensor_sinfo.ndim, call.attrs["axis"]
    chosen = range(ndim) if axes is None else [axis % ndim for axis in axes]
    labels: Labels = [None if axis in chosen else axis for axis in range(ndim)]
    return [labels], labels if whole.ndim == ndim else [axis for axis in labels if axis is not None]


@LABELS.of(Trait.ALONG_AXIS)
def _along_axis(
    call: Call,
    infos: list[DTensorStructInfo],
    whole: TensorStructInfo,  # noqa: ARG001 - a LabelRule
) -> tuple[list[Labels], Labels]:
    ndim = infos[0].tensor_sinfo.ndim
    chosen = call.attrs["axis"]
    axes = range(ndim) if chosen is None else [chosen % ndim]
    labels: Labels = [None if axis in axes else axis for axis in range(ndim)]
    return [labels], labels


@LABELS.of("reshape")
def _reshape(
    call: Call,  # noqa: ARG001 - a LabelRule
    infos: list[DTensorStructInfo],
    whole: TensorStructInfo,
) -> tuple[list[Labels], Labels]:
    """Equal axes at the beginning and at the end correspond; so does the first reshaped axis.

    That one corresponds only if the number of devices divides its extent before and after: then
    each device holds the same elements in both shapes. ``(8, 6) -> (4, 12)`` on 4 devices does.
    """
    before, after = tensor_dims(infos[0].tensor_sinfo), tensor_dims(whole)
    if before is None or after is None:
        return [[None] * infos[0].tensor_sinfo.ndim], [None] * whole.ndim
    source: Labels = [None] * len(before)
    result: Labels = [None] * len(after)
    start = 0
    while start < min(len(before), len(after)) and same_dim(before[start], after[start]):
        source[start] = result[start] = start
        start += 1
    end = 1
    while end <= min(len(before), len(after)) - start and same_dim(before[-end], after[-end]):
        source[-end] = result[-end] = -end
        end += 1
    if start <= min(len(before), len(after)) - end:
        mesh = infos[0].device_mesh.shape
        specs = zip(mesh, infos[0].placement.dim_specs, strict=True)
        devices = math.prod([extent for extent, spec in specs if spec.axis == start])
        rows = constant_value(before[start]), constant_value(after[start])
        if all(count is not None and count % devices == 0 for count in rows):
            source[start] = result[start] = start
    return [source], result
