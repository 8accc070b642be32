"""How long files take to compile that are no network of ``benchmarks.networks``.

    python -m benchmarks.compile_file model.onnx [more.onnx ...]

Each file is compiled in a process of its own with an empty cache. Printed: seconds of the wall, of
the processor for the process that compiles, and for its children (LLVM, and lowering). ``weft`` is
imported and its children are started within these times.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.cold import cold_environment

COMPILE = """
import json, resource, sys, time
wall, processor = time.perf_counter(), time.process_time()
import weft
weft.compile(sys.argv[1])
wall, processor = time.perf_counter() - wall, time.process_time() - processor
from weft.codegen.llvm.worker_pool import POOL
POOL.close()  # what its workers took is known once they have ended
children = sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])
print(json.dumps((wall, processor, children)))
"""


def seconds_of(file: Path) -> tuple[float, float, float]:
    """Wall, processor and children of one cold compilation."""
    with tempfile.TemporaryDirectory() as cache:
        done = subprocess.run(
            [sys.executable, "-c", COMPILE, str(file)],
            env=cold_environment(cache),
            stdout=subprocess.PIPE, text=True, check=True,
        )  # fmt: skip
    wall, processor, children = json.loads(done.stdout.splitlines()[-1])
    return wall, processor, children


def main() -> None:
    """Print a row for each file."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("files", nargs="+", type=Path)
    print(f"{'file':32} {'wall':>7} {'process':>8} {'children':>9}")
    for file in parser.parse_args().files:
        wall, processor, children = seconds_of(file)
        print(f"{file.name:32} {wall:7.1f} {processor:8.1f} {children:9.1f}", flush=True)


if __name__ == "__main__":
    main()
