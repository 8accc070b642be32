"""``weft run m.weft --input x.npy --output y.npz``: calls a compiled model once, on arrays."""

from __future__ import annotations

import argparse
import io
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from shlex import quote
from typing import Final

import numpy as np

import weft
from weft.cli.compile_model import described_inputs
from weft.runtime.artifact.weft_file import write_file
from weft.support.errors import IRValueError, TVMError
from weft.support.files import open_regular

SOURCES: Final = (".onnx", ".pt2", ".pt", ".pth", ".py", ".safetensors")
"""The ends of names of files that are models, but not compiled ones."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of this subcommand."""
    parser.add_argument("model", metavar="m.weft", type=Path, help="what `weft compile` wrote")
    parser.add_argument(
        "--input",
        action="append",
        default=[],
        metavar="[NAME=]FILE",
        help="an array for each argument in order, or by its name: a .npy or .npz file",
    )
    parser.add_argument(
        "--output", type=Path, metavar="FILE", help="a .npz file for the results (.npy for one)"
    )
    parser.add_argument("--threads", type=int, metavar="N", help="threads of the call")


def run(options: argparse.Namespace) -> int:
    """Run the model, and write its results or print a summary of them."""
    if options.output is not None and options.output.suffix not in (".npz", ".npy"):
        raise IRValueError(f"--output {options.output}: expected a name that ends in .npz or .npy")
    if options.model.suffix in SOURCES:
        raise IRValueError(
            f"{options.model}: expected a compiled model, got one of another framework; first "
            f"weft compile {quote(str(options.model))} -o {quote(options.model.stem + '.weft')}"
        )
    model = weft.load(options.model, num_threads=options.threads)
    args, kwargs = read_inputs(options.input)
    start = time.perf_counter()
    try:
        result = model(*args, **kwargs)
    except TVMError as error:
        inputs = ", ".join(described_inputs(model)) or "none"
        error.add_note(f"the model's inputs: {inputs}; each is given as --input name=FILE.npy")
        raise
    seconds = time.perf_counter() - start
    results = dict(leaves(result))
    if options.output is not None:
        write_results(options.output, results)
    for name, value in results.items():
        print(f"{name}: {value.dtype} {value.shape}{_glance(value)}")
    print(f"{1000 * seconds:.2f} ms")
    return 0


def read_inputs(texts: list[str]) -> tuple[list[np.ndarray], dict[str, np.ndarray]]:
    """(arguments by position, arguments by name), read from the files that ``--input`` names."""
    args: list[np.ndarray] = []
    kwargs: dict[str, np.ndarray] = {}
    for text in texts:
        name, equals, path = text.rpartition("=")
        loaded = read_arrays(Path(path))
        if not isinstance(loaded, np.ndarray):
            if equals:
                raise IRValueError(f"--input {text}: an .npz file has names of its own")
            kwargs.update(loaded)
        elif equals:
            kwargs[name] = loaded
        else:
            args.append(loaded)
    return args, kwargs


def read_arrays(path: Path) -> np.ndarray | Mapping[str, np.ndarray]:
    """The array in a .npy file, or name -> array of a .npz file."""
    try:
        with open_regular(path) as file:
            arrays = np.load(file, allow_pickle=False)
            if not isinstance(arrays, np.lib.npyio.NpzFile):
                return _native(arrays)
            return {name: _native(array) for name, array in arrays.items()}
    except FileNotFoundError:
        raise IRValueError(f"--input {path}: there is no such file") from None
    except MemoryError as error:
        raise IRValueError(f"--input {path}: no memory for the arrays that it has") from error
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise IRValueError(f"--input {path}: expected a .npy or .npz file: {reason}") from error
    except Exception as error:  # numpy raises errors of many classes for a damaged file
        shown = f"{type(error).__name__}: {error}"[:200]
        raise IRValueError(f"--input {path}: expected a .npy or .npz file: {shown}") from error


def _native(array: np.ndarray) -> np.ndarray:
    """The array in the byte order of this machine; files may have the other one."""
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def leaves(value: object, name: str = "output") -> Iterator[tuple[str, np.ndarray]]:
    """(name, array) for each array in a nested result, with names such as ``output.logits``."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from leaves(item, f"{name}.{key}")
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from leaves(item, f"{name}.{index}")
    elif value is not None:
        yield name, np.asarray(value)


def write_results(path: Path, results: dict[str, np.ndarray]) -> None:
    """Write all results to a .npz file, or the only one to a .npy file."""
    if path.suffix == ".npy" and len(results) != 1:
        raise IRValueError(f"--output {path}: {len(results)} results need a .npz file")
    content = io.BytesIO()
    if path.suffix == ".npy":
        np.save(content, next(iter(results.values())))
    else:
        np.savez(content, allow_pickle=False, **results)
    write_file(path, content.getbuffer())


def _glance(value: np.ndarray) -> str:
    """A summary of an array: all values if it is small, else the position of the largest."""
    if value.size == 0:
        return ""
    if value.size <= 8:
        return f" {np.array2string(value.ravel(), precision=4, separator=', ')}"
    where = np.unravel_index(int(np.argmax(value)), value.shape)
    return f" largest at {tuple(int(i) for i in where)}"
