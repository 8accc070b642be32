"""What of the logger ``weft`` is shown, and where: ``WEFT_LOG``, and ``-v`` of the command line.

Every module logs to the logger of its own name, so all loggers lie below ``weft``. Without a word
from the user nothing is set up here: Python shows warnings on standard error, and a program that
sets up ``logging`` gets weft's messages as those of any other library.
"""

from __future__ import annotations

import logging
import sys
import warnings
from collections.abc import Mapping
from typing import Final

from weft.support.config import environment_text
from weft.support.errors import IRValueError

ROOT: Final = "weft"
LEVELS: Final[Mapping[str, int]] = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
    "off": logging.CRITICAL + 1,
}
"""The words of ``WEFT_LOG``: from everything to nothing."""
_BY_VERBOSITY: Final = ("", "info", "debug")
"""Levels for no ``-v``, one, and two or more."""


def levels_of(text: str) -> dict[str, int]:
    """Logger -> level, from words between commas: a level for all of weft, or ``logger=level``.

    The name of a logger is that of a module or a package, with or without ``weft.``. Raises
    IRValueError for other words.

    >>> levels_of("driver=debug, info")
    {'weft.driver': 10, 'weft': 20}
    """
    levels = {}
    for word in text.split(","):
        name, equals, level = word.strip().rpartition("=")
        if level.lower() not in LEVELS or (equals and not name):
            raise IRValueError(
                f"WEFT_LOG: expected a level ({', '.join(LEVELS)}) or logger=level between commas, "
                f"such as weft.driver=debug,info; got {word.strip()!r}"
            )
        is_below = name and name != ROOT and not name.startswith(f"{ROOT}.")
        levels[f"{ROOT}.{name}" if is_below else name or ROOT] = LEVELS[level.lower()]
    return levels


def show(levels: Mapping[str, int]) -> None:
    """Set the levels of loggers, and write what passes them to standard error."""
    for name, level in levels.items():
        logging.getLogger(name).setLevel(level)
    root = logging.getLogger(ROOT)
    if not any(isinstance(handler, _StandardError) for handler in root.handlers):
        handler = _StandardError()
        handler.setFormatter(logging.Formatter(_FORMAT, "%H:%M:%S"))
        root.addHandler(handler)


def show_by_environment() -> None:
    """Show what ``WEFT_LOG`` asks for. A value that means nothing gives a warning."""
    text = environment_text("WEFT_LOG")
    if text is None:
        return
    try:
        show(levels_of(text))
    except IRValueError as error:  # it must not keep a program from starting
        warnings.warn(f"{error}; nothing is shown", RuntimeWarning, stacklevel=2)


def show_by_verbosity(count: int) -> None:
    """Show what ``-v`` (information) and ``-vv`` (details too) ask for."""
    level = _BY_VERBOSITY[min(count, len(_BY_VERBOSITY) - 1)]
    if level:
        show({ROOT: LEVELS[level]})


def is_shown(level: int = logging.INFO) -> bool:
    """Whether messages of weft at this level go anywhere."""
    return logging.getLogger(ROOT).isEnabledFor(level)


_FORMAT: Final = "%(asctime)s.%(msecs)03d %(levelname)s %(name)s: %(message)s"


class _StandardError(logging.Handler):
    """Writes to what is standard error at that time, unless the program has handlers itself."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write one line."""
        if sys.stderr is None or logging.getLogger().handlers:
            return
        try:
            sys.stderr.write(f"{self.format(record)}\n")
        except (OSError, ValueError):  # a closed pipe or file must not end the work
            self.handleError(record)
