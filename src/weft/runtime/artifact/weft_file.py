"""The ``.weft`` file: a compiled model in one zip, the same bytes for the same model.

Entries, in this order: ``code.o`` (object code), ``constants.safetensors``, ``manifest.json``
(format, version, target, features, signature, names of weights, digests of the other entries),
``module.json`` (the imported module, where its weights are all among the constants), ``module.py``
(its text), ``parts/`` (the runtime's own native parts that the code calls:
weft.runtime.native.parts) and ``program.json`` (functions, native entries, specs). Nothing is
compressed, dates are fixed, so equal input gives equal bytes; nothing is pickled. A file is written
beside its name and renamed: where the disk is full, the old file stays. The same bytes stand in a
section of an exported library (weft.runtime.export.library), which is read here as well.

Reading needs numpy, and no compiler; LLVM only where weft has no loader of its own. Weights stay in
the file, which is mapped: processes that load one model hold them once, and what a process writes
there is its own. So a file that is loaded may be replaced or removed, but not cut off in place.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import hashlib
import io
import json
import mmap
import os
import zipfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Final

from weft.runtime.artifact.checks import check_manifest, check_parts, interface_of
from weft.runtime.artifact.constants import constants_as_parts, read_constants
from weft.runtime.call.spec import FunctionSpec
from weft.runtime.model.flops import FlopCount
from weft.runtime.model.signature import Signature
from weft.runtime.native.elf import elf_section
from weft.runtime.native.object_code import ObjectCode
from weft.runtime.native.parts import offer_parts
from weft.runtime.ndarray import NDArray
from weft.runtime.vm.bytecode import NativeEntry, PlannedSizes, Program, VMFunction
from weft.runtime.weight_names import name_weights, weight_name
from weft.support import slots
from weft.support.errors import (
    ArtifactError,
    ArtifactFormatError,
    ArtifactVersionError,
    TVMError,
    UnsupportedError,
    wrong_type,
)
from weft.support.files import Content, open_regular, write_whole

Json = dict[str, Any]
"""An object of JSON."""

FORMAT: Final = "weft-model"
VERSION: Final = 2
MANIFEST: Final = "manifest.json"
CONSTANTS: Final = "constants.safetensors"
"""The only entry without a digest: the zip's own checksum has to do for what is large."""
SECTION: Final = ".weft"
"""The section of a shared library that holds an artefact."""
PARTS: Final = "parts/"
_DATE: Final = (1980, 1, 1, 0, 0, 0)
_ALIGNMENT: Final = 64
_LONGEST_NAME: Final = 255
"""Bytes of a file's name, in the file systems of Linux and of macOS."""


@dataclass
class Artifact:
    """What the file holds.

    ``kernels`` are the functions of the code that bytecode and profiles call by name; ``states``
    are the tensors that calls change; ``module`` and ``text`` may be empty; ``flops`` are the
    operations of kernels of which they are known.
    """

    signature: Signature
    entry: str
    program: Program
    code: ObjectCode | None
    kernels: tuple[str, ...]
    states: list[NDArray] = field(default_factory=list)
    module: str = ""
    text: str = ""
    flops: Mapping[str, FlopCount] = field(default_factory=dict)

    def to_bytes(self) -> bytes:
        """The whole file; UnsupportedError where something has no form on disk."""
        file = io.BytesIO()
        self.writer()(file)
        return file.getvalue()

    def writer(self) -> Callable[[BinaryIO], None]:
        """What writes the file, array by array; UnsupportedError as by ``to_bytes``."""
        tensors = [*self.program.constants, *self.states]
        constants = constants_as_parts(tensors)
        entries: dict[str, Sequence[bytes | memoryview]] = {
            name: [data] for name, data in self._described(tensors).items()
        }
        return functools.partial(_write_zip, {**entries, CONSTANTS: constants})

    def _described(self, tensors: Sequence[NDArray]) -> dict[str, bytes]:
        """The entries but for the tensors."""
        program = program_to_json(self.program)
        entries = {
            "code.o": b"" if self.code is None else self.code.code,
            "module.json": self.module.encode(),
            "module.py": self.text.encode(),
            "program.json": _json(program),
        }
        described: Json | None = None
        if self.code is not None:
            entries |= {f"{PARTS}{name}.o": data for name, data in self.code.parts().items()}
            described = {
                "triple": self.code.triple,
                "cpu": self.code.cpu,
                "features": list(self.code.features),
                "specs": [spec.to_json() for spec in self.code.specs],
            }
        entries[MANIFEST] = _json(
            {
                "format": FORMAT,
                "version": VERSION,
                "entry": self.entry,
                "kernels": list(self.kernels),
                "states": len(self.states),
                "code": described,
                "flops": {name: count.to_json() for name, count in self.flops.items()},
                "signature": self.signature.to_json(),
                "dtypes": [str(x.dtype) for x in tensors],
                "names": [weight_name(x) for x in tensors],
                "interface": interface_of((described or {}).get("specs", ()), program, tensors),
                "digests": {name: _digest(data) for name, data in sorted(entries.items())},
            }
        )
        return entries


