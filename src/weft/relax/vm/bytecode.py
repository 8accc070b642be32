"""Relax functions to bytecode (weft.runtime.vm.bytecode): one register a variable, in order.

Needs functions in normal form whose operators are legalised. Local functions become VM functions
of their own with the values they capture as trailing parameters.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from weft.ir.expr import FloatImm, GlobalVar, IntImm, RelaxExpr
from weft.ir.functor import Visitor
from weft.ir.module import IRModule
from weft.ir.node import expect
from weft.ir.op import Op
from weft.relax.analysis.tail_calls import tail_calls
from weft.relax.analysis.variables import defined_symbolic_vars, free_symbolic_vars
from weft.relax.expr import (
    Binding,
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
from weft.relax.ir.lattice import struct_info_is_base_of
from weft.relax.struct_info import StructInfo, TensorStructInfo, TupleStructInfo
from weft.relax.transform.memory.upper_bound import UpperBounds
from weft.relax.vm.bytecode_calls import MACHINE_FUNCTIONS, OPERATORS
from weft.relax.vm.copies import without_copies
from weft.relax.vm.extents import Symbols
from weft.relax.vm.operator_calls import call_operator, waits_for_shapes
from weft.runtime.vm.bytecode import Instruction, Operand, Program, VMFunction
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
        self,
        owner: ProgramBuilder,
        name: str,
        function: Function,
        captured: tuple[Var, ...],
        symbols: tuple[TirVar, ...] = (),
    ) -> None:
        self.owner, self.mod, self.name, self.function = owner, owner.mod, name, function
        self.symbols = Symbols()
        self.code: list[Instruction] = []
        self.registers: dict[int, int] = {}
        self.count = 0
        self.params = (*function.params, *captured)
        self.outer_symbols = symbols
        self.recursive: tuple[Var, tuple[Var, ...]] | None = None
        self.tails: frozenset[int] = frozenset()

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
        for var, limit in UpperBounds(self.function).limits:
            symbol = self.symbols.name(var)
            operands = (("value", self.name), ("value", symbol), ("expr", symbol), ("value", limit))
            self.builtin(-1, "check_limit", *operands)
        is_checked = returns_more(self.function)
        if not is_checked:
            calls = tail_calls(self.function, self.is_itself)
            self.tails = frozenset([id(binding) for binding in calls])
        result = self.sequence(self.function.body)
        if is_checked:
            register = self.new_register()
            self.builtin(register, "identity", result)
            pattern = self.symbols.pattern(self.function.ret_struct_info)
            self.code.append(("match", register, pattern, f"{self.name}: the return value"))
            result = ("reg", register)
        self.code.append(("ret", result))
        code = without_copies(self.code, len(params))
        return VMFunction(self.name, tuple(params), code, self.count)

    def new_register(self) -> int:
        """A fresh register."""
        self.count += 1
        return self.count - 1

    def sequence(self, body: RelaxExpr) -> Operand:
        """Lower the blocks of a body; the operand of its value."""
        if not isinstance(body, SeqExpr):
            return self.value(body)
        for block in body.blocks:
            for binding in block.bindings:
                self.binding(binding)
        return self.value(body.body)

    def binding(self, binding: Binding) -> None:
        """Lower one binding into the register of its variable."""
        register = self.new_register()
        if isinstance(binding, MatchCast):
            self.builtin(register, "identity", self.value(binding.value))
            what = f"{self.name}: match_cast {binding.var.name_hint}"
            self.code.append(("match", register, self.symbols.pattern(binding.struct_info), what))
        elif isinstance(binding.value, If):
            self.branch(binding.value, register)
        elif isinstance(binding.value, Function):
            self.registers[id(binding.var)] = register
            self.closure(binding.value, register, binding.var)
        elif id(binding) in self.tails:
            self.call(expect(binding.value, Call), register)
            self.code[-1] = ("tail", *self.code[-1][1:])
        else:
            self.assign(register, binding.value)
        self.registers[id(binding.var)] = register

    def is_itself(self, callee: RelaxExpr) -> bool:
        """Whether a callee is the function that is lowered here."""
        if isinstance(callee, GlobalVar):
            return callee.name_hint == self.name
        return self.recursive is not None and callee is self.recursive[0]

    def assign(self, register: int, expr: RelaxExpr) -> None:
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

    def value(self, expr: RelaxExpr) -> Operand:
        """The operand of an expression; what is no leaf is computed into a new register."""
        if isinstance(expr, Var):
            return self.variable(expr)
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
                place = self.new_register()
                captured = [self.value(item) for item in self.recursive[1]]
                captured += [("expr", self.symbols.name(item)) for item in self.outer_symbols]
                self.builtin(place, "make_closure", ("value", self.name), *captured)
                return ("reg", place)
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
            lower = OPERATORS.get(target.name)
            if lower is None and waits_for_shapes(call):
                lower = call_operator
            if lower is None:
                raise LegalizeError(
                    f"{self.name}: {target.name} has no lowering here; run "
                    "relax.transform.LegalizeOps first, or give its row te= or legalize="
                )
            lower(self, call, register)
            return
        if isinstance(target, ExternFunc) and target.global_symbol in MACHINE_FUNCTIONS:
            MACHINE_FUNCTIONS[target.global_symbol](self, call.args, register)
            return
        operands = tuple([self.value(arg) for arg in call.args])
        if isinstance(target, GlobalVar):
            kind = "kernel" if isinstance(self.mod[target], PrimFunc) else "function"
            callee: tuple[str, object] = (kind, target.name_hint)
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

    def allocated(self, info: StructInfo | None) -> Operand:
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


def returns_more(function: Function) -> bool:
    """Whether a function declares more of its result than its body tells: it must be checked."""
    declared, known = function.ret_struct_info, function.body.struct_info
    if declared is None or known is None:
        return False
    return not struct_info_is_base_of(declared, known)


def _captured(function: Function, registers: dict[int, int]) -> list[Var]:
    finder = _Uses(registers)
    finder.visit(function.body)
    return finder.variables


class _Uses(Visitor):
    def __init__(self, registers: dict[int, int]) -> None:
        self.registers = registers
        self.variables: list[Var] = []

    def visit_RelaxVar(self, var: Var) -> None:
        if id(var) in self.registers and not any(var is known for known in self.variables):
            self.variables.append(var)


def _prim_value(builder: FunctionBuilder, expr: PrimValue) -> Operand:
    if expr.value.dtype.is_integral and not isinstance(expr.value, IntImm):
        return ("expr", builder.symbols.text(expr.value))
    literal = expr.value
    if isinstance(literal, IntImm):
        return ("value", bool(literal.value) if literal.dtype.is_bool else literal.value)
    return ("value", expect(literal, FloatImm).value)


def _tuple(builder: FunctionBuilder, expr: Tuple) -> Operand:
    """A tuple as an operand.

    One that is nested deeper than ``MAX_NESTED`` is put into a register first: operands are walked
    by functions that call themselves.
    """
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
