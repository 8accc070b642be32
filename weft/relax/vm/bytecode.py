"""Relax functions to bytecode (weft.runtime.bytecode): one register a variable, in order.

Needs functions in normal form whose operators are legalised. Local functions become VM functions
of their own with the values they capture as trailing parameters.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from weft.ir.expr import GlobalVar, IntImm, RelaxExpr
from weft.ir.functor import Visitor
from weft.ir.module import IRModule
from weft.ir.op import Op
from weft.relax.analysis.variables import defined_symbolic_vars, free_symbolic_vars
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
from weft.relax.struct_info import TensorStructInfo, TupleStructInfo
from weft.relax.vm.extents import Symbols
from weft.runtime.bytecode import Instruction, Operand, Program, VMFunction
from weft.support.errors import LegalizeError, UnsupportedError
from weft.tir.expr import Var as TirVar
from weft.tir.function import PrimFunc

MAX_NESTED: Final = 32


class ProgramBuilder:
    """Lowers the Relax functions of a module into one Program."""

    def __init__(self, mod: IRModule) -> None:
        self.mod = mod
        self.program = Program()
        self._constants: dict[int, int] = {}
        self._kept: list[Constant] = []

    def constant(self, constant: Constant) -> int:
        """The index of a constant; the same array is stored once."""
        key = id(constant.data)
        if key not in self._constants:
            self._constants[key] = len(self.program.constants)
            self.program.constants.append(constant.data)
            self._kept.append(constant)
        return self._constants[key]

    def add(self, name: str, function: Function) -> None:
        """Lower one function under a name."""
        self.program.functions[name] = FunctionBuilder(self, name, function, ()).build()


class FunctionBuilder:
    """Lowers one function: ``code`` grows, ``registers`` maps variables to their numbers."""

    def __init__(
        self, owner: ProgramBuilder, name: str, function: Function, captured: tuple[Var, ...],
        symbols: tuple[TirVar, ...] = (),
    ) -> None:  # fmt: skip
        self.owner, self.name, self.function = owner, name, function
        self.symbols = Symbols()
        self.code: list[Instruction] = []
        self.registers: dict[int, int] = {}
        self.count = 0
        self.params = (*function.params, *captured)
        self.outer_symbols = symbols
        self.recursive: tuple[Var, tuple[Var, ...]] | None = None

    def build(self) -> VMFunction:
        """The lowered function."""
        params = []
        for param in self.params:
            self.registers[id(param)] = self.new_register()
            params.append((param.name_hint, self.symbols.pattern(param.struct_info)))
        for var in self.outer_symbols:
            self.new_register()
            name = self.symbols.name(var)
            params.append((name, ("prim", str(var.dtype), name)))
        result = self.sequence(self.function.body)
        self.code.append(("ret", result))
        return VMFunction(self.name, tuple(params), tuple(self.code), self.count)

    def new_register(self) -> int:
        """A fresh register."""
        self.count += 1
        return self.count - 1

    def sequence(self, body: Any) -> Operand:
        """Lower the blocks of a body; the operand of its value."""
        if not isinstance(body, SeqExpr):
            return self.value(body)
        for block in body.blocks:
            for binding in block.bindings:
                self.binding(binding)
        return self.value(body.body)

    def binding(self, binding: Any) -> None:
        """Lower one binding into the register of its variable."""
        register = self.new_register()
        if isinstance(binding, MatchCast):
            self.builtin(register, "identity", self.value(binding.value))
            what = f"{self.name}: match_cast {binding.var.name_hint}"
            self.code.append(
                ("match", register, self.symbols.pattern(binding.struct_info), what)
            )  # fmt: skip
        elif isinstance(binding.value, If):
            self.branch(binding.value, register)
        elif isinstance(binding.value, Function):
            self.registers[id(binding.var)] = register
            self.closure(binding.value, register, binding.var)
        else:
            self.assign(register, binding.value)
        self.registers[id(binding.var)] = register

    def assign(self, register: int, expr: Any) -> None:
        """Put the value of an expression into a register."""
        if isinstance(expr, Call):
            self.call(expr, register)
        elif isinstance(expr, SeqExpr):
            self.builtin(register, "identity", self.sequence(expr))
        else:
            self.builtin(register, "identity", self.value(expr))

    def builtin(self, register: int, name: str, *operands: Operand) -> None:
        """Emit a call of a builtin."""
        self.code.append(("call", register, ("builtin", name), tuple(operands)))

    def branch(self, expr: If, register: int) -> None:
        """Lower an ``if``: both branches end in the same register."""
        condition = self.value(expr.cond)
        start = len(self.code)
        self.code.append(("if", condition, 0))
        known = dict(self.registers)
        self.builtin(register, "identity", self.sequence(expr.true_branch))
        middle = len(self.code)
        self.code.append(("goto", 0))
        self.registers = dict(known)
        self.builtin(register, "identity", self.sequence(expr.false_branch))
        self.registers = known
        self.code[start] = ("if", condition, middle - start)
        self.code[middle] = ("goto", len(self.code) - middle - 1)

    def closure(self, function: Function, register: int, var: Var) -> None:
        """Lower a local function; it captures the variables and symbols of this one in it."""
        name = f"{self.name}.{var.name_hint}"
        captured = _captured(function, self.registers)
        recursive = tuple(item for item in captured if item is var)
        outer = tuple(item for item in captured if item is not var)
        used = (*defined_symbolic_vars(function), *free_symbolic_vars(function))
        symbols = tuple([symbol for symbol in used if id(symbol) in self.symbols.names])
        lowered = FunctionBuilder(self.owner, name, function, outer, symbols)
        if recursive:
            lowered.recursive = (var, outer)
        self.owner.program.functions[name] = lowered.build()
        operands = [self.value(item) for item in outer]
        operands += [("expr", self.symbols.name(symbol)) for symbol in symbols]
        self.builtin(register, "make_closure", ("value", name), *operands)

    def value(self, expr: Any) -> Operand:
        """The operand of a leaf expression (others get a register)."""
        lower = _LEAVES.get(type(expr).__name__)
        if lower is not None:
            return lower(self, expr)
        register = self.new_register()
        self.assign(register, expr)
        return ("reg", register)

    def variable(self, var: Var) -> Operand:
        """The register of a variable."""
        register = self.registers.get(id(var))
        if register is None:
            if self.recursive is not None and var is self.recursive[0]:
                made = self.new_register()
                captured = [self.value(item) for item in self.recursive[1]]
                captured += [("expr", self.symbols.name(item)) for item in self.outer_symbols]
                self.builtin(made, "make_closure", ("value", self.name), *captured)
                return ("reg", made)
            raise UnsupportedError(f"{self.name}: the variable {var.name_hint} is not bound here")
        return ("reg", register)

    def global_value(self, var: GlobalVar) -> Operand:
        """A function of the module as a value."""
        register = self.new_register()
        self.builtin(register, "make_closure", ("value", var.name_hint))
        return ("reg", register)

    def call(self, call: Call, register: int) -> None:
        """Lower a call into a register."""
        target = call.op
        if isinstance(target, Op):
            lower = _OPERATORS.get(target.name)
            if lower is None:
                raise LegalizeError(
                    f"{self.name}: {target.name} has no lowering here; run "
                    "relax.transform.LegalizeOps first, or register a legalisation for it"
                )
            lower(self, call, register)
            return
        if isinstance(target, ExternFunc) and target.global_symbol in _MACHINE_FUNCTIONS:
            _MACHINE_FUNCTIONS[target.global_symbol](self, call.args, register)
            return
        operands = tuple([self.value(arg) for arg in call.args])
        if isinstance(target, GlobalVar):
            kind = "kernel" if isinstance(self.owner.mod[target], PrimFunc) else "function"
            callee: tuple[str, Any] = (kind, target.name_hint)
        elif isinstance(target, ExternFunc):
            callee = ("packed", target.global_symbol)
        else:
            callee = ("register", self.value(target)[1])
        self.code.append(("call", register, callee, operands))
        self.checked(register, call, isinstance(target, ExternFunc))

    def checked(self, register: int, call: Call, foreign: bool) -> None:
        """Check what a foreign function returned against the declared struct info."""
        if foreign and call.op.global_symbol.startswith("vm.builtin."):
            return  # the machine's own
        if foreign and call.sinfo_args and len(call.sinfo_args) == 1:
            what = f"{self.name}: the result of {call.op.global_symbol}"
            self.code.append(("match", register, self.symbols.pattern(call.sinfo_args[0]), what))

    def destinations(self, call: Call) -> tuple[list[Operand], Operand]:
        """Allocate the outputs of a destination-passing call; their operands, the result's."""
        info = call.sinfo_args[0]
        infos = list(info.fields) if isinstance(info, TupleStructInfo) else [info]
        outputs: list[Operand] = []
        for item in infos:
            outputs.append(self.allocated(item))
        if isinstance(info, TupleStructInfo):
            return outputs, ("tuple", tuple(outputs))
        return outputs, outputs[0]

    def allocated(self, info: Any) -> Operand:
        """A new tensor of a struct info with a known shape."""
        if not isinstance(info, TensorStructInfo) or info.shape is None:
            raise UnsupportedError(
                f"{self.name}: the output of a destination-passing call needs a known shape, "
                f"got {info}"
            )
        shape = self.shape_operand(info.shape)
        register = self.new_register()
        self.builtin(register, "alloc_tensor", shape, ("value", str(info.dtype)))
        return ("reg", register)

    def shape_operand(self, shape: RelaxExpr) -> Operand:
        """The operand of a shape: extents, or a variable that holds one."""
        if isinstance(shape, ShapeExpr):
            return ("shape", self.symbols.extents(shape.values))
        return self.value(shape)


