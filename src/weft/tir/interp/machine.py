"""The reference interpreter itself: statements, buffers, calls.

Statements are compiled to closures, as expressions are. Every access is checked against the
buffer's shape, and every buffer against the memory over which it is declared.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from weft.ir.expr import GlobalVar, IntImm, PrimExpr
from weft.ir.functor import collect
from weft.ir.module import IRModule
from weft.runtime.ndarray import NDArray
from weft.support.errors import (
    IRValueError,
    RuntimeFault,
    UnsupportedError,
    wrong_type,
)
from weft.support.recursion import deep_recursion
from weft.tir import op
from weft.tir.buffer import Buffer
from weft.tir.expr import Var
from weft.tir.function import PrimFunc
from weft.tir.interp.calls import ReturnSignal
from weft.tir.interp.expression import ExprCompiler
from weft.tir.interp.internal_calls import bind_call
from weft.tir.interp.loops import repeated, rounds_of
from weft.tir.interp.scalars import place_of
from weft.tir.interp.state import Action, Bound, State, Thunk, compact_strides
from weft.tir.interp.threads import Kernel, prepared
from weft.tir.interp.values import Value
from weft.tir.stmt import (
    Allocate,
    AllocateConst,
    AssertStmt,
    AttrStmt,
    Block,
    BlockRealize,
    BufferRealize,
    BufferStore,
    DeclBuffer,
    Evaluate,
    For,
    IfThenElse,
    LetStmt,
    MatchBufferRegion,
    SeqStmt,
    Stmt,
    While,
)
from weft.tir.transform.empty_reductions import initialise_empty_reductions
from weft.tir.transform.threads.thread_scope import LAUNCH, Binding, binding_of


class Machine:
    """Compiles statements to actions."""

    def __init__(self, module: IRModule | None, *, threads: bool = True) -> None:
        self.module = module
        self.expressions = ExprCompiler()
        self.threads = threads
        self.kernel: Kernel | None = None
        self.tags: tuple[str, ...] = ()

    def expression(self, expr: PrimExpr) -> Thunk:
        """The closure of an expression."""
        return self.expressions.compile(expr)

    def compile(self, stmt: Stmt) -> Action:
        """The closure that executes a statement."""
        if self.threads:
            binding = binding_of(stmt)
            if binding is not None:
                return self.bound(binding)
        method = getattr(self, f"compile_{type(stmt).__name__}", None)
        if method is None:
            raise UnsupportedError(f"the interpreter does not know {type(stmt).__name__}")
        action: Action = method(stmt)
        return action

    def call_global(self, var: GlobalVar, args: list[Value]) -> Value:
        """Call another PrimFunc of the module."""
        if self.module is None:
            raise RuntimeFault(f"the call of {var.name_hint} needs the module: run(..., module=)")
        func = _as_threads_run_it(self.module[var], self.threads)
        state = State(Machine(self.module, threads=self.threads))
        bind_call(func, args, state)
        return _result(func, state)

    def bound(self, binding: Binding) -> Action:
        """A loop bound to threads: the outermost one launches a kernel, others select the index."""
        if self.kernel is None:
            return Kernel(self, binding).action()
        return self.kernel.select(binding)

    def compile_SeqStmt(self, stmt: SeqStmt) -> Action:
        actions = [self.compile(item) for item in stmt.seq]

        def run_all(state: State) -> None:
            for action in actions:
                action(state)

        return run_all

    def compile_For(self, loop: For) -> Action:
        return repeated(loop, rounds_of(loop, self.expression), self.compile(loop.body))

    def compile_While(self, stmt: While) -> Action:
        return repeated(stmt, rounds_of(stmt, self.expression), self.compile(stmt.body))

    def compile_IfThenElse(self, stmt: IfThenElse) -> Action:
        condition, yes = self.expression(stmt.condition), self.compile(stmt.then_case)
        no = None if stmt.else_case is None else self.compile(stmt.else_case)

        def choose(state: State) -> None:
            if condition(state):
                yes(state)
            elif no is not None:
                no(state)

        return choose

    def compile_LetStmt(self, stmt: LetStmt) -> Action:
        return _after(self.prepare_LetStmt(stmt), self.compile(stmt.body))

    def prepare_LetStmt(self, stmt: LetStmt) -> Action:
        """The action before the body of a LetStmt."""
        key, value = id(stmt.var), self.expression(stmt.value)

        def let(state: State) -> None:
            state.values[key] = value(state)

        return let

    def compile_BufferStore(self, store: BufferStore) -> Action:
        indices = [self.expression(index) for index in store.indices]
        value, buffer = self.expression(store.value), store.buffer
        predicate = None if store.predicate is None else self.expression(store.predicate)
        if indices and store.indices[-1].dtype.lanes != 1:
            return lambda state: state.bound(buffer).store_lanes(
                [index(state) for index in indices],
                value(state),
                None if predicate is None else predicate(state),
            )
        place, key = place_of(indices), id(buffer)
        return lambda state: (state.buffers.get(key) or state.bound(buffer)).store(
            place(state), value(state)
        )

    def compile_Evaluate(self, stmt: Evaluate) -> Action:
        return self.expression(stmt.value)

    def compile_AssertStmt(self, stmt: AssertStmt) -> Action:
        condition, body = self.expression(stmt.condition), self.compile(stmt.body)
        message = getattr(stmt.message, "value", str(stmt.message))

        def check(state: State) -> None:
            if not condition(state):
                raise RuntimeFault(f"{message}")
            body(state)

        return check

    def compile_AttrStmt(self, stmt: AttrStmt) -> Action:
        if stmt.attr_key in LAUNCH:
            extent, body = self.expression(stmt.value), self.compile(stmt.body)
            key = id(stmt.node.var)

            def threads(state: State) -> None:
                for value in range(extent(state)):
                    state.values[key] = value
                    body(state)

            return threads
        return self.compile(stmt.body)

    def compile_Allocate(self, stmt: Allocate) -> Action:
        return _after(self.prepare_Allocate(stmt), self.compile(stmt.body))

    def prepare_Allocate(self, stmt: Allocate) -> Action:
        """The action before the body of an Allocate."""
        extents = [self.expression(extent) for extent in stmt.extents]
        data, tags = stmt.buffer_var, self.tags
        kind, lanes = stmt.dtype.element.numpy, stmt.dtype.lanes
        owned = _buffers_over(stmt)

        def allocate(state: State) -> None:
            count = lanes
            for extent in extents:
                count *= extent(state)
            state.allocate(data, tags, lambda: _zeroed(count, kind, data.name))
            state.buffers = {k: b for k, b in state.buffers.items() if k not in owned}

        return allocate

    def compile_AllocateConst(self, stmt: AllocateConst) -> Action:
        key, body = id(stmt.buffer_var), self.compile(stmt.body)
        data = np.ascontiguousarray(stmt.data.numpy()).reshape(-1)

        def allocate(state: State) -> None:
            state.memory[key] = data
            body(state)

        return allocate

    def compile_DeclBuffer(self, stmt: DeclBuffer) -> Action:
        return _after(self.prepare_DeclBuffer(stmt), self.compile(stmt.body))

    def prepare_DeclBuffer(self, stmt: DeclBuffer) -> Action:
        """The action before the body of a DeclBuffer."""
        buffer = stmt.buffer

        def declare(state: State) -> None:
            state.declare(buffer)

        return declare

    def compile_BufferRealize(self, stmt: BufferRealize) -> Action:
        return self.with_memory([stmt.buffer], self.compile(stmt.body))

    def with_memory(self, buffers: Sequence[Buffer], body: Action) -> Action:
        """Run ``body`` with new, zeroed memory for ``buffers``."""
        return _after(self.prepare_memory(buffers), body) if buffers else body

    def prepare_memory(self, buffers: Sequence[Buffer]) -> Action:
        """The action that allocates zeroed memory for ``buffers``."""
        tags = self.tags

        def allocate(state: State) -> None:
            for buffer in buffers:
                count = 1
                for extent in buffer.shape:
                    count *= int(state.evaluate(extent))
                if buffer.strides and buffer.shape:
                    count = int(state.evaluate(buffer.shape[0] * buffer.strides[0]))
                state.allocate(buffer.data, tags, _zeros(buffer, count))
                state.declare(buffer)

        return allocate

    def compile_Block(self, block: Block) -> Action:
        body = self.compile(block.body)
        if block.init is not None:
            body = self.initialised(block, body)
        for match in reversed(block.match_buffers):
            body = self.matched(match, body)
        return self.with_memory(block.alloc_buffers, body)

    def initialised(self, block: Block, body: Action) -> Action:
        """The body, preceded by the block's ``init``."""
        return _after(self.prepare_init(block), body)

    def prepare_init(self, block: Block) -> Action:
        """The action that runs ``init`` if every accumulating axis is at its first value."""
        assert block.init is not None
        init = self.compile(block.init)
        firsts = [
            (id(axis.var), self.expression(axis.dom.min))
            for axis in block.iter_vars
            if axis.accumulates and axis.dom is not None
        ]

        def run_block(state: State) -> None:
            for key, first in firsts:
                if state.values[key] != first(state):
                    return
            init(state)

        return run_block

    def matched(self, match: MatchBufferRegion, body: Action) -> Action:
        """The body, preceded by the binding of a matched buffer."""
        return _after(self.prepare_match(match), body)

    def prepare_match(self, match: MatchBufferRegion) -> Action:
        """The action that binds a matched buffer to the region it views."""
        target, source = match.buffer, match.source
        own: set[int] = set()  # variables that this match defines, again in every execution

        def bind(state: State) -> None:
            for key in own:
                state.values.pop(key, None)
            known = set(state.values)
            base = state.bound(source.buffer).array
            window = [
                (int(state.evaluate(rng.min)), int(state.evaluate(rng.extent)))
                for rng in source.region
            ]
            _check_region(target.name, window, base.shape)
            places = tuple([slice(low, low + extent) for low, extent in window])
            view = base[places] if places else base  # base[()] is a copy of the element
            view = view.reshape(view.shape[len(view.shape) - len(target.shape) :])
            strides = [step // view.itemsize for step in view.strides]
            _define(state, target.shape, view.shape)
            _define(state, target.strides, strides)
            offset = op.buffer_offset(source.buffer, [rng.min for rng in source.region])[0]
            _define(state, [target.elem_offset], [int(state.evaluate(offset))])
            own.update(state.values.keys() - known)
            state.memory[id(target.data)] = state.memory[id(source.buffer.data)]
            state.bind(target, view)

        return bind

    def compile_BlockRealize(self, realize: BlockRealize) -> Action:
        bind, block = self.prepare_axes(realize), self.compile_Block(realize.block)

        def instance(state: State) -> None:
            if bind(state):
                block(state)

        return instance

    def prepare_axes(self, realize: BlockRealize) -> Callable[[State], bool]:
        """The action that sets the axes of a block; it returns False if the predicate is false."""
        keys = [id(axis.var) for axis in realize.block.iter_vars]
        expressions = [self.expression(value) for value in realize.iter_values]
        always = isinstance(realize.predicate, IntImm) and realize.predicate.value
        predicate = None if always else self.expression(realize.predicate)

        def bind(state: State) -> bool:
            if predicate is not None and not predicate(state):
                return False
            state.values.update(zip(keys, [value(state) for value in expressions], strict=True))
            return True

        return bind


def _after(first: Action, body: Action) -> Action:
    def both(state: State) -> None:
        first(state)
        body(state)

    return both


def _zeros(buffer: Buffer, count: int) -> Callable[[], np.ndarray]:
    kind = buffer.dtype.element.numpy
    return lambda: _zeroed(count * buffer.dtype.lanes, kind, buffer.name)


def _zeroed(count: int, kind: np.dtype, name: str) -> np.ndarray:
    """Zeroed memory of ``count`` elements; IRValueError if it cannot be allocated."""
    if count < 0:
        raise IRValueError(f"{name}: expected an allocation of 0 or more elements, got {count}")
    try:
        return np.zeros(count, kind)
    except (MemoryError, ValueError, OverflowError) as error:
        raise IRValueError(f"{name}: no memory for an allocation of {count} elements") from error


def _buffers_over(stmt: Allocate) -> set[int]:
    """The ids of the buffers over this allocation, which are bound again at each execution."""
    views = collect(stmt.body, Buffer)
    return {id(buffer) for buffer in views if buffer.data is stmt.buffer_var}


def _check_region(name: str, window: Sequence[tuple[int, int]], shape: Sequence[int]) -> None:
    """Raise RuntimeFault unless a region is inside of a buffer of that shape."""
    for axis, ((low, extent), size) in enumerate(zip(window, shape, strict=True)):
        if low < 0 or extent < 0 or low + extent > size:
            raise RuntimeFault(
                f"buffer {name}: the region [{low}, {low + extent}) of axis {axis} is outside of "
                f"[0, {size})"
            )


def _define(state: State, declared: Sequence[object], actual: Sequence[int]) -> None:
    """Set the variables among ``declared`` that have no value yet."""
    for mine, its in zip(declared, actual, strict=False):
        if isinstance(mine, Var) and id(mine) not in state.values:
            state.values[id(mine)] = int(its)


def _numpy_of(value: object) -> np.ndarray:
    if isinstance(value, NDArray):
        return value._array  # noqa: SLF001 - the interpreter works on the memory itself
    if isinstance(value, np.ndarray):
        return value
    raise wrong_type("expected an NDArray or a numpy array", value)


def _number(param: Var, value: object) -> object:
    """A scalar argument; a float is rounded to its type."""
    if not param.dtype.is_float:
        return value
    with np.errstate(all="ignore"):
        return param.dtype.numpy.type(value)


def _bind_arguments(
    func: PrimFunc, arguments: Sequence[object], state: State
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Bind parameters; for arrays that are not contiguous, returns (array, copy) to copy back."""
    if len(arguments) != len(func.params):
        raise IRValueError(f"expected {len(func.params)} arguments, got {len(arguments)}")
    copies = []
    pairs = list(zip(func.params, arguments, strict=True))
    for param, argument in pairs:  # extents may be expressions of scalars that come later
        if param not in func.buffer_map:
            state.values[id(param)] = _number(param, argument)
    bound = []
    for param, argument in pairs:
        buffer = func.buffer_map.get(param)
        if buffer is None:
            continue
        array = _numpy_of(argument)
        if array.dtype != buffer.dtype.element.numpy or array.ndim != len(buffer.shape):
            raise IRValueError(
                f"{buffer.name}: expected {buffer.dtype} of {len(buffer.shape)} dimensions, got "
                f"{array.dtype} of {array.ndim}"
            )
        offset = buffer.elem_offset
        if isinstance(offset, IntImm) and offset.value != 0:
            raise IRValueError(
                f"{buffer.name}: expected element offset 0 or a symbol, got {offset.value}: an "
                "argument starts at its own first element"
            )
        flat = array.reshape(-1)
        if array.size and not np.shares_memory(flat, array):
            copies.append((array, flat))
        state.memory[id(buffer.data)] = flat
        _define(state, buffer.shape, array.shape)
        _define(state, buffer.strides, compact_strides(list(array.shape)))
        _define(state, [buffer.elem_offset], [0])
        bound.append((buffer, array, flat))
    for buffer, array, flat in bound:  # extents may be expressions of symbols that come later
        for mine, its in zip(buffer.shape, array.shape, strict=True):
            expected = state.evaluate(mine)
            if int(expected) != its:
                raise IRValueError(f"{buffer.name}: expected an extent {expected}, got {its}")
        state.buffers[id(buffer)] = Bound(buffer.name, flat.reshape(array.shape))
    return copies


def _as_threads_run_it(func: PrimFunc, threads: bool) -> PrimFunc:
    func = initialise_empty_reductions(func)
    return prepared(func) if threads else func


def _result(func: PrimFunc, state: State) -> object:
    """Run a function whose parameters are bound, and return its value."""
    with np.errstate(all="ignore"):
        try:
            state.machine.compile(func.body)(state)
        except ReturnSignal as signal:
            return signal.args[0]
    return None


def constant_value(expr: PrimExpr) -> Value:
    """The value of an expression without variables and loads."""
    machine = Machine(None)
    return machine.expression(expr)(State(machine))


@deep_recursion
def run(
    func: PrimFunc, *arguments: object, module: IRModule | None = None, threads: bool = True
) -> Value:
    """Execute ``func`` on arrays (NDArray or numpy, changed in place) and scalars.

    Returns the value of ``T.ret``, or None. Raises RuntimeFault for a run-time error of the
    program.

    With ``threads``, loops bound to GPU threads run as threads: those of a block wait for each
    other at barriers, local memory belongs to one thread, and a race is an error. Without
    ``threads``, they run as plain loops.
    """
    func = _as_threads_run_it(func, threads)
    state = State(Machine(module, threads=threads))
    copies = _bind_arguments(func, arguments, state)
    result = _result(func, state)
    for array, flat in copies:
        array[...] = flat.reshape(array.shape)
    return result
