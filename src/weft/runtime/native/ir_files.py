"""The runtime's own LLVM IR: files beside the modules that load their code."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Final

_ROOT: Final = Path(__file__).parent.parent


@functools.cache
def ir_file(name: str) -> str:
    """The text of a file of LLVM IR, by its path below ``weft/runtime``."""
    return (_ROOT / name).read_text(encoding="utf-8")
