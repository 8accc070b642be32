"""``from_onnx``: an ONNX model as a module with one graph function ``main``."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from weft.ir.module import IRModule
from weft.relax.block_builder import BlockBuilder
from weft.relax.expr import Expr, StringImm, Tuple, Var
from weft.relax.frontend.onnx import operators
from weft.relax.frontend.onnx.checks import (
    check_fallback,
    check_flag,
    check_initializers,
    check_input_names,
    check_model,
    check_options,
    sub_graphs,
)
from weft.relax.frontend.onnx.element_types import STORAGE, STRING, to_storage
from weft.relax.frontend.onnx.errors import OnnxModelError
from weft.relax.frontend.onnx.functions import opset_versions
from weft.relax.frontend.onnx.model import check_versions, load_model
from weft.relax.frontend.onnx.parameters import (
    GivenShape,
    Names,
    Symbols,
    alone_in,
    input_dtype,
    input_shape,
    is_optional_tensor,
    is_tensor_sequence,
    item_shape,
)
from weft.relax.frontend.onnx.protos import GraphProto, ModelProto, NodeProto, ValueInfoProto
from weft.relax.frontend.onnx.registry import Function
from weft.relax.frontend.onnx.results import flat_expr
from weft.relax.frontend.onnx.scope import Scope
from weft.relax.frontend.onnx.tensors import initializers
from weft.relax.frontend.onnx.text_values import as_object, computes_text, texts_named_in
from weft.relax.frontend.onnx.translator import Translator
from weft.relax.frontend.onnx.value import (
    Array,
    Dim,
    GraphValue,
    OptionalValue,
    RunSequence,
    SequenceValue,
    TextTable,
    TextValue,
    Value,
)
from weft.relax.op import call_pure_packed
from weft.relax.struct_info import ObjectStructInfo, TensorStructInfo
from weft.runtime import texts
from weft.runtime.ndarray import array as make_ndarray
from weft.runtime.vm import sequences
from weft.support.public_entry import public_entry

operators.load()


Given: TypeAlias = npt.ArrayLike | Sequence["Given"] | None
"""An input as ONNX's backend gives it: an array, a list of them (a sequence), or None."""


@dataclass
class Imported:
    """A translated model.

    Attributes:
        mod: the module.
        inputs: the names of the graph's inputs that are parameters, in order.
        outputs: what the translator knows of each output (its element type, its structure).
        texts: the extents of each input of text, numbers and names.
    """

    mod: IRModule
    inputs: list[str]
    outputs: list[GraphValue]
    texts: dict[str, list[int | str]]


@dataclass
class Request:
    """How a model is imported: the options of ``from_onnx``, and inputs with known values."""

    shapes: Mapping[str, GivenShape] = field(default_factory=dict)
    dtypes: str | Mapping[str, str] = "float32"
    keep_params: bool = False
    sanitize: bool = True
    custom: Mapping[str, Function] = field(default_factory=dict)
    fallback: str | None = None
    bound: Mapping[str, Given] = field(default_factory=dict)
    """Inputs that become constants: arrays, lists of arrays (sequences), or None (absent)."""
    lengths: Mapping[str, Given] = field(default_factory=dict)
    """Inputs that are sequences or optionals: an example of the value, arrays and lists."""


