"""``weft diff a.weft b.weft``: what differs between two compiled models."""

from __future__ import annotations

import argparse
import difflib
import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import weft
from weft.cli.compile_model import described_inputs
from weft.cli.tables import print_table
from weft.runtime.model.compiled_model import CompiledModel
from weft.runtime.native.elf import function_bytes


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of this subcommand."""
    parser.add_argument("before", type=Path, metavar="a.weft", help="what `weft compile` wrote")
    parser.add_argument("after", type=Path, metavar="b.weft", help="another such file")
    parser.add_argument(
        "--text", action="store_true", help="also the difference of the imported programs"
    )


def run(options: argparse.Namespace) -> int:
    """Print a table of what differs; the status is 1 if something does, as that of ``diff``."""
    before, after = weft.load(options.before), weft.load(options.after)
    rows = differences(before, after)
    if not rows:
        print(f"{options.before} and {options.after} hold the same model")
        return 0
    names = options.before.name, options.after.name
    print_table(f"{options.before} and {options.after}", ("what", *names), rows)
    if options.text:
        print("\n".join(_text_difference(before, after)))
    return 1


def differences(before: CompiledModel, after: CompiledModel) -> list[list[str]]:
    """(what, in the first model, in the second one) for everything that differs."""
    rows = []
    for what, read in ASPECTS.items():
        pair = read(before), read(after)
        if pair[0] != pair[1]:
            rows.append([what, *pair])
    first, second = [set() if m.code is None else set(m.code.features) for m in (before, after)]
    if first != second:
        rows.append(
            ["features", " ".join(sorted(first - second)), " ".join(sorted(second - first))]
        )
    return rows + [[f"kernel {name}", *pair] for name, pair in _kernels(before, after)]


def _kernels(before: CompiledModel, after: CompiledModel) -> Iterator[tuple[str, tuple[str, str]]]:
    """Kernels that one model lacks, or whose code differs."""
    sides = code_of(before), code_of(after)
    for name in dict.fromkeys([*sides[0], *sides[1]]):
        codes = [side.get(name) for side in sides]
        if codes[0] != codes[1]:
            first, second = [_described(code) for code in codes]
            yield name, (first, second)


def _described(code: bytes | None) -> str:
    """A size and a digest, which tells different code of the same size apart.

    >>> _described(None)
    'none'
    """
    if code is None:
        return "none"
    return f"{len(code):,} bytes, {hashlib.blake2b(code, digest_size=3).hexdigest()}"


def code_of(model: CompiledModel) -> Mapping[str, bytes]:
    """The machine code of each function of a model, those of parallel loops too."""
    return {} if model.code is None else function_bytes(model.code.code)


def _weights(model: CompiledModel) -> str:
    digest = hashlib.blake2b(digest_size=4)
    for constant in model.program.constants:
        digest.update(constant.numpy().tobytes())
    return f"{model.constant_bytes():,} bytes, {digest.hexdigest()}"


def _machine(model: CompiledModel) -> str:
    code = model.code
    return "none" if code is None else f"{code.triple} {code.cpu}"


def _arena(model: CompiledModel) -> str:
    size = model.memory().arena
    return "depends on the inputs" if size is None else f"{size:,} bytes"


ASPECTS: Final[Mapping[str, Callable[[CompiledModel], str]]] = {
    "inputs": lambda model: "; ".join(described_inputs(model)),
    "target": _machine,
    "kernels": lambda model: str(len(model.kernels.functions)),
    "weights": _weights,
    "working memory": _arena,
    "bytecode": lambda model: hashlib.blake2b(
        str(model.as_text()).encode(), digest_size=4
    ).hexdigest(),
    "imported program": lambda model: hashlib.blake2b(
        model.script().encode(), digest_size=4
    ).hexdigest(),
}
"""What is compared beside kernels; each as it is shown."""


def _text_difference(before: CompiledModel, after: CompiledModel) -> Sequence[str]:
    first, second = [model.script().split("\n") for model in (before, after)]
    return list(difflib.unified_diff(first, second, "before", "after", lineterm="", n=2))
