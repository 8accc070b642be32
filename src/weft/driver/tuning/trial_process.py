"""The process that makes trials, as the tuner sees it: crashes and hangs of a trial are answers."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import IO, Any, Final, TypeVar

from weft.driver.tuning.kernels import Kernel
from weft.ir.json_text import save_json
from weft.support.errors import CodegenError
from weft.target.target import Target

_PROGRAM: Final = """
import json, sys
sys.path[:] = json.loads(sys.argv[1])
from weft.driver.tuning.worker import work
work()
"""
_LAST_WORDS: Final = 300
_Answer = TypeVar("_Answer")


class TrialFailedError(CodegenError):
    """A trial gave no time: it was refused, its result was wrong, it crashed or took too long."""


class TrialProcess:
    """Starts a process for trials, and another one where it has ended.

    Args:
        target: what kernels are compiled for.
        num_threads: threads of a call; None: the process's number.
        seconds: how long a trial may take.
    """

    def __init__(self, target: Target, num_threads: int | None, seconds: float) -> None:
        self._target, self._threads, self._seconds = target, num_threads, seconds
        self._process: subprocess.Popen[bytes] | None = None
        self._words: IO[bytes] | None = None
        self._known: set[bytes] = set()

    @property
    def capacity(self) -> int:
        """How many trials are made at once."""
        return 1

    def start(self, function: Callable[..., _Answer], *arguments: object) -> Future[_Answer]:
        """Call a function that makes trials; it has ended when this returns."""
        future: Future[_Answer] = Future()
        future.set_result(function(*arguments))
        return future

    def trial(self, kernel: Kernel, taken: Mapping[str, str]) -> tuple[float, dict[str, list[str]]]:
        """The microseconds of a kernel with these answers, and the choices that it has.

        Raises TrialFailedError.
        """
        answer = self._ask(kernel, {"taken": dict(taken)})
        return float(answer["microseconds"]), answer["offered"]

    def compare(self, kernel: Kernel, taken: Mapping[str, str], rounds: int) -> tuple[float, float]:
        """The microseconds of the default and of the form with these answers, measured in turn.

        Raises TrialFailedError.
        """
        answer = self._ask(kernel, {"taken": dict(taken), "rounds": rounds})
        return float(answer["default"]), float(answer["tuned"])

    def describe(self, kernel: Kernel, taken: Mapping[str, str]) -> list[list[float]]:
        """The features of a kernel's program with these answers. Raises TrialFailedError."""
        features: list[list[float]] = self._ask(kernel, {"describe": dict(taken)})["features"]
        return features

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            for file in (self._process.stdin, self._process.stdout, self._words):
                if file is not None:
                    file.close()
            self._process = self._words = None
        self._known.clear()

    def _ask(self, kernel: Kernel, job: Mapping[str, object]) -> dict[str, Any]:
        name = kernel.digest.hex()
        if self._process is None or self._process.poll() is not None:
            self.close()
            self._process = self._started()
        if kernel.digest not in self._known:
            self._answered(
                {
                    "kernel": name,
                    "module": save_json(kernel.module),
                    "weights": list(kernel.weights),
                    "step": kernel.step,
                    "target": self._target.export(),
                    "num_threads": self._threads,
                }
            )
            self._known.add(kernel.digest)
        return self._answered({"kernel": name, **job})

    def _started(self) -> subprocess.Popen[bytes]:
        self._words = tempfile.TemporaryFile()
        return subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, json.dumps(sys.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._words,
            bufsize=0,
            start_new_session=True,  # Ctrl-C is for the tuner, which decides
        )

    def _answered(self, job: Mapping[str, object]) -> dict[str, Any]:
        process = self._process
        assert process is not None
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(json.dumps(job).encode() + b"\n")
            line = _line(process.stdout.fileno(), self._seconds)
        except BrokenPipeError:
            line = b""
        except BaseException:  # Ctrl-C: the answer would be taken for that to the next job
            self.close()
            raise
        if line is None or not line.endswith(b"\n"):
            raise TrialFailedError(self._how_it_ended(is_late=line is None))
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise TrialFailedError(answer["error"])
        return answer

    def _how_it_ended(self, *, is_late: bool) -> str:
        """Why there is no answer; the process is ended."""
        assert self._process is not None
        assert self._words is not None
        if is_late:
            self.close()
            return f"the trial took longer than {self._seconds:g} seconds"
        status = self._process.wait()
        self._words.seek(0)
        words = " ".join(self._words.read().decode(errors="replace").split())
        self.close()
        return f"the process of the trial ended with status {status}: {words[-_LAST_WORDS:]}"


def _line(descriptor: int, seconds: float) -> bytes | None:
    """A line from a pipe; without its end if that was closed, None if it takes too long."""
    deadline, line = time.monotonic() + seconds, b""
    while not line.endswith(b"\n"):
        ready, _, _ = select.select([descriptor], [], [], max(deadline - time.monotonic(), 0))
        if not ready:
            return None
        part = os.read(descriptor, 1 << 16)
        if not part:
            break
        line += part
    return line
