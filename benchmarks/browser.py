"""Networks in a browser: weft beside onnxruntime-web, on one thread and on two.

    python -m benchmarks.browser [--only ResNet] [--rounds 15] [--threads 2] [--npm FOLDER]

Each network is exported to ONNX. weft compiles that file for the target ``wasm``; onnxruntime-web
reads it as it is. A page of headless Chromium loads both and gives them turns, round by round. The
page is isolated (COOP and COEP headers), so that threads may share memory; each number of threads
has a page of its own. By default the numbers are one and two, as far as this process has
processors. Printed: the median of each engine's calls in milliseconds, ± half the distance of the
quartiles; onnxruntime-web's time over weft's (above 1: weft is faster); the bytes of code that a
page loads for each (the module and the scripts; weights are left out); how far results are apart.

Needs Chromium and playwright. The package onnxruntime-web is installed by npm into a folder that
the script makes, or taken from ``--npm FOLDER``; where there is neither, weft is timed alone.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import http.server
import math
import shutil
import subprocess
import tempfile
import threading
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import weft
from benchmarks import networks
from benchmarks.options import chosen, positive, status_of
from weft.support.config import usable_processors
from weft.support.errors import UnsupportedError

_SCRIPT: Final = Path(__file__).with_name("browser.mjs")
_PACKAGE: Final = "onnxruntime-web@1"
_FILES: Final = ("ort.wasm.bundle.min.mjs", "ort-wasm-simd-threaded.wasm")
_THREADS: Final = (1, 2)
_SECONDS: Final = 900
_PAGE: Final = """\
<!doctype html><title>figures</title>
<script type="module">
import { measured } from "./browser.mjs";
window.measured = measured;
</script>
"""


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
    """What a page measured on one network with so many threads.

    Attributes:
        threads: of each engine, as the page counted them.
        weft, peer: milliseconds of samples of calls; the peer's are none where it is not there.
        code: bytes of code of each.
        difference: how far results are apart; None without a peer.
        is_isolated: whether the page might share memory.
    """

    threads: Sequence[int]
    weft: Sequence[float]
    peer: Sequence[float]
    code: tuple[int, int]
    difference: float | None
    is_isolated: bool

    @property
    def ratio(self) -> float | None:
        """The peer's median over weft's."""
        return _median(self.peer) / _median(self.weft) if self.peer else None


class Isolated(http.server.SimpleHTTPRequestHandler):
    """Serves files, to pages that may share memory between threads; logs nothing."""

    def end_headers(self) -> None:
        """The headers that isolate a page."""
        self.send_header("Cross-Origin-Opener-Policy", "same-origin")
        self.send_header("Cross-Origin-Embedder-Policy", "require-corp")
        super().end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def install(folder: Path) -> Path | None:
    """The folder of the package, from npm; None where it cannot be had."""
    npm = shutil.which("npm")
    (folder / "package.json").write_text('{"private": true}\n', encoding="utf-8")
    command = [npm or "npm", "install", "--no-audit", "--no-fund", _PACKAGE]
    try:
        subprocess.run(command, cwd=folder, capture_output=True, check=True, timeout=_SECONDS)
    except (OSError, subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        print(f"npm cannot install {_PACKAGE} ({error}): weft is timed alone; --npm FOLDER has it")
        return None
    return folder


def prepare(network: Network, packages: Path | None, threads: Sequence[int], folder: Path) -> None:
    """Put into a folder what the pages of a network load."""
    shutil.copy(_SCRIPT, folder)
    (folder / "index.html").write_text(_PAGE, encoding="utf-8")
    onnx = _exported(network, folder)
    for count in threads:
        target = f"wasm -num-cores={count}" if count > 1 else "wasm"
        weft.compile(str(onnx), target=target).save(folder / f"weft-{count}")
    if packages is not None:
        dist = packages / "node_modules" / "onnxruntime-web" / "dist"
        (folder / "ort").mkdir()
        for name in _FILES:
            shutil.copy(dist / name, folder / "ort")


def measure(
    network: Network, threads: int, rounds: int, folder: Path, address: str, browser: Any
) -> Figures:
    """Open a page on a folder that was prepared, and let it time the network."""
    page = browser.new_page()
    try:
        page.set_default_timeout(1000 * _SECONDS)
        page.goto(address)
        page.wait_for_function("typeof measured === 'function'")
        row = page.evaluate(
            "(given) => measured(given)",
            {
                "shape": list(network.shape),
                "rounds": rounds,
                "threads": threads,
                "hasPeer": (folder / "ort").is_dir(),
            },
        )
    finally:
        page.close()
    own = folder / f"weft-{threads}"
    scripts = [own / row["module"], *own.glob("*.js")]
    peers = [folder / "ort" / name for name in _FILES if (folder / "ort").is_dir()]
    code = (_bytes(scripts), _bytes(peers))
    return Figures(
        row["threads"], row["weft"], row["peer"], code, row["apart"], row["isolated"]
    )  # fmt: skip


@contextlib.contextmanager
def serving(folder: Path) -> Iterator[str]:
    """The address at which a server offers a folder."""
    handler = functools.partial(Isolated, directory=str(folder))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        server.server_close()


@contextlib.contextmanager
def chromium() -> Iterator[Any]:
    """A headless browser; UnsupportedError where there is none."""
    path = shutil.which("chromium")
    try:
        from playwright.sync_api import sync_playwright  # noqa: PLC0415 - only here
    except ImportError as error:
        raise UnsupportedError("benchmarks.browser needs playwright") from error
    if path is None:
        raise UnsupportedError("benchmarks.browser needs chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()


def _exported(network: Network, folder: Path) -> Path:
    """The network as a file of ONNX."""
    import torch  # noqa: PLC0415 - only for the export

    module: Any = getattr(networks, network.make)().eval()
    path = folder / "model.onnx"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(module, (torch.rand(network.shape),), str(path), dynamo=False)
    return path


def _bytes(files: Sequence[Path]) -> int:
    return sum([file.stat().st_size for file in files])


def _median(values: Sequence[float]) -> float:
    return sorted(values)[len(values) // 2]


def _spread(values: Sequence[float]) -> float:
    ordered = sorted(values)
    distance = ordered[3 * len(values) // 4] - ordered[len(values) // 4]
    return 50 * distance / _median(values)


def _line(network: Network, threads: int, row: Figures) -> str:
    """A row of the table."""
    cells = [f"{_median(v):.2f} ±{_spread(v):2.0f} %" if v else "-" for v in (row.weft, row.peer)]
    ratio = "-" if row.ratio is None else f"{row.ratio:.2f}"
    code = [f"{size / 1000:.0f}" if size else "-" for size in row.code]
    apart = "" if row.difference is None else f"  apart {row.difference:.0e}"
    return (
        f"{network.name:18}{threads:>8}{cells[0]:>16}{cells[1]:>16}{ratio:>7}{code[0]:>9}"
        f"{code[1]:>8}{apart}"
    )


def run(options: argparse.Namespace) -> int:
    """Measure the chosen networks, and print a table."""
    most = usable_processors()
    threads = options.threads or [count for count in _THREADS if count <= most]
    if not options.threads and len(threads) < len(_THREADS):
        print(f"this process has {most} processor: two threads are left out (--threads 2)")
    ratios: dict[int, list[float]] = {count: [] for count in threads}
    with tempfile.TemporaryDirectory(prefix="weft-npm-") as name, chromium() as browser:
        packages = options.npm or install(Path(name))
        print(
            f"{'network':18}{'threads':>8}{'weft ms':>16}{'ort-web ms':>16}{'ratio':>7}"
            f"{'weft kB':>9}{'ort kB':>8}"
        )
        for network in chosen(NETWORKS, options.only):
            with tempfile.TemporaryDirectory(prefix="weft-browser-") as place:
                prepare(network, packages, threads, Path(place))
                with serving(Path(place)) as address:
                    for count in threads:
                        row = measure(
                            network, count, options.rounds, Path(place), address, browser
                        )  # fmt: skip
                        ratios[count] += [] if row.ratio is None else [row.ratio]
                        print(_line(network, count, row), flush=True)
    for count, own in ratios.items():
        if own:
            mean = math.exp(sum([math.log(ratio) for ratio in own]) / len(own))
            print(f"geometric mean of {len(own)} ratios with threads={count}: {mean:.2f}")
    return 0


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.browser", description=__doc__)
    parser.add_argument("--only", default="", metavar="TEXT", help="rows with this text")
    parser.add_argument("--rounds", type=positive, default=15, metavar="N", help="turns of each")
    parser.add_argument(
        "--threads", type=positive, action="append", metavar="N", help="several may be given"
    )
    parser.add_argument(
        "--npm", type=Path, metavar="FOLDER", help="has node_modules/onnxruntime-web"
    )
    return status_of(lambda: run(parser.parse_args()))


if __name__ == "__main__":
    raise SystemExit(main())
