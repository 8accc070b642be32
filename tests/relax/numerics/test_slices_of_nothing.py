"""Slices of a symbolic axis that turns out empty: Python's rules, backwards too."""

import numpy as np
import pytest

import weft
from weft import relax, tir


@pytest.mark.parametrize("extent", [0, 1, 3])
@pytest.mark.parametrize(
    ("begin", "end", "step"),
    [(0, 1, -1), (0, 1, 1), (-1, 1, -1), (-1, -1, -1), (5, 1, -1), (5, 0, -2), (0, -5, -1)],
)
def test_a_slice_equals_pythons(extent, begin, end, step):
    """(0, 1, -1) of nothing read the first element; found by a random graph."""
    x = relax.Var("x", relax.TensorStructInfo([tir.Var("n", "int64")], "int64"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        sliced = relax.op.strided_slice(x, [0], [begin], [end], [step])
        builder.emit_func_output(builder.emit(sliced))
    machine = relax.VirtualMachine(relax.build(builder.get()), weft.cpu())
    data = np.arange(extent)
    np.testing.assert_array_equal(machine["main"](data).numpy(), data[begin:end:step])
