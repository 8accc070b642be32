"""The error tree of weft (design.md 3.16).

``TVMError`` is the root. An error about an argument derives also from the Python class that
callers already catch (``TypeError``, ``ValueError``, ``IndexError``). A message says what was
expected, what was found, where, and what to do; it ends without a period and stays under ten lines.
"""

import os
import re
from collections.abc import Callable
from typing import Final

from weft.support import notebook_tracebacks

LONG: Final = 240
"""In a first line that is longer than this, long lists are cut."""
_ITEM: Final = r"[\w.+\-*/ ]{1,60}(?:\([\w.+\-*/ ]{0,60}\))?"
_LIST: Final = re.compile(rf"(?<=[(\[])(?:{_ITEM},\s?){{16,}}(?:{_ITEM})?(?=[)\]])")


def cut_lists(message: str) -> str:
    """The message, in whose first line long lists are cut (a shape of rank 100, say)."""
    first, newline, rest = message.partition("\n")
    return _LIST.sub(_cut, first) + newline + rest


def _cut(match: re.Match[str]) -> str:
    items = [item.strip() for item in match.group().rstrip(", ").split(",")]
    return ", ".join([*items[:6], f"... {len(items) - 8} more ...", *items[-2:]])


class TVMError(RuntimeError):
    """The root of every error that weft raises on purpose."""

    def __init__(self, *args: object) -> None:
        if args and isinstance(args[0], str) and len(args[0]) > LONG:
            args = (cut_lists(args[0]), *args[1:])
        super().__init__(*args)

    @property
    def _render_traceback_(self) -> Callable[[], list[str]]:
        """What IPython shows: the user's lines and the message, without weft's own frames.

        There is no such attribute, so that all frames show, with WEFT_FULL_TRACEBACK in the
        environment, and where no line is the user's.
        """
        lines = notebook_tracebacks.rendered(self)
        if lines is None:
            raise AttributeError("_render_traceback_")
        return lambda: lines


class InternalError(TVMError):
    """A bug of weft itself: an invariant of the compiler does not hold."""

    @property
    def _render_traceback_(self) -> Callable[[], list[str]]:
        """None, so that the frames in which the bug is show."""
        raise AttributeError("_render_traceback_")


class DiagnosticError(TVMError):
    """A script cannot be parsed; the text shows the user's file, line and a caret."""

    @property
    def _render_traceback_(self) -> Callable[[], list[str]]:
        """What IPython shows: the message, which has the place, without the frames of the parser.

        With WEFT_FULL_TRACEBACK in the environment there is no such attribute, so all frames show.
        """
        if os.environ.get(notebook_tracebacks.FULL):
            raise AttributeError("_render_traceback_")
        return lambda: f"{type(self).__name__}: {self}".splitlines()


class ScheduleError(TVMError):
    """A schedule primitive is not applicable to the program at hand."""


class IRTypeError(TVMError, TypeError):
    """A node or an argument has the wrong type or data type."""


def wrong_type(expected: str, given: object) -> IRTypeError:
    """The error of an argument of another type: what was expected, and the type that was given.

    >>> print(wrong_type("expected a list", 3))
    expected a list, got int
    """
    return IRTypeError(f"{expected}, got {type(given).__name__}")


class IRValueError(TVMError, ValueError):
    """A node or an argument has a value that is not allowed."""


class IRIndexError(TVMError, IndexError):
    """An axis or an index lies outside of its range."""


class IRKeyError(TVMError, KeyError):
    """A name is not in the table it was looked up in."""

    def __str__(self) -> str:
        """The message itself: ``KeyError`` would print its ``repr``."""
        return str(self.args[0]) if self.args else ""


class IRAttributeError(TVMError, AttributeError):
    """A module, class or node has no such attribute."""


class VerifyError(TVMError):
    """A program is not well formed at the stage where it must be."""


class PassError(TVMError):
    """A pass cannot be applied, configured or found."""


class LegalizeError(TVMError):
    """An operator has no lowering to TensorIR for these arguments."""


class CodegenError(TVMError):
    """A program cannot be translated to native code."""


class UnsupportedError(TVMError, NotImplementedError):
    """A capability that weft does not have (yet); the message says which."""


class RuntimeFault(TVMError):
    """A compiled program stopped: an assertion, a bad index or a failed allocation."""


class AssertionFault(RuntimeFault, AssertionError):
    """An assertion of a graph (``R.assert_op``) does not hold."""


class ArtifactError(TVMError):
    """A compiled model cannot be written to a file, or read from one."""


class ArtifactFormatError(ArtifactError, ValueError):
    """A file is no compiled model, or its content is damaged or cut off."""


class ArtifactVersionError(ArtifactError, ValueError):
    """A compiled model was written by a later weft, in a format that this one does not know."""


class ArtifactTargetError(ArtifactError):
    """Compiled code is for another machine: its system or its processor's features differ."""


class ScriptWarning(UserWarning):
    """A script is legal, and computes something else than its author probably means."""
