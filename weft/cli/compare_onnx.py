"""A model's run in ONNX's reference implementation, with every tensor on the way."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator

from weft.cli.arguments import Sizes, random_array
from weft.cli.compare import Trace
from weft.cli.models import Subject
from weft.relax.frontend.onnx import from_onnx


def trace_of(subject: Subject) -> Trace:
    """The trace of an ONNX file on random inputs of its shapes."""
    model = onnx.load(subject.model)
    inputs = _inputs(model, subject)
    names = [name for node in model.graph.node for name in node.output if name]
    opened = copy.deepcopy(model)
    del opened.graph.output[:]
    opened.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names)
    evaluator = ReferenceEvaluator(opened)
    expected = dict(zip(names, evaluator.run(names, inputs), strict=True))
    kept = [name for name in names if isinstance(expected[name], np.ndarray)]
    shapes = subject.examples or {}
    return Trace(
        [(f"{name} = {_operator(model, name)}", "") for name in kept],
        [expected[name] for name in kept],
        from_onnx(_with_outputs(opened, kept), shapes),
        from_onnx(model, shapes),
        [expected[value.name] for value in model.graph.output],
        list(inputs.values()),
    )


def _with_outputs(model: Any, names: list[str]) -> Any:
    made = copy.deepcopy(model)
    del made.graph.output[:]
    made.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names)
    return made


def _operator(model: Any, name: str) -> str:
    node = next(node for node in model.graph.node if name in node.output)
    return f"{node.op_type} {node.name}".strip()


def _inputs(model: Any, subject: Subject) -> dict[str, Any]:
    rng, sizes = np.random.default_rng(0), Sizes()
    given = subject.examples or {}
    stored = {tensor.name for tensor in model.graph.initializer}
    found = {}
    for value in model.graph.input:
        if value.name in stored:
            continue
        tensor = value.type.tensor_type
        dims = [d.dim_param or d.dim_value for d in tensor.shape.dim]
        shape = sizes.shape(given.get(value.name, dims))
        dtype = str(onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type))
        found[value.name] = random_array(shape, dtype, rng)
    return found
