"""Exported models: a shared library and a C header that run a model without Python.

The library holds the compiled code, threads of its own (weft.runtime.threads.parallel_ir), the C
text of weft.runtime.export.library_source, and the whole artefact in a section of its own: the
weights in it are those that the code reads, and ``weft.load`` reads the same file. The system's C
compiler links it.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from weft.backends.cpu.isa import architecture_of, host_system, system_of
from weft.runtime.artifact.weft_file import (
    CONSTANTS,
    Artifact,
    entry_offset,
    write_file,
    write_model,
)
from weft.runtime.call.plan import Overlap, Same, plan_of_entry
from weft.runtime.export.c_text import DTYPES
from weft.runtime.export.library_source import LibrarySource
from weft.runtime.native.builtins_ir import BUILTINS, builtins_ir
from weft.runtime.native.elf import undefined_names
from weft.runtime.native.object_code import ObjectCode
from weft.runtime.native.parts import part_object
from weft.runtime.threads.parallel_ir import parallel_ir
from weft.runtime.vm.bytecode import NativeEntry, Result
from weft.support import slots
from weft.support.errors import ArtifactError, UnsupportedError

COMPILERS: Final = ("cc", "gcc", "clang")
"""C compilers for this system, the one to be preferred first."""


def export_library(
    artifact: Artifact, path: Path, *, cc: str | None = None, options: Sequence[str] = ()
) -> None:
    """Write ``m.so`` and the header ``m.h`` beside it.

    Args:
        artifact: the model.
        path: where the library goes; its name without suffix begins the names in the header.
        cc: the C compiler; default: the first of ``cc``, ``gcc``, ``clang`` that there is; for
            code of another system that system's, such as ``aarch64-linux-gnu-gcc``.
        options: further options of the compiler.

    Raises UnsupportedError for a model that needs Python, with the reason; ArtifactError where
    there is no C compiler (the model is then saved as ``m.weft``), or where it fails.
    """
    code = artifact.code
    if code is not None and slots.package_writer.get()(code.triple) is not None:
        write_model(artifact, path)
        return
    entry = native_entry(artifact)
    assert code is not None
    data = artifact.to_bytes()
    compilers = compilers_of(code) if cc is None else (cc,)
    compiler = next(filter(None, map(shutil.which, compilers)), None)
    if compiler is None:
        other = path.with_suffix(".weft")
        write_file(other, data)
        raise ArtifactError(
            f"cannot link {path.name}: there is no C compiler for {code.triple} here "
            f"({', '.join(compilers)}); install one, or name one with cc=. The model was saved as "
            f"{str(other)!r}, which weft.load and weft.runtime.load read without a compiler"
        )
    first = len(artifact.program.constants)
    numbers = [*entry.constants, *range(first, first + len(artifact.states))]
    offsets = constant_offsets(data, numbers)
    text = LibrarySource(_prefix(path), artifact.signature, entry, offsets, artifact.states)
    files: dict[str, bytes] = {
        "model.weft": data,
        "model.c": text.source().encode(),
        "code.o": code.code,
        f"{text.prefix}.h": text.header().encode(),
        "parallel.o": part_object(parallel_ir(code.triple), code.triple),
        "exports.txt": f"{{ global: {text.prefix}_*; local: *; }};\n".encode(),
    }
    if undefined_names(code.code) & BUILTINS:
        files["builtins.o"] = part_object(builtins_ir(), code.triple)
    library = _linked(compiler, files, options)
    write_file(path, library)
    write_file(path.with_suffix(".h"), files[f"{text.prefix}.h"])


def find_compiler() -> str | None:
    """The path of a C compiler for this system; None if there is none."""
    return next(filter(None, map(shutil.which, COMPILERS)), None)


def compilers_of(code: ObjectCode) -> tuple[str, ...]:
    """Names of C compilers for the system of some code, the one to be preferred first.

    Those for another system have the names that Debian's and GNU's packages give them.
    """
    system = system_of(code.triple)
    if system == host_system():
        return COMPILERS
    names = [code.triple, f"{architecture_of(code.triple).name}-{system[1]}-gnu"]
    return tuple([f"{name}-gcc" for name in dict.fromkeys(names)])


def _prefix(path: Path) -> str:
    name = re.sub(r"\W", "_", path.stem.removeprefix("lib"), flags=re.ASCII) or "model"
    return name if not name[0].isdigit() else f"model_{name}"


def native_entry(artifact: Artifact) -> NativeEntry:
    """The native entry of a model; UnsupportedError says why it has none that C can call."""
    function = artifact.program.functions[artifact.entry]
    entry = function.native
    reason = (
        obstacle_of_entry(function.why_not_native, entry)
        if artifact.code is not None
        else "no code"
    )
    if entry is None or reason:
        raise UnsupportedError(
            f"export_library: {artifact.signature.name} needs Python to run: {reason}; save it as "
            "a .weft file, which weft.runtime.load runs with numpy and llvmlite"
        )
    return entry


def obstacle_of_entry(why: str, entry: NativeEntry | None) -> str:
    """Why no program but Python's can call an entry; nothing if C can. ``why`` it is not native."""
    if entry is None:
        return why or "it runs as bytecode"
    plan = plan_of_entry(entry)
    if any(item.kind == "stack" for item in plan.passed):
        return "it calls itself"
    if plan.calls_packed:
        return "it calls functions that are registered in Python"
    for step in plan.checks:
        if isinstance(step, Same):
            return "a shape among its arguments repeats an extent"
        if isinstance(step, Overlap):
            name = plan.takes[step.output].param.name
            return f"its argument {name} may share no memory with the others"
    for take in plan.takes:
        param = take.param
        if param.kind == "scalar" and param.dtype in ("float16", "bfloat16"):
            return f"its argument {param.name} is a number of {param.dtype}"
        if param.strides is not None:
            return f"its argument {param.name} has strides"
        if param.kind == "buffer" and param.dtype not in DTYPES:
            return f"its argument {param.name} is of {param.dtype}"
    for number, output in enumerate(plan.outputs):
        if output.dtype not in DTYPES:
            return f"its output {number} is of {output.dtype}"
    return "" if _is_flat(plan.result) else "its result is no tensor"


