"""Rare garbage collections while the compiler allocates.

The compiler makes many nodes and hardly any cyclic garbage. Yet every 700 new containers start
CPython's cyclic collector, which now and then walks all objects that are alive: on a graph of
10,000 bindings such a walk takes longer than most passes, and the larger the module, the more
often one happens. Inside of ``with rare_collections:`` the youngest generation is collected every
100,000 new containers instead; cyclic garbage stays bounded. (mypy raises its threshold for the
same reason.)

The threshold belongs to the whole process: the first block that is entered, in any thread, raises
it, and the last that is left restores it. If the user has disabled the collector, set a higher
threshold or changes it inside of a block, that is respected.
"""

from __future__ import annotations

import gc
import os
import threading
from contextlib import ContextDecorator
from typing import Final

CONTAINERS: Final = 100_000
"""The number of allocated minus freed containers that starts a collection."""


class RareCollections(ContextDecorator):
    """The context manager, and decorator; one serves all threads and nests."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._count = 0
        self._usual: tuple[int, int, int] = gc.get_threshold()
        self._raised: tuple[int, int, int] | None = None

    def __enter__(self) -> None:
        with self._lock:
            if self._count == 0:
                self._raise()
            self._count += 1

    def __exit__(self, *exc_info: object) -> None:
        with self._lock:
            self._count -= 1
            if self._count == 0 and gc.get_threshold() == self._raised:
                gc.set_threshold(*self._usual)

    def _raise(self) -> None:
        self._usual, self._raised = gc.get_threshold(), None
        if 0 < self._usual[0] < CONTAINERS:
            gc.set_threshold(CONTAINERS, *self._usual[1:])
            self._raised = gc.get_threshold()

    def forked(self) -> None:
        """In a child process: a new lock, as a thread that does not exist here may hold the old."""
        self._lock = threading.Lock()


rare_collections: Final = RareCollections()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=rare_collections.forked)
