"""What the recording behind ``weft viz`` adds to a compilation.

    python -m benchmarks.recording [--models resnet18] [--rounds 3]

A recording keeps the modules between passes, which are not copied; text is made when it is asked
for. What is recorded gets its schedules in one process: children could not tell of their
decisions. Each compilation here is a process of its own without a cache; with and without take
turns. Printed: the least seconds of the wall and of the processors, and the shares that recording
adds.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from typing import Final

from benchmarks.cold import cold_environment
from benchmarks.networks import NETWORKS
from benchmarks.options import positive

COMPILE: Final = """
import contextlib, resource, sys, time
import torch, weft
from benchmarks.compile_profile import network
from weft import compile
from weft.codegen.llvm.worker_pool import POOL
from weft.driver.recording import recording
from weft.target import Target

def seconds():
    usages = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)

model, examples = network(sys.argv[1])
with torch.no_grad():
    program = torch.export.export(model, examples)
begin, wall = seconds(), time.perf_counter()
with recording(Target("llvm")) if sys.argv[2] == "with" else contextlib.nullcontext():
    compile(program)
wall = time.perf_counter() - wall
POOL.close()  # what its workers took is known once they have ended
print(wall, seconds() - begin)
"""


def compile_once(name: str, kind: str) -> tuple[float, float]:
    """Seconds of the wall and of the processors, ``"with"`` a recording or ``"without"`` it."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**cold_environment(folder), "WEFT_NO_CACHE": "1"}
        command = [sys.executable, "-c", COMPILE, name, kind]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    wall, processors = map(float, done.stdout.split())
    return wall, processors


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    names = [row.model.partition(":")[2] for row in NETWORKS]
    parser.add_argument("--models", nargs="*", choices=names, default=["resnet18"], metavar="NAME")
    parser.add_argument("--rounds", type=positive, default=3)
    options = parser.parse_args()
    print(f"{'model':<16}{'seconds':<12}{'without':>9}{'with':>9}{'adds':>8}")
    for name in options.models:
        times: dict[str, list[tuple[float, float]]] = {"without": [], "with": []}
        for _ in range(options.rounds):
            for kind, runs in times.items():
                runs.append(compile_once(name, kind))
        for which, title in enumerate(("wall", "processors")):
            plain, recorded = (min(run[which] for run in runs) for runs in times.values())
            adds = recorded / plain - 1
            print(f"{name:<16}{title:<12}{plain:>9.2f}{recorded:>9.2f}{adds:>8.1%}")


if __name__ == "__main__":
    main()
