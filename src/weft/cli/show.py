"""``weft show MODEL --stage fused``: prints a model as it is at one stage of the compilation."""

from __future__ import annotations

import argparse

import weft
from weft.cli.models import Subject, add_model_arguments, subject_of
from weft.cli.programs import is_program, program_of
from weft.cli.stages import STAGES, disassembly_text, stage_text
from weft.runtime.model.compiled_model import CompiledModel
from weft.support.errors import UnsupportedError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of this subcommand."""
    add_model_arguments(parser)
    parser.add_argument(
        "--stage",
        choices=STAGES,
        default="imported",
        help="imported: the graph; legalized: its operators as loops; fused: joined kernels; "
        "scheduled: with tiles, vectors and threads; lowered: as code is made of them; host: the "
        "function that calls them; llvm, opt, asm: code before and after LLVM's passes, and of "
        "the processor (default: imported)",
    )
    parser.add_argument(
        "--function", metavar="NAME", help="only this function, with its parallel loops"
    )
    parser.add_argument("--target", default="llvm", metavar="TARGET", help="as for weft compile")


def run(options: argparse.Namespace) -> int:
    """Print one stage."""
    if options.model.endswith(".weft"):
        return _show_file(options)
    if is_program(options.model):
        subject = Subject(program_of(options.model), options.model)
    else:
        subject = subject_of(options)
    print(stage_text(subject, options.stage, options.target, options.function))
    return 0


def _show_file(options: argparse.Namespace) -> int:
    """Print a stage of a compiled file: the imported program, or what is made of it again."""
    model = weft.load(options.model)
    if options.stage == "imported" and options.function is None:
        print(model.script())
        print(_weights(model))
        return 0
    try:
        module = model.mod
    except UnsupportedError as error:
        if options.stage == "asm" and model.code is not None:
            print(disassembly_text(model.code, options.function))
            return 0
        raise UnsupportedError(
            f"{options.model}: --stage imported and asm are all that it can show: {error}"
        ) from error
    subject = Subject(module, options.model)
    print(stage_text(subject, options.stage, options.target, options.function))
    return 0


def _weights(model: CompiledModel) -> str:
    """The weights as the code of a model takes them, the largest first, as comments."""
    rows = [f"#   {label}: {size:,} bytes" for label, size in model.memory().weights]
    return "\n".join(["\n# Weights, as the code takes them:", *rows]) if rows else ""
