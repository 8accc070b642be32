"""An Analyzer for variables that run over ranges."""

from __future__ import annotations

from collections.abc import Mapping

from weft.arith.analyzer import Analyzer
from weft.ir.expr import Range
from weft.tir.expr import Var


def analyzer_of(ranges: Mapping[Var, Range]) -> Analyzer:
    """An Analyzer that knows the ranges of variables."""
    analyzer = Analyzer()
    for var, rng in ranges.items():
        analyzer.bind(var, rng)
    return analyzer
