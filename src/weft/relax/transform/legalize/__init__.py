"""The tables of LegalizeOps: operator -> rule, one file for each family, merged here."""

from __future__ import annotations

from weft.ir.op import Op
from weft.relax.transform.legalize import (
    attention,
    collective,
    elementwise,
    image,
    indexing,
    linear_algebra,
    manipulate,
    nn,
    quantization,
    recurrent,
    reduction,
    sorting,
    vision,
)
from weft.relax.transform.legalize.agreement import AGREEMENT
from weft.relax.transform.legalize.rule import Rule, agreeing
from weft.relax.transform.legalize.windows import WINDOWS, fitting
from weft.support.errors import LegalizeError
from weft.support.registration import refuse_second

_KERNELS: dict[Op, Rule] = {
    **attention.TABLE,
    **collective.TABLE,
    **elementwise.TABLE,
    **image.TABLE,
    **indexing.TABLE,
    **linear_algebra.TABLE,
    **manipulate.TABLE,
    **nn.TABLE,
    **quantization.TABLE,
    **recurrent.TABLE,
    **reduction.TABLE,
    **sorting.TABLE,
    **vision.TABLE,
}
_KERNELS.update({op: fitting(_KERNELS[op], reach) for op, reach in WINDOWS.items()})
LEGALIZE: dict[Op, Rule] = {
    op: agreeing(rule, AGREEMENT[op]) if op in AGREEMENT else rule for op, rule in _KERNELS.items()
}
"""Every rule; ``register_legalize`` adds to it."""

PACKED: dict[Op, str] = {Op.get(name): function for name, function in indexing.PACKED.items()}
"""Operators that a registered function computes, since their results' sizes are data."""

NOT_LEGALIZED: dict[str, str] = {
    **dict.fromkeys(
        (
            "dist.annotate_sharding", "dist.call_tir_local_view", "dist.redistribute",
            "dist.redistribute_replica_to_shard",
        ),
        "nothing places tensors on several devices yet",
    ),
    "wrap_param": "ToMixedPrecision removes it",
}  # fmt: skip
"""Tensor operators without a rule, and why."""


def rule_of(operator: Op) -> Rule | None:
    """The rule of an operator: that of ``register_legalize``, or its attribute ``FLegalize``.

    Raises:
        LegalizeError: it has both.
    """
    own, attribute = LEGALIZE.get(operator), operator.get_attr("FLegalize")
    if own is not None and attribute is not None:
        raise LegalizeError(
            f"{operator.name} has a legalisation and an attribute FLegalize; to replace the first "
            f"call relax.transform.register_legalize({operator.name!r}, rule, override=True) "
            "instead of setting the attribute"
        )
    return own or attribute


def register_legalize(
    op_name: str, legal_func: Rule | None = None, *, override: bool = False
) -> object:
    """Set the rule of an operator (decorator if no function is given), as TVM's of the name.

    Raises:
        IRValueError: the operator has a rule, and ``override`` is not given.
    """

    def apply(rule: Rule) -> Rule:
        operator = Op.get(op_name)
        refuse_second("the legalisation of", op_name, operator in LEGALIZE, override)
        LEGALIZE[operator] = rule
        return rule

    return apply if legal_func is None else apply(legal_func)
