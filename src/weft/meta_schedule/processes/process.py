"""One worker process as the process that started it sees it: its start, its answers, its end."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any, Final, NamedTuple

from weft.codegen.llvm.worker_process import can_start
from weft.meta_schedule.processes import worker
from weft.meta_schedule.processes.worker import Limits, read_message, write_message
from weft.support.child_process import ChildProcess, how_it_ended
from weft.support.errors import TVMError

START_SECONDS: Final = 120.0
"""How long a worker may take to be ready: its initializer may import much."""
_LONGEST_LAST_WORDS: Final = 600
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


class Process(ChildProcess):
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
        folder = str(Path(worker.__file__).parents[3])
        path = [folder, *[entry or os.getcwd() for entry in sys.path if entry != folder]]
        env = {
            **os.environ, "PYTHONPATH": os.pathsep.join(path), "WEFT_COMPILE_WORKERS": "0",
            "PYTHONSAFEPATH": "1",
        }  # fmt: skip
        try:
            super().__init__([sys.executable, "-c", _MAIN, json.dumps(limits)], env=env)
        except OSError as error:
            raise TVMError(f"cannot start a worker process ({sys.executable}): {error}") from error
        self.send(setup)

    def send(self, request: bytes) -> None:
        """Give it a request."""
        with contextlib.suppress(BrokenPipeError):  # it has ended; reading says how
            write_message(self._requests.fileno(), request)

    def receive(self, seconds: float) -> Outcome | None:
        """Its next answer; None if there is none within some time, and for a wish to be quiet.

        The latter has the kind ``quiet``.
        """
        if not self.has_answer(seconds):
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
        how = how_it_ended(status)
        if status == -signal.SIGKILL:
            how += ", as the system does when memory is used up"
        words = self.new_words(_LONGEST_LAST_WORDS).strip()
        return how + (f":\n{words}" if words else "")

    def forget_words(self) -> None:
        """What it has written so far belongs to an earlier job."""
        self.new_words(0)

    def signal(self, number: int) -> None:
        """Send a signal to it and to what it started, unless it has ended."""
        if self._process.returncode is not None:  # its number may be another's by now
            return
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)

    def end(self) -> None:
        """End it, and what it started, at once."""
        self.signal(signal.SIGKILL)
        super().end()
