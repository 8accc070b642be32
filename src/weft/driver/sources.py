"""The kinds of models that ``weft.compile`` takes: one row for each, with its importer.

A row names the classes of its objects as text, so that no framework is loaded only to look at an
object. (If there is an object of a class, its framework is loaded already.) The importer is loaded
at first use.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from weft.ir.module import IRModule
from weft.relax.expr import Function
from weft.runtime.model.signature import Signature
from weft.runtime.ndarray import NDArray
from weft.support.errors import IRTypeError, IRValueError


@dataclass(frozen=True)
class Request:
    """A model as the user gave it, with example arguments of a call and its dynamic dimensions."""

    model: Any
    args: tuple[object, ...] = ()
    kwargs: Mapping[str, object] = field(default_factory=dict)
    dynamic_shapes: Any = None
    has_examples: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)
    """Further options of the importer (``custom_converters``, ``opset`` ...)."""
    size_hints: Mapping[str, int] = field(default_factory=dict)
    """What dynamic dimensions usually are, by their names."""
    intermediate: dict[str, Any] = field(default_factory=dict)
    """Results that were computed for the key and are needed again (``program``: torch's export;
    ``imported``: an nn module after import)."""

    def check_options(self, what: str, known: frozenset[str]) -> None:
        """Raise IRTypeError for an option that models of a kind do not take."""
        unknown = self.options.keys() - known
        if unknown:
            raise IRTypeError(
                f"compile: {what} takes no option {', '.join(map(repr, sorted(unknown)))}; there "
                f"{'is' if len(known) == 1 else 'are'} {', '.join(sorted(known))}"
            )


@dataclass
class Imported:
    """An imported model: its module, its signature, and the tensors that its calls change."""

    module: IRModule
    signature: Signature
    states: Sequence[NDArray] = ()
    entry: str = "main"


@dataclass(frozen=True)
class Source:
    """A kind of model: its classes as ``module:Class``, suffixes of files, and its importer.

    ``load`` is ``module:function``, for a function from a Request to an Imported. ``key`` is
    ``module:function``, for a function that returns bytes which identify a Request, or None if that
    is not possible (``weft.driver.model_cache``).
    """

    name: str
    load: str
    classes: tuple[str, ...] = ()
    suffixes: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    """Suffixes of related files, which its importer refuses with what to do instead."""
    key: str = field(kw_only=True)
    needs_examples: bool = False
    """Whether example inputs say what shapes and types the model is compiled for."""


SOURCES: Final = (
    Source(
        "torch.export.ExportedProgram", "weft.driver.torch_models:import_exported",
        ("torch.export.exported_program:ExportedProgram",),
        key="weft.driver.torch_keys:key_of_exported",
    ),
    Source(
        "torch.nn.Module", "weft.driver.torch_models:import_torch_module",
        ("torch.nn.modules.module:Module",), key="weft.driver.torch_keys:key_of_module",
        needs_examples=True,
    ),
    Source(
        "relax.frontend.nn.Module", "weft.driver.nn_models:import_nn",
        ("weft.relax.frontend.nn.core:Module",), key="weft.driver.nn_models:key_of_nn",
        needs_examples=True,
    ),
    Source(
        "a .pt2 file", "weft.driver.torch_models:import_pt2", suffixes=(".pt2",),
        key="weft.driver.torch_keys:key_of_file",
    ),
    Source(
        "onnx.ModelProto", "weft.driver.onnx_models:import_onnx",
        ("onnx.onnx_ml_pb2:ModelProto", "onnx.onnx_pb:ModelProto"), (".onnx",),
        (".ort",), key="weft.driver.onnx_models:key_of_onnx",
    ),
    Source(
        "a QuantizedModel", "weft.driver.quantization.quantized_model:import_quantized",
        ("weft.driver.quantization.quantized_model:QuantizedModel",),
        key="weft.driver.quantization.quantized_model:key_of_quantized",
    ),
)  # fmt: skip
"""The kinds of models, in the order in which they are tried."""


def request_of(
    model: object, examples: object, dynamic_shapes: object, options: Mapping[str, object]
) -> Request:
    """A request with example inputs as callers give them: a tensor, a tuple, a dict, or None."""
    is_named = isinstance(examples, Mapping)
    several = tuple(examples) if isinstance(examples, tuple | list) else (examples,)
    args = () if examples is None or is_named else several
    kwargs = dict(examples) if isinstance(examples, Mapping) else {}
    return Request(model, args, kwargs, dynamic_shapes, examples is not None, dict(options))


def import_model(request: Request) -> Imported:
    """Import a model; raises IRTypeError for an object of no known kind."""
    if isinstance(request.model, IRModule):
        return import_module(request)
    source = source_of(request.model)
    imported: Imported = function_of(source.load)(request)
    return imported


def source_of(model: object) -> Source:
    """The row for a model or a path.

    Raises IRTypeError for an object, and IRValueError for a file, of no known kind.
    """
    if isinstance(model, str | Path):
        return _source_of_file(Path(model))
    for source in SOURCES:
        if any(isinstance(model, kind) for kind in _loaded(source.classes)):
            return source
    raise IRTypeError(
        f"compile: expected a model ({_listed()}, an IRModule) or the path of one, got "
        f"{_described(model)}"
    )


def function_of(name: str) -> Callable[..., Any]:
    """The function that ``module:function`` names; the module is loaded if it is not yet."""
    module, _, function = name.partition(":")
    loaded: Callable[..., object] = getattr(importlib.import_module(module), function)
    return loaded


def _listed() -> str:
    return ", ".join([source.name for source in SOURCES])


def _described(model: object) -> str:
    if isinstance(model, type):
        return f"the class {model.__name__}; make an object of it"
    if isinstance(model, Mapping):
        return f"{type(model).__name__}; weights alone (a state dict) go into their module first"
    if callable(model):
        return f"{type(model).__name__} {getattr(model, '__name__', '')}".strip() + (
            "; wrap a function in a torch.nn.Module whose forward calls it"
        )
    return type(model).__name__


def _loaded(names: Sequence[str]) -> list[type]:
    kinds = []
    for name in names:
        module, _, attribute = name.partition(":")
        kind = getattr(sys.modules.get(module), attribute, None)
        if isinstance(kind, type):
            kinds.append(kind)
    return kinds


def _source_of_file(path: Path) -> Source:
    if path.suffix == ".weft":
        raise IRValueError(f"compile: {path.name} is compiled already; load it with weft.load")
    for source in SOURCES:
        if path.suffix in (*source.suffixes, *source.refused):
            if not os.path.isfile(path):
                what = "a folder" if os.path.isdir(path) else "no file"
                place = str(path)[-200:]
                raise IRValueError(f"compile: expected a model at {place!r}, found {what}")
            return source
    suffixes = ", ".join([suffix for source in SOURCES for suffix in source.suffixes])
    raise IRValueError(
        f"compile: expected the path of a model that ends in {suffixes}, got {str(path)[-80:]!r}"
    )


def import_module(request: Request) -> Imported:
    """Import an IRModule: its entry is ``main``, or its only graph function."""
    module = request.model
    if request.dynamic_shapes is not None:
        raise IRValueError(
            "compile: dynamic_shapes says which dimensions of example inputs vary; the shapes of "
            "an IRModule stand in its functions"
        )
    if request.options:
        raise IRTypeError(
            f"compile: an IRModule takes no option {', '.join(map(repr, request.options))}"
        )
    functions = {
        var.name_hint: func for var, func in module.functions.items() if isinstance(func, Function)
    }
    name = "main" if "main" in functions else next(iter(functions), "")
    params = [param.name_hint or f"arg{i}" for i, param in enumerate(functions[name].params)]
    if len(set(params)) != len(params):
        params = [f"{param}_{index}" for index, param in enumerate(params)]
    return Imported(module, Signature.plain(name, params), entry=name)
