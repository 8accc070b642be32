"""One worker process as the process that started it sees it: its start, its answers, its end."""

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
from typing import Any, BinaryIO, Final, NamedTuple

from weft.codegen.llvm.worker_process import can_start, let_go
from weft.meta_schedule.processes import worker
from weft.meta_schedule.processes.worker import Limits, read_message, write_message
from weft.support.errors import TVMError

START_SECONDS: Final = 120.0
"""How long a worker may take to be ready: its initializer may import much."""
_LONGEST_LAST_WORDS: Final = 600
_SIGNALS: Final = {number.value: number.name for number in signal.Signals}
_MAIN: Final = (
    "import json, sys; from weft.meta_schedule.processes.worker import Limits, main; "
    "main(Limits(*json.loads(sys.argv[1])))"
)


class Outcome(NamedTuple):
    """How a job ended: with a value, or with what went wrong (``kind`` and ``text``)."""

    value: Any
    kind: str = ""
    """Nothing, ``exception``, ``timeout`` or ``ended`` (the process itself)."""
    text: str = ""


class Process:
    """A worker process, and its setup under way. Raises TVMError where none can be started.

    Args:
        setup: the first request (``worker.py``).
        limits: what it may take.
    """

    def __init__(self, setup: bytes, limits: Limits) -> None:
        if not can_start():
            raise TVMError(
                f"cannot start a worker process: {sys.executable or 'this program'} is no Python; "
                "build and measure by a builder and a runner of your own (PyBuilder, PyRunner)"
            )
        self.limits = limits
        self.resident = self.jobs = 0
        self._told = 0
        self._errors = _anonymous_file()
        folder = str(Path(worker.__file__).parents[3])
        path = [folder, *[entry or os.getcwd() for entry in sys.path if entry != folder]]
        env = {
            **os.environ, "PYTHONPATH": os.pathsep.join(path), "WEFT_COMPILE_WORKERS": "0",
            "PYTHONSAFEPATH": "1",
        }  # fmt: skip
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _MAIN, json.dumps(limits)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                bufsize=0,
                env=env,
                process_group=0,  # Ctrl-C is for the parent, which decides
            )
        except OSError as error:
            self._errors.close()
            raise TVMError(f"cannot start a worker process ({sys.executable}): {error}") from error
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._requests, self._answers = self._process.stdin, self._process.stdout
        self.send(setup)

    @property
    def pid(self) -> int:
        """The number of the process, and of its group."""
        return self._process.pid

    def is_alive(self) -> bool:
        """Whether the process runs."""
        return self._process.poll() is None

    def send(self, request: bytes) -> None:
        """Give it a request."""
        with contextlib.suppress(BrokenPipeError):  # it has ended; reading says how
            write_message(self._requests.fileno(), request)

    def receive(self, seconds: float) -> Outcome | None:
        """Its next answer; None if there is none within some time, and for a wish to be quiet.

        The latter has the kind ``quiet``.
        """
        poll = select.poll()
        poll.register(self._answers, select.POLLIN)
        if not poll.poll(max(0.0, seconds) * 1000):
            return None
        try:
            answer = json.loads(read_message(self._answers.fileno()))
        except (EOFError, ConnectionError, ValueError):
            return Outcome(None, "ended", self._end_of_life())
        self.resident = answer["resident"]
        if "quiet" in answer:
            return Outcome(None, "quiet")
        self.jobs += 1
        if "error" in answer:
            return Outcome(None, "exception", answer["error"])
        return Outcome(answer["value"])

    def _end_of_life(self) -> str:
        """How the process ended, with the last that it wrote to standard error."""
        self._process.kill()
        status = self._process.wait()
        if status < 0:
            how = f"was ended by signal {_SIGNALS.get(-status, -status)}"
        else:
            how = f"ended with status {status}"
        if status == -signal.SIGKILL:
            how += ", as the system does when memory is used up"
        words = self._last_words()
        return how + (f":\n{words}" if words else "")

    def _last_words(self) -> str:
        descriptor = self._errors.fileno()
        size = os.fstat(descriptor).st_size
        begin = max(self._told, size - _LONGEST_LAST_WORDS)
        return os.pread(descriptor, size - begin, begin).decode(errors="replace").strip()

    def forget_words(self) -> None:
        """What it has written so far belongs to an earlier job."""
        self._told = os.fstat(self._errors.fileno()).st_size

    def signal(self, number: int) -> None:
        """Send a signal to it and to what it started, unless it has ended."""
        if self._process.returncode is not None:  # its number may be another's by now
            return
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)

    def end(self) -> None:
        """End it, and what it started, at once."""
        if self._process.returncode is None:
            self.signal(signal.SIGKILL)
            self._process.kill()
            self._process.wait()
        self.let_go()

    def let_go(self) -> None:
        """Close the pipes only: a forked child does so, for the process belongs to its parent."""
        let_go(self._process, self._requests, self._answers, self._errors)


def _anonymous_file() -> BinaryIO:
    """A file without a name, in memory where the system has such."""
    if hasattr(os, "memfd_create"):
        return os.fdopen(os.memfd_create("weft worker"), "r+b", buffering=0)
    return tempfile.TemporaryFile(buffering=0)
