"""A process that answers requests through pipes, as the process that started it sees it."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from typing import BinaryIO, Final

_SIGNALS: Final = {number.value: number.name for number in signal.Signals}


class ChildProcess:
    """A process with a pipe for requests, one for answers, and a file for its standard error.

    Ctrl-C does not reach it: this process decides. Raises OSError where the system starts none.

    ``jobs`` is how many it has done, ``resident`` the memory that it takes, in KiB, as it says.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
    ) -> None:
        self.jobs = self.resident = 0
        self._told = 0
        self._errors = _anonymous_file()
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                bufsize=0,
                cwd=cwd,
                env=env,
                start_new_session=True,
            )
        except OSError:
            self._errors.close()
            raise
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._requests, self._answers = self._process.stdin, self._process.stdout

    @property
    def pid(self) -> int:
        """The number of the process, and of its group."""
        return self._process.pid

    def is_alive(self) -> bool:
        """Whether the process runs."""
        return self._process.poll() is None

    def has_answer(self, seconds: float) -> bool:
        """Whether an answer, or the end of the process, comes within some time."""
        poll = select.poll()
        poll.register(self._answers, select.POLLIN)
        return bool(poll.poll(max(0.0, seconds) * 1000))

    def new_words(self, most: int | None = None) -> str:
        """The last ``most`` bytes (None: all) of what it wrote to standard error since this was
        last asked.
        """
        descriptor = self._errors.fileno()
        size = os.fstat(descriptor).st_size
        begin = self._told if most is None else max(self._told, size - most)
        self._told = size
        return os.pread(descriptor, size - begin, begin).decode(errors="replace")

    def end(self) -> None:
        """End the process at once and close its pipes; it has nothing to save."""
        self._process.kill()
        self._process.wait()
        self.let_go()

    def let_go(self) -> None:
        """Close the pipes only: a forked child does so, for the process belongs to its parent."""
        if self._process.returncode is None:
            self._process.returncode = 0  # or Popen would warn that the process still runs
        for file in (self._requests, self._answers, self._errors):
            file.close()


def how_it_ended(status: int) -> str:
    """An exit status, or minus the number of the signal that ended a process, in words.

    >>> how_it_ended(-9)
    'was ended by signal SIGKILL'
    """
    if status < 0:
        return f"was ended by signal {_SIGNALS.get(-status, -status)}"
    return f"ended with status {status}"


def _anonymous_file() -> BinaryIO:
    """A file without a name, in memory where the system has such."""
    if hasattr(os, "memfd_create"):
        return os.fdopen(os.memfd_create("weft worker"), "r+b", buffering=0)
    return tempfile.TemporaryFile(buffering=0)
