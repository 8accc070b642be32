"""``save_json`` and ``load_json``: any IR as one JSON text and back, structurally the same.

The text is a flat list of entries, children before parents, so that shared variables stay shared
and depth costs no recursion. An entry is ``[kind, ...]``: ``["node", class, {field: reference}]``,
``["Array", [...]]``, ``["Map", [[key, value], ...]]`` and so on; plain values are written where
they are used. A class is named ``module:Class`` and must be a node of weft; nothing is executed,
and no other module is imported. Other values (arrays, targets) need a codec that their module
registers. Spans are left out. Pickled nodes are stored as this text, too.
"""

from __future__ import annotations

import base64
import enum
import importlib
import json
import struct
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any, Final, TypeGuard, TypeVar

import numpy as np

from weft.ir.attrs import Attrs
from weft.ir.field_types import VALUES, check_fields
from weft.ir.node import Array, Map, Node
from weft.ir.op import Op
from weft.support.dtype import DataType
from weft.support.errors import IRTypeError, IRValueError, TVMError, wrong_type
from weft.support.public_entry import public_entry

T = TypeVar("T")

Reference = bool | int | str | list[int] | None
"""A plain value, or ``[number]`` of an entry."""

FORMAT: Final = "weft-ir-1"
HIDDEN: Final = frozenset({"_cache", "_summary", "span", "__weakref__"})
_SEQUENCES: Final[dict[str, type]] = {"Array": Array, "list": list, "tuple": tuple}
_MAPPINGS: Final[dict[str, type]] = {"Map": Map, "Attrs": Attrs, "dict": dict}
Codec = Callable[[Any], object]
"""From a value to what ``json`` writes, or back."""
_CODECS: Final[dict[type, tuple[str, Codec]]] = {}
_DECODERS: Final[dict[str, Codec]] = {}


def register_codec(
    module: str, kind: type[T], encode: Callable[[T], object], decode: Callable[[Any], T]
) -> None:
    """Let JSON texts hold values of a class; ``module`` is the registering module's ``__name__``.

    ``encode`` gives what ``json`` writes; ``decode`` takes that and returns the value.
    """
    key = f"{module}:{kind.__name__}"
    VALUES[kind.__name__] = kind
    _CODECS[kind] = key, encode
    _DECODERS[key] = decode


def save_json(node: object, *, aside: Callable[[object], int | None] | None = None) -> str:
    """The JSON text of a node, or of a sequence or mapping of nodes.

    ``aside`` gives the number of a value that is kept elsewhere (the weights of a model), None for
    one that belongs into the text.
    """
    writer = _Writer(aside)
    root = writer.reference(node)
    return json.dumps({"format": FORMAT, "root": root, "entries": writer.entries})


@public_entry("load_json")
def load_json(json_str: str, *, aside: Callable[[int], object] | None = None) -> Any:
    """The node that ``save_json`` wrote; raises IRValueError for any other text.

    ``aside`` gives the values that are kept elsewhere, by their numbers.
    """
    if not isinstance(json_str, (str, bytes, bytearray)):
        raise wrong_type("load_json: expected a text", json_str)
    try:
        content = json.loads(json_str)
    except (ValueError, RecursionError) as error:
        raise IRValueError(f"load_json: expected the JSON of save_json: {error}") from error
    actual = content.get("format") if isinstance(content, dict) else type(content).__name__
    if actual != FORMAT:
        raise IRValueError(f"load_json: expected format {FORMAT!r}, got {actual!r}")
    try:
        return _Reader(content["entries"], aside).read(content["root"])
    except IRValueError:
        raise
    except Exception as error:  # any failure means that the text is damaged
        shown = f"{type(error).__name__}: {error}"[:200]
        raise IRValueError(f"load_json: the text is damaged ({shown})") from error


