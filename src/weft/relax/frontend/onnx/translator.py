"""From an ONNX graph to the bindings of a graph function.

The translator walks the nodes in order. For each it takes, in this order: a function of the model
(its body is inlined), a converter of the caller, arithmetic at import where everything is known,
the converter of the table, ONNX's own definition of the operator; and with ``fallback`` ONNX
Runtime for what none of them can do.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NoReturn

import numpy as np

from weft.ir.expr import IntImm, PrimExpr
from weft.ir.node import expect
from weft.relax.block_builder import BlockBuilder
from weft.relax.expr import Expr, RelaxLike
from weft.relax.expr import Var as RelaxVar
from weft.relax.frontend.onnx.attributes import (
    default_attributes,
    node_attributes,
    schema_of,
    with_attributes,
)
from weft.relax.frontend.onnx.blocks import Taken
from weft.relax.frontend.onnx.checks import check_node, first_output
from weft.relax.frontend.onnx.choices import BranchesDifferError, Rest, choose_rest
from weft.relax.frontend.onnx.context import Context
from weft.relax.frontend.onnx.declared import check_declared, is_custom
from weft.relax.frontend.onnx.element_types import BOOL, SMALL
from weft.relax.frontend.onnx.errors import OnnxModelError, OnnxNodeError
from weft.relax.frontend.onnx.fallback import in_onnxruntime, unknown_in_onnxruntime
from weft.relax.frontend.onnx.functions import (
    call_attributes,
    function_key,
    has_body,
    opset_versions,
    schema_body,
)
from weft.relax.frontend.onnx.known import claim_of, fold
from weft.relax.frontend.onnx.node_order import in_order
from weft.relax.frontend.onnx.protos import (
    Attributes,
    FunctionProto,
    GraphProto,
    NodeProto,
    ValueInfoProto,
)
from weft.relax.frontend.onnx.registry import (
    Converter,
    Function,
    find_converter,
    make_converter,
    plain_domain,
    qualified,
)
from weft.relax.frontend.onnx.scope import Scope
from weft.relax.frontend.onnx.tensors import initializers
from weft.relax.frontend.onnx.text_values import places_of_texts, with_texts
from weft.relax.frontend.onnx.undecided import undecided_dims
from weft.relax.frontend.onnx.unsupported import (
    UnsupportedAttributesError,
    UnsupportedNodesError,
    all_nodes,
    refused_nodes,
    unsupported_attribute,
)
from weft.relax.frontend.onnx.value import (
    Array,
    GraphValue,
    Item,
    MapValue,
    OptionalValue,
    Result,
    RunSequence,
    SequenceValue,
    TextTable,
    TextValue,
    Value,
    name_of_largest,
)
from weft.relax.struct_info import TensorStructInfo
from weft.support import plugins
from weft.support.errors import TVMError, UnsupportedError
from weft.tir.expr import SizeVar
from weft.tir.expr import Var as TirVar
from weft.tir.op import logical_and, logical_not

_PLAIN = (TypeError, ValueError, LookupError, AttributeError, ArithmeticError, AssertionError)
"""Python's own errors, which a converter raises where a node is not as ONNX defines it."""


