"""Whether an expression can fault or have an effect when it is computed.

What can must not be computed where the program would not: before the condition around it is known.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from weft.ir.node import Node
from weft.tir import expr as e
from weft.tir.buffer import BufferLoad
from weft.tir.intrinsic import CallEffectKind, effect_of
from weft.tir.lowering.ranges import Ranges

DIVISIONS: Final = (e.Div, e.Mod, e.FloorDiv, e.FloorMod)
_PURE: Final = (CallEffectKind.Pure, CallEffectKind.ExprAnnotation, CallEffectKind.EmbedInfo)


class Faults:
    """Answers for expressions at one place of a program.

    Args:
        is_proved: whether a load is known to be within its buffer there.
        harmless: expressions (by ``id``) that are known not to fault there. What is found out is
            added to it.
    """

    def __init__(
        self, ranges: Ranges, is_proved: Callable[[BufferLoad], bool], harmless: dict[int, Node]
    ) -> None:
        self.ranges, self.is_proved, self.harmless = ranges, is_proved, harmless
        self._faulting: dict[int, Node] = {}

    def can_fault(self, expr: object) -> bool:
        """Whether ``expr`` may raise, read out of bounds, or have an effect."""
        if not isinstance(expr, Node) or not expr.CHILDREN or isinstance(expr, e.Var):
            return False
        if id(expr) in self.harmless or id(expr) in self._faulting:
            return id(expr) in self._faulting
        can = self._faults_itself(expr) or self._has_faulting_part(expr)
        (self._faulting if can else self.harmless)[id(expr)] = expr
        return can

    def _faults_itself(self, expr: Node) -> bool:
        if isinstance(expr, BufferLoad):
            return not self.is_proved(expr)
        if isinstance(expr, DIVISIONS):
            return expr.dtype.is_integral and not self.ranges.nonzero(expr.b)
        return isinstance(expr, e.Call) and effect_of(expr) not in _PURE

    def _has_faulting_part(self, expr: Node) -> bool:
        for name in expr.CHILDREN:
            child = getattr(expr, name)
            if isinstance(child, tuple):
                for item in child:
                    if self.can_fault(item):
                        return True
            elif isinstance(child, Node) and name != "buffer" and self.can_fault(child):
                return True
        return False
