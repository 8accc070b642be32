"""Models from ONNX for ``weft.compile``: a ModelProto, or the path of a file.

Example inputs are optional, for models that leave shapes open: a dict from input names to arrays,
or to shapes, which may contain names of symbols. The compiled model takes its inputs by position or
by their names in the file, and returns its output, or a tuple if there are several.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from weft.driver.sources import Imported, Request
from weft.relax.frontend.onnx import importer
from weft.relax.frontend.onnx.checks import check_options
from weft.relax.frontend.onnx.model import load_model
from weft.relax.frontend.onnx.parameters import GivenShape
from weft.relax.frontend.onnx.protos import ModelProto
from weft.runtime.model.signature import Signature
from weft.runtime.ndarray import NDArray
from weft.support.errors import IRTypeError, IRValueError

_OPTIONS: Final = frozenset({"custom_converters", "dtype_dict", "opset", "shape_dict"})


def import_onnx(request: Request) -> Imported:
    """Import an ONNX model for ``weft.compile``; raises OnnxModelError for an invalid one."""
    unknown = set(request.options) - _OPTIONS
    if unknown:
        raise IRTypeError(
            f"compile: a model from ONNX takes no option {', '.join(map(repr, sorted(unknown)))}; "
            f"there are {', '.join(sorted(_OPTIONS))}"
        )
    model = request.intermediate.pop("model", None) or load_model(request.model)
    inputs = _inputs(model)
    options = dict(request.options)
    check_options(
        options.get("shape_dict"), options.get("dtype_dict") or "float32", options.get("opset"),
        options.get("custom_converters"),
    )  # fmt: skip
    shapes, dtypes = _described(request, inputs)
    shapes.update(options.pop("shape_dict", None) or {})
    dtype_dict = options.pop("dtype_dict", None) or dtypes or "float32"
    imported = importer.import_model(
        model,
        importer.Request(
            shapes=shapes, dtypes=dtype_dict,
            custom=dict(options.pop("custom_converters", None) or {}),
        ),
        options.pop("opset", None),
    )  # fmt: skip
    name = Path(request.model).stem if isinstance(request.model, str | Path) else ""
    signature = Signature.plain(name or model.graph.name or "main", imported.inputs)
    return Imported(imported.mod, signature)


def _inputs(model: ModelProto) -> list[str]:
    """The names of the inputs of a call. (Older models list initialisers among their inputs.)"""
    initialized = {item.name for item in model.graph.initializer}
    return [info.name for info in model.graph.input if info.name not in initialized]


def _described(
    request: Request, inputs: Sequence[str]
) -> tuple[dict[str, GivenShape], dict[str, str]]:
    """(input -> shape, input -> data type), from the example inputs."""
    examples = dict(zip(inputs, request.args, strict=False))
    if len(request.args) > len(inputs):
        raise IRValueError(
            f"compile: the model has the inputs {', '.join(inputs)}; got {len(request.args)} "
            "example inputs"
        )
    examples.update(request.kwargs)
    unknown = [name for name in examples if name not in inputs]
    if unknown:
        raise IRValueError(
            f"compile: the model has no input {', '.join(map(repr, unknown))}; its inputs are "
            f"{', '.join(inputs)}"
        )
    shapes: dict[str, GivenShape] = {}
    dtypes: dict[str, str] = {}
    for name, value in examples.items():
        if isinstance(value, list | tuple) and all(isinstance(x, int | str) for x in value):
            shapes[name] = value
        else:
            shapes[name], dtypes[name] = _of_array(name, value)
    _make_dynamic(shapes, request.dynamic_shapes)
    return shapes, dtypes


def _of_array(name: str, value: Any) -> tuple[list[int | str], str]:
    if isinstance(value, NDArray) or hasattr(value, "__dlpack__"):
        return list(value.shape), str(value.dtype).removeprefix("torch.")
    if isinstance(value, np.generic | int | float):
        return [], str(np.asarray(value).dtype)
    raise IRTypeError(
        f"compile: example input {name!r}: expected an array or a shape, got {type(value).__name__}"
    )


def _make_dynamic(shapes: dict[str, GivenShape], dynamic: object) -> None:
    """Put symbols into shapes at the axes in ``dynamic_shapes``, ``{input: {axis: name}}``."""
    if dynamic is None:
        return
    if not isinstance(dynamic, Mapping) or not all(name in shapes for name in dynamic):
        raise IRValueError(
            "compile: dynamic_shapes of a model from ONNX is {input: {axis: name}} for inputs that "
            f"have an example, got {dynamic!r:.80}"
        )
    for name, axes in dynamic.items():
        extents = list(shapes[name])
        if axes is not None and not isinstance(axes, Mapping):
            raise IRValueError(
                f"compile: dynamic_shapes: expected {{axis: name}} for input {name!r}, got "
                f"{type(axes).__name__}"
            )
        for axis, symbol in (axes or {}).items():
            if not isinstance(axis, int) or not -len(extents) <= axis < len(extents):
                raise IRValueError(
                    f"compile: dynamic_shapes: input {name!r} has {len(extents)} dimensions, there "
                    f"is no axis {axis!r}"
                )
            if symbol is not None:
                extents[axis] = getattr(symbol, "__name__", str(symbol))
        shapes[name] = extents


def key_of_onnx(request: Request) -> bytes | None:
    """Bytes that identify a model and its example inputs, for the cache of models.

    None for a model of 2 GiB or more, which protobuf cannot serialize. The model is kept in the
    request, so that it is read only once.
    """
    model = request.intermediate["model"] = load_model(request.model)
    described = _described(request, _inputs(model))
    name = Path(request.model).stem if isinstance(request.model, str | Path) else ""
    digest = hashlib.blake2b(repr((name, described)).encode(), digest_size=20)
    try:
        digest.update(model.SerializeToString(deterministic=True))
    except Exception:  # noqa: BLE001 - each version of protobuf has an error of its own for this
        return None
    return digest.digest()
