"""Which operators of an ONNX model have a converter, before anything is converted."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain

from weft.relax.frontend.missing import Coverage, nearest_name
from weft.relax.frontend.onnx import operators
from weft.relax.frontend.onnx.checks import sub_graphs
from weft.relax.frontend.onnx.functions import function_key, has_body, opset_versions
from weft.relax.frontend.onnx.model import load_model
from weft.relax.frontend.onnx.protos import ModelProto, NodeProto
from weft.relax.frontend.onnx.registry import (
    converter_names,
    find_converter,
    plain_domain,
    qualified,
)
from weft.support import plugins

operators.load()


def operator_coverage(model: ModelProto | str | os.PathLike[str] | bytes) -> list[Coverage]:
    """The operators of a ModelProto or file, the most frequent first, then those that it lacks.

    ``decomposed`` are those that ONNX, or the model itself, defines by other operators.
    """
    proto = load_model(model)
    plugins.load_group(plugins.CONVERTERS, "onnx")
    functions = {function_key(item): item for item in proto.functions}
    counts: Counter[tuple[str, str]] = Counter()
    groups = [proto.graph.node, *[function.node for function in proto.functions]]
    imports = [proto.opset_import, *[function.opset_import for function in proto.functions]]
    opsets = [opset_versions(versions) for versions in imports]
    every = chain.from_iterable(map(_nodes, groups, opsets))
    for node, versions in every:
        domain = plain_domain(node.domain)
        opset = versions.get(domain, 1)
        if function_key(node) in functions:
            status = "decomposed"
        elif find_converter(domain, node.op_type, opset) is not None:
            status = "converter"
        elif has_body(domain, node.op_type, opset):
            status = "decomposed"
        else:
            status = "missing"
        counts[qualified(domain, node.op_type), status] += 1
    known = list(converter_names())
    rows = [
        Coverage(name, count, status, nearest_name(name, known) if status == "missing" else "")
        for (name, status), count in counts.most_common()
    ]
    return sorted(rows, key=lambda row: row.status == "missing")


def _nodes(
    nodes: Iterable[NodeProto], versions: Mapping[str, int]
) -> Iterator[tuple[NodeProto, Mapping[str, int]]]:
    """Every node, those of sub-graphs too, with its opsets."""
    for node in nodes:
        yield node, versions
        for graph in sub_graphs(node):
            yield from _nodes(graph.node, versions)
