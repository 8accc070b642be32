"""Calls that end a function, in the reference interpreter: the callee takes the caller's place.

A loop of a graph is a function that calls itself last, so its steps must not take stack. What the
caller would have done with the value (compare it with struct info, show it to an observer) is owed
until the value is there. Of many steps that owe the same, it is done once.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass

from weft.relax.expr import Function, Var
from weft.relax.ir.lattice import symbolic_vars
from weft.relax.reference.frame import Frame, Value
from weft.relax.struct_info import StructInfo, TensorStructInfo


@dataclass
class TailCall:
    """A call that is still to be done; ``outer`` is the frame around a local function."""

    name: str
    func: Function
    values: list[Value]
    outer: Frame | None


class Chain:
    """The activations that take each other's place until one has a value.

    ``calls`` are the ids of the bindings whose calls end the function that runs.
    """

    def __init__(self) -> None:
        self.calls: frozenset[int] = frozenset()
        self._owed: list[Callable[[Value], None]] = []
        self._before: list[Callable[[Value], None]] = []
        self._known: set[Hashable] = set()

    def owe(self, duty: Callable[[Value], None], key: Hashable = None) -> None:
        """What this activation has to do with the value; once for each key that is not None."""
        if key is None or key not in self._known:
            self._owed.append(duty)
        if key is not None:
            self._known.add(key)

    def leave(self) -> None:
        """Another activation takes the place of this one."""
        self._before += reversed(self._owed)
        self._owed.clear()

    def settle(self, value: Value) -> None:
        """Do what all activations owe, the last one's first."""
        while self._before:
            self._before.pop()(value)


def duty_key(frame: Frame, info: StructInfo) -> Hashable:
    """What a comparison with struct info depends on; None if that is more than numbers."""
    if isinstance(info, TensorStructInfo) and isinstance(info.shape, Var):
        return None
    symbols = [frame.state.values.get(id(symbol)) for symbol in symbolic_vars(info)]
    return (id(info), *symbols)
