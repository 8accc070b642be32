"""Names that are missing: spellings of other years, else an error that says the nearest.

A class that users hold defines ``__getattr__`` by one call of ``missing_attribute``; Python calls
it only after the normal lookup has failed, so names of today pay nothing.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable

from weft.support import slots
from weft.support.errors import IRAttributeError


class MissingNameError(IRAttributeError):
    """There is no such name. The nearest are looked for when the text is read.

    Who only asks whether there is one (``hasattr``, pytest of every name of a test module) does not
    wait for them. ``known`` gives the names, ``prefix`` stands before each in the text.
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
        """What another process gets: the text."""
        return IRAttributeError, (str(self),)


def missing_attribute(owner: object, name: str) -> object:
    """The value that an old spelling stands for; MissingNameError if it is none."""
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
