"""Operators that take graphs: branches, loops, and the wrappers that torch leaves in graphs.

A branch or loop becomes a private function (which branches, or calls itself), so that what calls
it stays one dataflow block. Extents that its graphs use are passed as numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

import sympy
import torch
from torch import fx

from weft.ir.expr import GlobalVar, PrimExpr
from weft.ir.node import expect
from weft.relax import op
from weft.relax.block_builder import BlockBuilder
from weft.relax.expr import Call, Expr, If, PrimValue, TupleGetItem, Var
from weft.relax.expr import Tuple as RelaxTuple
from weft.relax.frontend.torch.dtypes import dtype_name
from weft.relax.frontend.torch.symbols import SymbolTable
from weft.relax.frontend.torch.translate import HIGHER_ORDER, GraphTranslator, Handler
from weft.relax.frontend.torch.values import Value
from weft.relax.struct_info import PrimStructInfo, TensorStructInfo
from weft.support.errors import UnsupportedError
from weft.support.registration import refuse_second

UNROLLED: Final = 4096
"""A scan of more steps is refused, since each step is written out."""


def handles(*names: str, override: bool = False) -> Callable[[Handler], Handler]:
    """Decorator: the function translates these higher-order operators.

    Raises:
        IRValueError: one of them is translated, and ``override`` is not given.
    """

    def register(function: Handler) -> Handler:
        for name in names:
            refuse_second("the handler of", name, name in HIGHER_ORDER, override)
            HIGHER_ORDER[name] = function
        return function

    return register


# Graphs that are run where they stand


def inlined(translator: GraphTranslator, graph: fx.GraphModule, inputs: Sequence[Value]) -> Value:
    """The results of a nested graph, emitted here."""
    return translator.run(graph, inputs)


@handles("wrap_with_set_grad_enabled")
def wrap_with_set_grad_enabled(translator: GraphTranslator, node: fx.Node) -> Value:
    """(enabled, graph, operands ...); whether gradients are wanted changes no result."""
    _, graph, *operands = translator.arguments(node)
    return inlined(translator, graph, operands)


@handles("wrap_with_autocast")
def wrap_with_autocast(translator: GraphTranslator, node: fx.Node) -> Value:
    """(device, dtype, enabled, cache, graph, operands ...)."""
    _, _, _, _, graph, *operands = translator.arguments(node)
    return inlined(translator, graph, operands)


@handles("wrap", "tag_activation_checkpoint", "wrap_activation_checkpoint", "run_const_graph",
         "hints_wrapper", "strict_mode")  # fmt: skip
def wrap(translator: GraphTranslator, node: fx.Node) -> Value:
    """(graph, operands ...)."""
    graph, *operands = translator.arguments(node)
    if (
        operands
        and isinstance(operands[0], list)
        and (len(operands) == 1 or (len(operands) == 2 and isinstance(operands[1], dict)))
    ):
        operands = operands[0]
    return inlined(translator, graph, operands)


@handles("invoke_subgraph")
def invoke_subgraph(translator: GraphTranslator, node: fx.Node) -> Value:
    """(graph, name, operands ...)."""
    graph, _, *operands = translator.arguments(node)
    return inlined(translator, graph, operands)


# Functions of their own


class GraphFunction:
    """A private function around nested graphs: its parameters, and what a call passes.

    The outer model's symbols that the graphs use become parameters (``R.Prim``) with variables of
    their own.
    """

    def __init__(
        self,
        translator: GraphTranslator,
        graphs: Sequence[fx.GraphModule],
        operands: Sequence[Value],
    ) -> None:
        self.outer = translator
        self.symbols = SymbolTable(translator.symbols.generator)
        used = _used_symbols(graphs, translator.symbols)
        self.operands = [
            *(_argument(operand) for operand in operands),
            *(PrimValue(translator.symbols.expression(symbol)) for symbol in used),
        ]
        prims = [self.symbols.define(symbol) for symbol in used]
        fakes = [node.meta["val"] for node in graphs[0].graph.nodes if node.op == "placeholder"]
        self.params = [self._parameter(i, fake) for i, fake in enumerate(fakes)]
        self.prims = [Var(f"n{i}", PrimStructInfo(value=prim)) for i, prim in enumerate(prims)]
        self.translator = GraphTranslator(translator.builder, self.symbols, translator.converters)

    def _parameter(self, number: int, fake: object) -> Var:
        if not isinstance(fake, torch.Tensor):
            raise UnsupportedError(
                f"a branch or loop over {type(fake).__name__}: only tensors can be carried; "
                "turn the number into a tensor"
            )
        for size in fake.shape:
            expression = size.node.expr if isinstance(size, torch.SymInt) else sympy.Integer(size)
            if self.symbols.roundings_of_floats(expression):
                self.symbols.number(expression)
        shape = [self.symbols.extent(size) for size in fake.shape]
        return Var(f"x{number}", TensorStructInfo(shape, dtype_name(fake.dtype)))

    def build(self, name: str, body: Callable[[], Expr], extra: Sequence[Var] = ()) -> GlobalVar:
        """The function of that name; ``body`` emits it and gives its result."""
        with self._open(name, extra) as builder:
            return builder.emit_func_output(body())

    def build_body_of(self, gvar: GlobalVar, body: Callable[[], Expr]) -> None:
        """The function in the place of one of the same signature."""
        with self._open(gvar.name_hint, ()) as builder:
            builder.emit_func_body_of(gvar, body())

    @contextmanager
    def _open(self, name: str, extra: Sequence[Var]) -> Iterator[BlockBuilder]:
        builder = self.outer.builder
        params = [*extra, *self.params, *self.prims]
        with builder.aside(), builder.function(name, params, private=True):
            yield builder

    def results_of(self, graph: fx.GraphModule) -> list[Value]:
        """A graph on the parameters."""
        results = self.translator.run(graph, self.params)
        return list(results) if isinstance(results, list | tuple) else [results]


def _used_symbols(graphs: Sequence[fx.GraphModule], known: SymbolTable) -> list[sympy.Symbol]:
    """The symbols of the outer model that graphs use."""
    used = {
        symbol
        for graph in graphs
        for node in graph.graph.nodes
        for fake in _leaves(node.meta.get("val"))
        for size in (fake.shape if isinstance(fake, torch.Tensor) else [fake])
        if isinstance(size, torch.SymInt)
        for symbol in size.node.expr.free_symbols
        if symbol in known
    }
    return sorted(used, key=str)


def _leaves(value: object) -> list[object]:
    return list(value) if isinstance(value, list | tuple) else [value]


def _argument(value: Value) -> Expr:
    is_number = isinstance(value, PrimExpr | int | float | bool)
    return PrimValue(value) if is_number else expect(value, Expr)


def _tuple(values: Sequence[Value]) -> Expr:
    return RelaxTuple([_argument(value) for value in values])


def _unpacked(translator: GraphTranslator, node: fx.Node, call: Expr) -> Value:
    """The results of a call, as torch deduced their shapes."""
    whole = translator.builder.emit(call)
    count = len(node.meta["val"])
    parts = [translator.builder.emit(TupleGetItem(whole, i)) for i in range(count)]
    return translator.checked(node, parts)


@handles("cond")
def cond(translator: GraphTranslator, node: fx.Node) -> Value:
    """(condition, graph if true, graph if false, operands)."""
    condition, true_graph, false_graph, operands = translator.arguments(node)
    builder = translator.builder
    operands = expect(operands, list)
    function = GraphFunction(translator, [true_graph, false_graph], operands)

    def branch(name: str, graph: fx.GraphModule) -> GlobalVar:
        function = GraphFunction(translator, [graph, true_graph, false_graph], operands)
        return function.build(name, lambda: _dataflow(builder, function.results_of, graph))

    branches = [branch("then_branch", true_graph), branch("else_branch", false_graph)]
    test = Var("condition", TensorStructInfo([], "bool"))

    def body() -> Expr:
        arguments = [*function.params, *function.prims]
        calls = [Call(chosen, arguments) for chosen in branches]
        return builder.emit(If(test, *calls))

    gvar = function.build("branch", body, [test])
    return _unpacked(translator, node, Call(gvar, [_as_tensor(condition), *function.operands]))


def _as_tensor(condition: Value) -> Expr:
    if not isinstance(condition, Expr) or isinstance(condition, PrimValue):
        raise UnsupportedError(
            "cond: expected a tensor as the condition, got a number; torch.export decides "
            "conditions on sizes itself"
        )
    return condition


def _dataflow(
    builder: BlockBuilder, run: Callable[[fx.GraphModule], list[Value]], graph: fx.GraphModule
) -> Expr:
    """The results of a graph, emitted in a dataflow block."""
    with builder.dataflow():
        return builder.emit_output(_tuple(run(graph)))


@handles("while_loop")
def while_loop(translator: GraphTranslator, node: fx.Node) -> Value:
    """(condition graph, body graph, carried values, further operands)."""
    condition, step, carried, others = translator.arguments(node)
    carried, others = expect(carried, list), expect(others, list)
    builder, count = translator.builder, len(carried)
    name = builder.get_unique_name("while_loop")

    def function(first: fx.GraphModule) -> GraphFunction:
        return GraphFunction(translator, [first, condition, step], [*carried, *others])

    def part(suffix: str, graph: fx.GraphModule) -> GlobalVar:
        built = function(graph)
        return built.build(f"{name}_{suffix}", lambda: _dataflow(builder, built.results_of, graph))

    # A function that calls itself needs a signature first: that of giving back what it is given.
    stub, loop = function(step), function(step)
    gvar = stub.build(name, lambda: _tuple(stub.params[:count]))
    test, body = part("test", condition), part("step", step)

    def again() -> Expr:
        arguments = [*loop.params, *loop.prims]
        holds = builder.emit(TupleGetItem(builder.emit(Call(test, arguments)), 0))
        next_values = Call(body, arguments)
        values = [TupleGetItem(next_values, i) for i in range(count)]
        rest = [*loop.params[count:], *loop.prims]
        return builder.emit(If(holds, Call(gvar, [*values, *rest]), _tuple(loop.params[:count])))

    loop.build_body_of(gvar, again)
    return _unpacked(translator, node, Call(gvar, loop.operands))


@handles("scan")
def scan(translator: GraphTranslator, node: fx.Node) -> Value:
    """(graph, first carried values, sequences, further operands), step by step."""
    graph, *lists = translator.arguments(node)
    carried, sequences, *rest = [expect(values, list) for values in lists]
    others = rest[0] if rest else []
    steps = _steps(translator, sequences)
    outputs: list[list[Expr]] = []
    for step in range(steps):
        slices = [_slice(translator, item, step) for item in sequences]
        results = expect(inlined(translator, graph, [*carried, *slices, *others]), list)
        carried, outs = results[: len(carried)], results[len(carried) :]
        outputs.append(outs)
    stacked = [
        translator.builder.emit(op.stack(list(column), 0)) for column in zip(*outputs, strict=True)
    ]
    return translator.checked(node, [*carried, *stacked])


@handles("map_impl", "map")
def map_(translator: GraphTranslator, node: fx.Node) -> Value:
    """(graph, sequences, further operands), element by element."""
    graph, *lists = translator.arguments(node)
    sequences, others = [expect(values, list) for values in lists]
    rows: list[list[Expr]] = []
    for step in range(_steps(translator, sequences)):
        slices = [_slice(translator, item, step) for item in sequences]
        rows.append(expect(inlined(translator, graph, [*slices, *others]), list))
    stacked = [
        translator.builder.emit(op.stack(list(column), 0)) for column in zip(*rows, strict=True)
    ]
    return translator.checked(node, stacked)


def _steps(translator: GraphTranslator, sequences: Sequence[Expr]) -> int:
    steps = translator.context.dims(sequences[0])[0]
    if not isinstance(steps, int) or steps > UNROLLED:
        raise UnsupportedError(
            f"scan: expected a constant number of steps up to {UNROLLED}, got {steps}; make the "
            "dimension static, or use torch.while_loop"
        )
    return steps


def _slice(translator: GraphTranslator, tensor: Expr, step: int) -> Expr:
    part = op.strided_slice(tensor, [0], [step], [step + 1])
    return translator.builder.emit(op.squeeze(part, [0]))
