"""When each thread worked at parallel loops: a record that stands between code and the services.

Code that is loaded inside of ``WatchedServices.watched`` calls functions of this module in the
place of the services that run parallel loops. They call the service with a body that notes thread,
begin and end of each part in a table, around the body that was given. So kernels need not be
compiled anew.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import numpy as np

from weft.runtime.call.abi import PARALLEL, PARALLEL_BRIEF
from weft.runtime.native.externals import substituted
from weft.runtime.native.parts import load_part
from weft.runtime.threads.parallel import parallel_symbol

WATCHED: Final = (PARALLEL, PARALLEL_BRIEF)
"""The services that run loops; the one that runs a whole call as a team's member is not among
them."""
ROWS: Final = 1 << 14
"""Parts that the table holds; later ones overwrite the first. A power of two."""
FIELDS: Final = 5
"""Seconds and nanoseconds of the begin, the same of the end, the thread."""
_PREFIX: Final = "watched_"

_BODY: Final = """
declare i32 @clock_gettime(i32, ptr)
declare i64 @pthread_self()
@parts_table = global [{rows} x [{fields} x i64]] zeroinitializer, align 64
@parts_count = global i64 0, align 64

define internal i32 @part(ptr %context, i64 %begin, i64 %end) {{
  %body = load ptr, ptr %context
  %at = getelementptr ptr, ptr %context, i64 1
  %frame = load ptr, ptr %at
  %number = atomicrmw add ptr @parts_count, i64 1 monotonic
  %index = and i64 %number, {mask}
  %row = getelementptr [{fields} x i64], ptr @parts_table, i64 %index
  %until = getelementptr i64, ptr %row, i64 2
  %who = getelementptr i64, ptr %row, i64 4
  %thread = call i64 @pthread_self()
  store i64 %thread, ptr %who
  call i32 @clock_gettime(i32 1, ptr %row)
  %code = call i32 %body(ptr %frame, i64 %begin, i64 %end)
  call i32 @clock_gettime(i32 1, ptr %until)
  ret i32 %code
}}
"""
_SERVICE: Final = """
declare i32 @{name}(ptr, ptr, i64, i32)

define i32 @watched_{name}(ptr %body, ptr %frame, i64 %n, i32 %threads) {{
  %context = alloca [2 x ptr], align 64
  store ptr %body, ptr %context
  %at = getelementptr ptr, ptr %context, i64 1
  store ptr %frame, ptr %at
  %code = call i32 @{name}(ptr @part, ptr %context, i64 %n, i32 %threads)
  ret i32 %code
}}
"""


class WatchedServices:
    """The services that note which thread works when, and their table."""

    def __init__(self) -> None:
        parallel_symbol()  # the services themselves
        body = _BODY.format(rows=ROWS, fields=FIELDS, mask=ROWS - 1)
        services = [_SERVICE.format(name=name) for name in WATCHED]
        self._loaded = load_part("\n".join([body, *services]))
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
        """(thread, begin, end) of each part since ``clear``, in nanoseconds."""
        rows = self._table[: min(self._count.value, ROWS)]
        begin, end = (rows[:, at] * 1_000_000_000 + rows[:, at + 1] for at in (0, 2))
        return np.stack([rows[:, 4], begin, end], axis=1)
