"""Operators that are defined by other operators: functions of the model, and ONNX's own.

An operator without a converter whose schema has a function body is translated as that body.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from weft.relax.frontend.onnx.attributes import attribute_value, default_attributes, schema_of
from weft.relax.frontend.onnx.errors import need_onnx
from weft.relax.frontend.onnx.registry import plain_domain
from weft.relax.frontend.onnx.value import OptionalValue, SequenceValue, Value

Key = tuple[str, str, str]


def opset_versions(imports: Sequence[Any]) -> dict[str, int]:
    """Version by domain, of a model or a function."""
    return {plain_domain(item.domain): item.version for item in imports}


def function_key(item: Any) -> Key:
    """What names a function, of the function or of a node that calls it."""
    name = item.op_type if hasattr(item, "op_type") else item.name
    return (plain_domain(item.domain), name, getattr(item, "overload", ""))


def has_body(domain: str, name: str, opset: int) -> bool:
    """Whether ONNX defines the operator by other operators."""
    schema = schema_of(domain, name, opset)
    return schema is not None and (schema.has_function or schema.has_context_dependent_function)


def schema_body(domain: str, node: Any, opset: int, inputs: Sequence[Any]) -> Any:
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
    body = onnx.FunctionProto()
    body.ParseFromString(text)
    return body


def type_proto(value: Any) -> Any:
    """The TypeProto of a value; an empty one for an input that is left out."""
    onnx = need_onnx()
    helper = onnx.helper
    if value is None:
        return onnx.TypeProto()
    if isinstance(value, SequenceValue):
        inner = value.items[0] if value.items else None
        return helper.make_sequence_type_proto(type_proto(inner))
    if isinstance(value, OptionalValue):
        return helper.make_optional_type_proto(type_proto(value.content))
    assert isinstance(value, Value)
    shape = value.shape
    dims = None if shape is None else [dim if isinstance(dim, int) else str(dim) for dim in shape]
    return helper.make_tensor_type_proto(value.elem, dims)


def call_attributes(function: Any, opset: int, given: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes that the nodes of a function's body may refer to."""
    from_body = {item.name: attribute_value(item) for item in function.attribute_proto}
    defaults = default_attributes(plain_domain(function.domain), function.name, opset)
    return {**defaults, **from_body, **given}
