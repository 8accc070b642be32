"""Whether what a converter of the caller makes is what the model says of the node's output.

weft's own converters follow ONNX's shape inference; one that a user gives may be wrong, and what
follows would then compute with a tensor of another shape or type. The model says what it expects in
``graph.value_info`` and ``graph.output``; names of dimensions and missing ones contradict nothing.
"""

from __future__ import annotations

from collections.abc import Container, Mapping

from weft.relax.frontend.onnx.element_types import type_name
from weft.relax.frontend.onnx.errors import OnnxNodeError
from weft.relax.frontend.onnx.protos import NodeProto, ValueInfoProto
from weft.relax.frontend.onnx.registry import plain_domain, qualified
from weft.relax.frontend.onnx.value import GraphValue, Value
from weft.relax.ir.lattice import tensor_dims
from weft.relax.ir.shape_arith import constant_value
from weft.relax.struct_info import TensorStructInfo


def is_custom(node: NodeProto, custom: Container[str]) -> bool:
    """Whether a converter of the caller translates the node."""
    return qualified(plain_domain(node.domain), node.op_type) in custom


def check_declared(
    node: NodeProto,
    name: str,
    value: GraphValue | None,
    declared: Mapping[str, ValueInfoProto],
) -> None:
    """Raise OnnxNodeError where a value certainly is not what the model declares of ``name``."""
    info = declared.get(name)
    if info is None or not isinstance(value, Value) or not info.type.HasField("tensor_type"):
        return
    wanted = info.type.tensor_type
    if wanted.elem_type not in (0, value.elem):
        _refuse(node, name, type_name(wanted.elem_type), type_name(value.elem or 0))
    if not wanted.HasField("shape"):
        return
    struct_info = value.expr.struct_info
    dims = tensor_dims(struct_info) if isinstance(struct_info, TensorStructInfo) else None
    if dims is None:
        return
    sizes = [
        dim.dim_value if dim.HasField("dim_value") else dim.dim_param or None
        for dim in wanted.shape.dim
    ]
    extents = [constant_value(dim) for dim in dims]
    differ = [
        isinstance(a, int) and b is not None and a != b
        for a, b in zip(sizes, extents, strict=False)
    ]
    if len(sizes) != len(extents) or any(differ):
        shown = ", ".join(["?" if size is None else str(size) for size in sizes])
        actual = ", ".join(
            [str(dim if size is None else size) for dim, size in zip(dims, extents, strict=True)]
        )
        _refuse(node, name, f"shape ({shown})", f"({actual})")


def _refuse(node: NodeProto, name: str, expected: str, actual: str) -> None:
    raise OnnxNodeError(
        f"the converter given for {node.op_type}: expected {expected} of {name!r}, as the model "
        f"declares, got {actual}"
    )
