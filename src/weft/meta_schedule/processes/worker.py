"""A worker process: it does one job after the other, until its input ends.

A message is its length and its bytes. The first request is a pickle of an initializer (or None) and
of a function that gives the job; each further one a pickle of the job's arguments. An answer is
JSON: ``{"value": ...}`` or ``{"error": text}``, with the KiB of memory that the process takes;
before a job measures, ``{"quiet": true}``, after which the process waits until the machine is
quiet (``pool.py`` is the other side). The first answer is to the first request.

A job that hangs, in native code too, is ended by the kernel (``SIGALRM``) soon after its time, so
that none is left where the process that started it was killed.
"""

from __future__ import annotations

import contextlib
import faulthandler
import json
import os
import pickle
import resource
import select
import signal
import struct
import threading
import traceback
from collections.abc import Callable
from typing import Final, NamedTuple

from weft.codegen.llvm.worker import read_exactly, resident, write_all

LENGTH: Final = struct.Struct("<Q")
_GRACE: Final = 5.0
"""Seconds after its time at which a job that its owner has not ended is ended."""
_LONGEST_ERROR: Final = 4000
_WATCHER_STACK: Final = 256 << 10


class Limits(NamedTuple):
    """What a worker may take: seconds for a job, bytes of memory for itself (0: as many as any)."""

    seconds: float
    memory: int
    nice: int


def read_message(source: int) -> bytes:
    """The next message of a file descriptor. Raises EOFError where it ends before."""
    return read_exactly(source, LENGTH.unpack(read_exactly(source, LENGTH.size))[0])


def write_message(sink: int, content: bytes) -> None:
    """Write a message to a file descriptor."""
    write_all(sink, LENGTH.pack(len(content)), content)


class _Channel:
    """The pipes to the process that gives jobs."""

    def __init__(self, source: int, sink: int) -> None:
        self.source, self.sink = source, sink

    def answer(self, content: dict[str, object]) -> None:
        write_message(self.sink, json.dumps({**content, "resident": resident()}).encode())


_channels: list[_Channel] = []


def wait_for_quiet() -> None:
    """Within a job: wait until other workers of the process that gave it stand still.

    They go on when the job has ended. Outside of a worker this does nothing.
    """
    if _channels:
        _channels[0].answer({"quiet": True})
        read_message(_channels[0].source)


def main(limits: Limits) -> None:
    """Answer requests from standard input; what jobs print goes to standard error."""
    channel = _Channel(os.dup(0), os.dup(1))
    os.dup2(2, 1)
    faulthandler.enable()
    _bound(limits)
    threading.stack_size(_WATCHER_STACK)
    threading.Thread(target=_end_with_the_parent, args=(channel.source,), daemon=True).start()
    threading.stack_size(0)
    _channels.append(channel)
    job: Callable[..., object] | None = None
    while True:
        try:
            request = read_message(channel.source)
        except EOFError:
            os._exit(0)
        signal.setitimer(signal.ITIMER_REAL, limits.seconds + _GRACE if job else 0)
        try:
            if job is None:
                job = _job_of(request)
                answer: dict[str, object] = {"value": None}
            else:
                answer = {"value": job(*pickle.loads(request))}
            json.dumps(answer)  # what JSON cannot hold is an error of the job
        except BaseException as error:  # noqa: BLE001 - any failure of a job is an answer
            answer = {"error": _text_of(error)}
        signal.setitimer(signal.ITIMER_REAL, 0)
        channel.answer(answer)


def _job_of(request: bytes) -> Callable[..., object]:
    initializer, prepare = pickle.loads(request)
    if initializer is not None:
        initializer()
    job: Callable[..., object] = prepare()
    return job


def _text_of(error: BaseException) -> str:
    """What the user gets to read: the error, and where in code that is not weft's it was raised."""
    lines = traceback.format_exception_only(error)
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename != __file__]
    where = f"\nin {frames[-1].name}, {frames[-1].filename}:{frames[-1].lineno}" if frames else ""
    return ("".join(lines).strip() + where)[:_LONGEST_ERROR]


def _bound(limits: Limits) -> None:
    """Let the kernel end this process rather than others when memory or time is used up."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    if limits.memory:
        hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
        most = limits.memory if hard == resource.RLIM_INFINITY else min(limits.memory, hard)
        resource.setrlimit(resource.RLIMIT_DATA, (most, hard))
    if limits.nice:
        os.nice(limits.nice)
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write("1000")


def _end_with_the_parent(source: int) -> None:
    """End the process as soon as the other end of its input is closed, even while it works.

    A poll for no event waits for exactly that: POLLHUP is reported unasked.
    """
    poll = select.poll()
    poll.register(source, 0)
    poll.poll()
    os._exit(0)
