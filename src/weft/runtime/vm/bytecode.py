"""Bytecode: Relax functions as the virtual machine executes them; plain data, JSON both ways.

An instruction is a tuple whose first item is its opcode::

    ("call", dst, callee, operands)     dst = callee(operands); dst -1 drops the result
    ("tail", dst, callee, operands)     a call whose result is that of the function, unchanged
    ("if", condition, offset)           continue, or go forward by ``offset`` if false
    ("goto", offset)                    go forward by ``offset``
    ("match", register, pattern, what)  check a value and bind symbols; ``what`` names it in errors
    ("ret", operand)                    leave with a value

A callee is ``(kind, name)``: ``kernel`` (a compiled PrimFunc, outputs last), ``packed`` (a
registered function, looked up at each call), ``function`` (another VM function), ``builtin``
(weft.runtime.vm.builtins), ``operator`` (a graph operator that the compiler compiles for the shapes
at hand; the first operand has its attributes) or ``register`` (a closure held in a register).

An operand is ``("reg", i)``, ``("const", i)``, ``("value", plain)``, ``("expr", text)`` for an
integer expression over the frame's symbols, ``("shape", texts)`` or ``("tuple", operands)``.

A pattern is ``("tensor", dtype | "", extents | None, ndim)``, ``("shape", extents | None, ndim)``,
``("prim", dtype, text | None)``, ``("tuple", patterns)`` or ``("object",)``. An extent that is a
bare name nobody bound yet binds it; every other is computed and compared.

The callee of a ``tail``, where it is bytecode, takes the place of its caller: a function that ends
with a call of itself is a loop, in constant memory. Where the callee is anything else, the result
goes to ``dst`` as that of a ``call``, and the instructions behind it return it.
"""

from __future__ import annotations

import keyword
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from weft.runtime.call.spec import FunctionSpec
from weft.runtime.extent import names_in
from weft.support.errors import IRTypeError

Operand = tuple[Any, ...]
Instruction = tuple[Any, ...]
Pattern = tuple[Any, ...]
Result = tuple[Any, ...]

CALLS: Final = ("call", "tail")
"""The opcodes of calls."""


@dataclass(frozen=True)
class PlannedSizes:
    """Tensors to place at the call: their sizes in bytes over ``symbols``, and their lives."""

    symbols: tuple[str, ...]
    sizes: tuple[int | str, ...]
    lives: tuple[tuple[int, int], ...]

    def __post_init__(self) -> None:
        """Refuse what is no name or no arithmetic: the fields may come from a file."""
        for name in self.symbols:
            if not isinstance(name, str) or not name.isidentifier() or keyword.iskeyword(name):
                raise IRTypeError(
                    f"planned sizes: expected the name of a symbol, got {str(name)[:60]!r}; "
                    "the file is damaged: save the model again"
                )
        for size in self.sizes:
            if not isinstance(size, int):
                names_in(size)


@dataclass(frozen=True)
class NativeEntry:
    """A whole VM function as one native function."""

    spec: FunctionSpec
    """Its parameters: the inputs, the outputs, then those handles that it needs of ``arena``,
    ``offsets`` (of the tensors in it) and ``table`` (of the constants' addresses)."""
    outputs: tuple[tuple[str, tuple[int | str, ...]], ...]
    """Data type and shape of each fresh array that it fills."""
    result: Result
    """What the function returns: ``("output", i)``, ``("input", i)``, ``("shape", extents)``,
    ``("expr", text)`` or ``("tuple", results)``."""
    arena: int = 0
    """The bytes of working memory; 0 where ``planned`` says what to place at the call."""
    planned: PlannedSizes | None = None
    constants: tuple[int, ...] = ()
    """The numbers of the executable's constants, in the order of the table."""
    checks: tuple[Result, ...] = ()
    """The match_casts that may fail: ``(kind, what, wanted, resolved, actual, known)``.

    ``kind`` is ``shape``, or ``prim`` for a number. ``wanted`` are the extents as written,
    ``resolved`` the same over the symbols of the inputs, ``actual`` those that the value has, and
    ``known`` the values of symbols in ``wanted`` as pairs of a name and a text."""
    limits: tuple[tuple[str, int], ...] = ()
    """The largest values of symbols that the arena was planned for."""
    layout: tuple[Result, ...] | None = None
    """How the arguments hold the inputs, where one of them is a tuple or a shape: ``("leaf",
    input)``, ``("same", text)`` for a number that must equal it, or ``("tuple", layouts)``."""
    recursive: bool = False
    """Whether the code calls itself. Then there is always ``table``, and behind it the lowest
    address that the stack may reach."""
    loops: bool = False
    """Whether there are loops, whose steps write the same working memory again."""

    def __post_init__(self) -> None:
        """Refuse numbers that are none: they become text of a generated function."""
        numbers = [self.arena, *[limit for _, limit in self.limits], *_leaves(self.layout or ())]
        numbers += _places(self.result)
        for number in numbers:
            if not isinstance(number, int):
                raise IRTypeError(
                    f"{self.spec.name}: expected a whole number in its native entry, got "
                    f"{str(number)[:60]!r}; the file is damaged: save the model again"
                )


