"""Where the time of a search goes: seconds of named parts of it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, Self

from weft.meta_schedule.seconds import Seconds
from weft.support.errors import IRValueError
from weft.support.scopes import Scopes

_OPEN: Final[Scopes[Any]] = Scopes("profiler")
_TOTAL: Final = "Total"


class Profiler:
    """Adds up the seconds of the parts of what runs inside ``with``.

    >>> with Profiler() as profiler:
    ...     with Profiler.timeit("sample"):
    ...         pass
    >>> sorted(profiler.get())
    ['Total', 'sample']
    """

    def __init__(self) -> None:
        self._seconds: dict[str, float] = {}
        self._begin = 0.0

    def get(self) -> dict[str, Seconds]:
        """Seconds by the name of the part; "Total" is the whole ``with``."""
        return {name: Seconds(value) for name, value in self._seconds.items()}

    def table(self) -> str:
        """The parts as a table, the longest first. Raises IRValueError before the end of with."""
        if _TOTAL not in self._seconds:
            raise IRValueError(
                "Profiler.table: expected a profiler whose with-block has ended, found one without "
                "a total time"
            )
        total = self._seconds[_TOTAL] or 1.0
        parts = sorted(self._seconds.items(), key=lambda part: (-part[1], part[0] != _TOTAL))
        rows = [("ID", "Name", "Time (min)", "Percentage")]
        for number, (name, seconds) in enumerate(parts):
            share = f"{100 * seconds / total:.4f}"
            rows.append((str(number or ""), name, f"{seconds / 60:.4f}", share))
        widths = [max([len(row[column]) for row in rows]) for column in range(4)]
        lines = [
            " | ".join([text.rjust(width) for text, width in zip(row, widths, strict=True)])
            for row in rows
        ]
        line = "-" * len(lines[0])
        return "\n".join([lines[0], line, *lines[1:], line])

    def __enter__(self) -> Self:
        _OPEN.push(self)
        self._begin = time.perf_counter()
        return self

    def __exit__(self, *exc_info: object) -> None:
        _OPEN.pop()
        self._add(_TOTAL, time.perf_counter() - self._begin)

    def _add(self, name: str, seconds: float) -> None:
        self._seconds[name] = self._seconds.get(name, 0.0) + seconds

    @staticmethod
    def current() -> Profiler | None:
        """The profiler of the innermost ``with``; None if there is none."""
        return _OPEN.innermost

    @staticmethod
    @contextmanager
    def timeit(name: str) -> Iterator[None]:
        """Add the seconds of this ``with`` to the current profiler, if there is one."""
        profiler, begin = Profiler.current(), time.perf_counter()
        try:
            yield
        finally:
            if profiler is not None:
                profiler._add(name, time.perf_counter() - begin)
