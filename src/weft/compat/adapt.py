"""The slot ``legacy``: old names and old forms of calls, from the table of spellings.

Lower packages ask only after their own lookup or binding has failed, and retry a call once with
what ``adapt`` returns. Adapters are imported when needed; importing this module loads tables only.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any, Final

from weft.compat.spellings import CALLS, KEYWORDS, NAMES, PARTS, REMOVED, Removed
from weft.ir.node import Node
from weft.support import slots
from weft.support.errors import IRAttributeError

Adapted = tuple[tuple[Any, ...], dict[str, Any]]
"""The arguments of a call as today's function takes them."""


class Legacy:
    """The object in the slot."""

    def __init__(self) -> None:
        self._names: Final = {(row.owner, row.old): row for row in NAMES}
        self._removed: Final = {(row.owner, row.old): row for row in REMOVED}

    def attribute(self, package: str, name: str) -> tuple[bool, object]:
        """``(True, value)`` if the module had that name in another release.

        Raises IRAttributeError for a name that was removed, naming what replaced it.
        """
        row = self._names.get((package, name))
        if row is not None:
            return True, load(row.new)
        gone = self._removed.get((package, name))
        if gone is not None:
            raise IRAttributeError(removed_message(gone))
        renamed = today(name)
        if renamed is not None:
            value = getattr(sys.modules[package], renamed, None)
            return value is not None, value
        return False, None

    def old_names(self, package: str) -> set[str]:
        """The names a module had in other releases, for errors that suggest the nearest one."""
        return {old for owner, old in self._names if owner == package}

    def adapt(
        self, what: str, args: tuple[object, ...], kwargs: dict[str, object]
    ) -> Adapted | Node | None:
        """Today's ``(args, kwargs)`` or the finished node, for a call that could not be bound."""
        renamed = {KEYWORDS.get(key, key): value for key, value in kwargs.items()}
        if what in CALLS:
            adapted: Adapted | Node | None = load(CALLS[what][0])(args, renamed)
            if adapted is not None:
                return adapted
        return (args, renamed) if renamed.keys() != kwargs.keys() else None


def today(name: str) -> str | None:
    """The name as 0.20 has it, with its renamed parts replaced; None if it has no such part."""
    for old, new in PARTS:
        if old in name:
            return name.replace(old, new)
    return None


def load(target: str) -> Any:
    """The module, or the object of a module, that a row of the table names."""
    module, _, attribute = target.partition(":")
    owner = importlib.import_module(module)
    return getattr(owner, attribute) if attribute else owner


def removed_message(row: Removed) -> str:
    """The message for a name that was removed."""
    return f"{row.owner}.{row.old} is gone (last in TVM {row.last}); use {row.instead}"


slots.legacy.fill(Legacy())
