"""An ATen graph as graph expressions: one walk over its nodes, one converter each."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

import torch
from torch import fx
from torch.utils import _pytree as pytree

from weft.ir.expr import Extent, FloatImm, IntImm, PrimExpr
from weft.ir.node import expect
from weft.relax.block_builder import BlockBuilder
from weft.relax.expr import Call, Expr, PrimValue, TupleGetItem, Var, const
from weft.relax.frontend.missing import UnsupportedOperatorsError, find_missing
from weft.relax.frontend.torch.complex_tensor import (
    COMPLEX,
    HELD_AS,
    complex_constant,
    is_complex,
    operator_name,
)
from weft.relax.frontend.torch.constants import as_ndarray
from weft.relax.frontend.torch.context import Context
from weft.relax.frontend.torch.data_numbers import (
    compute_roundings,
    depends_on_data_float,
    number_of_data,
)
from weft.relax.frontend.torch.dtypes import dtype_name
from weft.relax.frontend.torch.float8_tensors import FLOAT8, is_float8
from weft.relax.frontend.torch.number_tensors import constant_of, makes_constant
from weft.relax.frontend.torch.registry import CONVERTERS, IGNORED, Converter, overload_name
from weft.relax.frontend.torch.symbols import SymbolTable
from weft.relax.frontend.torch.values import ComplexTensor, Scalar, Value
from weft.relax.ir.lattice import tensor_dims
from weft.relax.ir.shape_arith import differ, same_dims
from weft.relax.struct_info import PrimStructInfo, TensorStructInfo, TupleStructInfo
from weft.runtime.weight_names import name_weight
from weft.support.errors import InternalError, IRTypeError, TVMError, UnsupportedError

SKIPPED: Final = frozenset({
    "aten._assert_async.msg", "aten._assert_scalar.default", "aten._assert_tensor_metadata.default",
    "aten.sym_constrain_range.default", "aten.sym_constrain_range_for_size.default",
    "aten._assert_async.default", "aten._functional_assert_async.msg",
    "aten._linalg_check_errors.default",
})  # fmt: skip
"""Checks that torch.export leaves in a graph: weft checks shapes where a function is entered."""
_TORCH: Final = str(Path(torch.__file__).parent)
_FRAME: Final = re.compile(r'File "([^"]+)", line (\d+)')

_PLAIN: Final = (TypeError, ValueError, LookupError, AttributeError, ArithmeticError)
"""Python's own errors, which a converter raises where arguments do not fit it."""

Handler = Callable[["GraphTranslator", fx.Node], Value]
"""What translates an operator that takes graphs."""
HIGHER_ORDER: Final[dict[str, Handler]] = {}
"""Operators that take graphs, by name: ``cond``, ``while_loop``, ``wrap_with_set_grad_enabled``."""


def source_place(node: fx.Node) -> str:
    """``file.py:12``, the innermost line outside of torch that made the node; else its module."""
    frames = _FRAME.findall(node.meta.get("stack_trace") or "")
    own = [frame for frame in frames if not frame[0].startswith(_TORCH)]
    if own:
        return f"{own[-1][0]}:{own[-1][1]}"
    modules = list((node.meta.get("nn_module_stack") or {}).values())
    if modules and modules[-1][0]:
        path, kind = modules[-1]
        name = kind.__qualname__ if isinstance(kind, type) else str(kind).rpartition(".")[2]
        return f"module {path.removeprefix('L__self___')} ({name})"
    return ""


def missing_operators(
    graph_module: fx.GraphModule, known: Mapping[str, Converter]
) -> list[tuple[str, str]]:
    """(name, place) of every call of an operator without a converter, nested graphs included."""
    missing = []
    for module in graph_module.modules():
        if not isinstance(module, fx.GraphModule):
            continue
        for node in module.graph.nodes:
            if node.op == "call_function" and not is_known(node, known):
                missing.append((operator_name(node), source_place(node)))
    return missing


def is_known(node: fx.Node, known: Mapping[str, Converter]) -> bool:
    """Whether a call can be translated: it has a converter, or needs none."""
    name = operator_name(node)
    return (
        name in known
        or is_skipped(name)
        or name in HIGHER_ORDER
        or node.target is operator.getitem
        or is_symbolic(node.meta.get("val"))
        or makes_constant(node)
    )


def is_skipped(name: str) -> bool:
    """Whether an operator is a check, of complex numbers and 8-bit floats too."""
    return name.removesuffix(COMPLEX).removesuffix(FLOAT8) in SKIPPED


def is_symbolic(value: object) -> bool:
    """Whether a node's value is a number of torch's symbolic shapes, or a plain number."""
    return isinstance(value, torch.SymInt | torch.SymFloat | torch.SymBool | int | float)


