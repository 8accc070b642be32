"""InlineElementwise: an element is computed where it is read, if one block reads it, and once.

Before, in a kernel that was fused from several operators::

    for i, j in T.grid(n, 8):
        with T.block("divide"):
            vi, vj = T.axis.remap("SS", [i, j])
            D[vi, vj] = X[vi, vj] / S[vj]
    for i, j in T.grid(n, 8):
        with T.block("round"):
            vi, vj = T.axis.remap("SS", [i, j])
            R[vi, vj] = T.round(D[vi, vj])

After::

    for i, j in T.grid(n, 8):
        with T.block("round"):
            vi, vj = T.axis.remap("SS", [i, j])
            R[vi, vj] = T.round(X[vi, vj] / S[vj])

No schedule decides otherwise, since nothing is computed twice, and a schedule with tens of blocks
fewer is ready sooner: quantised models have chains of ten operators between two products. What
repeats or moves elements is left to schedules (``compute_inline``). The pass takes functions made
from tensor expressions, before they are scheduled.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from weft.ir.expr import IntImm, PrimExpr
from weft.ir.functor import Mutator, collect, substitute
from weft.tir import op
from weft.tir.analysis.block_access_region import get_block_read_write_region
from weft.tir.buffer import Buffer, BufferLoad
from weft.tir.expr import Call, IterVar, Let, Var
from weft.tir.function import PrimFunc
from weft.tir.intrinsic import CallEffectKind, effect_of
from weft.tir.stmt import Block, BlockRealize, BufferStore, For, ForKind, Stmt, seq
from weft.tir.transform.prim_func_pass import define_pass

_REPEATABLE: Final = (CallEffectKind.Pure, CallEffectKind.ExprAnnotation)
"""Effects of calls that may be computed in another place."""
MOST_LOADS: Final = 64
"""Loads that a block may have for each of another one that reads its element several times."""


@dataclass
class _Stage:
    """A nest of loops around a block that stores one element for each of its axes."""

    nest: Stmt
    block: Block
    store: BufferStore
    axes: list[Var]
    value: PrimExpr = field(init=False)
    """What it stores, once stages before it have been inlined."""
    loads: int = field(init=False)
    """The loads in the value, counted with repetitions."""

    def __post_init__(self) -> None:
        self.value = self.store.value
        self.loads = len(collect(self.value, BufferLoad))

    def loads_of(self, buffer: Buffer) -> list[BufferLoad]:
        """The loads of a buffer in the value."""
        return [load for load in collect(self.value, BufferLoad) if load.buffer is buffer]

    def is_elementwise(self) -> bool:
        """Whether each element is computed of elements at its own indices (in any order, or some of
        them) and at fixed ones, and may as well be computed elsewhere.
        """
        indices = [index for load in collect(self.value, BufferLoad) for index in load.indices]
        axes = frozenset(self.axes)
        return (
            _are(self.store.indices, self.axes)
            and all(isinstance(index, IntImm) or index in axes for index in indices)
            and not collect(self.value, Let)
            and all(effect_of(call) in _REPEATABLE for call in collect(self.value, Call))
        )

    def reads_at_its_axes(self, buffer: Buffer) -> bool:
        """Whether every access to a buffer is a load of the element at the stage's own axes."""
        loads = self.loads_of(buffer)
        whole = all(_are(load.indices, self.axes) and load.predicate is None for load in loads)
        return bool(loads) and whole and buffer is not self.store.buffer


def _stage_of(nest: Stmt) -> _Stage | None:
    """The nest as a stage; None for reductions and for what tensor expressions do not give."""
    loops, stmt = [], nest
    while isinstance(stmt, For) and stmt.kind == ForKind.SERIAL and not stmt.annotations:
        loops.append(stmt.loop_var)
        stmt = stmt.body
    if not isinstance(stmt, BlockRealize) or not op.is_const_int(stmt.predicate, 1):
        return None
    block, store = stmt.block, stmt.block.body
    if not _are(stmt.iter_values, loops) or not isinstance(store, BufferStore):
        return None
    is_plain = block.init is None and not block.alloc_buffers and not block.match_buffers
    if not is_plain or any(axis.iter_type != IterVar.DataPar for axis in block.iter_vars):
        return None
    return _Stage(nest, block, store, [axis.var for axis in block.iter_vars])


