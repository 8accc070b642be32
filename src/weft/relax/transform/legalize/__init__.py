"""Rules of LegalizeOps: each operator's row has one, which a user can override."""

from __future__ import annotations

from weft.ir.op import Op
from weft.relax.op.lowering import Rule
from weft.support.registration import refuse_second


def rule_of(operator: Op) -> Rule | None:
    """The rule of an operator: its attribute ``FLegalize``."""
    rule: Rule | None = operator.get_attr("FLegalize")
    return rule


def register_legalize(
    op_name: str, legal_func: Rule | None = None, *, override: bool = False
) -> object:
    """Set the rule of an operator; without ``legal_func`` the result is a decorator for it.

    It is TVM's function of this name.

    Raises:
        IRValueError: the operator has a rule already, and ``override`` is false.
    """

    def apply(rule: Rule) -> Rule:
        operator = Op.get(op_name)
        refuse_second("the legalisation of", op_name, operator.has_attr("FLegalize"), override)
        operator.set_attr("FLegalize", rule)
        return rule

    return apply if legal_func is None else apply(legal_func)
