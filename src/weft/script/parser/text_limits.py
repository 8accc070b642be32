"""Limits for the expressions of a text: work, sizes of values, sizes of integers.

A text is data: whatever it contains, parsing must end soon and in little memory. The limits grow
with the length of the text, so that no program that the printer wrote exceeds them.
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Callable, Iterable
from typing import Any, Final, TypeVar

from weft.ir.expr import PrimExpr, RelaxExpr
from weft.script.parser.evaluator import Values, Words
from weft.support.errors import IRTypeError, IRValueError

T = TypeVar("T")

BITS: Final = 4096
"""The largest integer has this many bits."""
WIDTH: Final = 1000
"""The largest width in the format of a value: ``f"{x:1000}"``."""
SEQUENCES: Final = (str, bytes, tuple, list)


class Budget:
    """The work that is left for a text, and the largest size of a value."""

    def __init__(self, length: int) -> None:
        self.left = 4_000_000 + 50 * length
        self.items = max(1 << 20, length)
        self.nodes = (1 << 15) + length
        self.sizes: dict[int, tuple[object, int]] = {}

    def spend(self, count: int) -> None:
        """Pay ``count`` units of work."""
        self.left -= count
        if self.left < 0:
            raise IRValueError("the text asks for too much work at parse time")

    def refuse(self, what: str) -> IRValueError:
        """The error for a value that is too large."""
        return IRValueError(f"{what} is too large for a script: at most {self.items} items")

    def check(self, value: T) -> T:
        """``value``, after paying for its size with all that it contains."""
        if type(value) not in _CONTAINERS:
            return value
        count, waiting = 0, list[Any]((value,))
        if isinstance(value, (list, tuple)) and _CONTAINERS.isdisjoint(map(type, value)):
            count, waiting = 1 + len(value), []  # the common case: nothing in it is a container
        while waiting:
            item = waiting.pop()
            kind = type(item)
            if kind in _CONTAINERS:
                count += _length(item)
                if count > self.items:
                    break
                if kind is dict:
                    waiting.extend(item)
                    waiting.extend(item.values())
                elif kind in (list, tuple, set):
                    waiting.extend(item)
        if count > self.items:
            raise self.refuse(f"a {type(value).__name__}")
        self.spend(count)
        return value

    def expression(self, value: RelaxExpr) -> None:
        """Refuse a graph expression that is too large as a tree, so that walks would not end.

        Walks of TensorIR visit each object once, which was paid for when it was built.
        """
        if self._nodes(value) > self.nodes:
            raise IRValueError(
                f"the expression is too large when it is written out: at most {self.nodes} nodes"
            )

    def _nodes(self, value: PrimExpr | RelaxExpr) -> int:
        """The number of nodes of an expression as a tree: a shared part counts at each place."""
        known = self.sizes.get(id(value))
        if known is not None:
            return known[1]
        size = 1
        for name in value.CHILDREN:
            part = getattr(value, name)
            for item in part if isinstance(part, tuple) else (part,):
                if isinstance(item, PrimExpr | RelaxExpr):
                    size += self._nodes(item)
        self.sizes[id(value)] = (value, size)
        return size

    def binary(self, node: ast.operator, lhs: object, rhs: object) -> None:
        """Refuse an operation of Python values whose result would be too large."""
        if isinstance(lhs, int) and isinstance(rhs, int):
            _check_integers(node, lhs, rhs)
        elif isinstance(node, ast.Mult):
            for items, times in ((lhs, rhs), (rhs, lhs)):
                if isinstance(items, SEQUENCES) and isinstance(times, int):
                    if len(items) * times > self.items:
                        raise self.refuse(f"a {type(items).__name__}")
        elif isinstance(node, ast.Mod) and isinstance(lhs, str | bytes):
            raise IRTypeError("a text has no % of strings; write an f-string")

    def format(self, specification: str) -> None:
        """Refuse a format whose result is long."""
        if any(len(part) > 4 or int(part) > WIDTH for part in re.findall(r"\d+", specification)):
            raise IRValueError(f"the format {specification[:40]!r} is wider than {WIDTH}")


_CONTAINERS: Final[frozenset[type]] = frozenset(
    {str, bytes, list, tuple, dict, set, range, frozenset}
)


def _length(value: Any) -> int:
    return 1 + (max(0, value.stop - value.start) if _is_plain(value) else len(value))


def _is_plain(value: object) -> bool:
    """Whether ``value`` is a range of step 1, whose length may exceed what ``len`` can return."""
    return isinstance(value, range) and value.step == 1


def _check_integers(node: ast.operator, lhs: int, rhs: int) -> None:
    bits = 0
    if isinstance(node, ast.Pow):
        bits = lhs.bit_length() * rhs if rhs > 0 and abs(lhs) > 1 else 0
    elif isinstance(node, ast.LShift):
        bits = lhs.bit_length() + rhs if lhs else 0
    elif isinstance(node, ast.Mult):
        bits = lhs.bit_length() + rhs.bit_length()
    if bits > BITS:
        raise IRValueError(f"an integer of a script has at most {BITS} bits")


Binary = Callable[[ast.operator, object, object], object]


def call_builtin(
    function: Callable[..., object], args: Values, kwargs: Words, binary: Binary
) -> object:
    """Call a function of Python; iterators are expanded, so that every size is known.

    ``binary`` is the evaluator's operation of two values, with its limits.
    """
    if function is sum:
        return functools.reduce(functools.partial(binary, ast.Add()), *_summed(*args, **kwargs))
    if function is pow and len(args) == 2 and not kwargs:
        return binary(ast.Pow(), *args)
    if function is str and (len(args) > 1 or kwargs):
        raise IRTypeError("str: expected one value")
    result = function(*args, **kwargs)
    return list(result) if isinstance(result, Iterable) and function in _LAZY else result


_LAZY: Final = (map, filter, zip, enumerate, reversed)


def _summed(items: Iterable[object], start: object = 0) -> tuple[Iterable[object], object]:
    return items, start