def _json(content: object) -> bytes:
    return json.dumps(content, sort_keys=True, separators=(",", ":")).encode()


def _digest(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def _write_zip(entries: Mapping[str, Sequence[bytes | memoryview]], target: BinaryIO) -> None:
    """Write an uncompressed zip, the parts of whose entries follow each other.

    Entries start at multiples of 64 bytes.
    """
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as archive:
        for name, parts in sorted(entries.items()):
            info = zipfile.ZipInfo(name, _DATE)
            info.create_system, info.external_attr = 3, 0o644 << 16
            info.file_size = sum([memoryview(part).nbytes for part in parts])
            start = target.tell() + 30 + len(name)
            padding = -(start + 4) % _ALIGNMENT
            info.extra = (0xFFFF).to_bytes(2, "little") + padding.to_bytes(2, "little")
            info.extra += bytes(padding)
            with archive.open(info, "w") as entry:
                for part in parts:
                    entry.write(part)


def entry_offset(data: bytes, name: str) -> int:
    """Where the content of an entry begins in the bytes of an artefact."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return _content_of(memoryview(data), archive.getinfo(name))


def _content_of(whole: memoryview, info: zipfile.ZipInfo) -> int:
    """Where the content of an entry begins: behind its header, its name and what pads it."""
    start = info.header_offset
    lengths = whole[start + 26 : start + 30]
    return (
        start + 30 + int.from_bytes(lengths[:2], "little") + int.from_bytes(lengths[2:], "little")
    )


def as_path(path: object) -> Path:
    """The path of a file; IRTypeError for what is none, ArtifactError for one without a name."""
    if not isinstance(path, str | os.PathLike):
        raise wrong_type("expected the path of a file", path)
    file = Path(path)
    if not file.name or "\0" in str(file):
        raise ArtifactError(f"expected the path of a file, got {str(path)!r}")
    if len(os.fsencode(file.name)) > _LONGEST_NAME:
        raise ArtifactError(f"expected a shorter name of a file than {file.name[:40]!r}...")
    return file


def writable_path(path: object) -> Path:
    """The path of a file that is to be written later.

    Raises, beside what ``as_path`` does, ArtifactError where it is plain now that nothing can be
    written there: a folder stands there, or its own folder is missing or closed to us.
    """
    file = as_path(path)
    if file.is_dir():
        raise ArtifactError(f"cannot write {str(file)!r}: it is a folder")
    folder = file.parent
    if not folder.is_dir():
        raise ArtifactError(f"cannot write {str(file)!r}: there is no folder {str(folder)!r}")
    if not os.access(folder, os.W_OK):
        raise ArtifactError(f"cannot write {str(file)!r}: no writing in {str(folder)!r}")
    return file


def write_file(path: Path, content: Content, *, durable: bool = True) -> None:
    """Write a file as a whole or not at all; ArtifactError says why it cannot be written.

    ``content`` is the bytes, or what writes them (weft.support.files). A link stays, and the file
    that it leads to is written; pipes and devices are refused.
    ``durable``: wait until the disk has it.
    """
    try:
        write_whole(path, content, durable=durable)
    except OSError as error:
        before = "; the file that was there is unchanged" if os.path.isfile(path) else ""
        reason = error.strerror or type(error).__name__
        raise ArtifactError(f"cannot write {str(path)!r}: {reason}{before}") from error


def write_model(artifact: Artifact, path: Path) -> None:
    """Write a model as a file, or as a folder where the system of its code runs such ones."""
    code = artifact.code
    writer = None if code is None else slots.package_writer.get()(code.triple)
    if writer is None:
        write_file(path, artifact.writer())
    else:
        writer(artifact, path)


def read_file(path: Path) -> Artifact:
    """The artefact of a ``.weft`` file or of an exported library.

    Raises ArtifactError where the file cannot be read, ArtifactFormatError where it is something
    else or damaged, ArtifactVersionError where it is of a later format.
    """
    try:
        with open_regular(path) as file:
            return _read(_container(file, path), path)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise ArtifactError(f"cannot read {str(path)!r}: {reason}") from error


def read_bytes(data: bytes, name: str) -> Artifact:
    """The artefact that ``to_bytes`` wrote; errors, which are as of ``read_file``, name it."""
    return _read(_container(io.BytesIO(data), Path(name)), Path(name))


def _container(file: BinaryIO, path: Path) -> BinaryIO:
    """The zip: the file itself, or the section of a library."""
    start = file.read(4)
    if start == b"\x7fELF":
        data = start + file.read()
        section = elf_section(data, SECTION)
        if section is None:
            raise ArtifactFormatError(
                f"{path.name}: expected a compiled model (.weft, or a library that export_library "
                "wrote), got a library or object file without one"
            )
        return io.BytesIO(data[section[0] : section[0] + section[1]])
    if not start:
        raise _damaged(path, "it is empty")
    if start[:2] != b"PK":
        raise ArtifactFormatError(
            f"{path.name}: expected a compiled model that CompiledModel.save wrote, got a file "
            f"that begins with {start!r}; models to compile go to weft.compile"
        )
    file.seek(0)
    return file


def _read(container: BinaryIO, path: Path) -> Artifact:
    try:
        with zipfile.ZipFile(container) as archive:
            entries = _unzipped(archive, path)
            manifest = _manifest(entries, path)
            whole, is_mapped = _whole(container)
            stored = _stored(whole, archive.getinfo(CONSTANTS), path)
            tensors = read_constants(stored, manifest["dtypes"], share=is_mapped)
            name_weights(tensors, manifest.get("names"))
        return _artifact(manifest, entries, tensors)
    except ArtifactError:
        raise
    except MemoryError as error:
        raise ArtifactError(f"cannot read {path.name}: no memory for what it holds") from error
    except (zipfile.BadZipFile, EOFError, OSError) as error:
        raise _damaged(path, str(error)) from error
    except Exception as error:  # whatever a reader stumbles over is damage of the file
        raise damage_of(path, error) from error


def _whole(container: BinaryIO) -> tuple[memoryview, bool]:
    """All bytes of a zip, and whether they are a file that is mapped into memory."""
    if isinstance(container, io.BytesIO):
        return container.getbuffer(), False
    try:
        mapped = mmap.mmap(container.fileno(), 0, access=mmap.ACCESS_COPY)
    except OSError:  # a file system that maps nothing
        container.seek(0)
        return memoryview(container.read()), False
    if hasattr(mmap, "MADV_HUGEPAGE"):
        with contextlib.suppress(OSError):  # a kernel that has them for memory alone
            mapped.madvise(mmap.MADV_HUGEPAGE)
    return memoryview(mapped), True


def _stored(whole: memoryview, info: zipfile.ZipInfo, path: Path) -> memoryview:
    """The content of an entry, which the zip's checksum must be that of."""
    begin = _content_of(whole, info)
    content = whole[begin : begin + info.file_size]
    if len(content) < info.file_size or zlib.crc32(content) != info.CRC:
        raise _damaged(path, f"{info.filename} is not what was written")
    return content


def damage_of(path: Path, error: Exception) -> ArtifactFormatError:
    """The error of a file whose content something stumbled over."""
    kind = "" if isinstance(error, TVMError) else f"{type(error).__name__}: "
    return _damaged(path, f"{kind}{error}".replace("\n", " "))


def _damaged(path: Path, what: str) -> ArtifactFormatError:
    return ArtifactFormatError(
        f"{path.name}: this file is damaged or cut off ({what[:200]}); save the model again"
    )


def _unzipped(archive: zipfile.ZipFile, path: Path) -> dict[str, bytes]:
    """The entries but for constants, which are read where they go."""
    if MANIFEST not in archive.namelist():
        raise ArtifactFormatError(
            f"{path.name}: expected a compiled model, got another zip file; models to "
            "compile (.pt2, .onnx) go to weft.compile"
        )
    _check_sizes(archive, path)
    return {name: archive.read(name) for name in archive.namelist() if name != CONSTANTS}


def _check_sizes(archive: zipfile.ZipFile, path: Path) -> None:
    """Refuse entries that would grow when they are read: ``save`` stores all as they are."""
    infos = archive.infolist()
    for info in infos:
        if info.compress_type != zipfile.ZIP_STORED or info.file_size != info.compress_size:
            raise _damaged(path, f"{info.filename[:40]} is compressed, and save compresses nothing")
    names = [info.filename for info in infos]
    if len({*names}) < len(names):
        raise _damaged(path, "two entries have one name")
    whole, size = sum(info.file_size for info in infos), archive.start_dir
    if whole > size:
        raise _damaged(path, f"its entries have {whole} bytes, and the file has {size}")


def _manifest(entries: dict[str, bytes], path: Path) -> Json:
    try:
        manifest: Json = json.loads(entries[MANIFEST])
        written_as, version = manifest["format"], manifest["version"]
    except (ValueError, KeyError, TypeError) as error:
        raise _damaged(path, "its manifest cannot be read") from error
    if written_as != FORMAT:
        raise ArtifactFormatError(f"{path.name}: expected format {FORMAT!r}, got {written_as!r}")
    if version != VERSION:
        raise ArtifactVersionError(
            f"{path.name}: this file has format {version}, and this weft reads {VERSION}; "
            "compile the model again, or use the weft that wrote it"
        )
    check_manifest(manifest)
    digests = manifest["digests"]
    for name in sorted({*digests.keys(), *entries} - {MANIFEST}):
        if name not in entries or _digest(entries[name]) != digests.get(name):
            raise _damaged(path, f"{name} is not what was written")
    return manifest


def _artifact(manifest: Json, entries: dict[str, bytes], tensors: list[NDArray]) -> Artifact:
    specs: tuple[FunctionSpec, ...]
    code, specs = manifest["code"], ()
    program = json.loads(entries["program.json"])
    described = () if code is None else code["specs"]
    if code is not None:
        specs = tuple([FunctionSpec.from_json(item) for item in code["specs"]])
        features = tuple(code["features"])
        code = ObjectCode(entries["code.o"], specs, code["triple"], code["cpu"], features)
    offer_parts(
        {
            name.removeprefix(PARTS).removesuffix(".o"): data
            for name, data in entries.items()
            if name.startswith(PARTS)
        }
    )
    count = len(tensors) - manifest["states"]
    functions = program_from_json(program)
    if manifest["entry"] not in functions:
        raise ValueError(f"it has no function {manifest['entry']!r}")
    if not 0 <= count <= len(tensors):
        raise ValueError(f"it has {manifest['states']!r} states")
    _check_code(code, manifest["kernels"], functions)
    if interface_of(described, program, tensors) != manifest["interface"]:
        raise ValueError("how its code is called is not what was written")
    signature = Signature.from_json(manifest["signature"])
    whole = Program(functions, list(tensors[:count]))
    check_parts(signature, whole, specs, manifest["kernels"], manifest["entry"])
    return Artifact(
        signature,
        manifest["entry"],
        whole,
        code,
        tuple(manifest["kernels"]),
        tensors[count:],
        entries["module.json"].decode(),
        entries["module.py"].decode(),
        {name: FlopCount.from_json(item) for name, item in manifest["flops"].items()},
    )


def _check_code(
    code: ObjectCode | None, kernels: Sequence[str], functions: dict[str, VMFunction]
) -> None:
    """Raise ValueError where the code lacks what the rest of the file calls."""
    specs = () if code is None else code.specs
    symbols = {spec.native_symbol for spec in specs}
    natives = [item.native.spec.native_symbol for item in functions.values() if item.native]
    missing = ({*kernels} - {spec.name for spec in specs}) | ({*natives} - symbols)
    if missing:
        raise ValueError(f"its code has no function {min(missing)!r}")


def program_to_json(program: Program) -> dict[str, object]:
    """The functions of a program as plain data."""
    for function in program.functions.values():
        for instruction in function.code:
            _check_plain(instruction, function.name)
    return {name: dataclasses.asdict(item) for name, item in program.functions.items()}


def _check_plain(value: object, name: str) -> None:
    todo = [value]
    while todo:
        item = todo.pop()
        if isinstance(item, tuple):
            todo.extend(item)
        elif item is not None and not isinstance(item, bool | int | float | str):
            raise UnsupportedError(
                f"{name}: a value of {type(item).__name__} in its bytecode has no form on disk, so "
                "the model cannot be saved"
            )


def program_from_json(data: Json) -> dict[str, VMFunction]:
    """What ``program_to_json`` made, also after a trip through JSON text."""
    return {name: _function(item) for name, item in data.items()}


def _function(data: Json) -> VMFunction:
    native = data["native"]
    if native is not None:
        spec = FunctionSpec.from_json(native["spec"])
        planned = native["planned"]
        if planned is not None:
            planned = PlannedSizes(**{key: _tupled(value) for key, value in planned.items()})
        rest = {key: _tupled(value) for key, value in native.items()}
        native = NativeEntry(**{**rest, "spec": spec, "planned": planned})
    return VMFunction(
        data["name"],
        _tupled(data["params"]),
        _tupled(data["code"]),
        data["registers"],
        native,
        data["why_not_native"],
    )


def _tupled(value: object) -> Any:
    """Lists as the tuples that they were."""
    return tuple([_tupled(item) for item in value]) if isinstance(value, list) else value
