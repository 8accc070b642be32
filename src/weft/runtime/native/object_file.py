"""Compiled kernels in a file: what ``export_library`` of ``weft.build``'s result writes.

The file is ``MAGIC``, a checksum of the rest, the length of a description in JSON, the description,
object code. It holds machine code: load it only from where you would load a shared library.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Final

from weft.runtime.call.spec import FunctionSpec
from weft.runtime.native.object_code import ObjectCode, check_processor
from weft.support.errors import ArtifactFormatError

MAGIC: Final = b"weft-kernels-1\n\0"
_CHECKSUM: Final = 16
_LENGTH: Final = 8


def to_bytes(code: ObjectCode, entry: str | None) -> bytes:
    """The file of compiled kernels; ``entry`` is the function that a call of the module calls."""
    described = {
        "specs": [spec.to_json() for spec in code.specs],
        "triple": code.triple,
        "cpu": code.cpu,
        "features": list(code.features),
        "entry": entry,
    }
    header = json.dumps(described).encode()
    rest = len(header).to_bytes(_LENGTH, "little") + header + code.code
    return MAGIC + _digest(rest) + rest


def from_bytes(data: bytes, path: Path) -> tuple[ObjectCode, str | None]:
    """The code and the name of the entry; ``path`` is for messages.

    Raises ArtifactFormatError for a damaged file, ArtifactTargetError for another machine's code.
    """
    start = len(MAGIC) + _CHECKSUM
    rest = data[start:]
    if not data.startswith(MAGIC) or data[len(MAGIC) : start] != _digest(rest):
        raise ArtifactFormatError(
            f"{path.name}: expected kernels that export_library wrote, found a damaged file; "
            "build the program again"
        )
    length = int.from_bytes(rest[:_LENGTH], "little")
    described = json.loads(rest[_LENGTH : _LENGTH + length])
    specs = tuple([FunctionSpec.from_json(item) for item in described["specs"]])
    code = ObjectCode(
        rest[_LENGTH + length :],
        specs,
        described["triple"],
        described["cpu"],
        tuple(described["features"]),
    )
    check_processor(code)
    return code, described["entry"]


def _digest(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=_CHECKSUM).digest()