def _is_flat(result: Result) -> bool:
    if result[0] == "tuple":
        return all(_is_flat(item) for item in result[1])
    return result[0] in ("output", "input", "shape", "expr")


def constant_offsets(data: bytes, numbers: Sequence[int]) -> list[int]:
    """Where the tensors of these numbers begin in an artefact."""
    start = entry_offset(data, CONSTANTS)
    size = int.from_bytes(data[start : start + 8], "little")
    header = json.loads(data[start + 8 : start + 8 + size])
    return [start + 8 + size + header[f"{number:06}"]["data_offsets"][0] for number in numbers]


def _linked(compiler: str, files: dict[str, bytes], options: Sequence[str]) -> bytes:
    """The shared library of sources and objects; ArtifactError with the compiler's first lines."""
    objects = [name for name in files if name.endswith(".o")]
    command = [
        compiler,
        "-std=gnu11",
        "-O2",
        "-fPIC",
        "-shared",
        "-fvisibility=default",
        "-o",
        "out.so",
        "model.c",
        *sorted(objects),
        "-Wl,--version-script=exports.txt",
        "-Wl,-z,noexecstack",
        "-Wl,--build-id=none",
        *options,
        "-lm",
        "-lpthread",
    ]
    with tempfile.TemporaryDirectory(prefix="weft-") as folder:
        for name, content in files.items():
            Path(folder, name).write_bytes(content)
        environment = {**os.environ, "LC_ALL": "C"}
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, env=environment, check=False
        )
        if done.returncode:
            lines = [line for line in done.stderr.splitlines() if line.strip()][:4]
            raise ArtifactError("\n".join([f"{compiler} cannot link the model:", *lines]))
        return Path(folder, "out.so").read_bytes()
