"""What a host function is made of: tensors, views, constants, steps, and where each tensor lies.

``HostBody`` is what the rows of ``host_calls`` and ``host_recursion`` add to; ``HostBuilder``
(``host``) lowers a function's expressions with them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import TypeGuard, TypeVar

from weft.ir.expr import GlobalVar, IntImm, PrimExpr, RelaxExpr
from weft.ir.functor import collect
from weft.ir.module import IRModule
from weft.ir.type import TupleType
from weft.relax.expr import Binding, Constant, Function, If
from weft.relax.ir.shape_arith import INT64, product, same_dim
from weft.relax.struct_info import (
    StructInfo,
    TensorStructInfo,
    TupleStructInfo,
)
from weft.relax.transform.memory.upper_bound import UpperBounds
from weft.relax.vm.arena import ArenaPlan, TensorLife
from weft.relax.vm.host_parts import (
    Described,
    HostFunction,
    HostValue,
    LocalFunction,
    NotNative,
    Shape,
    Shared,
    State,
    Step,
    identifier,
    implicit_values,
    nested,
)
from weft.relax.vm.host_symbols import HostSymbols
from weft.support.dtype import DataType
from weft.tir import op
from weft.tir.buffer import Buffer, BufferLoad, decl_buffer
from weft.tir.expr import Call as TirCall
from weft.tir.expr import Var as TirVar
from weft.tir.function import PrimFunc
from weft.tir.stmt import (
    BufferStore,
    DeclBuffer,
    Evaluate,
    For,
    ForKind,
    LetStmt,
    Stmt,
)

P = TypeVar("P", TirVar, Buffer)


class HostBody(ABC):
    """A builder of the host function of one function of a graph.

    A value is a Buffer, a PrimExpr, a list (tuple), a ``Shape`` or a ``LocalFunction``. ``symbols``
    says what each symbolic variable is over those of the inputs.
    """

    def __init__(
        self,
        mod: IRModule,
        name: str,
        function: Function,
        label: str = "",
        state: State | None = None,
    ) -> None:
        self.mod, self.name, self.function = mod, name, function
        self.state = state or State(Shared(name))
        self.symbols = HostSymbols(function, label or name, self.state)
        self.symbols.define([param.struct_info for param in function.params])
        self.values: dict[int, HostValue] = {}
        self.params: list[TirVar | Buffer] = []
        self.numbers: list[tuple[PrimExpr, TirVar, str]] = []
        self.inlined: list[Function] = [function]
        self.bounds = UpperBounds(function)

    @abstractmethod
    def value(self, expr: RelaxExpr, name: str = "t") -> HostValue:
        """Lower an expression."""

    @abstractmethod
    def bind(self, binding: Binding) -> None:
        """Lower a binding: its variable gets a value."""

    @abstractmethod
    def branches(self, expr: If, lower: Callable[[RelaxExpr], None]) -> None:
        """An ``if`` whose branches ``lower`` lowers."""

    @abstractmethod
    def returned(self, function: Function) -> HostValue:
        """The value of a function's body, compared with what the function declares."""

    @abstractmethod
    def enter(self, local: HostValue, given: Sequence[HostValue]) -> HostValue:
        """The value of a function's body, which is expanded here for these arguments."""

    @abstractmethod
    def helper(self, function: Function, symbol: str, label: str, depth: PrimExpr) -> HostBody:
        """A builder of a PrimFunc beside the host, for a function that calls itself."""

    def native(self, param: P) -> tuple[P, Described]:
        """Add a parameter to the native function; returns it and its layout, its place."""
        self.params.append(param)
        return param, ("leaf", len(self.params) - 1)

    def is_new(self, extent: object) -> TypeGuard[TirVar]:
        """Whether a scalar is a symbol that no parameter passes yet."""
        return isinstance(extent, TirVar) and not any(extent is param for param in self.params)

    def extents(self, name: str, ndim: int) -> list[PrimExpr]:
        """New symbols for the extents of a parameter of known rank."""
        symbols = [TirVar(f"{name}_{axis}", INT64) for axis in range(ndim)]
        self.symbols.known.update({extent: extent for extent in symbols})
        return list(symbols)

    def tensor(self, name: str, info: TensorStructInfo) -> Buffer:
        """A buffer of a tensor's struct info."""
        values = getattr(info.shape, "values", None)
        if values is None or info.dtype == "void":
            raise NotNative(f"the shape or the dtype of {name} is not known")
        extents = self.resolved(values)
        if any(collect(extent, BufferLoad) for extent in extents):
            raise NotNative(f"the shape of {name} changes from step to step of a loop")
        return decl_buffer(extents, info.dtype, identifier(name))

    def resolved(self, values: Iterable[PrimExpr]) -> list[PrimExpr]:
        """Expressions with each symbol replaced by its value over the symbols of the inputs."""
        return self.symbols.resolved(values)

    def copy(self, source: HostValue, target: HostValue) -> None:
        """Copy a tensor or a tuple of tensors."""
        if isinstance(target, list) and isinstance(source, list):
            for part, place in zip(source, target, strict=True):
                self.copy(part, place)
        elif isinstance(source, Buffer) and isinstance(target, Buffer):
            loops = [TirVar(f"i{axis}", INT64) for axis in range(len(target.shape))]
            body: Stmt = BufferStore(target, source[tuple(loops)], loops)
            for loop, extent in zip(loops[::-1], target.shape[::-1], strict=True):
                body = For(loop, IntImm(INT64, 0), op.cast(INT64, extent), ForKind.SERIAL, body)
            self.step(body, [source, target])
        else:
            raise NotNative("a branch whose value is no tensor")

    def constant(self, constant: Constant) -> Buffer:
        """The buffer of a constant; constants with the same data share it."""
        for known, buffer in self.state.constants:
            if known.data is constant.data:
                return buffer
        shape = [IntImm(INT64, extent) for extent in constant.data.shape]
        buffer = decl_buffer(shape, constant.data.dtype, f"const{len(self.state.constants)}")
        self.state.constants.append((constant, buffer))
        if all(known.data is not constant.data for known in self.state.shared.table):
            self.state.shared.table.append(constant)
        return buffer

    def view(self, source: HostValue, info: StructInfo | None, name: str) -> Buffer:
        """A buffer with the shape of ``info`` over the memory of a tensor."""
        if not isinstance(source, Buffer) or not isinstance(info, TensorStructInfo):
            raise NotNative("a view of a value that is no tensor")
        shaped = self.tensor(name, info)
        view = decl_buffer(list(shaped.shape), shaped.dtype, shaped.name, data=source.data)
        self.state.roots[id(view)] = self.state.roots.get(id(source), source)
        self.state.views.append(view)
        return view

    def global_function(self, target: GlobalVar) -> LocalFunction:
        """A graph function of the module as a value."""
        function = self.mod[target]
        if not isinstance(function, Function):
            raise NotNative(f"{target.name_hint} is no function of a graph")
        return LocalFunction(function, target.name_hint, {}, {}, [])

    def allocated(self, info: StructInfo | None, name: str) -> HostValue:
        """New tensors for a struct info."""
        if isinstance(info, TupleStructInfo):
            return [self.allocated(item, f"{name}_{i}") for i, item in enumerate(info.fields)]
        if not isinstance(info, TensorStructInfo):
            raise NotNative("an output that is no tensor")
        return self.new_tensor(info, name)

    def new_tensor(self, info: TensorStructInfo, name: str) -> Buffer:
        """A new tensor for a struct info."""
        buffer = self.tensor(name, info)
        self.state.temporaries.append(buffer)
        return buffer

    def number(self, name: str, value: PrimExpr) -> Buffer:
        """Memory for a number, with its first value."""
        buffer = self.new_tensor(TensorStructInfo([1], value.dtype), name)
        self.step(BufferStore(buffer, value, [IntImm(INT64, 0)]), [buffer])
        return buffer

    def kernel_call(
        self, target: GlobalVar, kernel: PrimFunc, passed: Sequence[HostValue]
    ) -> list[HostValue]:
        """A call of a kernel for its effect, with its implicit symbols."""
        if len(passed) != len(kernel.params) or kernel.ret_type != TupleType(()):
            raise NotNative(f"{target.name_hint} takes {len(kernel.params)} arguments")
        for param, value in zip(kernel.params, passed, strict=True):
            if not isinstance(value, Buffer if param in kernel.buffer_map else PrimExpr):
                raise NotNative(f"an argument of {target.name_hint} that is not of its kind")
        extra = implicit_values(kernel, passed)
        symbol = str(kernel.attrs.get("global_symbol", target.name_hint))
        stmt = Evaluate(TirCall(DataType("int32"), GlobalVar(symbol), [*passed, *extra]))
        self.step(stmt, passed)
        return []

    def step(self, stmt: Stmt, passed: Iterable[object]) -> None:
        """Add a statement to the body."""
        used = [value for value in passed if isinstance(value, Buffer)]
        self.state.steps.append(Step(stmt, self.rooted(used)))

    def rooted(self, used: list[Buffer]) -> list[Buffer]:
        """The tensors whose memory these are: of a view, the tensor that it is a view of."""
        return [self.state.roots.get(id(buffer), buffer) for buffer in used]

    def result(
        self,
        value: HostValue,
        inputs: set[int],
        params: Sequence[TirVar | Buffer],
        outputs: list[Buffer],
    ) -> Described:
        """Describe the result; tensors that are computed become outputs."""
        if isinstance(value, list):
            return ("tuple", [self.result(item, inputs, params, outputs) for item in value])
        if isinstance(value, Shape):
            return ("shape", list(value.values))
        if isinstance(value, PrimExpr):
            return ("expr", value)
        if isinstance(value, LocalFunction):
            raise NotNative("a function as a result")
        if id(value) in inputs:
            return ("input", next(i for i, p in enumerate(params) if p is value))
        if not any(value is temporary for temporary in self.state.temporaries):
            is_taken = self.root_is_ours(value, outputs)
            value = self.in_its_place(value) if is_taken else self.copied(value)
        if not any(value is output for output in outputs):
            outputs.append(value)
        return ("output", next(i for i, item in enumerate(outputs) if item is value))

    def root_is_ours(self, view: Buffer, outputs: list[Buffer]) -> bool:
        """Whether a value is a view of a whole tensor that is computed here and not returned."""
        root = self.state.roots.get(id(view))
        return (
            root is not None
            and any(root is temporary for temporary in self.state.temporaries)
            and not any(root is output for output in outputs)
            and same_dim(product(root.shape), product(view.shape))
        )

    def in_its_place(self, view: Buffer) -> Buffer:
        """Exchange a view and its tensor, so that the view can be an output without a copy.

        The view gets memory of its own, and the tensor becomes a view of that.
        """
        state, root = self.state, self.state.roots.pop(id(view))
        state.temporaries = [view if other is root else other for other in state.temporaries]
        state.views = [root, *[other for other in state.views if other is not view]]
        state.roots = {key: view if other is root else other for key, other in state.roots.items()}
        state.roots[id(root)] = view
        for step in state.steps:
            step.uses[:] = [view if other is root else other for other in step.uses]
        return view

    def copied(self, value: Buffer) -> Buffer:
        """A new tensor with the elements of a constant or a view, which the caller may write."""
        copy = decl_buffer(list(value.shape), value.dtype, value.name)
        self.state.temporaries.append(copy)
        self.copy(value, copy)
        return copy

    def lives(self, outputs: set[int]) -> list[TensorLife]:
        """First and last step of every temporary that is not an output."""
        first: dict[int, int] = {}
        last: dict[int, int] = {}
        for position, step in enumerate(self.state.steps):
            for buffer in step.uses:
                first.setdefault(id(buffer), position)
                last[id(buffer)] = position
        buffers = [
            buffer
            for buffer in self.state.temporaries
            if id(buffer) not in outputs and id(buffer) in first
        ]
        sizes = self.bounds.planned_sizes((list(buf.shape), buf.dtype) for buf in buffers)
        return [
            TensorLife(buffer, size, first[id(buffer)], last[id(buffer)])
            for buffer, size in zip(buffers, sizes, strict=True)
        ]

    def assemble(
        self,
        params: Sequence[TirVar | Buffer],
        outputs: list[Buffer],
        result: Described,
        plan: ArenaPlan,
    ) -> HostFunction:
        """The host from the collected steps."""
        body = self.placed(plan)
        shared = self.state.shared
        handles: list[TirVar | Buffer] = [
            handle for handle in (plan.arena, plan.table) if handle is not None
        ]
        if shared.table or shared.activations:
            handles.append(self.state.pointers)
        if shared.activations:
            handles.append(self.state.floor)
        func = PrimFunc([*params, *outputs, *handles], body, attrs={"global_symbol": self.name})
        func.provenance = "host"
        return HostFunction(
            func,
            len(params),
            outputs,
            result,
            plan,
            shared.table,
            self.state.checks,
            self.bounds.limits,
            steps=self.state.steps,
        )

    def placed(self, plan: ArenaPlan) -> Stmt:
        """The steps, with tensors at their places of the arena and constants at their addresses."""
        body = nested(self.state.steps)
        for view in self.state.views[::-1]:
            body = DeclBuffer(view, body)
        for buffer, offset in plan.places:
            assert plan.arena is not None
            pointer = TirCall(DataType("handle"), "tir.address_of", [plan.arena[offset]])
            body = LetStmt(buffer.data, pointer, DeclBuffer(buffer, body))
        table = self.state.shared.table
        for constant, buffer in self.state.constants:
            index = next(i for i, known in enumerate(table) if known.data is constant.data)
            arguments = [self.state.pointers, IntImm(INT64, index)]
            pointer = TirCall(DataType("handle"), "tir.table_get", arguments)
            body = LetStmt(buffer.data, pointer, DeclBuffer(buffer, body))
        return body
