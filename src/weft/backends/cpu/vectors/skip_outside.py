"""SkipOutside: a sum over a window leaves out the steps in which a whole tile lies outside.

For loops with the annotation ``SKIP_OUTSIDE``: the steps of a window with holes, over an image of
unknown size that was padded with zeros. Before, with holes of 12 pixels and tiles of 8::

    for r, c in T.grid(h + 24, w + 24):
        p[r, c] = T.if_then_else(12 <= r < h + 12 and 12 <= c < w + 12, x[r - 12, c - 12], 0.0)
    ...
    for i in range(3):          # annotated
        for j in range(3):      # annotated
            for v in T.unroll(8): s[v] = s[v] + p[y + i * 12, begin + v + j * 12] * k[i, j]

After::

    for r in range(h + 24):
        if 12 <= r < h + 12:    # no other row is read
            for c in range(w + 24): p[r, c] = ...
    ...
    for i in range(3):
        if 12 <= y + i * 12 < h + 12:
            for j in range(3):
                if begin + 7 + j * 12 >= 12 and begin + j * 12 < w + 12:
                    for v in T.unroll(8): s[v] = s[v] + p[y + i * 12, begin + v + j * 12] * k[i, j]

As with SkipPadding, a weight that is infinite or NaN times the zero of padding would be NaN, and is
not: a schedule must ask for this. Runs after ShiftTiles, whose tiles begin where a variable says.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from weft.arith.conjunction import conjunction, conjuncts
from weft.arith.linear import detect_linear_equation
from weft.backends.cpu.vectors.skip_padding import padded_element
from weft.ir.expr import IntImm, PrimExpr
from weft.ir.functor import collect, mentions
from weft.tir import op
from weft.tir.buffer import Buffer, BufferLoad
from weft.tir.expr import LE, LT, Add, Mul, Var
from weft.tir.function import PrimFunc
from weft.tir.stmt import BufferStore, For, IfThenElse, Stmt
from weft.tir.transform.prim_func_pass import StmtMutator, define_pass, rewrite_body

SKIP_OUTSIDE: Final = "tir.skip_outside"
"""The annotation of a loop over the steps of a window."""


class _Image(NamedTuple):
    """A padded image: what is outside of these tests is zero."""

    store: BufferStore
    inside: Mapping[int, list[PrimExpr]]
    """Axis -> tests of its index, which is a variable of the loops that fill the image."""

    def test(self, axis: int, first: PrimExpr, last: PrimExpr) -> list[PrimExpr]:
        """The tests that some index from ``first`` to ``last`` of an axis is inside."""
        at = self.store.indices[axis]
        return [_with(test, at, first, last) for test in self.inside[axis]]


def _with(test: PrimExpr, at: PrimExpr, first: PrimExpr, last: PrimExpr) -> PrimExpr:
    """``low <= at`` of the last index, or ``at < high`` of the first one."""
    assert isinstance(test, (LE, LT))
    return type(test)(test.a, last) if test.b is at else type(test)(first, test.b)


def _images(body: Stmt) -> dict[Buffer, _Image]:
    """The images of a function that are padded with zeros, by one store each."""
    stores: dict[Buffer, list[BufferStore]] = {}
    for store in collect(body, BufferStore):
        stores.setdefault(store.buffer, []).append(store)
    images = {}
    for buffer, (store, *others) in stores.items():
        padded = padded_element(store.value)
        if padded is None or others:
            continue
        tests: dict[int, list[PrimExpr]] = {}
        for test in conjuncts(padded[0]):
            for axis, index in enumerate(store.indices):
                if isinstance(index, Var) and _is_limit(test, index):
                    tests.setdefault(axis, []).append(test)
        images[buffer] = _Image(store, tests)
    return images


def _is_limit(test: PrimExpr, index: Var) -> bool:
    """Whether a test compares an index with something that does not depend on it."""
    if not isinstance(test, (LE, LT)) or (test.a is index) == (test.b is index):
        return False
    return not mentions(test.b if test.a is index else test.a, index)


class _Skip(StmtMutator):
    def __init__(self, images: Mapping[Buffer, _Image]) -> None:
        super().__init__()
        self.images = images
        self.tested: dict[Buffer, list[set[int]]] = {}
        """The axes of which exactly what is inside is read, for each load of an image."""

    def visit_For(self, loop: For) -> For:
        inner: For = self.visit_default(loop)
        if SKIP_OUTSIDE not in inner.annotations:
            return inner
        rest = {key: value for key, value in inner.annotations.items() if key != SKIP_OUTSIDE}
        tests = [*self._tests(inner)]
        body = IfThenElse(conjunction(tests), inner.body) if tests else inner.body
        return inner.with_(annotations=rest, body=body)

    def _tests(self, loop: For) -> Iterator[PrimExpr]:
        """The tests that a step of a loop meets pixels of the image; none if it may do more."""
        stores = collect(loop.body, BufferStore)
        load = self._padded_factor(stores[0]) if len(stores) == 1 else None
        if load is None:
            return
        inside = {inner.loop_var: inner.extent for inner in collect(loop.body, For)}
        image = self.images[load.buffer]
        for axis in image.inside:
            ends = _ends(load.indices[axis], inside)
            if ends is not None and mentions(load.indices[axis], loop.loop_var):
                yield from image.test(axis, *ends)
                if ends[0] is ends[1]:
                    self.tested.setdefault(load.buffer, []).append({axis})

    def _padded_factor(self, store: BufferStore) -> BufferLoad | None:
        """The element of a padded image of which a store adds a product; None for others."""
        total = store.value
        if not isinstance(total, Add) or not isinstance(total.b, Mul):
            return None
        factors = [item for item in (total.b.a, total.b.b) if isinstance(item, BufferLoad)]
        padded = [item for item in factors if item.buffer in self.images]
        return padded[0] if len(padded) == 1 else None


def _ends(index: PrimExpr, loops: Mapping[Var, PrimExpr]) -> tuple[PrimExpr, PrimExpr] | None:
    """The least and the largest value of an index over loops; None if that is not known.

    Both are the index itself if it depends on none of the loops.
    """
    used = [var for var in loops if mentions(index, var)]
    if not used:
        return index, index
    *steps, rest = detect_linear_equation(index, used) or [None]
    first = last = 0
    for var, step in zip(used, steps, strict=False):
        extent = loops[var]
        if not isinstance(step, IntImm) or not isinstance(extent, IntImm):
            return None
        reach = step.value * (extent.value - 1)
        first, last = first + min(reach, 0), last + max(reach, 0)
    return None if rest is None else (op.add(rest, first), op.add(rest, last))


class _FillInside(StmtMutator):
    """Fills an image only where it is read: the loops of these axes test their variable.

    A loop that fills something else, too, stays.
    """

    def __init__(self, loops: Mapping[Var, Sequence[PrimExpr]]) -> None:
        super().__init__()
        self.loops = loops

    def visit_For(self, loop: For) -> For:
        inner: For = self.visit_default(loop)
        tests = self.loops.get(loop.loop_var)
        if len(collect(inner.body, BufferStore)) > 1:
            return inner
        return inner.with_(body=IfThenElse(conjunction(tests), inner.body)) if tests else inner


def skip_outside(func: PrimFunc) -> PrimFunc:
    """Leave out the steps of annotated loops that meet nothing but the padding of an image."""
    if not any(SKIP_OUTSIDE in loop.annotations for loop in collect(func.body, For)):
        return func
    images = _images(func.body)
    skip = _Skip(images)
    rewritten = rewrite_body(func, skip)
    loops: dict[Var, Sequence[PrimExpr]] = {}
    arguments = {buffer.data for buffer in func.buffer_map.values()}  # the caller reads them, too
    for buffer, axes in skip.tested.items():
        if buffer.data in arguments:
            continue
        reads = [load for load in collect(func.body, BufferLoad) if load.buffer is buffer]
        exact = set.union(*axes)
        for axis in exact:
            index = images[buffer].store.indices[axis]
            if sum(axis in tested for tested in axes) == len(reads) and isinstance(index, Var):
                loops[index] = images[buffer].inside[axis]
    return rewrite_body(rewritten, _FillInside(loops)) if loops else rewritten


SkipOutside = define_pass("SkipOutside", skip_outside)
