"""The parts of ONNX's messages and schemas that the importer reads, as types.

``onnx`` is an optional package without types of its own, and its messages are made when it is
imported. The names are those of onnx.proto; what is not read here is left out.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableSequence, Sequence
from typing import Protocol, TypeAlias

import numpy as np


class Message(Protocol):
    """What every message of protobuf has."""

    @property
    def DESCRIPTOR(self) -> Descriptor:  # noqa: N802 - protobuf's name
        """The fields of the message's kind."""

    def HasField(self, name: str) -> bool:  # noqa: N802 - protobuf's name
        """Whether the field was given."""

    def WhichOneof(self, group: str) -> str | None:  # noqa: N802 - protobuf's name
        """The field of a group that was given."""

    def CopyFrom(self, other: Message) -> None:  # noqa: N802 - protobuf's name
        """Take over the fields of another message of the kind."""

    def ParseFromString(self, data: bytes) -> int:  # noqa: N802 - protobuf's name
        """Read the message from its bytes."""

    def SerializeToString(self, *, deterministic: bool = False) -> bytes:  # noqa: N802 - its name
        """The bytes of the message."""


class Descriptor(Protocol):
    """The kind of a message."""

    def __hash__(self) -> int: ...

    name: str
    fields: Sequence[FieldDescriptor]


class FieldDescriptor(Protocol):
    """A field of a kind of messages."""

    name: str
    type: int
    label: int
    TYPE_STRING: int
    TYPE_MESSAGE: int
    LABEL_REPEATED: int


class DimensionProto(Message, Protocol):
    """A dimension: a number, or the name of a symbol."""

    dim_value: int
    dim_param: str


class ShapeProto(Message, Protocol):
    """A shape."""

    dim: Sequence[DimensionProto]


class TensorTypeProto(Message, Protocol):
    """The element type and the shape of a tensor."""

    elem_type: int
    shape: ShapeProto


class OptionalTypeProto(Message, Protocol):
    """The type of what an optional holds."""

    elem_type: TypeProto


class SequenceTypeProto(Message, Protocol):
    """The type of the items of a sequence."""

    elem_type: TypeProto


class TypeProto(Message, Protocol):
    """The type of a value; ``tensor_type`` is given if it is a tensor."""

    tensor_type: TensorTypeProto
    optional_type: OptionalTypeProto
    sequence_type: SequenceTypeProto


class ValueInfoProto(Message, Protocol):
    """A name and the type of what it stands for."""

    name: str
    type: TypeProto


class TensorProto(Message, Protocol):
    """A tensor with its elements."""

    name: str
    dims: Sequence[int]
    data_type: int
    data_location: int
    string_data: Sequence[bytes]


class SparseTensorProto(Message, Protocol):
    """A tensor of which only the elements that are not zero are written."""

    values: TensorProto
    indices: TensorProto
    dims: Sequence[int]


class AttributeProto(Message, Protocol):
    """An attribute of a node; ``ref_attr_name`` refers to one of the function's call."""

    name: str
    type: int
    ref_attr_name: str
    i: int
    s: bytes
    strings: Sequence[bytes]
    t: TensorProto
    tensors: Sequence[TensorProto]
    g: GraphProto
    graphs: Sequence[GraphProto]


class NodeProto(Message, Protocol):
    """A call of an operator."""

    name: str
    domain: str
    op_type: str
    input: Sequence[str]
    output: Sequence[str]
    attribute: MutableSequence[AttributeProto]


class GraphProto(Message, Protocol):
    """A graph: nodes in order, and what they read."""

    name: str
    node: MutableSequence[NodeProto]
    input: MutableSequence[ValueInfoProto]
    output: Sequence[ValueInfoProto]
    value_info: Sequence[ValueInfoProto]
    initializer: Sequence[TensorProto]
    sparse_initializer: Sequence[SparseTensorProto]


class OpsetProto(Message, Protocol):
    """The version of a domain's operators that a model uses."""

    domain: str
    version: int


class FunctionProto(Message, Protocol):
    """An operator that is defined by other operators."""

    name: str
    domain: str
    input: Sequence[str]
    output: Sequence[str]
    node: Sequence[NodeProto]
    opset_import: Sequence[OpsetProto]
    attribute_proto: Sequence[AttributeProto]


class ModelProto(Message, Protocol):
    """A model."""

    ir_version: int
    graph: GraphProto
    functions: Sequence[FunctionProto]
    opset_import: Sequence[OpsetProto]


Attribute: TypeAlias = (
    int | float | str | np.ndarray | GraphProto | SparseTensorProto | TypeProto
    | Sequence["Attribute"]
)  # fmt: skip
"""An attribute as Python has it: tensors are arrays, graphs stay messages."""
Attributes = Mapping[str, Attribute]
"""The attributes of a node by name."""


class Option(Protocol):
    """How often a parameter stands in a node: ``Single``, ``Optional`` or ``Variadic``."""

    name: str


class FormalParameter(Protocol):
    """An input or output of an operator, as its schema has it."""

    name: str
    type_str: str
    option: Option


class FormalAttribute(Protocol):
    """An attribute of an operator, as its schema has it."""

    type: object
    required: bool
    default_value: AttributeProto


class OpSchema(Protocol):
    """What ONNX says of an operator from one opset on."""

    attributes: Mapping[str, FormalAttribute]
    inputs: Sequence[FormalParameter]
    outputs: Sequence[FormalParameter]
    min_input: int
    max_input: int
    has_function: bool
    has_context_dependent_function: bool
    function_opset_versions: Sequence[int]
    context_dependent_function_opset_versions: Sequence[int]

    def get_function_with_opset_version(self, version: int) -> bytes:
        """The body of the operator's function."""

    def get_context_dependent_function_with_opset_version(
        self, version: int, node: bytes, types: Sequence[bytes]
    ) -> bytes:
        """The body of the operator's function for a node with inputs of these types."""
