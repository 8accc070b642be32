"""What runs on a machine of a cluster: the parts that do jobs there, each started at its first job.

Parts of one machine are in one process, so that a runner there makes the builders stand still
while it measures (``weft.meta_schedule.processes.quiet``). Nothing here needs Ray.
"""

from __future__ import annotations

import functools
import pickle
import platform
import threading
from collections.abc import Callable
from typing import NamedTuple

from weft.codegen.backend import backend_of
from weft.codegen.cache import source_digest
from weft.target.target import Target


class About(NamedTuple):
    """What must be the same on all machines of a search, as texts.

    Attributes:
        weft: a digest of the sources that make code.
        python: the version of Python without its last number: functions are sent as bytecode.
        processor: what code for "this machine" is compiled for.
    """

    weft: str
    python: str
    processor: str


@functools.cache
def about_here() -> About:
    """What this machine has.

    >>> about_here() == about_here()
    True
    """
    target = Target("llvm")
    python = ".".join(platform.python_version_tuple()[:2])
    return About(source_digest().hex(), python, repr(tuple(backend_of(target).options(target))))


class Host:
    """The process on a machine that does jobs for other processes.

    >>> from weft.support.functions_by_value import dumps
    >>> host = Host()
    >>> host.do(dumps(list), "count", dumps((3,)))
    0
    """

    def __init__(self) -> None:
        self._parts: dict[bytes, object] = {}
        self._starting = threading.Lock()

    def about(self) -> About:
        """What this machine has."""
        return about_here()

    def do(self, setup: bytes, method: str, request: bytes) -> object:
        """What a method of a part answers.

        Args:
            setup: a pickle of a function that gives the part; the same bytes are the same part.
            method: the name of the method.
            request: a pickle of its arguments.
        """
        with self._starting:
            if setup not in self._parts:
                start: Callable[[], object] = pickle.loads(setup)
                self._parts[setup] = start()
        return getattr(self._parts[setup], method)(*pickle.loads(request))
