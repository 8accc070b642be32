"""``weft``: the command that pyproject.toml installs, with a subcommand for each task."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Collection, Sequence
from typing import Final

import weft
from weft.cli.errors import error_text, write_traceback
from weft.support.errors import InternalError, TVMError
from weft.support.logs import show_by_verbosity
from weft.support.plugins import load_module
from weft.support.public_entry import tell_fault

COMMANDS: Final = {
    "compile": ("weft.cli.compile_model", "compile a model to one file"),
    "tune": ("weft.cli.tune_model", "compile a model with kernels found by measuring"),
    "run": ("weft.cli.run_model", "run a compiled model on arrays"),
    "bench": ("weft.cli.bench", "time a model in weft and in every peer that is installed"),
    "show": ("weft.cli.show", "print what the compiler makes of a model, stage by stage"),
    "viz": ("weft.cli.viz", "write a page that shows what the compiler did with a model"),
    "profile": ("weft.cli.profile", "tell how long each kernel of a model takes, and of what"),
    "diff": ("weft.cli.diff", "tell what differs between two compiled models"),
    "compare": ("weft.cli.compare", "find the first operator or pass whose result differs"),
    "ops": ("weft.cli.ops", "list the operators of a model and which of them weft has"),
    "doctor": ("weft.cli.doctor", "tell versions, CPU features, threads and caches"),
    "cache": ("weft.cli.caches", "tell the size of weft's caches, or clear them"),
    "completion": ("weft.cli.completion", "print what makes a shell complete weft's commands"),
    "course": ("weft.cli.course", "make a folder with notebooks that teach the compiler"),
    "demo": ("weft.cli.demo", "classify FashionMNIST with compiled models"),
}
"""Subcommand -> (its module, which has ``add_arguments`` and ``run`` and is loaded when needed; its
help)."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one subcommand; returns its exit status, or 2 after printing an error."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    options = make_parser(words[:1]).parse_args(words)
    show_by_verbosity(options.verbose)
    try:
        return _run(options)
    except TVMError as error:
        print(f"weft: {error_text(error)}", file=sys.stderr)
        if isinstance(error, InternalError):
            print(f"  the traceback: {write_traceback(error)}", file=sys.stderr)
        return 2
    except BrokenPipeError:  # the reader of the pipe, such as head, has stopped reading
        sys.stderr.close()
        return 0
    except KeyboardInterrupt:
        print("weft: interrupted", file=sys.stderr)
        return 130


def _run(options: argparse.Namespace) -> int:
    try:
        for name in options.plugin:
            load_module(name)
        return int(importlib.import_module(COMMANDS[options.command][0]).run(options))
    except BrokenPipeError:
        raise
    except Exception as error:
        tell_fault(error, f"weft {options.command}")
        raise


def make_parser(chosen: Collection[str] = ()) -> argparse.ArgumentParser:
    """The parser of the command line; only the arguments of chosen subcommands are there."""
    parser = argparse.ArgumentParser(prog="weft", description="A machine-learning compiler")
    parser.add_argument("--version", action="version", version=f"weft {weft.__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND", dest="command")
    for name, (module, text) in COMMANDS.items():
        command = commands.add_parser(name, help=text, description=text)
        if name in chosen:
            importlib.import_module(module).add_arguments(command)
            command.add_argument(
                "-v",
                "--verbose",
                action="count",
                default=0,
                help="log what is done to standard error; -vv: each decision, too",
            )
            command.add_argument(
                "--plugin",
                action="append",
                default=[],
                metavar="MODULE",
                help="import a module first that adds operators, passes or targets",
            )
    return parser


if __name__ == "__main__":
    sys.exit(main())
