"""A pass's rules for operators; a decorator of each function says which operators it is for.

::

    LABELS: Final = OperatorRules[LabelRule]("relax.")

    @LABELS.of(Trait.REDUCTION)
    def _reduction(...): ...

    @LABELS.of("nn.softmax", "nn.log_softmax")
    def _softmax(...): ...

``LABELS.get(call.op)`` is the rule for the operator's name, else for one of its traits, else None.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from weft.ir.op import Op
from weft.ir.traits import Trait
from weft.support.errors import IRValueError

Key = TypeVar("Key")
Rule = TypeVar("Rule", bound=Callable[..., object])


class OperatorRules(Generic[Rule]):
    """Rules by the names of operators, without ``prefix``, and by traits."""

    def __init__(self, prefix: str = "") -> None:
        self.prefix = prefix
        self.of_names: dict[str, Rule] = {}
        self.of_traits: dict[Trait, Rule] = {}

    def of(self, *keys: str | Trait) -> Callable[[Rule], Rule]:
        """A decorator: the function is the rule of these operators or traits.

        Raises:
            IRValueError: one of them has a rule.
        """

        def add(rule: Rule) -> Rule:
            for key in keys:
                if isinstance(key, Trait):
                    _set_once(self.of_traits, key, rule)
                else:
                    _set_once(self.of_names, self.prefix + key, rule)
            return rule

        return add

    def get(self, callee: object) -> Rule | None:
        """The rule of a callee; None for functions and for operators without one."""
        if not isinstance(callee, Op):
            return None
        rule = self.of_names.get(callee.name)
        if rule is not None:
            return rule
        mine = callee.attributes.get("traits", Trait.NONE)
        return next((rule for trait, rule in self.of_traits.items() if mine & trait), None)


def _set_once(table: dict[Key, Rule], key: Key, rule: Rule) -> None:
    known = table.get(key)
    if known is not None:
        raise IRValueError(f"{key} has a rule: {getattr(known, '__qualname__', known)}")
    table[key] = rule
