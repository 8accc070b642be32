"""``weft compile MODEL -o m.weft``: compiles a model to what runs without its framework."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from weft.cli.models import add_model_arguments, subject_of
from weft.codegen.backend import writes_folders
from weft.relax.transform.weights.narrow_weights import NARROW_TYPES
from weft.runtime.artifact.weft_file import writable_path
from weft.runtime.model.compiled_model import CompiledModel
from weft.support.errors import IRValueError
from weft.target.target import Target


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of this subcommand."""
    add_model_arguments(parser)
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="FILE",
        required=True,
        help="where the compiled model goes: m.weft, m.so with a C header beside it, or, for the "
        "target wasm, a folder that node and browsers run",
    )
    add_target_arguments(parser)


def add_target_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that say how to compile, which all compiling subcommands share."""
    parser.add_argument(
        "--target",
        default="llvm",
        metavar="TARGET",
        help="such as 'llvm -mcpu=native -num-cores=4' (default: this machine's CPU)",
    )
    parser.add_argument(
        "--dtype",
        choices=NARROW_TYPES,
        help="store the weights of products and convolutions in this type",
    )
    parser.add_argument("--threads", type=int, metavar="N", help="threads of a call")
    parser.add_argument("--verify", action="store_true", help="check every pass as it runs")


def run(options: argparse.Namespace) -> int:
    """Compile the model, write the file, and print what is in it."""
    suffix = options.output.suffix
    is_folder = writes_folders(Target(options.target))
    _check_output(options.output, is_folder)  # fail before the work, not after it
    subject = subject_of(options)
    start = time.perf_counter()
    model = subject.compile(
        target=options.target,
        num_threads=options.threads,
        dtype=options.dtype,
        verify=options.verify,
    )
    if suffix == ".so" and not is_folder:
        model.export_library(str(options.output))
    else:
        model.save(options.output)
    seconds = time.perf_counter() - start
    print(
        f"{subject.name} -> {options.output}: {len(model.kernels.functions)} kernels, "
        f"{_size(options.output) / 1e6:.1f} MB, {seconds:.1f} s"
    )
    print(f"inputs: {', '.join(described_inputs(model)) or 'none'}")
    return 0


def _check_output(output: Path, is_folder: bool) -> None:
    """Raise where no model can be written there, or not one of this kind."""
    if not is_folder:
        if output.suffix not in (".weft", ".so"):
            raise IRValueError(f"-o {output}: expected a name that ends in .weft or .so")
        writable_path(output)
    elif output.suffix in (".weft", ".so") or output.is_file():
        raise IRValueError(
            f"-o {output}: expected the name of a folder: models for this target are folders"
        )


def _size(output: Path) -> int:
    """The bytes of a file, or of all files of a folder."""
    files = output.iterdir() if output.is_dir() else [output]
    return sum([file.stat().st_size for file in files])


def described_inputs(model: CompiledModel) -> list[str]:
    """Each input of a CompiledModel as ``x: (n, 3) float32``."""
    lines = []
    for name, pattern in model.program.functions[model.entry].params:
        if pattern[0] == "tensor" and pattern[2] is not None:
            extents = ", ".join([str(extent) for extent in pattern[2]])
            comma = "," if len(pattern[2]) == 1 else ""
            lines.append(f"{name}: ({extents}{comma}) {pattern[1]}")
        else:
            lines.append(f"{name}: {pattern[0]}")
    return lines
