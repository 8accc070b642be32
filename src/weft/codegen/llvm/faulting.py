"""Whether evaluating an expression can fault or act, so that it must not be evaluated early."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from weft.codegen.llvm.memory import proved
from weft.ir.node import Node
from weft.tir import expr as e
from weft.tir.intrinsic import CallEffectKind, effect_of

if TYPE_CHECKING:
    from weft.codegen.llvm.emitter import Emitter

_DIVISIONS: Final = (e.Div, e.Mod, e.FloorDiv, e.FloorMod)
_PURE: Final = (CallEffectKind.Pure, CallEffectKind.ExprAnnotation, CallEffectKind.EmbedInfo)


def can_fault(em: Emitter, expr: Any) -> bool:
    """Whether ``expr`` may raise, read out of bounds, or have an effect where it stands.

    With checks off every load counts as able to, since its bounds are not known.
    """
    if not isinstance(expr, Node) or not expr.CHILDREN or isinstance(expr, e.Var):
        return False
    harmless = em.emitted.harmless
    if id(expr) in harmless:
        return False
    if _can_fault(em, expr):
        return True
    harmless[id(expr)] = expr
    return False


def _can_fault(em: Emitter, expr: Any) -> bool:
    if isinstance(expr, e.BufferLoad) and (
        not em.context.checks or not proved(em, expr.buffer, expr.indices)
    ):
        return True
    if isinstance(expr, _DIVISIONS) and expr.dtype.is_integral and not em.ranges.nonzero(expr.b):
        return True
    if isinstance(expr, e.Call) and effect_of(expr) not in _PURE:
        return True
    for name in expr.CHILDREN:
        child = getattr(expr, name)
        if isinstance(child, tuple):
            for item in child:
                if can_fault(em, item):
                    return True
        elif isinstance(child, Node) and name != "buffer" and can_fault(em, child):
            return True
    return False