class GraphTranslator:
    """Emits one graph's nodes through a BlockBuilder; ``symbols`` is shared by nested graphs."""

    def __init__(
        self, builder: BlockBuilder, symbols: SymbolTable, converters: Mapping[str, Converter]
    ) -> None:
        self.builder = builder
        self.symbols = symbols
        self.converters = converters
        self.env: dict[fx.Node, Value] = {}
        self.context = Context(builder, symbols, self.env)

    def check_operators(self, graph_module: fx.GraphModule, source: str) -> None:
        """Raise UnsupportedOperatorsError with all operators that have no converter."""
        missing = missing_operators(graph_module, self.converters)
        if missing:
            raise UnsupportedOperatorsError(
                source,
                find_missing(missing, self.converters),
                'give converters (custom_converters={name: function}), or fallback="torch" to '
                "run just these in PyTorch",
            )

    def run(self, graph_module: fx.GraphModule, inputs: Sequence[Value]) -> Value:
        """Emit the graph on ``inputs``, one for each placeholder; the value of its output node."""
        remaining = iter(inputs)
        for node in graph_module.graph.nodes:
            if node.op == "placeholder":
                self.env[node] = _plain_number(next(remaining))
            elif node.op == "get_attr":
                self.env[node] = self.attribute(graph_module, node.target)
            elif node.op == "output":
                return self.value(node.args[0])
            else:
                self.env[node] = self.call(node)
        raise InternalError("an fx graph without an output node")

    def attribute(self, module: fx.GraphModule, target: str) -> Value:
        """A tensor of the module as a constant; a nested graph as it is."""
        held = operator.attrgetter(target)(module)
        return stored(held, target) if isinstance(held, torch.Tensor) else held

    def value(self, argument: fx.node.Argument) -> Value:
        """An argument of a node as converters take it."""
        if isinstance(argument, fx.Node):
            return self.env[argument]
        if isinstance(argument, list | tuple):
            return [self.value(item) for item in argument]
        if isinstance(argument, torch.dtype):
            return dtype_name(HELD_AS.get(argument, argument))
        if isinstance(argument, torch.SymInt):
            return self.context.extent(argument)
        return argument

    def arguments(self, node: fx.Node) -> list[Value]:
        """The arguments of a node that stand in order."""
        return [self.value(item) for item in node.args]

    def call(self, node: fx.Node) -> Value:
        """The value of a call: expressions, checked against what torch deduced."""
        result = node.meta.get("val")
        name = operator_name(node)
        if is_symbolic(result) and (name not in self.converters or isinstance(result, int | float)):
            return self.number(result)
        if node.target is operator.getitem:
            return self.item(self.env[node.args[0]], node.args[1])
        if is_skipped(name):  # with effects it has results: a token, which weft does not need
            return [None] * len(result) if isinstance(result, tuple | list) else None
        handler = HIGHER_ORDER.get(name)
        if handler is not None:
            return handler(self, node)
        if name not in self.converters and makes_constant(node):
            return self.checked(node, stored(constant_of(node), node.name))
        return self.checked(node, self.converted(node, name))

    def converted(self, node: fx.Node, name: str) -> Value:
        """What the operator's converter makes of the node's arguments."""
        self.context.node = node
        keywords = {k: self.value(v) for k, v in node.kwargs.items() if k not in IGNORED}
        try:
            return self.converters[name](self.context, *self.arguments(node), **keywords)
        except TVMError as error:
            error.add_note(f"while importing {name}{_at(node)}")
            raise
        except _PLAIN as error:
            custom = self.is_custom(node)
            if custom and error.__traceback__ is not None and error.__traceback__.tb_next:
                raise  # an error inside of the caller's own converter stays as it is
            kind = IRTypeError if custom else InternalError
            raise kind(
                f"converter of {name}{_at(node)}: it cannot take these arguments "
                f"({type(error).__name__}: {str(error)[:160]})"
            ) from error

    def is_custom(self, node: fx.Node) -> bool:
        """Whether the node's converter is the caller's own."""
        name = operator_name(node)
        return self.converters.get(name) is not CONVERTERS.get(name)

    def number(self, value: float | torch.SymInt | torch.SymFloat | torch.SymBool) -> Scalar | Expr:
        """A number, or the expression of a symbolic one; a tensor for a float of the data."""
        if isinstance(value, int | float):
            return value
        if depends_on_data_float(value.node.expr):
            return number_of_data(self.builder, self.symbols, value)
        if isinstance(value, torch.SymInt):
            compute_roundings(self.builder, self.symbols, value.node.expr)
        expression = self.symbols.expression(value.node.expr)
        return expression.value if isinstance(expression, IntImm | FloatImm) else expression

    def item(self, value: Value, index: int) -> Value:
        """One of several results."""
        if isinstance(value, list | tuple):
            return value[index]
        return self.builder.emit(TupleGetItem(expect(value, Expr), index))

    def checked(self, node: fx.Node, result: Value) -> Value:
        """The converter's result as variables whose struct info agrees with torch's."""
        expected = node.meta.get("val")
        if self.is_custom(node) and isinstance(expected, list | tuple):
            result = self.several(node, result, len(expected))
        if isinstance(expected, list | tuple) and isinstance(result, list | tuple):
            return [
                None if value is None or fake is None else self.agreeing(node, value, fake)
                for value, fake in zip(result, expected, strict=False)
            ]
        if isinstance(expected, torch.Tensor) and isinstance(result, Expr | ComplexTensor):
            return self.agreeing(node, result, expected)
        if isinstance(expected, torch.Tensor) and self.is_custom(node):
            raise IRTypeError(
                f"converter of {overload_name(node.target)}{_at(node)}: expected one expression "
                f"(relax.Expr), got {type(result).__name__}"
            )
        if isinstance(result, Call):
            result = self.builder.emit(result)
        return result

    def several(self, node: fx.Node, result: Value, count: int) -> list[Value]:
        """The results of the caller's own converter, one for each result in torch."""
        if isinstance(result, Expr):
            value = self.context.emit(result)
            info = value.struct_info
            fields = info.fields if isinstance(info, TupleStructInfo) else ()
            result = [self.builder.emit(TupleGetItem(value, i)) for i in range(len(fields))]
        results = list(result) if isinstance(result, list | tuple) else [result]
        if not isinstance(result, list | tuple) or len(results) != count:
            raise IRTypeError(
                f"converter of {overload_name(node.target)}{_at(node)}: expected {count} results, "
                f"a list or a tuple of expressions, got {len(results)}"
            )
        return results

    def agreeing(self, node: fx.Node, result: Value, fake: torch.Tensor) -> Value:
        """The result in the shape and data type that torch deduced; two variables if complex."""
        if is_complex(fake) and isinstance(result, ComplexTensor):
            return ComplexTensor(
                self.agreeing_part(node, result.real, fake),
                self.agreeing_part(node, result.imaginary, fake),
            )
        return self.agreeing_part(node, expect(result, Expr), fake)

    def agreeing_part(self, node: fx.Node, result: Expr, fake: torch.Tensor) -> Expr:
        """A variable of the shape and data type that torch deduced.

        Shapes that are not proved equal are cast at run time, which keeps torch's form of the
        extents for what follows.
        """
        value = self.context.emit(result)
        shape, dtype = self.context.meta_of(fake)
        wanted, info = TensorStructInfo(shape, dtype), value.struct_info
        if not isinstance(info, TensorStructInfo):
            raise InternalError(f"converter of {node.target}: expected a tensor, got {info}")
        mine, its = tensor_dims(info), tensor_dims(wanted) or ()
        if str(info.dtype) != dtype or (mine is not None and _contradict(mine, its)):
            kind = IRTypeError if self.is_custom(node) else InternalError
            raise kind(
                f"converter of {overload_name(node.target)}{_at(node)}: torch deduced {wanted}, "
                f"weft {info}"
            )
        return value if same_dims(mine, its) else self.builder.match_cast(value, wanted)


