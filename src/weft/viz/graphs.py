"""Graphs of a module: its calls as nodes, fused functions as groups, shapes on edges."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from weft.driver.recording import PassRun, State
from weft.ir.expr import GlobalVar, RelaxExpr
from weft.ir.op import Op
from weft.relax.expr import (
    Call,
    Constant,
    ExternFunc,
    Function,
    If,
    SeqExpr,
    Tuple,
    TupleGetItem,
    Var,
)
from weft.relax.struct_info import StructInfo, TensorStructInfo, TupleStructInfo
from weft.support.recursion import deep_recursion
from weft.tir.function import PrimFunc
from weft.viz.schedules import origins_of

Row = dict[str, object]
Sources = tuple[int, ...]
"""The nodes that a value comes from: several for a tuple; none for a constant."""


@dataclass
class Graph:
    """A graph; nodes and edges as the page has them."""

    nodes: list[Row] = field(default_factory=list)
    edges: list[tuple[int, int, str]] = field(default_factory=list)
    groups: list[Row] = field(default_factory=list)

    def row(self, name: str, after: int) -> Row:
        """The graph for the page; ``after`` is the number of a pass, -1: as imported."""
        return {
            "name": name,
            "after": after,
            "nodes": self.nodes,
            "edges": self.edges,
            "groups": self.groups,
        }


def graph_rows(runs: list[PassRun], kernels: Collection[str]) -> list[Row]:
    """The imported graph, that after fusion, and the final one."""
    if not runs:
        return []
    rows = [graph_of(runs[0].before).row("imported", -1)]
    fused = [at for at, run in enumerate(runs) if run.name == "FuseOps"]
    if fused:
        state = runs[fused[-1]].after
        functions = [var.name_hint for var, func in state if isinstance(func, PrimFunc)]
        graph = graph_of(state, functions)
        for group in graph.groups:
            group["kernel"] = kernel_of(str(group["name"]), kernels)
        rows.append(graph.row("after fusion", fused[-1]))
    rows.append(graph_of(final_state(runs), kernels).row("final", len(runs) - 1))
    return rows


def kernel_of(group: str, kernels: Collection[str]) -> str | None:
    """The kernel that a fused group became; None if it was merged with others or is gone.

    >>> kernel_of("fused_dense_relu", ["fused_dense_relu1_prepacked", "softmax1"])
    'fused_dense_relu1_prepacked'
    """
    by_origin = {origin: kernel for kernel in kernels for origin in origins_of(kernel)}
    return by_origin.get(f"{group}1", by_origin.get(group))


def final_state(runs: list[PassRun]) -> State:
    """The functions after the last pass; an outer pass ends after those inside of it."""
    return runs[0].after if runs[0].depth == 0 and len(runs) > 1 else runs[-1].after


@deep_recursion
def graph_of(state: State, kernels: Iterable[str] = ()) -> Graph:
    """The graph of the function ``main``, or of the first function, with those that it calls.

    ``kernels`` are PrimFuncs whose calls are groups of their own.
    """
    functions = {var.name_hint: func for var, func in state}
    graphs = {name: func for name, func in functions.items() if isinstance(func, Function)}
    graph = Graph()
    if graphs:
        main = graphs.get("main", next(iter(graphs.values())))
        _Walk(graph, graphs, frozenset(kernels)).main(main)
    return graph


class _Walk:
    """Adds the bindings of functions to a graph."""

    def __init__(
        self, graph: Graph, functions: Mapping[str, Function], kernels: frozenset[str]
    ) -> None:
        self.graph, self.functions, self.kernels = graph, functions, kernels
        self.values: dict[int, Sources] = {}
        self.running: list[str] = []

    def main(self, func: Function) -> None:
        """Add a function with its inputs and its outputs."""
        for param in func.params:
            name = param.name_hint or "input"
            self.values[id(param)] = (self.node(name, name, param.struct_info, "input", None, 0),)
        for source in self.body(func.body, None):
            label = str(self.graph.nodes[source]["type"])
            output = self.node("output", "output", None, "output", None, 0, label)
            self.graph.edges.append((source, output, label))

    def node(
        self,
        label: str,
        op: str,
        info: StructInfo | None,
        kind: str,
        group: int | None,
        constants: int,
        shown: str | None = None,
    ) -> int:
        """Add a node; its number."""
        number = len(self.graph.nodes)
        self.graph.nodes.append(
            {
                "id": number,
                "label": label,
                "op": op,
                "type": type_text(info) if shown is None else shown,
                "kind": kind,
                "group": group,
                "constants": constants,
            }
        )
        return number

    def body(self, body: RelaxExpr, group: int | None) -> Sources:
        """Add the bindings of a body; where its value comes from."""
        if not isinstance(body, SeqExpr):
            return self.value(body, group)
        for block in body.blocks:
            for binding in block.bindings:
                self.values[id(binding.var)] = self.value(binding.value, group, binding.var)
        return self.value(body.body, group)

    def value(self, expr: RelaxExpr, group: int | None, var: Var | None = None) -> Sources:
        """Where a value comes from; a call is a node, labelled with the variable it is bound to."""
        if isinstance(expr, Var):
            return self.values.get(id(expr), ())
        if isinstance(expr, Tuple):
            return tuple([source for item in expr.fields for source in self.value(item, group)])
        if isinstance(expr, TupleGetItem):
            whole = self.value(expr.tuple_value, group)
            fields = getattr(expr.tuple_value.struct_info, "fields", ())
            is_each = len(whole) == len(fields)
            return (whole[expr.index],) if is_each else whole
        if isinstance(expr, Call):
            return self.call(expr, group, var)
        if isinstance(expr, SeqExpr):
            return self.body(expr, group)
        if isinstance(expr, If):
            self.value(expr.cond, group)
            branches = [expr.true_branch, expr.false_branch]
            return tuple([source for branch in branches for source in self.body(branch, group)])
        return ()

    def call(self, call: Call, group: int | None, var: Var | None) -> Sources:
        """Add a call; one of a graph function is its bindings, as a group."""
        callee = call.op
        if isinstance(callee, GlobalVar) and callee.name_hint in self.functions:
            return self.function(callee.name_hint, call, group)
        operator, arguments = _named(call)
        constants = len([item for item in arguments if isinstance(item, Constant)])
        if group is None and operator in self.kernels:
            group = self.group(operator, operator)
        label, info = operator, call.struct_info
        if var is not None:
            label, info = var.name_hint or operator, var.struct_info
        number = self.node(label, operator, info, "call", group, constants)
        for source in dict.fromkeys(s for item in arguments for s in self.value(item, group)):
            self.graph.edges.append((source, number, str(self.graph.nodes[source]["type"])))
        return (number,)

    def function(self, name: str, call: Call, group: int | None) -> Sources:
        """Add the bindings of a function that is called."""
        func = self.functions[name]
        if name in self.running:  # it calls itself
            return (self.node(name, name, call.struct_info, "call", group, 0),)
        inner = self.group(name, None) if group is None else group
        outer = dict(self.values)
        for param, argument in zip(func.params, call.args, strict=False):
            self.values[id(param)] = self.value(argument, group)
        self.running.append(name)
        result = self.body(func.body, inner)
        self.running.pop()
        self.values = outer
        return result

    def group(self, name: str, kernel: str | None) -> int:
        """Add a group; its number."""
        number = len(self.graph.groups)
        self.graph.groups.append({"id": number, "name": name, "kernel": kernel})
        return number


def _operator(call: Call) -> str:
    if isinstance(call.op, Op):
        return str(call.op.name)
    return str(getattr(call.op, "name_hint", getattr(call.op, "global_symbol", "call")))


def _named(call: Call) -> tuple[str, list[RelaxExpr]]:
    """The operator or the function that is called, and its arguments, also those in a tuple."""
    arguments: list[RelaxExpr] = []
    label = _operator(call).removeprefix("relax.")
    for at, argument in enumerate(call.args):
        if at == 0 and label.startswith("call_") and isinstance(argument, GlobalVar | ExternFunc):
            label = str(getattr(argument, "name_hint", getattr(argument, "global_symbol", label)))
        elif isinstance(argument, Tuple):
            arguments.extend(argument.fields)
        else:
            arguments.append(argument)
    return label, arguments


def type_text(info: object) -> str:
    """A type as the page shows it.

    >>> type_text(TensorStructInfo((1, 64), "float32"))
    'float32[1, 64]'
    """
    if isinstance(info, TupleStructInfo):
        return "(" + ", ".join([type_text(item) for item in info.fields]) + ")"
    if not isinstance(info, TensorStructInfo):
        return "" if info is None else type(info).__name__.removesuffix("StructInfo").lower()
    values = getattr(info.shape, "values", None)
    if values is None:
        return f"{info.dtype}[?]" if info.ndim != 0 else f"{info.dtype}[]"
    return f"{info.dtype}[{', '.join([str(getattr(value, 'value', value)) for value in values])}]"
