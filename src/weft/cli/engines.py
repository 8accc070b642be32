"""Engines that ``weft bench`` times, each in a process of its own (``python -m weft.cli.engines``).

The parent writes requests to the child, one JSON object per line, and the child answers each with
one line. The first request names a model and says how to run it; the answer is how long that took
to be ready. ``{"run": n}`` is answered with the seconds of n calls, ``{"output": file}`` stores the
arrays that a call returns, and ``{"profile": true}`` is answered with a table of the kernels. Then
another model may follow. With one process per engine, engines can take turns on the same cores
without the thread pool of one disturbing another. ``benchmarks/`` uses the same processes.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import json
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, Final, TypedDict

import numpy as np

import weft
from weft.cli.errors import error_text
from weft.cli.models import find_model
from weft.runtime.model.compiled_model import CompiledModel
from weft.runtime.model.values import to_torch
from weft.runtime.timing import seconds_of_calls
from weft.support.dtype import DataType
from weft.support.errors import UnsupportedError


class Request(TypedDict, total=False):
    """A request: set up an engine with a model, or do something with that model."""

    engine: str
    """The name of the engine to set up."""
    model: str
    """The path of the model, or ``module:name``."""
    kind: str
    """The suffix of the path without its dot, or ``torch``."""
    inputs: str
    """The path of the .npz file with the inputs ``x0``, ``x1`` ..."""
    shapes: dict[str, list[object]]
    dtypes: list[str]
    threads: int
    folder: str
    """The folder in which engines keep files."""
    run: int
    """How many calls to time."""
    output: str
    """The path of the .npz file for the results."""
    profile: bool


Call = Callable[[], object]
Setup = Callable[[Request], Call]


def _torch_setup(request: Request) -> tuple[ModuleType, Any, list[object]]:
    """(torch, the model, its inputs as tensors)"""
    torch = importlib.import_module("torch")
    torch.set_num_threads(request["threads"])
    inputs = [to_torch(weft.nd.array(value)) for value in example_arrays(request)]
    if request["kind"] == "pt2":
        return torch, torch.export.load(request["model"]).module(), inputs
    return torch, find_model(request["model"]), inputs


def torch_eager(request: Request) -> Call:
    """PyTorch in eager mode."""
    torch, model, inputs = _torch_setup(request)
    return _without_gradients(torch, model, inputs)


def torch_compile(request: Request) -> Call:
    """torch.compile with its default backend."""
    torch, model, inputs = _torch_setup(request)
    torch._dynamo.reset()  # without this, torch stops compiling the same code after a few models
    return _without_gradients(torch, torch.compile(model), inputs)


def _without_gradients(
    torch: ModuleType, model: Callable[..., object], inputs: list[object]
) -> Call:
    def call() -> object:
        with torch.no_grad():
            return model(*inputs)

    return call


def weft_engine(request: Request) -> Call:
    """weft: loads a .weft file, or compiles any other model."""
    inputs: Sequence[object] = example_arrays(request)
    if request["kind"] == "weft":
        model = weft.load(request["model"], num_threads=request["threads"])
    else:
        torch_inputs = request["kind"] in ("torch", "pt2")
        if torch_inputs:
            _, source, examples = _torch_setup(request)
            if request["kind"] == "pt2":
                source = Path(request["model"])
            model = weft.compile(source, tuple(examples), num_threads=request["threads"])
            inputs = examples
        else:
            model = weft.compile(
                Path(request["model"]), request["shapes"] or None, num_threads=request["threads"]
            )
    return functools.partial(model, *inputs)


def onnxruntime_engine(request: Request) -> Call:
    """ONNX Runtime on the CPU; a model from PyTorch goes through torch.onnx."""
    onnxruntime = importlib.import_module("onnxruntime")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = request["threads"]
    options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        _onnx_of(request), options, providers=["CPUExecutionProvider"]
    )
    names = [value.name for value in session.get_inputs()]
    feed = dict(zip(names, example_arrays(request), strict=True))
    return lambda: session.run(None, feed)


def openvino_engine(request: Request) -> Call:
    """OpenVINO on the CPU, tuned for latency, in float32 (with AMX it would choose bfloat16)."""
    openvino = importlib.import_module("openvino")
    core = openvino.Core()
    hints = {
        "INFERENCE_NUM_THREADS": request["threads"],
        "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_PRECISION_HINT": "f32",
    }
    compiled = core.compile_model(core.read_model(_onnx_of(request)), "CPU", hints)
    infer_request, inputs = compiled.create_infer_request(), example_arrays(request)
    # Without copies of inputs and outputs, since the other engines make none.
    return lambda: infer_request.infer(inputs, share_inputs=True, share_outputs=True)


def tvm_engine(request: Request) -> Call:
    """TVM with its default pipeline, for this machine's processor."""
    os.environ["TVM_NUM_THREADS"] = str(request["threads"])
    tvm = importlib.import_module("tvm")
    relax = importlib.import_module("tvm.relax")
    frontend = importlib.import_module("tvm.relax.frontend.torch")
    torch, model, inputs = _torch_setup(request)
    with torch.no_grad():
        program = (
            torch.export.load(request["model"])
            if request["kind"] == "pt2"
            else torch.export.export(model, tuple(inputs))
        )
        module = frontend.from_exported_program(program)
    executable = tvm.compile(module, target=tvm.target.Target.from_device("cpu"))
    machine = relax.VirtualMachine(executable, tvm.cpu())
    arrays = [tvm.runtime.tensor(value) for value in example_arrays(request)]
    return functools.partial(machine["main"], *arrays)


