"""Which operators of a program have a converter, before anything is converted."""

from __future__ import annotations

from collections import Counter

import torch

from weft.relax.frontend.missing import Coverage, nearest_name
from weft.relax.frontend.torch.exported_program import decompose
from weft.relax.frontend.torch.operators import converters_with
from weft.relax.frontend.torch.registry import overload_name
from weft.relax.frontend.torch.translate import missing_operators


def operator_coverage(program: torch.export.ExportedProgram) -> list[Coverage]:
    """The operators of an ExportedProgram, the most frequent first, then those that it lacks.

    An operator without a converter counts as decomposed if torch replaces it by operators that have
    one. Missing operators are named as torch leaves them after decomposition.
    """
    converters = converters_with()
    counts = Counter(
        overload_name(node.target)
        for node in program.graph.nodes
        if node.op == "call_function" and hasattr(node.target, "_schema")
    )
    lacking = Counter(
        name
        for name, _ in missing_operators(decompose(program, converters).graph_module, converters)
    )
    rows = [
        Coverage(name, count, "converter" if name in converters else "decomposed")
        for name, count in counts.most_common()
        if name not in lacking
    ]
    missing = [
        Coverage(name, count, "missing", nearest_name(name, converters))
        for name, count in lacking.most_common()
    ]
    return rows + missing
