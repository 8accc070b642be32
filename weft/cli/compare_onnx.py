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
from weft.relax.frontend.onnx.model import load_model
from weft.relax.frontend.onnx.parameters import alone_in
from weft.support.errors import UnsupportedError


def trace_of(subject: Subject) -> Trace:
    """The trace of an ONNX file on random inputs of its shapes."""
    model = load_model(subject.model)
    imported = from_onnx(model, subject.examples or {})  # says what is wrong with a model
    inputs = _inputs(model, subject)
    names = [name for node in model.graph.node for name in node.output if name]
    opened = _with_outputs(model, names)
    try:
        expected = dict(zip(names, ReferenceEvaluator(opened).run(names, inputs), strict=True))
    except Exception as error:  # whatever numpy or the reference raises of one of its operators
        raise UnsupportedError(
            f"{subject.name}: ONNX's reference implementation cannot run it "
            f"({type(error).__name__}: {str(error).splitlines()[0][:200]})"
        ) from error
    kept = [name for name in names if isinstance(expected[name], np.ndarray)]
    makers = {name: node for node in model.graph.node for name in node.output}
    return Trace(
        [(f"{name} = {makers[name].op_type} {makers[name].name}".strip(), "") for name in kept],
        [expected[name] for name in kept],
        from_onnx(_with_outputs(model, kept), subject.examples or {}),
        imported,
        [expected[value.name] for value in model.graph.output],
        list(inputs.values()),
    )


def _with_outputs(model: Any, names: list[str]) -> Any:
    made = copy.deepcopy(model)
    del made.graph.output[:]
    made.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names)
    return made


def _inputs(model: Any, subject: Subject) -> dict[str, Any]:
    rng, sizes = np.random.default_rng(subject.seed), Sizes(subject.sizes)
    given = subject.examples or {}
    for symbol in sorted(alone_in(model.graph.input, given)):
        sizes.of(symbol)  # before what is computed of it
    stored = {tensor.name for tensor in model.graph.initializer}
    found = {}
    for value in model.graph.input:
        if value.name in stored:
            continue
        tensor = value.type.tensor_type
        dims = [
            dim.dim_value if dim.HasField("dim_value") else dim.dim_param or f"{value.name}_{axis}"
            for axis, dim in enumerate(tensor.shape.dim)
        ]
        shape = sizes.shape(given.get(value.name, dims))
        dtype = str(onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type))
        found[value.name] = random_array(shape, dtype, rng)
    return found