def _are(indices: Sequence[PrimExpr], variables: Sequence[Var]) -> bool:
    """Whether the indices are the variables, in this order."""
    return len(indices) == len(variables) and all(map(operator.is_, indices, variables))


class _Stages:
    """The nests below a function's root block, and which of them use which buffer."""

    def __init__(self, root: Block) -> None:
        self.nests: Sequence[Stmt] = getattr(root.body, "seq", (root.body,))
        self.stages = [_stage_of(nest) for nest in self.nests]
        self.local = {buffer.data: buffer for buffer in root.alloc_buffers}
        self.users: dict[Var, set[int]] = {data: set() for data in self.local}
        for number, nest in enumerate(self.nests):
            for data in set(collect(nest, Var)) & self.local.keys():
                self.users[data].add(number)
        self.inlined: set[int] = set()
        self.gone: set[Buffer] = set()
        self.changed: set[int] = set()

    def inline(self) -> None:
        """Inline what may be, in the order of the stages."""
        for number, producer in enumerate(self.stages):
            reader = None if producer is None else self._only_reader(producer, number)
            if producer is not None and reader is not None:
                self._inline(number, producer, reader)

    def _only_reader(self, producer: _Stage, number: int) -> int | None:
        buffer = producer.store.buffer
        others = self.users.get(buffer.data, set()) - {number}
        if len(others) != 1 or not producer.is_elementwise():
            return None
        [other] = others
        reader = self.stages[other]
        if reader is None or other < number or not reader.reads_at_its_axes(buffer):
            return None
        if [axis.dtype for axis in reader.axes] != [axis.dtype for axis in producer.axes]:
            return None
        count = len(reader.loads_of(buffer))
        return None if count > 1 and count * producer.loads > MOST_LOADS else other

    def _inline(self, number: int, producer: _Stage, other: int) -> None:
        reader, buffer = self.stages[other], producer.store.buffer
        assert reader is not None
        count = len(reader.loads_of(buffer))
        element = substitute(producer.value, dict(zip(producer.axes, reader.axes, strict=True)))
        reader.value = _Replacer(buffer, element).visit(reader.value)
        reader.loads += count * (producer.loads - 1)
        for users in self.users.values():
            if number in users:
                users.remove(number)
                users.add(other)
        self.inlined.add(number)
        self.gone.add(buffer)
        self.changed.add(other)

    def statements(self, buffers: dict[Var, Buffer]) -> Iterator[Stmt]:
        """The nests that are left, those that read others' elements with their new values."""
        for number, (nest, stage) in enumerate(zip(self.nests, self.stages, strict=True)):
            if number in self.inlined:
                continue
            if stage is None or number not in self.changed:
                yield nest
            else:
                yield _BlockReplacer(stage.block, _block_of(stage, buffers)).visit(nest)


class _Replacer(Mutator):
    """Replaces loads of a buffer, all at one index, by one expression."""

    def __init__(self, buffer: Buffer, element: PrimExpr) -> None:
        super().__init__()
        self.buffer, self.element = buffer, element

    def visit_BufferLoad(self, load: BufferLoad) -> PrimExpr:
        return self.element if load.buffer is self.buffer else self.visit_default(load)


class _BlockReplacer(Mutator):
    """Puts a block in the place of another one."""

    def __init__(self, old: Block, new: Block) -> None:
        super().__init__()
        self.old, self.new = old, new

    def visit_Block(self, block: Block) -> Block:
        return self.new if block is self.old else block


def _block_of(stage: _Stage, buffers: dict[Var, Buffer]) -> Block:
    block = stage.block.with_(body=stage.store.with_(value=stage.value))
    reads, writes = get_block_read_write_region(block, buffers)
    return block.with_(reads=reads, writes=writes)


def inline_elementwise(func: PrimFunc) -> PrimFunc:
    """The function without the blocks whose elements one other block can compute for itself."""
    realize = func.body
    if func.provenance != "te" or not isinstance(realize, BlockRealize):
        return func
    root = realize.block
    stages = _Stages(root)
    stages.inline()
    if not stages.inlined:
        return func
    buffers = {buffer.data: buffer for buffer in [*func.buffer_map.values(), *root.alloc_buffers]}
    body = seq(*stages.statements(buffers))
    kept = [buffer for buffer in root.alloc_buffers if buffer not in stages.gone]
    new_root = root.with_(body=body, alloc_buffers=kept)
    return func.with_(body=realize.with_(block=new_root))


InlineElementwise = define_pass("InlineElementwise", inline_elementwise)
