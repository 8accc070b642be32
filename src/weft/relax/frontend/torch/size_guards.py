"""What torch.export takes for granted about the sizes of inputs, checked in every call.

A graph holds such a guard as a call of ``_assert_scalar`` on a symbolic bool. It does where torch
was told not to prove its guards for all sizes (``deferred_guards.py``). Checks of what the data
tell stay out: weft checks indices and extents itself.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import fx

from weft.arith.analyzer import Analyzer
from weft.ir.expr import IntImm, PrimExpr, Range
from weft.relax import op
from weft.relax.block_builder import BlockBuilder
from weft.relax.expr import PrimValue
from weft.relax.frontend.torch.registry import overload_name
from weft.relax.frontend.torch.symbols import SymbolTable
from weft.relax.frontend.torch.translate import source_place
from weft.relax.op.infer import without_types
from weft.tir.expr import Var

_CHECK = "aten._assert_scalar.default"
Bounds = Mapping[str, tuple[int, int | None]]


def guards_of_sizes(
    graph: fx.Graph, symbols: SymbolTable, bounds: Bounds
) -> list[tuple[PrimExpr, str]]:
    """The conditions that the sizes of a graph's inputs must meet, each with its place in the code.

    ``symbols`` has those that the inputs tell, and no others. What their bounds prove is left out.
    """
    analyzer = Analyzer()
    guards: dict[str, tuple[PrimExpr, str]] = {}
    for node in graph.nodes:
        value = _checked(node)
        if value is None or not all(symbol in symbols for symbol in value.node.expr.free_symbols):
            continue
        for symbol in value.node.expr.free_symbols:
            _bind(analyzer, symbols.expression(symbol), bounds)
        condition = symbols.expression(value.node.expr)
        if not analyzer.can_prove(condition):
            guards.setdefault(str(condition), (condition, source_place(node)))
    return list(guards.values())


def emit_guards(builder: BlockBuilder, guards: list[tuple[PrimExpr, str]]) -> None:
    """Begin the function with the checks; it is not pure then."""
    for condition, place in guards:
        where = f"at {place} " if place else ""
        text = (
            f"sizes of the inputs: expected {without_types(str(condition))}, which PyTorch took "
            f"for granted {where}when it captured the model; compile it again for these sizes"
        )
        escaped = text.replace("{", "{{").replace("}", "}}")
        builder.emit(op.assert_op(PrimValue(condition), format=escaped))


def _checked(node: fx.Node) -> torch.SymBool | None:
    """The symbolic condition that a node checks; None for other nodes."""
    if node.op != "call_function" or overload_name(node.target) != _CHECK:
        return None
    condition = node.args[0]
    value = condition.meta.get("val") if isinstance(condition, fx.Node) else None
    return value if isinstance(value, torch.SymBool) else None


def _bind(analyzer: Analyzer, size: PrimExpr, bounds: Bounds) -> None:
    if not isinstance(size, Var):
        return
    low, high = bounds.get(size.name, (0, None))
    if high is None:
        analyzer.bind_nonnegative(size)
        return
    limits = Range(IntImm("int64", low), IntImm("int64", high + 1))
    analyzer.bind(size, limits, allow_override=True)
