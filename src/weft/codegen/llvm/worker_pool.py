"""The compile workers of this process: each thread that compiles has one to itself.

Workers are started when they are needed, and replaced after many jobs. A forked child starts its
own. Where no process can be started there are none.
"""

from __future__ import annotations

import atexit
import os
import threading
from typing import Final

from weft.codegen.llvm.worker import Job, Refusal
from weft.codegen.llvm.worker_process import Worker, WorkerEndedError, can_start
from weft.support.config import environment_int, usable_processors
from weft.support.forks import hold_over_forks

RENEW_AFTER: Final = 1000
"""How many jobs a worker does: it bounds what LLVM may keep in memory of each."""
IDLE_SECONDS: Final = 60.0
"""After how long without a job a worker ends: a program that waits for all its children to end is
held up no longer than that."""
RENEW_ABOVE: Final = 512 << 10
"""How many KiB of memory a worker may take before it is replaced: what LLVM frees often stays with
the process."""


class WorkerPool:
    """The workers that wait for a job, and those that have one.

    Args:
        renew_after: how many jobs a worker does before another one takes its place.
        idle_seconds: how long a worker waits for its next job before it ends.
    """

    def __init__(self, renew_after: int = RENEW_AFTER, idle_seconds: float = IDLE_SECONDS) -> None:
        self.renew_after, self.idle_seconds = renew_after, idle_seconds
        self._lock = threading.RLock()
        self._is_free = threading.Condition(self._lock)
        self._waiting: list[Worker] = []
        self._busy: dict[int, Worker] = {}  # by the number of the thread that waits for it
        self._is_registered = self._is_closed = False

    def translate(self, text: str, job: Job) -> bytes | None:
        """What a worker makes of LLVM IR; None if there can be no worker.

        Where a worker is ended from outside, another one tries once more. Raises Refusal,
        MemoryError, WorkerEndedError.
        """
        data = text.encode()
        try:
            return self._translate(data, job)
        except WorkerEndedError as end:
            if not end.is_from_outside:
                raise
        return self._translate(data, job)

    def _translate(self, data: bytes, job: Job) -> bytes | None:
        if not self._take():
            return None
        is_usable = False
        try:
            answer = self._busy[threading.get_ident()].translate(data, job)
            is_usable = True
            return answer
        except Refusal:
            is_usable = True
            raise
        finally:
            self._give_back(is_usable)

    def pids(self) -> list[int]:
        """The numbers of the workers' processes."""
        with self._lock:
            return [worker.pid for worker in (*self._waiting, *self._busy.values())]

    def warm(self) -> None:
        """Start a worker if there is none: one will be needed soon, and starting takes time."""
        with self._lock:
            if not self._waiting and not self._busy:
                worker = self._new()
                if worker is not None:
                    self._waiting.append(worker)

    def _take(self) -> bool:
        """Give this thread a worker that is ready; False if there can be none."""
        self._give_back(is_usable=False)  # one that an interrupted job has left to this thread
        worker = self._waiting_or_new()
        if worker is None:
            return False
        try:
            worker.wait_until_ready()
        except WorkerEndedError:  # workers cannot run in this environment
            self._is_closed = True
            self._give_back(is_usable=False)
            return False
        return True

    def _waiting_or_new(self) -> Worker | None:
        here = threading.get_ident()
        with self._lock:
            while True:
                while self._waiting:
                    worker = self._waiting.pop()
                    if worker.is_alive():
                        self._busy[here] = worker
                        return worker
                    worker.end()
                most = worker_count()
                if self._is_closed or not most or len(self._busy) < most:
                    started = self._new()
                    if started is not None:
                        self._busy[here] = started
                    return started
                self._is_free.wait()

    def _new(self) -> Worker | None:
        if self._is_closed or not worker_count() or not can_start():
            return None
        self._register()
        try:
            return Worker(self.idle_seconds)
        except OSError:
            self._is_closed = True
            return None

    def _register(self) -> None:
        if not self._is_registered:
            self._is_registered = True
            hold_over_forks(self._lock)  # so that a child finds complete lists of workers to close
            os.register_at_fork(after_in_child=self._forget)
            atexit.register(self.close)

    def _give_back(self, is_usable: bool) -> None:
        """Take this thread's worker from it, to wait for another job or (not usable) to end."""
        with self._lock:
            worker = self._busy.pop(threading.get_ident(), None)
            if worker is None:
                return
            is_old = worker.jobs >= self.renew_after or worker.resident > RENEW_ABOVE
            if is_usable and not is_old and not self._is_closed:
                self._waiting.append(worker)
            else:
                worker.end()
            self._is_free.notify_all()

    def close(self) -> None:
        """End the workers that wait, start no more; those at work end when they have answered."""
        with self._lock:
            self._is_closed = True
            while self._waiting:
                self._waiting.pop().end()
            self._is_free.notify_all()

    def _forget(self) -> None:
        """In a forked child: close its copies of the pipes, which would keep the workers alive."""
        for worker in (*self._waiting, *self._busy.values()):
            worker.let_go()
        self._waiting, self._busy = [], {}
        self._is_free = threading.Condition(self._lock)


POOL: Final = WorkerPool()
"""The workers of this process."""


def worker_count() -> int:
    """``WEFT_COMPILE_WORKERS`` if set (0: none), else the processors of this process."""
    configured = environment_int("WEFT_COMPILE_WORKERS")
    return usable_processors() if configured is None else configured
