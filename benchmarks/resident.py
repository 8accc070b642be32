"""Memory of networks in use: weft beside ONNX Runtime.

    python benchmarks/resident.py [--only TEXT]

For each network of ``python -m benchmarks models``: working memory, outputs and packed copies of
weights, and the most that a fresh process that only loads the stored model and runs it twice had
resident (``VmHWM`` of Linux). Of weft that is ``CompiledModel.memory()`` without as many bytes as
the ONNX file has, which are mostly weights; of ONNX Runtime what its arena had from the system, as
its log says, which has working memory, outputs and weights that it packed. Models are stored
before, in other processes: a ``.weft`` file, an ``.onnx`` file.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.networks import NETWORKS
from benchmarks.options import chosen, status_of
from benchmarks.rows import Row

STORE = """
import sys, numpy as np, torch, weft
from weft.cli.models import find_model
folder, name = sys.argv[1:]
stored = np.load(f"{folder}/inputs.npz")
inputs = tuple([torch.from_numpy(stored[key]) for key in stored])
model = find_model(name).eval()
torch.onnx.export(model, inputs, f"{folder}/model.onnx", dynamo=False)
weft.compile(model, inputs, cache=False).save(f"{folder}/model.weft")
"""
RUN = {
    "weft": """
import sys, numpy as np, weft.runtime
stored = np.load(f"{sys.argv[1]}/inputs.npz")
inputs = [stored[key] for key in stored]
model = weft.runtime.load(f"{sys.argv[1]}/model.weft")
model(*inputs), model(*inputs)
print("held", model.memory(*inputs).total)
""",
    "ONNX Runtime": """
import sys, numpy as np, onnxruntime
stored = np.load(f"{sys.argv[1]}/inputs.npz")
options = onnxruntime.SessionOptions()
onnxruntime.set_default_logger_severity(0)
options.log_severity_level = 0
session = onnxruntime.InferenceSession(
    f"{sys.argv[1]}/model.onnx", options, providers=["CPUExecutionProvider"])
feed = dict(zip([item.name for item in session.get_inputs()], [stored[key] for key in stored]))
session.run(None, feed), session.run(None, feed)
""",
}
RESIDENT = """
print("resident", next(int(line.split()[1]) * 1024 for line in open("/proc/self/status")
                       if line.startswith("VmHWM")))
"""
HELD = re.compile(r"(?:held|Total allocated bytes:) (\d+)")
MIB = 1 << 20


def child(program: str, *arguments: str) -> str:
    """What a program of a process of its own prints, on both channels."""
    command = [sys.executable, "-c", program, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr[-800:])
    return done.stdout + done.stderr


def measured(engine: str, folder: str) -> tuple[int, int]:
    """Bytes held and bytes resident."""
    told = child(RUN[engine] + RESIDENT, folder)
    resident = re.search(r"resident (\d+)", told)
    held = [int(found) for found in HELD.findall(told)]
    if resident is None or not held:
        raise RuntimeError(f"{engine} tells no size: {told[-300:]}")
    return max(held), int(resident[1])


def show(row: Row) -> None:
    """Print a network's line."""
    with tempfile.TemporaryDirectory() as folder:
        np.savez(f"{folder}/inputs.npz", **row.arrays())
        child(STORE, folder, row.model)
        weights = Path(folder, "model.onnx").stat().st_size
        own, peer = [measured(engine, folder) for engine in RUN]
    working = max(own[0] - weights, 0)
    print(
        f"{row.name:20}{weights / MIB:9.1f}{working / MIB:11.1f}{peer[0] / MIB:9.1f}"
        f"{working / peer[0]:7.2f}{own[1] / MIB:12.1f}{peer[1] / MIB:9.1f}{own[1] / peer[1]:7.2f}",
        flush=True,
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", metavar="TEXT", help="networks with this text")
    options = parser.parse_args()
    print(f"{'MiB':20}{'onnx file':>9}{'work: weft':>11}{'ORT':>9}{'ratio':>7}"
          f"{'resident: weft':>14}{'ORT':>7}{'ratio':>7}")  # fmt: skip
    for row in chosen(NETWORKS, options.only):
        show(row)


if __name__ == "__main__":
    raise SystemExit(status_of(main))
