"""Reading a model: from memory, a file, or bytes; what must hold of it before it is translated."""

from __future__ import annotations

import os
from pathlib import Path
from types import ModuleType
from typing import Final

from weft.relax.frontend.onnx.errors import OnnxModelError, need_onnx
from weft.relax.frontend.onnx.functions import opset_versions
from weft.relax.frontend.onnx.protos import ModelProto
from weft.relax.frontend.onnx.texts import check_texts
from weft.support.files import read_regular

ORT_MARK: Final = b"ORTM"
"""What stands at byte 4 of a file in ONNX Runtime's own format, a flatbuffer."""
ORT_FORMAT: Final = """a file of ONNX Runtime's own format (.ort), which only it reads
Compile the .onnx file that it was converted from, or write one with ONNX Runtime:
  options = onnxruntime.SessionOptions()
  options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
  options.optimized_model_filepath = "model.onnx"
  options.add_session_config_entry("session.save_model_format", "ONNX")
  onnxruntime.InferenceSession("model.ort", options)"""
"""What such a file is, and how to get one that is read."""


def load_model(model: object) -> ModelProto:
    """A ModelProto from one, from a path (external data is read too), or from serialized bytes.

    Raises OnnxModelError if there is no such file, it is no ONNX model, a name in it is no text, or
    its external data is not there.
    """
    onnx = need_onnx()
    if isinstance(model, onnx.ModelProto):
        proto: ModelProto = model
        check_texts(proto)
        return proto
    if isinstance(model, bytes | bytearray):
        return _parsed(onnx, bytes(model), "the bytes")
    if isinstance(model, str | os.PathLike):
        return _read(onnx, Path(model))
    raise OnnxModelError(
        f"from_onnx: expected an onnx.ModelProto, a path or bytes, got {type(model).__name__}"
    )


def _parsed(onnx: ModuleType, data: bytes, what: str) -> ModelProto:
    if data[4:8] == ORT_MARK:
        raise OnnxModelError(f"{what}: expected an ONNX model, found {ORT_FORMAT}")
    model: ModelProto = onnx.ModelProto()
    try:
        model.ParseFromString(data)
    except Exception as error:
        raise OnnxModelError(f"{what}: expected an ONNX model, found other or cut data") from error
    if not model.ir_version or not (model.graph.node or model.graph.output):
        raise OnnxModelError(f"{what}: expected an ONNX model, found no graph in it")
    check_texts(model)
    return model


def _read(onnx: ModuleType, path: Path) -> ModelProto:
    try:
        data = read_regular(path)
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError, ValueError) as error:
        raise OnnxModelError(
            f"{_shown(path)}: expected the file of an ONNX model, found no such file"
        ) from error
    except OSError as error:
        raise OnnxModelError(
            f"{_shown(path)}: expected the file of an ONNX model, which cannot be read: "
            f"{error.strerror}"
        ) from error
    model = _parsed(onnx, data, str(path))
    try:
        onnx.load_external_data_for_model(model, str(path.parent))
    except (OSError, ValueError, onnx.checker.ValidationError) as error:
        raise OnnxModelError(
            f"{path}: its external data cannot be read: {str(error).splitlines()[0][:200]}; the "
            "data files must lie where the model names them, beside the model"
        ) from error
    return model


def _shown(path: Path) -> str:
    text = str(path)
    return text if len(text) <= 300 else f"{text[:300]}..."


def check_versions(model: ModelProto) -> None:
    """Raise OnnxModelError for a model that is too old, or newer than the installed onnx."""
    onnx = need_onnx()
    if model.ir_version < 3:
        raise OnnxModelError(
            f"from_onnx: expected a model of IR version 3 or later (ONNX 1.1), found version "
            f"{model.ir_version}; save it again with a newer exporter"
        )
    if model.ir_version > onnx.IR_VERSION:
        raise OnnxModelError(
            f"from_onnx: the model is of IR version {model.ir_version}, the installed onnx "
            f"{onnx.__version__} knows versions up to {onnx.IR_VERSION}; install a newer onnx"
        )
    newest = {"": onnx.defs.onnx_opset_version(), "ai.onnx.ml": onnx.defs.onnx_ml_opset_version()}
    for domain, opset in {"": 1, **opset_versions(model.opset_import)}.items():
        if domain in newest:
            _check_opset(f"opset {opset} of {domain}".removesuffix(" of "), opset, newest[domain])


def _check_opset(named: str, opset: int, newest: int) -> None:
    """``named`` is the version and the set of operators, for a message."""
    if opset < 1:
        raise OnnxModelError(
            f"from_onnx: expected opset 1 to {newest}, found {named}; save the model again with "
            "the opset that its operators are of"
        )
    if opset > newest:
        raise OnnxModelError(
            f"from_onnx: the model uses {named}, the installed onnx {need_onnx().__version__} "
            f"knows opsets up to {newest}; install a newer onnx, or export for an older opset"
        )
