"""Nodes of a model that weft does not convert: all of them at once, and how to convert them.

What is missing is an operator (its name or its domain is unknown), or an attribute that the
converter of its operator does not take. The errors carry the text of converters to fill in.
"""

from __future__ import annotations

import inspect
import keyword
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from weft.relax.frontend.missing import (
    SHOWN,
    MissingOperator,
    UnsupportedOperatorsError,
    find_missing,
)
from weft.relax.frontend.onnx.attributes import default_attributes, node_attributes
from weft.relax.frontend.onnx.checks import first_output, sub_graphs
from weft.relax.frontend.onnx.errors import OnnxNodeError
from weft.relax.frontend.onnx.functions import Key, function_key, opset_versions
from weft.relax.frontend.onnx.protos import Attribute, Attributes, FunctionProto, NodeProto
from weft.relax.frontend.onnx.registry import (
    Converter,
    converter_names,
    first_opset,
    plain_domain,
    qualified,
)
from weft.relax.frontend.onnx.scope import Scope

HINT: Final = (
    "give a converter of each in custom_converters={'Name': function} (the error's `skeleton` has "
    'them to fill in),\nor compile with fallback="onnxruntime" to run them in ONNX Runtime, or '
    "export the model without them"
)
_NOTED: Final = 3
"""So many skeletons stand in the note of an error."""


class UnsupportedNodesError(UnsupportedOperatorsError):
    """A model has operators that nothing is known of; ``skeleton`` has converters to fill in."""

    def __init__(self, nodes: Sequence[NodeProto]) -> None:
        uses = [(operator_name(node), _place(node)) for node in nodes]
        missing = find_missing(uses, converter_names())
        super().__init__("from_onnx", map(_with_first_opset, missing), HINT)
        self.skeleton = skeleton(nodes)
        self.add_note(_shortened(nodes))


class UnsupportedAttributesError(OnnxNodeError):
    """Attributes that converters do not take; ``skeleton`` has other converters to fill in."""

    def __init__(self, where: str, refused: Sequence[tuple[NodeProto, str]]) -> None:
        nodes = [node for node, _ in refused]
        first, *others = [reason for _, reason in refused]
        lines = [f"{where}: {first}"]
        places = [f"{operator_name(node)}, {_place(node)}" for node in nodes[1:]]
        lines += [f"  {a}: {b}" for a, b in zip(places[:SHOWN], others, strict=False)]
        if len(places) > SHOWN:
            lines.append(f"  and {len(places) - SHOWN} more nodes")
        super().__init__("\n".join([*lines, HINT]))
        self.skeleton = skeleton(nodes)
        self.add_note(_shortened(nodes))


def _with_first_opset(row: MissingOperator) -> MissingOperator:
    """A model whose opset is too low for an operator was written by mistake: say so."""
    since = first_opset(row.name)
    return row if since is None else replace(row, nearest=f"{row.name} of opset {since}")


def operator_name(node: NodeProto) -> str:
    """``Softmax``, or ``com.microsoft::FastGelu``."""
    return qualified(plain_domain(node.domain), node.op_type)


def _place(node: NodeProto) -> str:
    return f"node {node.name!r}" if node.name else f"output {first_output(node)!r}"


def all_nodes(
    nodes: Iterable[NodeProto], scope: Scope, functions: Mapping[Key, FunctionProto]
) -> Iterator[tuple[NodeProto, Scope]]:
    """Every node that is translated, with the opsets that it has: those of sub-graphs too.

    A call of a function of the model is the nodes of its body.
    """
    for node in nodes:
        for graph in sub_graphs(node):
            yield from all_nodes(graph.node, scope, functions)
        function = functions.get(function_key(node))
        if function is None:
            yield node, scope
        else:
            inner = Scope(opset_versions(function.opset_import))
            yield from all_nodes(function.node, inner, functions)


def unsupported_attribute(row: Converter, defaults: Attributes, given: Attributes) -> str | None:
    """Why a converter does not take the attributes that a node gives, or None.

    ``defaults`` are the schema's; an attribute that has its default there asks for nothing.
    """
    if row.takes_all:
        return None
    for key, value in given.items():
        if key in row.attributes or key in row.ignores:
            continue
        neutral = [*row.neutral.get(key, ()), *([defaults[key]] if key in defaults else [])]
        if not any(repr(plain) == repr(value) for plain in neutral):
            takes_as_input = key in inspect.signature(row.function).parameters
            hint = f" (its converter takes {key} as an input: write a * before it)"
            return f"its attribute {key}={value!r} is not supported{hint if takes_as_input else ''}"
    return None


