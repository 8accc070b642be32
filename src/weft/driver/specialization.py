"""Programs for single sizes of a model of symbolic sizes, compiled in a process of their own.

``weft.compile`` keeps the imported model in the cache of models, beside the compiled one. Where
calls of some extents have taken long (``weft.runtime.model.hot_shapes``), a process with weft, and
without the model's framework, reads it, puts numbers for the symbols, compiles, and writes the
result to the cache; this process loads it from there. The process runs at a low priority and ends
with this one. docs/design/0021-hot-shapes.md says why.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from weft.codegen.llvm.worker_process import can_start
from weft.driver import model_cache
from weft.driver.model_source import ModelSource
from weft.driver.sources import Imported
from weft.runtime.model.compiled_model import CompiledModel
from weft.runtime.model.hot_shapes import Extents, HotShapes, places_of
from weft.support.errors import CodegenError
from weft.target.target import Target

_PROGRAM: Final = """
import json, sys
job = json.loads(sys.argv[1])
sys.path[:] = job["sys_path"]
from weft.driver.specialization_worker import work
work(job)
"""
_LONGEST_WORDS: Final = 400


def keep_source(
    key: str, model: CompiledModel, target: Target, pipelines: tuple[object, object]
) -> None:
    """Keep what a process needs to compile the model again, for single sizes.

    Only for a model with symbols.
    """
    if _places(model) is None or model.states:
        return
    imported = Imported(model.mod, model.signature, entry=model.entry)
    data = ModelSource.of(imported, target, pipelines).to_bytes()
    if data is not None:
        model_cache.store_source(key, data)


def attach(model: CompiledModel, key: str, most: int) -> None:
    """Let a model of symbolic sizes have programs for up to ``most`` hot sizes.

    Nothing happens where there is no source to compile, or no process can be started.
    """
    places = _places(model)
    if places is None or most <= 0 or not can_start() or model_cache.source_path(key) is None:
        return
    symbols = [symbol for symbol, _, _ in places]

    def compiler(extents: Extents, num_threads: int | None) -> CompiledModel:
        return _compiled(key, dict(zip(symbols, extents, strict=True)), num_threads)

    model.hot_shapes = HotShapes(model.signature.name, places, most, compiler)
    model.hot_shapes.set_num_threads(model.num_threads)


def _places(model: CompiledModel) -> list[tuple[str, int, int]] | None:
    """Where the extents of a call are; None for a model whose calls always run one program."""
    if model.signature.states or model.signature.written:
        return None  # a call that fails half-way must not run twice
    return places_of(model.program.functions[model.entry].params)


def _compiled(key: str, extents: Mapping[str, int], num_threads: int | None) -> CompiledModel:
    """The program for these extents, from the cache or compiled by a process that puts it there."""
    own = hashlib.blake2b(f"{key} {sorted(extents.items())}".encode(), digest_size=20).hexdigest()
    model = model_cache.load(own, num_threads)
    if model is None:
        path = model_cache.source_path(key)
        if path is None:
            raise CodegenError("the imported model is no longer in the cache; compile it again")
        _run(path, own, extents)
        model = model_cache.load(own, num_threads)
    if model is None:
        raise CodegenError("the cache of models did not take the program (WEFT_MODEL_CACHE_SIZE)")
    return model


def _run(source: Path, key: str, extents: Mapping[str, int]) -> None:
    """Let a process compile; CodegenError with its last words where it does not succeed."""
    job = {"source": str(source), "key": key, "extents": dict(extents), "sys_path": sys.path}
    with subprocess.Popen(
        [sys.executable, "-c", _PROGRAM, json.dumps(job)],
        stdin=subprocess.PIPE,  # it ends when this closes
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,  # Ctrl-C is for this process
    ) as process:
        try:
            assert process.stderr is not None
            words = process.stderr.read().decode(errors="replace")
            process.wait()
        except BaseException:
            process.kill()
            raise
    if process.returncode:
        raise CodegenError(
            f"the process that compiles for {dict(extents)} ended with status "
            f"{process.returncode}: {' '.join(words.split())[-_LONGEST_WORDS:]}"
        )
