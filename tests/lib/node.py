"""Models for the target ``wasm`` in node, for tests: arrays in, arrays out."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import numpy as np

NODE = shutil.which("node")
RELAXED_FLAG = "--experimental-wasm-relaxed-simd"
"""Turns relaxed SIMD on in node before version 22, which has it on."""
_RUN = Path(__file__).with_name("run_model.mjs")


class JavaScriptError(Exception):
    """What a script threw: its class and its message, as ``Error: text``."""


def missing() -> str:
    """Why no model can run in node here; nothing if it can."""
    if NODE is None:
        return "there is no node"
    version = subprocess.run([NODE, "--version"], capture_output=True, text=True, check=True).stdout
    return "" if int(version[1:].split(".")[0]) >= 18 else f"node {version.strip()} is before 18"


def node(arguments: Sequence[str], folder: Path) -> str:
    """What a script prints; JavaScriptError for what it throws."""
    assert NODE is not None
    done = subprocess.run(
        [NODE, *arguments], cwd=folder, capture_output=True, text=True, timeout=3600, check=False
    )
    if done.returncode == 9:
        raise JavaScriptError(done.stdout.strip())
    assert done.returncode == 0, f"{done.returncode}: {done.stdout}{done.stderr}"
    return done.stdout


def run_in_node(
    folder: Path, *calls: Sequence[np.ndarray], relaxed: bool = False
) -> list[list[np.ndarray]]:
    """The outputs of calls of the model in a folder, one after the other in one process."""
    described = []
    for number, arrays in enumerate(calls):
        row = []
        for index, array in enumerate(map(np.asarray, arrays)):
            name = f"in_{number}_{index}.bin"
            (folder / name).write_bytes(np.ascontiguousarray(array).tobytes())
            row.append({"file": name, "shape": list(array.shape), "dtype": array.dtype.name})
        described.append(row)
    (folder / "calls.json").write_text(json.dumps(described), encoding="utf-8")
    flags = [RELAXED_FLAG] if relaxed else []
    printed = json.loads(node([*flags, str(_RUN), str(folder)], folder))
    wanted = "model-relaxed.wasm" if relaxed else "model.wasm"
    assert printed["module"] == wanted or not relaxed, printed["module"]
    return [
        [
            np.frombuffer((folder / item["file"]).read_bytes(), item["dtype"]).reshape(
                item["shape"]
            )
            for item in row
        ]
        for row in printed["results"]
    ]
