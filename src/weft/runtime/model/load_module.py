"""``load_module``: what ``export_library`` wrote, a model or plain functions."""

from __future__ import annotations

from pathlib import Path

from weft.runtime.artifact.weft_file import as_path
from weft.runtime.model.compiled_model import CompiledModel, load
from weft.runtime.module import Executable
from weft.runtime.native.object_file import MAGIC, from_bytes
from weft.support.files import open_regular
from weft.support.public_entry import public_entry


@public_entry("load_module")
def load_module(path: str | Path, fmt: str = "") -> CompiledModel | Executable:
    """The model, for ``relax.VirtualMachine``, or the functions of ``weft.build`` in a file.

    As with ``weft.load``, the file holds machine code: load it only from where you would load a
    shared library. ``fmt`` is TVM's and not needed. Raises ArtifactError as ``weft.load`` does.
    """
    del fmt
    place = as_path(path)
    kernels = _kernels(place)
    if kernels is None:
        return load(place)
    code, entry = from_bytes(kernels, place)
    return Executable(code.load(), entry=entry, exported=lambda: kernels)


def _kernels(place: Path) -> bytes | None:
    """The content of a file of kernels; None for any other, of which ``load`` says more."""
    try:
        with open_regular(place) as file:
            head = file.read(len(MAGIC))
            return head + file.read() if head == MAGIC else None
    except OSError:
        return None
