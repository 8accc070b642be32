"""What must hold of bytecode that a file brings, before the machine runs it.

Registers, constants, functions and kernels that it names are there; jumps go forward and stay in
the function; every instruction, operand and pattern has one of the forms of
weft.runtime.vm.bytecode; texts are arithmetic over names. What values it computes with is checked
when it runs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Final, NoReturn

from weft.runtime.artifact.stored_types import check_stored
from weft.runtime.extent import names_in
from weft.runtime.vm.builtins import BUILTINS
from weft.runtime.vm.bytecode import Instruction, Program, VMFunction
from weft.support.dtype import DataType
from weft.support.errors import IRValueError, TVMError

_OF_THE_MACHINE: Final = frozenset({"alloc_shape_heap", "call_tir_dyn", "detach", "make_closure"})
"""Builtins that the interpreter has itself."""
_DEEPEST: Final = 200
_MOST_REGISTERS: Final = 1 << 24


def check_program(program: Program, kernels: Collection[str]) -> None:
    """Raise IRValueError, with the function and the instruction, for what cannot be run."""
    for name, function in program.functions.items():
        check_stored(function)
        if function.name != name:
            raise IRValueError(f"{name[:60]}: expected a function of this name, got its own name")
        _Checker(function, program, frozenset(kernels)).check()


@dataclass
class _Checker:
    """Checks one function."""

    function: VMFunction
    program: Program
    kernels: frozenset[str]
    place: str = "its parameters"

    def check(self) -> None:
        function = self.function
        if not len(function.params) <= function.registers <= _MOST_REGISTERS:
            self.wrong(f"{function.registers} registers for {len(function.params)} parameters")
        for _, pattern in function.params:
            self.pattern(pattern)
        for position, instruction in enumerate(function.code):
            self.place = f"instruction {position}"
            self.instruction(position, instruction)
        if function.native is None and (not function.code or function.code[-1][0] != "ret"):
            self.wrong("no return at its end")

    def wrong(self, what: str) -> NoReturn:
        raise IRValueError(f"{self.function.name[:60]}: {self.place}: found {what[:120]}")

    def instruction(self, position: int, given: Instruction) -> None:
        forms: dict[object, Callable[..., None]] = {
            "call": self.call,
            "tail": self.call,
            "if": self.branch,
            "goto": self.jump,
            "match": self.match,
            "ret": self.operand,
        }
        sizes = {"call": 4, "tail": 4, "if": 3, "goto": 2, "match": 4, "ret": 2}
        opcode = given[0] if isinstance(given, tuple) and given else None
        if not isinstance(opcode, str) or sizes.get(opcode) != len(given):
            self.wrong(f"no instruction: {given!r}")
        if opcode in ("if", "goto"):
            offset = given[-1]
            left = len(self.function.code) - position - 1
            if not isinstance(offset, int) or not 0 <= offset < left:
                self.wrong(f"a jump of {offset!r} with {left} instructions left")
        forms[opcode](*given[1:])

    def branch(self, condition: object, _offset: int) -> None:
        self.operand(condition)

    def jump(self, _offset: int) -> None:
        return

    def match(self, register: object, pattern: object, what: object) -> None:
        self.register(register)
        self.pattern(pattern)
        if not isinstance(what, str):
            self.wrong(f"no text: {what!r}")

    def call(self, target: object, callee: object, operands: object) -> None:
        if target != -1:
            self.register(target)
        if not isinstance(callee, tuple) or len(callee) != 2 or not isinstance(operands, tuple):
            self.wrong(f"no callee and operands: {callee!r}")
        self.callee(*callee)
        for operand in operands:
            self.operand(operand)

    def callee(self, kind: object, name: object) -> None:
        if kind == "register":
            self.register(name)
            return
        known: dict[object, Collection[str]] = {
            "kernel": self.kernels,
            "function": self.program.functions,
            "builtin": BUILTINS.keys() | _OF_THE_MACHINE,
        }
        if kind not in ("packed", "operator", *known) or not isinstance(name, str):
            self.wrong(f"no callee: {(kind, name)!r}")
        if kind in known and name not in known[kind]:
            self.wrong(f"a call of the {kind} {name!r}, which there is not")

    def register(self, number: object) -> None:
        if type(number) is not int or not 0 <= number < self.function.registers:
            self.wrong(f"register {number!r} of {self.function.registers}")

    def operand(self, given: object, depth: int = 0) -> None:
        if not isinstance(given, tuple) or len(given) != 2 or depth > _DEEPEST:
            self.wrong(f"no operand: {given!r}")
        kind, content = given
        if kind == "reg":
            self.register(content)
        elif kind == "const":
            count = len(self.program.constants)
            if type(content) is not int or not 0 <= content < count:
                self.wrong(f"constant {content!r} of {count}")
        elif kind == "expr":
            self.extents((content,))
        elif kind == "shape":
            self.extents(content)
        elif kind == "tuple" and isinstance(content, tuple):
            for item in content:
                self.operand(item, depth + 1)
        elif kind != "value":
            self.wrong(f"no operand: {given!r}")

    def extents(self, given: object) -> None:
        if not isinstance(given, tuple):
            self.wrong(f"no extents: {given!r}")
        for extent in given:
            if isinstance(extent, str):
                self.text(extent)
            elif not isinstance(extent, int):
                self.wrong(f"no extent: {extent!r}")

    def text(self, given: str) -> Iterable[str]:
        try:
            return names_in(given)
        except TVMError:
            self.wrong(f"no arithmetic over names: {given!r}")

    def pattern(self, given: object, depth: int = 0) -> None:
        kind, *content = given if isinstance(given, tuple) and given else (None,)
        if (kind, len(content)) == ("object", 0):
            return
        if (kind, len(content)) == ("tuple", 1) and isinstance(content[0], tuple):
            if depth > _DEEPEST:
                self.wrong("a pattern without an end")
            for item in content[0]:
                self.pattern(item, depth + 1)
        elif (kind, len(content)) == ("tensor", 3):
            self.dtype(content[0])
            self.extents_and_rank(content[1], content[2])
        elif (kind, len(content)) == ("shape", 2):
            self.extents_and_rank(content[0], content[1])
        elif (kind, len(content)) == ("prim", 2):
            self.dtype(content[0])
            if content[1] is not None:
                self.extents((content[1] if isinstance(content[1], str) else None,))
        else:
            self.wrong(f"no pattern: {given!r}")

    def dtype(self, given: object) -> None:
        try:
            if not isinstance(given, str):
                self.wrong(f"no data type: {given!r}")
            if given:
                DataType(given)
        except TVMError:
            self.wrong(f"no data type: {given!r}")

    def extents_and_rank(self, extents: object, rank: object) -> None:
        if type(rank) is not int:
            self.wrong(f"no number of dimensions: {rank!r}")
        if extents is not None:
            self.extents(extents)
