"""Indices over a fused loop, in terms of the loops that were fused.

Of ``f`` with 64 iterations, ``f // 8`` and ``f % 8`` are two loops of 8 iterations.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from weft.ir.expr import IntImm, PrimExpr
from weft.ir.functor import Mutator
from weft.tir import op
from weft.tir.expr import FloorDiv, FloorMod, Var
from weft.tir.index_digits import Digit, digit_of, digits_of
from weft.tir.stmt import For

Loops = Mapping[int, For]
"""Loops by the ``id`` of their variable."""


def unfused(indices: Sequence[PrimExpr], loops: Loops) -> tuple[list[PrimExpr], dict[int, For]]:
    """Indices with a variable for each digit of a loop, and the loops with those of the digits.

    A loop stays as it is if the digits in the indices are not all of its digits, each once or more
    (then each iteration of the digits' loops is one of the loop), or if its extent is not known.
    """
    result, known = list(indices), dict(loops)
    for key, loop in loops.items():
        if not isinstance(loop.extent, IntImm) or not op.is_const_int(loop.min, 0):
            continue
        own = _Digits(loop.loop_var, loop.extent.value)
        rewritten = [own.visit(index) for index in result]
        if own.are_all():
            result = rewritten
            del known[key]
            known |= {
                id(var): loop.with_(loop_var=var, extent=op.const(digit.extent, var.dtype))
                for digit, var in own.variables.items()
            }
    return result, known


class _Digits(Mutator):
    """Puts a variable in the place of each digit of one loop; the largest terms are digits."""

    def __init__(self, var: Var, extent: int) -> None:
        super().__init__()
        self._var, self._extent = var, extent
        self._terms: dict[Digit, PrimExpr] = {}
        self.variables: dict[Digit, Var] = {}

    def are_all(self) -> bool:
        """Whether there is more than one digit, and they are the whole loop, each a part of it."""
        terms = list(self._terms.values())
        return len(terms) > 1 and digits_of(terms, [self._var], [self._extent]) is not None

    def visit_Var(self, node: Var) -> PrimExpr:
        digit = self._variable(node)
        return node if digit is None else digit

    def visit_FloorDiv(self, node: FloorDiv | FloorMod) -> PrimExpr:
        digit = self._variable(node)
        return self.visit_default(node) if digit is None else digit

    visit_FloorMod = visit_FloorDiv

    def _variable(self, node: PrimExpr) -> Var | None:
        digit = digit_of(node, [self._var], [self._extent])
        if digit is None:
            return None
        self._terms.setdefault(digit, node)
        name = f"{self._var.name}_{len(self.variables)}"
        return self.variables.setdefault(digit, Var(name, self._var.dtype))
