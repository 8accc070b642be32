"""Tracebacks of weft's errors in notebooks: the lines that a user wrote, without weft's own frames.

IPython asks an exception for ``_render_traceback_``. What is given here is IPython's own rendering,
with its colours and links, of a traceback from which the frames of weft are taken out.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from types import FrameType, TracebackType
from typing import Any, Final

_OWN: Final = os.path.dirname(os.path.dirname(__file__)) + os.sep
_BETWEEN: Final = ("contextlib", "functools")
"""Modules of Python whose frames stand between those of weft."""
FULL: Final = "WEFT_FULL_TRACEBACK"


def rendered(error: BaseException) -> list[str] | None:
    """IPython's text of an error without weft's frames; None where nothing can be left out."""
    ipython: Any = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    traceback = without_own_frames(error.__traceback__)
    if shell is None or traceback is None or os.environ.get(FULL):
        return None
    with _without_own_cause(error):
        lines: list[str] = shell.InteractiveTB.structured_traceback(type(error), error, traceback)
    return lines


@contextlib.contextmanager
def _without_own_cause(error: BaseException) -> Iterator[None]:
    """Inside, an error has no cause if that arose, and was caught, in weft alone."""
    kept = error.__cause__, error.__suppress_context__
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if cause is not None and without_own_frames(cause.__traceback__) is None:
        error.__cause__ = None  # sets __suppress_context__, too
    try:
        yield
    finally:
        error.__cause__, error.__suppress_context__ = kept


def without_own_frames(traceback: TracebackType | None) -> TracebackType | None:
    """The traceback without the frames of weft; None if no line of a user is left."""
    kept: list[TracebackType] = []
    while traceback is not None:
        if not _is_own(traceback.tb_frame):
            kept.append(traceback)
        traceback = traceback.tb_next
    if not any(_is_users(item.tb_frame) for item in kept):
        return None
    chain: TracebackType | None = None
    for item in reversed(kept):
        chain = TracebackType(chain, item.tb_frame, item.tb_lasti, item.tb_lineno)
    return chain


def _is_own(frame: FrameType) -> bool:
    """Whether a frame is weft's, of code that weft wrote, or of Python between such frames."""
    name = frame.f_code.co_filename
    is_written = name.startswith("<wrapper of ")
    return is_written or name.startswith(_OWN) or frame.f_globals.get("__name__") in _BETWEEN


def _is_users(frame: FrameType) -> bool:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0] != "IPython"