def _leaves(layouts: tuple[Result, ...]) -> Iterator[object]:
    """The numbers of the inputs that a layout of arguments holds."""
    for kind, content in layouts:
        if kind == "tuple":
            yield from _leaves(content)
        elif kind == "leaf":
            yield content


def _places(result: Result) -> list[object]:
    """The numbers of inputs and outputs in a result, however deep it is nested."""
    todo, numbers = [result], []
    while todo:
        kind, content = todo.pop()[:2]
        if kind == "tuple":
            todo.extend(content)
        elif kind in ("input", "output"):
            numbers.append(content)
    return numbers


@dataclass(frozen=True)
class VMFunction:
    """One function: its parameters, its code in bytecode, and natively where that is possible."""

    name: str
    params: tuple[tuple[str, Pattern], ...]
    code: tuple[Instruction, ...]
    registers: int
    native: NativeEntry | None = None
    why_not_native: str = ""


@dataclass
class Program:
    """All functions of an executable and what they refer to."""

    functions: dict[str, VMFunction] = field(default_factory=dict)
    constants: list[Any] = field(default_factory=list)

    def as_text(self) -> str:
        """A listing of every function, one instruction a line."""
        lines: list[str] = []
        for function in self.functions.values():
            names = ", ".join(name for name, _ in function.params)
            lines.append(f"@{function.name}({names}):")
            lines.extend(f"  {text_of(instruction)}" for instruction in function.code)
            lines.append("")
        return "\n".join(lines)


def registers_read(instruction: Instruction) -> Iterator[int]:
    """The registers whose values an instruction needs."""
    opcode = instruction[0]
    if opcode in CALLS:
        _, _, (kind, name), operands = instruction
        if kind == "register":
            yield name
        todo = list(operands)
    elif opcode == "match":
        todo = [("reg", instruction[1])]
    else:
        todo = [instruction[1]] if opcode in ("if", "ret") else []
    while todo:
        kind, content = todo.pop()
        if kind == "reg":
            yield content
        elif kind == "tuple":
            todo.extend(content)


def last_uses(code: tuple[Instruction, ...]) -> list[tuple[int, ...]]:
    """For each instruction, the registers whose values no later instruction needs.

    A register that is never read stands at the instruction that writes it. Jumps go forward only:
    so the last use in the order of the code is the last in every run, and a run that jumps over it
    does not need the value any more.
    """
    last: dict[int, int] = {}
    for position, instruction in enumerate(code):
        if instruction[0] in CALLS and instruction[1] >= 0:
            last[instruction[1]] = position
        for register in registers_read(instruction):
            last[register] = position
    ending: list[list[int]] = [[] for _ in code]
    for register, position in last.items():
        ending[position].append(register)
    return [tuple(registers) for registers in ending]


def text_of(instruction: Instruction) -> str:
    """One instruction as a line of a listing."""
    opcode = instruction[0]
    if opcode in CALLS:
        _, dst, (kind, name), operands = instruction
        target = f"%{dst} = " if dst >= 0 else ""
        callee = f"%{name}" if kind == "register" else f"{kind} {name}"
        word = "call" if opcode == "call" else "tail call"
        return f"{target}{word} {callee}({', '.join(operand_text(x) for x in operands)})"
    if opcode == "if":
        return f"if {operand_text(instruction[1])} else +{instruction[2]}"
    if opcode == "match":
        return f"match %{instruction[1]} as {instruction[2]}"
    if opcode == "ret":
        return f"ret {operand_text(instruction[1])}"
    return f"goto +{instruction[1]}"


def operand_text(operand: Operand) -> str:
    """An operand in a listing."""
    kind, value = operand
    if kind == "reg":
        return f"%{value}"
    if kind == "const":
        return f"c[{value}]"
    if kind == "shape":
        return f"shape({', '.join(str(x) for x in value)})"
    if kind == "tuple":
        return f"({', '.join(operand_text(x) for x in value)})"
    return str(value) if kind == "expr" else repr(value)
