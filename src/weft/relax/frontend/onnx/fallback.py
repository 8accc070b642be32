"""``fallback="onnxruntime"``: a node that weft does not convert runs in ONNX Runtime.

The node becomes an ONNX model of its own, whose inputs have the shapes that are known here. ONNX
Runtime infers the types and shapes of its results when the session of that model is opened, at
import. Where it knows the extents, they are those of the result; each other extent is a new symbol,
which the result defines when the program runs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, Final, NoReturn

from weft.relax import op
from weft.relax.expr import Expr, StringImm
from weft.relax.frontend.onnx.context import Context
from weft.relax.frontend.onnx.element_types import (
    BFLOAT16,
    SMALL,
    STORAGE,
    STRING,
    element_of,
    type_name,
)
from weft.relax.frontend.onnx.errors import need_onnx
from weft.relax.frontend.onnx.protos import GraphProto, ModelProto, NodeProto
from weft.relax.frontend.onnx.registry import plain_domain, qualified
from weft.relax.frontend.onnx.scope import Scope
from weft.relax.frontend.onnx.value import Dim, GraphValue, Value
from weft.relax.struct_info import TensorStructInfo, TupleStructInfo
from weft.runtime.onnx_nodes import describe_node, open_session
from weft.runtime.providers import RUN_NODE
from weft.support.errors import UnsupportedError

IR_VERSION: Final = 8
"""That of the models of single nodes: every ONNX Runtime of the last years reads it."""
EMBEDDED: Final = 256
"""Constants of up to so many elements stand in the model of the node: shapes follow from them."""
_NAMES: Final = {"float": "float32", "double": "float64"}
"""ONNX Runtime's names of element types that are not numpy's."""


def call_in_onnxruntime(
    context: Context, inputs: Sequence[GraphValue | None]
) -> list[GraphValue | None]:
    """The outputs of a node as results of a call of ONNX Runtime.

    Raises UnsupportedError where ONNX Runtime is not there or cannot take the node, and
    OnnxNodeError for values that cannot be handed over.
    """
    call = _Call(context)
    for value in inputs:
        call.add(value)
    infos = call.results(open_session(call.model(with_shapes=True).SerializeToString()))
    operator = qualified(plain_domain(context.node.domain), context.node.op_type)
    model = call.model(with_shapes=False).SerializeToString(deterministic=True)
    text = StringImm(describe_node(operator, model))
    kind = infos[0] if len(infos) == 1 else TupleStructInfo(infos)
    result = context.emit(op.call_pure_packed(RUN_NODE, text, *call.tensors, sinfo_args=kind))
    parts: list[Expr] = [result]
    if len(infos) > 1:
        parts = [context.emit(result[index]) for index in range(len(infos))]
    values = iter([call.matched(part, dims) for part, dims in zip(parts, call.dims, strict=True)])
    return [next(values) if name else None for name in context.node.output]


def in_onnxruntime(
    context: Context, inputs: Sequence[GraphValue | None], error: UnsupportedError
) -> list[GraphValue | None]:
    """As ``call_in_onnxruntime``; where that cannot take the node either, ``error`` is raised."""
    try:
        return call_in_onnxruntime(context, inputs)
    except UnsupportedError as problem:
        error.add_note(f'fallback="onnxruntime": {problem}')
        raise error from problem


def unknown_in_onnxruntime(nodes: Iterable[NodeProto], scope: Scope) -> list[NodeProto]:
    """Those of the nodes whose operator ONNX Runtime does not know either."""
    known: dict[str, bool] = {}
    unknown = []
    for node in nodes:
        operator = qualified(plain_domain(node.domain), node.op_type)
        if operator not in known:
            known[operator] = _is_known(node, scope)
        if not known[operator]:
            unknown.append(node)
    return unknown


def _is_known(node: NodeProto, scope: Scope) -> bool:
    """Whether ONNX Runtime has the operator: opening a model of it fails for other reasons."""
    onnx = need_onnx()
    infos = [
        onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None)
        for name in dict.fromkeys(node.input)
        if name
    ]
    results = [onnx.ValueInfoProto(name=name) for name in node.output if name]
    graph = onnx.helper.make_graph([node], "node", infos, results)
    model = _model_of(graph, node, scope)
    try:
        open_session(model.SerializeToString())
    except UnsupportedError as error:
        return "not a registered function/op" not in str(error)
    return True


def _model_of(graph: GraphProto, node: NodeProto, scope: Scope) -> ModelProto:
    """The model of a graph with one node, with the operator sets that the node is of."""
    helper = need_onnx().helper
    versions = {"": max(scope.opset(""), 1), plain_domain(node.domain): scope.opset(node.domain)}
    imports = [helper.make_opsetid(name, version) for name, version in versions.items()]
    model: ModelProto = helper.make_model(
        graph, opset_imports=imports, ir_version=IR_VERSION, producer_name=""
    )
    return model


class _Call:
    """One node under conversion: the parts of its model, and what is passed when it runs."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.names: list[str] = []
        self.infos: list[Any] = []
        self.constants: list[Any] = []
        self.tensors: list[Expr] = []
        self.symbols: dict[str, Dim] = {}
        """The names that extents of inputs have in the model of the node."""
        self.dims: list[list[Dim | None] | None] = []
        """The extents of results: None for one that the run tells, or where there is no rank."""

    def add(self, value: GraphValue | None) -> None:
        """Enter an input: a small constant, or a tensor."""
        if value is None:
            self.names.append("")
            return
        if not isinstance(value, Value):
            self._refuse("a sequence or an optional is handed to it")
        onnx, name = need_onnx(), f"i{len(self.names)}"
        self.names.append(name)
        constant = value.constant
        if constant is not None and (constant.size <= EMBEDDED or value.elem == STRING):
            elements = constant.astype(object) if value.elem == STRING else constant
            self.constants.append(onnx.numpy_helper.from_array(elements, name))
            return
        if value.elem == BFLOAT16 or value.elem in SMALL or value.elem not in STORAGE:
            self._refuse(f"a tensor of {type_name(value.elem or 0)} cannot be handed to it")
        dims = value.shape
        names: list[int | str | None] | None = [None] * value.rank if value.rank >= 0 else None
        if dims is not None:
            names = [self._extent(dim) for dim in dims]
        self.infos.append(onnx.helper.make_tensor_value_info(name, value.elem, names))
        self.tensors.append(value.expr)

    def _extent(self, dim: Dim) -> int | str:
        if isinstance(dim, int):
            return dim
        for name, known in self.symbols.items():
            if known is dim or str(known) == str(dim):
                return name
        name = f"d{len(self.symbols)}"
        self.symbols[name] = dim
        return name

    def model(self, *, with_shapes: bool) -> ModelProto:
        """The model of the node; the shapes of its results, where they are wanted, follow them."""
        context, helper = self.context, need_onnx().helper
        kept = [f"o{index}" if name else "" for index, name in enumerate(context.node.output)]
        node = helper.make_node(
            context.node.op_type, self.names, kept, domain=plain_domain(context.node.domain)
        )
        node.attribute.extend(context.node.attribute)
        results = [name for name in kept if name]
        shapes = [
            helper.make_node("Shape", [name], [f"{name}_shape"]) for name in results if with_shapes
        ]
        outputs = [*results, *[item.output[0] for item in shapes]]
        graph = helper.make_graph(
            [node, *shapes],
            "node",
            self.infos,
            [need_onnx().ValueInfoProto(name=name) for name in outputs],
            self.constants,
        )
        return _model_of(graph, context.node, context.scope)

    def results(self, session: Any) -> list[TensorStructInfo]:
        """What the session says of the results: types, and extents where it knows them."""
        outputs = session.get_outputs()
        count = len(outputs) // 2
        infos = []
        for output, shape in zip(outputs[:count], outputs[count:], strict=True):
            dtype = self._dtype(output.type)
            is_ranked = isinstance(shape.shape[0], int)
            dims = [self._dim(item) for item in output.shape] if is_ranked else None
            self.dims.append(dims)
            known = [dim for dim in dims or () if dim is not None]
            is_known = dims is not None and len(known) == len(dims)
            rank = -1 if dims is None else len(dims)
            infos.append(
                TensorStructInfo(known, dtype)
                if is_known
                else TensorStructInfo(None, dtype, ndim=rank)
            )
        return infos

    def _dim(self, item: int | str | None) -> Dim | None:
        return item if isinstance(item, int) else self.symbols.get(item or "")

    def _dtype(self, text: str) -> str:
        kind = re.fullmatch(r"tensor\((\w+)\)", text)
        name = "" if kind is None else _NAMES.get(kind[1], kind[1])
        if name not in STORAGE.values() or element_of(name) == BFLOAT16:
            self._refuse(f"its result is a {text}: expected a tensor of numbers or booleans")
        return name

    def matched(self, part: Expr, dims: Sequence[Dim | None] | None) -> Value:
        """A result, whose unknown extents are new symbols."""
        context = self.context
        if dims is not None and None in dims:
            sizes = [context.new_dim("size") if dim is None else dim for dim in dims]
            part = context.matched(part, sizes)
        return Value(context.builder, part)

    def _refuse(self, reason: str) -> NoReturn:
        raise UnsupportedError(f"{self.context.where} in ONNX Runtime: {reason}")
