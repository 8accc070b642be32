"""A pool of worker processes, each with a thread here that gives it jobs and waits for answers.

Workers are started when they are needed and stay for later jobs. One that crashes, or does not
answer in time, is ended; another takes its place, and the failure is the outcome of its job alone.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import queue
import threading
import time
import weakref
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Final

from weft.meta_schedule.processes.process import START_SECONDS, Outcome, Process
from weft.meta_schedule.processes.quiet import QUIET
from weft.meta_schedule.processes.worker import Limits
from weft.support.errors import IRValueError
from weft.support.functions_by_value import dumps

RENEW_AFTER: Final = 2000
"""How many jobs a worker does: it bounds what libraries may keep in memory of each."""
RENEW_ABOVE: Final = 1 << 20
"""How many KiB of memory a worker may take before it is replaced."""
_STEP: Final = 0.5
"""After how many seconds of waiting the time that is left is computed anew."""

_Job = tuple[bytes, "Future[Outcome]"]


@dataclass(eq=False)
class _State:
    """What the threads of a pool share; they know nothing of the pool, which may go."""

    setup: bytes
    limits: Limits
    measures: bool
    jobs: queue.SimpleQueue[_Job | None] = field(default_factory=queue.SimpleQueue)
    lock: threading.Lock = field(default_factory=threading.Lock)
    processes: set[Process] = field(default_factory=set)
    waiting: int = 0
    threads: int = 0
    is_closed: bool = False

    def close(self) -> None:
        """End all processes, and the threads."""
        with self.lock:
            self.is_closed = True
            threads, self.threads = self.threads, 0
            processes = list(self.processes)
        for _ in range(threads):
            self.jobs.put(None)
        for process in processes:
            process.signal(9)


class WorkerPool:
    """Processes that do jobs.

    Args:
        prepare: called in each process: gives the function that does a job and returns what JSON
            can hold. It and ``initializer`` may be any function (``functions_by_value``).
        max_workers: how many processes there may be.
        limits: what each may take.
        initializer: called in each process before ``prepare``.
        measures: jobs of this pool may ask for a quiet machine; else they stand still meanwhile.
    """

    def __init__(
        self,
        prepare: Callable[[], Callable[..., object]],
        *,
        max_workers: int,
        limits: Limits,
        initializer: Callable[[], None] | None = None,
        measures: bool = False,
    ) -> None:
        self.max_workers = max_workers
        self._state = _State(dumps((initializer, prepare)), limits, measures)
        _STATES.add(self._state)
        weakref.finalize(self, self._state.close)

    def submit(self, *arguments: object) -> Future[Outcome]:
        """Have a job done. The result of the future says how it ended, whatever happened."""
        future: Future[Outcome] = Future()
        state = self._state
        request = dumps(arguments)
        with state.lock:
            if state.is_closed:
                raise IRValueError("the worker processes were closed; use a new builder or runner")
            state.jobs.put((request, future))
            if state.waiting < state.jobs.qsize() and state.threads < self.max_workers:
                state.threads += 1
                threading.Thread(target=_serve, args=(state,), daemon=True).start()
        return future

    def check(self) -> None:
        """Start a process, and raise IRValueError if its setup fails."""
        process = Process(self._state.setup, self._state.limits)
        try:
            outcome = process.receive(START_SECONDS)
        finally:
            process.end()
        if outcome is None or outcome.kind:
            raise IRValueError(_setup_failure(outcome))

    def close(self) -> None:
        """End all processes; jobs that wait or run get the outcome ``ended``."""
        self._state.close()

    def pids(self) -> list[int]:
        """The numbers of the processes that there are."""
        with self._state.lock:
            return [process.pid for process in self._state.processes]


def _setup_failure(outcome: Outcome | None) -> str:
    if outcome is None:
        return f"the setup of a worker process did not end within {START_SECONDS:.0f} seconds"
    verb = "failed: " if outcome.kind == "exception" else "ended the process: "
    return f"the setup of a worker process {verb}{outcome.text}"


def _serve(state: _State) -> None:
    """A thread of a pool: its process, replaced whenever it ends, does one job after the other."""
    process: Process | None = None
    while True:
        with state.lock:
            state.waiting += 1
        job = state.jobs.get()
        with state.lock:
            state.waiting -= 1
        if job is None:
            break
        request, future = job
        if not future.set_running_or_notify_cancel():
            continue
        try:
            process, outcome = _do(state, process, request)
        except BaseException as error:  # noqa: BLE001 - the waiting thread gets it
            future.set_exception(error)
            continue
        future.set_result(outcome)
    if process is not None:
        _end(state, process)


def _do(state: _State, process: Process | None, request: bytes) -> tuple[Process | None, Outcome]:
    """The outcome of a job, and the process for the next one."""
    if state.is_closed:
        return process, Outcome(None, "ended", "was closed")
    if process is None or not process.is_alive():
        if process is not None:
            _end(state, process)
        process = Process(state.setup, state.limits)
        with state.lock:
            state.processes.add(process)
        with _room(state, process):
            ready = process.receive(START_SECONDS)
        if ready is None or ready.kind:
            _end(state, process)
            return None, Outcome(None, "ended", _setup_failure(ready))
    process.forget_words()
    with _room(state, process):
        process.send(request)
        outcome = _answer(process, state)
    is_spent = process.jobs >= RENEW_AFTER or process.resident > RENEW_ABOVE
    if outcome.kind in ("timeout", "ended") or is_spent:
        _end(state, process)
        return None, outcome
    return process, outcome


def _room(state: _State, process: Process) -> contextlib.AbstractContextManager[None]:
    return contextlib.nullcontext() if state.measures else QUIET.working(process)


def _answer(process: Process, state: _State) -> Outcome:
    """The outcome of the job that a process has; the time in which it stood still is no part."""
    seconds = state.limits.seconds
    begin = time.monotonic()
    before = 0.0 if state.measures else QUIET.stood_still()
    with contextlib.ExitStack() as quiet:
        while True:
            still = 0.0 if state.measures else QUIET.stood_still() - before
            left = begin + seconds + still - time.monotonic()
            outcome = process.receive(min(left, _STEP))
            if outcome is not None and outcome.kind == "quiet":
                quiet.enter_context(QUIET.quiet())
                begin = time.monotonic()
                process.send(b"quiet")
            elif outcome is not None:
                return outcome
            elif left <= 0:
                return Outcome(None, "timeout", f"Timeout, killed after {seconds:g} seconds")


def _end(state: _State, process: Process) -> None:
    process.end()
    with state.lock:
        state.processes.discard(process)


_STATES: Final[weakref.WeakSet[_State]] = weakref.WeakSet()


def _close_all() -> None:
    for state in list(_STATES):
        state.close()


def _forget() -> None:
    """In a forked child: close its copies of the pipes, which would keep the processes alive."""
    for state in list(_STATES):
        state.is_closed, state.lock = True, threading.Lock()
        for process in state.processes:
            process.let_go()
        state.processes = set()


atexit.register(_close_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
