"""The parent's side of an engine that is timed: starts its process, sends requests, ends it.

The process may die or never answer, because a library waits for a lock or a model needs an hour. So
each request has a time limit, after which the process is killed and the engine counts as failed.
"""

from __future__ import annotations

import json
import queue
import subprocess
import sys
import threading
from pathlib import Path
from typing import TypedDict

from weft.cli.engines import Request


class Answer(TypedDict, total=False):
    """The answer of a process: an error, or the value that it was asked for."""

    ready: float
    """Seconds until the model had run once."""
    seconds: float
    """Seconds of all calls together."""
    profile: str
    error: str


class Engine:
    """The process of one engine, and its measurements: seconds per call, one for each round.

    Args:
        name: the engine's name in ``weft.cli.engines.ENGINES``.
        folder: the folder for the file with its standard error.
        timeout: seconds within which each request must be answered.
        command: the command that is run; default: ``python -m weft.cli.engines``.
    """

    def __init__(
        self, name: str, folder: Path, timeout: float, command: tuple[str, ...] = ()
    ) -> None:
        self.name, self.timeout = name, timeout
        self.setup, self.error = 0.0, ""
        self.seconds: list[float] = []
        self.answer: Answer = {}  # the answer to the last ``load``
        self._log = folder / f"{name}.log"
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(
                command or (sys.executable, "-m", "weft.cli.engines"),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        self._answers: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        """Pass on every line that the process writes, and an empty one at its end."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._answers.put(line)
        self._answers.put("")

    def load(self, request: Request) -> None:
        """Make the process load a model and run it once; sets ``setup`` to the time that took.

        The measurements of an earlier model are dropped.
        """
        self.seconds = []
        self.answer = self.ask({**request, "engine": self.name})
        self.setup = self.answer.get("ready", 0.0)

    def ask(self, message: Request) -> Answer:
        """Send one request and return the answer; an error if none came in time."""
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps(message) + "\n")
            self.process.stdin.flush()
            line = self._answers.get(timeout=self.timeout)
        except BrokenPipeError:
            line = ""
        except queue.Empty:
            self.process.kill()
            self.error = f"no answer within {self.timeout:g} s; stopped (--timeout)"
            return {"error": self.error}
        answer = _read(line) if line else {"error": self._end()}
        self.error = answer.get("error", "")
        return answer

    def _end(self) -> str:
        """How the process ended, with the last line that it wrote to standard error."""
        try:
            status = self.process.wait(timeout=10)
        except subprocess.TimeoutExpired:  # the process closed its output but still runs
            self.process.kill()
            return "its process stopped answering"
        lines = self._log.read_text(encoding="utf-8", errors="replace").split("\n")
        last = next((line.strip() for line in reversed(lines) if line.strip()), "")
        return f"its process ended with status {status}" + (f": {last[:200]}" if last else "")

    def stop(self) -> None:
        """End the process and close its pipes."""
        self.process.kill()
        self._reader.join(timeout=10)
        self.process.communicate()


def _read(line: str) -> Answer:
    """The JSON object in a line; an error if it contains none."""
    try:
        answer: Answer | None = json.loads(line)
    except ValueError:
        answer = None
    if isinstance(answer, dict):
        return answer
    return {"error": f"its process answered with what is no JSON object: {line.strip()[:200]}"}
