"""The compile workers of this process, and batches of texts that several of them translate at once.

Workers are started when they are needed, and replaced after many jobs. A worker belongs to one
batch as long as it has a text of it. A forked child starts its own workers. Where no process can be
started there are none.
"""

from __future__ import annotations

import atexit
import logging
import os
import select
import threading
from typing import Final, NamedTuple

from weft.codegen.llvm.worker import Job, Refusal
from weft.codegen.llvm.worker_process import Worker, WorkerEndedError, can_start
from weft.support.config import worker_count
from weft.support.errors import InternalError
from weft.support.forks import hold_over_forks
from weft.support.progress import phase

_LOG: Final = logging.getLogger(__name__)
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
        self._busy: list[Worker] = []
        self._is_registered = self._is_closed = False

    def pids(self) -> list[int]:
        """The numbers of the workers' processes."""
        with self._lock:
            return [worker.pid for worker in (*self._waiting, *self._busy)]

    def warm(self) -> None:
        """Start a worker if there is none: one will be needed soon, and starting takes time."""
        self._register()
        with self._lock:
            if not self._waiting and not self._busy:
                worker = self._new()
                if worker is not None:
                    self._waiting.append(worker)

    def take(self, *, wait: bool) -> Worker | None:
        """A worker that is ready. None if there can be none, or (without ``wait``) if all are busy.

        The caller has to give it back.
        """
        worker = self._waiting_or_new(wait)
        if worker is None:
            return None
        try:
            worker.wait_until_ready()
        except WorkerEndedError as error:  # workers cannot run in this environment
            _LOG.info("no compile worker can run, LLVM runs in this process: it %s", error)
            self._is_closed = True
            self.give_back(worker, is_usable=False)
            return None
        except BaseException:
            self.give_back(worker, is_usable=False)
            raise
        return worker

    def _waiting_or_new(self, wait: bool) -> Worker | None:
        self._register()
        with self._lock:
            while True:
                while self._waiting:
                    worker = self._waiting.pop()
                    if worker.is_alive():
                        self._busy.append(worker)
                        return worker
                    worker.end()
                most = worker_count()
                if self._is_closed or not most or len(self._busy) < most:
                    started = self._new()
                    if started is not None:
                        self._busy.append(started)
                    return started
                if not wait:
                    return None
                self._is_free.wait()

    def _new(self) -> Worker | None:
        if self._is_closed or not worker_count() or not can_start():
            return None
        try:
            worker = Worker(self.idle_seconds)
        except OSError as error:
            _LOG.info("no compile worker can be started, LLVM runs in this process: %s", error)
            self._is_closed = True
            return None
        _LOG.info("compile worker %d is started", worker.pid)
        return worker

    def _register(self) -> None:
        """Tell of the lock before a thread first holds it: a fork may come at any moment.

        Two threads may do so, which does no harm.
        """
        if not self._is_registered:
            hold_over_forks(self._lock)  # so that a child finds complete lists of workers to close
            os.register_at_fork(after_in_child=self._forget)
            atexit.register(self.close)
            self._is_registered = True

    def give_back(self, worker: Worker, *, is_usable: bool) -> None:
        """Let a worker wait for another job or (not usable) end it."""
        with self._lock:
            if worker not in self._busy:  # this is a forked child, which has let it go
                return
            self._busy.remove(worker)
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
        for worker in (*self._waiting, *self._busy):
            worker.let_go()
        self._waiting, self._busy = [], []
        self._is_free = threading.Condition(self._lock)


class NotTranslatedError(Exception):
    """A text of a batch was not translated.

    Attributes:
        text: the text.
        reason: a Refusal, MemoryError or WorkerEndedError.
    """

    def __init__(self, text: str, reason: Exception) -> None:
        super().__init__(text, reason)
        self.text, self.reason = text, reason


class _Request(NamedTuple):
    """A text that a worker has, and its place among the texts of its batch."""

    place: int
    text: str
    job: Job
    is_second_try: bool


class Batch:
    """Texts that are translated beside each other, as many at once as there are workers.

    Within ``with``; what is not done when it ends, by an error or an interrupt, is broken off.
    """

    def __init__(self, pool: WorkerPool) -> None:
        self._pool = pool
        self._answers: list[bytes | None] = []
        self._running: dict[Worker, _Request] = {}

    def __enter__(self) -> Batch:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in list(self._running):
            self._let_go(worker, is_usable=False)

    def add(self, text: str, job: Job) -> int | None:
        """Give a text to a worker, and wait until one is free: the text's place in this batch.

        None if there can be no worker. Raises NotTranslatedError for a text before it.
        """
        place = len(self._answers)
        if not self._start(_Request(place, text, job, is_second_try=False)):
            return None
        self._answers.append(None)
        return place

    def answer(self, place: int) -> bytes:
        """What a worker makes of the text at a place; waits for it. Raises NotTranslatedError."""
        while True:
            answer = self._answers[place]
            if answer is not None:
                return answer
            if not self._running:
                raise InternalError("expected an answer within the batch, it has ended")
            self._finish(self._next_to_answer())

    def _start(self, request: _Request) -> bool:
        worker = self._free_worker()
        if worker is None:
            return False
        self._running[worker] = request
        worker.ask(request.text.encode(), request.job)
        return True

    def _free_worker(self) -> Worker | None:
        while True:
            for worker in self._answering(0):
                self._finish(worker)
            with phase("LLVM"):
                taken = self._pool.take(wait=not self._running)
            if taken is not None or not self._running:
                return taken
            self._finish(self._next_to_answer())

    def _answering(self, milliseconds: int | None) -> list[Worker]:
        """The workers that answer within some time; None waits for the first one."""
        poll = select.poll()
        by_number = {worker.fileno(): worker for worker in self._running}
        for number in by_number:
            poll.register(number, select.POLLIN)
        return [by_number[number] for number, _ in poll.poll(milliseconds)] if by_number else []

    def _next_to_answer(self) -> Worker:
        with phase("LLVM"):
            return self._answering(None)[0]

    def _finish(self, worker: Worker) -> None:
        """Take the answer of a worker.

        Where the worker was ended from outside, another one tries once more.
        """
        request, is_usable = self._running[worker], False
        try:
            self._answers[request.place] = worker.answer()
            is_usable = True
        except (Refusal, MemoryError, WorkerEndedError) as error:
            is_usable = isinstance(error, Refusal)
            is_from_outside = isinstance(error, WorkerEndedError) and error.is_from_outside
            if not is_usable:
                _LOG.info("compile worker %d is lost: %s", worker.pid, error or "out of memory")
            if request.is_second_try or not is_from_outside:
                raise NotTranslatedError(request.text, error) from error
            self._let_go(worker, is_usable=False)
            if not self._start(request._replace(is_second_try=True)):
                raise NotTranslatedError(request.text, error) from error
        finally:
            if worker in self._running:
                self._let_go(worker, is_usable=is_usable)

    def _let_go(self, worker: Worker, *, is_usable: bool) -> None:
        del self._running[worker]
        self._pool.give_back(worker, is_usable=is_usable)


POOL: Final = WorkerPool()
"""The workers of this process."""
