"""What native host functions call back for: errors of comparisons, calls that return tensors.

``text`` is JSON, which the compiler wrote (weft.relax.vm); the values of symbols come as numbers.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from weft.runtime.extent import Extent
from weft.runtime.ndarray import NDArray
from weft.runtime.registry import get_global_func, register_func
from weft.runtime.vm.patterns import match, match_extents


def mismatch(
    actual: tuple[int, ...], symbols: dict[str, int], kind: str, wanted: Sequence[Extent], what: str
) -> None:
    """The error of a match_cast, as the bytecode raises it."""
    if kind == "shape":
        match_extents(actual, wanted, symbols, what)
    else:
        match(actual[0], ("prim", "int64", str(wanted[0])), symbols, what)


def mismatch_inside(text: str, *numbers: int) -> None:
    """``mismatch`` for native code: ``text`` holds kind, wanted, what and the names of symbols.

    ``numbers`` are the extents found, then the values of those symbols.
    """
    kind, wanted, what, names = json.loads(text)
    count = len(numbers) - len(names)
    symbols = dict(zip(names, numbers[count:], strict=True))
    mismatch(tuple(numbers[:count]), symbols, kind, wanted, what)


def call_into(text: str, *values: Any) -> None:
    """Call a registered function, check what it returns, and copy its tensors to the outputs.

    ``text`` holds the function's name, the place for an error, the pattern of the result, the names
    of symbols, and the number of outputs; ``values`` are the symbols, the arguments, the outputs.
    """
    name, what, pattern, names, count = json.loads(text)
    split = len(values) - count
    symbols = dict(zip(names, values, strict=False))
    returned = get_global_func(name)(*values[len(names) : split])
    tensors = _tensors(match(returned, pattern, symbols, what))
    for output, tensor in zip(values[split:], tensors, strict=True):
        output._array[...] = tensor._array  # noqa: SLF001 - the same room


def _tensors(value: Any) -> Iterator[NDArray]:
    if isinstance(value, tuple):
        for item in value:
            yield from _tensors(item)
    else:
        yield value


register_func("vm.builtin.call_into", call_into, override=True)
register_func("vm.builtin.mismatch", mismatch_inside, override=True)
