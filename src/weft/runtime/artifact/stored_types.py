"""Values from a file against the annotations of the data classes that hold them.

JSON says nothing of types: where a file was damaged, a number may stand in the place of a name.
:func:`check_stored` asks of every field of a data class, and of those in it, what its annotation
says. Which numbers make sense together is for others to ask (weft.runtime.vm.bytecode_checks).
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Callable, Mapping
from typing import Any, Final

from weft.support.errors import IRTypeError

Check = Callable[[object], bool]
_KNOWN: Final[dict[type, list[tuple[str, str, Check]]]] = {}


def check_stored(value: object) -> None:
    """Raise IRTypeError for a field that holds what its annotation does not name.

    >>> @dataclasses.dataclass
    ... class Point:
    ...     x: int
    >>> check_stored(Point(1))
    >>> check_stored(Point("1"))
    Traceback (most recent call last):
    ...
    weft.support.errors.IRTypeError: Point: expected int in its field x, got '1'
    """
    for name, text, holds in _checks_of(type(value)):
        stored = getattr(value, name)
        if not holds(stored):
            raise IRTypeError(
                f"{type(value).__name__}: expected {text} in its field {name}, got {stored!r:.60}"
            )


def _checks_of(kind: type) -> list[tuple[str, str, Check]]:
    """``(field, its annotation, its check)`` of a data class."""
    checks = _KNOWN.get(kind)
    if checks is None:
        hints = typing.get_type_hints(kind)
        checks = _KNOWN[kind] = [
            (field.name, str(field.type), _check_of(hints[field.name]))
            for field in dataclasses.fields(kind)
        ]
    return checks


def _check_of(hint: Any) -> Check:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if hint is Any:
        return lambda value: True
    if origin is typing.Literal:
        return lambda value: isinstance(value, str) and value in arguments
    if origin in (typing.Union, types.UnionType):
        checks = [_check_of(item) for item in arguments]
        return lambda value: any(check(value) for check in checks)
    if origin is tuple:
        return _tuple_check(arguments)
    if hint is None or hint is types.NoneType:
        return lambda value: value is None
    kind: type = origin or hint
    if dataclasses.is_dataclass(kind):
        return lambda value: isinstance(value, kind) and _is_stored(value)
    if issubclass(kind, Mapping):
        return lambda value: isinstance(value, Mapping)
    return lambda value: isinstance(value, kind)


def _tuple_check(arguments: tuple[object, ...]) -> Check:
    if len(arguments) == 2 and arguments[1] is Ellipsis:
        item = _check_of(arguments[0])
        return lambda value: isinstance(value, tuple) and all(item(x) for x in value)
    checks = [_check_of(item) for item in arguments]
    return lambda value: (
        isinstance(value, tuple)
        and len(value) == len(checks)
        and all(check(x) for check, x in zip(checks, value, strict=True))
    )


def _is_stored(value: object) -> bool:
    return all(holds(getattr(value, name)) for name, _, holds in _checks_of(type(value)))