def refused_nodes(
    nodes: Iterable[tuple[NodeProto, Scope]], rows: Mapping[int, Converter]
) -> list[tuple[NodeProto, str]]:
    """The nodes with an attribute that their converter does not take, each with the reason.

    ``rows`` are the converters by the ``id`` of their node.
    """
    refused = []
    for node, scope in nodes:
        row = rows.get(id(node))
        if row is None:
            continue
        defaults = default_attributes(
            plain_domain(node.domain), node.op_type, scope.opset(node.domain)
        )
        reason = unsupported_attribute(row, defaults, node_attributes(node, {}))
        if reason is not None:
            refused.append((node, reason))
    return refused


# Converters to fill in


def skeleton(nodes: Iterable[NodeProto]) -> str:
    """The text of a converter for every operator among the nodes, and how they are handed in."""
    by_operator: dict[str, list[NodeProto]] = {}
    for node in nodes:
        by_operator.setdefault(operator_name(node), []).append(node)
    names = _function_names(by_operator)
    functions = [_function(name, names[name], group) for name, group in by_operator.items()]
    table = ", ".join(f"{name!r}: {names[name]}" for name in by_operator)
    return "\n\n".join(
        [
            "from weft import relax",
            *functions,
            f"custom_converters = {{{table}}}  # of weft.compile and from_onnx",
        ]
    )


def _shortened(nodes: Sequence[NodeProto]) -> str:
    kept = dict.fromkeys(operator_name(node) for node in nodes)
    first = list(kept)[:_NOTED]
    more = "" if len(kept) <= _NOTED else f"\n# {len(kept) - _NOTED} more: the error's `skeleton`"
    return skeleton([node for node in nodes if operator_name(node) in first]) + more


def _function_names(operators: Iterable[str]) -> dict[str, str]:
    """A name of a Python function for every operator: ``my_op`` of ``com.acme::MyOp``."""
    names: dict[str, str] = {}
    for operator in operators:
        words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", operator.rpartition("::")[2]).lower()
        name = re.sub(r"\W", "_", words) or "convert"
        if not name.isidentifier() or keyword.iskeyword(name):
            name = f"convert_{name}"
        while name in names.values():
            name += "_"
        names[operator] = name
    return names


def _function(operator: str, name: str, nodes: Sequence[NodeProto]) -> str:
    inputs, attributes = _inputs(nodes), _attributes(nodes)
    outputs = max(nodes, key=lambda node: len(node.output)).output
    parameters = ["context", *inputs, *(["*"] if attributes else []), *attributes]
    what = "inputs are Values (.expr, .shape, .dtype, .known), None where they are left out"
    result = "a relax expression" if len(outputs) == 1 else f"a list of {len(outputs)} expressions"
    shown = ", ".join(map(repr, outputs))
    return (
        f"def {name}({', '.join(parameters)}):\n"
        f"    # {operator}: {what}\n"
        f"    # return {result} for {shown}, such as relax.op.nn.relu(x0.expr); context.emit binds "
        "what is used twice\n"
        f"    raise NotImplementedError({operator!r})"
    )


def _inputs(nodes: Sequence[NodeProto]) -> list[str]:
    """Parameters for the inputs: those that some node leaves out have the default None."""
    fewest = min(len(node.input) for node in nodes)
    most = max(len(node.input) for node in nodes)
    return [f"x{index}" if index < fewest else f"x{index}=None" for index in range(most)]


def _attributes(nodes: Sequence[NodeProto]) -> list[str]:
    """Keywords for the attributes, with the values that the first node with each has."""
    keywords: dict[str, str] = {}
    for node in nodes:
        for key, value in node_attributes(node, {}).items():
            if key.isidentifier() and not keyword.iskeyword(key):
                keywords.setdefault(key, f"{key}={_shown(value)}")
    return [*keywords.values()]


def _shown(value: Attribute) -> str:
    """A number, a text or a short list of them as Python writes it; else None."""
    items = value if isinstance(value, list) else [value]
    is_plain = all(isinstance(item, int | float | str) for item in items)
    text = repr(value)
    return text if is_plain and len(text) <= 60 else "None"