def _captured(function: Function, registers: dict[int, int]) -> list[Var]:
    finder = _Uses(registers)
    finder.visit(function.body)
    return finder.found


class _Uses(Visitor):
    def __init__(self, registers: dict[int, int]) -> None:
        self.registers = registers
        self.found: list[Var] = []

    def visit_RelaxVar(self, var: Var) -> None:
        if id(var) in self.registers and not any(var is known for known in self.found):
            self.found.append(var)


def _call_tir(builder: FunctionBuilder, call: Call, register: int) -> None:
    """``call_tir(kernel, args, tir_vars)``: outputs are allocated and passed last."""
    arguments = _arguments(builder, call.args[1])
    outputs, result = builder.destinations(call)
    scalars: list[Operand] = []
    if len(call.args) > 2:
        extents = builder.symbols.extents(call.args[2].values)
        scalars = [
            ("expr", extent) if isinstance(extent, str) else ("value", extent) for extent in extents
        ]
    callee = ("kernel", call.args[0].name_hint)
    builder.code.append(("call", -1, callee, (*arguments, *outputs, *scalars)))
    builder.builtin(register, "identity", result)


def _call_tir_inplace(builder: FunctionBuilder, call: Call, register: int) -> None:
    """Outputs named by ``inplace_indices`` are the arguments themselves; -1: a new tensor.

    A constant of the model is not written: the kernel gets a copy of it.
    """
    arguments = list(_arguments(builder, call.args[1]))
    info = call.sinfo_args[0]
    infos = list(info.fields) if isinstance(info, TupleStructInfo) else [info]
    results, extra = [], []
    for index, item in zip(call.attrs["inplace_indices"], infos, strict=True):
        position = index.value if isinstance(index, IntImm) else int(index)
        if position < 0:
            output = builder.allocated(item)
        else:
            owned = builder.new_register()
            builder.builtin(owned, "detach", arguments[position])
            output = arguments[position] = ("reg", owned)
        results.append(output)
        if position < 0:
            extra.append(output)
    callee = ("kernel", call.args[0].name_hint)
    builder.code.append(("call", -1, callee, (*arguments, *extra)))
    result = ("tuple", tuple(results)) if isinstance(info, TupleStructInfo) else results[0]
    builder.builtin(register, "identity", result)


