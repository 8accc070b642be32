"""``relax.ExecBuilder``: bytecode by hand, with the calls that TVM 0.20's builder has.

Operands are what ``r``, ``imm``, ``c``, ``f`` and ``convert_constant`` return. A callee is a
function of the builder, or else a registered one. Jumps go forward.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from types import TracebackType
from typing import Final, TypeGuard

from weft.runtime.containers import ShapeTuple
from weft.runtime.module import Executable as TirExecutable
from weft.runtime.ndarray import NDArray
from weft.runtime.vm.bytecode import Instruction, Operand, Program, VMFunction, registers_read
from weft.runtime.vm.executable import Executable
from weft.support.dtype import DataType
from weft.support.errors import IRTypeError, IRValueError

MACHINE: Final[Operand] = ("machine", None)
"""The operand that TVM's functions take for the state of the machine; ours need none."""
CLOSURE, INVOKE = "vm.builtin.make_closure", "vm.builtin.invoke_closure"


class SpecialReg(IntEnum):
    """Registers with a meaning of their own, as TVM numbers them."""

    VOID_ARG = (1 << 54) + 0
    VM_STATE = (1 << 54) + 1


class VMFuncKind(IntEnum):
    """What a name stands for."""

    PACKED_FUNC = 0
    VM_FUNC = 1


class VMFuncScope:
    """The scope of one function: a context manager."""

    def __init__(self, builder: ExecBuilder, name: str, inputs: int, params: Sequence[str]) -> None:
        self.builder, self.name, self.inputs, self.params = builder, name, inputs, list(params)
        self.code: list[Instruction] = []

    def __enter__(self) -> VMFuncScope:
        self.builder.open.append(self)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.builder.open.pop()
        self.builder.done[self.name] = self