class _Writer:
    """Collects entries; ``reference`` gives a plain value or ``[index]`` of an entry."""

    def __init__(self, aside: Callable[[object], int | None] | None = None) -> None:
        self.aside = aside
        self.entries: list[list[object]] = []
        self.known: dict[int, int] = {}
        self.kept: list[object] = []  # keeps objects alive, so that no id is used twice

    def reference(self, root: object) -> Reference:
        """Write everything below ``root``, children first, without recursion."""
        stack = [root]
        entered: set[int] = set()
        while stack:
            value = stack[-1]
            if _is_plain(value) or id(value) in self.known:
                stack.pop()
                continue
            missing = [c for c in _children(value) if not _is_plain(c) and id(c) not in self.known]
            if missing:
                if id(value) in entered:
                    raise IRTypeError(f"save_json: a {type(value).__name__} that contains itself")
                entered.add(id(value))
                stack.extend(reversed(missing))
                continue
            stack.pop()
            self.known[id(value)] = len(self.entries)
            self.kept.append(value)
            self.entries.append(self.entry(value))
        return self.short(root)

    def short(self, value: object) -> Reference:
        return value if _is_plain(value) else [self.known[id(value)]]

    def entry(self, value: object) -> list[object]:
        kind = type(value)
        if isinstance(value, Op):
            return ["Op", value.name]
        if isinstance(value, Node):
            fields = {name: self.short(item) for name, item in _fields(value)}
            return ["node", _class_name(kind), fields]
        if kind.__name__ in _SEQUENCES and isinstance(value, (tuple, list)):
            return [kind.__name__, [self.short(item) for item in value]]
        if kind.__name__ in _MAPPINGS and isinstance(value, dict):
            pairs = [[self.short(key), self.short(item)] for key, item in value.items()]
            return [kind.__name__, pairs]
        if isinstance(value, enum.Enum):
            return ["enum", _class_name(kind), value.name]
        if isinstance(value, DataType):
            return ["DataType", str(value)]
        if isinstance(value, float):
            return ["float", struct.pack("<d", value).hex()]
        if isinstance(value, bytes):
            return ["bytes", base64.b64encode(value).decode("ascii")]
        if isinstance(value, (np.generic, np.ndarray)):
            raw = base64.b64encode(np.ascontiguousarray(value).tobytes()).decode("ascii")
            return ["numpy", value.dtype.str, list(value.shape), raw]
        codec = _CODECS.get(kind)
        if codec is not None:
            number = None if self.aside is None else self.aside(value)
            if number is not None:
                return ["aside", number]
            return ["value", codec[0], codec[1](value)]
        raise IRTypeError(
            f"save_json: a {kind.__module__}.{kind.__name__} cannot be written as JSON; expected "
            "nodes, numbers, texts, arrays, and lists or maps of them"
        )


def _is_plain(value: object) -> TypeGuard[bool | int | str | None]:
    return value is None or type(value) in (bool, int, str)


def _class_name(kind: type) -> str:
    return f"{kind.__module__}:{kind.__name__}"


def _children(value: object) -> list[object]:
    if isinstance(value, Op):
        return []
    if isinstance(value, Node):
        return [item for _, item in _fields(value)]
    if isinstance(value, (list, tuple)):
        return list(value)
    if isinstance(value, dict):
        return [*value.keys(), *value.values()]
    return []


def _fields(item: Node) -> list[tuple[str, object]]:
    """The name and value of every slot that is set, derived ones included."""
    fields = []
    for name in sorted(type(item)._all_slots_ - HIDDEN):
        try:
            fields.append((name, object.__getattribute__(item, name)))
        except AttributeError:  # a slot that was never filled
            continue
    return fields


