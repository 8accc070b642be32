"""``weft bench MODEL``: times weft and every other engine that is installed, taking turns."""

from __future__ import annotations

import argparse
import importlib.util
import json
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

import weft
from weft.cli.arguments import Sizes, parse_sizes, random_array
from weft.cli.engine_process import Engine
from weft.cli.engines import ENGINES, Request
from weft.cli.models import add_model_arguments, find_model, program_inputs, with_dynamic
from weft.cli.tables import print_table
from weft.runtime.artifact.weft_file import writable_path, write_file
from weft.runtime.model.compiled_model import CompiledModel
from weft.runtime.threads.parallel import num_threads
from weft.support.errors import IRValueError

HEADINGS: Final = ("engine", "median", "least", "most", "x weft", "ready s", "")
CALL_SECONDS: Final = 0.1
"""How long the calls that are timed together should take in all."""
PAUSE_SECONDS: Final = 0.06
"""The pause between two engines, in which the threads of the first one stop waiting for work.

ONNX Runtime's threads wait in a loop for 50 milliseconds after a call, and take a core from the
next engine for so long.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of this subcommand."""
    add_model_arguments(parser)
    parser.add_argument("--threads", type=int, metavar="N", help="threads of every engine")
    parser.add_argument(
        "--rounds", type=int, default=9, metavar="N", help="turns of every engine (default 9)"
    )
    parser.add_argument(
        "--engine",
        action="append",
        choices=list(ENGINES),
        default=[],
        help="only these engines (default: weft and all peers that are installed)",
    )
    parser.add_argument(
        "--timeout",
        type=float,
        default=600.0,
        metavar="SECONDS",
        help="an engine that takes longer to load or to answer is stopped (default 600)",
    )
    parser.add_argument("--json", metavar="FILE", help="write the figures there too")


def run(options: argparse.Namespace) -> int:
    """Time every engine and print one table; the status is 1 if weft is not among them."""
    if options.rounds < 1:
        raise IRValueError(f"--rounds: expected a positive number, got {options.rounds}")
    if not options.timeout > 0:
        raise IRValueError(f"--timeout: expected a positive number, got {options.timeout}")
    output = None if options.json is None else writable_path(options.json)  # fail before the work
    with tempfile.TemporaryDirectory(prefix="weft-bench-") as folder:
        request = load_request(options, Path(folder))
        engines: list[Engine] = []
        try:
            for name in chosen(options.engine, request["kind"]):
                engines.append(Engine(name, Path(folder), options.timeout))
                engines[-1].load(request)
            rounds(engines, options.rounds)
        finally:
            for engine in engines:
                engine.stop()
    title = f"{options.model}: {request['threads']} threads, {options.rounds} rounds, ms a call"
    print_table(title, HEADINGS, table(engines), text=(0, len(HEADINGS) - 1))
    if output is not None:
        write_file(output, json.dumps(figures(engines, request), indent=1).encode())
    return 0 if any(engine.name == "weft" and engine.seconds for engine in engines) else 1


def load_request(options: argparse.Namespace, folder: Path) -> Request:
    """The request to load the model: its path, the number of threads, the file with the inputs.

    Every engine gets the same request, with its own name added.
    """
    specs = with_dynamic(options.input, options.dynamic)
    sizes, rng = Sizes(parse_sizes(options.size)), np.random.default_rng(options.seed)
    model = find_model(options.model)
    kind = model.suffix.removeprefix(".") if isinstance(model, Path) else "torch"
    shapes: dict[str, list[object]] = {}
    if specs:
        wanted = [(sizes.shape(spec.shape), spec.dtype) for spec in specs]
        shapes = {spec.name: list(sizes.shape(spec.shape)) for spec in specs}
    elif kind in ("weft", "onnx"):
        wanted = _inputs_of(weft.load(model) if kind == "weft" else weft.compile(model), sizes)
    elif kind == "pt2":
        wanted = program_inputs(model)
    else:
        raise IRValueError(f"{options.model}: expected --input name:shape:dtype for each input")
    arrays: dict[str, Any] = {
        f"x{i}": random_array(shape, dtype, rng) for i, (shape, dtype) in enumerate(wanted)
    }
    inputs = folder / "inputs.npz"
    np.savez(inputs, **arrays)
    return {
        "model": str(options.model),
        "kind": kind,
        "inputs": str(inputs),
        "shapes": shapes,
        "dtypes": [dtype for _, dtype in wanted],  # .npz files have numpy's own types only
        "threads": options.threads or num_threads(),
        "folder": str(folder),
    }


def _inputs_of(model: CompiledModel, sizes: Sizes) -> list[tuple[tuple[int, ...], str]]:
    params = model.program.functions[model.entry].params
    return [(sizes.shape(pattern[2]), str(pattern[1])) for _, pattern in params]


def chosen(names: Sequence[str], kind: str) -> list[str]:
    """The engines to run: ``names`` if given, else all that are installed and take the model."""
    if names:
        return list(names)
    return [
        name
        for name, (_, package, kinds) in ENGINES.items()
        if kind in kinds and importlib.util.find_spec(package) is not None
    ]


def rounds(engines: Sequence[Engine], count: int) -> None:
    """Let the engines take turns, ``count`` times; each turn is long enough to be timed."""
    numbers: dict[str, int] = {}
    for engine in engines:
        if not engine.error:
            first = engine.ask({"run": 3}).get("seconds", 1.0) / 3
            numbers[engine.name] = max(1, int(CALL_SECONDS / max(first, 1e-7)))
    for _ in range(count):
        for engine in engines:
            if not engine.error:
                time.sleep(PAUSE_SECONDS)
                number = numbers[engine.name]
                seconds = engine.ask({"run": number}).get("seconds")
                if seconds is not None:
                    engine.seconds.append(seconds / number)


def table(engines: Sequence[Engine]) -> list[list[str]]:
    """The rows: medians, their spread, and each engine's time as a multiple of weft's."""
    own = next((e for e in engines if e.name == "weft" and e.seconds), None)
    rows = []
    for engine in engines:
        if not engine.seconds:
            rows.append([engine.name, *[""] * (len(HEADINGS) - 2), str(engine.error)])
            continue
        median = statistics.median(engine.seconds)
        times = [median, min(engine.seconds), max(engine.seconds)]
        ratio = f"{median / statistics.median(own.seconds):.2f}" if own else ""
        cells = [f"{1e3 * seconds:.3f}" for seconds in times]
        rows.append([engine.name, *cells, ratio, f"{engine.setup:.1f}", ""])
    return rows


def figures(engines: Sequence[Engine], request: Request) -> dict[str, object]:
    """The contents of the table as data, for ``--json``."""
    return {
        "model": request["model"],
        "threads": request["threads"],
        "engines": {
            e.name: {"seconds": e.seconds, "setup": e.setup, "error": e.error} for e in engines
        },
    }
