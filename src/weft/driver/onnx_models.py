"""Models from ONNX for ``weft.compile``: a ModelProto, or the path of a file.

Example inputs are optional, for models that leave shapes open: a dict from input names to arrays,
or to shapes, which may contain names of symbols. ``constants={"sr": 16000}`` fixes inputs, which
the compiled model does not have. It takes its inputs by position or by their names in the file, and
returns its output, or a tuple if there are several.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from weft.driver.onnx_dynamic import apply_dynamic_shapes, ranges_of
from weft.driver.sources import Imported, Request
from weft.relax.frontend.onnx import importer
from weft.relax.frontend.onnx.checks import check_options
from weft.relax.frontend.onnx.model import load_model
from weft.relax.frontend.onnx.parameters import (
    GivenShape,
    Symbols,
    declared_shape,
    input_dtype,
    is_optional_tensor,
    tensor_type,
)
from weft.relax.frontend.onnx.protos import ModelProto, ValueInfoProto
from weft.relax.frontend.onnx.value import Array, GraphValue, MapValue, TextTable, TextValue
from weft.runtime.model.signature import Signature, Tree
from weft.runtime.ndarray import NDArray
from weft.support.dtype import DataType
from weft.support.errors import IRTypeError, IRValueError, wrong_type

_OPTIONS: Final = frozenset(
    {"constants", "custom_converters", "dtype_dict", "fallback", "opset", "shape_dict"}
)


def import_onnx(request: Request) -> Imported:
    """Import an ONNX model for ``weft.compile``; raises OnnxModelError for an invalid one."""
    request.check_options("a model from ONNX", _OPTIONS)
    model = request.intermediate.pop("model", None) or load_model(request.model)
    options = dict(request.options)
    bound = bound_inputs(model, options.pop("constants", None) or {})
    inputs = [name for name in _inputs(model) if name not in bound]
    check_options(
        options.get("shape_dict"),
        options.get("dtype_dict") or "float32",
        options.get("opset"),
        options.get("custom_converters"),
    )
    shapes, dtypes = _described(request, inputs, model, options.pop("shape_dict", None) or {})
    dtype_dict = options.pop("dtype_dict", None) or dtypes or "float32"
    imported = importer.import_model(
        model,
        importer.Request(
            shapes=shapes,
            dtypes=dtype_dict,
            custom=dict(options.pop("custom_converters", None) or {}),
            fallback=options.pop("fallback", None),
            bound=bound,
        ),
        options.pop("opset", None),
    )
    name = Path(request.model).stem if isinstance(request.model, str | Path) else ""
    signature = Signature.plain(
        name or model.graph.name or "main", imported.inputs,
        ranges=ranges_of(request.dynamic_shapes), source="onnx", texts=_texts(imported),
        **_structured(imported.outputs),
    )  # fmt: skip
    return Imported(imported.mod, signature)


def _texts(imported: importer.Imported) -> tuple[tuple[int, tuple[int | str, ...]], ...]:
    """The inputs that are text: their places, and their extents."""
    places = {name: place for place, name in enumerate(imported.inputs)}
    return tuple([(places[name], tuple(dims)) for name, dims in imported.texts.items()])


def _structured(outputs: Sequence[GraphValue]) -> dict[str, Any]:
    """What the signature says of results that are texts or dicts; nothing where none is."""
    if not any(isinstance(item, TextValue | MapValue) for item in outputs):
        return {}
    trees = [_result_tree(item, index) for index, item in enumerate(outputs)]
    if len(trees) == 1:
        return {"result": trees[0]}
    return {"result": ("tuple", tuple(trees)), "unpacked": True}


def _result_tree(value: GraphValue, index: int) -> Tree:
    leaf = (("leaf", index),)
    if isinstance(value, TextValue) and not isinstance(value.texts, TextTable):
        return ("texts", value.texts, leaf)
    return ("maps", value.keys, leaf) if isinstance(value, MapValue) else leaf[0]


def _inputs(model: ModelProto) -> list[str]:
    """The names of the inputs of a call. (Older models list initialisers among their inputs.)"""
    initialized = {item.name for item in model.graph.initializer}
    return [info.name for info in model.graph.input if info.name not in initialized]


def bound_inputs(model: ModelProto, constants: object) -> dict[str, Array | None]:
    """The inputs that ``constants=`` fixes, as arrays of the model's types.

    None stands for one that is absent, where the model has an optional tensor.

    Raises IRTypeError or IRValueError for a name, a type or a shape that the model does not have.
    """
    if not isinstance(constants, Mapping):
        raise wrong_type("compile: constants: expected a dict {input: value}", constants)
    infos = {info.name: info for info in model.graph.input}
    unknown = [name for name in constants if name not in infos]
    if unknown:
        raise IRValueError(
            f"compile: constants: the model has no input {', '.join(map(repr, unknown))}; its "
            f"inputs are {', '.join(_inputs(model))}"
        )
    return {name: _constant(infos[name], value) for name, value in constants.items()}


def _constant(info: ValueInfoProto, value: object) -> Array | None:
    if value is None and is_optional_tensor(info):
        return None
    array = value.numpy() if isinstance(value, NDArray) else np.asarray(value)
    dtype, _ = input_dtype(info, "float32")
    wanted = np.dtype(DataType(dtype).numpy)
    if not np.can_cast(array.dtype, wanted, "same_kind"):
        raise IRTypeError(
            f"compile: constants: input {info.name!r} has the type {dtype}, got {array.dtype}"
        )
    declared = declared_shape(info, Symbols())
    if declared is not None:
        differ = len(declared) != array.ndim or any(
            isinstance(dim, int) and dim != size
            for dim, size in zip(declared, array.shape, strict=True)
        )
        if differ:
            text = f"({', '.join(map(str, declared))})"
            raise IRValueError(
                f"compile: constants: input {info.name!r} has the shape {text}, got {array.shape}"
            )
    return array.astype(wanted)


def _described(
    request: Request,
    inputs: Sequence[str],
    model: ModelProto,
    given: Mapping[str, GivenShape] = MappingProxyType({}),
) -> tuple[dict[str, GivenShape], dict[str, str]]:
    """(input -> shape, input -> data type), from the example inputs and the ``given`` shapes.

    ``dynamic_shapes`` changes single axes of these.
    """
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
        elif isinstance(value, list | tuple):
            shapes[name], dtypes[name] = _of_arrays(name, value)
        else:
            shapes[name], dtype = _of_array(name, value)
            if dtype:
                dtypes[name] = dtype
    shapes.update(given)
    apply_dynamic_shapes(shapes, request.dynamic_shapes, _declared(model, inputs))
    return shapes, dtypes


def _declared(model: ModelProto, inputs: Sequence[str]) -> dict[str, list[int | str]]:
    """What the model says of the shapes of its inputs; what has no name gets one."""
    shapes: dict[str, list[int | str]] = {}
    for info in model.graph.input:
        tensor = tensor_type(info)
        if info.name in inputs and tensor.HasField("shape"):
            name = info.name
            shapes[name] = [
                dim.dim_value if dim.HasField("dim_value") else dim.dim_param or f"{name}_{axis}"
                for axis, dim in enumerate(tensor.shape.dim)
            ]
    return shapes


def _of_arrays(name: str, items: Sequence[Any]) -> tuple[list[int | str], str]:
    """Shape and data type of the items of an example sequence; names where they differ."""
    parts = [_of_array(f"{name}[{place}]", item) for place, item in enumerate(items)]
    kinds = {(len(shape), dtype) for shape, dtype in parts}
    if len(kinds) > 1:
        raise IRValueError(
            f"compile: example input {name!r}: expected arrays of one rank and type, got "
            + ", ".join(f"{dtype} {shape}" for shape, dtype in parts[:8])
        )
    extents = list(zip(*[shape for shape, _ in parts], strict=True))
    shape = [
        sizes[0] if len(set(sizes)) == 1 else f"{name}_{axis}" for axis, sizes in enumerate(extents)
    ]
    return shape, parts[0][1]


def _of_array(name: str, value: Any) -> tuple[list[int | str], str]:
    """Shape and data type of an example input; "" is the type of text."""
    if isinstance(value, np.ndarray) and value.dtype.kind in "OUST":
        return list(value.shape), ""
    if isinstance(value, NDArray) or hasattr(value, "__dlpack__"):
        return list(value.shape), str(value.dtype).removeprefix("torch.")
    if isinstance(value, np.generic | int | float):
        return [], str(np.asarray(value).dtype)
    raise wrong_type(f"compile: example input {name!r}: expected an array or a shape", value)


def key_of_onnx(request: Request) -> bytes | None:
    """Bytes that identify a model and its example inputs, for the cache of models.

    None for a model of 2 GiB or more, which protobuf cannot serialize. The model is kept in the
    request, so that it is read only once.
    """
    model = request.intermediate["model"] = load_model(request.model)
    described = _described(request, _inputs(model), model)
    name = Path(request.model).stem if isinstance(request.model, str | Path) else ""
    parts = (name, described, ranges_of(request.dynamic_shapes))
    digest = hashlib.blake2b(repr(parts).encode(), digest_size=20)
    try:
        digest.update(model.SerializeToString(deterministic=True))
    except Exception:  # noqa: BLE001 - each version of protobuf has an error of its own for this
        return None
    return digest.digest()
