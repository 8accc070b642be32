"""Bytecode and signatures of a file whose digests are right, and whose content is not."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

import weft
from weft.runtime.artifact.checks import check_manifest, check_parts
from weft.runtime.artifact.stored_types import check_stored
from weft.runtime.model.signature import Signature, State
from weft.runtime.vm.bytecode import Program, VMFunction
from weft.runtime.vm.bytecode_checks import check_program
from weft.runtime.vm.executable import Executable
from weft.runtime.vm.virtual_machine import VirtualMachine
from weft.support.errors import IRTypeError, IRValueError, RuntimeFault

TENSOR = ("tensor", "float32", ("n",), 1)
CALL = ("call", 1, ("builtin", "identity"), (("reg", 0),))
RETURN = ("ret", ("reg", 1))


def function(*code: Any, registers: Any = 2, params: Any = (("x", TENSOR),)) -> VMFunction:
    """A function of bytecode alone."""
    return VMFunction("main", params, tuple(code), registers)


def program(*code: Any, **fields: Any) -> Program:
    """A program of one function."""
    return Program({"main": function(*code, **fields)}, [])


def test_what_the_compiler_writes_is_let_through() -> None:
    check_program(program(CALL, RETURN), ())
    code = (
        ("match", 0, ("tuple", (("object",), ("prim", "int64", "n + 1"))), "x"),
        ("if", ("reg", 0), 1), ("goto", 0), ("tail", 1, ("function", "main"), (("reg", 0),)),
        ("call", -1, ("kernel", "k"), (("const", 0), ("shape", ("n", 4)), ("value", None))),
        ("call", 1, ("register", 0), (("tuple", (("expr", "n * 2"),)),)), RETURN,
    )  # fmt: skip
    check_program(Program({"main": function(*code)}, [weft.nd.empty((1,))]), ("k",))


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ([("jump", 1), RETURN], "instruction 0: found no instruction"),
        ([(), RETURN], "found no instruction"),
        ([CALL[:3], RETURN], "found no instruction"),
        ([("tail", 1, ("function", "f"), ()), RETURN], "a call of the function 'f', which"),
        ([("goto", -1), RETURN], "a jump of -1 with 1 instructions left"),
        ([("goto", 1), RETURN], "a jump of 1 with 1 instructions left"),
        ([("if", ("reg", 0), "x"), RETURN], "a jump of 'x'"),
        ([("ret", ("reg", 2))], "register 2 of 2"),
        ([("ret", ("reg", True))], "register True of 2"),
        ([("ret", ("const", 0))], "constant 0 of 0"),
        ([("ret", ("expr", "open('x')"))], "no arithmetic over names"),
        ([("ret", ("shape", "n"))], "no extents"),
        ([("ret", ("file", "x"))], "no operand"),
        ([("ret", 3)], "no operand"),
        ([("call", 7, ("builtin", "identity"), ()), RETURN], "register 7 of 2"),
        ([("call", 1, ("builtin", "system"), ()), RETURN], "the builtin 'system', which there is"),
        ([("call", 1, ("kernel", "k"), ()), RETURN], "a call of the kernel 'k', which there is"),
        ([("call", 1, ("function", "f"), ()), RETURN], "a call of the function 'f', which there"),
        ([("call", 1, ("eval", "f"), ()), RETURN], "no callee"),
        ([("call", 1, "identity", ()), RETURN], "no callee and operands"),
        ([("match", 0, ("tensor",), "x"), RETURN], "no pattern"),
        ([("match", 0, ("tensor", "float33", None, 1), "x"), RETURN], "no data type: 'float33'"),
        ([("match", 0, ("shape", None, "1"), "x"), RETURN], "no number of dimensions: '1'"),
        ([("match", 0, ("object",), 5), RETURN], "no text: 5"),
        ([CALL], "no return at its end"),
        ([], "no return at its end"),
    ],
)  # fmt: skip
def test_an_instruction_of_another_form_is_refused(code: list[Any], told: str) -> None:
    with pytest.raises(IRValueError, match=told):
        check_program(program(*code), ())


def test_fields_of_another_type_are_refused() -> None:
    with pytest.raises(IRTypeError, match="VMFunction: expected int in its field registers, got '"):
        check_program(program(RETURN, registers="2"), ())
    with pytest.raises(IRTypeError, match="VMFunction: expected tuple.* in its field params, got"):
        check_program(program(RETURN, params=(("x",),)), ())
    with pytest.raises(IRTypeError, match="VMFunction: expected tuple.* in its field code, got"):
        check_program(program(["ret", ("reg", 1)]), ())
    with pytest.raises(IRValueError, match="found 0 registers for 1 parameters"):
        check_program(program(RETURN, registers=0), ())


@dataclasses.dataclass
class Inner:
    """Part of the one below."""

    names: tuple[str, ...] = ()


@dataclasses.dataclass
class Outer:
    """Every kind of annotation."""

    inner: Inner | None = None
    pair: tuple[int, str | None] = (1, None)
    flags: dict[str, int] = dataclasses.field(default_factory=dict)
    anything: Any = None


@pytest.mark.parametrize(
    "fields",
    [{"inner": 3}, {"inner": Inner(("x", 4))}, {"inner": Inner(["x"])}, {"pair": (1,)},
     {"pair": (1, 2)}, {"pair": [1, None]}, {"flags": []}],
)  # fmt: skip
def test_types_that_a_file_brings(fields: dict[str, Any]) -> None:
    check_stored(Outer(Inner(("x",)), (2, "y"), {"a": 1}, object()))
    with pytest.raises(IRTypeError, match=f"Outer: expected .* in its field {[*fields][0]}"):
        check_stored(Outer(**fields))


def test_a_signature_names_what_there_is() -> None:
    plain = Signature.plain("m", ["x"])
    good = program(CALL, RETURN)
    check_parts(plain, good, (), (), "main")
    for wrong, told in [
        (Signature.plain("m", ["x", "y"]), "its signature has 2 inputs, and main has 1"),
        (dataclasses.replace(plain, result=("leaf", -1)), "a leaf of its signature"),
        (dataclasses.replace(plain, result=("leaf",)), "a tree of its signature"),
        (dataclasses.replace(plain, result=("dict", ("a", "b"), (("leaf", 0),))), "the keys of"),
        (dataclasses.replace(plain, result=("dict", (("a",),), (("leaf", 0),))), "a key of its"),
        (dataclasses.replace(plain, states=(State("s", 4, 0),)), "its states and written inputs"),
        (dataclasses.replace(plain, written=((0, -1),)), "its states and written outputs"),
    ]:
        with pytest.raises(IRValueError, match=told):
            check_parts(wrong, good, (), (), "main")
    with pytest.raises(IRTypeError, match="Signature: expected str in its field source, got 5"):
        other: Any = 5
        check_parts(dataclasses.replace(plain, source=other), good, (), (), "main")


@pytest.mark.parametrize("name", ["entry", "kernels", "states", "code", "signature", "flops"])
def test_a_manifest_of_other_types_is_refused(name: str) -> None:
    good: dict[str, Any] = {
        "entry": "main", "kernels": [], "states": 0, "code": None, "signature": {}, "dtypes": [],
        "interface": "", "flops": {},
    }  # fmt: skip
    check_manifest(good)
    for value in (1.5, [4]):
        with pytest.raises(IRValueError, match=f"its manifest's {name} cannot be what was written"):
            check_manifest({**good, name: value})


@pytest.mark.parametrize(
    ("instruction", "told"),
    [(("call", 1, ("builtin", "shape_of"), ()), "TypeError: .*missing 1 required"),
     (("call", 1, ("builtin", "tensor_to_shape"), (("value", "x"),)), "AttributeError: "),
     (("call", 1, ("builtin", "alloc_tensor"), (("value", 3), ("value", 4))), "TypeError: ")],
)  # fmt: skip
def test_operands_that_an_instruction_cannot_take_are_a_fault_of_the_program(
    instruction: Any, told: str
) -> None:
    """Told with the instruction, and not as a fault of weft."""
    whole = program(instruction, RETURN)
    check_program(whole, ())
    machine = VirtualMachine(Executable(whole, weft.runtime.Module({})), weft.cpu())
    with pytest.raises(RuntimeFault, match=rf"main: the bytecode cannot be run \({told}") as found:
        machine["main"](np.zeros(3, "float32"))
    assert "at instruction 0: %1 = call builtin" in str(found.value)
