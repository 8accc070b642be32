"""The object cache: compiled code on disk, found by what it was compiled from (design.md 3.7).

A key digests everything that decides the code: the functions with their names, the target, weft's
own sources, the version of LLVM, options. An entry is one file: magic, checksum, payload. It is
written to a temporary name and renamed, so that readers see whole entries only; any number of
processes may share the folder and be killed at any moment. A bad entry is a miss and is deleted.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import secrets
import stat
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Final, TypedDict

import weft.codegen
from weft.codegen.generator_digest import generator_digest
from weft.ir.functor import collect
from weft.ir.structural import structural_digest
from weft.support.config import environment_flag, environment_int, environment_text
from weft.support.files import read_regular
from weft.tir.buffer import Buffer
from weft.tir.expr import Var
from weft.tir.function import PrimFunc

_MAGIC: Final = b"weft-object-1\n\0\0"
_CHECKSUM: Final = 32
_DEFAULT_MIB: Final = 512
_STALE_SECONDS: Final = 3600
_SWEEP_EVERY: Final = 64
_ROOMS: Final = (
    "support", "ir", "target", "arith", "tir", "codegen", "runtime", "driver", "backends"
)  # fmt: skip
"""The packages whose sources decide what code comes out of a PrimFunc."""

_writes = 0


class Description(TypedDict):
    """What an entry says of its code, in JSON."""

    specs: list[dict[str, object]]
    """How each function is called (``FunctionSpec.to_json``)."""


def cache_folder(kind: str = "objects") -> Path | None:
    """The folder of a cache, made if need be; None when caches are off or it is unusable."""
    if environment_flag("WEFT_NO_CACHE"):
        return None
    given = environment_text("WEFT_CACHE_DIR")
    try:
        folder = (Path(given) if given else _user_cache() / "weft") / kind
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = folder.stat()
    except (OSError, RuntimeError):  # no HOME, and a user whom the system does not know
        return None
    foreign = hasattr(os, "getuid") and status.st_uid != os.getuid()
    if foreign or stat.S_IMODE(status.st_mode) & 0o022:
        return None
    return folder


def _user_cache() -> Path:
    given = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return given if given.is_absolute() else Path.home() / ".cache"  # as its specification says


@functools.cache
def source_digest(rooms: tuple[str, ...] = _ROOMS) -> bytes:
    """A digest of the sources of some rooms: those of the compiler's lower half."""
    root = Path(weft.codegen.__file__).parents[1]
    digest = hashlib.blake2b(digest_size=16)
    for room in rooms:
        for path in sorted((root / room).rglob("*.py")):
            content = path.read_bytes()
            digest.update(f"{path.relative_to(root)}:{len(content)}\n".encode())
            digest.update(content)
    return digest.digest()


def function_digest(func: PrimFunc) -> bytes:
    """A digest of a function's structure and of its names, which messages and specs show."""
    named = collect([func.params, list(func.buffer_map.values()), func.body], (Var, Buffer))
    digest = hashlib.blake2b(structural_digest(func), digest_size=16)
    for node in named:
        assert isinstance(node, (Var, Buffer))
        digest.update(_delimited(str(node.name)))
    return digest.digest()


def _delimited(text: str) -> bytes:
    """A text of any content, which says first how long it is."""
    content = text.encode(errors="surrogatepass")
    return b"%d;%b" % (len(content), content)


def origin_digest() -> bytes:
    """What makes the code: the sources of the package, and the generator as it is now."""
    return source_digest() + generator_digest() + lines_key()


def lines_key() -> bytes:
    """A part of the key of code that has lines for debuggers (``WEFT_PERF``)."""
    return b"lines" if environment_flag("WEFT_PERF") else b""


def make_key(
    functions: Iterable[tuple[str, PrimFunc]], *options: object, origin: bytes | None = None
) -> str:
    """The key of a set of named functions compiled with these options.

    ``origin``: the ``origin_digest``, where it is known.
    """
    digest = hashlib.blake2b(origin_digest() if origin is None else origin, digest_size=20)
    for name, func in functions:
        digest.update(_delimited(name) + function_digest(func))
    digest.update(repr(options).encode())
    return digest.hexdigest()


def load(key: str) -> tuple[Description, bytes] | None:
    """The entry of that key, (description, object code), or None."""
    folder = cache_folder()
    if folder is None:
        return None
    path = folder / key
    try:
        data = read_regular(path)
    except OSError:
        return None
    entry = _decode(data)
    try:
        if entry is None:
            path.unlink()
        else:
            os.utime(path)
    except OSError:
        return entry
    return entry


def _decode(data: bytes) -> tuple[Description, bytes] | None:
    start = len(_MAGIC) + _CHECKSUM
    payload = data[start:]
    if not data.startswith(_MAGIC) or data[len(_MAGIC) : start] != _checksum(payload):
        return None
    size = int.from_bytes(payload[:8], "little")
    description: Description = json.loads(payload[8 : 8 + size])
    return description, payload[8 + size :]


def _checksum(payload: bytes) -> bytes:
    return hashlib.blake2b(payload, digest_size=_CHECKSUM).digest()


def store(key: str, description: Description, code: bytes) -> None:
    """Write an entry; a disk that is full or read-only only costs the entry."""
    global _writes  # noqa: PLW0603 - a counter of the process
    folder = cache_folder()
    if folder is None:
        return
    header = json.dumps(description).encode()
    payload = len(header).to_bytes(8, "little") + header + code
    temporary = folder / f"tmp-{os.getpid()}-{secrets.token_hex(8)}"
    try:
        with temporary.open("xb") as file:
            file.write(_MAGIC + _checksum(payload) + payload)
        temporary.replace(folder / key)
    except OSError:
        temporary.unlink(missing_ok=True)
        return
    _writes += 1
    if _writes % _SWEEP_EVERY == 1:
        sweep(folder)


def sweep(folder: Path, limit: int | None = None) -> None:
    """Delete what killed writers left, and the entries unused for longest beyond the limit.

    ``limit`` is in bytes; None is that of the object cache.
    """
    if limit is None:
        limit = (environment_int("WEFT_CACHE_SIZE", minimum=1) or _DEFAULT_MIB) << 20
    entries = []
    now = time.time()
    for item in os.scandir(folder):
        try:
            if not item.is_file():
                continue
            status = item.stat()
            if item.name.startswith("tmp-"):
                if now - status.st_mtime > _STALE_SECONDS:
                    os.unlink(item.path)
            else:
                entries.append((status.st_mtime, status.st_size, item.path))
        except OSError:
            continue
    total = sum([size for _, size, _ in entries])
    if total <= limit:
        return
    for _, size, path in sorted(entries):
        Path(path).unlink(missing_ok=True)
        total -= size
        if total <= limit * 3 // 4:
            return
