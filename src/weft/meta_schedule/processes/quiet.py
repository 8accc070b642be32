"""Times in which one process measures and those that compile stand still.

Both kinds are processes that this one started. A process that compiles is stopped by a signal, and
goes on afterwards; the time that it stood still does not count against its limit. Should this
process be killed meanwhile, the system ends those that stand still: they are a process group whose
last parent has gone (POSIX: an orphaned group with a stopped member gets SIGHUP and SIGCONT).
"""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Iterator
from typing import Final, Protocol


class Stoppable(Protocol):
    """A process that can be stopped and continued."""

    def signal(self, number: int) -> None:
        """Send a signal to it."""


class QuietTimes:
    """The processes that stand still while another measures."""

    def __init__(self) -> None:
        self._measuring = threading.Lock()
        self._state = threading.Lock()
        self._working: set[Stoppable] = set()
        self._since: float | None = None
        self._total = 0.0

    def stood_still(self) -> float:
        """Seconds of quiet times so far."""
        with self._state:
            return self._total + (time.monotonic() - self._since if self._since else 0.0)

    @contextlib.contextmanager
    def working(self, process: Stoppable) -> Iterator[None]:
        """While open, the process works, unless the machine has to be quiet."""
        with self._state:
            self._working.add(process)
            if self._since is not None:
                process.signal(signal.SIGSTOP)
        try:
            yield
        finally:
            with self._state:
                self._working.discard(process)
                process.signal(signal.SIGCONT)

    @contextlib.contextmanager
    def quiet(self) -> Iterator[None]:
        """While open, none of the processes works; one quiet time at once."""
        with self._measuring:
            with self._state:
                self._since = time.monotonic()
                for process in self._working:
                    process.signal(signal.SIGSTOP)
            try:
                yield
            finally:
                with self._state:
                    self._total += time.monotonic() - self._since
                    self._since = None
                    for process in self._working:
                        process.signal(signal.SIGCONT)


QUIET: Final = QuietTimes()
"""The quiet times of this process."""
