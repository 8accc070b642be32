"""Results nested deeper than Python's own limits of parentheses and calls."""

import numpy as np
import pytest

import weft
from weft import relax


@pytest.mark.no_round_trip(reason="Python parses 200 nested parentheses and no more")
@pytest.mark.parametrize("depth", [1, 31, 32, 33, 250, 700])
@pytest.mark.parametrize("mode", ["native", "bytecode"])
def test_a_result_may_be_nested_deep(depth, mode):
    x = relax.Var("x", relax.TensorStructInfo((2,), "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        made = builder.emit(relax.op.add(x, x))
        for _ in range(depth):
            made = relax.Tuple([made, x])
        builder.emit_func_output(made)
    executable = relax.build(builder.get(), "llvm")
    assert executable.program.functions["main"].native is not None
    given = np.array([1, 2], "float32")
    found = relax.VirtualMachine(executable, weft.cpu(), exec_mode=mode)["main"](given)
    for _ in range(depth):
        found, same = found
        assert list(same.numpy()) == [1, 2]
    assert list(found.numpy()) == [2, 4]


@pytest.mark.parametrize("name", ["", "a\0b"])
def test_the_name_of_a_registered_function_is_checked(name):
    with pytest.raises(ValueError, match="ExternFunc: expected the name of a registered function"):
        relax.ExternFunc(name)