class ExecBuilder:
    """Emits instructions and makes an Executable of them.

    >>> import weft
    >>> from weft import relax
    >>> builder = relax.ExecBuilder()
    >>> with builder.function("main", num_inputs=1):
    ...     builder.emit_call("vm.builtin.shape_of", args=[builder.r(0)], dst=builder.r(1))
    ...     builder.emit_ret(builder.r(1))
    >>> vm = relax.VirtualMachine(builder.get(), weft.cpu())
    >>> vm["main"](weft.nd.empty((2, 3)))
    (2, 3)
    """

    def __init__(self) -> None:
        self.open: list[VMFuncScope] = []
        self.done: dict[str, VMFuncScope] = {}
        self.constants: list[object] = []

    def r(self, idx: int) -> Operand:
        """A register."""
        if idx == SpecialReg.VM_STATE:
            return MACHINE
        return ("reg", idx)

    def imm(self, value: int) -> Operand:
        """A number."""
        return ("value", value)

    def c(self, idx: int) -> Operand:
        """The constant of an index."""
        if not 0 <= idx < len(self.constants):
            raise IRValueError(
                f"c: expected the index of one of {len(self.constants)} constants, got {idx}"
            )
        return ("const", idx)

    def f(self, name: str) -> Operand:
        """A function."""
        return ("value", name)

    def void_arg(self) -> Operand:
        """The register of results that nobody wants."""
        return self.r(SpecialReg.VOID_ARG)

    def vm_state(self) -> Operand:
        """The state of the machine."""
        return MACHINE

    def declare_function(self, func_name: str, kind: VMFuncKind = VMFuncKind.PACKED_FUNC) -> None:
        """Nothing: names are looked up when the executable is made."""

    def function(
        self, func_name: str, num_inputs: int | None = 0, param_names: list[str] | None = None
    ) -> VMFuncScope:
        """The scope of a function with ``num_inputs`` parameters, its first registers."""
        count = num_inputs or 0
        names = param_names or [f"arg{index}" for index in range(count)]
        if len(names) != count:
            raise IRValueError(f"function {func_name}: {count} inputs, {len(names)} names")
        if func_name in self.done:
            raise IRValueError(f"function {func_name} is there already")
        return VMFuncScope(self, func_name, count, names)

    def convert_constant(self, const: object) -> Operand:
        """The constant of a value; equal values are stored once."""
        value = tuple(const) if isinstance(const, ShapeTuple | tuple) else const
        value = str(value) if isinstance(value, DataType) else value
        for index, known in enumerate(self.constants):
            if _same(known, value):
                return ("const", index)
        self.constants.append(value)
        return ("const", len(self.constants) - 1)

    def emit_call(
        self, name: str, args: Sequence[object] | None = None, dst: Operand | None = None
    ) -> None:
        """A call; arrays, data types and shapes among the arguments become constants."""
        operands = [arg if _is_operand(arg) else self._constant_of(arg) for arg in args or ()]
        operands = [operand for operand in operands if operand != MACHINE]
        target = -1 if dst is None or dst[1] == SpecialReg.VOID_ARG else dst[1]
        if name == CLOSURE:
            callee: tuple[str, object] = ("builtin", "make_closure")
        elif name == INVOKE:
            callee = ("register", operands.pop(0)[1])
        else:
            callee = ("packed", name)
        self._scope().code.append(("call", target, callee, tuple(operands)))

    def _constant_of(self, value: object) -> Operand:
        if isinstance(value, NDArray | DataType | ShapeTuple | tuple):
            return self.convert_constant(value)
        raise IRTypeError(
            f"emit_call: expected an operand (r, imm, c, f), an array, a data type or a shape, got "
            f"{type(value).__name__}; convert_constant makes an operand of a value"
        )

    def emit_ret(self, result: Operand) -> None:
        """A return."""
        self._scope().code.append(("ret", result))

    def emit_goto(self, pc_offset: int) -> None:
        """A jump to the instruction ``pc_offset`` after this one."""
        self._scope().code.append(("goto", _forward(pc_offset)))

    def emit_if(self, cond: Operand, false_offset: int) -> None:
        """Go on if the condition holds, else jump to the instruction ``false_offset`` after."""
        self._scope().code.append(("if", cond, _forward(false_offset)))

    def _scope(self) -> VMFuncScope:
        if not self.open:
            raise IRValueError("an instruction needs a function: emit it in `with function(...)`")
        return self.open[-1]

    def get(self) -> Executable:
        """The executable; an error for a register that is read before it has a value."""
        program = Program(constants=list(self.constants))
        for name, scope in self.done.items():
            program.functions[name] = self._finished(name, scope)
        return Executable(program, TirExecutable({}))

    def _finished(self, name: str, scope: VMFuncScope) -> VMFunction:
        """The function with registers numbered by their first use, and its callees found."""
        numbers = {index: index for index in range(scope.inputs)}
        written = set(numbers)
        code: list[Instruction] = []
        for instruction in scope.code:
            for register in registers_read(instruction):
                if register not in written:
                    raise IRValueError(
                        f"{name}: register {register} is read before it has a value, in "
                        f"{instruction}"
                    )
            if instruction[0] != "call":
                code.append(_renumbered(instruction, numbers))
                continue
            _, target, (kind, callee), operands = instruction
            if target >= 0:
                written.add(target)
                numbers.setdefault(target, len(numbers))
            if kind == "register":
                callee = numbers[callee]
            elif kind == "packed" and callee in self.done:
                kind = "function"
            renamed = tuple([_operand(operand, numbers) for operand in operands])
            code.append(("call", numbers.get(target, -1), (kind, callee), renamed))
        if not code or code[-1][0] != "ret":
            raise IRValueError(f"{name}: the last instruction must be a return")
        params = tuple([(param, ("object",)) for param in scope.params])
        return VMFunction(name, params, tuple(code), len(numbers))


def _is_operand(value: object) -> TypeGuard[Operand]:
    kinds = ("reg", "value", "const", "machine")
    return type(value) is tuple and len(value) == 2 and value[0] in kinds


def _forward(offset: int) -> int:
    if offset < 1:
        raise IRValueError(f"expected a jump forward (an offset of 1 or more), got {offset}")
    return offset - 1


def _operand(operand: Operand, numbers: dict[int, int]) -> Operand:
    return ("reg", numbers[operand[1]]) if operand[0] == "reg" else operand


def _renumbered(instruction: Instruction, numbers: dict[int, int]) -> Instruction:
    if instruction[0] == "goto":
        return instruction
    return (instruction[0], _operand(instruction[1], numbers), *instruction[2:])


def _same(known: object, value: object) -> bool:
    """Whether two constants are equal, in type and value."""
    if isinstance(known, NDArray) and isinstance(value, NDArray):
        mine, its = known.numpy(), value.numpy()
        return mine.dtype == its.dtype and mine.shape == its.shape and bool((mine == its).all())
    return type(known) is type(value) and not isinstance(value, NDArray) and known == value
