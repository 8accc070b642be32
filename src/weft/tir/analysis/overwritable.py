"""Finds the arguments of a kernel that its result may overwrite.

The result of a kernel, its last buffer, may share the memory of an argument if each of its elements
is stored at most once, by one statement, and only that statement reads the same element of the
argument. Then the order of iterations does not matter, also in parallel loops and in vectors. The
analysis looks at the loops, bindings and guards of the scheduled kernel together. So it refuses
tiles that compute some elements twice (a ``T.min`` that moves the last tile back), an argument that
is copied into a tile first, windows, transposes, and results that are accumulated in place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from weft.arith.analyzer_of import analyzer_of
from weft.arith.deep_equal import expr_deep_equal
from weft.arith.iter_map import IterMapLevel, detect_iter_map
from weft.ir.expr import PrimExpr, Range
from weft.ir.functor import Visitor, collect, substitute
from weft.ir.node import Node
from weft.ir.structural import structural_equal
from weft.tir import op
from weft.tir.buffer import Buffer, BufferLoad
from weft.tir.expr import Call, Let, Var
from weft.tir.function import PrimFunc
from weft.tir.stmt import AttrStmt, Block, BlockRealize, BufferStore, For, LetStmt, While


def overwritable_arguments(func: PrimFunc) -> tuple[int, ...]:
    """The positions, among the buffers, of the arguments that the result may overwrite."""
    buffers = [func.buffer_map[param] for param in func.params if param in func.buffer_map]
    if len(buffers) < 2:
        return ()
    *arguments, result = buffers
    alike = [at for at, item in enumerate(arguments) if _is_alike(item, result)]
    if not alike:
        return ()
    accesses = _Accesses()
    accesses.visit(func.body)
    stores = [access for access in accesses.of(result) if access.is_write]
    if len(stores) != 1 or len(accesses.of(result)) != 1 or accesses.has_others(result):
        return ()
    [store] = stores
    symbols = {*func.params, *collect([list(item.shape) for item in buffers], Var)}
    if not store.is_made_once(symbols):
        return ()
    return tuple(
        at
        for at in alike
        if not accesses.has_others(arguments[at])
        and all(access.belongs_to(store) for access in accesses.of(arguments[at]))
    )


def _is_alike(argument: Buffer, result: Buffer) -> bool:
    """Whether two buffers have the same type, shape and (compact) layout."""
    return (
        argument.data is not result.data
        and argument.dtype == result.dtype
        and argument.scope() == result.scope()
        and structural_equal(argument.shape, result.shape)
        and not any(item.strides or item.axis_separators for item in (argument, result))
        and all(op.is_const_int(item.elem_offset, 0) for item in (argument, result))
    )


@dataclass(frozen=True)
class _Around:
    """The context of an access: loops, values of axes and let variables, guards."""

    loops: Mapping[Var, Range]
    values: Mapping[Var, PrimExpr]
    guards: tuple[PrimExpr, ...] = ()
    repeats: bool = False
    """Whether the statement runs an unknown number of times (in a While)."""

    def defining(self, values: Mapping[Var, PrimExpr]) -> _Around:
        """The context with values of more variables."""
        known = {var: substitute(value, self.values) for var, value in values.items()}
        return replace(self, values={**self.values, **known})


@dataclass(frozen=True, eq=False)
class _Access:
    """A load or a store: its indices over loop variables, and the statement it belongs to."""

    buffer: Buffer
    indices: Sequence[PrimExpr]
    around: _Around
    statement: BufferStore | None
    is_write: bool

    def is_made_once(self, symbols: set[Var]) -> bool:
        """Whether no two iterations of the loops access the same element."""
        loops = self.around.loops
        if self.around.repeats or collect(list(self.indices), (BufferLoad, Call)):
            return False
        if any(var not in loops and var not in symbols for var in collect(list(self.indices), Var)):
            return False
        if not self.indices:
            return all(op.is_const_int(domain.extent, 1) for domain in loops.values())
        guard = op.all(*self.around.guards) if self.around.guards else True
        return any(
            detect_iter_map(self.indices, loops, condition, IterMapLevel.Bijective).indices
            for condition in ([True] if guard is True else [guard, True])
        )

    def belongs_to(self, store: _Access) -> bool:
        """Whether this is a load, in a store's value, of the same element that it stores."""
        if self.is_write or self.statement is not store.statement:
            return False
        analyzer = analyzer_of(self.around.loops)
        return all(
            expr_deep_equal(mine, its) or analyzer.can_prove_equal(mine, its)
            for mine, its in zip(self.indices, store.indices, strict=True)
        )


class _Accesses(Visitor):
    """Collects the accesses of all buffers, and the data variables that are used by themselves."""

    def __init__(self) -> None:
        self.found: dict[Var, list[_Access]] = {}
        self.named: set[Var] = set()
        self.around = _Around({}, {})
        self.statement: BufferStore | None = None

    def of(self, buffer: Buffer) -> Sequence[_Access]:
        """The accesses of a buffer's memory."""
        return self.found.get(buffer.data, ())

    def has_others(self, buffer: Buffer) -> bool:
        """Whether the memory of a buffer is accessed by an address or as another buffer."""
        others = [access for access in self.of(buffer) if access.buffer is not buffer]
        return bool(others) or buffer.data in self.named

    def record(self, node: BufferLoad | BufferStore) -> None:
        indices = substitute(list(node.indices), self.around.values)
        is_write = isinstance(node, BufferStore)
        access = _Access(node.buffer, indices, self.around, self.statement, is_write)
        self.found.setdefault(node.buffer.data, []).append(access)

    def inside(self, around: _Around, *parts: Node | None) -> None:
        """Visit parts in another context."""
        outer, self.around = self.around, around
        self.visit(list(parts))
        self.around = outer

    def visit_BufferStore(self, store: BufferStore) -> None:
        self.visit([store.indices, store.predicate])
        self.statement = store
        self.visit(store.value)
        self.record(store)
        self.statement = None

    def visit_BufferLoad(self, load: BufferLoad) -> None:
        self.record(load)
        self.visit([load.indices, load.predicate])

    def visit_Var(self, var: Var) -> None:
        self.named.add(var)

    def visit_For(self, loop: For) -> None:
        self.visit([loop.min, loop.extent])
        least, extent = substitute([loop.min, loop.extent], self.around.values)
        domain = Range.from_min_extent(least, extent)
        self.inside(
            replace(self.around, loops={**self.around.loops, loop.loop_var: domain}), loop.body
        )

    def visit_LetStmt(self, let: LetStmt | Let) -> None:
        self.visit(let.value)
        self.inside(self.around.defining({let.var: let.value}), let.body)

    visit_Let = visit_LetStmt

    def visit_BlockRealize(self, realize: BlockRealize) -> None:
        self.visit([realize.iter_values, realize.predicate])
        axes = [axis.var for axis in realize.block.iter_vars]
        known = self.around.defining(dict(zip(axes, realize.iter_values, strict=True)))
        guard = substitute(realize.predicate, self.around.values)
        if not op.is_const_int(guard, 1):
            known = replace(known, guards=(*known.guards, guard))
        self.inside(known, realize.block)

    def visit_Block(self, block: Block) -> None:
        for match in block.match_buffers:
            self.named |= {match.buffer.data, match.source.buffer.data}
        self.visit([block.init, block.body])

    def visit_While(self, loop: While) -> None:
        self.inside(replace(self.around, repeats=True), loop.condition, loop.body)

    def visit_AttrStmt(self, attr: AttrStmt) -> None:
        self.visit([attr.node, attr.value])
        self.inside(replace(self.around, repeats=True), attr.body)
