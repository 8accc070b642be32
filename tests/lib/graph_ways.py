"""The ways to run a function of a graph, which must agree: natively, as bytecode, interpreted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import weft
from weft import relax
from weft.relax.reference.interpreter import Interpreter

MODES = ("native", "bytecode")


def machines(mod: weft.IRModule, name: str) -> list[relax.VirtualMachine]:
    """A machine that runs the function natively, and one that runs bytecode."""
    executable = relax.build(mod, "llvm")
    function = executable.program.functions[name]
    assert function.native is not None, function.why_not_native
    return [relax.VirtualMachine(executable, weft.cpu(), exec_mode=mode) for mode in MODES]


def everywhere(mod: weft.IRModule, name: str, *args: Any) -> Any:
    """The result of both ways and of the interpreter of graphs, which must agree."""
    native, bytecode = (plain(machine[name](*args)) for machine in machines(mod, name))
    np.testing.assert_equal(native, bytecode)
    given = [arg.copy() if isinstance(arg, np.ndarray) else arg for arg in args]
    np.testing.assert_equal(native, plain(Interpreter(mod).call_function(name, given)))
    return native


def errors(mod: weft.IRModule, name: str, *args: Any) -> str:
    """Class and message of the error of both ways, which must be the same."""
    caught_errors = []
    for machine in machines(mod, name):
        with pytest.raises(weft.TVMError, match=r"\w") as caught:
            machine[name](*args)
        caught_errors.append((type(caught.value), str(caught.value)))
    assert caught_errors[0] == caught_errors[1]
    return caught_errors[0][1]


def plain(value: Any) -> Any:
    """A result with numpy's arrays in the place of tensors."""
    if isinstance(value, tuple):
        return tuple(plain(item) for item in value)
    return value.numpy() if hasattr(value, "numpy") else value