class Translator:
    """Translates one model; ``builder`` is where its bindings go."""

    def __init__(
        self,
        builder: BlockBuilder,
        functions: Iterable[FunctionProto],
        custom: Mapping[str, Function] | None = None,
        fallback: str | None = None,
    ) -> None:
        plugins.load_group(plugins.CONVERTERS, "onnx")
        self.builder = builder
        self.functions = {function_key(item): item for item in functions}
        self.custom = {name: make_converter(fn, 1) for name, fn in (custom or {}).items()}
        self.fallback = fallback
        """What runs the nodes that weft does not convert: None, or "onnxruntime"."""
        self.everything: list[tuple[NodeProto, Scope]] = []
        """The nodes of the model, for errors that name all that are not supported."""
        self.declared: dict[str, ValueInfoProto] = {}
        """What the graph, and those inside it, say of their tensors, by name."""
        self.data_symbols: set[TirVar] = set()
        """Symbols that a tensor's elements define when the program runs."""
        self.generators: dict[tuple[str, float], np.random.Generator] = {}
        """What draws the numbers of a node with a seed: a body that is written out goes on."""
        self.draws: Iterator[int] = itertools.count()
        """Numbers of the calls that draw when the program runs."""
        self.is_looping = False
        """Whether what is translated is the body of a loop that runs an unknown number of times."""
        self.is_pure = True
        """Whether nothing can stop the program: no condition is insisted on."""
        self.taken: dict[str, Taken] = {}
        """Conditions of dimensions of which only one branch fits the rest of the model."""
        self.text_table: TextTable | None = None
        """The table of the texts of a call, if the model takes text or computes with it."""
        self.choices = 0
        """So many choices are open of which both branches are translated with the rest."""
        self._symbols = itertools.count()
        self._depth = 0

    def fresh_symbol(self, hint: str) -> str:
        """A name for a symbol that only the data decides."""
        return f"{hint}_{next(self._symbols)}"

    def new_dim(self, hint: str) -> SizeVar:
        """A new symbol for a size that only the data decides."""
        symbol: SizeVar = SizeVar(self.fresh_symbol(hint), "int64")
        return symbol

    def emit(self, expr: RelaxLike) -> Expr:
        """Bind an expression; extents that follow only when the program runs are new symbols."""
        bound = self.builder.emit(expr)
        known = undecided_dims(self.builder, bound)
        if known is None:
            return bound
        dims = [self.new_dim("size") if dim is None else dim for dim in known]
        info = TensorStructInfo(dims, bound.struct_info.dtype)
        return self.builder.match_cast(bound, info)

    # What can be translated

    def check_operators(self, graph: GraphProto, scope: Scope) -> None:
        """Raise UnsupportedNodesError if nothing is known of some operators."""
        self.everything = list(all_nodes(graph.node, scope, self.functions))
        unknown = [node for node, inner in self.everything if not self.is_known(node, inner)]
        if self.fallback is not None:
            unknown = unknown_in_onnxruntime(unknown, scope)
        if unknown:
            raise UnsupportedNodesError(unknown)

    def is_known(self, node: NodeProto, scope: Scope) -> bool:
        """Whether there is a converter, or a definition by ONNX, of the node's operator."""
        domain, opset = plain_domain(node.domain), scope.opset(node.domain)
        return self._converter(domain, node.op_type, opset) is not None or has_body(
            domain, node.op_type, opset
        )

    def _converter(self, domain: str, name: str, opset: int) -> Converter | None:
        custom = self.custom.get(qualified(domain, name))
        return custom or find_converter(domain, name, opset)

    # Graphs

    def constants(self, graph: GraphProto, scope: Scope) -> None:
        """Enter the initializers of a graph as constants."""
        for name, array in initializers(graph):
            scope.set(name, Value(self.builder, None, array))

    def declare(self, graph: GraphProto) -> None:
        """Note what a graph says of its tensors, for results of converters of the caller."""
        if self.custom:
            self.declared.update({info.name: info for info in (*graph.value_info, *graph.output)})

    def graph(
        self, graph: GraphProto, scope: Scope, inputs: Sequence[GraphValue | None] = ()
    ) -> list[GraphValue | None]:
        """The outputs of a sub-graph on these inputs, its bindings emitted here."""
        self.declare(graph)
        inner = scope.inner()
        for info, value in zip(graph.input, inputs, strict=True):
            inner.set(info.name, value)
        self.constants(graph, inner)
        names = [info.name for info in graph.output]
        self.nodes(graph.node, inner, names)
        return [inner.get(name) for name in names]

    def nodes(self, nodes: Sequence[NodeProto], scope: Scope, outputs: Sequence[str]) -> None:
        """Translate nodes; ``outputs`` are the names that are wanted of them."""
        nodes = in_order(nodes)
        for place, node in enumerate(nodes):
            try:
                self.node(node, scope)
            except BranchesDifferError as choice:
                if choice.context.scope is not scope:
                    raise  # of a graph inside of this one
                choose_rest(self, choice, Rest(node, nodes[place + 1 :], scope, outputs))
                return

    def node(self, node: NodeProto, scope: Scope) -> None:
        """Translate one node and enter its outputs."""
        node = with_attributes(node, scope.attributes)
        inputs = [scope.get(name) for name in node.input]
        try:
            outputs = self._outputs(node, scope, inputs)
        except TVMError as error:
            notes = getattr(error, "__notes__", ())
            if not any(note.startswith("ONNX node") for note in notes):  # the innermost node's
                error.add_note(
                    f"ONNX node {node.op_type} {node.name!r}, output {first_output(node)!r}"
                )
            raise
        if is_custom(node, self.custom):
            for name, value in zip(node.output, outputs, strict=False):
                check_declared(node, name, value, self.declared if self._depth == 0 else {})
        scope.set_outputs(node, outputs)

    def _outputs(
        self, node: NodeProto, scope: Scope, inputs: Sequence[GraphValue | None]
    ) -> list[GraphValue | None]:
        opset = scope.opset(node.domain)
        given = node_attributes(node, scope.attributes)
        function = self.functions.get(function_key(node))
        if function is not None:
            return self._inline(function, scope, opset, inputs, given)
        context = Context(self, scope, node, opset)
        try:
            return self._converted(context, inputs, given)
        except UnsupportedError as error:
            if self.fallback is None or isinstance(error, BranchesDifferError):
                raise
            return in_onnxruntime(context, inputs, error)

    def _converted(
        self, context: Context, inputs: Sequence[GraphValue | None], given: Attributes
    ) -> list[GraphValue | None]:
        """What the node's converter makes of its inputs, or else ONNX's definition of it."""
        node, opset = context.node, context.opset
        domain = plain_domain(node.domain)
        row = self._converter(domain, node.op_type, opset)
        if not is_custom(node, self.custom):
            check_node(node, opset, given, inputs)
        if row is not None:
            return self._convert(context, row, (domain, node.op_type, opset), inputs, given)
        body = schema_body(domain, node, opset, inputs)
        if body is None:
            raise UnsupportedNodesError([node])
        return self._inline(body, context.scope, opset, inputs, given)

    def _inline(
        self,
        function: FunctionProto,
        scope: Scope,
        opset: int,
        inputs: Sequence[GraphValue | None],
        given: Attributes,
    ) -> list[GraphValue | None]:
        if self._depth >= 100:
            raise OnnxModelError(f"function {function.name!r}: functions call each other in a ring")
        self._depth += 1
        inner = Scope(
            {**scope.opsets, **opset_versions(function.opset_import)},
            None,
            call_attributes(function, opset, given),
        )
        for name, value in itertools.zip_longest(function.input, inputs):
            inner.names[name] = value
        try:
            self.nodes(function.node, inner, function.output)
        finally:
            self._depth -= 1
        return [inner.names.get(name) for name in function.output]

    def expanded(
        self, context: Context, inputs: Sequence[GraphValue | None]
    ) -> list[GraphValue | None]:
        """What ONNX's own definition of a node makes of values; its converter does only a part."""
        node, scope = context.node, context.scope
        body = schema_body(plain_domain(node.domain), node, context.opset, inputs)
        if body is None:
            context.fail("ONNX does not define it by other operators")
        return self._inline(
            body, scope, context.opset, inputs, node_attributes(node, scope.attributes)
        )

    # Single operators

    def apply(
        self,
        context: Context,
        operator: tuple[str, int],
        inputs: Sequence[GraphValue | None],
        given: Attributes,
    ) -> list[GraphValue | None]:
        """What ONNX's operator of that name and opset makes of values, for another converter."""
        name, opset = operator
        row = self._converter("", name, opset)
        if row is None:
            raise OnnxNodeError(f"{context.where}: no converter for {name} of opset {opset}")
        return self._convert(context, row, ("", name, opset), inputs, given)

    def _convert(
        self,
        context: Context,
        row: Converter,
        operator: tuple[str, str, int],
        inputs: Sequence[GraphValue | None],
        given: Attributes,
    ) -> list[GraphValue | None]:
        """What a converter makes of the operator of that domain, name and opset."""
        domain, name, opset = operator
        defaults = default_attributes(domain, name, opset)
        attributes = {**defaults, **given}
        sources = sources_of(inputs)
        plain = not domain and row not in self.custom.values()
        folded = self._folded(name, inputs, given, opset) if plain else None
        if folded is not None:
            return [folded]
        reason = unsupported_attribute(row, defaults, given)
        if reason is not None:
            self._refuse(context, reason)
        if not row.takes_all:
            attributes = {key: attributes[key] for key in attributes if key in row.attributes}
        tensors, texts = places_of_texts(context, name, inputs)
        result = self._called(context, row, tensors, attributes)
        if isinstance(result, Sequence) and not isinstance(result, str):
            items: Sequence[Item] = result
        else:
            items = [result]
        held = _result_elements(domain, name, opset, inputs)
        values = [self.value(item, sources, held) for item in items]
        if plain:
            _note_claim(name, inputs, values[0])
        return with_texts(values, texts)

    def _refuse(self, context: Context, reason: str) -> NoReturn:
        """Raise UnsupportedAttributesError for a node, and for the others of the model like it."""
        rows: dict[int, Converter] = {}
        for node, scope in self.everything:
            row = self._converter(plain_domain(node.domain), node.op_type, scope.opset(node.domain))
            if row is not None:
                rows[id(node)] = row
        others = [
            (node, text)
            for node, text in refused_nodes(self.everything, rows)
            if list(node.output) != list(context.node.output)
        ]
        raise UnsupportedAttributesError(context.where, [(context.node, reason), *others])

    def _called(
        self,
        context: Context,
        row: Converter,
        inputs: Sequence[GraphValue | None],
        attributes: Attributes,
    ) -> Result:
        own = row not in self.custom.values()
        try:
            result = row.function(context, *inputs, **attributes)
        except _PLAIN as error:
            in_caller = error.__traceback__ is not None and error.__traceback__.tb_next is None
            if isinstance(error, TVMError) or not (own or in_caller):
                raise  # an error inside of the caller's own converter stays as it is
            raise OnnxNodeError(
                f"{context.where}: its converter cannot take these inputs and attributes "
                f"({type(error).__name__}: {str(error)[:200]}); it is called with "
                f"({', '.join(['context', *context.node.input, *[f'{k}=' for k in attributes]])})"
            ) from error
        if result is None and not own and any(context.node.output):
            raise OnnxNodeError(
                f"{context.where}: its converter returned None; expected an expression, or a list "
                "with one for each output"
            )
        return result

    def _folded(
        self, name: str, inputs: Sequence[GraphValue | None], given: Attributes, opset: int
    ) -> Value | None:
        """The result where it can be computed at import, else None."""
        sources = sources_of(inputs)
        like = inputs[1] if name == "CastLike" else None
        if isinstance(like, Value) and like.elem is not None:
            name, given, inputs = "Cast", {**given, "to": like.elem}, inputs[:1]
        known: list[Array | None] = []
        for value in inputs:
            if value is not None and (not isinstance(value, Value) or value.known is None):
                return None
            known.append(None if value is None else value.known)
        folded = fold(name, known, given) if known else None
        if folded is None:
            return None
        elem = _result_elements("", name, opset, inputs)
        if name == "Cast":
            elem = expect(given["to"], int)
        keep = elem if folded.dtype == object or elem in SMALL else None
        result = Value(self.builder, None, folded, keep, sources)
        result.name = name_of_largest(inputs)
        return result

    def value(
        self, item: Item, sources: frozenset[str], held: int | None = None
    ) -> GraphValue | None:
        """A converter's result as a value; ``held`` is its type if that is held in bytes."""
        if item is None or isinstance(item, SequenceValue | OptionalValue | TextValue | MapValue):
            return item
        if isinstance(item, RunSequence):
            return RunSequence(item.expr, item.elem, item.dims, item.sources or sources)
        if isinstance(item, Value):
            if not item.sources and sources:
                name = item.name
                item = Value(self.builder, item._expr, item.known, item.elem, sources)
                item.name = name
            return item
        expr = item if isinstance(item, RelaxVar) else self.emit(item)
        return Value(self.builder, expr, None, held if held in SMALL else None, sources)


