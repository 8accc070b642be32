"""Modules of WebAssembly for tests, on one thread or several."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import weft.backends.wasm
from weft.backends.wasm.link import Linked, link
from weft.backends.wasm.package import runtime_objects


def linked_for(threads: int, code: bytes, exports: Sequence[str], path: Path) -> Linked:
    """Write the module of some object code; that of several threads with what starts them."""
    if threads == 1:
        module = link([code, *runtime_objects()], exports)
    else:
        own = ("weft_close", "weft_enter", "weft_serve", "weft_leave")
        module = link([code, *runtime_objects("threads")], [*exports, *own], threads)
        for name in ("threads.js", "worker.js"):
            shutil.copy(Path(weft.backends.wasm.__file__).with_name(name), path.parent)
        (path.parent / "package.json").write_text('{"type": "module"}', encoding="utf-8")
    path.write_bytes(module.code)
    return module
