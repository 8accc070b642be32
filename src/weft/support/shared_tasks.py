"""Tasks that this process shares with forked children, so that several processors work at them.

A child has everything that its parent had: tasks are functions of this process, with whatever they
refer to, and only what they return is pickled. So a child is ready in milliseconds. Each process
takes the next task when it is done with one: a pipe holds the numbers of the tasks, from which a
read takes one at a time (as in the jobserver of GNU make).

A child computes and nothing else. It must not wait for threads, which it does not have, and leaves
without running exit handlers. What goes wrong in a child (an exception, a signal, no memory) is
left to the parent, which does that task again: there the error is raised, if it is one.
"""

from __future__ import annotations

import contextlib
import fcntl
import gc
import os
import pickle
import signal
import struct
import threading
import time
import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from multiprocessing.connection import Connection, Pipe, wait
from typing import Any, Final, NamedTuple, NoReturn, TypeVar

from weft.support.config import worker_count
from weft.support.forks import hold_over_forks

T = TypeVar("T")
PATIENCE: Final = 60.0
"""Seconds without a result from any child, while this process has nothing else to do, after which
the children count as stuck: a lock may be one that a thread held when the process forked."""
_NUMBER: Final = struct.Struct("<I")
_MOST_TASKS: Final = 8192
"""So many numbers fit into a pipe that nobody reads yet."""
_PIPE_BYTES: Final = 1 << 20
"""A child that answers less need not wait for its parent, where the system permits such pipes."""
_STUCK: Final = threading.Event()
"""Set when children were stuck: no more are forked from then on."""
_STARTING: Final = threading.RLock()
"""Held while a child is forked: else children of two threads would keep each other's pipes open."""
hold_over_forks(_STARTING)


class _Child(NamedTuple):
    pid: int
    answers: Connection
    """What it computed: the pickle of a number and a result; nothing where it failed."""


def children() -> int:
    """How many processes may help: as many as there are processors besides this one's."""
    return max(worker_count() - 1, 0)


def results(
    tasks: Sequence[Callable[[], T]], most: int | None = None
) -> Generator[tuple[int, T], None, None]:
    """The results of tasks with their numbers, as they come, from forked children and from here.

    Where no process can be forked, or one ends early, this one does the rest. Children are gone
    when the iterator ends or is closed.

    Args:
        tasks: functions without side effects, since they run in one process or another.
        most: how many children to fork at most (``children()`` by default).

    Raises:
        Exception: whatever a task raises.

    >>> sorted(results([lambda: "a" * 3, lambda: "b" * 2], most=1))
    [(0, 'aaa'), (1, 'bb')]
    """
    missing = dict(enumerate(tasks))
    count = min(children() if most is None else most, len(tasks) - 1)
    if count > 0 and len(tasks) <= _MOST_TASKS and not _STUCK.is_set():
        with contextlib.closing(_shared(tasks, count)) as shared:
            for number, result in shared:
                del missing[number]
                yield number, result
    for number, task in missing.items():
        yield number, task()


def _shared(tasks: Sequence[Callable[[], T]], count: int) -> Generator[tuple[int, T], None, None]:
    """The results that are there until nothing more is expected of the children."""
    numbers = _queue(len(tasks))
    running: list[_Child] = []
    try:
        _fork_all(tasks, numbers, count, running)
        while running:
            yield from _answers(running, 0)
            number = _next(numbers)
            if number is not None:
                yield number, tasks[number]()
                continue
            begin = time.monotonic()
            yield from _answers(running, PATIENCE)
            if time.monotonic() - begin >= PATIENCE:
                _STUCK.set()
                return
    finally:
        os.close(numbers)
        for child in running:
            _end(child)


def _queue(count: int) -> int:
    """A pipe's end from which each of so many numbers can be read once."""
    reading, writing = os.pipe()
    os.write(writing, b"".join([_NUMBER.pack(number) for number in range(count)]))
    os.close(writing)
    return reading


def _next(numbers: int) -> int | None:
    """The next number; None where all are taken."""
    data = os.read(numbers, _NUMBER.size)
    return _NUMBER.unpack(data)[0] if data else None


def _fork_all(
    tasks: Sequence[Callable[[], T]], numbers: int, count: int, running: list[_Child]
) -> None:
    """Fork children that work at the tasks, as many as the system permits."""
    with contextlib.suppress(OSError):
        for _ in range(count):
            with _STARTING:
                running.append(_started(tasks, numbers))


def _started(tasks: Sequence[Callable[[], T]], numbers: int) -> _Child:
    reading, writing = Pipe(duplex=False)
    with writing:
        _widen(writing)
        pid = _fork()
        if pid == 0:
            _work(tasks, numbers, writing)
    return _Child(pid, reading)


def _widen(sink: Connection) -> None:
    """Let a pipe take as much as possible before its writer waits."""
    with contextlib.suppress(AttributeError, OSError):
        fcntl.fcntl(sink, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)


def _fork() -> int:
    with warnings.catch_warnings():  # of Python 3.12: threads do not exist in the child
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


def _work(tasks: Sequence[Callable[[], T]], numbers: int, sink: Connection) -> NoReturn:
    """What a child does: tasks, as long as there are some and its parent lives."""
    try:
        parent = os.getppid()
        gc.disable()
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        while (number := _next(numbers)) is not None and os.getppid() == parent:
            try:
                answer = pickle.dumps((number, tasks[number]()))
            except Exception:  # noqa: BLE001 - the parent runs this task again, and raises it
                answer = b""
            sink.send_bytes(answer)
    finally:
        os._exit(0)


def _answers(running: list[_Child], seconds: float) -> Iterator[tuple[int, Any]]:
    """A result of each child that has one; those within some time, if there is none now.

    A child that has ended is taken from ``running``.
    """
    ready = wait([child.answers for child in running], seconds) if running else []
    for child in [child for child in running if child.answers in ready]:
        try:
            answer = child.answers.recv_bytes()
        except (EOFError, OSError):
            running.remove(child)
            _end(child)
            continue
        if answer:
            yield pickle.loads(answer)


def _end(child: _Child) -> None:
    """End a child at once, and forget it."""
    child.answers.close()
    with contextlib.suppress(ProcessLookupError, ChildProcessError):
        os.kill(child.pid, signal.SIGKILL)
        os.waitpid(child.pid, 0)
