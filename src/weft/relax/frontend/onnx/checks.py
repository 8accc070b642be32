"""What must hold of a model, of one node and of the caller's options before they are translated.

ONNX's own checker is not asked: it refuses models whole that can be imported (unknown domains,
shapes that exporters got wrong), and needs the file again where a model is large. What is asked of
a node is what its schema says: how many inputs it takes, which attributes it needs, of which type.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import Final

import numpy as np

from weft.ir.expr import PrimExpr
from weft.relax.frontend.onnx.attributes import schema_of
from weft.relax.frontend.onnx.element_types import STORAGE
from weft.relax.frontend.onnx.errors import OnnxModelError, OnnxNodeError, need_onnx
from weft.relax.frontend.onnx.functions import Key, function_key
from weft.relax.frontend.onnx.parameters import GivenShape
from weft.relax.frontend.onnx.protos import (
    Attributes,
    FunctionProto,
    GraphProto,
    ModelProto,
    NodeProto,
    OpSchema,
)
from weft.relax.frontend.onnx.registry import Function, plain_domain, qualified
from weft.relax.frontend.onnx.value import GraphValue
from weft.support.errors import IRTypeError

# The model

_MOST_NODES: Final = 1_000_000
"""Nodes of a model, in which calls of its functions are replaced by their bodies."""


def check_model(model: ModelProto) -> None:
    """Raise OnnxModelError for names that are defined twice and functions that call themselves."""
    check_graph(model.graph)
    functions = {function_key(item): item for item in model.functions}
    called: dict[Key, list[Key]] = {}
    for key, function in functions.items():
        check_names(function.node, function.input, f"function {function.name!r}")
        called[key] = _called(function.node)
    _check_expanded(model.graph, _sizes(functions, called))


def _called(nodes: Iterable[NodeProto]) -> list[Key]:
    """What names the function of each node, if it has one, of the graphs inside nodes too."""
    return [function_key(node) for node in _all_nodes(nodes)]


def _sizes(
    functions: Mapping[Key, FunctionProto], called: Mapping[Key, Sequence[Key]]
) -> dict[Key, int]:
    """How many nodes each function stands for, where calls are replaced by the bodies.

    Raises OnnxModelError for a function that calls itself, through any number of others.
    """
    inner = {key: [name for name in names if name in functions] for key, names in called.items()}
    try:
        callees_first = [*TopologicalSorter(inner).static_order()]
    except CycleError as error:
        circle = set(error.args[1])
        name = next(item.name for key, item in functions.items() if key in circle)
        raise OnnxModelError(
            f"function {name!r} of the model calls itself, so its body has no end"
        ) from None
    sizes: dict[Key, int] = {}
    for key in callees_first:
        sizes[key] = sum([sizes.get(name, 1) for name in called[key]])
    return sizes


def _check_expanded(graph: GraphProto, sizes: Mapping[Key, int]) -> None:
    """Raise OnnxModelError where the calls of functions stand for more nodes than can be imported.

    Each call is replaced by the body: twenty functions that call the one before twice are a file of
    a kilobyte and a million nodes.
    """
    whole = sum([sizes.get(key, 1) for key in _called(graph.node)])
    if whole > _MOST_NODES:
        raise OnnxModelError(
            f"graph {graph.name!r}: expected at most {_MOST_NODES:,} nodes with the bodies of the "
            f"functions that it calls, got 2**{whole.bit_length() - 1} or more; let its functions "
            "call each other less often"
        )


def check_graph(graph: GraphProto) -> None:
    """Raise OnnxModelError where a name of the graph, or of one inside it, has two meanings."""
    if not graph.output:
        raise OnnxModelError(f"graph {graph.name!r}: expected at least one output, found none")
    defaults = Counter([item.name for item in graph.initializer])
    inputs = [item.name for item in graph.input]
    for what, names in (("input", inputs), ("initializer", defaults.elements())):
        twice = _twice(names)
        if twice:
            raise OnnxModelError(f"graph {graph.name!r}: there are two {what}s of name {twice!r}")
    check_names(graph.node, [*inputs, *defaults], f"graph {graph.name!r}")
    for node in graph.node:
        for inner in sub_graphs(node):
            check_graph(inner)


def check_names(nodes: Iterable[NodeProto], before: Iterable[str], where: str) -> None:
    """Raise OnnxModelError where a node defines a name that is there already."""
    known = set(before)
    for node in nodes:
        for name in node.output:
            if name and name in known:
                raise OnnxModelError(
                    f"{where}: the value {name!r} is defined twice, the second time by "
                    f"{node.op_type} node {node.name!r}; rename one of them"
                )
            known.add(name)


def sub_graphs(node: NodeProto) -> Iterator[GraphProto]:
    """The graphs among the attributes of a node."""
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs


def first_output(node: NodeProto) -> str:
    """The name of a node's first output, which names the node in messages; "" if it has none."""
    return str(next(iter(node.output), ""))