ENGINES: Final[dict[str, tuple[Setup, str, tuple[str, ...]]]] = {
    "weft": (weft_engine, "weft", ("torch", "pt2", "onnx", "weft")),
    "torch eager": (torch_eager, "torch", ("torch", "pt2")),
    "torch.compile": (torch_compile, "torch", ("torch", "pt2")),
    "ONNX Runtime": (onnxruntime_engine, "onnxruntime", ("torch", "pt2", "onnx")),
    "OpenVINO": (openvino_engine, "openvino", ("torch", "pt2", "onnx")),
    "TVM": (tvm_engine, "tvm", ("torch", "pt2")),
}
"""Name -> (how it is set up, the package that it needs, the kinds of models that it takes)."""


def example_arrays(request: Request) -> list[np.ndarray]:
    """The inputs, which are the same for every engine."""
    with np.load(request["inputs"]) as stored:
        return [
            stored[f"x{i}"].view(DataType(dtype).numpy) for i, dtype in enumerate(request["dtypes"])
        ]


def _onnx_of(request: Request) -> str:
    """The path of the model as ONNX; a PyTorch model is exported by the first engine that asks."""
    if request["kind"] == "onnx":
        return str(request["model"])
    path = Path(request["folder"]) / "model.onnx"
    if not path.exists():
        torch, model, inputs = _torch_setup(request)
        if request["kind"] == "pt2":
            model = _unattached(torch, model)
        torch.onnx.export(model, tuple(inputs), str(path), dynamo=False)
    return str(path)


def _unattached(torch: Any, program: Any) -> Callable[..., object]:
    """A module that calls an exported program, since torch.onnx sets modes that programs refuse."""
    program.requires_grad_(False)  # weights become constants, which need no gradients

    class Unattached(torch.nn.Module):
        def forward(self, *args: object) -> object:
            return program(*args)

    return Unattached()


class Server:
    """Answers one request after the other in the child: loads a model, runs it, profiles it."""

    def __init__(self, setups: Mapping[str, Setup]) -> None:
        self._setups = setups
        self._call: Call | None = None

    def __call__(self, request: Request) -> dict[str, object]:
        """The answer to one request."""
        if "engine" in request:
            self._call = None  # free the previous model first
            start = time.perf_counter()
            self._call = self._setups[request["engine"]](request)
            self._call()
            return {"ready": time.perf_counter() - start}
        assert self._call is not None, "the first request names a model"
        if "run" in request:
            return {"seconds": seconds_of_calls(self._call, (), request["run"])}
        if "output" in request:
            np.savez(request["output"], *result_arrays(self._call()))
            return {}
        return {"profile": _profile(self._call)}


def _profile(call: Call) -> str:
    """A table of the time that each kernel of a weft model takes."""
    model = getattr(call, "func", None)
    if not isinstance(call, functools.partial) or not isinstance(model, CompiledModel):
        raise UnsupportedError("only weft's own models tell what each kernel takes")
    return model.profile(*call.args).table()


def result_arrays(value: Any) -> list[np.ndarray]:
    """The arrays in the result of an engine, in order, as numpy arrays.

    >>> result_arrays({"a": np.zeros(2), "b": [np.ones((1, 3))]})
    [array([0., 0.]), array([[1., 1., 1.]])]
    """
    if isinstance(value, np.ndarray):
        return [value]
    if hasattr(value, "numpy"):
        return [value.numpy()]
    items = value.values() if isinstance(value, Mapping) or hasattr(value, "values") else value
    return [array for item in items for array in result_arrays(item)]


def answer_requests(answer: Callable[[Request], Mapping[str, object]]) -> None:
    """Answer each line of standard input by a line of JSON, until the parent closes the pipe."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a library prints must not get between the answers
    for line in sys.stdin:
        try:
            reply = answer(json.loads(line))
        except Exception as error:  # noqa: BLE001 - what a library raises is the engine's answer
            text = " ".join(error_text(error).split())  # one line, for one row of the table
            reply = {"error": f"{type(error).__name__}: {text[:200]}"}
        with contextlib.suppress(BrokenPipeError):
            answers.write(json.dumps(reply) + "\n")
            answers.flush()


if __name__ == "__main__":
    answer_requests(Server({name: setup for name, (setup, _, _) in ENGINES.items()}))
