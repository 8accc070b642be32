"""All accesses of a function to buffers, with the context that decides which elements they touch.

An access has the loops around it (some are thread indices), the conditions under which it runs, and
the kernel it belongs to: the loop nest below an outermost loop over threads. ``points`` returns the
elements that it touches, for all threads or for some.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from weft.arith.data import has_data
from weft.ir.expr import IntImm, PrimExpr
from weft.ir.functor import Visitor, collect
from weft.ir.node import Node, expect
from weft.tir import expr as e
from weft.tir.analysis.integer_values import UnknownValueError, values_of
from weft.tir.buffer import Buffer, BufferLoad
from weft.tir.expr import Call, Let, Select, Var
from weft.tir.function import PrimFunc
from weft.tir.stmt import (
    AttrStmt,
    Block,
    BlockRealize,
    BufferStore,
    Evaluate,
    For,
    IfThenElse,
    LetStmt,
    SeqStmt,
    Stmt,
    While,
)
from weft.tir.transform.threads.thread_scope import Binding, binding_of, sync_of

POINTS: Final = 1 << 17
"""The most elements of an access that are enumerated; for more, loops are sampled."""
SYMBOL: Final = 69
"""The value taken for every symbolic extent; it is no multiple of usual split factors."""
EDGE: Final = 4
_AFFINE: Final = (e.Add, e.Sub, e.Mul, IntImm, Var)


@dataclass(frozen=True, eq=False)
class Loop:
    """A loop around an access; ``tag`` is the thread axis that it is bound to, or None."""

    var: Var
    low: PrimExpr
    extent: PrimExpr
    tag: str | None


@dataclass(frozen=True, eq=False)
class Access:
    """A load or store.

    Attributes:
        buffer: None where memory is passed by pointer.
        indices: None where the element is unknown.
        guards: conditions, and whether they hold (or not) at the access; None for one that is
            unknown.
        kernel: the number of its nest of threads, None outside of all.
        statement: the number of the store (or evaluation) that makes the access.
        place: increases in the order of execution within one iteration of all loops.
        block: the name of the innermost block, or "".
    """

    data: Var
    buffer: Buffer | None
    indices: tuple[PrimExpr, ...] | None
    is_write: bool
    loops: tuple[Loop, ...]
    guards: tuple[tuple[PrimExpr, bool] | None, ...]
    definitions: Mapping[Var, PrimExpr]
    symbols: frozenset[Var]
    kernel: int | None
    statement: int
    place: int
    block: str

    def points(self, fixed: Mapping[str, int]) -> tuple[np.ndarray, bool]:
        """The elements as rows of an array, and whether these are all of them.

        Args:
            fixed: the thread's index along some axes; along all others, every thread counts.

        Raises:
            UnknownValueError: the elements depend on data.
        """
        return _Points(self, fixed).rows()

    @property
    def is_affine(self) -> bool:
        """Whether the indices are affine, so that their extremes are at the ends of the loops."""
        seen: list[PrimExpr] = list(self.indices or ())
        while seen:
            item = seen.pop()
            if not isinstance(item, _AFFINE):
                return False
            if isinstance(item, Var) and item in self.definitions:
                seen.append(self.definitions[item])
            elif not isinstance(item, (IntImm, Var)):
                seen += [item.a, item.b]
        return True


class _Points:
    """Enumerates the iterations of those loops around an access that influence its elements."""

    def __init__(self, access: Access, fixed: Mapping[str, int]) -> None:
        self.access, self.fixed = access, fixed
        self.values: dict[Var, np.ndarray | np.integer] = {}
        self.count = 1
        self.exact = True

    def rows(self) -> tuple[np.ndarray, bool]:
        access = self.access
        if access.indices is None or None in access.guards:
            raise UnknownValueError
        guards = [guard for guard in access.guards if guard is not None]
        needed = self.needed([*access.indices, *[condition for condition, _ in guards]])
        for loop in access.loops:
            self.enter(loop, loop.var in needed)
        for condition, wanted in guards:
            self.keep(np.broadcast_to(self.value(condition), self.count) == wanted)
        columns = [np.broadcast_to(self.value(index), self.count) for index in access.indices]
        stacked = np.stack(columns, axis=1) if columns else np.zeros((min(self.count, 1), 0), int)
        return stacked.astype(np.int64), self.exact

    def needed(self, exprs: list[PrimExpr]) -> set[Var]:
        """The variables on which some expressions depend, also through the bounds of loops."""
        bounds = {loop.var: (loop.low, loop.extent) for loop in self.access.loops}
        names: set[Var] = set()
        waiting = list(collect(exprs, Var))
        while waiting:
            var = waiting.pop()
            if var in names:
                continue
            names.add(var)
            waiting += collect(bounds.get(var, self.access.definitions.get(var)), Var)
        return names

    def value(self, expr: PrimExpr) -> Any:
        return values_of(expr, self.lookup)

    def lookup(self, var: Var) -> Any:
        if var not in self.values:
            definition = self.access.definitions.get(var)
            if definition is not None:
                self.values[var] = self.value(definition)
            elif var in self.access.symbols:
                return np.int64(SYMBOL)
            else:
                raise UnknownValueError
        return self.values[var]

    def enter(self, loop: Loop, matters: bool) -> None:
        """Add the values of a loop's variable, and repeat those of outer loops to match."""
        low = np.broadcast_to(self.value(loop.low), self.count)
        extent = np.broadcast_to(self.value(loop.extent), self.count)
        if loop.tag is not None and loop.tag in self.fixed:
            index = self.fixed[loop.tag]
            self.values[loop.var] = low + index
            self.keep(extent > index)
            return
        self.keep(extent > 0)
        if not matters or not self.count:
            self.values[loop.var] = low[extent > 0]
            return
        low, extent = low[extent > 0], extent[extent > 0]
        steps = np.arange(int(extent.max()))
        if self.count * len(steps) > POINTS:
            self.exact = False
            middle = len(steps) // 2
            steps = np.unique([*steps[:EDGE], middle, *steps[-EDGE:]])
            if self.count * len(steps) > POINTS:
                raise UnknownValueError
        length = len(steps)
        outer = np.repeat(np.arange(self.count), length)
        self.select(outer)
        self.values[loop.var] = low[outer] + np.tile(steps, len(low))
        self.keep(np.tile(steps, len(low)) < extent[outer])

    def keep(self, mask: np.ndarray) -> None:
        """Keep only the points where the mask is true."""
        if not mask.all():
            self.select(np.flatnonzero(mask))

    def select(self, places: np.ndarray) -> None:
        for var, value in self.values.items():
            if isinstance(value, np.ndarray) and value.ndim:
                self.values[var] = value[places]
        self.count = len(places)


