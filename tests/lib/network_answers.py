"""What PyTorch's exporter, ONNX Runtime and weft make of a random network.

The results are tensors in the order of the network's outputs; complex ones come from weft as real
tensors with an axis of 2 at the end.
"""

from __future__ import annotations

import importlib
import io
from typing import Any, Final

import numpy as np
import torch

from tests.lib.random_networks import Drawn
from weft.driver.compile import compile as weft_compile

FLOAT32: Final = 1
"""ONNX's number for it."""
Answers = tuple[torch.Tensor, ...]


def exported_model(drawn: Drawn, opset: int) -> bytes:
    """The network as an ONNX model, as PyTorch exports it."""
    file = io.BytesIO()
    with torch.no_grad():
        torch.onnx.export(
            drawn.network,
            drawn.arguments,
            file,
            input_names=list(drawn.network.inputs),
            output_names=[f"result_{name}" for name in drawn.network.outputs],
            opset_version=opset,
            do_constant_folding=False,
            dynamo=False,
        )
    return file.getvalue()


def casts_of_exported(exported: bytes) -> int:
    """How many casts to float32 the model has."""
    nodes = importlib.import_module("onnx").load_from_string(exported).graph.node
    casts = [node for node in nodes if node.op_type == "Cast"]
    return sum(node.attribute[0].i == FLOAT32 for node in casts)


def dtypes_of_exported(exported: bytes) -> list[torch.dtype]:
    """The types that the model declares of its outputs; ONNX Runtime loads it with no others."""
    onnx = importlib.import_module("onnx")
    kinds = [out.type.tensor_type.elem_type for out in onnx.load_from_string(exported).graph.output]
    arrays = [np.empty(0, onnx.helper.tensor_dtype_to_np_dtype(kind)) for kind in kinds]
    return [torch.from_numpy(array).dtype for array in arrays]


def _named(model: Any, drawn: Drawn) -> dict[str, Any]:
    """The arguments that the model still has: the exporter drops inputs that nothing reads."""
    there = {given.name for given in model.graph.input}
    pairs = zip(drawn.network.inputs, drawn.arguments, strict=True)
    return {name: value.numpy() for name, value in pairs if name in there}


def by_onnxruntime(exported: bytes, drawn: Drawn) -> Answers:
    """What ONNX Runtime answers."""
    runtime, onnx = importlib.import_module("onnxruntime"), importlib.import_module("onnx")
    options = runtime.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 4, 1
    session = runtime.InferenceSession(exported, options, providers=["CPUExecutionProvider"])
    named = _named(onnx.load_from_string(exported), drawn)
    return tuple(torch.from_numpy(np.array(value)) for value in session.run(None, named))


class RealViews(torch.nn.Module):
    """A network between real tensors: complex ones end in an axis of 2, as weft takes them."""

    def __init__(self, drawn: Drawn):
        super().__init__()
        self.network = drawn.network
        self.complex = tuple(value.is_complex() for value in drawn.arguments)

    def forward(self, *arguments: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """The outputs as real tensors."""
        pairs = zip(arguments, self.complex, strict=True)
        given = [torch.view_as_complex(one) if is_complex else one for one, is_complex in pairs]
        return tuple(_real(value) for value in self.network(*given))


def _real(value: torch.Tensor) -> torch.Tensor:
    return torch.view_as_real(value.resolve_conj()) if value.is_complex() else value


def by_weft(drawn: Drawn) -> Answers:
    """What weft answers, from PyTorch's network."""
    given = tuple(_real(value) for value in drawn.arguments)
    model = weft_compile(RealViews(drawn).eval(), given, cache=False)
    return _tensors(model(*given))


def by_weft_from_onnx(exported: bytes, drawn: Drawn) -> Answers:
    """What weft answers, from the ONNX model."""
    loaded = importlib.import_module("onnx").load_from_string(exported)
    return _tensors(weft_compile(loaded, cache=False)(**_named(loaded, drawn)))


def _tensors(answers: Any) -> Answers:
    several = answers if isinstance(answers, (tuple, list)) else (answers,)
    return tuple(torch.as_tensor(np.array(value) if not isinstance(value, torch.Tensor) else value)
                 for value in several)  # fmt: skip
