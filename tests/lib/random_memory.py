"""Random modules that reach for memory: what ``weft.build`` has to refuse, test, or get right.

A module has a function ``main`` and up to two that it calls. Their buffers are of constant,
symbolic and computed shapes, compact, strided or offset; a body nests loops of every kind, guards,
lets, views (declared or not, moved, strided, of another type, larger than their memory), matched
regions, allocations of any size, vectors that parallel loops capture, and calls with memory that
is equal, smaller, larger or shared. Many go outside for some arguments; nothing may reach there.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from tests.lib.random_indices import ELEMENTS, NARROW, SIZES, IndexGenerator
from weft.ir.expr import GlobalVar, IntImm, PrimExpr, Range, StringImm
from weft.ir.module import IRModule
from weft.support.dtype import DataType
from weft.support.errors import InternalError, TVMError
from weft.tir import op
from weft.tir.buffer import Buffer, BufferLoad, BufferRegion, decl_buffer
from weft.tir.expr import Broadcast, Call, Ramp, Var
from weft.tir.function import PrimFunc
from weft.tir.implicit_symbols import implicit_symbols
from weft.tir.stmt import (
    Allocate,
    AssertStmt,
    Block,
    BlockRealize,
    BufferStore,
    DeclBuffer,
    Evaluate,
    For,
    ForKind,
    IfThenElse,
    LetStmt,
    MatchBufferRegion,
    Stmt,
    While,
    seq,
)

_TRUE: Final = IntImm(DataType("bool"), 1)
_SERIAL: Final = (ForKind.SERIAL, ForKind.SERIAL, ForKind.UNROLLED)
_ANY: Final = (*_SERIAL, *(2 * (ForKind.PARALLEL, ForKind.VECTORIZED)))
_LONG_VECTORS: Final = (
    ("float32", 32), ("int64", 16), ("float64", 16), ("int8", 128), ("int32", 8),
)  # fmt: skip


@dataclass(frozen=True)
class MemoryProgram:
    """A module whose function ``main`` is called. ``is_ordered``: its loops run in their order and
    it reads no memory that it has not written, so that its results are those of the interpreter.
    """

    module: IRModule
    seed: int
    is_ordered: bool


@dataclass(frozen=True)
class _Callee:
    """A function that others may call, with the symbols that a call passes last."""

    name: str
    func: PrimFunc
    symbols: list[Var]


def random_memory_program(seed: int) -> MemoryProgram:
    """The program of a seed."""
    for attempt in range(20):
        try:
            return _ModuleGenerator(seed + (attempt << 48), seed).program()
        except TVMError:  # what a node refuses to hold, as a constant of 0 that divides
            continue
    raise InternalError(f"seed {seed}: expected a program that can be written down")


class _ModuleGenerator(IndexGenerator):
    """Draws a module; see the module's text."""

    def __init__(self, start: int, seed: int) -> None:
        super().__init__(start)
        self.seed = seed
        self.is_ordered = self.chance(0.5)
        self.is_deterministic = True
        self.callees: list[_Callee] = []

    def program(self) -> MemoryProgram:
        """A function ``main`` and those that it calls."""
        for number in range(self.random.choice((0, 0, 0, 1, 1, 2))):
            name = f"callee{number}"
            func, symbols = self.function(name, 1)
            self.callees.append(_Callee(name, func, symbols))
        main, _ = self.function("main", self.random.choice((0, 1, 1, 1, 2, 2, 3)))
        functions = {callee.name: callee.func for callee in self.callees}
        module = IRModule({**functions, "main": main})
        return MemoryProgram(module, self.seed, self.is_ordered and self.is_deterministic)

    def function(self, name: str, depth: int) -> tuple[PrimFunc, list[Var]]:
        """One function, and its symbols in the order in which native code takes them."""
        pick = self.random
        scalars = [
            Var(self.name("p"), pick.choice((*SIZES, *SIZES, *SIZES, *NARROW, "bool")))
            for _ in range(pick.choice((0, 1, 1, 2, 3)))
        ]
        floats = [Var(self.name("f"), pick.choice(("float32", "float16", "bfloat16")))
                  for _ in range(pick.choice((0, 0, 0, 1)))]  # fmt: skip
        count = pick.choice((0, 1, 1, 2))
        symbols = [Var(self.name("n"), pick.choice(SIZES)) for _ in range(count)]
        self.integers = [var for var in scalars if not var.dtype.is_bool] + symbols
        self.floats, self.loops, self.buffers = [*floats], [], []
        buffers = [self.parameter(symbol) for symbol in symbols]
        for _ in range(pick.randint(0 if buffers else 1, 2)):
            buffers.append(self.parameter(None))
        self.buffers = list(buffers)
        if self.chance(0.3):  # such as no shape of a parameter keeps small
            late = [Var(self.name("p"), dtype) for dtype in 2 * [pick.choice((*SIZES, "int64"))]]
            scalars += late
            self.integers += late
        body = self.body(depth)
        params = [*buffers, *scalars, *floats]
        pick.shuffle(params)
        attrs: dict[str, Any] = {"global_symbol": name}
        if self.chance(0.5):
            attrs["tir.noalias"] = True
        func = PrimFunc(params, body, attrs=attrs)
        return func, implicit_symbols(func)

    def parameter(self, symbol: Var | None) -> Buffer:
        """A buffer of a function; with a symbol, one that defines it."""
        pick = self.random
        shape = [self.parameter_extent() for _ in range(pick.choice((0, 1, 1, 1, 1, 2, 2, 3)))]
        if symbol is not None:
            shape.insert(pick.randint(0, min(len(shape), 2)), symbol)
        strides: list[PrimExpr] | None = None
        style = pick.random()
        if shape and style < 0.12:
            strides = [Var(self.name("s"), pick.choice(SIZES)) for _ in shape]
        elif shape and style < 0.2:
            strides = self.computed_strides(shape)
        offset: Any = None
        if self.chance(0.08):
            offset = Var(self.name("o"), pick.choice(SIZES)) if self.chance(0.8) else 4
        dtype = pick.choice(ELEMENTS)
        return decl_buffer(shape, dtype, self.name("a"), None, strides, offset)

    def parameter_extent(self) -> PrimExpr:
        """An extent of a parameter: a constant, a symbol, or computed of such."""
        pick = self.random
        style = pick.random()
        if style < 0.35 or not self.integers:
            return IntImm(pick.choice(SIZES), pick.choice((0, 1, 1, 2, 3, 4, 4, 5, 8, 8, 16, 32)))
        if style < 0.6:
            return pick.choice(self.integers)
        depth = pick.choice((1, 1, 2))
        if self.chance(0.1):
            return self.size(depth)
        dtype = DataType(pick.choice(SIZES))
        same = [var for var in self.integers if var.dtype is dtype]
        return self.integer(dtype, same, depth, False)

    def computed_strides(self, shape: list[PrimExpr]) -> list[PrimExpr]:
        """Compact strides, permuted, scaled, turned round, or too small."""
        pick = self.random
        order = list(range(len(shape)))
        if self.chance(0.4):
            pick.shuffle(order)
        dtype = DataType(pick.choice(SIZES))
        step: PrimExpr = IntImm(dtype, pick.choice((1, 1, 1, 2, 0, -1)))
        strides: list[PrimExpr] = [step] * len(shape)
        for axis in reversed(order):
            strides[axis] = step
            step = op.cast(dtype, step) * op.cast(dtype, shape[axis])
        if self.chance(0.15):
            strides[pick.randrange(len(shape))] = self.size(1)
        return strides

    # Statements.

    def body(self, depth: int) -> Stmt:
        """A few statements."""
        count = self.random.choice((1, 1, 1, 1, 2, 2, 3))
        return seq(*[self.statement(depth) for _ in range(count)])

    def statement(self, depth: int) -> Stmt:
        """One statement, of those that may hold others while ``depth`` lasts."""
        pick = self.random
        if depth <= 0 or pick.random() < 0.12:
            return self.store()
        kinds: list[tuple[int, Callable[[int], Stmt]]] = [
            (9, self.loop), (3, self.branch), (3, self.let), (5, self.view), (3, self.allocation),
            (2, self.matched), (2, self.long_vector), (1, self.counted), (1, self.assertion),
            (4 if self.callees else 0, self.call), (2, self.vector_store), (2, self.joined),
        ]  # fmt: skip
        return pick.choices([kind for _, kind in kinds], [weight for weight, _ in kinds])[0](depth)

    def store(self) -> Stmt:
        """A store of a value, perhaps behind a guard."""
        buffer = self.random.choice(self.buffers)
        indices = self.indices(buffer)
        value = self.value(buffer.dtype, self.random.choice((0, 1, 1, 2)))
        stored = BufferStore(buffer, value, indices)
        if indices and self.chance(0.5):
            return IfThenElse(self.guard(buffer, indices), stored)
        return stored

    @contextmanager
    def scope(self) -> Any:
        """What is declared inside is forgotten behind."""
        kept = (self.integers, self.loops, self.buffers)
        self.integers, self.loops, self.buffers = list(kept[0]), list(kept[1]), list(kept[2])
        try:
            yield
        finally:
            self.integers, self.loops, self.buffers = kept

    def loop(self, depth: int) -> Stmt:
        """A loop; the extent is a buffer's, a size, a constant, or read from memory."""
        pick = self.random
        kind = pick.choice(_SERIAL if self.is_ordered else _ANY)
        extent = self.loop_extent(kind)
        low: PrimExpr = op.const(0, extent.dtype)
        if self.chance(0.12):
            if extent.dtype.bits < 32:  # so that the last of the loop has a number in its type
                extent = op.cast("int32", extent)
            first: Any = self.size(1) if self.chance(0.5) else pick.choice((-2, 1, 2))
            low = op.cast(extent.dtype, first)
        var = Var(self.name("i"), extent.dtype)
        if self.loops and self.chance(0.03):
            var = pick.choice(self.loops)[0]  # the name of an outer loop again
            extent, low = op.cast(var.dtype, extent), op.cast(var.dtype, low)
        with self.scope():
            self.integers.append(var)
            self.loops.append((var, extent))
            body = self.body(depth - 1) if kind is not ForKind.VECTORIZED else self.store()
        return For(var, low, extent, kind, body)

    def loop_extent(self, kind: ForKind) -> PrimExpr:
        pick = self.random
        style = pick.random()
        if kind is ForKind.VECTORIZED and style < 0.9:
            return IntImm("int32", pick.choice((2, 3, 4, 8, 16)))
        if style < 0.6:
            with_axes = [buffer for buffer in self.buffers if buffer.shape]
            if with_axes:
                return pick.choice(list(pick.choice(with_axes).shape))
        if style < 0.75:
            return IntImm(pick.choice(SIZES), pick.choice((0, 1, 2, 3, 4, 5, 8)))
        if style < 0.85:
            found = self.anything()
            return op.minimum(found, IntImm(found.dtype, 9))
        found = self.size(pick.choice((1, 1, 2)))
        return op.minimum(found, IntImm(found.dtype, 40)) if self.chance(0.5) else found

    def branch(self, depth: int) -> Stmt:
        """A branch on integers, on places, or on what memory holds."""
        if self.chance(0.5):
            condition = self.compared(self.anything(), self.anything())
        else:
            buffer = self.random.choice(self.buffers)
            condition = self.guard(buffer, self.indices(buffer))
        other = self.statement(depth - 1) if self.chance(0.25) else None
        return IfThenElse(condition, self.body(depth - 1), other)

    def let(self, depth: int) -> Stmt:
        """A number with a name, of arithmetic or from memory."""
        value = self.anything()
        var = Var(self.name("x"), value.dtype)
        with self.scope():
            self.integers.append(var)
            return LetStmt(var, value, self.body(depth - 1))

    def assertion(self, depth: int) -> Stmt:
        """What is tested holds behind it."""
        buffer = self.random.choice(self.buffers)
        indices = self.indices(buffer)
        stored = BufferStore(buffer, self.value(buffer.dtype, 1), indices)
        return AssertStmt(self.guard(buffer, indices), StringImm("outside"), stored)

    def counted(self, depth: int) -> Stmt:
        """A while loop whose counter is in memory."""
        counter = decl_buffer([1], self.random.choice(SIZES), self.name("counter"))
        zero = op.const(0, "int32")
        count = BufferLoad(counter, [zero])
        position = Var(self.name("w"), counter.dtype)
        limit = self.random.choice((3, 5, 9))
        with self.scope():
            self.integers.append(position)
            body = LetStmt(position, count, self.body(depth - 1))
        step = BufferStore(counter, count + 1, [zero])
        walk = While(count < limit, seq(body, step))
        return self.allocated(counter, seq(BufferStore(counter, op.const(0, counter.dtype), [zero]),
                                           walk))  # fmt: skip

    # Memory.

    def view(self, depth: int) -> Stmt:
        """A buffer over the data of another: moved, strided, reshaped, of another type, too big."""
        pick = self.random
        source = pick.choice(self.buffers)
        dtype = source.dtype if self.chance(0.75) else DataType(pick.choice(ELEMENTS))
        self.reinterpreted(source, dtype)
        shape = self.view_shape(source)
        strides = self.computed_strides(shape) if shape and self.chance(0.25) else None
        offset: Any = None
        if self.chance(0.35):
            offset = pick.choice((1, 2, 4, -1)) if self.chance(0.4) else self.view_offset()
        view = decl_buffer(shape, dtype, self.name("v"), source.data, strides, offset)
        with self.scope():
            self.buffers += [view, view]
            body = self.body(depth - 1)
        return body if self.chance(0.3) else DeclBuffer(view, body)

    def reinterpreted(self, source: Buffer, dtype: DataType) -> None:
        """Bytes that are neither 0 nor 1 mean nothing as booleans."""
        if source.dtype.is_bool != dtype.is_bool:
            self.is_deterministic = False

    def view_offset(self) -> PrimExpr:
        """Where a view starts, in loops too."""
        return self.integer(DataType(self.random.choice(SIZES)), self.integers, 1)

    def view_shape(self, source: Buffer) -> list[PrimExpr]:
        pick = self.random
        style = pick.random()
        if style < 0.3:
            shape = list(source.shape)
            pick.shuffle(shape)
            return shape
        if style < 0.45 and source.shape:
            total: PrimExpr = op.cast("int64" if self.chance(0.5) else "int32", source.shape[0])
            for extent in source.shape[1:]:
                total = total * op.cast(total.dtype, extent)
            return [total if self.chance(0.7) else op.floordiv(total, 2)]
        if style < 0.6:
            return [IntImm("int32", pick.choice((1, 2, 4, 8)))]
        return [self.size(pick.choice((0, 1, 1, 2))) for _ in range(pick.choice((1, 1, 2)))]

    def allocation(self, depth: int) -> Stmt:
        """Memory of some size, constant or not; filled first, or not."""
        pick = self.random
        shape: list[PrimExpr] = []
        for _ in range(pick.choice((1, 1, 2))):
            constant = IntImm(pick.choice(SIZES), pick.choice((1, 2, 4, 5, 8, 16, 40)))
            shape.append(constant if self.chance(0.5) else self.size(pick.choice((0, 1, 1, 2))))
        buffer = decl_buffer(shape, pick.choice(ELEMENTS), self.name("b"))
        with self.scope():
            self.buffers += [buffer, buffer]
            parts = [self.body(depth - 1)]
            if self.chance(0.8):
                parts.insert(0, self.filled(buffer))
            else:
                self.is_deterministic = False
        return self.allocated(buffer, seq(*parts))

    def filled(self, buffer: Buffer) -> Stmt:
        """Every element of a buffer set."""
        loops = [Var(self.name("z"), extent.dtype) for extent in buffer.shape]
        body: Stmt = BufferStore(buffer, op.const(1, buffer.dtype), loops)
        for var, extent in reversed(list(zip(loops, buffer.shape, strict=True))):
            body = For(var, op.const(0, extent.dtype), extent, ForKind.SERIAL, body)
        return body

    def allocated(self, buffer: Buffer, body: Stmt) -> Stmt:
        """The memory of a buffer around a body: a block's, or an allocation by hand."""
        if self.chance(0.4):
            block = Block((), (), (), self.name("block"), body, None, (buffer,))
            return BlockRealize((), _TRUE, block)
        on_heap = {"weft.on_heap": True} if self.chance(0.5) else {}
        return Allocate(buffer.data, buffer.dtype, buffer.shape, _TRUE,
                        DeclBuffer(buffer, body), on_heap)  # fmt: skip

    def joined(self, depth: int) -> Stmt:
        """Rows and columns in one dimension of their product, which may wrap."""
        dtype = DataType(self.random.choice((*SIZES, "int64")))
        # The newest: what no parameter's shape keeps small is among them.
        same = [var for var in self.integers if var.dtype is dtype][-3:]
        rows, columns = self.leaf(dtype, same), self.leaf(dtype, same)
        i, j = Var(self.name("i"), dtype), Var(self.name("j"), dtype)
        source = self.random.choice(self.buffers)
        is_view = self.chance(0.4)
        data = source.data if is_view else None
        kind = source.dtype if is_view else DataType(self.random.choice(ELEMENTS))
        whole = decl_buffer([rows * columns], kind, self.name("b"), data)
        body: Stmt = BufferStore(whole, self.plain(kind), [i * columns + j])
        for var, extent in ((j, columns), (i, rows)):
            body = For(var, IntImm(dtype, 0), extent, ForKind.SERIAL, body)
        read = op.cast(
            source.dtype, BufferLoad(whole, [IntImm(dtype, 0)])
        )  # else nothing is stored
        body = seq(body, BufferStore(source, read, self.simple(source)))
        if is_view:
            return DeclBuffer(whole, body)
        self.is_deterministic = False  # loops of negative extents fill nothing
        return self.allocated(whole, body)

    def matched(self, depth: int) -> Stmt:
        """A region of a buffer under another name, its strides and offset found or given."""
        pick = self.random
        source = pick.choice(self.buffers)
        region, shape = [], []
        for index, extent in zip(self.indices(source), source.shape, strict=True):
            size: PrimExpr = IntImm(index.dtype, pick.choice((1, 2)))
            size = extent if self.chance(0.3) else size
            low = op.const(0, index.dtype) if size is extent and self.chance(0.7) else index
            region.append(Range.from_min_extent(low, op.cast(low.dtype, size)))
            shape.append(op.cast(low.dtype, size))
        strides, offset = None, None
        if shape and self.chance(0.6):
            strides = [Var(self.name("s"), extent.dtype) for extent in shape]
            offset = Var(self.name("o"), shape[0].dtype)
        target = decl_buffer(shape, source.dtype, self.name("m"), None, strides, offset,
                             offset_factor=1)  # fmt: skip
        match = MatchBufferRegion(target, BufferRegion(source, region))
        with self.scope():
            self.buffers += [target, target]
            body = self.body(depth - 1)
        block = Block((), (), (), self.name("block"), body, None, (), (match,))
        return BlockRealize((), _TRUE, block)

    # Vectors.

    def long_vector(self, depth: int) -> Stmt:
        """A vector that a loop captures and stores, and what was read beside it."""
        pick = self.random
        name, lanes = pick.choice(_LONG_VECTORS)
        kind = ForKind.SERIAL if self.is_ordered else ForKind.PARALLEL
        memory = decl_buffer([lanes * 2], name, self.name("b"))
        target = decl_buffer([6, lanes], name, self.name("b"))
        vector, other = [Var(self.name("x"), f"{name}x{lanes}") for _ in range(2)]
        row = Var(self.name("i"), "int64")
        first = Ramp(IntImm("int32", 0), IntImm("int32", 1), lanes)
        second = Ramp(IntImm("int32", lanes), IntImm("int32", 1), lanes)
        store = BufferStore(target, vector + other, [row, first])
        with self.scope():
            self.integers.append(row)
            self.loops.append((row, target.shape[0]))
            self.buffers += [memory, target]
            loop = For(row, IntImm("int64", 0), IntImm("int64", 6), kind, seq(store, self.store()))
            lets: Stmt = LetStmt(other, BufferLoad(memory, [second]), loop)
            lets = LetStmt(vector, BufferLoad(memory, [first]), lets)
        with self.scope():
            self.buffers += [memory, target]
            after = self.statement(depth - 1)
        inner = self.allocated(target, seq(self.filled(target), lets, after))
        return self.allocated(memory, seq(self.filled(memory), inner))

    def vector_store(self, depth: int) -> Stmt:
        """A vector of elements side by side, apart, or turned round, written to another place."""
        pick = self.random
        lanes = pick.choice((2, 3, 4, 7, 8, 16))
        flat = [buffer for buffer in self.buffers if buffer.shape]
        if not flat:
            return self.store()
        target, source = pick.choice(flat), pick.choice(flat)
        place = [*self.indices(target)[:-1], self.ramp(target, lanes)]
        loaded = BufferLoad(source, [*self.indices(source)[:-1], self.ramp(source, lanes)])
        return BufferStore(target, op.cast(target.dtype.with_lanes(lanes), loaded), place)

    def ramp(self, buffer: Buffer, lanes: int) -> PrimExpr:
        """A vector index into the last dimension."""
        base = self.index(buffer.shape[-1])
        if self.chance(0.4):
            return self.lanes(buffer, lanes)
        if self.chance(0.3):
            base = IntImm(base.dtype, 0)
        step = self.random.choice((1, 1, 1, 1, -1, 0, 2, 3, 5))
        step = step if base.dtype.is_int else abs(step)
        return Ramp(base, IntImm(base.dtype, step), lanes)

    def lanes(self, buffer: Buffer, lanes: int) -> PrimExpr:
        """Places for lanes that are read from memory, or computed of a ramp."""
        pick = self.random
        run = Ramp(IntImm("int32", 0), IntImm("int32", pick.choice((1, 1, 2))), lanes)
        tables = [b for b in self.buffers if len(b.shape) == 1 and b.dtype.is_integral]
        place: PrimExpr = run
        if tables and self.chance(0.7):
            loaded = BufferLoad(pick.choice(tables), [run])
            place = op.cast(f"int32x{lanes}", loaded)
        if self.chance(0.3):
            return op.floormod(
                place * Broadcast(IntImm("int32", 3), lanes),
                Broadcast(IntImm("int32", pick.choice((4, 8, 16))), lanes),
            )
        if self.chance(0.5):
            size = Broadcast(op.cast("int32", buffer.shape[-1]), lanes)
            one, zero = (Broadcast(IntImm("int32", n), lanes) for n in (1, 0))
            return op.maximum(op.minimum(place, size - one), zero)
        return place

    # Calls.

    def call(self, depth: int) -> Stmt:
        """Another function of the module, on memory that it may fit in."""
        callee = self.random.choice(self.callees)
        args = [self.argument(callee.func, param) for param in callee.func.params]
        args += [op.cast("int64", self.call_size()) for _ in callee.symbols]
        return Evaluate(Call("void", GlobalVar(callee.name), args))

    def argument(self, func: PrimFunc, param: Var) -> Any:
        pick = self.random
        wanted = func.buffer_map.get(param)
        if wanted is None:
            return self.scalar(param.dtype)
        same = [buffer for buffer in self.buffers if buffer.dtype is wanted.dtype]
        given = pick.choice(same if same and self.chance(0.95) else self.buffers)
        self.reinterpreted(given, wanted.dtype)
        style = pick.random()
        if style < 0.6:
            return given
        if style < 0.8:
            return Call("handle", "tir.address_of", [BufferLoad(given, self.indices(given))])
        if style < 0.9:
            offset = self.view_offset() if self.chance(0.5) else pick.choice((0, 1, 4))
            return given.access_ptr("rw", offset=offset)
        return given.data

    def scalar(self, dtype: DataType) -> PrimExpr:
        if dtype.is_float or dtype.is_bool:
            return op.const(1, dtype)
        return self.integer(dtype, self.integers, 1)

    def call_size(self) -> PrimExpr:
        """What a call passes as an extent of an argument."""
        with_axes = [buffer for buffer in self.buffers if buffer.shape]
        if with_axes and self.chance(0.7):
            return self.random.choice(list(self.random.choice(with_axes).shape))
        return self.integer(DataType("int64"), self.integers, 1)