def _twice(names: Iterable[str]) -> str:
    return next((name for name, count in Counter(names).items() if count > 1), "")


def _all_nodes(nodes: Iterable[NodeProto]) -> Iterator[NodeProto]:
    for node in nodes:
        yield node
        for graph in sub_graphs(node):
            yield from _all_nodes(graph.node)


# One node


def check_node(
    node: NodeProto, opset: int, given: Attributes, inputs: Sequence[GraphValue | None]
) -> None:
    """Raise OnnxNodeError where a node is not as the schema of its operator has it.

    ``given`` are its attributes as Python has them, ``inputs`` its inputs, None for one that is
    left out. Operators without a schema are let through.
    """
    domain = plain_domain(node.domain)
    schema = schema_of(domain, node.op_type, opset)
    if schema is None:
        return
    _check_inputs(node, schema, inputs)
    kinds = {item.name: item.type for item in node.attribute if not item.ref_attr_name}
    for name, attribute in schema.attributes.items():
        wanted = _type_name(attribute.type)
        if attribute.required and name not in given:
            raise _node_error(node, f"expected an attribute {name} ({wanted}), found none")
        actual = _type_name(kinds.get(name, attribute.type))
        if actual != wanted:
            raise _node_error(node, f"expected its attribute {name} to be {wanted}, got {actual}")
    if (domain, node.op_type) == ("", "Constant") and len(node.attribute) != 1:
        raise _node_error(node, f"expected one value, got {len(node.attribute)}")


def _check_inputs(node: NodeProto, schema: OpSchema, inputs: Sequence[GraphValue | None]) -> None:
    count = len(inputs)
    while count and inputs[count - 1] is None:
        count -= 1
    if count > schema.max_input:
        raise _node_error(node, f"expected at most {schema.max_input} inputs, got {count}")
    for index, formal in enumerate(schema.inputs):
        needed = formal.option.name == "Single" or (
            formal.option.name == "Variadic" and index < schema.min_input
        )
        if needed and (index >= len(inputs) or inputs[index] is None):
            raise _node_error(node, f"its input {index} ({formal.name}) is missing")


def _node_error(node: NodeProto, message: str) -> OnnxNodeError:
    name = qualified(plain_domain(node.domain), node.op_type)
    title = f" {node.name!r}" if node.name else ""
    return OnnxNodeError(f"{name} node{title} (output {first_output(node)!r}): {message}")


def _type_name(kind: object) -> str:
    """``INT`` as ``int``, ``FLOATS`` as ``floats``; of a protobuf number or of a schema's enum."""
    if not isinstance(kind, int):
        return str(kind).rpartition(".")[2].lower()
    return str(need_onnx().AttributeProto.AttributeType.Name(kind)).lower()


# The caller's options


def check_flag(name: str, value: object) -> None:
    """Raise IRTypeError for what is no truth value: the text ``"no"`` would mean yes."""
    if not isinstance(value, bool | np.bool_ | int) or value not in (0, 1):
        raise IRTypeError(f"from_onnx: {name}: expected True or False, got {value!r:.60}")


def check_fallback(fallback: str | None) -> None:
    """Raise OnnxModelError for a ``fallback`` that there is not."""
    if fallback not in (None, "onnxruntime"):
        raise OnnxModelError(
            f"from_onnx: fallback: expected 'onnxruntime' or None, got {fallback!r:.60}"
        )


