"""Locks and ``os.fork``: a child has only the thread that forked, but all locks as they were.

A lock that another thread held stays locked in the child for ever. It cannot be replaced by a new
lock if it guards the state of another library, which may be changed in part. So the thread that
forks acquires the lock first: then no other thread is inside.
"""

from __future__ import annotations

import functools
import logging  # noqa: F401 - its own handler for forks must be registered before ours: see _take
import os
import sys
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Final

_FORKING: Final = threading.RLock()
_LOCKS: Final[list[AbstractContextManager[object]]] = []
_MODULE_LOCKS: Final[dict[str, Callable[[], object]]] = getattr(
    sys.modules.get("_frozen_importlib"), "_module_locks", {}
)
MOST_SECONDS: Final = 60
"""How long a fork waits for imports. One of them may itself wait for the thread that forks."""
_TELLING: Final = threading.Lock()
"""Held while a lock is registered, and by a fork, which has to know of all that are held."""
_HELD: Final[list[AbstractContextManager[object]]] = []
"""The locks that the fork in progress holds."""


@functools.cache
def watch_forks() -> None:
    """From now on, ``os.fork`` waits for imports by other threads, and holds the locks.

    Whatever imports weft's modules when they are needed calls it first.
    """
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=_take, after_in_parent=_give_back, after_in_child=_give_back)


def hold_over_forks(lock: AbstractContextManager[object], *, is_outer: bool = False) -> None:
    """From now on, ``os.fork`` acquires ``lock`` before; parent and child release it afterwards.

    The lock must be one that a thread may acquire twice, and nobody may have acquired it before.
    ``is_outer`` says that threads which hold it acquire others of these locks.
    """
    watch_forks()
    with _TELLING:
        _LOCKS.insert(0 if is_outer else len(_LOCKS), lock)


def _take() -> None:
    """Wait for imports, then hold the locks.

    Python calls what was registered last first. Handlers that were registered later than this one
    have taken their locks by now, and an import may wait for such a lock: ``logging``'s, which most
    modules take when they are imported. So logging is imported first.
    """
    _wait_for_imports()
    _FORKING.acquire()
    while True:
        held = list(_LOCKS)
        for lock in held:
            lock.__enter__()
        _TELLING.acquire()
        if held == _LOCKS:
            break
        _TELLING.release()  # one was registered meanwhile, and may have to come before others
        for lock in reversed(held):
            lock.__exit__(None, None, None)
    _HELD[:] = held


def _wait_for_imports() -> None:
    """Wait until no other thread imports a module, as Python does not handle its import locks.

    A child can never import a module that another thread had imported in part. A thread that forks
    during an import of its own does not wait, since the other thread may wait for it.
    """
    end = time.monotonic() + MOST_SECONDS
    while time.monotonic() < end:
        owners = {owner for owner in map(_owner, list(_MODULE_LOCKS.values())) if owner is not None}
        if not owners or threading.get_ident() in owners:
            return
        time.sleep(0.001)


def _owner(reference: Callable[[], object]) -> object:
    """The thread that imports a module, by the weak reference to the module's lock."""
    return getattr(reference(), "owner", None)


def _give_back() -> None:
    _TELLING.release()
    for lock in reversed(_HELD):
        lock.__exit__(None, None, None)
    _FORKING.release()
