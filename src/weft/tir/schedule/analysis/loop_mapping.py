"""Which loops of a block do what the loops of a tensor intrinsic's description do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from weft.arith.analyzer import Analyzer
from weft.ir.expr import IntImm, PrimExpr
from weft.ir.functor import mentions
from weft.tir import op
from weft.tir.function import PrimFunc
from weft.tir.schedule import tree
from weft.tir.schedule.random_variable import BlockRV
from weft.tir.schedule.session import Session
from weft.tir.schedule.tree import StmtSRef
from weft.tir.stmt import BlockRealize, For, SeqStmt

_T = TypeVar("_T")


@dataclass
class TensorizeInfo:
    """Loops of a block and the loops of a description that they stand for.

    ``block_iter_paddings`` has for each axis of the block what its extent must be a multiple of;
    None where no axis has to be padded.
    """

    loop_map: dict[StmtSRef, For] = field(default_factory=dict)
    desc_loop_indexer: dict[For, int] = field(default_factory=dict)
    block_iter_paddings: list[int] | None = None


def get_tensorize_loop_mapping(
    sch: Session, block: BlockRV, desc_func: PrimFunc, allow_padding: bool = False
) -> TensorizeInfo | None:
    """Map loops of a block to those of a description, or None where there is no mapping.

    Axes are matched from the last to the first, each with the next one of its kind. A loop must run
    a multiple of what that of the description does, unless the block may be padded.

    Args:
        sch: the schedule.
        block: the block that is to be tensorized.
        desc_func: the description of the intrinsic.
        allow_padding: whether extents may be padded, where all bindings are plain loops.

    >>> from weft import te, tir
    >>> A = te.placeholder((8, 32), name="A")
    >>> k = te.reduce_axis((0, 32), name="k")
    >>> B = te.compute((8,), lambda i: te.sum(A[i, k], axis=k), name="B")
    >>> function = te.create_prim_func([A, B])
    >>> sch = tir.Schedule(function)
    >>> info = get_tensorize_loop_mapping(sch, sch.get_block("B"), function)
    >>> [loop.loop_var.name for loop in info.loop_map.values()]
    ['k', 'i']
    """
    sref = sch._sref(block)
    inner, desc_loops = description_of(desc_func)
    loops = _plain_loops(sref)
    realize = tree.realize_of(sch.state, sref)
    if loops is None or len(loops) != len(realize.iter_values):
        return None
    match = _Match(realize, loops, allow_padding)
    info = TensorizeInfo(desc_loop_indexer={loop: i for i, loop in enumerate(desc_loops)})
    for axis, value in reversed(list(zip(inner.block.iter_vars, inner.iter_values, strict=True))):
        loop = _loop_of(value, [(item, item) for item in desc_loops])
        if loop is None or not isinstance(loop.extent, IntImm):
            return None
        place = match.next_axis(axis.iter_type)
        if place is None or not match.add(place, loop, info.loop_map):
            return None
    if match.padded and not match.allow_padding:
        return None
    if match.padded:
        places = range(len(realize.iter_values))
        info.block_iter_paddings = [match.padded.get(place, 1) for place in places]
    return info


def description_of(desc: PrimFunc) -> tuple[BlockRealize, list[For]]:
    """The inner block of a description, and the loops around it."""
    assert isinstance(desc.body, BlockRealize)
    [inner] = tree.child_realizes(desc.body.block)
    return inner, [
        item for item in tree.all_references(desc.body.block.body) if isinstance(item, For)
    ]


def _plain_loops(sref: StmtSRef) -> list[StmtSRef] | None:
    """The inner loops above a block that run nothing else; None if one does not start at 0."""
    loops: list[StmtSRef] = []
    for loop in reversed(tree.loops_above(sref)):
        assert isinstance(loop.stmt, For)
        if isinstance(loop.stmt.body, SeqStmt):
            break
        if not op.is_const_int(loop.stmt.min, 0):
            return None
        loops.insert(0, loop)
    return loops


@dataclass
class _Match:
    """The loops of the block that are not matched yet."""

    realize: BlockRealize
    loops: list[StmtSRef]
    allow_padding: bool
    padded: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.next = len(self.loops) - 1

    def next_axis(self, kind: int) -> int | None:
        """The place of the next axis of a kind, from the end."""
        for place in range(self.next, -1, -1):
            if self.realize.block.iter_vars[place].iter_type == kind:
                self.next = place - 1
                return place
        return None

    def add(self, place: int, desc_loop: For, loop_map: dict[StmtSRef, For]) -> bool:
        """Map the loop that runs an axis; False if the extents do not fit."""
        value = self.realize.iter_values[place]
        candidates = [
            (loop, loop.stmt)
            for loop in self.loops
            if loop not in loop_map and isinstance(loop.stmt, For)
        ]
        every = [loop.stmt for loop in self.loops if isinstance(loop.stmt, For)]
        loop = _loop_of(value, candidates, every)
        if loop is None:
            return True
        assert isinstance(loop.stmt, For)
        if value is not loop.stmt.loop_var:
            self.allow_padding = False
        extent, step = loop.stmt.extent, desc_loop.extent
        assert isinstance(step, IntImm)
        if not isinstance(extent, IntImm):
            return False
        if extent.value % step.value:
            if not self.allow_padding:
                return False
            self.padded[place] = step.value
        loop_map[loop] = desc_loop
        return True


def _loop_of(
    value: PrimExpr, loops: Sequence[tuple[_T, For]], every: Sequence[For] | None = None
) -> _T | None:
    """The loop to whose variable a value adds only what no loop changes."""
    variables = [loop.loop_var for loop in (every or [loop for _, loop in loops])]
    for item, loop in loops:
        rest = Analyzer().simplify(op.subtract(value, loop.loop_var))
        if not mentions(rest, *variables):
            return item
    return None
