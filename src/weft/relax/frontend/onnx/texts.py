"""Texts of a model that are no UTF-8: protobuf gives them as bytes, where names are expected.

A byte that is flipped in a file may make such a text of a name. What only describes a model to
people (``doc_string``, the producer) is not looked at: nothing is computed from it.
"""

from __future__ import annotations

import functools
from typing import Final

from weft.relax.frontend.onnx.errors import OnnxModelError
from weft.relax.frontend.onnx.protos import Descriptor, FieldDescriptor, Message, ModelProto

_DESCRIBING: Final = frozenset({
    "doc_string", "producer_name", "producer_version", "metadata_props", "model_version",
})  # fmt: skip


def check_texts(model: ModelProto) -> None:
    """Raise OnnxModelError for a text of a model, of any graph or function in it, that is none.

    It looks through all fields of the format's type ``string``, whatever message they stand
    in: those of attributes with graphs, of sparse tensors and of training information too.
    """
    todo: list[tuple[Message, str]] = [(model, "")]
    while todo:
        message, path = todo.pop()
        for name, is_text, is_repeated in _fields_of(message.DESCRIPTOR):
            value = getattr(message, name)
            if is_text:
                for text in value if is_repeated else (value,):
                    if isinstance(text, bytes):
                        raise _no_text(f"{path}{name}", message, text)
            elif is_repeated:
                todo += [(item, f"{path}{name}[{i}].") for i, item in enumerate(value)]
            elif message.HasField(name):
                todo.append((value, f"{path}{name}."))


@functools.cache
def _fields_of(descriptor: Descriptor) -> tuple[tuple[str, bool, bool], ...]:
    """``(name, holds texts, is repeated)`` of the fields that hold texts or messages."""
    fields = []
    for field in descriptor.fields:
        is_text = field.type == field.TYPE_STRING
        if (is_text or field.type == field.TYPE_MESSAGE) and field.name not in _DESCRIBING:
            fields.append((field.name, is_text, _is_repeated(field)))
    return tuple(fields)


def _is_repeated(field: FieldDescriptor) -> bool:
    known = getattr(field, "is_repeated", None)  # protobuf 6; before that a label
    return bool(field.label == field.LABEL_REPEATED if known is None else known)


def _no_text(path: str, message: Message, text: bytes) -> OnnxModelError:
    kind = message.DESCRIPTOR.name.removesuffix("Proto")
    name = getattr(message, "name", "")
    called = f" {name!r}" if isinstance(name, str) and name else ""
    return OnnxModelError(
        f"from_onnx: expected UTF-8 text in {path} of {kind}{called}, got {text[:60]!r}; the file "
        "is damaged, or its exporter wrote names in another encoding: export the model again"
    )
