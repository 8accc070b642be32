"""Finds the model that a user names on the command line, and makes its example inputs."""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

import weft
from weft.cli.arguments import InputSpec, Sizes, parse_input, parse_sizes, random_array
from weft.driver.sources import function_of
from weft.runtime.model.compiled_model import CompiledModel
from weft.runtime.model.values import to_torch
from weft.support.errors import IRValueError, TVMError

KINDS = (
    "a .onnx or .pt2 file, a .weft file, or file.py:name or package.module:name of a PyTorch model "
    "(a torch.nn.Module, or a class or a function without arguments that makes one)"
)


def add_model_arguments(parser: argparse.ArgumentParser) -> None:
    """Add MODEL and the arguments about its inputs, which all subcommands with a model share."""
    parser.add_argument("model", metavar="MODEL", help=KINDS)
    parser.add_argument(
        "--input",
        action="append",
        default=[],
        metavar="NAME:SHAPE:DTYPE",
        type=_input,
        help="an input, as x:1x3x224x224:float32; names as extents are dynamic (tokens:nx16:int64)",
    )
    parser.add_argument(
        "--dynamic",
        action="append",
        default=[],
        metavar="INPUT:AXIS=NAME",
        help="make an axis of an input dynamic, as x:0=n",
    )
    parser.add_argument(
        "--size",
        action="append",
        default=[],
        metavar="NAME=NUMBER",
        help="the size of a dynamic dimension where numbers are needed, and what it usually is",
    )
    parser.add_argument("--seed", type=int, default=0, help="seed of random inputs (default 0)")


def _input(text: str) -> InputSpec:
    try:
        return parse_input(text)
    except TVMError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


@dataclass(frozen=True)
class Subject:
    """A model that is not compiled yet, and the example inputs to compile it with."""

    model: object
    name: str
    examples: Any = None
    dynamic_shapes: Any = None
    sizes: Mapping[str, int] = field(default_factory=dict)
    """Sizes of dynamic dimensions from ``--size``, for a file whose inputs are made later."""
    seed: int = 0

    @property
    def is_torch(self) -> bool:
        """Whether it is a module of PyTorch."""
        torch = sys.modules.get("torch")
        return torch is not None and isinstance(self.model, torch.nn.Module)

    def compile(self, **options: Any) -> CompiledModel:
        """The CompiledModel."""
        return self._by(weft.compile, options)

    def tune(self, **options: Any) -> CompiledModel:
        """The CompiledModel with kernels that a search found faster."""
        return self._by(weft.tune, options)

    def _by(
        self, function: Callable[..., CompiledModel], options: Mapping[str, Any]
    ) -> CompiledModel:
        return function(
            self.model,
            self.examples,
            dynamic_shapes=self.dynamic_shapes,
            size_hints=self.sizes,
            **options,
        )


def subject_of(options: argparse.Namespace) -> Subject:
    """The model that the command names, with its inputs."""
    specs = with_dynamic(options.input, options.dynamic)
    model = find_model(options.model)
    name = Path(options.model).name
    if isinstance(model, Path):
        return _file_subject(model, name, specs, options)
    return _torch_subject(model, name, specs, Sizes(parse_sizes(options.size)), options.seed)


def with_dynamic(specs: Sequence[InputSpec], dynamic: Sequence[str]) -> list[InputSpec]:
    """The inputs with the axes of ``--dynamic`` replaced by their names."""
    inputs = list(specs)
    for text in dynamic:
        name, _, rest = text.partition(":")
        axis, equals, symbol = rest.partition("=")
        places = [i for i, spec in enumerate(inputs) if spec.name == name]
        if not equals or not axis.isdecimal() or not symbol.isidentifier():
            raise IRValueError(f"--dynamic {text}: expected input:axis=name, such as x:0=n")
        if not places or int(axis) >= len(inputs[places[0]].shape):
            raise IRValueError(
                f"--dynamic {text}: there is no axis {axis} of an --input named {name!r}"
            )
        shape = list(inputs[places[0]].shape)
        shape[int(axis)] = symbol
        inputs[places[0]] = InputSpec(name, tuple(shape), inputs[places[0]].dtype)
    return inputs