@public_entry("from_onnx")
def from_onnx(
    model: ModelProto | str | os.PathLike[str] | bytes,
    shape_dict: Mapping[str, GivenShape] | None = None,
    dtype_dict: str | Mapping[str, str] = "float32",
    opset: int | None = None,
    keep_params_in_input: bool = False,
    sanitize_input_names: bool = True,
    *,
    custom_converters: Mapping[str, Function] | None = None,
    fallback: str | None = None,
) -> IRModule:
    """Translate an ONNX model to a module with the graph function ``main``.

    Args:
        model: an ``onnx.ModelProto``, the path of a file (its external data is read too), or
            serialized bytes.
        shape_dict: shapes of inputs by name, where the model's are unknown or symbolic; a
            dimension is an int, an integer expression, or the name of a symbol.
        dtype_dict: data types of inputs by name; a text is the type of those that have none.
        opset: the opset to read operators by, instead of the model's own.
        keep_params_in_input: whether initializers become parameters of ``main`` (after the inputs;
            their arrays in its attribute ``params``) instead of constants.
        sanitize_input_names: whether names of parameters are made identifiers.
        custom_converters: converters by operator (``"Foo"``, ``"my.domain::Foo"``) that come before
            the built-in ones (see weft.relax.frontend.onnx.registry).
        fallback: ``"onnxruntime"`` runs the nodes that weft does not convert in ONNX Runtime, which
            must then be installed where the model is imported and where it runs.

    Returns:
        The module. ``main`` returns the output, or a tuple of several; a sequence is a tuple. Its
        attribute ``num_input`` is the number of inputs.

    Raises:
        OnnxModelError: no valid model, or its inputs or initializers contradict ``shape_dict`` or
            ``dtype_dict``.
        UnsupportedOperatorsError: operators without a converter, all of them; ``skeleton`` has
            converters to fill in.
        ConstantNeededError: an operator needs at import what only the data decides.

    >>> from onnx import TensorProto, helper
    >>> x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 4])
    >>> y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    >>> graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", [x], [y])
    >>> mod = from_onnx(helper.make_model(graph))
    >>> mod["main"].ret_struct_info
    R.Tensor((n, 4), dtype="float32")
    """
    check_flag("keep_params_in_input", keep_params_in_input)
    check_flag("sanitize_input_names", sanitize_input_names)
    request = Request(
        shape_dict or {},
        dtype_dict,
        keep_params_in_input,
        sanitize_input_names,
        custom_converters or {},
        fallback,
    )
    return import_model(load_model(model), request, opset).mod


def import_model(model: ModelProto, request: Request, opset: int | None = None) -> Imported:
    """Translate a ModelProto as the request says."""
    check_versions(model)
    check_options(request.shapes, request.dtypes, opset, request.custom)
    check_fallback(request.fallback)
    check_model(model)
    check_input_names(model.graph, request.shapes, "shape_dict")
    if isinstance(request.dtypes, Mapping):
        check_input_names(model.graph, request.dtypes, "dtype_dict")
    check_initializers(model.graph, request.shapes, request.dtypes)
    versions = opset_versions(model.opset_import)
    if opset is not None:
        versions[""] = opset
    return _Import(model, request, Scope(versions)).run()


