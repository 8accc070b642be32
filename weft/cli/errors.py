"""An error as the command line tells it: its message, then its notes, in at most ten lines."""

from __future__ import annotations

from typing import Final

LINES: Final = 10


def error_text(error: BaseException) -> str:
    """The message and the notes (``while importing ...``) of an error, cut after ten lines.

    >>> error = ValueError("no kernel for this")
    >>> error.add_note("while lowering main")
    >>> print(error_text(error))
    no kernel for this
      while lowering main
    """
    message = (str(error) or type(error).__name__).splitlines()
    notes = [f"  {line}" for note in getattr(error, "__notes__", ()) for line in note.splitlines()]
    return "\n".join([*message, *notes][:LINES])
