"""JoinAxes: an access by quotient and remainder of one number by a symbolic extent is a flat one.

A schedule joins the rows of an image into one axis, so that its tiles need not end where a row
does. Before, for an image with rows of ``w`` pixels, and after::

    x[c, (o * 6 + v) // w, (o * 6 + v) % w]
    x_joined[c, o * 6 + v]

``x_joined`` is the same memory as ``x``, with ``h * w`` pixels in one axis. The quotient lies
between 0 and ``h`` just where the number lies between 0 and ``h * w``, so that no access that is an
error becomes another one. Without divisions, the number alone is compared with the extent: what is
known of it from guards proves that comparison. Constant extents need no such pass: code generation
joins their indices, after both are proved to be in their ranges. Runs before Simplify, which would
rewrite the quotient and the remainder each by itself.
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.ir.expr import IntImm, PrimExpr
from weft.ir.functor import contains
from weft.tir import op
from weft.tir.buffer import Buffer, BufferLoad
from weft.tir.expr import FloorDiv, FloorMod
from weft.tir.function import PrimFunc
from weft.tir.joined_index import walks
from weft.tir.stmt import BufferStore
from weft.tir.transform.prim_func_pass import StmtMutator, define_pass, rewrite_body

Place = tuple[Buffer, Sequence[PrimExpr]]


class _Join(StmtMutator):
    def __init__(self) -> None:
        super().__init__()
        self.joined: dict[tuple[Buffer, tuple[int, ...]], Buffer] = {}
        """(buffer, how many of its axes each axis of the other one has) -> that one."""

    def visit_BufferLoad(self, access: BufferLoad | BufferStore) -> BufferLoad | BufferStore:
        inner: BufferLoad | BufferStore = self.visit_default(access)
        place = self.place(inner.buffer, inner.indices)
        return inner if place is None else inner.with_(buffer=place[0], indices=place[1])

    visit_BufferStore = visit_BufferLoad

    def place(self, buffer: Buffer, indices: Sequence[PrimExpr]) -> Place | None:
        """The buffer with joined axes and the indices into it; None if no axes can be joined."""
        if buffer.strides or buffer.axis_separators or all(map(_is_number, buffer.shape)):
            return None
        groups = walks(indices, buffer.shape)
        if not any(_is_joined(sizes) for _, sizes in groups):
            return None
        key = buffer, tuple([len(sizes) for _, sizes in groups])
        if key not in self.joined:
            shape = [_product(sizes) for _, sizes in groups]
            self.joined[key] = buffer.with_(shape=shape)
        return self.joined[key], [index for index, _ in groups]


def _is_number(extent: PrimExpr) -> bool:
    return isinstance(extent, IntImm)


def _is_joined(sizes: Sequence[PrimExpr]) -> bool:
    """Whether axes are joined that a symbolic extent takes part in."""
    return len(sizes) > 1 and not all(map(_is_number, sizes))


def _product(sizes: Sequence[PrimExpr]) -> PrimExpr:
    total, *others = sizes
    for size in others:
        total = op.multiply(total, size)
    return total


def join_axes(func: PrimFunc) -> PrimFunc:
    """Join the axes of symbolic extent that accesses of a function divide one number by."""
    has_quotients = contains(func.body, FloorDiv) and contains(func.body, FloorMod)
    return rewrite_body(func, _Join()) if has_quotients else func


JoinAxes = define_pass("JoinAxes", join_axes)
