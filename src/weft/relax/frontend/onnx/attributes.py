"""Attributes of nodes as Python values, with the defaults of the operator's schema."""

from __future__ import annotations

import functools

import numpy as np

from weft.relax.frontend.onnx.errors import OnnxModelError, need_onnx
from weft.relax.frontend.onnx.protos import (
    Attribute,
    AttributeProto,
    Attributes,
    NodeProto,
    OpSchema,
)
from weft.relax.frontend.onnx.tensors import tensor_array


def attribute_value(attribute: AttributeProto) -> Attribute:
    """An attribute as Python has it: numbers, text, lists, numpy arrays; graphs as they are.

    Raises OnnxModelError for one that says no type, or one that this onnx does not know.
    """
    onnx = need_onnx()
    known = onnx.AttributeProto.AttributeType.values()
    if attribute.type == onnx.AttributeProto.UNDEFINED or attribute.type not in known:
        raise OnnxModelError(
            f"attribute {attribute.name!r:.60}: expected a type of AttributeProto, found "
            f"{attribute.type}; the file is damaged: export the model again"
        )
    value = onnx.helper.get_attribute_value(attribute)
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    if isinstance(value, onnx.TensorProto):
        return tensor_array(value, "the tensor of an attribute,")
    if attribute.type == onnx.AttributeProto.STRINGS:
        return [item.decode("utf-8", "surrogateescape") for item in value]
    if hasattr(value, "__iter__") and not isinstance(value, str):
        return list(value)
    plain: Attribute = value
    return plain


@functools.lru_cache(maxsize=4096)
def schema_of(domain: str, name: str, opset: int) -> OpSchema | None:
    """The operator's schema in that opset, or None."""
    onnx = need_onnx()
    if not 0 <= opset < 1 << 31:
        return None
    try:
        schema: OpSchema = onnx.defs.get_schema(name, opset, domain)
    except onnx.defs.SchemaError:
        return None
    return schema


@functools.lru_cache(maxsize=4096)
def default_attributes(domain: str, name: str, opset: int) -> Attributes:
    """The defaults that the schema of that opset gives."""
    schema = schema_of(domain, name, opset)
    if schema is None:
        return {}
    onnx = need_onnx()
    undefined = onnx.AttributeProto.UNDEFINED
    return {
        key: attribute_value(attribute.default_value)
        for key, attribute in schema.attributes.items()
        if attribute.default_value.type != undefined
    }


def node_attributes(node: NodeProto, outer: Attributes) -> dict[str, Attribute]:
    """The attributes that a node gives, by name.

    ``outer`` are those of the call of the function that the node stands in: an attribute that
    refers to one that the call leaves out is left out too.
    """
    attributes: dict[str, Attribute] = {}
    for attribute in node.attribute:
        if attribute.ref_attr_name:
            if attribute.ref_attr_name in outer:
                attributes[attribute.name] = outer[attribute.ref_attr_name]
        else:
            attributes[attribute.name] = attribute_value(attribute)
    return attributes


def with_attributes(node: NodeProto, outer: Attributes) -> NodeProto:
    """The node with its own values in the place of references to the attributes of a call.

    An attribute that refers to one that the call leaves out is left out.
    """
    if not any(attribute.ref_attr_name for attribute in node.attribute):
        return node
    resolved: NodeProto = need_onnx().NodeProto()
    resolved.CopyFrom(node)
    del resolved.attribute[:]
    for attribute in node.attribute:
        if not attribute.ref_attr_name:
            resolved.attribute.append(attribute)
        elif attribute.ref_attr_name in outer:
            value = outer[attribute.ref_attr_name]
            if isinstance(value, np.ndarray):
                value = need_onnx().numpy_helper.from_array(value)
            resolved.attribute.append(_of_call(attribute, value))
    return resolved


def _of_call(attribute: AttributeProto, value: Attribute) -> AttributeProto:
    """An attribute with the value that a call gives for the one that it refers to."""
    onnx = need_onnx()
    try:
        own: AttributeProto = onnx.helper.make_attribute(
            attribute.name, value, attr_type=attribute.type
        )
    except (TypeError, ValueError, OverflowError) as error:
        raise OnnxModelError(
            f"attribute {attribute.name!r:.60} of a function's body refers to the attribute "
            f"{attribute.ref_attr_name!r:.60} of its call, whose value it cannot have: "
            f"{str(error).splitlines()[0][:120]}"
        ) from error
    return own
