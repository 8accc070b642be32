"""Docs of attribute values: plain Python values, nodes, and values that need metadata."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Final

from weft.ir.expr import FloatImm, IntImm, StringImm
from weft.ir.global_info import VDevice
from weft.ir.node import Node
from weft.runtime.device import Device
from weft.runtime.ndarray import NDArray
from weft.script.printer.doc import CallDoc, DictDoc, ExprDoc, ListDoc, LiteralDoc
from weft.script.printer.docsifier import Docsifier
from weft.support.errors import TVMError


def mapping_doc(mapping: Mapping[Any, object], d: Docsifier) -> DictDoc:
    """``{key: value}``; keys that are text are sorted, as TVM prints them."""
    keys = list(mapping)
    if not [key for key in keys if not isinstance(key, str)]:
        keys.sort()
    return DictDoc(
        [attribute_doc(key, d) for key in keys], [attribute_doc(mapping[key], d) for key in keys]
    )


def attribute_doc(value: object, d: Docsifier) -> ExprDoc:
    """The doc of a value; typed constants keep their type, as they differ from plain numbers."""
    if isinstance(value, bool) and not d.relax_mode:
        return CallDoc(d.tir("bool"), (LiteralDoc(value),))
    if value is None or isinstance(value, bool | int):
        return LiteralDoc(value)
    if isinstance(value, str):
        return LiteralDoc(str(value))
    if isinstance(value, float):
        return LiteralDoc(value) if math.isfinite(value) else d.add_metadata("float", value)
    if isinstance(value, list | tuple):
        return ListDoc([attribute_doc(item, d) for item in value])
    if isinstance(value, Mapping):
        return mapping_doc(value, d)
    if isinstance(value, NDArray):
        return d.add_metadata("runtime.NDArray", value)
    if isinstance(value, Node):
        return _node_doc(value, d)
    special = SPECIAL.get(type(value).__name__)
    if special is not None:
        return special(value, d)
    return d.add_metadata(type(value).__name__, value)


def _node_doc(value: Node, d: Docsifier) -> ExprDoc:
    if isinstance(value, IntImm):
        literal = bool(value.value) if value.dtype.is_bool else value.value
        return CallDoc(d.tir(value.dtype), (LiteralDoc(literal),))
    if isinstance(value, FloatImm):
        return CallDoc(d.tir(value.dtype), (LiteralDoc(value.value),))
    if isinstance(value, StringImm):
        return CallDoc(d.tir("StringImm"), (LiteralDoc(value.value),))
    special = SPECIAL.get(type(value).__name__)
    if special is not None:
        return special(value, d)
    return d.expr(value)


def _target(value: object, d: Docsifier) -> ExprDoc:
    export = getattr(value, "export", None)
    try:
        content: object = export() if export is not None else str(value)
    except TVMError:
        content = str(value)
    return CallDoc(d.tir("target"), (attribute_doc(content, d),))


def _vdevice(value: VDevice, d: Docsifier) -> ExprDoc:
    target = value.target
    args: list[ExprDoc] = [attribute_doc(_target_content(target), d)]
    args += [LiteralDoc(int(value.vdevice_id)), LiteralDoc(str(value.memory_scope))]
    return CallDoc(d.ir("vdevice"), args)


def _target_content(target: object) -> object:
    export = getattr(target, "export", None)
    return export() if export is not None else str(target)


def _device(value: Device, d: Docsifier) -> ExprDoc:
    return CallDoc(d.relax("device"), (LiteralDoc(value.device_type), LiteralDoc(value.device_id)))


SPECIAL: Final[dict[str, Callable[[Any, Docsifier], ExprDoc]]] = {
    "Device": _device, "Target": _target, "VDevice": _vdevice,
    "DummyGlobalInfo": lambda value, d: CallDoc(d.ir("dummy_global_info")),
}  # fmt: skip
