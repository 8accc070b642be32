"""What a loop scans out: tensors of one shape, to which each step adds one.

A loop carries its rows as a value like any other, so adding one gives new ``Rows`` and leaves the
old ones as they are. Both share memory, which has room for more rows: where nothing was added yet
behind the old ones, adding one writes that room, so that a loop of n steps writes n rows. Importing
the module registers the functions; the virtual machine does.
"""

from __future__ import annotations

from typing import Final

from weft.runtime.ndarray import NDArray, empty
from weft.runtime.registry import register_func
from weft.support.errors import IRValueError, wrong_type

ADD: Final = "relax.run.add_row"
"""``(rows, row) -> rows``; the first rows are a tensor of no row, which tells shape and type."""
STACK: Final = "relax.run.stack_rows"
"""``(rows) -> tensor``, with the rows along its first axis."""
_ROOM: Final = 16


class _Memory:
    """Room for rows, and how many of them are written."""

    __slots__ = ("rows", "used")

    def __init__(self, start: NDArray, room: int) -> None:
        self.used = start.shape[0]
        self.rows = empty((room, *start.shape[1:]), str(start.dtype))
        self.rows._array[: self.used] = start._array  # noqa: SLF001 - the same room


class Rows:
    """The first ``count`` rows of some memory."""

    __slots__ = ("count", "memory")

    def __init__(self, memory: _Memory, count: int) -> None:
        self.memory, self.count = memory, count

    def tensor(self) -> NDArray:
        """A view of the rows."""
        rows = self.memory.rows
        return NDArray(rows._array[: self.count], rows.dtype)  # noqa: SLF001 - the same room

    def add(self, row: NDArray) -> Rows:
        """These rows and one more."""
        memory, count = self.memory, self.count
        if memory.used != count or count == memory.rows.shape[0]:
            memory = _Memory(self.tensor(), max(_ROOM, 2 * count))
        wanted = memory.rows
        if row.shape != wanted.shape[1:] or row.dtype != wanted.dtype:
            raise IRValueError(
                f"a loop scans out rows of shape {wanted.shape[1:]} and type {wanted.dtype}, "
                f"got one of shape {row.shape} and type {row.dtype}"
            )
        wanted._array[count] = row._array  # noqa: SLF001 - the same room
        memory.used = count + 1
        return Rows(memory, count + 1)


def _rows(value: object) -> Rows:
    if isinstance(value, Rows):
        return value
    if not isinstance(value, NDArray):
        raise wrong_type("expected the rows of a loop", value)
    return Rows(_Memory(value, value.shape[0]), value.shape[0])


@register_func(ADD, override=True)
def add_row(rows: Rows | NDArray, row: NDArray) -> Rows:
    """The rows with one more."""
    return _rows(rows).add(row)


@register_func(STACK, override=True)
def stack_rows(rows: Rows | NDArray) -> NDArray:
    """A tensor of the rows."""
    view = _rows(rows).tensor()
    tensor = empty(view.shape, str(view.dtype))
    tensor._array[...] = view._array  # noqa: SLF001 - the same room
    return tensor