@dataclass
class Accesses:
    """All accesses of a function."""

    in_order: list[Access] = field(default_factory=list)
    kernels: list[dict[str, PrimExpr]] = field(default_factory=list)
    """For each kernel, thread axis -> extent."""
    synchronised: set[int | None] = field(default_factory=set)
    """The kernels that contain barriers."""


def accesses_of(func: PrimFunc) -> Accesses:
    """The accesses of all buffers, in the order of execution."""
    gather = _Gather(func)
    gather.visit(func.body)
    return gather.result


class _Gather(Visitor):
    def __init__(self, func: PrimFunc) -> None:
        shapes = [[*buffer.shape, *buffer.strides] for buffer in func.buffer_map.values()]
        symbols = [*func.params, *collect(shapes, Var)]
        self.symbols = frozenset([var for var in symbols if var.dtype.is_int])
        self.result = Accesses()
        self.loops: tuple[Loop, ...] = ()
        self.guards: tuple[tuple[PrimExpr, bool] | None, ...] = ()
        self.definitions: dict[Var, PrimExpr] = {}
        self.kernel: int | None = None
        self.statement = 0
        self.in_update = False
        self.block = ""

    def record(self, buffer: Buffer, indices: Sequence[PrimExpr] | None, is_write: bool) -> None:
        places = None if indices is None else tuple(indices)
        if places and any(index.dtype.lanes != 1 for index in places):
            places = None
        self.add(buffer.data, buffer, places, is_write)

    def add(self, data: Var, buffer: Buffer | None, places: Any, is_write: bool) -> None:
        self.result.in_order.append(
            Access(
                data,
                buffer,
                places,
                is_write,
                self.loops,
                self.guards,
                self.definitions,
                self.symbols,
                self.kernel,
                self.statement,
                len(self.result.in_order),
                self.block,
            )
        )

    def under(self, guard: tuple[PrimExpr, bool] | None, *parts: Node | None) -> None:
        """Visit parts that run under a condition; None stands for one that depends on data."""
        if guard is not None and has_data(guard[0]):
            guard = None
        if guard is None and None in self.guards:
            self.visit(list(parts))
            return
        outer, self.guards = self.guards, (*self.guards, guard)
        with self.apart(tuple([known and (id(known[0]), known[1]) for known in self.guards])):
            self.visit(list(parts))
        self.guards = outer

    # Statements.

    def visit_For(self, loop: For) -> None:
        binding = binding_of(loop)
        if binding is not None:
            self.bound(binding)
            return
        self.visit([loop.min, loop.extent])
        self.inside(Loop(loop.loop_var, loop.min, loop.extent, None), loop.body)

    def visit_AttrStmt(self, attr: AttrStmt) -> None:
        binding = binding_of(attr)
        if binding is None:
            self.visit_default(attr)
        else:
            self.bound(binding)

    def bound(self, binding: Binding) -> None:
        """A loop over threads; the outermost one begins a kernel."""
        outer = self.kernel
        if outer is None:
            self.kernel = len(self.result.kernels)
            self.result.kernels.append({})
        assert self.kernel is not None
        self.result.kernels[self.kernel].setdefault(binding.tag, binding.extent)
        low = IntImm(binding.var.dtype, 0) if binding.low is None else binding.low
        self.inside(Loop(binding.var, low, binding.extent, binding.tag), binding.body)
        self.kernel = outer

    def inside(self, loop: Loop, body: Stmt) -> None:
        outer, self.loops = self.loops, (*self.loops, loop)
        self.visit(body)
        self.loops = outer

    def visit_While(self, stmt: While) -> None:
        self.visit(stmt.condition)
        self.under(None, stmt.body)

    def visit_IfThenElse(self, stmt: IfThenElse) -> None:
        self.visit(stmt.condition)
        self.under((stmt.condition, True), stmt.then_case)
        if stmt.else_case is not None:
            self.under((stmt.condition, False), stmt.else_case)

    def visit_LetStmt(self, let: LetStmt) -> None:
        """Stores of let variables (the pair of an argmax) count as one statement with the lets."""
        outer = self.in_update
        if not outer:
            self.statement += 1
            self.in_update = _is_update(let)
        self.visit(let.value)
        self.defined({let.var: let.value}, let.body)
        self.in_update = outer

    def defined(self, values: Mapping[Var, PrimExpr], *parts: Node | None) -> None:
        outer, self.definitions = self.definitions, {**self.definitions, **values}
        for part in parts:
            self.visit(part)
        self.definitions = outer

    def visit_BlockRealize(self, realize: BlockRealize) -> None:
        block = realize.block
        self.visit([realize.iter_values, realize.predicate])
        axes = [axis.var for axis in block.iter_vars]
        outer, self.block = self.block, block.name_hint
        values = dict(zip(axes, realize.iter_values, strict=True))
        outer_definitions, self.definitions = self.definitions, {**self.definitions, **values}
        self.under((realize.predicate, True), block)
        self.block, self.definitions = outer, outer_definitions

    def visit_Block(self, block: Block) -> None:
        """Visit a block; a view may read and write its source anywhere."""
        for match in block.match_buffers:
            self.record(match.buffer, None, True)
            self.record(match.source.buffer, None, True)
        if block.init is not None:
            self.visit(block.init)
        self.visit(block.body)

    def visit_BufferStore(self, store: BufferStore) -> None:
        if not self.in_update:
            self.statement += 1
        self.visit([store.value, store.indices])
        self.record(store.buffer, store.indices, True)

    def visit_Evaluate(self, stmt: Evaluate) -> None:
        self.statement += 1
        if sync_of(stmt) is not None:
            self.result.synchronised.add(self.kernel)
        self.visit(stmt.value)

    # Expressions.

    def visit_BufferLoad(self, load: BufferLoad) -> None:
        self.visit(load.indices)
        self.record(load.buffer, load.indices, False)

    def visit_Let(self, let: Let) -> None:
        self.visit(let.value)
        self.defined({let.var: let.value}, let.body)

    def visit_Select(self, select: Select) -> None:
        self.chosen(select.condition, select.true_value, select.false_value)

    def visit_Call(self, call: Call) -> None:
        """Visit a call; memory that is passed by pointer may be written anywhere."""
        name = getattr(call.op, "name", "")
        if name == "tir.if_then_else":
            self.chosen(*call.args)
            return
        if name == "tir.address_of":
            element = expect(call.args[0], BufferLoad)
            self.visit(element.indices)
            self.record(element.buffer, None, True)
            return
        for argument in call.args:
            if isinstance(argument, Var) and argument.dtype.is_handle:
                self.add(argument, None, None, True)
        self.visit_default(call)

    def chosen(self, condition: PrimExpr, yes: Node, no: Node | None) -> None:
        self.visit(condition)
        self.under((condition, True), yes)
        self.under((condition, False), no)


def _is_update(stmt: Stmt) -> bool:
    """Whether a statement is lets that do all the loads, followed by stores of their variables."""
    while isinstance(stmt, LetStmt):
        stmt = stmt.body
    stores = list(stmt.seq) if isinstance(stmt, SeqStmt) else [stmt]
    return all(isinstance(item, BufferStore) for item in stores) and not collect(stmt, BufferLoad)
