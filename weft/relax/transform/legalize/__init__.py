"""The tables of LegalizeOps: operator -> rule, one file for each family, merged here."""

from __future__ import annotations

from weft.ir.op import Op
from weft.relax.transform.legalize import (
    attention,
    elementwise,
    image,
    linear_algebra,
    manipulate,
    nn,
    quantization,
    reduction,
    sorting,
)
from weft.relax.transform.legalize.rule import Rule

LEGALIZE: dict[Op, Rule] = {
    **attention.TABLE,
    **elementwise.TABLE,
    **image.TABLE,
    **linear_algebra.TABLE,
    **manipulate.TABLE,
    **nn.TABLE,
    **quantization.TABLE,
    **reduction.TABLE,
    **sorting.TABLE,
}
"""Every rule; ``register_legalize`` adds to it."""

NOT_LEGALIZED: dict[str, str] = {
    "bucketize": "a binary search in data, which topi does not have yet",
    "dynamic_strided_slice": "its output shape is data",
    "nn.dropout": "frontends drop it for inference; training is not compiled",
    "nonzero": "its output shape is data",
    "unique": "its output shape is data",
    "wrap_param": "ToMixedPrecision removes it",
}
"""Tensor operators without a rule, and why."""


def register_legalize(op_name: str, legal_func: Rule | None = None) -> object:
    """Set the rule of an operator (decorator if no function is given), as TVM's of the name."""

    def apply(rule: Rule) -> Rule:
        LEGALIZE[Op.get(op_name)] = rule
        return rule

    return apply if legal_func is None else apply(legal_func)