def _call_dps_packed(builder: FunctionBuilder, call: Call, register: int) -> None:
    """A registered function in destination-passing style."""
    arguments = _arguments(builder, call.args[1])
    outputs, result = builder.destinations(call)
    callee = _foreign(builder, call.args[0])
    builder.code.append(("call", -1, callee, (*arguments, *outputs)))
    builder.builtin(register, "identity", result)


def _foreign(builder: FunctionBuilder, target: Any) -> tuple[str, Any]:
    if isinstance(target, ExternFunc):
        return ("packed", target.global_symbol)
    if isinstance(target, GlobalVar):
        kind = "kernel" if isinstance(builder.owner.mod[target], PrimFunc) else "function"
        return (kind, target.name_hint)
    return ("register", builder.value(target)[1])


def _arguments(builder: FunctionBuilder, args: RelaxExpr) -> list[Operand]:
    """The operands of the argument tuple of a destination-passing call."""
    if isinstance(args, Tuple):
        return [builder.value(field) for field in args.fields]
    info = args.struct_info
    if not isinstance(info, TupleStructInfo):
        return [builder.value(args)]
    base, operands = builder.value(args), []
    for index in range(len(info.fields)):
        register = builder.new_register()
        builder.builtin(register, "tuple_getitem", base, ("value", index))
        operands.append(("reg", register))
    return operands


