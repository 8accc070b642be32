"""Sharing the copies to shared memory among the threads of a block."""

from __future__ import annotations

from dataclasses import dataclass

from weft.ir.expr import PrimExpr
from weft.ir.functor import collect
from weft.ir.op import Op
from weft.meta_schedule.annotations import COOPERATIVE_FETCH, WARP_EXECUTION
from weft.meta_schedule.block_questions import constant_extent
from weft.meta_schedule.postproc.base import Postproc
from weft.meta_schedule.protocols import Context
from weft.meta_schedule.target_facts import target_of, warp_size
from weft.tir.buffer import BufferLoad
from weft.tir.expr import Call, Cast
from weft.tir.schedule.random_variable import BlockRV, LoopRV
from weft.tir.schedule.schedule import Schedule
from weft.tir.stmt import Block, BufferStore

_WIDE_PRODUCTS = tuple(
    Op.get(name) for name in ("tir.q_multiply_shift", "tir.q_multiply_shift_per_axis")
)
"""Functions that compute with 64 bits inside."""
_WIDEST = 4
"""The bytes of the widest data that is copied in vectors."""


@dataclass(frozen=True)
class _Copy:
    """A block that copies, and the threads that share the work."""

    block: BlockRV
    lanes: int
    threads: dict[str, int]


class RewriteCooperativeFetch(Postproc):
    """Splits and binds the loops of blocks marked with ``meta_schedule.cooperative_fetch``.

    The mark says how many elements a thread copies at once; the trace says how many threads the
    computation has.
    """

    def __init__(self) -> None:
        self._warp_size: int | None = None

    def _initialize_with_tune_context(self, context: Context) -> None:
        self._warp_size = warp_size(target_of(context, "RewriteCooperativeFetch"))

    def apply(self, sch: Schedule) -> bool:
        """Bind the copies; always True."""
        for copy in self._copies(sch):
            sch.unannotate(copy.block, COOPERATIVE_FETCH)
            _share(sch, copy)
        return True

    def _copies(self, sch: Schedule) -> list[_Copy]:
        """The marked blocks, each with the threads that were bound before it."""
        assert sch.trace is not None
        threads: dict[str, int] = {}
        copies = []
        for inst in sch.trace.insts:
            if inst.kind.name == "Bind" and str(inst.attrs[0]).startswith("threadIdx."):
                loop = inst.inputs[0]
                assert isinstance(loop, LoopRV)
                extent = constant_extent(sch.get(loop))
                if extent is not None:
                    threads[str(inst.attrs[0])] = extent
            elif inst.kind.name == "Annotate" and inst.attrs == [WARP_EXECUTION]:
                threads["threadIdx.x"] = self._warp_size or 1
            elif inst.kind.name == "Annotate" and inst.attrs == [COOPERATIVE_FETCH]:
                block = inst.inputs[0]
                assert isinstance(block, BlockRV)
                copies.append(_Copy(block, _number(sch, inst.inputs[1]), dict(threads)))
        return copies


def _number(sch: Schedule, value: object) -> int:
    """A number of a trace, sampled or plain."""
    return int(sch.get(value)) if isinstance(value, PrimExpr) else int(str(value))


def _share(sch: Schedule, copy: _Copy) -> None:
    """Split the last loop of a copy: rounds, threads, the elements of a vector."""
    loop = sch.get_loops(copy.block)[-1]
    extent = constant_extent(sch.get(loop))
    tags = [tag for tag in ("threadIdx.y", "threadIdx.x") if tag in copy.threads]
    if extent is None or not tags:
        return
    in_vectors = copy.lanes > 1 and extent % copy.lanes == 0
    lanes = copy.lanes if in_vectors and _widest_bytes(sch.get(copy.block)) <= _WIDEST else 1
    threads = [copy.threads[tag] for tag in tags]
    parts = sch.split(loop, [None, *threads, *([lanes] if lanes > 1 else [])])
    if lanes > 1:
        sch.vectorize(parts[-1])
    for tag, part in reversed(list(zip(tags, parts[1:], strict=False))):
        sch.bind(part, tag)


def _widest_bytes(block: Block) -> int:
    """The size of the widest number that a block computes with."""
    values = [store.value for store in collect(block.body, BufferStore)]
    values += collect(block.body, (BufferLoad, Cast))
    widest = max([value.dtype.bits * value.dtype.lanes // 8 for value in values], default=1)
    is_wide = any(call.op in _WIDE_PRODUCTS for call in collect(block.body, Call))
    return max(widest, 8) if is_wide else widest
