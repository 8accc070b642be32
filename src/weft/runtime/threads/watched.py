"""When each thread works at parallel loops: a record that stands between code and the services.

Code that is loaded inside of ``WatchedServices.watched`` calls functions of ``watched.ll`` in the
place of the services that run parallel loops. So it need not be compiled anew.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import numpy as np

from weft.runtime.call.abi import PARALLEL, PARALLEL_BRIEF
from weft.runtime.native.externals import substituted
from weft.runtime.native.ir_files import ir_file
from weft.runtime.native.parts import load_part
from weft.runtime.threads.parallel import parallel_symbol

WATCHED: Final = (PARALLEL, PARALLEL_BRIEF)
"""The services that run loops; the one that runs a whole call as a team's member is not among
them."""
ROWS: Final = 1 << 14
FIELDS: Final = 5
"""The table of watched.ll."""
_PREFIX: Final = "watched_"


def watched_ir() -> str:
    """The text of the services that note parts."""
    return ir_file("threads/watched.ll")


class WatchedServices:
    """The services that note which thread works when, and their table."""

    def __init__(self) -> None:
        parallel_symbol()  # the services themselves
        self._loaded = load_part(watched_ir())
        self._addresses = {name: self._loaded.address(_PREFIX + name) for name in WATCHED}
        table = (ctypes.c_int64 * (ROWS * FIELDS)).from_address(self._loaded.address("parts_table"))
        self._table = np.ctypeslib.as_array(table).reshape(ROWS, FIELDS)
        self._count = ctypes.c_int64.from_address(self._loaded.address("parts_count"))

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Code that this thread loads inside of the block is watched."""
        with substituted(self._addresses):
            yield

    def clear(self) -> None:
        """Forget what was noted."""
        self._count.value = 0

    def parts(self) -> np.ndarray:
        """(thread, begin, end) of each part since ``clear``, in nanoseconds; int64."""
        rows = self._table[: min(self._count.value, ROWS)]
        begin, end = (rows[:, at] * 1_000_000_000 + rows[:, at + 1] for at in (0, 2))
        return np.stack([rows[:, 4], begin, end], axis=1)
