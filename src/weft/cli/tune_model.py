"""``weft tune MODEL --minutes 5 -o m.weft``: compiles a model with kernels found by measuring."""

from __future__ import annotations

import argparse
from pathlib import Path

from weft.cli.models import add_model_arguments, subject_of
from weft.runtime.artifact.weft_file import writable_path
from weft.support.errors import IRValueError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of this subcommand."""
    add_model_arguments(parser)
    parser.add_argument(
        "-o", "--output", type=Path, metavar="FILE", required=True,
        help="where the compiled model goes: m.weft, or m.so with a C header beside it",
    )  # fmt: skip
    parser.add_argument(
        "--minutes", type=float, default=5.0, metavar="N",
        help="how long to search (default: 5); Ctrl-C ends the search and keeps what it found",
    )  # fmt: skip
    parser.add_argument(
        "--database", default="", metavar="FILE",
        help="the file of all trials, which later searches go on with (default: in weft's cache)",
    )  # fmt: skip
    parser.add_argument(
        "--target", default="llvm", metavar="TARGET",
        help="such as 'llvm -mcpu=native -num-cores=4' (default: this machine's CPU)",
    )  # fmt: skip
    parser.add_argument(
        "--ray", metavar="ADDRESS",
        help="a Ray cluster whose machines make the trials (auto: the one of this machine)",
    )  # fmt: skip
    parser.add_argument(
        "--machine", metavar="KIND",
        help="only machines of the cluster with a resource of this name",
    )  # fmt: skip
    parser.add_argument(
        "--collect", type=Path, metavar="FILE",
        help="add each trial of a kernel, with features of its program, to FILE",
    )  # fmt: skip
    parser.add_argument(
        "--learn-from", type=Path, metavar="FILE",
        help="try first what a model expects to be fast that learns from a file of --collect",
    )  # fmt: skip
    parser.add_argument("--threads", type=int, metavar="N", help="threads of a call")


def run(options: argparse.Namespace) -> int:
    """Search, compile, write the file, and print what was found."""
    suffix = options.output.suffix
    if suffix not in (".weft", ".so"):
        raise IRValueError(f"-o {options.output}: expected a name that ends in .weft or .so")
    writable_path(options.output)  # fail before the work, not after it
    model = subject_of(options).tune(
        minutes=options.minutes,
        database=options.database,
        target=options.target,
        num_threads=options.threads,
        ray=options.ray,
        machine=options.machine,
        collect=options.collect,
        learn_from=options.learn_from,
    )
    if suffix == ".so":
        model.export_library(str(options.output))
    else:
        model.save(options.output)
    print(model.tuning)
    return 0