def sources_of(inputs: Iterable[GraphValue | None]) -> frozenset[str]:
    """The inputs of the graph that values are computed from."""
    sources: frozenset[str] = frozenset()
    for value in inputs:
        if value is not None:
            sources |= value.sources
        if isinstance(value, SequenceValue):
            sources |= sources_of(value.items)
    return sources


_PASS_ON: Final = ("Cast", "Identity", "Reshape", "Squeeze", "Unsqueeze")


def _note_claim(name: str, inputs: Sequence[GraphValue | None], result: GraphValue | None) -> None:
    """Note what a boolean says of dimensions, so that an If or a Loop knows its condition."""
    tensors = [value for value in inputs if isinstance(value, Value)]
    if not isinstance(result, Value) or len(tensors) < len(inputs) or not tensors:
        return
    if name in _PASS_ON:
        result.claim = tensors[0].claim if result.elem == BOOL else None
        if result.dtype in ("float32", "float64"):
            result.whole = tensors[0].known if tensors[0].whole is None else tensors[0].whole
    elif name == "Not" and tensors[0].claim is not None:
        result.claim = logical_not(tensors[0].claim)
    elif name == "And" and all(value.known is None or value.known.size == 1 for value in tensors):
        result.claim = _joint_claim(tensors)
    else:
        numbers = [value.known if value.whole is None else value.whole for value in tensors]
        result.claim = claim_of(name, numbers)


def _joint_claim(conditions: Sequence[Value]) -> PrimExpr | None:
    """What two conditions say together, where each says something of dimensions or is known."""
    claims = [
        value.claim if value.constant is None else IntImm("bool", int(value.constant.all()))
        for value in conditions
    ]
    first, second = claims
    return None if first is None or second is None else logical_and(first, second)


def _result_elements(
    domain: str, name: str, opset: int, inputs: Sequence[GraphValue | None]
) -> int | None:
    """The element type of the result where the schema says it is that of an input."""
    schema = schema_of(domain, name, opset)
    if schema is None or not schema.outputs:
        return None
    wanted = schema.outputs[0].type_str
    formal = list(schema.inputs)
    for index, value in enumerate(inputs):
        place = formal[min(index, len(formal) - 1)] if formal else None
        if place is not None and place.type_str == wanted and isinstance(value, Value):
            return value.elem
    return None
