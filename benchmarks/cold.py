"""The environment of a process that compiles from nothing, as an installed weft does it."""

from __future__ import annotations

import compileall
import os
from pathlib import Path

import weft


def cold_environment(cache: str | Path) -> dict[str, str]:
    """This process's environment, with empty caches in a folder and weft's bytecode in place.

    An installer compiles a package to bytecode. Where ``PYTHONDONTWRITEBYTECODE`` is set, each
    process of a checkout would do so again, for a second or two.
    """
    compileall.compile_dir(Path(weft.__file__).parent, quiet=2)
    caches = {"WEFT_CACHE_DIR": str(cache), "TORCHINDUCTOR_CACHE_DIR": str(cache)}
    kept = {name: value for name, value in os.environ.items() if name != "WEFT_NO_CACHE"}
    return {**kept, **caches}
