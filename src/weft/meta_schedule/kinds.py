"""Parts of tuning by the names of their kinds: ``Database.create("json")``, ``builder="local"``."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from weft.support.errors import IRValueError

T = TypeVar("T")


def class_of_kind(
    base: Callable[..., T], table: Mapping[str, str], kind: object
) -> Callable[..., T]:
    """The subclass of ``base`` that a kind names in a table, for ``base.create``."""
    chosen: Callable[..., T] = place_of_kind(table, kind, f"{base.__name__}.create")
    return chosen


def place_of_kind(table: Mapping[str, str], kind: object, what: str) -> Any:
    """The class or function that a kind names, whose module is imported now.

    Args:
        table: kind -> "module:name".
        kind: what the user gave.
        what: what it is a kind of, for the message.
    """
    place = table.get(kind) if isinstance(kind, str) else None
    if place is None:
        raise IRValueError(
            f"{what}: expected a kind of {', '.join([repr(name) for name in table])}, got {kind!r}"
        )
    module, _, name = place.partition(":")
    return getattr(importlib.import_module(module), name)