def _plain_number(value: Value) -> Value:
    """An input that is a number as converters take numbers: its expression."""
    info = value.struct_info if isinstance(value, Var) else None
    return info.value if isinstance(info, PrimStructInfo) and info.value is not None else value


def _at(node: fx.Node) -> str:
    place = source_place(node)
    return f" at {place}" if place else ""


def _contradict(mine: Sequence[Extent], its: Sequence[Extent]) -> bool:
    return len(mine) != len(its) or any(differ(a, b) for a, b in zip(mine, its, strict=True))


def stored(tensor: torch.Tensor, name: str) -> Expr | ComplexTensor:
    """A tensor that the model holds by a name, as a constant; a complex one as two.

    8-bit floats are held as their bits.
    """
    if is_complex(tensor):
        return complex_constant(tensor)
    if is_float8(tensor):
        tensor = tensor.detach().view(torch.uint8)
    return const(name_weight(as_ndarray(tensor), name))


def refuse_results(graph_module: fx.GraphModule, source: str) -> None:
    """Raise UnsupportedError for a sparse tensor or 8-bit floats among a program's results."""
    for node in graph_module.graph.find_nodes(op="output"):
        for place, result in enumerate(pytree.tree_leaves(node.args)):
            fake = result.meta.get("val") if isinstance(result, fx.Node) else None
            if not isinstance(fake, torch.Tensor):
                continue
            if fake.layout is not torch.strided:
                raise UnsupportedError(
                    f"{source}: result {place} is a tensor of {fake.layout}; return y.to_dense()"
                )
            if is_float8(fake):
                raise UnsupportedError(
                    f"{source}: result {place} is a tensor of {fake.dtype}; return its bits, "
                    "y.view(torch.uint8), or float32"
                )


def number_output(value: Value) -> Expr:
    """A number among the results of a model."""
    if isinstance(value, ComplexTensor):
        raise UnsupportedError(
            "expected a model with real results, got a complex one; return torch.view_as_real(y), "
            "or y.real and y.imag"
        )
    if isinstance(value, PrimExpr | int | float | bool):
        return PrimValue(value)
    if isinstance(value, Expr):
        return value
    raise UnsupportedError(
        "expected a model that gives tensors, numbers or None (in tuples, lists and dicts), got "
        f"{type(value).__name__} among its results; take it out of what forward returns"
    )
