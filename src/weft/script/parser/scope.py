"""Names: those that the script defines, in nested scopes, and those that it captures."""

from __future__ import annotations

import builtins
import contextlib
import difflib
from collections.abc import Iterator, Mapping

from weft.support.errors import IRValueError

_PLAIN = (
    "abs bool dict divmod enumerate filter float int isinstance len list map max min pow print "
    "range reversed round set slice sorted str sum tuple type zip"
).split()
PLAIN_BUILTINS: dict[str, object] = {name: getattr(builtins, name) for name in _PLAIN}
"""Python's own functions that a script may call; none gives access to files or the interpreter."""


class Scopes:
    """A stack of scopes above the captured names."""

    def __init__(self, captured: Mapping[str, object]) -> None:
        self.captured = captured
        self.frames: list[dict[str, object]] = [{}]
        self.hidden: dict[str, str] = {}

    @contextlib.contextmanager
    def nested(self) -> Iterator[dict[str, object]]:
        """A scope that ends with the ``with``."""
        frame: dict[str, object] = {}
        self.frames.append(frame)
        try:
            yield frame
        finally:
            self.frames.pop()

    def define(self, name: str, value: object, shadow: bool = True) -> None:
        """Define a name in the innermost scope; without ``shadow`` it must be new there."""
        frame = self.frames[-1]
        if not shadow and name in frame and frame[name] is not value:
            raise IRValueError(
                f"{name!r} is already defined in this scope; a TensorIR variable keeps its value, "
                "so use another name (or a buffer)"
            )
        frame[name] = value
        self.hidden.pop(name, None)

    def find(self, name: str) -> tuple[bool, object]:
        """``(whether it is defined, its value)``."""
        for frame in reversed(self.frames):
            if name in frame:
                return True, frame[name]
        for names in (self.captured, PLAIN_BUILTINS):
            if name in names:
                return True, names[name]
        return False, None

    def holds(self, value: object) -> bool:
        """Whether a name stands for this object."""
        for names in (*self.frames, self.captured):
            for item in names.values():
                if item is value:
                    return True
        return False

    def unknown(self, name: str) -> str:
        """The message for a name that is not defined."""
        if name in self.hidden:
            return self.hidden[name]
        if name in ("metadata", "meta"):
            return (
                f"the text names {name!r} but does not hold it: print the program with "
                "show_meta=True, or pass extra_vars"
            )
        known = [key for frame in self.frames for key in frame]
        near = difflib.get_close_matches(name, known, n=3, cutoff=0.6)
        near = near or difflib.get_close_matches(name, list(self.captured), n=3, cutoff=0.75)
        hint = f"; did you mean {' or '.join(repr(item) for item in near)}?" if near else ""
        return f"undefined name {name!r}{hint}"
