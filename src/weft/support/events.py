"""What the compiler decides: told to the log, and to the observers of this thread.

Decisions that leave no trace in the result go through here: which rule scheduled a kernel and which
ones did not fit, which kernel came from the cache, the module that code was made of. An event has a
name and details; ``weft.driver.recording`` has an observer, and says what the details are.

>>> with observing(lambda event, *details: print(event, *details)):
...     happened("program", "tiled", "it has no reduction")
program tiled it has no reduction
>>> happened("program", "nobody", "observes this: the log has it, at the level debug")
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final, Literal

Event = Literal["pass", "passed", "kernel", "rule", "program", "lowered", "code"]
"""What happens, with its details:

- ``pass`` (name, module) and ``passed`` (name, module, seconds): a pass begins and ends; of those
  that lower kernels, only what this process lowers, as others share in that work;
- ``kernel`` (name, PrimFunc): a kernel is about to be scheduled;
- ``rule`` (name, Schedule or None): what a rule answers;
- ``program`` (name, reason): a part of a rule was tried; the reason, why it does not fit, is a
  text or an error, whose text may be costly; an empty text: it fits;
- ``lowered`` (module, LoweredModule or None): code is made of these functions;
- ``code`` (names, whether their code is in the cache, the key or None)."""
Observer = Callable[..., None]
"""Called with an event and its details."""


def _code_text(names: Sequence[str], is_cached: bool, key: str | None) -> str:
    if is_cached:
        source = "from the cache"
    else:
        source = f"compiled, the cache has no {key}" if key else "compiled, it cannot be cached"
    return f"code of {', '.join(names)}: {source}"


_LOGGED: Final[Mapping[Event, tuple[logging.Logger, Callable[..., str]]]] = {
    "passed": (
        logging.getLogger("weft.ir.transform"),
        lambda name, _module, seconds: f"pass {name}: {1000 * seconds:.1f} ms",
    ),
    "kernel": (logging.getLogger("weft.dlight"), lambda name, _func: f"kernel {name}"),
    "rule": (
        logging.getLogger("weft.dlight"),
        lambda name, schedule: f"rule {name} {'does not fit' if schedule is None else 'fits'}",
    ),
    "program": (
        logging.getLogger("weft.dlight"),
        lambda name, reason: f"program {name} {f'does not fit: {reason}' if reason else 'fits'}",
    ),
    "code": (logging.getLogger("weft.codegen"), _code_text),
}
"""Event -> the logger that gets a line at the level debug, and the line."""


def _log(event: Event, *details: object) -> None:
    entry = _LOGGED.get(event)
    if entry is not None and entry[0].isEnabledFor(logging.DEBUG):
        entry[0].debug("%s", entry[1](*details))


_OBSERVERS: Final[ContextVar[tuple[Observer, ...]]] = ContextVar("observers", default=(_log,))


@contextmanager
def observing(observer: Observer | None) -> Iterator[None]:
    """Tell ``observer`` and the log what this thread's compiler decides inside of the block.

    None: nobody, not even an observer or the log around the block.
    """
    token = _OBSERVERS.set(() if observer is None else (_log, observer))
    try:
        yield
    finally:
        _OBSERVERS.reset(token)


def happened(event: Event, *details: object) -> None:
    """Tell of an event."""
    for observer in _OBSERVERS.get():
        observer(event, *details)


def is_observed() -> bool:
    """Whether somebody other than the log observes this thread's compiler."""
    return any(observer is not _log for observer in _OBSERVERS.get())
