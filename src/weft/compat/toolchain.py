"""``tvm.contrib.cc`` and ``tvm.contrib.clang``: the machine's C compiler, called as a program."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from weft.support.errors import TVMError, UnsupportedError


def get_cc() -> str | None:
    """The C++ compiler: $CXX, else g++, clang++, gcc, clang or c++; None if there is none."""
    for name in (os.environ.get("CXX", ""), "g++", "clang++", "gcc", "clang", "c++"):
        path = shutil.which(name) if name else None
        if path:
            return path
    return None


def find_clang(required: bool = True) -> list[str]:
    """The paths of clang on this machine."""
    names = ["clang", *[f"clang-{version}" for version in range(30, 9, -1)]]
    paths = [path for name in names if (path := shutil.which(name))]
    if required and not paths:
        raise UnsupportedError(
            "there is no clang on PATH, which compiles C to LLVM IR; install it (Debian, Ubuntu: "
            "apt install clang; macOS: xcode-select --install) or give its path as cc="
        )
    return paths


Texts = str | Path | Iterable[object] | None
"""Names of files, or options of a program."""


def _run(command: Sequence[str], what: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        tail = "\n".join((done.stdout + done.stderr).strip().splitlines()[-5:])
        raise TVMError(f"{what}: {command[0]} ended with status {done.returncode}:\n{tail}")


def _as_list(items: Texts) -> list[str]:
    if items is None:
        return []
    return [str(items)] if isinstance(items, str | Path) else [str(item) for item in items]


def _link(
    output: str, objects: Texts, options: Texts, cc: str | None, flags: Sequence[str]
) -> None:
    compiler = cc or get_cc()
    if compiler is None:
        raise UnsupportedError("there is no C compiler on PATH; install g++ or set CXX")
    command = [compiler, *flags, "-o", output, *_as_list(objects), *_as_list(options)]
    _run(command, f"making {output}")


def create_shared(
    output: str, objects: Texts, options: Texts = None, cc: str | None = None, **_unused: object
) -> None:
    """Link object files or sources to a shared library."""
    _link(output, objects, options, cc, ["-shared", "-fPIC"])


def create_executable(
    output: str, objects: Texts, options: Texts = None, cc: str | None = None, **_unused: object
) -> None:
    """Link object files or sources to a program."""
    _link(output, objects, options, cc, [])


def create_staticlib(output: str, inputs: Texts, ar: str | None = None) -> None:
    """Put object files into an archive."""
    program = ar or shutil.which("ar")
    if program is None:
        raise UnsupportedError("there is no ar on PATH; install binutils")
    _run([program, "qcs", output, *_as_list(inputs)], f"making {output}")


def cross_compiler(
    compile_func: str | Callable[..., object],
    options: Texts = None,
    output_format: str = "so",
    **_unused: object,
) -> Callable[..., object]:
    """A function ``f(output, objects, options)`` that links with another compiler."""
    fixed = _as_list(options)

    def link(output: str, objects: Texts, options: Texts = None, **kwargs: object) -> None:
        every = [*fixed, *_as_list(options)]
        if callable(compile_func):
            compile_func(output, objects, options=every, **kwargs)
        else:
            create_shared(output, objects, every, cc=compile_func)

    link.output_format = output_format  # type: ignore[attr-defined] # as TVM has it
    return link


def create_llvm(
    inputs: Texts, output: str | None = None, options: Texts = None, cc: str | None = None
) -> str:
    """LLVM IR of C or C++ sources (texts or paths of ``.c`` and ``.cc`` files), by clang.

    ``options`` come after ``-O2``, which they may replace: what clang writes without it stays
    slow, since it marks each function as not to be optimised.
    """
    compiler = cc or find_clang()[0]
    with tempfile.TemporaryDirectory(prefix="weft") as folder:
        sources = []
        for number, given in enumerate(_as_list(inputs)):
            path = given
            if not (given.endswith((".c", ".cc", ".cpp")) and "\n" not in given):
                path = os.path.join(folder, f"input{number}.cc")
                Path(path).write_text(given, encoding="utf-8")
            sources.append(path)
        target = output or os.path.join(folder, "output.ll")
        flags = ["-O2", "-S", "-emit-llvm", *_as_list(options)]
        _run([compiler, *flags, *sources, "-o", target], "making LLVM IR")
        return Path(target).read_text(encoding="utf-8")
