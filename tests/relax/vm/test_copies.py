"""Copies between registers go out of bytecode, and what it computes stays."""

from __future__ import annotations

import random

import pytest

from weft.relax.vm.copies import without_copies
from weft.runtime.module import Module
from weft.runtime.vm.bytecode import Program, VMFunction
from weft.runtime.vm.executable import Executable
from weft.runtime.vm.virtual_machine import VirtualMachine

OBJECT = ("object",)


def reg(number):
    return ("reg", number)


def copy(target, source):
    return ("call", target, ("builtin", "identity"), (source,))


def test_a_chain_of_copies_goes():
    code = [copy(1, reg(0)), copy(2, reg(1)), copy(3, reg(2)), ("ret", ("tuple", (reg(3), reg(1))))]
    assert without_copies(code, 1) == (("ret", ("tuple", (reg(0), reg(0)))),)


def test_results_of_branches_stay():
    code = [
        ("if", reg(0), 3), copy(2, reg(1)), copy(3, reg(2)), ("goto", 1),
        copy(3, reg(0)), copy(4, reg(3)), ("ret", reg(4)),
    ]  # fmt: skip
    assert without_copies(code, 2) == (
        ("if", reg(0), 2), copy(3, reg(1)), ("goto", 1), copy(3, reg(0)), copy(4, reg(3)),
        ("ret", reg(4)),
    )  # fmt: skip


def test_what_is_no_copy_of_a_register_stays():
    code = (copy(1, ("const", 0)), copy(2, ("tuple", (reg(0), reg(1)))), ("ret", reg(2)))
    assert without_copies(code, 1) == code


def test_callees_and_checks_are_renamed():
    pattern = ("tensor", "float32", ("n",), 1)
    code = [
        copy(1, reg(0)), ("match", 1, pattern, "y"), copy(2, reg(1)),
        ("tail", 3, ("register", 2), (reg(1), ("value", 1))), ("ret", reg(3)),
    ]  # fmt: skip
    assert without_copies(code, 1) == (
        ("match", 0, pattern, "y"), ("tail", 3, ("register", 0), (reg(0), ("value", 1))),
        ("ret", reg(3)),
    )  # fmt: skip


class Writer:
    """Code as lowering writes it: each register once, the result of an ``if`` twice."""

    def __init__(self, seed):
        self.random, self.code, self.count = random.Random(seed), [], 2

    def new(self):
        self.count += 1
        return self.count - 1

    def block(self, known, depth):
        """A few instructions over ``known`` registers; all that are known after it."""
        known = [*known]
        for _ in range(self.random.randrange(1, 6)):
            kind, target = self.random.random(), self.new()
            source = reg(self.random.choice(known))
            if kind < 0.6:
                self.code.append(copy(target, source))
            elif kind < 0.8 or not depth:
                both = ("tuple", (source, reg(self.random.choice(known))))
                self.code.append(copy(target, both))
            else:
                self.branch(known, target, depth)
            known.append(target)
        return known

    def branch(self, known, target, depth):
        start = len(self.code)
        self.code.append(())
        self.code.append(copy(target, reg(self.block(known, depth - 1)[-1])))
        middle = len(self.code)
        self.code.append(())
        self.code.append(copy(target, reg(self.block(known, depth - 1)[-1])))
        self.code[start] = ("if", reg(1), middle - start)
        self.code[middle] = ("goto", len(self.code) - middle - 1)


def result(code, registers, flag):
    function = VMFunction("main", (("x", OBJECT), ("flag", OBJECT)), tuple(code), registers)
    return VirtualMachine(Executable(Program({"main": function}), Module({})))["main"](7, flag)


@pytest.mark.parametrize("seed", range(60))
def test_random_code_computes_the_same(seed):
    writer = Writer(seed)
    known = writer.block([0, 1], 3)
    code = [*writer.code, ("ret", ("tuple", tuple([reg(item) for item in known[-4:]])))]
    short = without_copies(code, 2)
    for flag in (True, False):
        assert result(short, writer.count, flag) == result(code, writer.count, flag)
    assert without_copies(short, 2) == short
