"""Engines that ``weft bench`` times, each in a process of its own (``python -m weft.cli.engines``).

The parent writes one JSON object a line: first the model and how to run it, then ``{"run": n}`` as
often as it likes. The child answers each with one line: what it is, or the seconds of n calls. So
the engines take turns on the same cores, and no thread pool of one spins beside another.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

import weft
from weft.cli.errors import error_text
from weft.cli.models import find_model

Call = Callable[[], Any]


def _torch_setup(told: Mapping[str, Any]) -> tuple[Any, Any, list[Any]]:
    """torch, the model, and its inputs as tensors."""
    torch = importlib.import_module("torch")
    torch.set_num_threads(told["threads"])
    inputs = [torch.from_numpy(value) for value in _arrays(told)]
    if told["kind"] == "pt2":
        return torch, torch.export.load(told["model"]).module(), inputs
    return torch, find_model(told["model"]), inputs


def torch_eager(told: Mapping[str, Any]) -> Call:
    """PyTorch as it is."""
    torch, model, inputs = _torch_setup(told)
    return _without_gradients(torch, model, inputs)


def torch_compile(told: Mapping[str, Any]) -> Call:
    """torch.compile with its default backend."""
    torch, model, inputs = _torch_setup(told)
    return _without_gradients(torch, torch.compile(model), inputs)


def _without_gradients(torch: Any, model: Any, inputs: list[Any]) -> Call:
    def call() -> Any:
        with torch.no_grad():
            return model(*inputs)

    return call


def weft_engine(told: Mapping[str, Any]) -> Call:
    """weft: a .weft file as it is, any other model compiled now."""
    inputs = _arrays(told)
    if told["kind"] == "weft":
        model = weft.load(told["model"], num_threads=told["threads"])
    else:
        torch_inputs = told["kind"] in ("torch", "pt2")
        if torch_inputs:
            _, source, examples = _torch_setup(told)
            if told["kind"] == "pt2":
                source = Path(told["model"])
            model = weft.compile(source, tuple(examples), num_threads=told["threads"])
            inputs = examples
        else:
            model = weft.compile(
                Path(told["model"]), told["shapes"] or None, num_threads=told["threads"]
            )
    return lambda: model(*inputs)


def onnxruntime_engine(told: Mapping[str, Any]) -> Call:
    """ONNX Runtime on the CPU; a model from PyTorch goes through torch.onnx."""
    onnxruntime = importlib.import_module("onnxruntime")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = told["threads"]
    options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        _onnx_of(told), options, providers=["CPUExecutionProvider"]
    )
    names = [value.name for value in session.get_inputs()]
    feed = dict(zip(names, _arrays(told), strict=True))
    return lambda: session.run(None, feed)


def openvino_engine(told: Mapping[str, Any]) -> Call:
    """OpenVINO on the CPU, tuned for latency."""
    openvino = importlib.import_module("openvino")
    core = openvino.Core()
    hints = {"INFERENCE_NUM_THREADS": told["threads"], "PERFORMANCE_HINT": "LATENCY"}
    compiled = core.compile_model(core.read_model(_onnx_of(told)), "CPU", hints)
    request, inputs = compiled.create_infer_request(), _arrays(told)
    return lambda: request.infer(inputs)


ENGINES: Final[dict[str, tuple[Callable[[Mapping[str, Any]], Call], str, tuple[str, ...]]]] = {
    "weft": (weft_engine, "weft", ("torch", "pt2", "onnx", "weft")),
    "torch eager": (torch_eager, "torch", ("torch", "pt2")),
    "torch.compile": (torch_compile, "torch", ("torch", "pt2")),
    "ONNX Runtime": (onnxruntime_engine, "onnxruntime", ("torch", "pt2", "onnx")),
    "OpenVINO": (openvino_engine, "openvino", ("torch", "pt2", "onnx")),
}
"""Name -> how it is set up, the package that it needs, the kinds of models that it takes."""


def _arrays(told: Mapping[str, Any]) -> list[Any]:
    """The inputs, the same in every engine."""
    with np.load(told["inputs"]) as stored:
        return [stored[f"x{i}"] for i in range(len(stored.files))]


def _onnx_of(told: Mapping[str, Any]) -> str:
    """The path of the model as ONNX; PyTorch's is exported once, by the first engine that asks."""
    if told["kind"] == "onnx":
        return str(told["model"])
    path = Path(told["folder"]) / "model.onnx"
    if not path.exists():
        torch, model, inputs = _torch_setup(told)
        if told["kind"] == "pt2":
            model = _unattached(torch, model)
        torch.onnx.export(model, tuple(inputs), str(path), dynamo=False)
    return str(path)


def _unattached(torch: Any, program: Any) -> Any:
    """A module that calls an exported program: torch.onnx sets modes, which a program refuses."""
    program.requires_grad_(False)  # weights become constants, which need no gradients

    class Unattached(torch.nn.Module):
        def forward(self, *args: Any) -> Any:
            return program(*args)

    return Unattached()


def serve() -> None:
    """Set one engine up, then answer requests until the parent closes the pipe."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a library prints must not stand between the answers
    told = json.loads(sys.stdin.readline())
    try:
        start = time.perf_counter()
        call = ENGINES[told["engine"]][0](told)
        call()
        _answer(answers, {"ready": time.perf_counter() - start})
    except Exception as error:  # noqa: BLE001 - whatever a library raises is this engine's answer
        text = " ".join(error_text(error).split())  # one row of a table
        _answer(answers, {"error": f"{type(error).__name__}: {text[:200]}"})
        return
    for line in sys.stdin:
        number = json.loads(line)["run"]
        start = time.perf_counter()
        for _ in range(number):
            call()
        _answer(answers, {"seconds": time.perf_counter() - start})


def _answer(answers: Any, answer: Mapping[str, Any]) -> None:
    with contextlib.suppress(BrokenPipeError):
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    serve()
