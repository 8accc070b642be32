"""Checks the fields of nodes that are read from a text, by the annotations of the fields.

Constructors convert their arguments; :func:`check_fields` requires that a value already is what
the constructor would store. An annotation is a union of class names, ``Array[...]`` and
``Map[..., ...]``; where it says ``Any``, ``field(stored=...)`` may say more. Names are looked up in
the module that declares the field, and then among all node classes, since a lower level cannot
import those of a higher one.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Final

import numpy as np

from weft.ir.attrs import Attrs
from weft.ir.node import NODE_CLASSES, Array, Map, Node, cached_by_class
from weft.ir.node_code import CONVERSIONS
from weft.support.dtype import DataType
from weft.support.errors import InternalError, IRTypeError

Check = Callable[[object], bool]

_PLAIN: Final[dict[str, tuple[type, ...]]] = {
    "str": (str,), "int": (int, np.integer), "bool": (bool, np.bool_), "float": (float, int),
    "None": (type(None),), "object": (object,), "DataType": (DataType,), "Attrs": (Attrs,),
    "dict": (dict,),
}  # fmt: skip
VALUES: Final[dict[str, type]] = {}
"""Name -> class of values, other than nodes, that texts may hold (``register_codec``)."""
_SLOTS: Final = {"dtype": "DataType"}
"""Slots without a declaration of their own -> what they hold."""


def check_fields(node: Node, given: Mapping[str, object]) -> None:
    """Raise IRTypeError for a field that is missing, or that holds what it cannot.

    The message names the class, the field, what it takes and what was given::

        Buffer: expected PrimExpr in its field elem_offset, got int 5
    """
    kind = type(node)
    for name in kind.INIT_FIELDS:
        if name not in given:
            raise IRTypeError(f"{kind.__name__}: its field {name} is missing")
    checks = checks_of(kind)
    for name, value in given.items():
        text, holds = checks[name]
        if not holds(value):
            raise IRTypeError(
                f"{kind.__name__}: expected {text} in its field {name}, got {_shown(value)}"
            )


@cached_by_class
def checks_of(kind: type[Node]) -> Mapping[str, tuple[str, Check]]:
    """For a node class: slot -> its annotation, and the check of a value."""
    checks: dict[str, tuple[str, Check]] = {}
    for base in reversed(kind.__mro__):
        for spec in base.__dict__.get("_own_", ()):
            text = spec.stored or spec.annotation
            checks[spec.name] = text, _check_of(text, base.__module__)
    for name in kind._all_slots_ - checks.keys():
        text = _SLOTS.get(name, "Any")
        checks[name] = text, _check_of(text, kind.__module__)
    return checks


def _check_of(text: str, module: str) -> Check:
    """The check of an annotation, whose names are those of a module."""
    checks = [_check_of_part(part, module) for part in _parts(text, "|")]
    return checks[0] if len(checks) == 1 else lambda value: any(check(value) for check in checks)


def _check_of_part(text: str, module: str) -> Check:
    head, bracket, rest = text.partition("[")
    if head in ("Any", "Callable"):
        return lambda value: head == "Any"  # a Python function cannot come from a text
    if not bracket:
        classes = classes_named(head, module)
        if not classes:
            return lambda value: isinstance(value, Node) and _is_called(type(value), head)
        return lambda value: isinstance(value, classes)
    inner = [_check_of(part, module) for part in _parts(rest.removesuffix("]"), ",")]
    if head == "Array":
        [item] = inner
        return lambda value: type(value) is Array and all(item(x) for x in value)
    if head in ("Map", "dict"):
        return _mapping_check(Map if head == "Map" else dict, *inner)
    raise InternalError(f"field_types: nothing is known of the annotation {text!r}")


def _mapping_check(kind: type[dict[object, object]], key: Check, content: Check) -> Check:
    def holds(value: object) -> bool:
        if not isinstance(value, kind):
            return False
        return all(key(k) and content(item) for k, item in value.items())

    return holds


def _parts(text: str, between: str) -> Iterator[str]:
    """The parts of an annotation, split where no bracket is open.

    >>> list(_parts("Map[str, int] | None", "|"))
    ['Map[str, int]', 'None']
    """
    depth = start = 0
    for place, character in enumerate(text):
        depth += (character == "[") - (character == "]")
        if character == between and depth == 0:
            yield text[start:place].strip()
            start = place + 1
    yield text[start:].strip()


def _is_called(kind: type, name: str) -> bool:
    """Whether a class, or a base class of it, has the name."""
    return any(base.__name__ == name for base in kind.__mro__)


def classes_named(name: str, module: str) -> tuple[type, ...]:
    """The classes that a name means in a module; none if their module is not imported."""
    if name in _PLAIN:
        return _PLAIN[name]
    if name == "Node":
        return (Node,)
    named = vars(sys.modules[module]).get(name)
    if isinstance(named, type):
        accepted = CONVERSIONS.get(name, (named, None))[0]
        return (accepted if issubclass(named, accepted) else named,)
    if name in VALUES:
        return (VALUES[name],)
    return tuple([kind for kind in NODE_CLASSES if kind.__name__ == name])


def _shown(value: object) -> str:
    """The value of a field in few words, for messages."""
    name = type(value).__name__
    if value is None:
        return "None"
    if isinstance(value, (bool, int, float, str)):
        return f"{name} {value!r:.40}"
    if isinstance(value, (tuple, Mapping)):
        inner = sorted({type(item).__name__ for item in value})[:4]
        return f"{name} of {len(value)} ({', '.join(inner)})" if inner else f"an empty {name}"
    return name
