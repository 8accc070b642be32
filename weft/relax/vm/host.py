"""A Relax function as one native host function (design.md 3.9).

The host is a PrimFunc: its parameters are the inputs, the outputs, working memory (``arena``) and
a table of the constants' addresses; its body declares every intermediate tensor at an offset of the
arena and calls kernels and registered functions in order. Code generation compiles it beside the
kernels, so that an inference is one call from Python. Shapes are expressions over symbols of the
inputs, so that the entry does what a match_cast checks before the call. What cannot be expressed so
(objects, branches on data, closures, values of unknown shape) raises ``NotNative`` with the
reason, and the function runs as bytecode.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from weft.ir.expr import GlobalVar, IntImm, PrimExpr, StringImm
from weft.ir.functor import substitute
from weft.ir.module import IRModule
from weft.ir.op import Op
from weft.ir.structural import structural_equal
from weft.ir.type import PointerType, PrimType
from weft.relax.expr import (
    Call,
    Constant,
    ExternFunc,
    Function,
    MatchCast,
    PrimValue,
    SeqExpr,
    ShapeExpr,
    Tuple,
    TupleGetItem,
    Var,
)
from weft.relax.lattice import defining_vars, symbolic_vars
from weft.relax.struct_info import (
    PrimStructInfo,
    ShapeStructInfo,
    StructInfo,
    TensorStructInfo,
    TupleStructInfo,
)
from weft.relax.vm.arena import ArenaPlan, TensorLife
from weft.relax.vm.extents import element_count
from weft.support.dtype import DataType
from weft.tir import op
from weft.tir.buffer import Buffer, decl_buffer
from weft.tir.expr import Call as TirCall
from weft.tir.expr import Var as TirVar
from weft.tir.function import PrimFunc
from weft.tir.stmt import DeclBuffer, Evaluate, LetStmt, Stmt, seq

INT64: Final = DataType("int64")
MAX_INLINE_DEPTH: Final = 64


class NotNative(Exception):  # noqa: N818 - a reason to run as bytecode, not an error
    """The function has no native form; the message says why."""


@dataclass
class ShapeCheck:
    """A match_cast to check before the host runs: its dimensions, over symbols of the inputs."""

    what: str
    wanted: list[PrimExpr]
    """As written."""
    resolved: list[PrimExpr]
    """The same over symbols of the inputs."""
    actual: list[PrimExpr]
    known: dict[TirVar, PrimExpr]
    """What the symbols in ``wanted`` stand for that have a value before."""


@dataclass
class HostFunction:
    """The host PrimFunc, what its outputs are, and which constants its table holds."""

    func: PrimFunc
    inputs: int
    outputs: list[Buffer]
    result: Any
    has_arena: bool
    constants: list[Constant]
    checks: list[ShapeCheck]
    layout: list[Any] | None = None
    """How arguments hold the inputs, where some argument is a tuple or a shape: ``("leaf", i)``,
    ``("same", expr)`` for a number that must equal it, or ``("tuple", layouts)``."""

    @property
    def symbol(self) -> str:
        """The name of the PrimFunc."""
        return str(self.func.attrs["global_symbol"])


@dataclass
class _Step:
    """One call of the body: the statement, and the tensors that it touches."""

    stmt: Stmt
    uses: list[Buffer]


@dataclass
class _State:
    """What lowering collects."""

    steps: list[_Step] = field(default_factory=list)
    temporaries: list[Buffer] = field(default_factory=list)
    constants: list[tuple[Constant, Buffer]] = field(default_factory=list)
    checks: list[ShapeCheck] = field(default_factory=list)


class HostBuilder:
    """Lowers one function. A value is a Buffer, a PrimExpr, a list (tuple) or a ``_Shape``.

    ``symbols`` says what each symbolic variable is over those of the inputs; ``label`` is the name
    of the graph function that is being lowered, for errors.
    """

    def __init__(self, mod: IRModule, name: str, function: Function, label: str = "") -> None:
        self.mod, self.name, self.function = mod, name, function
        self.label = label or name
        self.symbols: dict[TirVar, PrimExpr] = {
            var: var for param in function.params for var in defining_vars(param.struct_info)
        }
        self.state = _State()
        self.values: dict[int, Any] = {}
        self.params: list[Any] = []
        self.inlined: list[Function] = []

    def build(self) -> HostFunction:
        """The host function; raises NotNative."""
        layouts = []
        for index, param in enumerate(self.function.params):
            name = param.name_hint or f"arg{index}"
            self.values[id(param)], layout = self.parameter(name, param.struct_info)
            layouts.append(layout)
        params = self.params
        result = self.body(self.function.body)
        inputs = {id(param) for param in params}
        outputs: list[Buffer] = []
        shape_of_result = self.result(result, inputs, params, outputs)
        chosen = {id(buffer) for buffer in outputs}
        plan = ArenaPlan(self.lives(chosen))
        host = self.assemble(params, outputs, shape_of_result, plan)
        host.layout = layouts if any(kind != "leaf" for kind, _ in layouts) else None
        return host

    def parameter(self, name: str, info: StructInfo | None) -> tuple[Any, Any]:
        """The value of a parameter and its layout; adds what it is natively to ``params``."""
        if isinstance(info, TensorStructInfo):
            if info.shape is None and info.ndim >= 0:
                info = TensorStructInfo(self.extents(name, info.ndim), info.dtype)
            return self.native(self.tensor(name, info))
        if isinstance(info, PrimStructInfo) and info.value is None:
            return self.native(TirVar(name, info.dtype))
        if isinstance(info, PrimStructInfo) and self.is_new(info.value):
            return self.native(info.value)
        if isinstance(info, TupleStructInfo):
            pairs = [
                self.parameter(f"{name}_{index}", field) for index, field in enumerate(info.fields)
            ]
            return [value for value, _ in pairs], ("tuple", [layout for _, layout in pairs])
        if isinstance(info, ShapeStructInfo) and info.ndim >= 0:
            extents = self.extents(name, info.ndim) if info.values is None else list(info.values)
            layouts = [
                self.native(extent)[1] if self.is_new(extent) else ("same", extent)
                for extent in extents
            ]
            return _Shape(extents), ("tuple", layouts)
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
        self.symbols.update({extent: extent for extent in found})
        return list(found)

    def tensor(self, name: str, info: TensorStructInfo) -> Buffer:
        """A buffer of a tensor's struct info."""
        values = getattr(info.shape, "values", None)
        if values is None or info.dtype == "void":
            raise NotNative(f"the shape or the dtype of {name} is not known")
        return decl_buffer(self.resolved(values), info.dtype, _identifier(name))

    def resolved(self, values: Any) -> list[PrimExpr]:
        """Expressions with every symbol replaced by what it is over those of the inputs."""
        return [substitute(value, self.symbols) for value in values]

    # Bodies.

    def body(self, body: Any) -> Any:
        """Lower bindings; the value of the body."""
        if not isinstance(body, SeqExpr):
            return self.value(body)
        for block in body.blocks:
            for binding in block.bindings:
                if isinstance(binding, MatchCast):
                    self.match_cast(binding)
                else:
                    name = binding.var.name_hint
                    self.values[id(binding.var)] = self.value(binding.value, name)
        return self.value(body.body)

    def match_cast(self, binding: MatchCast) -> None:
        """Shapes are known over the symbols of the inputs, so that the entry checks them."""
        value = self.value(binding.value)
        info = binding.struct_info
        if isinstance(value, Buffer) and isinstance(info, TensorStructInfo):
            actual = list(value.shape)
            wanted = None if info.shape is None else getattr(info.shape, "values", ())
            if info.dtype not in (value.dtype, "void"):
                raise NotNative(f"match_cast of {value.dtype} to {info.dtype} always fails")
        elif isinstance(value, _Shape) and isinstance(info, ShapeStructInfo):
            actual, wanted = list(value.values), info.values
        else:
            raise NotNative("match_cast of a value that is neither a tensor nor a shape")
        if (info.ndim if wanted is None else len(wanted)) not in (-1, len(actual)):
            raise NotNative("match_cast to another number of dimensions always fails")
        if wanted is not None:
            self.match(list(wanted), actual, f"{self.label}: match_cast {binding.var.name_hint}")
        self.values[id(binding.var)] = value

    def match(self, wanted: list[PrimExpr], actual: list[PrimExpr], what: str) -> None:
        """Give new symbols their values; what is left to compare becomes a check."""
        used = symbolic_vars(wanted)
        known = {var: self.symbols[var] for var in used if var in self.symbols}
        for mine, its in zip(wanted, actual, strict=True):
            if isinstance(mine, TirVar):
                self.symbols.setdefault(mine, its)
        if any(var not in self.symbols for var in used):
            raise NotNative("match_cast to an expression over a symbol without a value")
        resolved = self.resolved(wanted)
        pairs = zip(resolved, actual, strict=True)
        if not all(structural_equal(mine, its) for mine, its in pairs):
            self.state.checks.append(ShapeCheck(what, wanted, resolved, actual, known))

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
            return substitute(expr.value, self.symbols)
        if isinstance(expr, ShapeExpr):
            return _Shape(self.resolved(expr.values))
        if isinstance(expr, SeqExpr):
            return self.body(expr)
        if isinstance(expr, Call):
            return self.call(expr, name)
        raise NotNative(f"{type(expr).__name__} runs as bytecode")

    def constant(self, constant: Constant) -> Buffer:
        """The buffer over a constant; the same data once."""
        for known, buffer in self.state.constants:
            if known.data is constant.data:
                return buffer
        shape = [IntImm(INT64, extent) for extent in constant.data.shape]
        buffer = decl_buffer(shape, constant.data.dtype, f"const{len(self.state.constants)}")
        self.state.constants.append((constant, buffer))
        return buffer

    # Calls.

    def call(self, call: Call, name: str) -> Any:
        """Lower a call."""
        target = call.op
        if isinstance(target, GlobalVar):
            return self.inline(target, call)
        if not isinstance(target, Op):
            raise NotNative("a call of an object or of a function that returns one")
        if target.name == "relax.call_tir":
            return self.call_tir(call, name)
        if target.name == "relax.call_dps_packed" and isinstance(call.args[0], ExternFunc):
            return self.call_dps_packed(call, name)
        if target.name == "relax.builtin.alloc_tensor":
            return self.allocated(call.struct_info, name)
        raise NotNative(f"{target.name} runs as bytecode")

    def inline(self, target: GlobalVar, call: Call) -> Any:
        """A call of another graph function: its body with the arguments in place."""
        function = self.mod[target]
        if not isinstance(function, Function):
            raise NotNative(f"a direct call of the kernel {target.name_hint}")
        if any(function is running for running in self.inlined) or (
            len(self.inlined) >= MAX_INLINE_DEPTH
        ):
            raise NotNative(f"{target.name_hint} calls itself")
        arguments = [self.value(arg) for arg in call.args]
        symbols: dict[Any, Any] = {}
        for param, argument in zip(function.params, arguments, strict=True):
            _bind_symbols(param.struct_info, argument, symbols)
        if any(value is not var for var, value in symbols.items()):
            raise NotNative(f"{target.name_hint} is called with other symbolic shapes")
        outer, outer_symbols = dict(self.values), dict(self.symbols)
        outer_label, self.label = self.label, target.name_hint
        for param, argument in zip(function.params, arguments, strict=True):
            self.values[id(param)] = argument
        self.inlined.append(function)
        result = self.body(function.body)
        self.inlined.pop()
        self.values, self.symbols, self.label = outer, outer_symbols, outer_label
        return result

    def allocated(self, info: StructInfo | None, name: str) -> Any:
        """New tensors for a struct info."""
        if isinstance(info, TupleStructInfo):
            return [self.allocated(item, f"{name}_{i}") for i, item in enumerate(info.fields)]
        if not isinstance(info, TensorStructInfo):
            raise NotNative("an output that is no tensor")
        buffer = self.tensor(name, info)
        self.state.temporaries.append(buffer)
        return buffer

    def arguments(self, args: Any) -> list[Any]:
        """The arguments of a destination-passing call."""
        value = self.value(args)
        values = value if isinstance(value, list) else [value]
        for item in values:
            if isinstance(item, list | _Shape):
                raise NotNative("a tuple or a shape as an argument of a kernel")
        return values

    def call_tir(self, call: Call, name: str) -> Any:
        """Call a kernel: inputs, outputs, scalars, then its implicit symbols."""
        kernel = self.mod[call.args[0]]
        if not isinstance(kernel, PrimFunc):
            raise NotNative(f"call_tir of {call.args[0].name_hint}, which is no PrimFunc")
        inputs = self.arguments(call.args[1])
        result = self.allocated(call.sinfo_args[0], name)
        outputs = result if isinstance(result, list) else [result]
        scalars = self.resolved(call.args[2].values) if len(call.args) > 2 else []
        passed = [*inputs, *outputs, *scalars]
        if len(passed) != len(kernel.params):
            raise NotNative(f"{call.args[0].name_hint} takes {len(kernel.params)} arguments")
        extra = implicit_values(kernel, passed)
        symbol = str(kernel.attrs.get("global_symbol", call.args[0].name_hint))
        stmt = Evaluate(TirCall(DataType("int32"), GlobalVar(symbol), [*passed, *extra]))
        self.step(stmt, passed)
        return result

    def call_dps_packed(self, call: Call, name: str) -> Any:
        """Call a registered function on inputs and outputs."""
        inputs = self.arguments(call.args[1])
        result = self.allocated(call.sinfo_args[0], name)
        outputs = result if isinstance(result, list) else [result]
        symbol = StringImm(call.args[0].global_symbol)
        passed = [*inputs, *outputs]
        callee = Op.get("tir.tvm_call_packed")
        arguments = [as_tensor(value) if isinstance(value, Buffer) else value for value in passed]
        self.step(Evaluate(TirCall(DataType("handle"), callee, [symbol, *arguments])), passed)
        return result

    def step(self, stmt: Stmt, passed: list[Any]) -> None:
        """Add a statement to the body."""
        used = [value for value in passed if isinstance(value, Buffer)]
        self.state.steps.append(_Step(stmt, used))

    # The whole.

    def result(
        self, value: Any, inputs: set[int], params: list[Any], outputs: list[Buffer]
    ) -> Any:
        """Describe the result; tensors that are computed become outputs."""
        if isinstance(value, list):
            return ("tuple", [self.result(item, inputs, params, outputs) for item in value])
        if isinstance(value, _Shape):
            return ("shape", list(value.values))
        if isinstance(value, PrimExpr):
            return ("expr", value)
        if id(value) in inputs:
            return ("input", next(i for i, p in enumerate(params) if p is value))
        if not any(value is temporary for temporary in self.state.temporaries):
            raise NotNative("a constant is returned")
        if not any(value is output for output in outputs):
            outputs.append(value)
        return ("output", next(i for i, item in enumerate(outputs) if item is value))

    def lives(self, outputs: set[int]) -> list[TensorLife]:
        """First and last step of every temporary that is not an output."""
        first: dict[int, int] = {}
        last: dict[int, int] = {}
        for position, step in enumerate(self.state.steps):
            for buffer in step.uses:
                first.setdefault(id(buffer), position)
                last[id(buffer)] = position
        return [
            TensorLife(buffer, _size_bytes(buffer), first[id(buffer)], last[id(buffer)])
            for buffer in self.state.temporaries
            if id(buffer) not in outputs and id(buffer) in first
        ]

    def assemble(
        self, params: list[Any], outputs: list[Buffer], result: Any, plan: ArenaPlan
    ) -> HostFunction:
        """The PrimFunc from the collected steps."""
        body = seq(*[step.stmt for step in self.state.steps])
        handles: list[Any] = []
        arena = decl_buffer([plan.size], "uint8", "arena")
        for life, offset in plan.offsets:
            pointer = TirCall(DataType("handle"), "tir.address_of", [arena[offset]])
            body = LetStmt(life.buffer.data, pointer, DeclBuffer(life.buffer, body))
        table = TirVar("constant_table", PointerType(PrimType(DataType("handle")), "global"))
        for index, (_, buffer) in enumerate(self.state.constants):
            pointer = TirCall(DataType("handle"), "tir.table_get", [table, IntImm(INT64, index)])
            body = LetStmt(buffer.data, pointer, DeclBuffer(buffer, body))
        has_arena = bool(plan.offsets)
        if has_arena:
            handles.append(arena)
        if self.state.constants:
            handles.append(table)
        func = PrimFunc(
            [*params, *outputs, *handles], body, attrs={"global_symbol": self.name}
        )
        constants = [constant for constant, _ in self.state.constants]
        checks = self.state.checks
        return HostFunction(func, len(params), outputs, result, has_arena, constants, checks)


