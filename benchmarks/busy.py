"""A busy machine: ``python -m benchmarks.busy [--only TEXT] [--engines A,B] [--threads N]``.

The median call of each engine while none, one and all of the cores are used by other processes too,
for networks of ``python -m benchmarks models`` (default: the smallest with two layers of threads,
the convolutional network). A call that waits for a thread that does not run takes milliseconds.
"""

from __future__ import annotations

import argparse
import contextlib
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.measure import Crew, Plan, pinned
from benchmarks.networks import NETWORKS
from benchmarks.options import chosen, positive, status_of
from weft.runtime.threads.parallel import num_threads


@contextlib.contextmanager
def company(count: int) -> Iterator[None]:
    """So many processes that do nothing, without end."""
    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a line for each network and number of other processes."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", default="CNN", help="networks with this text in their name")
    parser.add_argument("--engines", default="weft,torch eager,ONNX Runtime,OpenVINO")
    add = parser.add_argument
    add("--threads", type=positive, default=num_threads(), help="default: all cores")
    add("--rounds", type=positive, default=9, help="turns of each (default 9)")
    options = parser.parse_args(arguments)
    engines = tuple(options.engines.split(","))
    plan = Plan(engines, options.threads, options.rounds, limits=False)
    print(f"{'milliseconds':30}{'others':>7}{''.join(f'{name:>14}' for name in engines)}")
    with pinned(plan.threads), tempfile.TemporaryDirectory(prefix="weft-busy-") as folder:
        crew = Crew(plan, Path(folder))
        try:
            for row in chosen(NETWORKS, options.only):
                for others in sorted({0, 1, plan.threads}):
                    with company(others):
                        found = crew.measure(row).engines.values()
                    cells = [f"{1e3 * one.median:14.3f}" if not one.error else f"{'failed':>14}"
                             for one in found]  # fmt: skip
                    print(f"{row.name:30}{others:7}{''.join(cells)}", flush=True)
        finally:
            crew.clear(everything=True)


if __name__ == "__main__":
    raise SystemExit(status_of(main))
