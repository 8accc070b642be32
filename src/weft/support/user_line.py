"""Errors of a call that name the user's line: for annotations, which Python evaluates by itself.

``A: T.Buffer((4,), "flaot32")`` is evaluated before a decorator sees the function, so the parser
cannot say where it stands. ``at_user_line`` reads the place off the frame that calls.
"""

from __future__ import annotations

import functools
import itertools
import linecache
import sys
from collections.abc import Callable
from types import FrameType
from typing import ParamSpec, TypeVar

from weft.support.diagnostics import Source, render
from weft.support.errors import IRTypeError, IRValueError

P = ParamSpec("P")
R = TypeVar("R")


def at_user_line(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a public function: its errors show file, line and a caret, if a user calls it.

    Calls from inside of weft (the parser) keep the error as it is: they know its place better.
    """

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except (IRTypeError, IRValueError) as error:
            text = _placed(str(error), sys._getframe(1))
            if text is None or type(error) not in (IRTypeError, IRValueError):
                raise
            raise type(error)(text) from None

    return call


def _placed(message: str, frame: FrameType) -> str | None:
    """The message with the place of the call; None inside of weft, or without the text."""
    if str(frame.f_globals.get("__name__", "")).partition(".")[0] == "weft":
        return None
    code = frame.f_code
    lines = linecache.getlines(code.co_filename, frame.f_globals)
    places = itertools.islice(code.co_positions(), frame.f_lasti // 2, None)
    line, end_line, begin, end = next(places, (None, None, None, None))
    if line is None or end_line is None or begin is None or end is None or line > len(lines):
        return None
    source = Source.from_text(code.co_filename, "".join(lines))
    placed = render(message, source, source.span(line, end_line, begin, end))
    return placed.removeprefix("error: ")  # the name of the error's class stands before it