def _pure_packed(builder: FunctionBuilder, call: Call, register: int) -> None:
    """``call_pure_packed(function, args...)``."""
    operands = tuple([builder.value(arg) for arg in call.args[1:]])
    builder.code.append(("call", register, _foreign(builder, call.args[0]), operands))
    if call.sinfo_args and len(call.sinfo_args) == 1:
        what = f"{builder.name}: the result of {builder.code[-1][2][1]}"
        pattern = builder.symbols.pattern(call.sinfo_args[0])
        builder.code.append(("match", register, pattern, what))


def _invoke_closure(builder: FunctionBuilder, call: Call, register: int) -> None:
    """``invoke_closure(closure, (args...))``."""
    operands = tuple(_arguments(builder, call.args[1]))
    callee = ("register", builder.value(call.args[0])[1])
    builder.code.append(("call", register, callee, operands))


def _make_closure(builder: FunctionBuilder, call: Call, register: int) -> None:
    """``make_closure(function, (captured...))``."""
    captured = _arguments(builder, call.args[1])
    name = call.args[0].name_hint
    builder.builtin(register, "make_closure", ("value", name), *captured)


def _alloc_tensor(builder: FunctionBuilder, call: Call, register: int) -> None:
    """``builtin.alloc_tensor(shape, dtype, ...)``."""
    shape = builder.shape_operand(call.args[0])
    dtype = call.args[1].value if len(call.args) > 1 else call.attrs.get("dtype")
    builder.builtin(register, "alloc_tensor", shape, ("value", str(dtype)))


def _library(name: str) -> Callable[[FunctionBuilder, Call, int], None]:
    """A function of weft.runtime.vm_library on the same arguments."""

    def lower(builder: FunctionBuilder, call: Call, register: int) -> None:
        operands = tuple([builder.value(arg) for arg in call.args])
        builder.code.append(("call", register, ("packed", f"vm.builtin.{name}"), operands))

    return lower


def _kill(builder: FunctionBuilder, call: Call, register: int) -> None:
    """Nothing: the machine lets go of every register after its last use."""


def _with_context(builder: FunctionBuilder, call: Call, register: int) -> None:
    """``call_builtin_with_ctx(function, (args...))``: what the machine does with its own state."""
    name = call.args[0].global_symbol
    lower = _MACHINE_FUNCTIONS.get(name)
    if lower is None:
        raise UnsupportedError(
            f"{builder.name}: call_builtin_with_ctx of {name}; there are "
            f"{', '.join(sorted(_MACHINE_FUNCTIONS))}"
        )
    lower(builder, call.args[1].fields, register)


def _machine_closure(builder: FunctionBuilder, args: Any, register: int) -> None:
    captured = [builder.value(arg) for arg in args[1:]]
    builder.builtin(register, "make_closure", ("value", args[0].name_hint), *captured)


def _machine_invoke(builder: FunctionBuilder, args: Any, register: int) -> None:
    operands = tuple([builder.value(arg) for arg in args[1:]])
    callee = ("register", builder.value(args[0])[1])
    builder.code.append(("call", register, callee, operands))


def _machine_heap(builder: FunctionBuilder, args: Any, register: int) -> None:
    builder.builtin(register, "alloc_shape_heap", builder.value(args[0]))


def _machine_call_tir_dyn(builder: FunctionBuilder, args: Any, register: int) -> None:
    operands = [builder.value(arg) for arg in args[1:]]
    builder.builtin(register, "call_tir_dyn", ("value", args[0].name_hint), *operands)


def _call_tir_dyn(builder: FunctionBuilder, call: Call, register: int) -> None:
    """``vm.call_tir_dyn(kernel, (args..., shape))``: the extents of the shape are scalars."""
    _machine_call_tir_dyn(builder, [call.args[0], *call.args[1].fields], register)


_MACHINE_FUNCTIONS: Final[dict[str, Callable[[FunctionBuilder, Any, int], None]]] = {
    "vm.builtin.alloc_shape_heap": _machine_heap,
    "vm.builtin.call_tir_dyn": _machine_call_tir_dyn,
    "vm.builtin.invoke_closure": _machine_invoke,
    "vm.builtin.make_closure": _machine_closure,
}
"""Library functions that need the machine: its functions, its kernels."""


