"""How long a model takes from torch to its first call: cold, with object code kept, from the cache.

    python -m benchmarks.compile_time [--models resnet18 resnet50 bert] [--repeats 3]

The models are those of ``benchmarks/networks.py``, by the names of the functions that make them.
Each run is a process of its own with a cache folder of its own; *cold* finds nothing, *objects* the
machine code of kernels, *models* the whole model. Printed, medians: seconds of the wall and of the
processors for ``weft.compile`` (its imports and workers included, torch's import not), the time to
load the saved file in a process that imports ``weft.runtime`` only, and the size of the file.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

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
    environment = {**os.environ, "WEFT_CACHE_DIR": str(cache)}
    environment.pop("WEFT_NO_CACHE", None)
    done = subprocess.run(
        [sys.executable, "-c", program, name, str(file)], env=environment, capture_output=True,
        text=True, check=True,
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


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    names = [row.model.partition(":")[2] for row in NETWORKS]
    chosen = ["resnet18", "resnet50", "bert"]
    parser.add_argument("--models", nargs="*", choices=names, default=chosen, metavar="NAME")
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
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