def check_options(
    shapes: Mapping[str, GivenShape] | None,
    dtypes: str | Mapping[str, str],
    opset: int | None,
    converters: Mapping[str, Function] | None,
) -> None:
    """Raise IRTypeError for options of ``from_onnx`` that are not of the types that it takes."""
    for name, value, holds in (
        ("shape_dict", shapes, "shapes"),
        ("custom_converters", converters, "functions"),
    ):
        if value is not None and not isinstance(value, Mapping):
            raise IRTypeError(
                f"from_onnx: {name}: expected a dict from names to {holds}, got "
                f"{type(value).__name__}"
            )
    for name, shape in (shapes or {}).items():
        _check_shape(name, shape)
    if not isinstance(dtypes, str | Mapping):
        raise IRTypeError(
            "from_onnx: dtype_dict: expected a data type, or a dict from names to data types, got "
            f"{type(dtypes).__name__}"
        )
    _check_dtypes(dtypes)
    _check_opset(opset)
    for name, function in (converters or {}).items():
        if not callable(function):
            raise IRTypeError(
                f"from_onnx: custom_converters[{name!r}]: expected a function, got "
                f"{type(function).__name__}"
            )


def _check_shape(name: str, shape: GivenShape) -> None:
    where = f"from_onnx: shape_dict[{name!r}]"
    if isinstance(shape, str) or not isinstance(shape, Sequence):
        raise IRTypeError(f"{where}: expected a list of extents, got {type(shape).__name__}")
    for extent in shape:
        if isinstance(extent, str | PrimExpr):
            continue
        if isinstance(extent, bool) or not hasattr(extent, "__index__"):
            raise IRTypeError(
                f"{where}: expected integers, names of symbols or expressions, got {extent!r:.60}"
            )
        if int(extent) < 0:
            raise OnnxModelError(f"{where}: expected extents of at least 0, got {int(extent)}")


def _check_dtypes(dtypes: str | Mapping[str, str]) -> None:
    by_name = {"": dtypes} if isinstance(dtypes, str) else dtypes
    known = sorted(set(STORAGE.values()))
    for name, dtype in by_name.items():
        if str(dtype) not in known:
            where = f"dtype_dict[{name!r}]" if name else "dtype_dict"
            raise OnnxModelError(
                f"from_onnx: {where}: expected one of {', '.join(known)}, got {str(dtype)[:60]!r}"
            )


def _check_opset(opset: int | None) -> None:
    if opset is None:
        return
    if isinstance(opset, bool) or not isinstance(opset, int):
        raise IRTypeError(f"from_onnx: opset: expected an integer, got {opset!r:.60}")
    newest = need_onnx().defs.onnx_opset_version()
    if not 1 <= opset <= newest:
        raise OnnxModelError(f"from_onnx: opset: expected 1 to {newest}, got {opset}")


def check_input_names(graph: GraphProto, named: Iterable[str], option: str) -> None:
    """Raise OnnxModelError for names that are no inputs of the graph."""
    inputs = [item.name for item in graph.input]
    known = {*inputs, *[item.name for item in graph.initializer]}
    unknown = [name for name in named if name not in known]
    if unknown:
        shown = ", ".join(map(repr, inputs[:8])) + (" ..." if inputs[8:] else "")
        raise OnnxModelError(
            f"from_onnx: {option}: the model has no input {unknown[0]!r}; it has {shown or 'none'}"
        )


def check_initializers(
    graph: GraphProto, shapes: Mapping[str, GivenShape], dtypes: str | Mapping[str, str]
) -> None:
    """Raise OnnxModelError where options say of an initializer what its data contradict."""
    by_name = dtypes if isinstance(dtypes, Mapping) else {}
    for item in graph.initializer:
        shape = list(item.dims)
        given = list(shapes.get(item.name, shape))
        if len(given) != len(shape) or any(
            hasattr(a, "__index__") and int(a) != b for a, b in zip(given, shape, strict=False)
        ):
            raise _contradiction("shape_dict", item.name, tuple(given), tuple(shape))
        dtype = STORAGE.get(item.data_type)
        wanted = str(by_name.get(item.name, dtype))
        if wanted != str(dtype):
            raise _contradiction("dtype_dict", item.name, wanted, dtype)


def _contradiction(option: str, name: str, given: object, actual: object) -> OnnxModelError:
    return OnnxModelError(
        f"from_onnx: {option}[{name!r}]: {given} is said of an initializer, whose data are {actual}"
    )
