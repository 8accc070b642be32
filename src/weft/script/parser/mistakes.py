"""Warnings of programs that are legal but probably not what their author means.

``block_mistakes`` examines a function as it was written, before missing regions are added: a block
with its own ``T.reads`` of a buffer means to use what the buffer holds. The parser notes mistakes
that only a statement shows (a store that truncates numbers, a variable that ends with a loop).
``warn`` reports each once, at the user's line, as a ScriptWarning.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from weft.ir.expr import FloatImm, PrimExpr
from weft.ir.functor import Visitor, collect
from weft.ir.structural import structural_equal
from weft.script.ir_builder.completion import DETECT
from weft.support.errors import ScriptWarning
from weft.support.recursion import deep_recursion
from weft.support.span import Span
from weft.tir.buffer import Buffer, BufferLoad
from weft.tir.constant import is_const_int
from weft.tir.expr import IterVar, Var
from weft.tir.function import PrimFunc
from weft.tir.stmt import Block, BlockRealize, BufferStore, Evaluate, For

_READS: Final = 1
"""The bit of the mark ``DETECT`` for a block without ``T.reads``."""


@dataclass(frozen=True)
class Mistake:
    """A probable mistake: its message and its location."""

    message: str
    span: Span | None


def warn(mistakes: Iterable[Mistake]) -> None:
    """A ScriptWarning for each, once per place."""
    for mistake in mistakes:
        if mistake.span is not None:
            name = mistake.span.source_name.name
            warnings.warn_explicit(
                mistake.message,
                ScriptWarning,
                name,
                mistake.span.line,
                registry=_REGISTRIES.setdefault(name, {}),
            )


_REGISTRIES: Final[dict[str, dict[Any, Any]]] = {}
"""File -> the warnings that were given, in the form of the module ``warnings``."""


def truncating_store(buffer: Buffer, value: PrimExpr, span: Span) -> list[Mistake]:
    """The mistake of a store that truncates a float to an integer, if it does."""
    if not buffer.dtype.is_integral or not value.dtype.is_float:
        return []
    if isinstance(value, FloatImm) and value.value.is_integer():
        return []
    mistake = Mistake(
        f"{buffer.name} holds {buffer.dtype}, and the value stored is {value.dtype}: what stands "
        f"behind the point is cut off (0.75 becomes 0); make {buffer.name} a buffer of "
        f'{value.dtype}, or say that it is meant: T.Cast("{buffer.dtype}", ...)',
        span,
    )
    return [mistake]


@deep_recursion
def block_mistakes(func: PrimFunc) -> list[Mistake]:
    """The probable mistakes in the blocks of a function, before regions are added."""
    visitor = _BlockVisitor()
    visitor.visit(func.body)
    return visitor.mistakes


class _BlockVisitor(Visitor):
    """Walks statements in the order in which they run."""

    def __init__(self) -> None:
        self.mistakes: list[Mistake] = []
        self.loops: list[For] = []
        self.realizes: list[BlockRealize] = []
        self.touched: set[Var] = set()
        self.sources: dict[Var, Var] = {}

    def memory(self, data: Var) -> Var:
        """The data variable of the memory: a matched buffer lies in the memory of another."""
        while data in self.sources:
            data = self.sources[data]
        return data

    def visit_For(self, node: For) -> None:
        self.loops.append(node)
        self.visit(node.body)
        self.loops.pop()

    def visit_BlockRealize(self, node: BlockRealize) -> None:
        block, loops = node.block, self.loops
        for axis, value in zip(block.iter_vars, node.iter_values, strict=True):
            self.check_order(axis, value)
        for match in block.match_buffers:
            self.sources[match.buffer.data] = match.source.buffer.data
        self.realizes.append(node)
        if block.init is not None:
            self.check_init(block)
            started = [store.buffer.data for store in collect(block.init, BufferStore)]
            self.touched.update([self.memory(data) for data in started])
        if block.iter_vars:
            self.loops = []
        self.visit(block.body)
        self.loops = loops
        self.realizes.pop()

    def check_order(self, axis: IterVar, value: PrimExpr) -> None:
        """Note an axis whose extent is a loop variable and whose binding is none: exchanged."""
        extent = axis.dom.extent if axis.dom is not None else None
        variables = {loop.loop_var for loop in self.loops}
        if extent in variables and not variables & set(collect(value, Var)):
            self.note(
                f"axis {axis.var.name} goes up to the loop {extent} and is bound to {value}: its "
                f"arguments are swapped; write T.axis.spatial({value}, {extent})",
                axis,
            )

    def check_init(self, block: Block) -> None:
        if any(axis.accumulates for axis in block.iter_vars):
            return
        started = {store.buffer.data for store in collect(block.init, BufferStore)}
        for store in collect(block.body, BufferStore):
            if store.buffer.data in started and _updates_itself(store):
                break
        else:
            return
        repeated = self.repeated(block, store)
        if repeated:
            self.note(
                f"block {block.name_hint!r} has T.init but no reduction axis: {store.buffer.name} "
                f"starts anew in every iteration of {repeated[0]}, and only the last one counts; "
                f"make {repeated[0]} a reduction axis: T.axis.reduce, or R in T.axis.remap",
                block,
            )

    def visit_BufferStore(self, node: BufferStore) -> None:
        parts = collect(node.value, (BufferLoad, Var))
        loads = [part for part in parts if isinstance(part, BufferLoad)]
        if self.realizes and _is_among(node, loads):
            self.check_update(node, self.realizes[-1].block)
        loaded = {load.buffer.data for load in loads}
        handles = [part for part in parts if isinstance(part, Var) and part.dtype.is_handle]
        self.touched.add(self.memory(node.buffer.data))
        self.touched.update([self.memory(var) for var in handles if var not in loaded])

    def check_update(self, store: BufferStore, block: Block) -> None:
        """``C[...] = C[...] + ...`` in a block."""
        name = store.buffer.name
        accumulating = [axis for axis in block.iter_vars if axis.accumulates]
        if not accumulating and block.init is None and block.iter_vars:
            repeated = self.repeated(block, store)
            if repeated:
                self.note(
                    f"axis {repeated[0]} of block {block.name_hint!r} is spatial, but {name} is "
                    f"built up along it: schedules take its iterations for independent; make it "
                    f"a reduction axis (T.axis.reduce, or R in T.axis.remap) with T.init",
                    block,
                )
        if accumulating and block.init is None and self.starts_from_nothing(store):
            indices = ", ".join([str(index) for index in store.indices])
            self.note(
                f"block {block.name_hint!r} adds to {name} along {accumulating[0].var.name}, and "
                f"nothing gives {name} a first value: write `with T.init(): {name}[{indices}] = "
                f"...` first, or T.reads({name}[{indices}], ...) if it builds on what is there",
                block,
            )

    def repeated(self, block: Block, store: BufferStore) -> list[str]:
        """Axes along which ``store`` writes one element; of a block without axes, loops."""
        used = set(collect(list(store.indices), Var))
        if used - {axis.var for axis in block.iter_vars} and block.iter_vars:
            return []  # an inner loop or a let, which are not analysed here
        if block.iter_vars:
            return [
                axis.var.name
                for axis in block.iter_vars
                if axis.iter_type == IterVar.DataPar
                and axis.var not in used
                and axis.dom is not None
                and not is_const_int(axis.dom.extent, 1)
            ]
        return [
            loop.loop_var.name
            for loop in self.loops
            if loop.loop_var not in used and not is_const_int(loop.extent, 1)
        ]

    def starts_from_nothing(self, store: BufferStore) -> bool:
        """Whether no statement before wrote the buffer, and no block declares to read it."""
        data = self.memory(store.buffer.data)
        if data in self.touched:
            return False
        for realize in self.realizes:
            mark = realize.block.annotations.get(DETECT, 0)
            if not int(mark) & _READS and any(
                self.memory(region.buffer.data) is data for region in realize.block.reads
            ):
                return False
        return True

    def visit_Evaluate(self, node: Evaluate) -> None:
        """A call may write any memory whose pointer it gets."""
        handles = [var for var in collect(node, Var) if var.dtype.is_handle]
        self.touched.update([self.memory(var) for var in handles])

    def visit_PrimExpr(self, node: PrimExpr) -> None:
        """Expressions hold no statements."""

    def note(self, message: str, node: Block | IterVar) -> None:
        self.mistakes.append(Mistake(message, node.span))


def _updates_itself(store: BufferStore) -> bool:
    """Whether the new value is computed from the element itself."""
    return _is_among(store, collect(store.value, BufferLoad))


def _is_among(store: BufferStore, loads: Sequence[BufferLoad]) -> bool:
    return any(
        load.buffer.data is store.buffer.data and structural_equal(load.indices, store.indices)
        for load in loads
    )