class _Shape:
    """A shape value."""

    def __init__(self, values: list[PrimExpr]) -> None:
        self.values = values


def as_tensor(buffer: Buffer) -> TirCall:
    """The buffer as a tensor argument that keeps its shape when buffers are flattened."""
    handle = DataType("handle")
    shape = TirCall(handle, Op.get("tir.tvm_stack_make_shape"), list(buffer.shape))
    rank = IntImm(DataType("int32"), len(buffer.shape))
    offset = buffer.elem_offset if buffer.elem_offset is not None else IntImm(INT64, 0)
    strides = IntImm(DataType("int32"), 0)  # none: compact
    arguments = [buffer.data, shape, strides, rank, op.const(0, buffer.dtype), offset]
    return TirCall(handle, Op.get("tir.tvm_stack_make_array"), arguments)


def _identifier(name: str) -> str:
    return "".join(letter if letter.isalnum() else "_" for letter in name) or "t"


def _size_bytes(buffer: Buffer) -> PrimExpr:
    return op.multiply(element_count(buffer.shape), IntImm(INT64, buffer.dtype.itemsize))


def _bind_symbols(info: Any, argument: Any, symbols: dict[Any, Any]) -> None:
    """Which symbols of a callee's parameter stand for what in the caller."""
    if isinstance(info, TensorStructInfo) and isinstance(argument, Buffer):
        for mine, its in zip(getattr(info.shape, "values", ()) or (), argument.shape, strict=False):
            if isinstance(mine, TirVar):
                symbols[mine] = its
    elif isinstance(info, PrimStructInfo) and isinstance(info.value, TirVar):
        symbols[info.value] = argument
    elif isinstance(info, ShapeStructInfo):
        raise NotNative("a shape as an argument of a function")


