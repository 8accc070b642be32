"""Passes, and the states of the module between them, by function."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from weft.driver.recording import PassRun, State
from weft.ir.expr import GlobalVar
from weft.ir.function import BaseFunc
from weft.viz.texts import Texts

Row = dict[str, object]


class States:
    """The states of a module, each stored once."""

    def __init__(self, texts: Texts) -> None:
        self.texts = texts
        self.rows: list[Row] = []
        self._known: dict[tuple[tuple[str, str], ...], int] = {}

    def put(self, functions: Iterable[tuple[GlobalVar, BaseFunc]]) -> int:
        """The number of a state."""
        named = [(var.name_hint, self.texts.of(func, var.name_hint)) for var, func in functions]
        key = tuple(sorted(named))
        if key not in self._known:
            self._known[key] = len(self.rows)
            self.rows.append({"functions": dict(key)})
        return self._known[key]


def graph_rows(runs: Sequence[PassRun], states: States) -> list[Row]:
    """The passes over the graph."""
    return [
        {
            "name": run.name,
            "phase": "graph",
            "depth": run.depth,
            "ms": round(run.seconds * 1e3, 3),
            "before": states.put(run.before),
            "after": states.put(run.after),
        }
        for run in runs
    ]


def lowering_rows(
    names: Sequence[str], seconds: Sequence[float], modules: Sequence[State], states: States
) -> list[Row]:
    """The passes that lowered the kernels.

    ``modules`` are the kernels before the first pass and after each; ``seconds`` is of all kernels.
    """
    numbers = [states.put(module) for module in modules]
    return [
        {
            "name": name,
            "phase": "lower",
            "depth": 0,
            "ms": round(took * 1e3, 3),
            "before": before,
            "after": after,
        }
        for name, took, (before, after) in zip(names, seconds, pairwise(numbers), strict=True)
    ]
