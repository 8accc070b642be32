"""A Relax function as one native host function (design.md 3.9).

The host is a PrimFunc: its parameters are the inputs, the outputs, working memory (``arena``) and
a table of the constants' addresses; its body declares every intermediate tensor at an offset of the
arena and calls kernels and registered functions in order. Code generation compiles it beside the
kernels, so that an inference is one call from Python. Shapes are expressions over symbols of the
inputs, so that the entry does what a match_cast checks before the call. A branch on data writes its
result where the ``if`` as a whole has its own. Functions are expanded where they are called; one
that calls itself becomes a PrimFunc that does (``host_recursion``). What cannot be expressed so
(objects, closures that escape, values of unknown shape) raises ``NotNative`` with the reason, and
the function runs as bytecode. Operators are rows of ``host_calls``, symbols are kept by
``host_symbols``.
"""

from __future__ import annotations

from typing import Any, Final

from weft.ir.expr import GlobalVar, IntImm, PrimExpr
from weft.ir.module import IRModule
from weft.ir.op import Op
from weft.ir.type import TupleType
from weft.relax.expr import (
    Call,
    Constant,
    Function,
    If,
    MatchCast,
    PrimValue,
    SeqExpr,
    ShapeExpr,
    Tuple,
    TupleGetItem,
    Var,
)
from weft.relax.ir.shape_arith import product, same_dim
from weft.relax.struct_info import (
    PrimStructInfo,
    ShapeStructInfo,
    StructInfo,
    TensorStructInfo,
    TupleStructInfo,
)
from weft.relax.transform.memory.upper_bound import UpperBounds
from weft.relax.vm.arena import ArenaPlan, TensorLife
from weft.relax.vm.bytecode import returns_more
from weft.relax.vm.host_calls import HOST_OPERATORS, call_packed
from weft.relax.vm.host_parts import (
    HostFunction,
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
from weft.relax.vm.host_recursion import call_activation
from weft.relax.vm.host_symbols import HostSymbols
from weft.support.dtype import DataType
from weft.tir import op
from weft.tir.buffer import Buffer, decl_buffer
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

INT64: Final = DataType("int64")
MAX_INLINE_DEPTH: Final = 64

class HostBuilder:
    """Lowers one function. A value is a Buffer, a PrimExpr, a list (tuple) or a ``Shape``.

    A function is a ``LocalFunction``. ``symbols`` says what each symbolic variable is over those of
    the inputs; ``label`` is the name of the graph function, for errors.
    """

    def __init__(
        self, mod: IRModule, name: str, function: Function, label: str = "",
        state: State | None = None,
    ) -> None:  # fmt: skip
        self.mod, self.name, self.function = mod, name, function
        self.state = state or State(Shared(name))
        self.symbols = HostSymbols(function, label or name, self.state)
        self.symbols.define([param.struct_info for param in function.params])
        self.values: dict[int, Any] = {}
        self.params: list[Any] = []
        self.numbers: list[tuple[PrimExpr, TirVar, str]] = []
        self.inlined: list[Function] = [function]
        self.bounds = UpperBounds(function)

    def build(self) -> HostFunction:
        """The host function; raises NotNative."""
        layouts = []
        for index, param in enumerate(self.function.params):
            name = param.name_hint or f"arg{index}"
            where = f"{self.symbols.label}: argument {index} ({name})"
            self.values[id(param)], layout = self.parameter(name, param.struct_info, where)
            layouts.append(layout)
        for value, number, where in self.numbers:
            self.symbols.compare("prim", [value], [number], where, self.symbols.known)
        params = self.params
        result = self.returned(self.function)
        inputs = {id(param) for param in params}
        outputs: list[Buffer] = []
        shape_of_result = self.result(result, inputs, params, outputs)
        chosen = {id(buffer) for buffer in outputs}
        plan = ArenaPlan(self.lives(chosen))
        host = self.assemble(params, outputs, shape_of_result, plan)
        host.helpers = [made.func for made in self.state.shared.activations.values()]
        host.layout = layouts if any(kind != "leaf" for kind, _ in layouts) else None
        return host

    def parameter(self, name: str, info: StructInfo | None, where: str) -> tuple[Any, Any]:
        """The value of a parameter and its layout; adds what it is natively to ``params``."""
        if isinstance(info, TensorStructInfo):
            if info.shape is None and info.ndim >= 0:
                info = TensorStructInfo(self.extents(name, info.ndim), info.dtype)
            return self.native(self.tensor(name, info))
        if isinstance(info, PrimStructInfo):
            if self.is_new(info.value):
                return self.native(info.value)
            number = TirVar(name, info.dtype)
            if info.value is not None:
                self.numbers.append((info.value, number, where))
            return self.native(number)
        if isinstance(info, TupleStructInfo):
            pairs = [
                self.parameter(f"{name}_{index}", field, f"{where}[{index}]")
                for index, field in enumerate(info.fields)
            ]
            return [value for value, _ in pairs], ("tuple", [layout for _, layout in pairs])
        if isinstance(info, ShapeStructInfo) and info.ndim >= 0:
            extents = self.extents(name, info.ndim) if info.values is None else list(info.values)
            layouts = [
                self.native(extent)[1] if self.is_new(extent) else ("same", extent)
                for extent in extents
            ]
            return Shape(extents), ("tuple", layouts)
        raise NotNative(f"parameter {name} is no tensor, scalar, shape of known rank or tuple")

    def native(self, param: Any) -> tuple[Any, Any]:
        """Add a parameter of the native function; the value and where it stands."""
        self.params.append(param)
        return param, ("leaf", len(self.params) - 1)

    def is_new(self, extent: Any) -> bool:
        """Whether a scalar is a symbol that no parameter passes yet."""
        return isinstance(extent, TirVar) and not any(extent is param for param in self.params)

    def extents(self, name: str, ndim: int) -> list[PrimExpr]:
        """New symbols for the extents of a parameter of known rank."""
        found = [TirVar(f"{name}_{axis}", INT64) for axis in range(ndim)]
        self.symbols.known.update({extent: extent for extent in found})
        return list(found)

    def tensor(self, name: str, info: TensorStructInfo) -> Buffer:
        """A buffer of a tensor's struct info."""
        values = getattr(info.shape, "values", None)
        if values is None or info.dtype == "void":
            raise NotNative(f"the shape or the dtype of {name} is not known")
        return decl_buffer(self.resolved(values), info.dtype, identifier(name))

    def resolved(self, values: Any) -> list[PrimExpr]:
        """Expressions with every symbol replaced by what it is over those of the inputs."""
        return self.symbols.resolved(values)

    # Bodies.

    def returned(self, function: Function) -> Any:
        """The value of a function's body, held against what the function declares."""
        result = self.body(function.body)
        if returns_more(function):
            self.symbols.match_cast(function.ret_struct_info, result, "the return value")
        return result

    def body(self, body: Any) -> Any:
        """Lower bindings; the value of the body."""
        if not isinstance(body, SeqExpr):
            return self.value(body)
        for block in body.blocks:
            for binding in block.bindings:
                if isinstance(binding, MatchCast):
                    value = self.value(binding.value)
                    what = f"match_cast {binding.var.name_hint}"
                    self.symbols.match_cast(binding.struct_info, value, what)
                    self.values[id(binding.var)] = value
                else:
                    name = binding.var.name_hint
                    self.values[id(binding.var)] = self.value(binding.value, name)
        return self.value(body.body)

    def value(self, expr: Any, name: str = "t") -> Any:
        """Lower an expression."""
        if isinstance(expr, Var):
            found = self.values.get(id(expr))
            if found is None:
                raise NotNative(f"the variable {expr.name_hint} is not a tensor here")
            return found
        if isinstance(expr, Constant):
            return self.constant(expr)
        if isinstance(expr, Tuple):
            return [self.value(item) for item in expr.fields]
        if isinstance(expr, TupleGetItem):
            base = self.value(expr.tuple_value)
            if not isinstance(base, list):
                raise NotNative("a field of a value that is no tuple here")
            return base[expr.index]
        if isinstance(expr, PrimValue):
            return self.resolved([expr.value])[0]
        if isinstance(expr, ShapeExpr):
            return Shape(self.resolved(expr.values))
        if isinstance(expr, SeqExpr):
            return self.body(expr)
        if isinstance(expr, Call):
            return self.call(expr, name)
        if isinstance(expr, If):
            return self.branch(expr, name)
        if isinstance(expr, Function):
            return LocalFunction(
                expr, f"{self.symbols.label}.{name}", self.values, dict(self.symbols.known), []
            )
        if isinstance(expr, GlobalVar):
            return self.global_function(expr)
        raise NotNative(f"{type(expr).__name__} runs as bytecode")

    # Branches.

    def branch(self, expr: If, name: str) -> Any:
        """An ``if``: both branches end with a copy of their value into its result."""
        condition = self.value(expr.cond)
        used = [condition] if isinstance(condition, Buffer) else []
        if isinstance(condition, Buffer) and not condition.shape:
            condition = condition[()]
        if not isinstance(condition, PrimExpr):
            raise NotNative("a condition that is no scalar")
        result = self.allocated(expr.struct_info, name)
        self.state.branches += 1
        self.state.steps.append(Step(None, self.rooted(used), op.cast("bool", condition), "if"))
        known = dict(self.symbols.known)
        self.copy(self.body(expr.true_branch), result)
        self.state.steps.append(Step(None, [], None, "else"))
        self.symbols.known = dict(known)
        self.copy(self.body(expr.false_branch), result)
        self.state.steps.append(Step(None, [], None, "end"))
        self.symbols.known = known
        self.state.branches -= 1
        return result

    def copy(self, source: Any, target: Any) -> None:
        """Copy a tensor or a tuple of tensors."""
        if isinstance(target, list) and isinstance(source, list):
            for one, other in zip(source, target, strict=True):
                self.copy(one, other)
        elif isinstance(source, Buffer) and isinstance(target, Buffer):
            loops = [TirVar(f"i{axis}", INT64) for axis in range(len(target.shape))]
            body: Stmt = BufferStore(target, source[tuple(loops)], loops)
            for loop, extent in zip(loops[::-1], target.shape[::-1], strict=True):
                body = For(loop, IntImm(INT64, 0), op.cast(INT64, extent), ForKind.SERIAL, body)
            self.step(body, [source, target])
        else:
            raise NotNative("a branch whose value is no tensor")

    def constant(self, constant: Constant) -> Buffer:
        """The buffer over a constant; the same data once."""
        for known, buffer in self.state.constants:
            if known.data is constant.data:
                return buffer
        shape = [IntImm(INT64, extent) for extent in constant.data.shape]
        buffer = decl_buffer(shape, constant.data.dtype, f"const{len(self.state.constants)}")
        self.state.constants.append((constant, buffer))
        if all(known.data is not constant.data for known in self.state.shared.table):
            self.state.shared.table.append(constant)
        return buffer

    # Calls.

    def call(self, call: Call, name: str) -> Any:
        """Lower a call."""
        target = call.op
        if isinstance(target, GlobalVar):
            return self.inline(target, call)
        if isinstance(target, Var | Function):
            return self.enter(self.value(target), [self.value(arg) for arg in call.args])
        if not isinstance(target, Op):
            return call_packed(self, target, call.args, call, name)
        lower = HOST_OPERATORS.get(target.name)
        if lower is not None:
            return lower(self, call, name)
        raise NotNative(f"{target.name} runs as bytecode")

    def view(self, source: Any, info: StructInfo | None, name: str) -> Buffer:
        """The memory of a tensor under another shape."""
        if not isinstance(source, Buffer) or not isinstance(info, TensorStructInfo):
            raise NotNative("a view of a value that is no tensor")
        shaped = self.tensor(name, info)
        made = decl_buffer(list(shaped.shape), shaped.dtype, shaped.name, data=source.data)
        self.state.roots[id(made)] = self.state.roots.get(id(source), source)
        self.state.views.append(made)
        return made

    def inline(self, target: GlobalVar, call: Call) -> Any:
        """A call of another function: a kernel, or a graph function's body in place."""
        function = self.mod[target]
        arguments = [self.value(arg) for arg in call.args]
        if isinstance(function, PrimFunc):
            return self.kernel_call(target, function, arguments)
        return self.enter(self.global_function(target), arguments)

    def global_function(self, target: GlobalVar) -> LocalFunction:
        """A graph function of the module as a value."""
        function = self.mod[target]
        if not isinstance(function, Function):
            raise NotNative(f"{target.name_hint} is no function of a graph")
        return LocalFunction(function, target.name_hint, {}, {}, [])

    def enter(self, local: Any, given: list[Any]) -> Any:
        """A function's body with the arguments in place."""
        if not isinstance(local, LocalFunction):
            raise NotNative("a call of an object or of a function that returns one")
        function, arguments = local.function, [*given, *local.captured]
        if len(arguments) != len(function.params):
            raise NotNative(f"{local.label} takes {len(function.params)} arguments")
        if any(function is running for running in self.inlined):
            return call_activation(self, local, arguments)
        if len(self.inlined) >= MAX_INLINE_DEPTH:
            raise NotNative(f"calls of functions are nested more than {MAX_INLINE_DEPTH} deep")
        outer, symbols = self.values, self.symbols
        self.symbols = symbols.called(local, arguments)
        self.values = {**local.values}
        for param, argument in zip(function.params, arguments, strict=True):
            self.values[id(param)] = argument
        self.inlined.append(function)
        result = self.returned(function)
        self.inlined.pop()
        self.values, self.symbols = outer, symbols
        return result

    def helper(
        self, function: Function, symbol: str, label: str, depth: PrimExpr
    ) -> HostBuilder:
        """A builder of a PrimFunc beside the host, for a function that calls itself."""
        state = State(self.state.shared, is_helper=True, depth=depth)
        return HostBuilder(self.mod, symbol, function, label, state)

    def allocated(self, info: StructInfo | None, name: str) -> Any:
        """New tensors for a struct info."""
        if isinstance(info, TupleStructInfo):
            return [self.allocated(item, f"{name}_{i}") for i, item in enumerate(info.fields)]
        if not isinstance(info, TensorStructInfo):
            raise NotNative("an output that is no tensor")
        buffer = self.tensor(name, info)
        self.state.temporaries.append(buffer)
        return buffer

    def kernel_call(self, target: GlobalVar, kernel: PrimFunc, passed: list[Any]) -> list[Any]:
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

    def step(self, stmt: Stmt, passed: list[Any]) -> None:
        """Add a statement to the body."""
        used = [value for value in passed if isinstance(value, Buffer)]
        self.state.steps.append(Step(stmt, self.rooted(used)))

    def rooted(self, used: list[Buffer]) -> list[Buffer]:
        """Tensors, each as the one whose memory it is."""
        return [self.state.roots.get(id(buffer), buffer) for buffer in used]

    # The whole.

    def result(
        self, value: Any, inputs: set[int], params: list[Any], outputs: list[Buffer]
    ) -> Any:
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
        """Whether what a value is a view of, as a whole, is a tensor that is no result itself."""
        root = self.state.roots.get(id(view))
        return (
            root is not None and any(root is one for one in self.state.temporaries)
            and not any(root is output for output in outputs)
            and same_dim(product(root.shape), product(view.shape))
        )  # fmt: skip

    def in_its_place(self, view: Buffer) -> Buffer:
        """The view as a tensor, of whose memory what it was a view of becomes a view."""
        state, root = self.state, self.state.roots.pop(id(view))
        state.temporaries = [view if one is root else one for one in state.temporaries]
        state.views = [root, *[one for one in state.views if one is not view]]
        state.roots = {key: view if one is root else one for key, one in state.roots.items()}
        state.roots[id(root)] = view
        for step in state.steps:
            step.uses[:] = [view if one is root else one for one in step.uses]
        return view

    def copied(self, value: Buffer) -> Buffer:
        """A new tensor with the elements of a constant or a view, which the caller may write."""
        made = decl_buffer(list(value.shape), value.dtype, value.name)
        self.state.temporaries.append(made)
        self.copy(value, made)
        return made

    def lives(self, outputs: set[int]) -> list[TensorLife]:
        """First and last step of every temporary that is not an output."""
        first: dict[int, int] = {}
        last: dict[int, int] = {}
        for position, step in enumerate(self.state.steps):
            for buffer in step.uses:
                first.setdefault(id(buffer), position)
                last[id(buffer)] = position
        return [
            TensorLife(
                buffer, self.bounds.size_in_bytes(list(buffer.shape), buffer.dtype),
                first[id(buffer)], last[id(buffer)],
            )
            for buffer in self.state.temporaries
            if id(buffer) not in outputs and id(buffer) in first
        ]

    def assemble(
        self, params: list[Any], outputs: list[Buffer], result: Any, plan: ArenaPlan
    ) -> HostFunction:
        """The host from the collected steps."""
        body = self.placed(plan)
        shared = self.state.shared
        handles: list[Any] = [handle for handle in (plan.arena, plan.table) if handle is not None]
        if shared.table or shared.activations:
            handles.append(self.state.pointers)
        if shared.activations:
            handles.append(self.state.floor)
        func = PrimFunc(
            [*params, *outputs, *handles], body, attrs={"global_symbol": self.name}
        )
        return HostFunction(
            func, len(params), outputs, result, plan, shared.table, self.state.checks,
            self.bounds.limits,
        )  # fmt: skip

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
