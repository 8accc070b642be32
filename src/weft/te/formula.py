"""Formulas of tensors, as a notebook shows them.

``C = te.compute((8, 8), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k))`` is::

    C: float32[8, 8]
    C[i, j] = sum(A[i, k] * B[k, j] for k in range(64))
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from weft.ir.expr import IntImm, PrimExpr
from weft.tir import expr as e

_REDUCERS: Final = {e.Add: "sum", e.Mul: "prod", e.Max: "max", e.Min: "min"}
"""What joins two numbers -> the name of the reduction."""
_LONGEST: Final = 400
"""Characters of a formula; of a longer one the beginning is shown."""


def formula_of(name: str, axes: Sequence[e.IterVar], value: PrimExpr) -> str:
    """How the element of a tensor at these axes is computed; of a long formula the beginning."""
    indices = ", ".join([axis.var.name for axis in axes])
    place = f"{name}[{indices}]" if indices else f"{name}()"
    formula = f"{place} = {_text(value)}"
    return formula if len(formula) <= _LONGEST else formula[:_LONGEST] + " ..."


def _text(value: PrimExpr) -> str:
    if not isinstance(value, e.Reduce):
        return str(value)
    sources = ", ".join(map(str, value.source))
    part = f"({sources})" if len(value.source) > 1 else sources
    ranges = " ".join([f"for {axis.var.name} in {_range(axis)}" for axis in value.axis])
    is_always = isinstance(value.condition, IntImm) and value.condition.value
    condition = "" if is_always else f" if {value.condition}"
    which = f"[{value.value_index}]" if len(value.source) > 1 else ""
    return f"{_reducer(value.combiner)}({part} {ranges}{condition}){which}"


def _reducer(combiner: e.CommReducer) -> str:
    """``sum`` and the like, or the function of a user's reducer."""
    joined = type(combiner.result[0])
    if len(combiner.result) == 1 and joined in _REDUCERS:
        return _REDUCERS[joined]
    names = ", ".join([var.name for var in (*combiner.lhs, *combiner.rhs)])
    results = ", ".join(map(str, combiner.result))
    return f"reduce[{names}: {results}]"


def _range(axis: e.IterVar) -> str:
    assert axis.dom is not None  # a reduction is over a range
    low, extent = axis.dom.min, axis.dom.extent
    is_from_zero = isinstance(low, IntImm) and low.value == 0
    return f"range({extent})" if is_from_zero else f"range({low}, {low + extent})"
