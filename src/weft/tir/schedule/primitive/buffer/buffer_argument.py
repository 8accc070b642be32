"""The ways to name a buffer of a block: its place among the accesses, its name or the Buffer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from weft.support.errors import IRTypeError, IRValueError
from weft.tir.buffer import Buffer
from weft.tir.schedule.random_variable import BlockRV
from weft.tir.schedule.session import Session
from weft.tir.stmt import Block

KINDS = ("read", "write")
BufferPlace: TypeAlias = tuple[str, int] | list[str | int] | str | Buffer
"""A buffer that a block accesses: ``("read", i)``, ``("write", i)``, its name, or itself."""


def buffer_position(
    schedule: Session, block: BlockRV, given: object, required: str | None = None
) -> tuple[str, int]:
    """``("read", i)`` or ``("write", i)`` of a buffer given as that, a name, or a Buffer.

    With ``required`` ("read" or "write") a number alone is a place among those; the place itself is
    not checked. Of a buffer that is read and written, a name means the write, a Buffer the read.
    """
    stmt = schedule.get(block)
    assert isinstance(stmt, Block)
    value = getattr(given, "value", given)
    if isinstance(value, int) and not isinstance(value, bool) and required is not None:
        return required, value
    if isinstance(given, (list, tuple)) and len(given) == 2:
        return _checked_pair(stmt, given, required)
    if not isinstance(given, (str, Buffer)):
        number = "a number, " if required else ""
        raise IRTypeError(
            f"expected {number}a name, a Buffer or a pair such as ('read', 0), got "
            f"{type(given).__name__} {given!r}"
        )
    return _found(stmt, given, required)


def _checked_pair(block: Block, given: Sequence[object], required: str | None) -> tuple[str, int]:
    kind, index = given
    is_place = isinstance(index, int) and not isinstance(index, bool)
    if not isinstance(kind, str) or kind not in KINDS or not isinstance(index, int) or not is_place:
        raise IRValueError(f"expected ('read', i) or ('write', i), got {tuple(given)!r}")
    if required not in (None, kind):
        raise IRValueError(
            f"expected a buffer that block {block.name_hint} {required}s, got a "
            f"place among those it {kind}s"
        )
    return kind, index


def _found(block: Block, given: str | Buffer, required: str | None) -> tuple[str, int]:
    name = given if isinstance(given, str) else given.name
    places: list[tuple[str, int, Buffer]] = []
    for kind, regions in zip(KINDS, (block.reads, block.writes), strict=True):
        for index, region in enumerate(regions):
            same = region.buffer.name == given if isinstance(given, str) else region.buffer is given
            if same and required in (None, kind):
                places.append((kind, index, region.buffer))
    if not places:
        verb = f"{required}s" if required else "reads or writes"
        known = [region.buffer.name for region in (*block.reads, *block.writes)]
        names = ", ".join(dict.fromkeys(known)) or "none"
        raise IRValueError(
            f"block {block.name_hint} {verb} no buffer {name}; its buffers are {names}"
        )
    if any(buffer is not places[0][2] for _, _, buffer in places):
        raise IRValueError(f"block {block.name_hint} has several buffers called {name}")
    kind, index, _ = places[-1 if isinstance(given, str) else 0]
    return kind, index
