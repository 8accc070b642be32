"""Attributes that an object has not: spellings of other years, else an error naming the nearest.

A class that users hold defines ``__getattr__`` by one call of ``missing_attribute``; Python calls
it only after the normal lookup has failed, so names of today pay nothing.
"""

from __future__ import annotations

import difflib
from typing import Any

from weft.support import slots
from weft.support.errors import IRAttributeError


class MissingAttributeError(IRAttributeError):
    """An object has no such attribute. The nearest names are looked for when the text is read."""

    def __init__(self, owner: object, name: str) -> None:
        self.owner_type, self.attribute = type(owner), name
        super().__init__(name)

    def __str__(self) -> str:
        """What is missing, and what there is."""
        public = {key for key in dir(self.owner_type) if not key.startswith("_")}
        public |= slots.legacy.get().old_members(self.owner_type)
        nearest = difflib.get_close_matches(self.attribute, sorted(public), n=3)
        hint = f"; did you mean {', '.join(nearest)}?" if nearest else ""
        return f"{self.owner_type.__name__!r} object has no attribute {self.attribute!r}{hint}"


def missing_attribute(owner: object, name: str) -> Any:
    """The value that an old spelling stands for; MissingAttributeError if it is none."""
    if not name.startswith("__"):
        found, value = slots.legacy.get().member(owner, name)
        if found:
            return value
    raise MissingAttributeError(owner, name)
