"""Two trees of weft on the twelve networks, in turn: has a change of the compiler cost speed?

    python -m benchmarks.trees ../before . [--only ResNet] [--rounds 8] [--seconds 1]

Each tree is a checkout; its weft compiles each network of its own ``benchmarks/networks.py`` in a
process of its own, which then waits. Rounds alternate: one tree times calls for some seconds while
the other waits, then they change places, and in the next round the other goes first. Printed for
each network: the shortest call of each tree over all rounds (what the machine gives when nobody
disturbs it), its median, and the ratios new / old; last, their geometric means. A ratio below 1 is
a gain. Compiled models are kept in weft's cache: ``--rounds 0`` only fills it.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Final

from benchmarks.networks import NETWORKS
from benchmarks.options import chosen, status_of

CHILD: Final = """
import json, sys, time
sys.path[:0] = ["src", "."]
import torch
from benchmarks import networks
[row] = [row for row in networks.NETWORKS if row.name == sys.argv[1]]
model = getattr(networks, row.model.partition(":")[2])().eval()
arrays = row.arrays().values()
import weft
compiled = weft.compile(model, tuple(torch.from_numpy(array) for array in arrays))
inputs = [weft.nd.array(array) for array in arrays]
compiled(*inputs)
print(json.dumps([]), flush=True)
for line in sys.stdin:
    end, times = time.perf_counter() + float(line), []
    while not times or time.perf_counter() < end:
        start = time.perf_counter()
        compiled(*inputs)
        times.append(time.perf_counter() - start)
    print(json.dumps(times), flush=True)
"""
"""A tree's side: compiles the network of that name; then for each line, seconds, times calls."""


class Tree:
    """A process in which one tree has compiled one network."""

    def __init__(self, root: Path, network: str) -> None:
        environment = {**os.environ, "PYTHONPATH": ""}
        self.process = subprocess.Popen(
            [sys.executable, "-c", CHILD, network], cwd=root, env=environment,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        self.times: list[float] = []
        self._read()

    def time(self, seconds: float) -> None:
        """Time calls for so long."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{seconds}\n")
        self.process.stdin.flush()
        self.times += self._read()

    def _read(self) -> list[float]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit("benchmarks.trees: a process ended; its error stands above")
        times: list[float] = json.loads(line)
        return times

    def close(self) -> None:
        """End the process."""
        self.process.communicate()


def measure(roots: list[Path], network: str, rounds: int, seconds: float) -> list[list[float]]:
    """The times of calls, of each tree."""
    trees = [Tree(root, network) for root in roots]
    for number in range(rounds):
        for tree in trees if number % 2 == 0 else reversed(trees):
            tree.time(seconds)
    for tree in trees:
        tree.close()
    return [tree.times for tree in trees]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("trees", nargs=2, type=Path, metavar="TREE", help="the old one first")
    parser.add_argument("--only", default="", help="networks with this text in their name")
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=1.0, help="of calls, a tree and round")
    options = parser.parse_args()
    head = f"{'new':>10}{'ratio':>7}"
    print(f"{'ms':<22}{'least old':>10}{head}{'median old':>12}{head}")
    ratios: list[tuple[float, float]] = []
    for row in chosen(NETWORKS, options.only):
        times = measure(options.trees, row.name, options.rounds, options.seconds)
        if not options.rounds:
            continue
        old, new = [(min(calls) * 1e3, statistics.median(calls) * 1e3) for calls in times]
        ratios.append((new[0] / old[0], new[1] / old[1]))
        print(
            f"{row.name:<22}{old[0]:>10.3f}{new[0]:>10.3f}{ratios[-1][0]:>7.3f}"
            f"{old[1]:>12.3f}{new[1]:>10.3f}{ratios[-1][1]:>7.3f}",
            flush=True,
        )
    if ratios:
        least, median = [statistics.geometric_mean(column) for column in zip(*ratios, strict=True)]
        print(f"{'geometric mean':<22}{'':>20}{least:>7.3f}{'':>22}{median:>7.3f}")


if __name__ == "__main__":
    sys.exit(status_of(main))
