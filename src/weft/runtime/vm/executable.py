"""``Executable``: what ``relax.build`` returns, the program and the code that a machine runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from weft.runtime.artifact.weft_file import Artifact, as_path
from weft.runtime.export.library import export_library
from weft.runtime.model.flops import FlopCount
from weft.runtime.model.signature import Signature
from weft.runtime.module import Module
from weft.runtime.native.foreign import CompiledFunction
from weft.runtime.native.object_code import ObjectCode
from weft.runtime.registry import PackedFunc
from weft.runtime.vm.bytecode import Program
from weft.support.errors import (
    UnsupportedError,
)
from weft.support.lazy_property import lazy_property
from weft.support.public_entry import public_entry


class Executable:
    """A built Relax module: its program, its kernels (a runtime Module), its sources.

    ``hosts`` are the native host functions by the name of the VM function; ``flops`` gives
    how many operations each kernel does; ``code`` is what was loaded. ``type(ex)`` prints as
    the course shows it, ``weft.relax.vm.Executable``.
    """

    def __init__(
        self,
        program: Program,
        kernels: Module,
        hosts: Mapping[str, CompiledFunction] | None = None,
        flops: Callable[[], Mapping[str, FlopCount]] = dict,
        code: ObjectCode | None = None,
    ) -> None:
        self.program = program
        self.kernels = kernels
        self.hosts = dict(hosts or {})
        self._flops = flops
        self.code = code

    @lazy_property
    def flop_counts(self) -> Mapping[str, FlopCount]:
        """How many operations each kernel does, of those of which it is known."""
        counts = self._flops()
        return {name: counts[name] for name in self.kernels.functions if name in counts}

    @property
    def mod(self) -> Module:
        """The runtime Module of the kernels."""
        return self.kernels

    def as_text(self) -> str:
        """The bytecode as a listing."""
        return self.program.as_text()

    def stats(self) -> str:
        """How many functions, constants and kernels there are."""
        native = sum(1 for f in self.program.functions.values() if f.native is not None)
        return (
            f"Relax VM executable statistics:\n"
            f"  functions: {len(self.program.functions)} ({native} native)\n"
            f"  constants: {len(self.program.constants)}\n"
            f"  kernels: {len(self.kernels.functions)}"
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}(functions=[{first_names(self.program.functions)}])"

    def jit(self, **options: object) -> Executable:
        """The executable itself: it is compiled already."""
        return self

    def __getitem__(self, name: str) -> PackedFunc:
        """A kernel by name."""
        return self.kernels[name]

    def get_source(self, fmt: str = "") -> str:
        """The source of the kernels (``ll`` or ``asm``)."""
        return self.kernels.get_source(fmt)

    def to_artifact(self) -> Artifact:
        """The program as ``.weft`` files and exported libraries hold it; its entry is ``main``."""
        functions = self.program.functions
        name = "main" if "main" in functions else next(iter(functions), "")
        if not name:
            raise UnsupportedError("there is no function in this executable to save")
        params = [param for param, _ in functions[name].params]
        return self._artifact(Signature.plain(name, params), name)

    def _artifact(self, signature: Signature, entry: str, **parts: Any) -> Artifact:
        if self.kernels.imports:
            raise UnsupportedError(
                f"{signature.name}: a model that calls functions of other libraries cannot be "
                "saved: they are not part of it"
            )
        kernels = tuple(self.kernels.functions)
        return Artifact(
            signature, entry, self.program, self.code, kernels, flops=self.flop_counts, **parts
        )

    @public_entry("export_library")
    def export_library(
        self,
        file_name: str | Path,
        *,
        fcompile: object = None,
        addons: object = None,
        workspace_dir: object = None,
        cc: str | None = None,
        options: Sequence[str] = (),
    ) -> None:
        """Write a shared library and a C header that run the model without Python.

        Args:
            file_name: ``m.so``; ``m.h`` is written beside it.
            fcompile: TVM's way to give a linker; give ``cc`` here.
            addons: not available.
            workspace_dir: not needed.
            cc: the C compiler; default: ``cc``, ``gcc`` or ``clang``.
            options: further options of the compiler.

        Raises UnsupportedError for a model that needs Python to run, with the reason; ArtifactError
        where there is no C compiler, or where it fails.
        """
        if fcompile is not None or addons:
            raise UnsupportedError("export_library: fcompile and addons are not available; use cc=")
        del workspace_dir
        export_library(self.to_artifact(), as_path(file_name), cc=cc, options=options)


def first_names(functions: Mapping[str, object]) -> str:
    """The names of the first functions, to show what there is."""
    names = list(functions)
    return ", ".join(names[:8]) + (" ..." if len(names) > 8 else "")


Executable.__module__ = "weft.relax.vm"
