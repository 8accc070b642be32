"""``weft``: the command that pyproject.toml installs, one subcommand for each job."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from weft.cli import demo
from weft.support.errors import TVMError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one subcommand; return the exit status: 0, or 1 after an error told in few lines."""
    options = make_parser().parse_args(arguments)
    try:
        return int(options.run(options))
    except TVMError as error:
        print(f"weft: {error}", file=sys.stderr)
        return 1


def make_parser() -> argparse.ArgumentParser:
    """The parser of the command line."""
    parser = argparse.ArgumentParser(prog="weft", description="A machine-learning compiler")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    command = commands.add_parser("demo", help="classify FashionMNIST with compiled models")
    command.add_argument(
        "--data", type=Path, metavar="DIR", help="folder with the idx files of the test set"
    )
    command.add_argument("--images", type=int, metavar="N", help="use only the first N test images")
    command.add_argument(
        "--out", type=Path, default=Path("demo-modules"), metavar="DIR",
        help="where each module's script goes (default: demo-modules)",
    )  # fmt: skip
    command.set_defaults(run=demo.run)
    return parser


if __name__ == "__main__":
    sys.exit(main())
