"""``weft cache``: prints the folders of weft's caches and what they hold, and clears them."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Final

from weft.cli.tables import print_table
from weft.codegen.cache import cache_folder

KINDS: Final = ("objects", "models", "tuning")
"""Compiled code, whole models, and what searches measured."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of this subcommand."""
    parser.add_argument("--clear", action="store_true", help="delete what the caches hold")


def run(options: argparse.Namespace) -> int:
    """Print what each cache holds, after clearing it if that is asked for."""
    rows = [(kind, _cleared(kind) if options.clear else described(kind)) for kind in KINDS]
    print_table("", ("", ""), rows, text=(0, 1))
    return 0


def described(kind: str) -> str:
    """The folder of a cache, how many files it holds and their size."""
    folder = cache_folder(kind)
    if folder is None:
        return "off"
    sizes = [path.stat().st_size for path in _files(folder)]
    return f"{folder}: {len(sizes)} files, {sum(sizes) / 1e6:.1f} MB"


def _cleared(kind: str) -> str:
    folder = cache_folder(kind)
    if folder is None:
        return "off"
    files = _files(folder)
    size = 0
    for path in files:
        size += path.stat().st_size
        path.unlink(missing_ok=True)  # another process may sweep at the same time
    return f"{folder}: {len(files)} files deleted, {size / 1e6:.1f} MB"


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()]
