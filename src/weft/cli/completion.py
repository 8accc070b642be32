"""``weft completion bash``: prints what makes a shell complete weft's commands and options."""

from __future__ import annotations

import argparse
import importlib
from typing import Any, Final

from weft.cli.main import COMMANDS, make_parser
from weft.support.errors import UnsupportedError

SHELLS: Final = ("bash", "zsh", "fish")
FILES: Final = ("MODEL", "FILE", "m.weft", "a.weft", "b.weft")
"""How arguments that are files are shown in the help of commands."""
FOLDERS: Final = ("DIR", "DIRECTORY")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of this subcommand."""
    parser.add_argument("shell", choices=SHELLS, help="the shell that is to complete")


def run(options: argparse.Namespace) -> int:
    """Print the script."""
    try:
        shtab: Any = importlib.import_module("shtab")
    except ModuleNotFoundError as error:
        raise UnsupportedError(
            "weft completion needs the package shtab: pip install 'weft-compiler[completion]'"
        ) from error
    parser = make_parser(COMMANDS)
    for action in actions_of(parser):
        if action.metavar in FILES:
            action.complete = shtab.FILE
        elif action.metavar in FOLDERS:
            action.complete = shtab.DIRECTORY
    print(shtab.complete(parser, options.shell))
    return 0


def actions_of(parser: argparse.ArgumentParser) -> list[Any]:
    """All arguments of a parser and its subcommands."""
    actions: list[Any] = []
    for action in parser._actions:
        actions.append(action)
        if isinstance(action.choices, dict):  # the subcommands
            for command in action.choices.values():
                actions += actions_of(command)
    return actions
