"""Programs that tests run in a Python process of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path


def output_of(
    program: str,
    *arguments: str,
    env: Mapping[str, str] | None = None,
    cwd: Path | str | None = None,
    timeout: float = 600,
) -> str:
    """What a program prints. Where it fails, an AssertionError has its last words.

    ``env`` is added to the environment of this process.
    """
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        env={**os.environ, **(env or {})},
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def run_file(path: Path, cwd: Path, timeout: float = 600) -> subprocess.CompletedProcess[str]:
    """Run a file as a program of its own, with ``cwd`` as its folder, and keep what it says."""
    paths = os.pathsep.join([str(Path(entry).resolve()) for entry in sys.path])
    return subprocess.run(
        [sys.executable, str(path)],
        env={**os.environ, "PYTHONPATH": paths},
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
