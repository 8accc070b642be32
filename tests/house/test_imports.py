"""What importing loads, each seen in a fresh process."""

from __future__ import annotations

import subprocess
import sys

import pytest

OPTIONAL = (
    "torch", "onnx", "IPython", "matplotlib", "ml_dtypes", "pygments", "rich", "safetensors",
)  # fmt: skip
MOST = 20
"""Modules of weft that ``import weft`` may load: the rest comes with the first use of a name."""


def run(program: str, root) -> str:
    return subprocess.run(
        [sys.executable, "-c", program], cwd=root, capture_output=True, text=True, check=True
    ).stdout


def test_import_weft_loads_few_modules(root):
    program = "import sys, weft; print(*sys.modules)"
    own = [name for name in run(program, root).split() if name.split(".")[0] == "weft"]
    assert len(own) < MOST, f"import weft loads {len(own)} modules of its own"


@pytest.mark.parametrize("name", OPTIONAL)
def test_import_weft_does_not_load(name, root):
    assert run(f"import sys, weft; print({name!r} in sys.modules)", root).strip() == "False"


def test_the_runtime_needs_no_compiler(root):
    program = "import sys, weft.runtime; print(*sorted(m for m in sys.modules if 'weft' in m))"
    rooms = {name.split(".")[1] for name in run(program, root).split() if "." in name}
    assert rooms <= {"runtime", "support"}, f"import weft.runtime loads {sorted(rooms)}"
