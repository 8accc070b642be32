"""``make wheel-test``: builds the wheel and tries it in a new environment of each Python.

$ python -m tests.packaging                          # 3.11, 3.12 and 3.13, each with its torch
$ python -m tests.packaging 3.12=2.6.0 3.13=none     # others; none: without torch

Prints a table with what ``installed.py`` measures, beside the aims, and stops where a result is
wrong. Times depend on what else the machine does. Environments stay in ``build/wheel-test``, and
are used again. It needs the package build (``pip install -e ".[release]"``).
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from weft.cli.tables import print_table

ROOT: Final = Path(__file__).resolve().parents[2]
VERSIONS: Final = ("3.11=2.13.0", "3.12=2.6.0", "3.13=2.13.0")
AIMS: Final[Mapping[str, float]] = {
    "installed MB": 230.0, "import s": 0.1, "MLP s": 2.0, "viz s": 5.0,
}  # fmt: skip


def main() -> None:
    """Try all that were asked for."""
    parser = argparse.ArgumentParser(prog="python -m tests.packaging", description="test the wheel")
    parser.add_argument("versions", nargs="*", default=VERSIONS, metavar="PYTHON=TORCH")
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "wheel-test")
    options = parser.parse_args()
    wheel = build(options.folder)
    rows = []
    for version in options.versions:
        python, _, torch = version.partition("=")
        figures = tried(python, torch or "none", wheel, options.folder)
        rows.append([f"Python {python}, torch {torch or 'none'}", *map(shown, figures.values())])
        print(*rows[-1], flush=True)
    names = ("installed MB", "import s", "MLP s", "ONNX s", "viz s", "native call")
    print_table(wheel.name, ("environment", *map(aimed, names)), rows)


def build(folder: Path) -> Path:
    """Build the wheel, of a source distribution as a release has it."""
    wheels = folder / "dist"
    shutil.rmtree(wheels, ignore_errors=True)
    subprocess.run(
        [sys.executable, "-m", "build", "--outdir", wheels, ROOT],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    [wheel] = wheels.glob("*.whl")
    return wheel


def tried(python: str, torch: str, wheel: Path, folder: Path) -> dict[str, float]:
    """The figures of one environment, which is made if it is not there."""
    place = folder / f"python-{python}-torch-{torch}"
    own = place / "bin" / "python"
    if not own.exists():
        subprocess.run([interpreter(python), "-m", "venv", place], check=True)
    pip = [own, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    needed = [] if torch == "none" else [f"torch=={torch}"]
    subprocess.run([*pip, *needed, f"weft-compiler[onnx] @ {wheel.as_uri()}"], check=True)
    subprocess.run([*pip, "--force-reinstall", "--no-deps", wheel], check=True)
    clean = {name: text for name, text in os.environ.items() if not name.startswith("PYTHON")}
    program = Path(__file__).with_name("installed.py")
    done = subprocess.run(
        [own, "-W", "error::DeprecationWarning:weft", program],
        env=clean, cwd=place, check=True, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    figures: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return figures


def interpreter(version: str) -> str:
    """An interpreter of that version: installed, or brought by uv where uv is installed."""
    for path in candidates(version):
        probe = [path, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
        done = subprocess.run(probe, capture_output=True, text=True, check=False)
        if done.stdout.strip() == version:
            return path
    if shutil.which("uv"):
        subprocess.run(["uv", "python", "install", version], check=True)
        found = ["uv", "python", "find", version]
        return subprocess.run(found, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    raise SystemExit(f"no Python {version} here: install it, or uv, which brings it")


def candidates(version: str) -> Iterator[str]:
    """Where such an interpreter may be: on the path, or among pyenv's."""
    named = shutil.which(f"python{version}")
    if named:
        yield named
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    yield from map(str, sorted(pyenv.glob(f"{version}.*/bin/python")))


def aimed(name: str) -> str:
    """A heading with the aim, where there is one.

    >>> aimed("import s")
    'import s (≤ 0.1)'
    """
    return f"{name} (≤ {AIMS[name]:g})" if name in AIMS else name


def shown(value: float | None) -> str:
    """A cell.

    >>> shown(0.25), shown(True), shown(None)
    ('0.25', 'yes', '-')
    """
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "-" if value is None else f"{value:.2f}"


if __name__ == "__main__":
    main()
