"""Single nodes of ONNX models that run in ONNX Runtime: programs call them by one name.

A program that was compiled with ``fallback="onnxruntime"`` has such calls. Their first argument is
a text that holds the node as an ONNX model of its own, so that the program can be printed, saved
and run in another process that has ONNX Runtime. Importing the module registers the function; the
virtual machine does.
"""

from __future__ import annotations

import base64
import functools
import json
from typing import Any, Final

import numpy as np

from weft.runtime.ndarray import NDArray
from weft.runtime.providers import RUN_NODE
from weft.runtime.registry import register_func
from weft.runtime.threads.parallel import num_threads
from weft.support.errors import RuntimeFault, UnsupportedError

ERRORS_ONLY: Final = 3
"""ONNX Runtime's level of messages at which warnings are not printed."""


def describe_node(operator: str, model: bytes) -> str:
    """The text of a call: the operator's name for messages, the model of its one node."""
    return json.dumps({"operator": operator, "model": base64.b64encode(model).decode("ascii")})


def open_session(model: bytes) -> Any:
    """An InferenceSession of a serialized model on as many threads as weft has.

    Raises UnsupportedError where ONNX Runtime is not installed, or cannot take the model.
    """
    try:
        import onnxruntime  # noqa: PLC0415 - an optional package, imported where it is used
    except ImportError as error:
        raise UnsupportedError(
            'fallback="onnxruntime": the package onnxruntime is not installed; install it with '
            "`pip install onnxruntime`"
        ) from error
    options = onnxruntime.SessionOptions()
    options.log_severity_level = ERRORS_ONLY
    options.intra_op_num_threads = num_threads()
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")  # weft computes then
    try:
        return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    except Exception as error:
        raise UnsupportedError(f"ONNX Runtime cannot take it: {_first_line(error)}") from error


@functools.lru_cache(maxsize=256)
def _session(description: str) -> tuple[str, Any]:
    """(operator, session) of a text that ``describe_node`` wrote."""
    node = json.loads(description)
    return node["operator"], open_session(base64.b64decode(node["model"]))


def _results(description: str, arrays: tuple[NDArray, ...]) -> list[np.ndarray]:
    operator, session = _session(description)
    names = [item.name for item in session.get_inputs()]
    given = {name: np.asarray(array) for name, array in zip(names, arrays, strict=False)}
    try:
        results: list[np.ndarray] = session.run(None, given)
    except Exception as error:
        raise RuntimeFault(f"{operator} in ONNX Runtime: {_first_line(error)}") from error
    return results


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:200]


@register_func(RUN_NODE, override=True)
def run_node(description: str, *arrays: NDArray) -> NDArray | tuple[NDArray, ...]:
    """Run a node on its inputs: its result, or a tuple of several."""
    results = [NDArray(np.array(item, order="C")) for item in _results(description, arrays)]
    return results[0] if len(results) == 1 else tuple(results)
