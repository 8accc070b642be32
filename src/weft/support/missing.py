"""Names that are missing: an error that suggests the nearest."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable

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
