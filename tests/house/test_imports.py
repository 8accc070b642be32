"""What importing costs and loads, each measured in a fresh process."""

from __future__ import annotations

import statistics
import subprocess
import sys

import pytest

OPTIONAL = (
    "torch", "onnx", "IPython", "matplotlib", "ml_dtypes", "pygments", "rich", "safetensors",
)  # fmt: skip


def run(program: str, root) -> str:
    return subprocess.run(
        [sys.executable, "-c", program], cwd=root, capture_output=True, text=True, check=True
    ).stdout


def test_import_weft_takes_less_than_half_a_second(root):
    program = (
        "import time; start = time.perf_counter(); import weft; print(time.perf_counter() - start)"
    )
    seconds = statistics.median(float(run(program, root)) for _ in range(3))
    assert seconds < 0.5, f"import weft took {seconds:.2f} s"


@pytest.mark.parametrize("name", OPTIONAL)
def test_import_weft_does_not_load(name, root):
    assert run(f"import sys, weft; print({name!r} in sys.modules)", root).strip() == "False"


def test_the_runtime_needs_no_compiler(root):
    program = "import sys, weft.runtime; print(*sorted(m for m in sys.modules if 'weft' in m))"
    rooms = {name.split(".")[1] for name in run(program, root).split() if "." in name}
    assert rooms <= {"runtime", "support"}, f"import weft.runtime loads {sorted(rooms)}"
