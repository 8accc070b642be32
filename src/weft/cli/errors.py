"""How the command line prints an error: its message and its notes, in at most nine lines."""

from __future__ import annotations

import tempfile
import traceback
from typing import Final

LINES: Final = 9
"""The most lines of an error; one more line names the file with the traceback."""


def error_text(error: BaseException) -> str:
    """The message and the notes (``while importing ...``) of an error, cut after nine lines.

    >>> error = ValueError("no kernel for this")
    >>> error.add_note("while lowering main")
    >>> print(error_text(error))
    no kernel for this
      while lowering main
    """
    message = (str(error) or type(error).__name__).splitlines()
    notes = [f"  {line}" for note in getattr(error, "__notes__", ()) for line in note.splitlines()]
    return "\n".join([*message, *notes][:LINES])


def write_traceback(error: BaseException) -> str:
    """Write the traceback of an error and its cause to a new file; returns the path."""
    try:
        with tempfile.NamedTemporaryFile(
            "w",
            encoding="utf-8",
            errors="replace",
            prefix="weft-fault-",
            suffix=".txt",
            delete=False,
        ) as file:
            traceback.print_exception(error, file=file)
            return file.name
    except OSError as problem:
        return f"it cannot be written ({problem.strerror})"
