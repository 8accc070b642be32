"""An operator: ``x / (1 + |x|)``."""

from typing import Any

from weft import te, tir
from weft.relax.expr import Expr
from weft.relax.op.definition import operator
from weft.relax.op.infer import same_as_float_input
from weft.relax.transform import register_legalize


@operator("relax.acme.soft_sign", same_as_float_input)
def soft_sign(x: Expr) -> Any:
    """x / (1 + |x|)."""


@register_legalize("relax.acme.soft_sign")
def _soft_sign(bb, call):
    def compute(x):
        return te.compute(x.shape, lambda *i: x[i] / (1.0 + tir.abs(x[i])), name="soft_sign")

    return bb.call_te(compute, call.args[0], primfunc_name_hint="soft_sign")