def find_model(text: str) -> Any:
    """The Path of an existing file, or the object that ``package.module:name`` names."""
    path = Path(text)
    if path.suffix in (".onnx", ".pt2", ".weft"):
        if not os.path.isfile(path):
            raise IRValueError(f"{text[:200]}: there is no such file")
        return path
    module_name, colon, attribute = text.partition(":")
    if path.is_file() and not colon:
        raise IRValueError(
            f"{text[:200]}: the names of models end in .onnx, .pt2, or .weft; rename the file"
        )
    if not colon or not attribute:
        raise IRValueError(f"{text!r} names no model; expected {KINDS}")
    try:
        named: object = _imported(module_name)
        for part in attribute.split("."):
            named = getattr(named, part)
    except (ImportError, AttributeError) as error:
        raise IRValueError(f"{text}: {error}") from error
    except TVMError:
        raise
    except Exception as error:
        raise IRValueError(
            f"{text}: importing {module_name} failed: {type(error).__name__}: {error}"
        ) from error
    return as_torch_module(named, text)


def _imported(module_name: str) -> object:
    """Import a module by its name or its file; the current folder is searched too."""
    if module_name.endswith(".py"):
        return imported_file(Path(module_name))
    if "" not in sys.path:
        sys.path.insert(0, "")
    return importlib.import_module(module_name)


def imported_file(path: Path) -> object:
    """Import a file as a module, which may import other modules of its folder."""
    if not path.is_file():
        raise IRValueError(f"{path}: there is no such file")
    folder = str(path.resolve().parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    name = path.stem if path.stem not in sys.modules else f"{path.stem} of {folder}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def program_inputs(path: Path) -> list[tuple[tuple[int, ...], str]]:
    """Shapes and data types of the example inputs in a ``.pt2`` file."""
    torch = importlib.import_module("torch")
    program = function_of("weft.driver.torch_models:load_program")(path)
    args, kwargs = program.example_inputs or ((), {})
    if kwargs or not args or not all(isinstance(item, torch.Tensor) for item in args):
        raise IRValueError(
            f"{path}: its example inputs are not only tensors by position; say them with --input "
            "name:shape:dtype for each"
        )
    return [(tuple(item.shape), str(item.dtype).removeprefix("torch.")) for item in args]


def as_torch_module(model: object, text: str) -> Any:
    """The model; if ``model`` is a class or a function, the result of calling it."""
    torch = importlib.import_module("torch")
    if isinstance(model, type) or (callable(model) and not isinstance(model, torch.nn.Module)):
        try:
            model = model()
        except Exception as error:
            raise IRValueError(
                f"{text}: calling it without arguments failed: {type(error).__name__}: {error}"
            ) from error
    if not isinstance(model, torch.nn.Module):
        raise IRValueError(
            f"{text} is {type(model).__name__}, not a torch.nn.Module or a function that makes one"
        )
    return model.eval()


def _file_subject(
    path: Path, name: str, specs: Sequence[InputSpec], options: argparse.Namespace
) -> Subject:
    if path.suffix == ".weft":
        raise IRValueError(f"{name} is compiled already; `weft run` and `weft bench` take it")
    examples = {spec.name: list(spec.shape) for spec in specs}
    is_program = path.suffix == ".pt2"
    return Subject(
        path,
        name,
        None if is_program or not specs else examples,
        sizes=parse_sizes(options.size),
        seed=options.seed,
    )


def _torch_subject(
    model: object, name: str, specs: Sequence[InputSpec], sizes: Sizes, seed: int
) -> Subject:
    if not specs:
        raise IRValueError(
            f"{name}: a PyTorch model needs example inputs: --input name:shape:dtype for each"
        )
    torch = importlib.import_module("torch")
    rng = np.random.default_rng(seed)
    examples = [random_array(sizes.shape(spec.shape), spec.dtype, rng) for spec in specs]
    arrays = [to_torch(weft.nd.array(example)) for example in examples]
    dims: dict[str, object] = {}
    dynamic = [_dynamic(torch, spec, dims) for spec in specs]
    if all(spec.name for spec in specs):
        names = [spec.name for spec in specs]
        return Subject(
            model,
            name,
            dict(zip(names, arrays, strict=True)),
            dict(zip(names, dynamic, strict=True)) if dims else None,
        )
    return Subject(model, name, tuple(arrays), tuple(dynamic) if dims else None)


def _dynamic(
    torch: ModuleType, spec: InputSpec, dims: dict[str, object]
) -> Mapping[int, object] | None:
    for symbol in spec.symbols.values():
        dims.setdefault(symbol, torch.export.Dim(symbol))
    return {axis: dims[symbol] for axis, symbol in spec.symbols.items()} or None
