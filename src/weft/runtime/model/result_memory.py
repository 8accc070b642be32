"""Results of a model that lie in memory of its arguments or constants (used by compiled_model).

A graph may return what it was given: ``def forward(self, x): return x, x + 1``. The program then
gives the argument itself, and a caller that writes to the result would write to the argument, or to
a weight of the model. A model promises results of its caller's own, so such results are copied.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from weft.runtime.ndarray import NDArray
from weft.runtime.vm.bytecode import Result, VMFunction

Range = tuple[int, int]
"""The addresses of some memory: its begin and its end."""


def may_return_foreign_memory(function: VMFunction) -> bool:
    """Whether a call may return memory that it did not allocate; of bytecode that is assumed."""
    return function.native is None or _returns_input(function.native.result)


def _returns_input(result: Result) -> bool:
    todo = [result]
    while todo:
        kind, content = todo.pop()[:2]
        if kind == "input":
            return True
        if kind == "tuple":
            todo.extend(content)
    return False


def own_results(
    outputs: Sequence[object], given: Sequence[object], constants: Iterable[object]
) -> Any:
    """``outputs``, with copies of those that lie in memory of ``given`` or ``constants``."""
    foreign = [span for value in (*given, *constants) for span in _spans(value)]
    return tuple([_owned(output, foreign) for output in outputs])


def _spans(value: Any) -> Iterator[Range]:
    """The memory of every tensor in an argument: compact, as the program was given it."""
    if isinstance(value, tuple | list):
        for item in value:
            yield from _spans(item)
    elif isinstance(value, NDArray):
        yield np.lib.array_utils.byte_bounds(value._array)  # noqa: SLF001 - the same room
    elif isinstance(value, np.ndarray):
        yield np.lib.array_utils.byte_bounds(value)
    elif hasattr(value, "data_ptr"):
        begin = value.data_ptr()
        yield begin, begin + value.numel() * value.element_size()


def _owned(output: object, foreign: Sequence[Range]) -> object:
    if isinstance(output, tuple):
        return tuple([_owned(item, foreign) for item in output])
    if not isinstance(output, NDArray):
        return output
    begin, end = np.lib.array_utils.byte_bounds(output._array)  # noqa: SLF001 - the same room
    if any(begin < last and first < end for first, last in foreign):
        return NDArray(output._array.copy(), output.dtype)  # noqa: SLF001 - the same room
    return output
