"""The entries of weft: there, an exception that weft did not raise on purpose becomes a report.

Whatever is wrong with a program, a file or an argument is a TVMError that explains it. Any other
exception that leaves weft is a bug of weft: :func:`tell_fault` turns it into an InternalError that
says so and lists what to send; the exception itself is its ``__cause__``, with the traceback. Only
entries do that (``weft.build``, ``weft.compile``, the importers, ``load_json``, ``weft.load``,
``from_source``, calls of compiled functions, the commands), and the innermost one reports.

An exception from the caller's own code stays as it is: from a registered function, a converter, a
pass, the ``forward`` of a model. It is recognized by the frames between the entry and the place
where it was raised: a frame that is not in weft, in Python's library or in a package that weft uses
is the caller's.
"""

from __future__ import annotations

import functools
import platform
import re
import sys
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from types import CodeType, FrameType, TracebackType
from typing import Final, ParamSpec, TypeVar

from weft.support.errors import InternalError, IRValueError, TVMError

P = ParamSpec("P")
R = TypeVar("R")

_USED: Final = frozenset({
    "google", "llvmlite", "ml_dtypes", "numpy", "onnx", "packaging", "rich", "safetensors", "sympy",
    "torch", "torchvision", "tvm", "weft",
}) | sys.stdlib_module_names  # fmt: skip
"""Top-level packages whose frames are not the caller's."""
_VERSIONS: Final = ("numpy", "llvmlite", "torch", "onnx")
_HERE: Final = Path(__file__).parents[1]
_LONGEST: Final = 300
_calls_of_callers: Final[set[CodeType]] = set()


def public_entry(what: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorate an entry (see the module's docstring). ``what`` names it in messages.

    >>> @public_entry("double")
    ... def double(text: str) -> int:
    ...     return 2 * len(text)
    >>> double("ab")
    4
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(function)
        def entry(*args: P.args, **kwargs: P.kwargs) -> R:
            try:
                return function(*args, **kwargs)
            except Exception as error:
                tell_fault(error, what)
                raise

        return entry

    return decorate


def calls_of_callers(function: Callable[P, R]) -> Callable[P, R]:
    """Mark a function that calls the caller's code, which has no frame if it is written in C."""
    _calls_of_callers.add(function.__code__)
    return function


def tell_fault(error: Exception, what: str) -> None:
    """Raise an InternalError for a bug of weft; return if the exception is another one.

    To be called in the ``except`` clause of an entry, before a plain ``raise``::

        try:
            return self._run(args)
        except Exception as error:
            tell_fault(error, "the call of a model")
            raise
    """
    if isinstance(error, (TVMError, Warning)) or _lacks_package(error) or is_callers(error):
        return
    told = _told(error, what)
    for note in getattr(error, "__notes__", ()):
        told.add_note(note)
    raise told from error


_TOO_BIG: Final = re.compile("array is too big|Maximum allowed (size|dimension) exceeded")
"""What numpy's ValueError says of a size that no address space has."""


def _told(error: Exception, what: str) -> TVMError:
    shown = str(error).split("\n", 1)[0][:_LONGEST]
    if isinstance(error, RecursionError):
        return IRValueError(
            f"{what}: it is nested deeper than Python's stack allows ({_place(error)}); split it "
            "into several functions, or call weft from a thread with a larger stack"
        )
    if isinstance(error, MemoryError) or _TOO_BIG.search(shown):
        return IRValueError(
            f"{what}: there is not enough memory{': ' if shown else ''}{shown}; make shapes or "
            "constants smaller, or free memory of this process"
        )
    if isinstance(error, OverflowError):
        return IRValueError(
            f"{what}: a number is too large to compute with ({shown}, in {_place(error)}); sizes, "
            "indices and constants are less than 2**63"
        )
    if isinstance(error, OSError):
        return TVMError(f"{what}: the system refused it: {shown} ({_place(error)})")
    return InternalError(
        f"this is a fault of weft, not of your program: {what} stopped with "
        f"{type(error).__name__}\n"
        f"  {shown or '(without a message)'}\n"
        f"  in {_place(error)}\n"
        "please report it with what you called (the program, model or file) and these lines;\n"
        "the traceback is that of this error's cause, which Python prints above it\n"
        f"versions: {_versions()}"
    )


def _versions() -> str:
    weft = getattr(sys.modules.get("weft"), "__version__", "unknown")
    versions = [f"weft {weft}", f"Python {platform.python_version()}"]
    for name in _VERSIONS:
        try:
            versions.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            continue
    return ", ".join([*versions, f"{platform.system()} {platform.machine()}"])


def _place(error: Exception) -> str:
    """File, line and function of the innermost frame of weft."""
    for frame, line in reversed(_frames(error.__traceback__)):
        path = Path(frame.f_code.co_filename)
        if path.is_relative_to(_HERE):
            return f"{path.relative_to(_HERE.parent)}:{line}, {frame.f_code.co_name}"
    return "code that weft generated"


def _frames(traceback: TracebackType | None) -> list[tuple[FrameType, int]]:
    frames = []
    while traceback is not None:
        frames.append((traceback.tb_frame, traceback.tb_lineno))
        traceback = traceback.tb_next
    return frames


def _lacks_package(error: Exception) -> bool:
    """Whether the reason is a missing package that weft needs here."""
    name = getattr(error, "name", None) if isinstance(error, ModuleNotFoundError) else None
    return isinstance(name, str) and name.partition(".")[0] != "weft"


def is_callers(error: Exception) -> bool:
    """Whether the caller's code raised it, or called the entry with the wrong arguments."""
    frames = [frame for frame, _ in _frames(error.__traceback__)]
    if len(frames) < 2 or frames[-1].f_code in _calls_of_callers:
        return True
    return any(_is_foreign(frame) for frame in frames[1:])


def _is_foreign(frame: FrameType) -> bool:
    """Whether a frame belongs neither to weft nor to a library that weft uses."""
    module = frame.f_globals.get("__name__")
    if not isinstance(module, str):
        return False  # generated code
    return module.partition(".")[0] not in _USED
