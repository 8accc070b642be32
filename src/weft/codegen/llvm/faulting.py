"""Whether evaluating an expression where code is emitted can fault or act."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weft.codegen.llvm.memory import proved
from weft.tir import expr as e
from weft.tir.lowering.faults import Faults

if TYPE_CHECKING:
    from weft.codegen.llvm.emitter import Emitter


def can_fault(em: Emitter, expr: object) -> bool:
    """Whether ``expr`` may raise, read out of bounds, or have an effect where it stands.

    With checks off every load counts as able to, since its bounds are not known.
    """

    def is_proved(load: e.BufferLoad) -> bool:
        return em.context.checks and proved(em, load.buffer, load.indices)

    return Faults(em.ranges, is_proved, em.emitted.harmless).can_fault(expr)
