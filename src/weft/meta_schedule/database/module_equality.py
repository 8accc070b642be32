"""When two modules count as the same workload: three kinds of equality."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from weft.ir.module import IRModule
from weft.ir.structural import bytes_except_arrays, structural_digest
from weft.tir.analysis.anchor_block import find_anchor_block


@dataclass(frozen=True)
class ModuleEquality:
    """Compares modules by a digest of a part of them.

    ``part`` gives that part; ``to_bytes`` what counts of values that are no nodes (None: all).
    """

    name: str
    part: Callable[[IRModule], object]
    to_bytes: Callable[[object], bytes] | None = None

    def equal(self, lhs: IRModule, rhs: IRModule) -> bool:
        """Whether both are the same workload."""
        return self.digest(lhs) == self.digest(rhs)

    def digest(self, mod: IRModule) -> bytes:
        """16 bytes, the same for modules that are equal, in every process."""
        return structural_digest(self.part(mod), to_bytes=self.to_bytes)


def _module(mod: IRModule) -> object:
    return mod


def _anchor(mod: IRModule) -> object:
    """The anchor block; the whole module where there is none."""
    return find_anchor_block(mod) or mod


EQUALITIES: Final = {
    equality.name: equality
    for equality in (
        ModuleEquality("structural", _module),
        ModuleEquality("ignore-ndarray", _module, bytes_except_arrays),
        ModuleEquality("anchor-block", _anchor, bytes_except_arrays),
    )
}
