"""A model as a folder for node and browsers.

``model.wasm`` and ``model-relaxed.wasm`` (the code), ``weights.bin`` (constants and the first
values of states, behind a table of their offsets), ``model.js`` (an ES module), ``model.d.ts``,
``package.json``, ``index.html``.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np

from weft.backends.cpu.isa.wasm import BASE
from weft.backends.wasm.code import Variants, options_of, unpacked
from weft.backends.wasm.link import MOST_THREADS, link
from weft.backends.wasm.module_text import ModuleText, Threads
from weft.backends.wasm.object_file import read_object
from weft.backends.wasm.page import page_of
from weft.codegen.llvm.compile import compile_text
from weft.runtime.artifact.weft_file import Artifact, write_file
from weft.runtime.call.abi import PARALLEL, PARALLEL_BRIEF
from weft.runtime.export.described_call import DescribedCall
from weft.runtime.export.library import obstacle_of_entry
from weft.runtime.model.signature import Signature
from weft.runtime.ndarray import NDArray
from weft.runtime.vm.bytecode import NativeEntry
from weft.support.errors import ArtifactError, UnsupportedError
from weft.target.target import Target

_ALIGNMENT: Final = 64
_CALLED: Final = ("aligned_alloc", "free", "weft_fault")
"""The functions of the runtime that model.js calls."""
_CALLED_BY_THREADS: Final = ("weft_close", "weft_enter", "weft_serve", "weft_leave")


def write_package(artifact: Artifact, folder: Path) -> None:
    """Write the folder of a model that was compiled for the target ``wasm``.

    Raises:
        UnsupportedError: the model needs Python to run.
        ArtifactError: the folder cannot be written.
        CodegenError: the code calls functions that WebAssembly lacks.
    """
    if folder.suffix in (".weft", ".so"):
        raise ArtifactError(
            f"a model for wasm is a folder, got the name of a file, {str(folder)!r}; give the "
            "path of a folder"
        )
    files = package_files(artifact, _name_of(folder))
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ArtifactError(
            f"a model for wasm is a folder, and {str(folder)!r} cannot be one: "
            f"{error.strerror}; give another path"
        ) from error
    for name, content in files.items():
        write_file(folder / name, content)


def package_files(artifact: Artifact, name: str) -> dict[str, bytes]:
    """The files of a model by name; ``name`` is the package's."""
    entry = _entry(artifact)
    assert artifact.code is not None
    signature, states = _states_in_order(artifact)
    variants = unpacked(artifact.code.code)
    code, threads = _modules(variants, entry.spec.native_symbol)
    text = ModuleText(DescribedCall(signature, entry, states), signature.name, threads)
    constants = [artifact.program.constants[number] for number in entry.constants]
    tensors = [tensor.numpy() for tensor in (*constants, *states)]
    described = {
        "name": name, "version": "1.0.0", "type": "module", "main": "model.js",
        "types": "model.d.ts", "exports": {".": {"types": "./model.d.ts", "default": "./model.js"}},
    }  # fmt: skip
    return {
        **code,
        "weights.bin": weight_bytes(tensors),
        "model.js": text.module().encode(),
        "model.d.ts": text.types().encode(),
        "package.json": (json.dumps(described, indent=2) + "\n").encode(),
        "index.html": page_of(text).encode(),
    }


def _states_in_order(artifact: Artifact) -> tuple[Signature, list[NDArray]]:
    """The signature with its states in the order of the inputs, and their initial values.

    The loader puts each among the arguments of a call, the first one first.
    """
    pairs = sorted(
        zip(artifact.signature.states, artifact.states, strict=True),
        key=lambda pair: pair[0].input,
    )
    states = tuple([state for state, _ in pairs])
    return replace(artifact.signature, states=states), [value for _, value in pairs]


def _entry(artifact: Artifact) -> NativeEntry:
    """The native function of a model; UnsupportedError where JavaScript cannot call it."""
    function = artifact.program.functions[artifact.entry]
    reason = obstacle_of_entry(function.why_not_native, function.native)
    if function.native is None or reason:
        raise UnsupportedError(
            f"{artifact.signature.name} cannot be written for wasm: {reason}; "
            "weft.compile without target= runs it in Python"
        )
    return function.native


def _name_of(folder: Path) -> str:
    """A name that npm takes."""
    return re.sub(r"[^a-z0-9._-]+", "-", folder.name.lower()).strip("._-") or "model"


def _modules(variants: Variants, entry: str) -> tuple[dict[str, bytes], Threads | None]:
    """The files of the code; those for several threads where it has loops for them."""
    objects = {"": variants.base, "-relaxed": variants.relaxed}
    exports: tuple[str, ...] = (entry, *_CALLED)
    files = {
        f"model{name}.wasm": link([code, *runtime_objects()], exports).code
        for name, code in objects.items()
    }
    most = min(variants.threads, MOST_THREADS)
    names = {symbol.name for symbol in read_object(variants.base).symbols}
    if most == 1 or not names & {PARALLEL, PARALLEL_BRIEF}:
        return files, None
    exports += _CALLED_BY_THREADS
    linked = {
        f"model-threads{name}.wasm": link([code, *runtime_objects("threads")], exports, most)
        for name, code in objects.items()
    }
    files |= {name: module.code for name, module in linked.items()}
    scripts = {name: _beside(name).encode() for name in ("threads.js", "worker.js")}
    pages = max([module.pages for module in linked.values()])
    return files | scripts, Threads(most, pages)


def _beside(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


@functools.cache
def runtime_objects(loops: str = "serial") -> tuple[bytes, ...]:
    """Object code of what compiled code calls: faults, memory, loops (``serial``, ``threads``)."""
    plain, atomic = options_of(Target("wasm")), options_of(Target("wasm"), (*BASE, "atomics"))
    own = compile_text(_beside(f"{loops}.ll"), atomic if loops == "threads" else plain)
    return own, compile_text(_beside("runtime.ll"), plain)


def weight_bytes(tensors: Sequence[np.ndarray]) -> bytes:
    """Constants and states one behind the other, each on a boundary of 64 bytes.

    They begin with the offset of each, uint32, which the loader turns into addresses.
    """
    at = _up(4 * len(tensors))
    offsets, parts = [], []
    for tensor in tensors:
        offsets.append(at)
        data = np.ascontiguousarray(tensor).tobytes()
        parts.append(data.ljust(_up(len(data)), b"\0"))
        at += len(parts[-1])
    table = np.array(offsets, "<u4").tobytes()
    return b"".join([table.ljust(_up(len(table)), b"\0"), *parts])


def _up(size: int) -> int:
    return -(-size // _ALIGNMENT) * _ALIGNMENT
