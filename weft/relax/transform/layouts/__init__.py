"""How layouts go through operators: one rule for each, used by ConvertLayout.

An operator without a rule takes its arguments, and returns its result, as the program names axes.
"""

from __future__ import annotations

from weft.ir.op import Op
from weft.relax.transform.layouts import shapes, values, windows
from weft.relax.transform.layouts.rule import Rule

INFER_LAYOUT: dict[Op, Rule] = {
    Op.get(f"relax.{name}"): rule
    for table in (windows.RULES, values.RULES, shapes.RULES)
    for name, rule in table.items()
}
"""Operators that can work on tensors stored in another order."""

DESIRABLE: frozenset[str] = frozenset(f"relax.{name}" for name in windows.DESIRED)
"""Names of operators whose layouts can be asked for."""
