"""``weft show MODEL --stage fused``: prints a model as it is at one stage of the compilation."""

from __future__ import annotations

import argparse

from weft.cli.models import add_model_arguments, subject_of
from weft.cli.stages import STAGES, stage_text


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of this subcommand."""
    add_model_arguments(parser)
    parser.add_argument(
        "--stage",
        choices=STAGES,
        default="imported",
        help="imported: the graph; legalized: its operators as loops; fused: joined kernels; "
        "scheduled: the loops as code is made of them; llvm, asm: that code (default: imported)",
    )
    parser.add_argument("--function", metavar="NAME", help="only this function")
    parser.add_argument("--target", default="llvm", metavar="TARGET", help="as for weft compile")


def run(options: argparse.Namespace) -> int:
    """Print one stage."""
    print(stage_text(subject_of(options), options.stage, options.target, options.function))
    return 0
