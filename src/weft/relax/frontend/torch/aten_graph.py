"""An ATen graph without parameters, as torch.compile hands it over, as a module."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import torch
from torch import fx

from weft.ir.module import IRModule
from weft.relax.block_builder import BlockBuilder
from weft.relax.expr import Tuple as RelaxTuple
from weft.relax.expr import Var
from weft.relax.frontend.torch.complex_tensor import PLANE_TYPES, WITH_EFFECTS, is_complex
from weft.relax.frontend.torch.dtypes import dtype_name
from weft.relax.frontend.torch.input_symbols import define_symbols
from weft.relax.frontend.torch.operators import converters_with
from weft.relax.frontend.torch.registry import overload_name
from weft.relax.frontend.torch.symbols import SymbolTable
from weft.relax.frontend.torch.translate import GraphTranslator, number_output, refuse_results
from weft.relax.frontend.torch.values import ComplexTensor, Value
from weft.relax.struct_info import PrimStructInfo, TensorStructInfo
from weft.support.errors import UnsupportedError


@dataclass(frozen=True)
class ImportedGraph:
    """A module whose ``main`` takes the graph's placeholders and returns a tuple.

    A complex tensor is two of them: its real and its imaginary part. ``results`` tells for each of
    the graph's results its places in that tuple; it has none where the graph gives None.
    """

    mod: IRModule
    results: tuple[tuple[int, ...], ...]


def import_aten_graph(
    graph_module: fx.GraphModule, generator: str = "weft.random"
) -> ImportedGraph:
    """The module of a functional ATen graph; placeholders carry fake tensors as ``meta["val"]``.

    Functions ``<generator>.uniform``, ``<generator>.normal`` and so on draw its random numbers.
    Raises UnsupportedOperatorsError with all operators that have no converter.
    """
    symbols = SymbolTable(generator)
    placeholders = [node for node in graph_module.graph.nodes if node.op == "placeholder"]
    define_symbols(symbols, [node.meta.get("val") for node in placeholders])
    inputs = [_input(node, symbols) for node in placeholders]
    parameters = [part for item in inputs for part in _parts(item) if isinstance(part, Var)]
    builder = BlockBuilder()
    with builder.function("main", parameters):
        translator = GraphTranslator(builder, symbols, converters_with())
        translator.check_operators(graph_module, "torch.compile")
        refuse_results(graph_module, "torch.compile")
        with builder.dataflow():
            results = translator.run(graph_module, inputs)
            results = list(results) if isinstance(results, list | tuple) else [results]
            parts = [[number_output(part) for part in _parts(value)] for value in results]
            output = builder.emit_output(RelaxTuple([part for item in parts for part in item]))
        builder.emit_func_output(output)
    places = itertools.count()
    return ImportedGraph(builder.get(), tuple(tuple(next(places) for _ in item) for item in parts))


def _input(node: fx.Node, symbols: SymbolTable) -> Value:
    """The parameter that a placeholder becomes; the two that a complex one becomes."""
    fake = node.meta.get("val")
    if is_token(node):
        return None
    if not isinstance(fake, torch.Tensor) or not is_complex(fake):
        return input_variable(node, symbols)
    info = TensorStructInfo(
        [symbols.extent(size) for size in fake.shape], dtype_name(PLANE_TYPES[fake.dtype])
    )
    return ComplexTensor(*(Var(f"{node.name}_{part}", info) for part in ("real", "imaginary")))


def is_token(node: fx.Node) -> bool:
    """Whether a placeholder only orders effects, such as checks: torch passes None for it."""
    users = [*node.users]
    return bool(users) and all(
        overload_name(user.target) == WITH_EFFECTS and user.args[0] is node for user in users
    )


def _parts(value: Value) -> tuple[Value, ...]:
    """The real tensors and numbers that a value consists of."""
    if isinstance(value, ComplexTensor):
        return value.real, value.imaginary
    return () if value is None else (value,)


def input_variable(node: fx.Node, symbols: SymbolTable) -> Value:
    """The parameter that a placeholder becomes; a number or None stays itself."""
    fake = node.meta.get("val")
    if isinstance(fake, torch.Tensor):
        if fake.layout is not torch.strided:
            raise UnsupportedError(
                f"input {node.name}: expected a dense tensor, got one of {fake.layout}; give "
                "x.to_dense()"
            )
        if is_complex(fake):
            raise UnsupportedError(
                f"input {node.name}: expected a real tensor, got one of {fake.dtype}; give "
                "torch.view_as_real(x), and let the model begin with torch.view_as_complex"
            )
        shape = [symbols.extent(size) for size in fake.shape]
        return Var(node.name, TensorStructInfo(shape, dtype_name(fake.dtype)))
    if isinstance(fake, torch.SymInt):
        if fake.node.is_nested_int():
            raise UnsupportedError(
                f"input {node.name}: expected a number, got the length of the rows of a nested "
                "tensor; pad it: torch.nested.to_padded_tensor(x, 0.0)"
            )
        return Var(node.name, PrimStructInfo(value=symbols.expression(fake.node.expr)))
    return fake
