"""Runs a model in ONNX's reference implementation, with every intermediate tensor.

The reference implementation computes BatchNormalization before opset 14 as in training; models with
this operator run in ONNX Runtime instead, if it is installed.
"""

from __future__ import annotations

import copy
import importlib
import importlib.util
from collections.abc import Callable, Mapping

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
    imported = from_onnx(model, subject.examples or {})  # first: its errors are the clearest
    inputs = _inputs(model, subject)
    names = [name for node in model.graph.node for name in node.output if name]
    opened = _with_outputs(model, names)
    judge, run = _judge_of(model)
    try:
        expected = dict(zip(names, run(opened, names, inputs), strict=True))
    except Exception as error:  # numpy and the reference raise errors of any class
        raise UnsupportedError(
            f"{subject.name}: {judge} cannot run it "
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


def _judge_of(
    model: onnx.ModelProto,
) -> tuple[str, Callable[[onnx.ModelProto, list[str], Mapping[str, np.ndarray]], list[np.ndarray]]]:
    """What computes the expected tensors of a model: (its name, the function that runs it)."""
    opset = min([item.version for item in model.opset_import if not item.domain], default=1)
    if opset < 14 and any(node.op_type == "BatchNormalization" for node in model.graph.node):
        if importlib.util.find_spec("onnxruntime") is not None:
            return "ONNX Runtime", _in_onnxruntime
        print(
            "BatchNormalization before opset 14: ONNX's reference implementation computes it with "
            "the statistics\nof the batch, so that it and what follows differ; install onnxruntime "
            "to compare with that"
        )
    return "ONNX's reference implementation", _in_reference


def _in_reference(
    model: onnx.ModelProto, names: list[str], inputs: Mapping[str, np.ndarray]
) -> list[np.ndarray]:
    return list(ReferenceEvaluator(model).run(names, inputs))


def _in_onnxruntime(
    model: onnx.ModelProto, names: list[str], inputs: Mapping[str, np.ndarray]
) -> list[np.ndarray]:
    """The tensors that ONNX Runtime computes, without fusing or removing any nodes."""
    onnxruntime = importlib.import_module("onnxruntime")
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return list(session.run(names, inputs))


def _with_outputs(model: onnx.ModelProto, names: list[str]) -> onnx.ModelProto:
    copied = copy.deepcopy(model)
    del copied.graph.output[:]
    copied.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names)
    return copied


def _inputs(model: onnx.ModelProto, subject: Subject) -> dict[str, np.ndarray]:
    rng, sizes = np.random.default_rng(subject.seed), Sizes(subject.sizes)
    examples = subject.examples or {}
    for symbol in sorted(alone_in(model.graph.input, examples)):
        sizes.of(symbol)  # plain symbols first: expressions of them need their sizes
    stored = {tensor.name for tensor in model.graph.initializer}
    inputs = {}
    for value in model.graph.input:
        if value.name in stored:
            continue
        tensor = value.type.tensor_type
        dims = [
            dim.dim_value if dim.HasField("dim_value") else dim.dim_param or f"{value.name}_{axis}"
            for axis, dim in enumerate(tensor.shape.dim)
        ]
        shape = sizes.shape(examples.get(value.name, dims))
        dtype = str(onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type))
        inputs[value.name] = random_array(shape, dtype, rng)
    return inputs
