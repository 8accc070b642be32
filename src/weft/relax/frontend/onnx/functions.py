"""Operators that are defined by other operators: functions of the model, and ONNX's own.

An operator without a converter whose schema has a function body is translated as that body.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from weft.relax.frontend.onnx.attributes import attribute_value, default_attributes, schema_of
from weft.relax.frontend.onnx.errors import OnnxNodeError, need_onnx
from weft.relax.frontend.onnx.protos import (
    Attribute,
    Attributes,
    FunctionProto,
    NodeProto,
    OpsetProto,
    TypeProto,
)
from weft.relax.frontend.onnx.registry import plain_domain
from weft.relax.frontend.onnx.value import (
    GraphValue,
    MapValue,
    OptionalValue,
    RunSequence,
    SequenceValue,
    TextValue,
)

Key = tuple[str, str, str]


def opset_versions(imports: Iterable[OpsetProto]) -> dict[str, int]:
    """Version by domain, of a model or a function."""
    return {plain_domain(item.domain): item.version for item in imports}


def function_key(item: FunctionProto | NodeProto) -> Key:
    """What names a function, of the function or of a node that calls it."""
    name = item.op_type if hasattr(item, "op_type") else item.name
    return (plain_domain(item.domain), name, getattr(item, "overload", ""))


def has_body(domain: str, name: str, opset: int) -> bool:
    """Whether ONNX defines the operator by other operators."""
    schema = schema_of(domain, name, opset)
    return schema is not None and (schema.has_function or schema.has_context_dependent_function)


def schema_body(
    domain: str, node: NodeProto, opset: int, inputs: Sequence[GraphValue | None]
) -> FunctionProto | None:
    """ONNX's own definition of the node's operator as a FunctionProto, or None."""
    schema = schema_of(domain, node.op_type, opset)
    if schema is None:
        return None
    onnx = need_onnx()
    text = b""
    if schema.has_function:
        versions = [item for item in schema.function_opset_versions if item <= opset]
        text = schema.get_function_with_opset_version(versions[-1]) if versions else b""
    if not text and schema.has_context_dependent_function:
        available = schema.context_dependent_function_opset_versions
        versions = [item for item in available if item <= opset]
        types = [type_proto(item).SerializeToString() for item in inputs]
        if versions:
            text = schema.get_context_dependent_function_with_opset_version(
                versions[-1], node.SerializeToString(), types
            )
    if not text:
        return None
    body: FunctionProto = onnx.FunctionProto()
    body.ParseFromString(text)
    return body


def type_proto(value: GraphValue | None) -> TypeProto:
    """The TypeProto of a value; an empty one for an input that is left out."""
    onnx = need_onnx()
    helper = onnx.helper
    if value is None:
        absent: TypeProto = onnx.TypeProto()
        return absent
    if isinstance(value, SequenceValue):
        inner = value.items[0] if value.items else None
        sequence: TypeProto = helper.make_sequence_type_proto(type_proto(inner))
        return sequence
    if isinstance(value, RunSequence):
        items: TypeProto = helper.make_tensor_type_proto(value.elem or 0, None)
        listed: TypeProto = helper.make_sequence_type_proto(items)
        return listed
    if isinstance(value, OptionalValue):
        optional: TypeProto = helper.make_optional_type_proto(type_proto(value.content))
        return optional
    if isinstance(value, MapValue):
        raise OnnxNodeError("dicts can only pass through to the outputs of the model")
    tensor_value = value.index if isinstance(value, TextValue) else value
    shape = tensor_value.shape
    dims = None if shape is None else [dim if isinstance(dim, int) else str(dim) for dim in shape]
    tensor: TypeProto = helper.make_tensor_type_proto(value.elem, dims)
    return tensor


def call_attributes(
    function: FunctionProto, opset: int, attributes: Attributes
) -> dict[str, Attribute]:
    """The attributes that the nodes of a function's body may refer to."""
    from_body = {item.name: attribute_value(item) for item in function.attribute_proto}
    defaults = default_attributes(plain_domain(function.domain), function.name, opset)
    return {**defaults, **from_body, **attributes}
