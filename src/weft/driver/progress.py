"""Shows what a compilation is doing, if it takes longer than a second; logs how long it took.

The line is shown on standard error, if that is a terminal and the package rich is installed. It
disappears when the work is done.
"""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from types import TracebackType
from typing import Any, Final, Self

from weft.support.logs import is_shown
from weft.support.progress import PhaseClock, watching

_LOG: Final = logging.getLogger(__name__)
DELAY: Final = 1.0
"""Seconds before anything is shown."""


@contextmanager
def timed(what: str) -> Iterator[None]:
    """Log how long the block takes, and each phase of the compiler in it."""
    if not is_shown():
        yield
        return
    seconds: dict[str, float] = {}
    begin = time.perf_counter()
    with watching(PhaseClock(seconds).watch):
        yield
    phases = ", ".join([f"{name} {spent:.2f}" for name, spent in seconds.items()])
    _LOG.info("%s: %.2f s (%s)", what, time.perf_counter() - begin, phases or "no phases")


class Progress:
    """One piece of work: ``with Progress("ResNet") as progress: progress.stage("importing")``."""

    def __init__(self, name: str, delay: float | None = None) -> None:
        self._name, self._delay = name, DELAY if delay is None else delay
        self._text = ""
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None
        self._display: Any = None
        self._task: Any = None
        self._clock = ExitStack()

    def __enter__(self) -> Self:
        self._clock.enter_context(timed(self._name))
        is_terminal = sys.stderr is not None and sys.stderr.isatty()
        if is_terminal and not is_shown():  # log lines would tear the display
            self._timer = threading.Timer(self._delay, self._show)
            self._timer.daemon = True
            self._timer.start()
        return self

    def stage(self, text: str, done: int | None = None, total: int | None = None) -> None:
        """Show another text from now on, with the number of parts that are done, if given."""
        with self._lock:
            self._text = text if total is None else f"{text} {done} of {total}"
            if self._display is not None:
                self._display.update(self._task, description=self._line())

    def _line(self) -> str:
        return f"weft: {self._name}: {self._text}"

    def _show(self) -> None:
        try:
            from rich import progress as rich  # noqa: PLC0415 - optional
            from rich.console import Console  # noqa: PLC0415 - optional
        except ImportError:
            return
        with self._lock:
            if self._timer is None:
                return  # the work has been finished meanwhile
            columns = (
                rich.SpinnerColumn(),
                rich.TextColumn("{task.description}"),
                rich.TimeElapsedColumn(),
            )
            self._display = rich.Progress(*columns, console=Console(stderr=True), transient=True)
            self._task = self._display.add_task(self._line(), total=None)
            self._display.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._clock.close()
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
            if self._display is not None:
                self._display.stop()
                self._display = None
