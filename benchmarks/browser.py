"""Networks in WebAssembly: weft beside onnxruntime-web, on one thread of one node process.

    python -m benchmarks.browser [--only ResNet] [--rounds 15] [--npm FOLDER] [--relaxed]

Each network is exported to ONNX. weft compiles that file for the target ``wasm``; onnxruntime-web
reads it as it is. Both are loaded in the same process, which gives them turns, round by round.
Printed: the median of each engine's calls in milliseconds, ± half the distance of the quartiles;
onnxruntime-web's time over weft's (above 1: weft is faster); the bytes of code that a page loads
for each (the module and the script; weights are left out); how far the results are apart.

The package onnxruntime-web is installed by npm into a folder that the script makes, or taken from
``--npm FOLDER``. ``--relaxed`` turns relaxed SIMD on, which node before version 22 has off.
"""

from __future__ import annotations

import argparse
import json
import math
import shutil
import subprocess
import tempfile
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import weft
from benchmarks import networks
from benchmarks.options import chosen, positive, status_of
from weft.support.errors import UnsupportedError

_SCRIPT: Final = Path(__file__).with_name("browser.mjs")
_PACKAGE: Final = "onnxruntime-web@1"
_SECONDS: Final = 900


@dataclass(frozen=True)
class Network:
    """A function of ``benchmarks.networks`` and the shape of its input."""

    name: str
    make: str
    shape: tuple[int, ...]


IMAGE: Final = (1, 3, 224, 224)
NETWORKS: Final = (
    Network("MLP 784-128-10", "mlp", (1, 784)),
    Network("CNN batch 4", "cnn", (4, 1, 28, 28)),
    Network("SqueezeNet 1.1", "squeezenet1_1", IMAGE),
    Network("MobileNetV2", "mobilenet_v2", IMAGE),
    Network("ResNet-18", "resnet18", IMAGE),
)


@dataclass(frozen=True)
class Figures:
    """What node measured on one network: milliseconds of every call, bytes of code, difference."""

    weft: Sequence[float]
    peer: Sequence[float]
    code: tuple[int, int]
    difference: float

    @property
    def ratio(self) -> float:
        """The peer's median over weft's."""
        return _median(self.peer) / _median(self.weft)


def install(folder: Path) -> Path:
    """The folder of the package, from npm; UnsupportedError where it cannot be had."""
    npm = shutil.which("npm")
    if npm is None:
        raise UnsupportedError("benchmarks.browser needs npm, or --npm FOLDER with node_modules")
    (folder / "package.json").write_text('{"private": true}\n', encoding="utf-8")
    try:
        subprocess.run(
            [npm, "install", "--no-audit", "--no-fund", _PACKAGE],
            cwd=folder, capture_output=True, check=True, timeout=_SECONDS,
        )  # fmt: skip
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        raise UnsupportedError(
            f"benchmarks.browser: npm cannot install {_PACKAGE} ({error}); install it elsewhere "
            "and give its folder as --npm"
        ) from error
    return folder


def measure(network: Network, packages: Path, rounds: int, relaxed: bool) -> Figures:
    """Compile one network, and let node time it."""
    with tempfile.TemporaryDirectory(prefix="weft-browser-") as name:
        folder = Path(name)
        onnx = _exported(network, folder)
        weft.compile(str(onnx), target="wasm").save(folder / "weft")
        flags = ["--experimental-wasm-relaxed-simd"] if relaxed else []
        shape = ",".join(map(str, network.shape))
        command = ["node", *flags, str(_SCRIPT), str(folder), str(packages), shape, str(rounds)]
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_SECONDS, check=False
        )
        if done.returncode:
            raise UnsupportedError(f"{network.name}: node failed: {done.stderr.strip()[:400]}")
        row = json.loads((folder / "figures.json").read_text(encoding="utf-8"))
    return Figures(row["weft"], row["peer"], (row["weftBytes"], row["peerBytes"]), row["apart"])


def _exported(network: Network, folder: Path) -> Path:
    """The network as a file of ONNX."""
    import torch  # noqa: PLC0415 - only for the export

    module: Any = getattr(networks, network.make)().eval()
    path = folder / "model.onnx"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(module, (torch.rand(network.shape),), str(path), dynamo=False)
    return path


def _median(values: Sequence[float]) -> float:
    return sorted(values)[len(values) // 2]


def _spread(values: Sequence[float]) -> float:
    ordered = sorted(values)
    distance = ordered[3 * len(values) // 4] - ordered[len(values) // 4]
    return 50 * distance / _median(values)


def run(options: argparse.Namespace) -> int:
    """Measure the chosen networks, and print a table."""
    if shutil.which("node") is None:
        raise UnsupportedError("benchmarks.browser needs node")
    rows = []
    print(f"{'network':18}{'weft ms':>16}{'ort-web ms':>16}{'ratio':>7}{'weft kB':>9}{'ort kB':>8}")
    with tempfile.TemporaryDirectory(prefix="weft-npm-") as folder:
        packages = options.npm or install(Path(folder))
        for network in chosen(NETWORKS, options.only):
            row = measure(network, packages, options.rounds, options.relaxed)
            rows.append(row.ratio)
            cells = [f"{_median(v):.2f} ±{_spread(v):2.0f} %" for v in (row.weft, row.peer)]
            code = "".join(
                [f"{size / 1000:>{w}.0f}" for size, w in zip(row.code, (9, 8), strict=True)]
            )
            print(
                f"{network.name:18}{cells[0]:>16}{cells[1]:>16}{row.ratio:>7.2f}{code}"
                f"  apart {row.difference:.0e}",
                flush=True,
            )
    mean = math.exp(sum([math.log(ratio) for ratio in rows]) / len(rows))
    print(f"geometric mean of {len(rows)} ratios: {mean:.2f}")
    return 0


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.browser", description=__doc__)
    parser.add_argument("--only", default="", metavar="TEXT", help="rows with this text")
    parser.add_argument("--rounds", type=positive, default=15, metavar="N", help="turns of each")
    parser.add_argument(
        "--npm", type=Path, metavar="FOLDER", help="has node_modules/onnxruntime-web"
    )
    parser.add_argument("--relaxed", action="store_true", help="with relaxed SIMD")
    return status_of(lambda: run(parser.parse_args()))


if __name__ == "__main__":
    raise SystemExit(main())