class _Import:
    """One import: the parameters, then the nodes, then the results."""

    def __init__(self, model: ModelProto, request: Request, scope: Scope) -> None:
        self.graph, self.request, self.scope = model.graph, request, scope
        self.builder = BlockBuilder()
        self.translator = Translator(
            self.builder, model.functions, request.custom, request.fallback
        )
        self.symbols = Symbols(alone_in(self.graph.input, request.shapes))
        self.names = Names(request.sanitize)
        self.inputs: dict[str, list[Var]] = {}
        self.params: list[tuple[Var, Array]] = []
        self.texts: dict[str, tuple[Var, list[Dim]]] = {}
        """Inputs that are text: the parameter, and the shape."""
        self.sequences: dict[str, tuple[Var, int, list[int | None]]] = {}
        """Inputs that are sequences: the parameter, and element type and shape of the items."""
        self.named_texts = texts_named_in(model) if computes_text(model) else []

    def run(self) -> Imported:
        graph, scope, builder = self.graph, self.scope, self.builder
        self.translator.check_operators(graph, scope)
        self.translator.declare(graph)
        self.parameters()
        variables = [var for group in self.inputs.values() for var in group]
        variables += [var for var, _ in self.params]
        dataflow = not has_control_flow(graph, self.translator)
        names = [info.name for info in graph.output]
        with builder.function("main", variables) as function:
            with builder.dataflow() if dataflow else nullcontext():
                self.read_texts()
                self.read_sequences()
                self.translator.nodes(graph.node, scope, names)
                values = [scope.get(name) for name in names]
                outputs = [value for value in values if value is not None]
                if len(outputs) < len(values):
                    raise OnnxModelError("an output of the graph is left out by its node")
                result = self.result([self.output(value) for value in outputs], dataflow)
            function.is_pure = self.translator.is_pure
            builder.emit_func_output(result)
        mod = builder.get()
        attrs: dict[str, object] = {"num_input": len(self.inputs)}
        if self.params:
            attrs["params"] = [make_ndarray(array) for _, array in self.params]
        mod.update_func(mod.get_global_var("main"), mod["main"].with_attrs(attrs))
        extents = {name: _written(dims) for name, (_, dims) in self.texts.items()}
        return Imported(mod, list(self.inputs), outputs, extents)

    def read_texts(self) -> None:
        """Emit the table of texts, if the model has one, and the places of inputs in it."""
        if not self.named_texts:
            return
        named = json.dumps(self.named_texts)
        call = call_pure_packed(texts.TABLE, StringImm(named), sinfo_args=ObjectStructInfo())
        table = TextTable(self.named_texts, self.builder.emit(call))
        self.translator.text_table = table
        for name, (var, dims) in self.texts.items():
            kind = TensorStructInfo(None, "int64", ndim=len(dims))
            given = [StringImm(name), StringImm(json.dumps(_written(dims))), var]
            call = call_pure_packed(texts.PLACES, table.expr, *given, sinfo_args=kind)
            info = TensorStructInfo(dims, "int64")
            name_hint = f"texts_of_{var.name_hint}"
            places = self.builder.match_cast(self.builder.emit(call), info, name_hint)
            index = Value(self.builder, places, None, None, frozenset([name]))
            self.scope.set(name, TextValue(index, table))

    def read_sequences(self) -> None:
        """Emit the sequences of the arrays that a caller gives in lists."""
        for name, (var, elem, dims) in self.sequences.items():
            written = [StringImm(text) for text in (name, STORAGE[elem], json.dumps(dims))]
            info = ObjectStructInfo()
            call = call_pure_packed(sequences.GIVEN, *written, var, sinfo_args=info)
            given = RunSequence(self.builder.emit(call), elem, dims, frozenset([name]))
            self.scope.set(name, given)

    def output(self, value: GraphValue) -> Expr:
        """What the function returns of a value: what only the run knows as objects."""
        if isinstance(value, TextValue) and isinstance(value.texts, TextTable):
            return self.builder.emit(as_object(texts.TEXTS, value, value.texts))
        if isinstance(value, RunSequence):
            items = call_pure_packed(sequences.ITEMS, value.expr, sinfo_args=ObjectStructInfo())
            return self.builder.emit(items)
        return flat_expr(value)

    def result(self, exprs: list[Expr], dataflow: bool) -> Var:
        whole = exprs[0] if len(exprs) == 1 else Tuple(exprs)
        return self.builder.emit_output(whole) if dataflow else self.builder.emit(whole)

    def parameters(self) -> None:
        """Enter initializers and inputs; inputs that have an initializer are parameters of it."""
        defaults = dict(initializers(self.graph))
        for info in self.graph.input:
            if info.name in self.request.bound:
                self.scope.set(info.name, self.bound(info, self.request.bound[info.name]))
            elif info.name not in defaults:
                value = self.input(info)
                if value is not None:
                    self.scope.set(info.name, value)
        for name, array in defaults.items():
            if name not in self.scope.names:
                self.scope.set(name, self.initializer(name, array))

    def initializer(self, name: str, array: Array) -> Value:
        value = Value(self.builder, None, array)
        if not self.request.keep_params:
            value.name = name
            return value
        var = Var(
            self.names.fresh(name.removeprefix("onnx::")),
            TensorStructInfo(array.shape, value.dtype),
        )
        self.params.append((var, to_storage(array)))
        known = array if array.dtype.kind in "iu" else None
        return Value(self.builder, var, known, value.elem)

    def bound(self, info: ValueInfoProto, value: Given) -> GraphValue:
        sources = frozenset([info.name])
        if value is None:
            return OptionalValue(None, sources)
        if isinstance(value, list | tuple):
            items = [Value(self.builder, None, np.asarray(item)) for item in value]
            return SequenceValue(items, None, sources)
        return Value(self.builder, None, np.asarray(value), None, sources)

    def input(self, info: ValueInfoProto) -> GraphValue | None:
        """The value of an input; None of text and sequences, which the function's body reads.

        One that may be absent is there, unless ``bound`` says that it is not.
        """
        group = self.inputs.setdefault(info.name, [])
        kind = info.type.WhichOneof("value")
        if kind is not None and info.name in self.request.lengths and kind != "tensor_type":
            return self.structured(info.name, self.request.lengths[info.name], kind, group)
        if is_tensor_sequence(info):
            self.sequence(info, group)
            return None
        is_optional = is_optional_tensor(info)
        if kind not in ("tensor_type", None) and not is_optional:
            raise OnnxModelError(
                f"input {info.name!r}: expected a tensor or a sequence of tensors, got the type "
                f"{kind.removesuffix('_type')}; make its parts inputs, or fix the input by "
                f"constants={{{info.name!r}: value}}"
            )
        shape = input_shape(info, self.request.shapes.get(info.name), self.symbols)
        dtype, elem = input_dtype(info, self.request.dtypes)
        kept = ObjectStructInfo() if elem == STRING else TensorStructInfo(shape, dtype)
        var = Var(self.names.fresh(info.name), kept)
        group.append(var)
        if elem == STRING:
            self.texts[info.name] = (var, shape)
            return None
        sources = frozenset([info.name])
        value = Value(self.builder, var, None, elem, sources)
        return OptionalValue(value, sources) if is_optional else value

    def sequence(self, info: ValueInfoProto, group: list[Var]) -> None:
        """An input that is a list of arrays, as many as the caller gives."""
        dims = item_shape(info, self.request.shapes.get(info.name))
        _, elem = input_dtype(info, self.request.dtypes)
        if elem == STRING:
            raise OnnxModelError(
                f"input {info.name!r}: expected a sequence of tensors of numbers or booleans, got "
                "one of text; make its items inputs"
            )
        var = Var(self.names.fresh(info.name), ObjectStructInfo())
        group.append(var)
        self.sequences[info.name] = (var, elem, dims)

    def structured(self, name: str, example: Given, kind: str, group: list[Var]) -> GraphValue:
        """A sequence or an optional whose structure an example shows: one parameter an array."""
        sources = frozenset([name])
        if isinstance(example, list | tuple):
            items = [self.structured(name, item, "tensor_type", group) for item in example]
            value: GraphValue = SequenceValue(items, None, sources)
        elif example is None:
            return OptionalValue(None, sources)
        else:
            array = np.asarray(example)
            known = Value(self.builder, None, array)
            var = Var(self.names.fresh(name), TensorStructInfo(array.shape, known.dtype))
            group.append(var)
            value = Value(self.builder, var, None, known.elem, sources)
        return OptionalValue(value, sources) if kind == "optional_type" else value


def has_control_flow(graph: GraphProto, translator: Translator) -> bool:
    """Whether a graph, or a function of the model, has nodes that may choose between branches.

    They have graphs inside, or are Squeezes without axes (``choices``).
    """
    groups = [graph.node, *[function.node for function in translator.functions.values()]]
    return any(
        next(sub_graphs(node), None) is not None or is_squeeze_by_extent(node)
        for nodes in groups
        for node in nodes
    )


def is_squeeze_by_extent(node: NodeProto) -> bool:
    """Whether a node removes all axes that have one element."""
    has_axes = bool(node.input[1:] and node.input[1]) or bool(node.attribute)
    return node.op_type == "Squeeze" and not has_axes


def _written(dims: Sequence[Dim]) -> list[int | str]:
    """Extents as plain numbers and names."""
    return [dim if isinstance(dim, int) else str(dim) for dim in dims]