def implicit_values(kernel: PrimFunc, passed: list[Any]) -> list[PrimExpr]:
    """The values of a kernel's implicit symbols for these arguments, in signature order."""
    from_scalars = {
        id(param): value
        for param, value in zip(kernel.params, passed, strict=True)
        if param not in kernel.buffer_map
    }
    values: dict[int, PrimExpr] = {}
    order: list[TirVar] = []
    for param, argument in zip(kernel.params, passed, strict=True):
        buffer = kernel.buffer_map.get(param)
        if buffer is None:
            continue
        for mine, its in zip(buffer.shape, argument.shape, strict=True):
            _order_symbols(mine, from_scalars, order)
            if isinstance(mine, TirVar) and id(mine) not in from_scalars:
                values.setdefault(id(mine), its)
    missing = [var.name for var in order if id(var) not in values]
    if missing:
        raise NotNative(f"the symbols {', '.join(missing)} of a kernel follow from no argument")
    return [op.cast(INT64, values[id(var)]) for var in order]


def _order_symbols(expr: PrimExpr, scalars: dict[int, Any], order: list[TirVar]) -> None:
    """Append the symbols of an extent in the order in which the signature lists them."""
    if isinstance(expr, TirVar):
        if id(expr) not in scalars and all(expr is not known for known in order):
            order.append(expr)
        return
    for name in expr.CHILDREN:
        child = getattr(expr, name)
        for item in child if isinstance(child, tuple) else (child,):
            if isinstance(item, PrimExpr):
                _order_symbols(item, scalars, order)


