"""A Relax function as one native host function (design.md 3.9).

The host is a PrimFunc: its parameters are the inputs, the outputs, working memory (``arena``) and
a table of the constants' addresses; its body declares every intermediate tensor at an offset of the
arena and calls kernels and registered functions in order. Code generation compiles it beside the
kernels, so that an inference is one call from Python. Shapes are expressions over symbols of the
inputs, so that the entry does what a match_cast checks before the call. A branch on data writes its
result where the ``if`` as a whole has its own. What cannot be expressed so (objects, closures,
recursion, values of unknown shape) raises ``NotNative`` with the reason, and the function runs as
bytecode.
"""

from __future__ import annotations

from typing import Any, Final

from weft.ir.expr import GlobalVar, IntImm, PrimExpr, StringImm
from weft.ir.functor import substitute
from weft.ir.module import IRModule
from weft.ir.op import Op
from weft.ir.structural import structural_equal
from weft.ir.type import PointerType, PrimType, TupleType
from weft.relax.expr import (
    Call,
    Constant,
    ExternFunc,
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
from weft.relax.lattice import defining_vars, symbolic_vars
from weft.relax.struct_info import (
    PrimStructInfo,
    ShapeStructInfo,
    StructInfo,
    TensorStructInfo,
    TupleStructInfo,
)
from weft.relax.transform.assign_offsets import PLAN
from weft.relax.transform.upper_bound import UpperBounds
from weft.relax.vm.arena import ArenaPlan, TensorLife
from weft.relax.vm.host_parts import (
    HostFunction,
    NotNative,
    Shape,
    ShapeCheck,
    State,
    Step,
    as_tensor,
    bind_symbols,
    identifier,
    implicit_values,
    nested,
)
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
ALLOCATIONS: Final = frozenset({"relax.builtin.alloc_tensor", "relax.memory.alloc_tensor"})
"""Operators that make a tensor; the host places it itself, whatever storage was planned."""
NO_STEPS: Final = frozenset(
    {"relax.memory.alloc_storage", "relax.memory.kill_tensor", "relax.memory.kill_storage"}
)
"""Operators that a planned arena makes needless."""


class HostBuilder:
    """Lowers one function. A value is a Buffer, a PrimExpr, a list (tuple) or a ``Shape``.

    ``symbols`` says what each symbolic variable is over those of the inputs; ``label`` is the name
    of the graph function that is being lowered, for errors.
    """

    def __init__(self, mod: IRModule, name: str, function: Function, label: str = "") -> None:
        self.mod, self.name, self.function = mod, name, function
        self.label = label or name
        self.symbols: dict[TirVar, PrimExpr] = {
            var: var for param in function.params for var in defining_vars(param.struct_info)
        }
        self.state = State()
        self.values: dict[int, Any] = {}
        self.params: list[Any] = []
        self.inlined: list[Function] = []
        self.bounds = UpperBounds(function)

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
        self.symbols.update({extent: extent for extent in found})
        return list(found)

    def tensor(self, name: str, info: TensorStructInfo) -> Buffer:
        """A buffer of a tensor's struct info."""
        values = getattr(info.shape, "values", None)
        if values is None or info.dtype == "void":
            raise NotNative(f"the shape or the dtype of {name} is not known")
        return decl_buffer(self.resolved(values), info.dtype, identifier(name))

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
        kind = "shape"
        if isinstance(value, Buffer) and isinstance(info, TensorStructInfo):
            actual = list(value.shape)
            wanted = None if info.shape is None else getattr(info.shape, "values", ())
            if info.dtype not in (value.dtype, "void"):
                raise NotNative(f"match_cast of {value.dtype} to {info.dtype} always fails")
        elif isinstance(value, Shape) and isinstance(info, ShapeStructInfo):
            actual, wanted = list(value.values), info.values
        elif isinstance(value, PrimExpr) and isinstance(info, PrimStructInfo):
            kind, actual = "prim", [value]
            wanted = None if info.value is None else [info.value]
            if info.dtype != value.dtype or not info.dtype.is_int:
                raise NotNative(f"match_cast of {value.dtype} to {info.dtype}")
        else:
            raise NotNative("match_cast of a value that is no tensor, shape or number")
        rank = len(wanted) if wanted is not None else getattr(info, "ndim", -1)
        if rank not in (-1, len(actual)):
            raise NotNative("match_cast to another number of dimensions always fails")
        if wanted is not None:
            what = f"{self.label}: match_cast {binding.var.name_hint}"
            self.match(kind, list(wanted), actual, what)
        self.values[id(binding.var)] = value

    def match(
        self, kind: str, wanted: list[PrimExpr], actual: list[PrimExpr], what: str
    ) -> None:
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
            if self.state.branches:
                raise NotNative("match_cast in a branch, which may fail only if it is taken")
            self.state.checks.append(ShapeCheck(kind, what, wanted, resolved, actual, known))

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
            return Shape(self.resolved(expr.values))
        if isinstance(expr, SeqExpr):
            return self.body(expr)
        if isinstance(expr, Call):
            return self.call(expr, name)
        if isinstance(expr, If):
            return self.branch(expr, name)
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
        known = dict(self.symbols)
        self.copy(self.body(expr.true_branch), result)
        self.state.steps.append(Step(None, [], None, "else"))
        self.symbols = dict(known)
        self.copy(self.body(expr.false_branch), result)
        self.state.steps.append(Step(None, [], None, "end"))
        self.symbols = known
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
        if target.name == "relax.call_tir_inplace":
            return self.call_tir_inplace(call, name)
        if target.name == "relax.call_dps_packed" and isinstance(call.args[0], ExternFunc):
            return self.call_dps_packed(call, name)
        if target.name in ALLOCATIONS:
            return self.allocated(call.struct_info, name)
        if target.name == "relax.reshape":
            return self.view(self.value(call.args[0]), call.struct_info, name)
        if target.name in NO_STEPS:
            return []
        if target.name == "relax.call_pure_packed" and _is_plan(call):
            count = call.struct_info.ndim  # the host plans itself: offsets do not matter
            return Shape([IntImm(INT64, 0)] * count)
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
        """A call of another graph function: its body with the arguments in place."""
        function = self.mod[target]
        if isinstance(function, PrimFunc):
            return self.kernel_call(target, function, [self.value(arg) for arg in call.args])
        if not isinstance(function, Function):
            raise NotNative(f"a call of {target.name_hint}, which is no function of a graph")
        if any(function is running for running in self.inlined) or (
            len(self.inlined) >= MAX_INLINE_DEPTH
        ):
            raise NotNative(f"{target.name_hint} calls itself")
        arguments = [self.value(arg) for arg in call.args]
        symbols: dict[Any, Any] = {}
        for param, argument in zip(function.params, arguments, strict=True):
            bind_symbols(param.struct_info, argument, symbols)
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
            if isinstance(item, list | Shape):
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
        self.kernel_call(call.args[0], kernel, [*inputs, *outputs, *scalars])
        return result

    def call_tir_inplace(self, call: Call, name: str) -> Any:
        """As ``call_tir``; outputs with an index are that argument, of a constant a copy of it."""
        inputs, info = self.arguments(call.args[1]), call.sinfo_args[0]
        infos = list(info.fields) if isinstance(info, TupleStructInfo) else [info]
        outputs, fresh = [], []
        for place, item in zip(call.attrs["inplace_indices"], infos, strict=True):
            index = int(place)
            if index < 0:
                fresh.append(self.allocated(item, name))
                outputs.append(fresh[-1])
                continue
            root = self.rooted([inputs[index]])[0]
            if any(root is constant for _, constant in self.state.constants):
                inputs[index] = self.copied(inputs[index])
            outputs.append(inputs[index])
        self.kernel_call(call.args[0], self.mod[call.args[0]], [*inputs, *fresh])
        return outputs if isinstance(info, TupleStructInfo) else outputs[0]

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
        if id(value) in inputs:
            return ("input", next(i for i, p in enumerate(params) if p is value))
        if not any(value is temporary for temporary in self.state.temporaries):
            value = self.copied(value)
        if not any(value is output for output in outputs):
            outputs.append(value)
        return ("output", next(i for i, item in enumerate(outputs) if item is value))

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
        """The PrimFunc from the collected steps."""
        body = nested(self.state.steps)
        for view in self.state.views[::-1]:
            body = DeclBuffer(view, body)
        handles: list[Any] = [handle for handle in (plan.arena, plan.table) if handle is not None]
        for buffer, offset in plan.places:
            assert plan.arena is not None
            pointer = TirCall(DataType("handle"), "tir.address_of", [plan.arena[offset]])
            body = LetStmt(buffer.data, pointer, DeclBuffer(buffer, body))
        table = TirVar("constant_table", PointerType(PrimType(DataType("handle")), "global"))
        for index, (_, buffer) in enumerate(self.state.constants):
            pointer = TirCall(DataType("handle"), "tir.table_get", [table, IntImm(INT64, index)])
            body = LetStmt(buffer.data, pointer, DeclBuffer(buffer, body))
        if self.state.constants:
            handles.append(table)
        func = PrimFunc(
            [*params, *outputs, *handles], body, attrs={"global_symbol": self.name}
        )
        constants = [constant for constant, _ in self.state.constants]
        limits = self.bounds.limits
        return HostFunction(
            func, len(params), outputs, result, plan, constants, self.state.checks, limits
        )


def _is_plan(call: Call) -> bool:
    """Whether a call places tensors (AssignOffsets)."""
    callee = call.args[0]
    return isinstance(callee, ExternFunc) and callee.global_symbol == PLAN
