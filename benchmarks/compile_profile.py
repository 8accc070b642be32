"""Where the seconds of a cold compilation go, and what peers take: for ``compile_time --profile``.

    python -m benchmarks.compile_profile weft mlp

prints, as JSON, what the compilation of one network took, in this process, which must be new: the
seconds of each phase that ``weft.support.progress.watching`` tells of, less those of phases within
it. The package's import and the first call are phases too. It begins with the program that
``torch.export`` gives, whose own seconds are told apart. Instead of ``weft`` there may be one of
``PEERS``: how long ONNX Runtime takes to load the network as ONNX, and torch.compile to its first
call. PyTorch's own import, and the export to ONNX, are counted for nobody.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from benchmarks.networks import NETWORKS

TITLES: Final = {
    "start": "import weft",
    "import": "import of the program",
    "graph": "passes on the graph",
    "schedules": "schedules",
    "lowering": "lowering",
    "emission": "emission of LLVM IR",
    "LLVM": "waiting for LLVM",
    "joining": "joining objects",
    "loading": "loading",
    "cache": "cache",
    "call": "first call",
}
"""Each phase, in the order of the table -> its name there. What is in none of them is the rest."""


def network(name: str) -> tuple[Any, tuple[Any, ...]]:
    """A network of ``benchmarks.networks`` and its inputs, as PyTorch has them."""
    torch = importlib.import_module("torch")
    networks = importlib.import_module("benchmarks.networks")
    [row] = [row for row in NETWORKS if row.model.endswith(f":{name}")]
    model = getattr(networks, name)().eval()
    return model, tuple(torch.from_numpy(array) for array in row.arrays().values())


def profile_weft(name: str) -> dict[str, Any]:
    """Seconds by phase, of all together, and of the processors that workers used."""
    model, examples = network(name)
    torch = importlib.import_module("torch")
    begin = time.perf_counter()
    with torch.no_grad():
        program = torch.export.export(model, examples)
    export = time.perf_counter() - begin
    before = sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])
    begin = time.perf_counter()
    compile_model = importlib.import_module("weft").compile  # loads the driver's modules, too
    progress = importlib.import_module("weft.support.progress")
    clock = progress.PhaseClock({"start": time.perf_counter() - begin})
    with progress.watching(clock.watch):
        compiled = compile_model(program)
    clock.watch("call", True)
    compiled(*examples)
    clock.watch("call", False)
    whole = time.perf_counter() - begin
    importlib.import_module("weft.codegen.llvm.worker_pool").POOL.close()  # its times come then
    workers = sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2]) - before
    return {"phases": clock.seconds, "whole": whole, "workers": workers, "export": export}


def load_onnx(name: str) -> dict[str, Any]:
    """Seconds for which ONNX Runtime is imported and reads the network."""
    torch = importlib.import_module("torch")
    model, examples = network(name)
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "model.onnx")
        with torch.no_grad():
            torch.onnx.export(model, examples, path, dynamo=False)
        begin = time.perf_counter()
        onnxruntime = importlib.import_module("onnxruntime")
        onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
        return {"whole": time.perf_counter() - begin}


def call_torch_compile(name: str) -> dict[str, Any]:
    """Seconds from ``torch.compile`` to the end of its first call."""
    torch = importlib.import_module("torch")
    model, examples = network(name)
    with torch.no_grad():
        begin = time.perf_counter()
        torch.compile(model)(*examples)
        return {"whole": time.perf_counter() - begin}


PEERS: Final[dict[str, tuple[Callable[[str], dict[str, Any]], str, tuple[str, ...]]]] = {
    "onnxruntime": (load_onnx, "ONNX Runtime loads it", ("onnxruntime", "onnx")),
    "torch.compile": (call_torch_compile, "torch.compile's first call", ("torch",)),
}
"""Name -> (what is timed, how the table calls it, the packages that it needs)."""


def missing(peer: str) -> list[str]:
    """The packages that a peer lacks here."""
    return [name for name in PEERS[peer][2] if importlib.util.find_spec(name) is None]


def main() -> None:
    """Profile one network in this process, and print what it took."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("engine", choices=["weft", *PEERS])
    parser.add_argument("network", choices=[row.model.partition(":")[2] for row in NETWORKS])
    options = parser.parse_args()
    measure = profile_weft if options.engine == "weft" else PEERS[options.engine][0]
    print(json.dumps(measure(options.network)))


if __name__ == "__main__":
    main()
