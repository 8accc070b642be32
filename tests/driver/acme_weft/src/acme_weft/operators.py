"""An operator: ``x / (1 + |x|)``."""

from typing import Any

import numpy as np

from weft import te, tir
from weft.ir.traits import Trait
from weft.relax.expr import Expr
from weft.relax.op.definition import operator
from weft.relax.op.infer import same_as_float_input
from weft.relax.op.reference.rule import in_float64


def _soft_sign(x):
    return te.compute(x.shape, lambda *i: x[i] / (1 + tir.abs(x[i])), name="soft_sign")


@operator(
    "relax.acme.soft_sign",
    same_as_float_input,
    te=_soft_sign,
    numpy=in_float64(lambda x: x / (1 + np.abs(x))),
    traits=Trait.ELEMENTWISE,
)
def soft_sign(x: Expr) -> Any:
    """x / (1 + |x|)."""
