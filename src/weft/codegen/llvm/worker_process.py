"""One compile worker as the process that started it sees it: its start, its answers, its end.

``worker.py`` runs in it. Where a worker ends while it works, because LLVM aborts for lack of memory
or the system kills it, this process gets an exception and lives on.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
from pathlib import Path
from typing import Final

from weft.codegen.llvm import worker
from weft.codegen.llvm.worker import ANSWER, REQUEST, Job, Refusal
from weft.support.child_process import ChildProcess, how_it_ended
from weft.support.llvm_binding import binding

START_SECONDS: Final = 120
"""How long a worker may take to say that it is ready: what was started may be another program."""
_FROM_OUTSIDE: Final = (0, -signal.SIGKILL, -signal.SIGTERM)
"""Statuses of workers that LLVM did not end; 0 is one that had nothing to do for too long."""
_LONGEST_LAST_WORDS: Final = 300
_MISSED: Final = "warning: <unknown>:0:0: loop not "
"""How LLVM begins to say that it did not transform a loop as asked, about which no user can do
anything."""


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
        """Whether it was ended from outside, so that another worker may get through."""
        return self.status in _FROM_OUTSIDE

    @property
    def is_memory(self) -> bool:
        """Whether it ended because there was no memory left."""
        words = ("bad_alloc", "out of memory", "Cannot allocate memory", "MemoryError")
        return self.status == -signal.SIGKILL or any(word in self.last_words for word in words)

    def __str__(self) -> str:
        return how_it_ended(self.status) + (f" ({self.last_words})" if self.last_words else "")


class Worker(ChildProcess):
    """A process that compiles. Raises OSError where the system starts no process.

    Args:
        idle_seconds: it ends by itself when nothing was asked of it for so long.
    """

    def __init__(self, idle_seconds: float) -> None:
        super().__init__([*_command(), str(idle_seconds)], cwd="/")
        self._is_ready = False

    def wait_until_ready(self) -> None:
        """Return once it can be asked. Raises WorkerEndedError if it never will."""
        if self._is_ready:
            return
        if not self.has_answer(START_SECONDS):
            self._process.kill()
        kind, size = self._head()
        if kind != worker.READY or size:
            raise WorkerEndedError(1, "it is another program")
        self._is_ready = True

    def fileno(self) -> int:
        """The descriptor that is readable as soon as an answer comes, for ``select``."""
        return self._answers.fileno()

    def ask(self, text: bytes, job: Job) -> None:
        """Send a request. The worker works at it alone until ``answer`` is called."""
        request = json.dumps(job).encode()
        with contextlib.suppress(BrokenPipeError):  # it has ended; reading says how
            worker.write_all(
                self._requests.fileno(), REQUEST.pack(len(request), len(text)), request, text
            )

    def answer(self) -> bytes:
        """What ``worker.translate`` gives for the request; waits for it.

        Raises Refusal, MemoryError, WorkerEndedError. After any other exception, such as
        KeyboardInterrupt, the worker must be ended: its answer to this request would be taken for
        the answer to the next.
        """
        kind, size = self._head()
        content = self._read(size)
        self.jobs += 1
        self._pass_on_warnings()
        if kind == worker.NO_MEMORY:
            raise MemoryError
        if kind == worker.REFUSED:
            raise Refusal(content.decode())
        return content

    def _head(self) -> tuple[int, int]:
        """Kind and length of the next answer."""
        kind, self.resident, size = ANSWER.unpack(self._read(ANSWER.size))
        return kind, size

    def _read(self, size: int) -> bytes:
        try:
            return worker.read_exactly(self._answers.fileno(), size)
        except (EOFError, ConnectionError):
            status = self._process.wait()
            words = " ".join(self.new_words().split())
            raise WorkerEndedError(status, words[-_LONGEST_LAST_WORDS:]) from None

    def _pass_on_warnings(self) -> None:
        lines = self.new_words().splitlines(keepends=True)
        words = "".join([line for line in lines if not line.startswith(_MISSED)])
        if words and sys.stderr is not None:
            sys.stderr.write(words)


def can_start() -> bool:
    """Whether ``sys.executable`` is a Python that can run ``worker.py``.

    In a program that embeds Python, or is frozen, it is the program, which would start itself.
    """
    is_python = Path(sys.executable or "").name.startswith("python") and os.name == "posix"
    is_frozen = getattr(sys, "frozen", False)
    return is_python and not is_frozen and Path(worker.__file__).is_file()


def _command() -> list[str]:
    """The command that starts a worker: Python without settings and ``site``, for a quick start,
    the file ``worker.py``, and the folder that llvmlite is in.
    """
    folder = Path(str(binding().__file__)).resolve().parents[2]
    return [sys.executable, "-I", "-S", worker.__file__, str(folder)]
