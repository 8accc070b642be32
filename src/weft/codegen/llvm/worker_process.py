"""One compile worker as its parent sees it: its start, its answers, its end.

``worker.py`` is what runs in it. A worker that ends while it works (LLVM aborts where memory ends,
the system kills it) is an exception here, and this process lives on.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import BinaryIO, Final

from weft.codegen.llvm import worker
from weft.codegen.llvm.worker import ANSWER, REQUEST, Job, Refusal
from weft.runtime.native.llvm import binding

START_SECONDS: Final = 120
"""A program that is no Python, and says nothing, is given up after that."""
_FROM_OUTSIDE: Final = (0, -signal.SIGKILL, -signal.SIGTERM)
"""Ends that are not LLVM's own: 0 is a worker that had nothing to do for long."""
_LONGEST_LAST_WORDS: Final = 300
_SIGNALS: Final = {number.value: number.name for number in signal.Signals}


class WorkerEndedError(Exception):
    """A worker ended before it answered.

    Attributes:
        status: its exit status, or minus the number of the signal that ended it.
        last_words: what it wrote to standard error in the end.
    """

    def __init__(self, status: int, last_words: str) -> None:
        super().__init__(status, last_words)
        self.status, self.last_words = status, last_words

    @property
    def is_from_outside(self) -> bool:
        """Whether somebody else ended it, so that another worker may have better luck."""
        return self.status in _FROM_OUTSIDE

    @property
    def is_memory(self) -> bool:
        """Whether it ended because there was no memory left."""
        words = ("bad_alloc", "out of memory", "Cannot allocate memory", "MemoryError")
        return self.status == -signal.SIGKILL or any(word in self.last_words for word in words)

    def __str__(self) -> str:
        if self.status < 0:
            how = f"was ended by signal {_SIGNALS.get(-self.status, -self.status)}"
        else:
            how = f"ended with status {self.status}"
        return how + (f" ({self.last_words})" if self.last_words else "")


class Worker:
    """A process that compiles. Raises OSError where the system starts no process.

    Args:
        idle_seconds: it ends by itself when nothing was asked of it for so long.

    ``jobs`` is how many it has done, ``resident`` the memory that it takes, in KiB.
    """

    def __init__(self, idle_seconds: float) -> None:
        self.jobs, self.resident = 0, 0
        self._is_ready = False
        self._told = 0
        self._errors = _anonymous_file()
        try:
            self._process = subprocess.Popen(
                [*_command(), str(idle_seconds)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, bufsize=0,
                cwd="/", start_new_session=True,  # Ctrl-C is for the parent, which decides
            )  # fmt: skip
        except OSError:
            self._errors.close()
            raise
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._requests, self._answers = self._process.stdin, self._process.stdout

    def wait_until_ready(self) -> None:
        """Return once it can be asked. Raises WorkerEndedError if it never will."""
        if self._is_ready:
            return
        poll = select.poll()
        poll.register(self._answers, select.POLLIN)
        if not poll.poll(START_SECONDS * 1000):
            self._process.kill()
        kind, size = self._head()
        if kind != worker.READY or size:
            raise WorkerEndedError(1, "it is another program")
        self._is_ready = True

    @property
    def pid(self) -> int:
        """The number of the process."""
        return self._process.pid

    def is_alive(self) -> bool:
        """Whether the process runs."""
        return self._process.poll() is None

    def translate(self, text: bytes, job: Job) -> bytes:
        """What ``worker.translate`` gives. Raises Refusal, MemoryError, WorkerEndedError.

        After any other exception, such as KeyboardInterrupt, the worker must be ended: its answer
        to this request would be taken for the answer to the next.
        """
        told = json.dumps(job).encode()
        with contextlib.suppress(BrokenPipeError):  # it has ended; reading says how
            worker.write_all(
                self._requests.fileno(), REQUEST.pack(len(told), len(text)), told, text
            )
        kind, size = self._head()
        answer = self._read(size)
        self.jobs += 1
        self._pass_on_warnings()
        if kind == worker.NO_MEMORY:
            raise MemoryError
        if kind == worker.REFUSED:
            raise Refusal(answer.decode())
        return answer

    def _head(self) -> tuple[int, int]:
        """Kind and length of the next answer."""
        kind, self.resident, size = ANSWER.unpack(self._read(ANSWER.size))
        return kind, size

    def _read(self, size: int) -> bytes:
        try:
            return worker.read_exactly(self._answers.fileno(), size)
        except (EOFError, ConnectionError):
            status = self._process.wait()
            words = " ".join(self._new_words().split())
            raise WorkerEndedError(status, words[-_LONGEST_LAST_WORDS:]) from None

    def _new_words(self) -> str:
        """What it wrote to standard error since it was asked the last time."""
        descriptor = self._errors.fileno()
        size = os.fstat(descriptor).st_size - self._told
        words = os.pread(descriptor, size, self._told) if size else b""
        self._told += size
        return words.decode(errors="replace")

    def _pass_on_warnings(self) -> None:
        words = self._new_words()
        if words and sys.stderr is not None:
            sys.stderr.write(words)

    def end(self) -> None:
        """End the process at once and close its pipes; it has nothing to save."""
        self._process.kill()
        self._process.wait()
        self.let_go()

    def let_go(self) -> None:
        """Close the pipes only: what a forked child does, which is not the worker's parent."""
        if self._process.returncode is None:
            self._process.returncode = 0  # no warning that it still runs
        for file in (self._requests, self._answers, self._errors):
            file.close()


def can_start() -> bool:
    """Whether ``sys.executable`` is a Python that can run ``worker.py``.

    A program that embeds Python, or a frozen one, is not: it would start itself once more.
    """
    is_python = Path(sys.executable or "").name.startswith("python") and os.name == "posix"
    is_frozen = getattr(sys, "frozen", False)
    return is_python and not is_frozen and Path(worker.__file__).is_file()


def _command() -> list[str]:
    """A Python that reads no settings and no ``site``, the program, where llvmlite is."""
    folder = Path(str(binding().__file__)).resolve().parents[2]
    return [sys.executable, "-I", "-S", worker.__file__, str(folder)]


def _anonymous_file() -> BinaryIO:
    """A file without a name, in memory where the system has such."""
    if hasattr(os, "memfd_create"):
        return os.fdopen(os.memfd_create("weft worker"), "r+b", buffering=0)
    return tempfile.TemporaryFile(buffering=0)
