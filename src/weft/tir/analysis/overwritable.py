"""Which arguments a kernel may write its result over.

The result of a kernel, its last buffer, may be the memory of an argument if each element of it is
stored at most once, by one statement, and nothing else reads that element of the argument. Then no
order of iterations matters: neither parallel loops nor vectors, nor what lowering makes of them.
Loops, bindings and guards of the scheduled kernel are taken together, so that these are refused:
tiles that compute some elements twice (their ``T.min`` moves the last one back), an argument that
is copied into a tile, windows, transposes, results that are accumulated where they are stored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from weft.arith.analyzer import Analyzer
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
    """The positions, among the buffers, of the arguments that the result may be written over."""
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
        at for at in alike
        if not accesses.has_others(arguments[at])
        and all(access.belongs_to(store) for access in accesses.of(arguments[at]))
    )  # fmt: skip


def _is_alike(argument: Buffer, result: Buffer) -> bool:
    """Whether two buffers are of one type and place their elements alike."""
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
    """What surrounds an access: loops, what axes and lets stand for, guards."""

    loops: Mapping[Var, Range]
    values: Mapping[Var, PrimExpr]
    guards: tuple[PrimExpr, ...] = ()
    repeats: bool = False
    """Whether the statement runs as often as nobody knows."""

    def defining(self, values: Mapping[Var, PrimExpr]) -> _Around:
        """With more variables that stand for something."""
        known = {var: substitute(value, self.values) for var, value in values.items()}
        return replace(self, values={**self.values, **known})


@dataclass(frozen=True, eq=False)
class _Access:
    """A load or a store: the indices in terms of loops, and the statement that it is a part of."""

    buffer: Buffer
    indices: Sequence[PrimExpr]
    around: _Around
    statement: BufferStore | None
    is_write: bool

    def is_made_once(self, symbols: set[Var]) -> bool:
        """Whether different iterations of all loops access different elements."""
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
        """Whether this is a load that a store makes of the very element that it writes."""
        if self.is_write or self.statement is not store.statement:
            return False
        analyzer = Analyzer()
        for var, domain in self.around.loops.items():
            analyzer.bind(var, domain)
        return all(
            expr_deep_equal(mine, its) or analyzer.can_prove_equal(mine, its)
            for mine, its in zip(self.indices, store.indices, strict=True)
        )


class _Accesses(Visitor):
    """The accesses of all buffers, and the memory that goes by other names than a buffer's."""

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
        """Visit parts that more surrounds."""
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
