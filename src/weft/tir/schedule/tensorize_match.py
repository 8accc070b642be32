"""Comparing a block with the description of a tensor intrinsic.

The two may differ in the names of variables, in where the regions of the buffers lie (each buffer
of the block is compared relative to the start of its region), in leading dimensions of extent 1,
and in the width of index types. All else must be the same: TVM's ``TensorizeComparator``, but types
are compared in full and inits too. The first difference is raised as ``Mismatch``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from weft.arith.analyzer import Analyzer
from weft.arith.analyzer_of import analyzer_of
from weft.ir.expr import FloatImm, IntImm, PrimExpr, Range
from weft.ir.functor import collect, substitute
from weft.ir.node import Node
from weft.support.recursion import deep_recursion
from weft.tir import op
from weft.tir.buffer import Buffer, BufferLoad, BufferRegion
from weft.tir.expr import Call, IterVar, Let, Var
from weft.tir.stmt import BlockRealize, BufferStore, For, IfThenElse, LetStmt, SeqStmt, Stmt


class Mismatch(Exception):
    """The first difference: what differs, its form in the program and in the description."""

    def __init__(self, what: str, here: object, there: object) -> None:
        super().__init__(what)
        self.what, self.here, self.there = what, _text(here), _text(there)

    def __str__(self) -> str:
        return f"{self.what}: {self.here} here, {self.there} in the description"


def _text(value: object) -> str:
    text = str(value).split("\n")[-1] if isinstance(value, Node) else str(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


class Matched:
    """The result of a successful comparison: which buffer is which, and where its region starts."""

    def __init__(self) -> None:
        self.buffers: dict[Buffer, Buffer] = {}
        """Buffer of the description -> buffer of the block."""
        self.starts: dict[Buffer, list[PrimExpr]] = {}
        """Buffer of the block -> where its region starts."""


@deep_recursion
def compare(realize: BlockRealize, desc: BlockRealize, outside: Mapping[Var, Range]) -> Matched:
    """Compare a block with the root block of a description; raises Mismatch where they differ.

    ``outside`` are ranges of variables around the block.
    """
    work = _Comparer(outside)
    work.scope(realize, desc)
    return work.matched


class _Comparer:
    def __init__(self, outside: Mapping[Var, Range]) -> None:
        self.matched = Matched()
        self.variables: dict[Var, PrimExpr] = {}
        self.analyzer = analyzer_of(outside)

    # ---- statements

    def scope(self, mine: BlockRealize, its: BlockRealize) -> None:
        """The outermost blocks: predicate, regions (which place the buffers), body."""
        if not self.equal(mine.predicate, its.predicate):
            raise Mismatch("predicate", mine.predicate, its.predicate)
        if its.block.init is not None:
            raise Mismatch("init", "not compared", "one in the root block; put it into the body")
        if mine.block.match_buffers:
            raise Mismatch("matched buffers", len(mine.block.match_buffers), "none")
        for axis in mine.block.iter_vars:
            if axis.dom is not None:
                self.analyzer.bind(axis.var, axis.dom)
        self.regions("writes", mine.block.writes, its.block.writes)
        self.regions("reads", mine.block.reads, its.block.reads)
        self.statement(mine.block.body, its.block.body)

    def statement(self, mine: Stmt, its: Stmt) -> None:
        """Two statements of any kind."""
        handler = _STATEMENTS.get(type(its))
        if type(mine) is not type(its) or handler is None:
            raise Mismatch("statement", type(mine).__name__, type(its).__name__)
        handler(self, mine, its)

    def sequence(self, mine: SeqStmt, its: SeqStmt) -> None:
        self.count("statements", mine.seq, its.seq)
        for my_part, its_part in zip(mine.seq, its.seq, strict=True):
            self.statement(my_part, its_part)

    def loop(self, mine: For, its: For) -> None:
        name = f"loop {mine.loop_var.name}"
        for part in ("min", "extent"):
            a, b = getattr(mine, part), getattr(its, part)
            if not self.equal(a, b):
                raise Mismatch(f"{part} of {name}", a, b)
        if mine.kind is not its.kind:
            raise Mismatch(f"kind of {name}", mine.kind.name.lower(), its.kind.name.lower())
        tags = [loop.thread_binding and loop.thread_binding.thread_tag for loop in (mine, its)]
        if tags[0] != tags[1]:
            raise Mismatch(f"thread of {name}", tags[0], tags[1])
        self.annotations(name, mine.annotations, its.annotations)
        self.define(mine.loop_var, its.loop_var, its.domain)
        self.statement(mine.body, its.body)

    def annotations(
        self, of: str, mine: Mapping[str, object] | None, its: Mapping[str, object] | None
    ) -> None:
        a, b = ({key: str(value) for key, value in (side or {}).items()} for side in (mine, its))
        if a != b:
            raise Mismatch(f"annotations of {of}", a or "none", b or "none")

    def realize(self, mine: BlockRealize, its: BlockRealize) -> None:
        """Inner blocks: everything."""
        block, other = mine.block, its.block
        name = f"block {block.name_hint}"
        self.count(f"axes of {name}", block.iter_vars, other.iter_vars)
        for value, expected in zip(mine.iter_values, its.iter_values, strict=True):
            self.index(f"binding of {name}", value, expected)
        if not self.equal(mine.predicate, its.predicate):
            raise Mismatch(f"predicate of {name}", mine.predicate, its.predicate)
        for axis, model in zip(block.iter_vars, other.iter_vars, strict=True):
            self.axis(axis, model)
        if block.match_buffers or other.match_buffers:
            raise Mismatch(
                f"matched buffers of {name}", len(block.match_buffers), len(other.match_buffers)
            )
        self.count(f"buffers allocated in {name}", block.alloc_buffers, other.alloc_buffers)
        for buffer, model_buffer in zip(block.alloc_buffers, other.alloc_buffers, strict=True):
            self.allocated(buffer, model_buffer)
        self.regions("writes", block.writes, other.writes)
        self.regions("reads", block.reads, other.reads)
        if (block.init is None) is not (other.init is None):
            raise Mismatch(f"init of {name}", _there_is(block.init), _there_is(other.init))
        if block.init is not None and other.init is not None:
            self.statement(block.init, other.init)
        self.statement(block.body, other.body)

    def axis(self, mine: IterVar, its: IterVar) -> None:
        name = f"axis {mine.var.name}"
        if mine.iter_type != its.iter_type:
            raise Mismatch(f"kind of {name}", mine.iter_type.name, its.iter_type.name)
        if mine.dom is None or its.dom is None:
            raise Mismatch(f"domain of {name}", mine.dom, its.dom)
        for part in ("min", "extent"):
            a, b = getattr(mine.dom, part), getattr(its.dom, part)
            if not self.equal(a, b):
                raise Mismatch(f"{part} of {name}", a, b)
        self.define(mine.var, its.var, its.dom)

    def define(self, mine: Var, its: Var, domain: Range) -> None:
        self.variables[mine] = op.cast(mine.dtype, its)
        self.analyzer.bind(its, domain)

    def store(self, mine: BufferStore, its: BufferStore) -> None:
        self.access(mine, its)
        self.value(mine.value, its.value)

    def let(self, mine: LetStmt, its: LetStmt) -> None:
        self.value(mine.value, its.value)
        self.variables[mine.var] = its.var
        self.statement(mine.body, its.body)

    def branch(self, mine: IfThenElse, its: IfThenElse) -> None:
        self.value(mine.condition, its.condition)
        self.statement(mine.then_case, its.then_case)
        if (mine.else_case is None) is not (its.else_case is None):
            raise Mismatch("else", _there_is(mine.else_case), _there_is(its.else_case))
        if mine.else_case is not None and its.else_case is not None:
            self.statement(mine.else_case, its.else_case)

    def count(self, what: str, mine: Sequence[object], its: Sequence[object]) -> None:
        if len(mine) != len(its):
            raise Mismatch(f"number of {what}", len(mine), len(its))

    # ---- buffers

    def buffer(self, mine: Buffer, its: Buffer) -> None:
        known = self.matched.buffers.get(its)
        if known is not None:
            if known is not mine:
                raise Mismatch(f"buffer {its.name}", mine.name, f"{known.name} before")
            return
        if mine in self.matched.buffers.values():
            raise Mismatch(f"buffer {mine.name}", "one buffer", f"another one, {its.name}")
        if mine.dtype is not its.dtype:
            raise Mismatch(f"type of {mine.name}", mine.dtype, its.dtype)
        if mine.scope() != its.scope():
            raise Mismatch(f"scope of {mine.name}", mine.scope(), its.scope())
        self.matched.buffers[its] = mine

    def allocated(self, mine: Buffer, its: Buffer) -> None:
        self.count(f"dimensions of {mine.name}", mine.shape, its.shape)
        for a, b in zip(mine.shape, its.shape, strict=True):
            self.index(f"shape of {mine.name}", a, b)
        self.buffer(mine, its)
        self.matched.starts[mine] = [IntImm(extent.dtype, 0) for extent in mine.shape]

    def regions(self, verb: str, mine: Sequence[BufferRegion], its: Sequence[BufferRegion]) -> None:
        if len(mine) != len(its):
            names = [", ".join([r.buffer.name for r in side]) or "none" for side in (mine, its)]
            raise Mismatch(f"buffers that the block {verb}", names[0], names[1])
        for my_region, its_region in zip(mine, its, strict=True):
            self.region(my_region, its_region)

    def region(self, mine: BufferRegion, its: BufferRegion) -> None:
        name = mine.buffer.name
        self.buffer(mine.buffer, its.buffer)
        lead = len(mine.region) - len(its.region)
        if lead < 0:
            raise Mismatch(f"dimensions of {name}", len(mine.region), len(its.region))
        for part in mine.region[:lead]:
            if not self.equal(part.extent, IntImm(part.extent.dtype, 1)):
                raise Mismatch(f"extent of a leading dimension of {name}", part.extent, 1)
        starts = self.matched.starts.get(mine.buffer)
        if starts is None:
            starts = self.matched.starts[mine.buffer] = [part.min for part in mine.region]
        for a, start in zip(mine.region[:lead], starts, strict=False):
            if not self.equal(a.min, start):
                raise Mismatch(f"start of a leading dimension of {name}", a.min, start)
        for a, b, start in zip(mine.region[lead:], its.region, starts[lead:], strict=True):
            if not self.equal(a.extent, b.extent):
                raise Mismatch(f"extent of the region of {name}", a.extent, b.extent)
            self.index(f"start of the region of {name}", a.min - start, b.min)

    def access(self, mine: Any, its: Any) -> None:
        """The indices of a load or store, relative to the start of the buffer's region."""
        name = mine.buffer.name
        if mine.predicate is not None or its.predicate is not None:
            raise Mismatch(f"predicate of an access of {name}", mine.predicate, its.predicate)
        if its.buffer not in self.matched.buffers:
            raise Mismatch(f"buffer {name}", "accessed", f"{its.buffer.name} is in no region")
        self.buffer(mine.buffer, its.buffer)
        starts = self.matched.starts[mine.buffer]
        lead = len(mine.indices) - len(its.indices)
        for a, start in zip(mine.indices[:lead], starts, strict=False):
            self.index(f"leading index of {name}", a - start, IntImm(a.dtype, 0))
        for a, b, start in zip(mine.indices[lead:], its.indices, starts[lead:], strict=True):
            self.index(f"index of {name}", a - start, b)

    # ---- expressions

    def renamed(self, expr: PrimExpr) -> PrimExpr:
        """An expression of the block in the variables of the description."""
        return substitute(expr, self.variables)

    def equal(self, mine: PrimExpr, its: PrimExpr) -> bool:
        """Whether two index expressions or conditions have one value, whatever their width."""
        if isinstance(mine, IntImm) and isinstance(its, IntImm):
            return bool(mine.value == its.value)
        mine = self.renamed(mine)
        if mine.dtype is not its.dtype:
            if mine.dtype.lanes != 1 or not (mine.dtype.is_int and its.dtype.is_int):
                return False
            wide = max(mine.dtype, its.dtype, key=lambda dtype: dtype.bits)
            mine, its = op.cast(wide, mine), op.cast(wide, its)
        return bool(self.analyzer.can_prove_equal(mine, its))

    def index(self, what: str, mine: PrimExpr, its: PrimExpr) -> None:
        if not self.equal(mine, its):
            raise Mismatch(what, self.analyzer.simplify(self.renamed(mine)), its)

    def value(self, mine: PrimExpr, its: PrimExpr) -> None:
        """Two values; if they differ as written, once more simplified."""
        try:
            self.expression(mine, its)
        except Mismatch:
            simple, model = Analyzer().simplify(mine), Analyzer().simplify(its)
            if simple is mine and model is its:
                raise
            try:
                self.expression(simple, model)
            except Mismatch:
                pass
            else:
                return
            raise

    def expression(self, mine: Any, its: Any) -> None:
        if isinstance(its, BufferLoad) and isinstance(mine, BufferLoad):
            self.access(mine, its)
            return
        if isinstance(mine, Var) and isinstance(its, Var):
            bound = self.variables.get(mine)
            same = bound is its or (bound is not None and self.equal(mine, its))
            if not same or mine.dtype is not its.dtype:
                raise Mismatch("variable", mine, its)
            return
        if self.is_index(mine) and self.is_index(its) and mine.dtype is its.dtype:
            if not self.equal(mine, its):
                raise Mismatch("value", mine, its)
            return
        if type(mine) is not type(its) or mine.dtype is not its.dtype:
            raise Mismatch("value", mine, its)
        if isinstance(mine, (IntImm, FloatImm)):
            if mine.value != its.value:
                raise Mismatch("value", mine, its)
            return
        if isinstance(mine, Let):
            self.expression(mine.value, its.value)
            self.variables[mine.var] = its.var
            self.expression(mine.body, its.body)
            return
        self.fields(mine, its)

    def is_index(self, expr: PrimExpr) -> bool:
        """Whether an expression is integer arithmetic of loops and axes alone."""
        return bool(expr.dtype.is_integral) and not collect(expr, (BufferLoad, Call, Let))

    def fields(self, mine: Node, its: Node) -> None:
        for name in mine.INIT_FIELDS:
            self.field(mine, its, getattr(mine, name), getattr(its, name))

    def field(self, mine: Node, its: Node, a: object, b: object) -> None:
        if isinstance(a, PrimExpr) and isinstance(b, PrimExpr):
            self.expression(a, b)
        elif isinstance(a, tuple) and isinstance(b, tuple) and len(a) == len(b):
            for my_item, its_item in zip(a, b, strict=True):
                self.field(mine, its, my_item, its_item)
        elif a is not b and (isinstance(a, Node) or isinstance(b, Node) or a != b):
            raise Mismatch("value", mine, its)


def _there_is(value: object) -> str:
    return "none" if value is None else "one"


_STATEMENTS: dict[type, Any] = {
    SeqStmt: _Comparer.sequence,
    For: _Comparer.loop,
    BlockRealize: _Comparer.realize,
    BufferStore: _Comparer.store,
    LetStmt: _Comparer.let,
    IfThenElse: _Comparer.branch,
}