def _plain(name: str) -> Callable[[FunctionBuilder, Call, int], None]:
    def lower(builder: FunctionBuilder, call: Call, register: int) -> None:
        builder.builtin(register, name, *[builder.value(arg) for arg in call.args])

    return lower


def _assert(builder: FunctionBuilder, call: Call, register: int) -> None:
    operands = [builder.value(arg) for arg in call.args]
    if "format" in call.attrs:
        operands.insert(1, ("value", str(call.attrs["format"])))
    builder.builtin(register, "assert_op", *operands)


def _print(builder: FunctionBuilder, call: Call, register: int) -> None:
    operands = [builder.value(arg) for arg in call.args]
    if "format" in call.attrs:
        operands.insert(0, ("value", str(call.attrs["format"])))
    builder.builtin(register, "print", *operands)


_OPERATORS: Final[dict[str, Callable[[FunctionBuilder, Call, int], None]]] = {
    "relax.call_tir": _call_tir,
    "relax.call_tir_with_grad": _call_tir,
    "relax.call_tir_inplace": _call_tir_inplace,
    "relax.call_dps_packed": _call_dps_packed,
    "relax.call_pure_packed": _pure_packed,
    "relax.call_inplace_packed": _pure_packed,
    "relax.invoke_closure": _invoke_closure,
    "relax.invoke_pure_closure": _invoke_closure,
    "relax.make_closure": _make_closure,
    "relax.builtin.alloc_tensor": _alloc_tensor,
    "relax.shape_of": _plain("shape_of"),
    "relax.tensor_to_shape": _plain("tensor_to_shape"),
    "relax.shape_to_tensor": _plain("shape_to_tensor"),
    "relax.null_value": _plain("null_value"),
    "relax.print": _print,
    "relax.assert_op": _assert,
    "relax.call_builtin_with_ctx": _with_context,
    "relax.memory.alloc_storage": _library("alloc_storage"),
    "relax.memory.alloc_tensor": _library("alloc_tensor"),
    "relax.memory.ensure_zero_offset": _library("ensure_zero_offset"),
    "relax.memory.kill_storage": _kill,
    "relax.memory.kill_tensor": _kill,
    "relax.memory.view": _library("view"),
    "relax.reshape": _library("reshape"),
    "relax.vm.alloc_storage": _library("alloc_storage"),
    "relax.vm.alloc_tensor": _library("alloc_tensor"),
    "relax.vm.call_tir_dyn": _call_tir_dyn,
    "relax.vm.kill_object": _kill,
}


def _prim_value(builder: FunctionBuilder, expr: PrimValue) -> Operand:
    if expr.value.dtype.is_integral and not isinstance(expr.value, IntImm):
        return ("expr", builder.symbols.text(expr.value))
    literal: Any = expr.value
    return ("value", bool(literal.value) if literal.dtype.is_bool else literal.value)


def _tuple(builder: FunctionBuilder, expr: Tuple) -> Operand:
    """A tuple; one nested deep goes to a register on the way, for operands are walked in calls."""
    operand = ("tuple", tuple([builder.value(item) for item in expr.fields]))
    if _depth(operand) < MAX_NESTED:
        return operand
    register = builder.new_register()
    builder.builtin(register, "identity", operand)
    return ("reg", register)


def _depth(operand: Operand) -> int:
    if operand[0] != "tuple":
        return 0
    return 1 + max([_depth(item) for item in operand[1]], default=0)


def _tuple_item(builder: FunctionBuilder, expr: TupleGetItem) -> Operand:
    register = builder.new_register()
    base = builder.value(expr.tuple_value)
    builder.builtin(register, "tuple_getitem", base, ("value", expr.index))
    return ("reg", register)


_LEAVES: Final[dict[str, Callable[[FunctionBuilder, Any], Operand]]] = {
    "Var": FunctionBuilder.variable,
    "DataflowVar": FunctionBuilder.variable,
    "GlobalVar": FunctionBuilder.global_value,
    "Constant": lambda builder, expr: ("const", builder.owner.constant(expr)),
    "ShapeExpr": lambda builder, expr: ("shape", builder.symbols.extents(expr.values)),
    "PrimValue": _prim_value,
    "StringImm": lambda builder, expr: ("value", expr.value),
    "DataTypeImm": lambda builder, expr: ("value", str(expr.value)),
    "Tuple": _tuple,
    "TupleGetItem": _tuple_item,
    "ExternFunc": lambda builder, expr: ("value", expr.global_symbol),
}

