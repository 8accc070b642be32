"""How long a model takes from torch to its first call: cold, with object code kept, from the cache.

    python -m benchmarks.compile_time [--models resnet18 resnet50 bert] [--repeats 3] [--profile]

The models are those of ``benchmarks/networks.py``, by the names of the functions that make them.
Each run is a process of its own with a cache folder of its own; *cold* finds nothing, *objects* the
machine code of kernels, *models* the whole model. Printed, medians: seconds of the wall and of the
processors for ``weft.compile`` (its imports and workers included, torch's import not), the time to
load the saved file in a process that imports ``weft.runtime`` only, and the size of the file.

With ``--profile`` a cold compilation is taken apart instead, from the program that ``torch.export``
gives (its own seconds stand below) up to the end of the first call
(``benchmarks/compile_profile.py``): of the run whose whole is the median, the seconds of the wall
that each phase takes in the main process, and those of the processors that its workers take beside
it: LLVM, and children that lower kernels. ``--peers`` says what is measured beside it, each in a
process of its own with empty caches: how long ONNX Runtime takes to load the network, torch.compile
to run it.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.cold import cold_environment
from benchmarks.compile_profile import PEERS, TITLES, missing
from benchmarks.networks import NETWORKS

COMPILE = """
import json, resource, sys, time
import torch
from benchmarks import networks
[row] = [row for row in networks.NETWORKS if row.model.endswith(":" + sys.argv[1])]
model = getattr(networks, sys.argv[1])().eval()
examples = tuple(torch.from_numpy(array) for array in row.arrays().values())
wall, processor = time.perf_counter(), time.process_time()
import weft
compiled = weft.compile(model, examples)
times = [time.perf_counter() - wall, time.process_time() - processor]
from weft.codegen.llvm.worker_pool import POOL
POOL.close()  # what its workers took is known once they have ended
times[1] += sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])
compiled.save(sys.argv[2])
print(json.dumps(times))
"""
LOAD = """
import json, sys, time
wall, processor = time.perf_counter(), time.process_time()
import weft.runtime
weft.runtime.load(sys.argv[2])
print(json.dumps((time.perf_counter() - wall, time.process_time() - processor)))
"""


def timed(program: str, name: str, file: Path, cache: Path) -> tuple[float, float]:
    """Seconds of the wall and of the processor that a process reports."""
    done = subprocess.run(
        [sys.executable, "-c", program, name, str(file)], env=cold_environment(cache),
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    wall, processor = json.loads(done.stdout)
    return wall, processor


def measure(name: str, folder: Path) -> dict[str, tuple[float, float]]:
    """One run of each kind."""
    cache, file = folder / "cache", folder / "model.weft"
    found = {"cold": timed(COMPILE, name, file, cache)}
    found["models"] = timed(COMPILE, name, file, cache)
    shutil.rmtree(cache / "models")
    found["objects"] = timed(COMPILE, name, file, cache)
    found["load"] = timed(LOAD, name, file, cache)
    return found


def profiled(engine: str, name: str) -> dict[str, Any]:
    """What ``benchmarks.compile_profile`` prints in a process with empty caches.

    Raises subprocess.CalledProcessError.
    """
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.compile_profile", engine, name],
            env=cold_environment(folder), capture_output=True, text=True, check=True,
        )  # fmt: skip
    figures: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return figures


def print_profile(name: str, peers: Sequence[str], repeats: int) -> None:
    """Print the phases of a network's cold compilation, and what peers take."""
    runs = sorted((profiled("weft", name) for _ in range(repeats)), key=lambda run: run["whole"])
    run = runs[(len(runs) - 1) // 2]
    phases, whole = run["phases"], run["whole"]
    parts = {title: phases.get(key, 0.0) for key, title in TITLES.items()}
    parts["rest"] = whole - sum(phases.values())
    print(f"{name:<16}{'':<28}{'wall s':>8}{'share':>8}")
    for title, seconds in parts.items():
        print(f"{name:<16}{title:<28}{seconds:>8.2f}{seconds / whole:>8.0%}")
    print(f"{name:<16}{'whole':<28}{whole:>8.2f}{1:>8.0%}")
    print(f"{name:<16}{'workers, cpu s':<28}{run['workers']:>8.2f}")
    print(f"{name:<16}{'torch.export, before':<28}{run['export']:>8.2f}")
    for peer in peers:
        print(f"{name:<16}{PEERS[peer][1]:<28}{peer_seconds(peer, name, repeats)}")


def peer_seconds(peer: str, name: str, repeats: int) -> str:
    """The median of the seconds that a peer takes, or why there are none."""
    lacking = missing(peer)
    if lacking:
        return f"       -  skipped: {' and '.join(lacking)} not installed"
    try:
        times = [profiled(peer, name)["whole"] for _ in range(repeats)]
    except subprocess.CalledProcessError as error:
        lines = [
            line for line in error.stderr.splitlines() if re.match(r"\S+(Error|Exception)", line)
        ]
        return f"       -  failed: {(lines or ['no reason given'])[-1][:100]}"
    return f"{statistics.median(times):>8.2f}"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    names = [row.model.partition(":")[2] for row in NETWORKS]
    chosen = ["resnet18", "resnet50", "bert"]
    parser.add_argument("--models", nargs="*", choices=names, default=chosen, metavar="NAME")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--profile", action="store_true", help="take a cold compilation apart")
    parser.add_argument("--peers", nargs="*", choices=PEERS, default=list(PEERS), metavar="NAME")
    options = parser.parse_args()
    if options.profile:
        for name in options.models:
            print_profile(name, options.peers, options.repeats)
        return
    print(f"{'model':<12}{'':<10}{'wall s':>8}{'cpu s':>8}")
    for name in options.models:
        runs = []
        for _ in range(options.repeats):
            with tempfile.TemporaryDirectory() as folder:
                runs.append(measure(name, Path(folder)))
                size = Path(folder, "model.weft").stat().st_size
        for kind in ("cold", "objects", "models", "load"):
            wall, processor = (
                statistics.median([run[kind][which] for run in runs]) for which in (0, 1)
            )
            print(f"{name:<12}{kind:<10}{wall:>8.2f}{processor:>8.2f}")
        print(f"{name:<12}{'file':<10}{size / 1e6:>8.1f} MB")


if __name__ == "__main__":
    main()
