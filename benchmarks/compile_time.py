"""How long a model takes from torch to its first call: cold, with object code kept, from the cache.

    python benchmarks/compile_time.py [--models resnet18 resnet50] [--repeats 3]

Each run is a process of its own with a cache folder of its own; *cold* finds nothing, *objects*
the machine code of kernels, *models* the whole model. Printed, medians: seconds of the wall and of
the processor for ``weft.compile`` (its imports included, torch's not), the time to load the saved
file in a process that imports ``weft.runtime`` only, and the size of the file.
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

COMPILE = """
import json, sys, time
import torch
from weft.testing.zoo import import_torchvision
models = import_torchvision().models
torch.manual_seed(0)
model = getattr(models, sys.argv[1])().eval()
example = torch.zeros(1, 3, 224, 224)
wall, processor = time.perf_counter(), time.process_time()
import weft
compiled = weft.compile(model, (example,))
times = time.perf_counter() - wall, time.process_time() - processor
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
    parser.add_argument("--models", nargs="*", default=["resnet18", "resnet50"])
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