class _Reader:
    """Builds the entries in order; references point backwards."""

    def __init__(self, entries: list[Any], aside: Callable[[int], object] | None = None) -> None:
        self.values: list[object] = []
        self.aside = aside
        for entry in entries:
            self.values.append(self.build(*entry))

    def read(self, reference: object) -> object:
        return self.values[reference[0]] if isinstance(reference, list) else reference

    def build(self, kind: str, *parts: Any) -> object:
        if kind == "node":
            return self.node(*parts)
        if kind in _SEQUENCES:
            return _SEQUENCES[kind]([self.read(item) for item in parts[0]])
        if kind in _MAPPINGS:
            return _MAPPINGS[kind]({self.read(key): self.read(item) for key, item in parts[0]})
        if kind == "value":
            return _decoder(parts[0])(parts[1])
        if kind == "aside":
            if self.aside is None:
                raise IRValueError("load_json: the text leaves out values that stand elsewhere")
            return self.aside(parts[0])
        if kind == "enum":
            return _class_of(parts[0], enum.Enum)[parts[1]]
        if kind == "numpy":
            content = np.frombuffer(base64.b64decode(parts[2]), np.dtype(parts[0]))
            shaped = content.reshape(parts[1]).copy()
            return shaped if parts[1] else shaped[()]
        plain = _PLAIN.get(kind)
        if plain is None:
            raise IRValueError(f"load_json: unknown kind of entry {kind!r}")
        return plain(parts[0])

    def node(self, name: str, fields: Mapping[str, object]) -> Node:
        kind = _class_of(name, Node)
        item: Node = object.__new__(kind)
        item._cache, item._summary, item.span = None, 0, None
        slots = kind._all_slots_ - HIDDEN
        given = {
            field: self.read(reference)
            for field, reference in fields.items()
            if not isinstance(getattr(kind, field, None), property)  # texts before it was computed
        }
        for field, value in given.items():
            if field not in slots:
                raise IRValueError(f"load_json: {name} has no field {field!r}")
            setattr(item, field, value)
        try:
            check_fields(item, given)
            item._check_()
        except TVMError as error:
            raise IRValueError(f"load_json: node {len(self.values)}, {error}") from error
        self.derived(item, given)
        for field in slots:
            if not hasattr(item, field):
                raise IRValueError(
                    f"load_json: node {len(self.values)}, {kind.__name__}: its field {field} is "
                    "missing"
                )
        return item

    def derived(self, item: Node, given: Mapping[str, object]) -> None:
        """Set derived fields from the text; one that follows from other fields must agree."""
        for field, value in given.items():
            derived = getattr(item, field)
            if derived is value:
                continue
            if isinstance(derived, DataType) or type(derived) is not type(value):
                if derived is not None:
                    raise IRValueError(
                        f"load_json: node {len(self.values)}, {type(item).__name__}: expected "
                        f"{derived} in its field {field}, which follows from the others, got "
                        f"{value}"
                    )
            setattr(item, field, value)


_OPERATORS: Final = {
    "relax": ("weft.relax.op",),
    "tir": ("weft.tir.intrinsic", "weft.tir.device_intrinsic"),
}
"""Dialect -> the modules that define its operators, as the first part of their names says."""


def _operator(name: str) -> Op:
    """The operator of that name, whose module may not have been imported yet."""
    for module in _OPERATORS.get(name.partition(".")[0], ()):
        importlib.import_module(module)
    return Op.get(name)


_PLAIN: Final[dict[str, Callable[[str], object]]] = {
    "Op": _operator,
    "DataType": DataType,
    "float": lambda text: struct.unpack("<d", bytes.fromhex(text))[0],
    "bytes": base64.b64decode,
}


def _import(name: str) -> tuple[ModuleType, str]:
    module, _, attribute = name.partition(":")
    if module.partition(".")[0] != "weft":
        raise IRValueError(f"load_json: {name!r} is no class of weft")
    try:
        return importlib.import_module(module), attribute
    except ModuleNotFoundError as error:
        raise IRValueError(f"load_json: this weft has no module {module}") from error


def _class_of(name: str, base: type[T]) -> type[T]:
    module, attribute = _import(name)
    kind = vars(module).get(attribute)
    if not (isinstance(kind, type) and issubclass(kind, base)):
        raise IRValueError(f"load_json: {name!r} is no {base.__name__} of this weft")
    return kind


def _decoder(key: str) -> Codec:
    _import(key)
    if key not in _DECODERS:
        raise IRValueError(f"load_json: nothing reads values of kind {key!r}")
    return _DECODERS[key]
