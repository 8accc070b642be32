"""Bytecode as data: which registers an instruction reads, where values end, and its listing."""

from __future__ import annotations

import random

import pytest

from weft.runtime.vm.bytecode import (
    PlannedSizes,
    Program,
    VMFunction,
    last_uses,
    operand_text,
    registers_read,
    text_of,
)
from weft.support.errors import IRTypeError


def reg(number):
    return ("reg", number)


CALL = (
    "call", 3, ("kernel", "add"), (reg(0), ("tuple", (reg(1), ("tuple", (reg(2),)))), ("const", 4))
)  # fmt: skip
READS = [
    (CALL, [0, 1, 2]), (("call", 3, ("register", 5), (reg(0),)), [0, 5]),
    (("call", -1, ("builtin", "print"), (("value", "text"),)), []), (("ret", reg(4)), [4]),
    (("ret", ("value", 3)), []), (("if", reg(2), 3), [2]), (("if", ("expr", "n > 3"), 3), []),
    (("match", 6, ("object",), "x"), [6]), (("goto", 2), []),
    (("ret", ("tuple", (reg(1), reg(1)))), [1, 1]),
]  # fmt: skip


@pytest.mark.parametrize(("instruction", "expected"), READS)
def test_registers_that_an_instruction_reads(instruction, expected):
    assert sorted(registers_read(instruction)) == expected


TEXTS = [
    (CALL, "%3 = call kernel add(%0, (%1, (%2)), c[4])"),
    (("call", -1, ("builtin", "print"), (("value", "text"),)), "call builtin print('text')"),
    (("call", 2, ("register", 5), ()), "%2 = call %5()"), (("ret", reg(4)), "ret %4"),
    (("if", reg(2), 3), "if %2 else +3"), (("goto", 2), "goto +2"),
    (("match", 6, ("shape", ("n", 4), 2), "x"), "match %6 as ('shape', ('n', 4), 2)"),
]  # fmt: skip


@pytest.mark.parametrize(("instruction", "text"), TEXTS, ids=[row[1] for row in TEXTS])
def test_lines_of_a_listing(instruction, text):
    assert text_of(instruction) == text


@pytest.mark.parametrize(("operand", "text"), [
    (("expr", "n * 2"), "n * 2"), (("shape", ("n", 4)), "shape(n, 4)"), (("value", None), "None"),
    (("const", 0), "c[0]"), (("tuple", ()), "()"),
])  # fmt: skip
def test_operands_of_a_listing(operand, text):
    assert operand_text(operand) == text


def test_a_program_lists_its_functions():
    main = VMFunction("main", (("x", ("object",)), ("y", ("object",))), (("ret", reg(0)),), 2)
    other = VMFunction("other", (), (("goto", 0), ("ret", ("value", 1))), 0)
    assert Program({"main": main, "other": other}).as_text() == (
        "@main(x, y):\n  ret %0\n\n@other():\n  goto +0\n  ret 1\n"
    )


def test_a_value_ends_at_its_last_use_in_the_order_of_the_code():
    code = (
        ("call", 1, ("builtin", "identity"), (reg(0),)),
        ("call", 2, ("builtin", "identity"), (reg(1),)),
        ("call", 3, ("builtin", "identity"), (reg(1),)),
        ("ret", reg(2)),
    )
    assert last_uses(code) == [(0,), (), (1, 3), (2,)]
    code = (("tail", 1, ("register", 0), (reg(2),)), ("ret", reg(1)))
    assert last_uses(code) == [(0, 2), (1,)]


def random_code(rng, registers=6, length=14):
    """Calls and forward jumps over a few registers, and a return."""
    code = []
    for position in range(length):
        left = length - position
        kind = rng.random()
        if kind < 0.2 and left > 1:
            code.append(("if", reg(rng.randrange(registers)), rng.randrange(left)))
        elif kind < 0.3 and left > 1:
            code.append(("goto", rng.randrange(left)))
        else:
            operands = tuple(reg(rng.randrange(registers)) for _ in range(rng.randrange(3)))
            target = rng.choice([-1, rng.randrange(registers)])
            code.append(("call", target, ("builtin", "identity"), operands))
    return (*code, ("ret", reg(rng.randrange(registers))))


def reads_after(code, position, register, seen=None):
    """Whether some run that has carried out ``position`` still reads the register."""
    seen = set() if seen is None else seen
    instruction = code[position]
    follows = [position + 1]
    if instruction[0] == "goto":
        follows = [position + 1 + instruction[1]]
    elif instruction[0] == "if":
        follows.append(position + 1 + instruction[2])
    for after in follows if instruction[0] != "ret" else ():
        if after in seen:
            continue
        seen.add(after)
        if register in registers_read(code[after]):
            return True
        writes = code[after][0] == "call" and code[after][1] == register
        if not writes and reads_after(code, after, register, seen):
            return True
    return False


def test_no_run_reads_a_value_after_its_end():
    rng = random.Random(5)
    for _ in range(300):
        code = random_code(rng)
        for position, ending in enumerate(last_uses(code)):
            for register in ending:
                assert not reads_after(code, position, register), (code, position, register)


def test_every_register_ends_once():
    rng = random.Random(6)
    for _ in range(100):
        code = random_code(rng)
        ends = [register for ending in last_uses(code) for register in ending]
        assert len(ends) == len(set(ends))


@pytest.mark.parametrize("symbol", ["n + 1", "class", "", "1n", 3])
def test_planned_sizes_have_symbols_with_names(symbol):
    with pytest.raises(IRTypeError, match="expected the name of a symbol"):
        PlannedSizes((symbol,), (4,), ((0, 1),))


def test_planned_sizes_are_arithmetic():
    assert PlannedSizes(("n",), ("n * 4", 8), ((0, 1), (1, 2))).sizes == ("n * 4", 8)
    with pytest.raises(IRTypeError, match="expected integer arithmetic over names"):
        PlannedSizes(("n",), ("open('x')",), ((0, 1),))
