"""weft beside its peers: ``python -m benchmarks ops`` and ``python -m benchmarks models``.

Each engine has a process of its own on the same cores with as many threads; they are asked in turn,
together with the machine's limits. docs/benchmarks.md says what the columns mean.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from benchmarks.measure import Plan, Result, measure
from benchmarks.networks import NETWORKS
from benchmarks.operators import OPERATORS
from benchmarks.options import chosen, positive, status_of
from benchmarks.picture import draw
from benchmarks.report import Table, figures
from benchmarks.rows import Row
from weft.cli.bench import chosen as installed
from weft.cli.engines import ENGINES
from weft.runtime.threads.parallel import num_threads
from weft.support.errors import IRValueError

COMMANDS: Final[dict[str, tuple[str, Sequence[Row]]]] = {
    "ops": ("operators of well-known networks", tuple([item.row for item in OPERATORS])),
    "models": ("whole networks", NETWORKS),
}
"""Subcommand -> its help, and its rows."""


def make_parser() -> argparse.ArgumentParser:
    """The parser of the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="weft and its peers")
    commands = parser.add_subparsers(required=True, metavar="COMMAND", dest="command")
    for name, (text, rows) in COMMANDS.items():
        command = commands.add_parser(name, help=f"{text} ({len(rows)} rows)", description=text)
        add = command.add_argument
        add("--list", action="store_true", help="print the names of the rows, measure nothing")
        add("--only", default="", metavar="TEXT", help="rows with this text in their name")
        add("--engines", default="", metavar="A,B", help=f"of {', '.join(ENGINES)} (default: all)")
        add("--threads", type=positive, metavar="N", help="threads, and cores, of every engine")
        add("--rounds", type=positive, default=9, metavar="N",
            help="turns of every engine (default 9)")  # fmt: skip
        add("--timeout", type=float, default=600.0, metavar="SECONDS",
            help="when an engine that does not answer is stopped (default 600)")  # fmt: skip
        add("--no-limits", action="store_true", help="leave the machine's limits out")
        add("--profile", action="store_true", help="print what each of weft's kernels takes")
        add("--json", type=Path, metavar="FILE", help="write the figures there")
        add("--picture", type=Path, metavar="FILE", help="draw them there (.svg, .png, .pdf)")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command: 0, 1 where an engine failed on a row, 2 after an error told in few lines."""
    options = make_parser().parse_args(arguments)
    return status_of(lambda: run(options))


def run(options: argparse.Namespace) -> int:
    """Measure the rows that the command names; print, write and draw what came of it."""
    rows = chosen(COMMANDS[options.command][1], options.only)
    if options.list:
        print("\n".join([row.name for row in rows]))
        return 0
    plan = planned(options)
    title = f"{plan.threads} threads, {plan.rounds} rounds, float32: median of a call"
    table, results = Table(title, plan), list[Result]()
    for result in measure(rows, plan):
        results.append(result)
        table.add(result)
        print(f"{len(results)} of {len(rows)}: {result.row.name}", file=sys.stderr)
    table.print(results)
    for result in results:
        if plan.profile and "weft" in result.engines:
            print(f"\n{result.row.name}\n{result.engines['weft'].profile}")
    if options.json is not None:
        text = json.dumps(figures(options.command, plan, results), indent=1)
        options.json.write_text(text, encoding="utf-8")
    if options.picture is not None:
        draw(results, plan.engines, options.picture, title)
    return int(any(item.error for result in results for item in result.engines.values()))


def planned(options: argparse.Namespace) -> Plan:
    """The plan that the options describe."""
    if not options.timeout > 0:
        raise IRValueError(f"--timeout: expected a positive number, got {options.timeout}")
    for path in (options.json, options.picture):
        if path is not None and not path.resolve().parent.is_dir():
            raise IRValueError(f"{path}: there is no such folder")  # not after an hour's work
    return Plan(
        engines=tuple(engines_of(options.engines)), threads=options.threads or num_threads(),
        rounds=options.rounds, timeout=options.timeout, limits=not options.no_limits,
        profile=options.profile, fresh=options.command == "models",
    )  # fmt: skip


def engines_of(text: str) -> list[str]:
    """The engines that ``weft,torch eager`` names, in either case; all that are installed for "".

    >>> engines_of("weft,onnx runtime")
    ['weft', 'ONNX Runtime']
    """
    if not text:
        return installed((), "torch")
    known = {name.casefold(): name for name in ENGINES}
    wanted = [part.strip() for part in text.split(",")]
    for part in wanted:
        if part.casefold() not in known:
            raise IRValueError(
                f"--engines: {part!r} is no engine; there are {', '.join(known.values())}"
            )
    return [known[part.casefold()] for part in wanted]


if __name__ == "__main__":
    sys.exit(main())
