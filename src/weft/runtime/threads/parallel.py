"""Threads of parallel loops: how many, and where ``weft_parallel`` comes from (design.md 3.8).

The first program that has a parallel loop loads the code of parallel_ir.py, whose threads then live
as long as the process. A forked child has none of them, so loops there run serially, and a warning
says so once.
"""

from __future__ import annotations

import ctypes
import functools
import os
import threading
import warnings
from typing import Final

from weft.runtime.call.abi import PARALLEL, THREADED, NoticeFunction, address_of
from weft.runtime.faults import store_fault
from weft.runtime.native.externals import add_symbol
from weft.runtime.native.parts import load_part
from weft.runtime.threads.parallel_ir import parallel_ir
from weft.support.config import environment_int, usable_processors
from weft.support.errors import IRValueError

_LIBC: Final = ctypes.PyDLL(None)
_LAST_KEY: Final = 2**31 - 1


def default_num_threads() -> int:
    """``WEFT_NUM_THREADS`` if set, else the processors in this process's affinity mask."""
    configured = environment_int("WEFT_NUM_THREADS", minimum=1)
    return usable_processors() if configured is None else configured


class _Services:
    """The compiled services that start threads, and what they read."""

    def __init__(self) -> None:
        add_symbol("weft_fork_notice", _NOTICE_ADDRESS)
        loaded = load_part(parallel_ir())
        # its threads look for work until the process has ended, so the code is never given back
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(loaded))
        self.addresses = {name: loaded.address(name) for name in THREADED}

        def variable(name: str) -> ctypes.c_int32:
            return ctypes.c_int32.from_address(loaded.address(name))

        self.shared, self.fork_state = variable("weft_thread_count"), variable("weft_fork_state")
        variable("weft_own_count_key").value = own_count_key()
        variable("weft_team_key").value = _new_key()


def _new_key(destructor: object = None) -> int:
    """A pthread key; -1 where there is none left. The destructor gets each thread's value."""
    key = ctypes.c_uint32()
    failed = _LIBC.pthread_key_create(ctypes.byref(key), destructor)
    return -1 if failed or key.value > _LAST_KEY else key.value


@functools.cache
def own_count_key() -> int:
    """The pthread key of the address of a thread's own number of threads; -1: none."""
    _LIBC.pthread_setspecific.argtypes = (ctypes.c_uint32, ctypes.c_void_p)
    _LIBC.calloc.restype = ctypes.c_void_p
    return _new_key(_LIBC.free)


class own_num_threads:  # noqa: N801 - a context manager, named as it reads
    """While open, parallel loops that this thread starts use ``count`` threads.

    Raises IRValueError for a count outside of 1 to 4096.

    >>> with own_num_threads(2):
    ...     num_threads()
    2
    """

    __slots__ = ("_before", "_count")

    def __init__(self, count: int) -> None:
        _check_count(count)
        self._count = count

    def __enter__(self) -> None:
        self._before = exchange_own_count(self._count)

    def __exit__(self, *exception: object) -> None:
        exchange_own_count(self._before)


class _Own(threading.local):
    """``count``: the calling thread's own number of threads (0: none), where native code reads it.

    That memory is the C library's and goes with the native thread, not with Python's objects: a
    thread may still compute when the interpreter is gone.
    """

    def __init__(self) -> None:
        key = own_count_key()
        address = _LIBC.calloc(1, ctypes.sizeof(ctypes.c_int32)) if key >= 0 else None
        if address is None or _LIBC.pthread_setspecific(key, address):
            self.count = ctypes.c_int32()  # native code uses the number of the process
        else:
            self.count = ctypes.c_int32.from_address(address)


_own: Final = _Own()


def exchange_own_count(count: int) -> int:
    """Let parallel loops of this thread use ``count`` threads (0: as many as others).

    Returns the old count. Each call of a model does this twice, so it only writes to memory.
    """
    own = _own.count
    before = own.value
    own.value = count
    return before


_lock = threading.Lock()
_services: _Services | None = None
_requested: int | None = None
_forked = False


def num_threads() -> int:
    """The number of threads that a parallel loop uses when its code asks for no other."""
    return _own.count.value or _shared_count()


def set_num_threads(count: int | None) -> None:
    """Set the number of threads of parallel loops; None goes back to the default."""
    global _requested
    if count is not None:
        _check_count(count)
    _requested = count
    if _services is not None:
        _services.shared.value = _shared_count()


def _check_count(count: int) -> None:
    if not isinstance(count, int) or not 1 <= count <= 4096:
        raise IRValueError(f"expected a number of threads from 1 to 4096, got {count!r}")


def _shared_count() -> int:
    return _requested if _requested is not None else default_num_threads()


def parallel_symbol() -> int:
    """The address of ``weft_parallel``; compiles and registers it at the first call.

    To be called before an engine whose code uses it is finalised.
    """
    global _services
    with _lock:
        if _services is None:
            services = _Services()
            services.shared.value = _shared_count()
            services.fork_state.value = 2 if _forked else 0
            for name, address in services.addresses.items():
                add_symbol(name, address)
            _services = services
        return _services.addresses[PARALLEL]


def _notice() -> int:
    """Say once that this process is a forked child; a warning turned error stops the loop."""
    try:
        warnings.warn(
            "weft: this process was forked, so parallel loops run on one thread in it; "
            "start workers with the 'spawn' method to have threads there",
            RuntimeWarning,
            stacklevel=2,
        )
    except BaseException as error:  # noqa: BLE001 - it is re-raised by the wrapper
        return store_fault(error)
    return 0


_notice_callback: Final = NoticeFunction(_notice)
_NOTICE_ADDRESS: Final = address_of(_notice_callback)


def _after_fork() -> None:
    global _forked, _lock
    _forked = True
    _lock = threading.Lock()
    if _services is not None:
        _services.fork_state.value = 2


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
