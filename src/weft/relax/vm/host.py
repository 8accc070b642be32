"""A Relax function as one native host function (design.md 3.9).

The host is a PrimFunc: its parameters are the inputs, the outputs, working memory (``arena``) and
a table of the constants' addresses; its body declares every intermediate tensor at an offset of the
arena and calls kernels and registered functions in order. Code generation compiles it beside the
kernels, so that an inference is one call from Python. Shapes are expressions over symbols of the
inputs, so that the entry does what a match_cast checks before the call. A branch on data writes its
result where the ``if`` as a whole has its own. Functions are expanded where they are called; one
that calls itself becomes a PrimFunc that does (``host_recursion``), or a loop where that is the
last thing that it does (``host_loops``). What cannot be expressed so (objects, closures that
escape, values of unknown shape) raises ``NotNative`` with the reason, and the function runs as
bytecode. Operators are rows of ``host_calls``, symbols are kept by ``host_symbols``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from weft.ir.expr import GlobalVar, PrimExpr, RelaxExpr
from weft.ir.node import expect
from weft.ir.op import Op
from weft.relax.expr import (
    Binding,
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
from weft.relax.struct_info import (
    PrimStructInfo,
    ShapeStructInfo,
    StructInfo,
    TensorStructInfo,
    TupleStructInfo,
)
from weft.relax.vm.arena import ArenaPlan
from weft.relax.vm.bytecode import returns_more
from weft.relax.vm.host_body import HostBody
from weft.relax.vm.host_calls import HOST_OPERATORS, call_packed
from weft.relax.vm.host_loops import HostLoop, calls_of_itself
from weft.relax.vm.host_parts import (
    Described,
    HostFunction,
    HostValue,
    LocalFunction,
    NotNative,
    Shape,
    State,
    Step,
)
from weft.relax.vm.host_recursion import call_activation
from weft.tir import op
from weft.tir.buffer import Buffer, BufferLoad
from weft.tir.expr import Var as TirVar
from weft.tir.function import PrimFunc

MAX_INLINE_DEPTH: Final = 64


class HostBuilder(HostBody):
    """Lowers one function. A value is a Buffer, a PrimExpr, a list (tuple) or a ``Shape``.

    A function is a ``LocalFunction``. ``symbols`` says what each symbolic variable is over those of
    the inputs; ``label`` is the name of the graph function, for errors.
    """

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
        host.helpers = [
            activation.func
            for activation in self.state.shared.activations.values()
            if activation.func is not None
        ]
        host.layout = layouts if any(kind != "leaf" for kind, _ in layouts) else None
        return host

    def parameter(
        self, name: str, info: StructInfo | None, where: str
    ) -> tuple[HostValue, Described]:
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

    def returned(self, function: Function) -> HostValue:
        """The value of a function's body, compared with what the function declares."""
        calls = calls_of_itself(self, function)
        if calls:
            result = HostLoop(self, function, calls).lower()
        else:
            result = self.body(function.body)
        if returns_more(function):
            self.symbols.match_cast(function.ret_struct_info, result, "the return value")
        return result

    def body(self, body: RelaxExpr) -> HostValue:
        """Lower bindings; the value of the body."""
        if not isinstance(body, SeqExpr):
            return self.value(body)
        for block in body.blocks:
            for binding in block.bindings:
                self.bind(binding)
        return self.value(body.body)

    def bind(self, binding: Binding) -> None:
        """Lower a binding: its variable gets a value."""
        value = self.value(binding.value, binding.var.name_hint)
        if isinstance(binding, MatchCast):
            what = f"match_cast {binding.var.name_hint}"
            self.symbols.match_cast(binding.struct_info, value, what)
        self.values[id(binding.var)] = value

    def value(self, expr: RelaxExpr, name: str = "t") -> HostValue:
        """Lower an expression."""
        if isinstance(expr, Var):
            value = self.values.get(id(expr))
            if value is None:
                raise NotNative(f"the variable {expr.name_hint} is not a tensor here")
            return value
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

    def branch(self, expr: If, name: str) -> HostValue:
        """An ``if``: both branches end with a copy of their value into its result."""
        result = self.allocated(expr.struct_info, name)
        self.branches(expr, lambda body: self.copy(self.body(body), result))
        return result

    def branches(self, expr: If, lower: Callable[[RelaxExpr], None]) -> None:
        """An ``if`` whose branches ``lower`` lowers."""
        condition = self.value(expr.cond)
        used = [condition] if isinstance(condition, Buffer) else []
        if isinstance(condition, Buffer) and not condition.shape:
            condition = expect(condition[()], BufferLoad)
        if not isinstance(condition, PrimExpr):
            raise NotNative("a condition that is no scalar")
        self.state.branches += 1
        self.state.steps.append(Step(None, self.rooted(used), op.cast("bool", condition), "if"))
        known = dict(self.symbols.known)
        lower(expr.true_branch)
        self.state.steps.append(Step(None, [], None, "else"))
        self.symbols.known = dict(known)
        lower(expr.false_branch)
        self.state.steps.append(Step(None, [], None, "end"))
        self.symbols.known = known
        self.state.branches -= 1

    def call(self, call: Call, name: str) -> HostValue:
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

    def inline(self, target: GlobalVar, call: Call) -> HostValue:
        """A call of another function: a kernel, or a graph function's body in place."""
        function = self.mod[target]
        arguments = [self.value(arg) for arg in call.args]
        if isinstance(function, PrimFunc):
            return self.kernel_call(target, function, arguments)
        return self.enter(self.global_function(target), arguments)

    def enter(self, local: HostValue, given: Sequence[HostValue]) -> HostValue:
        """The value of a function's body, which is expanded here for these arguments."""
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

    def helper(self, function: Function, symbol: str, label: str, depth: PrimExpr) -> HostBuilder:
        """A builder of a PrimFunc beside the host, for a function that calls itself."""
        state = State(self.state.shared, is_helper=True, depth=depth)
        return HostBuilder(self.mod, symbol, function, label, state)
