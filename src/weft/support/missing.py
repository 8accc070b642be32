"""Names that are missing: names of other releases, else an error that suggests the nearest.

A class whose objects users have defines ``__getattr__`` by one call of ``missing_attribute``;
Python calls it only after the normal lookup has failed, so other names cost nothing.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable

from weft.support import slots
from weft.support.errors import IRAttributeError


class MissingNameError(IRAttributeError):
    """There is no such name. The nearest names are computed when the message is read.

    So ``hasattr``, which pytest calls for every name of a test module, stays fast. ``known`` gives
    all names, ``prefix`` stands before each in the message.
    """

    def __init__(
        self, text: str, name: str, known: Callable[[], Iterable[str]], prefix: str = ""
    ) -> None:
        super().__init__(text)
        self.wanted, self.known, self.prefix = name, known, prefix

    def __str__(self) -> str:
        """What is missing, and what there is."""
        nearest = difflib.get_close_matches(self.wanted, sorted(self.known()), n=3)
        names = ", ".join([self.prefix + item for item in nearest])
        return f"{self.args[0]}; did you mean {names}?" if names else str(self.args[0])

    def __reduce__(self) -> tuple[object, ...]:
        """Pickled, the error holds its message alone."""
        return IRAttributeError, (str(self),)


def missing_attribute(owner: object, name: str) -> object:
    """The value that an old name stands for; MissingNameError if it is no old name."""
    if not name.startswith("__"):
        is_old, value = slots.legacy.get().member(owner, name)
        if is_old:
            return value
    kind = type(owner)

    def known() -> set[str]:
        public = {key for key in dir(kind) if not key.startswith("_")}
        old: set[str] = slots.legacy.get().old_members(kind)
        return public | old

    raise MissingNameError(f"{kind.__name__!r} object has no attribute {name!r}", name, known)
