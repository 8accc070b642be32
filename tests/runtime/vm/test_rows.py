"""What a loop scans out: rows that share memory, and never change each other."""

from __future__ import annotations

import numpy as np
import pytest

from weft.runtime.ndarray import array, empty
from weft.runtime.vm.rows import add_row, stack_rows
from weft.support.errors import IRTypeError, IRValueError


def rows_of(*numbers):
    """Rows of two numbers each, from none."""
    rows = empty((0, 2), "float32")
    for number in numbers:
        rows = add_row(rows, array(np.full(2, number, "float32")))
    return rows


@pytest.mark.parametrize("count", [0, 1, 16, 17, 100])
def test_rows_in_order(count):
    stacked = stack_rows(rows_of(*range(count))).numpy()
    assert stacked.dtype == "float32"
    assert stacked.tolist() == [[i, i] for i in range(count)]


def test_rows_that_two_others_go_on_from():
    both = rows_of(1, 2)
    left = add_row(both, array(np.full(2, 3, "float32")))
    right = add_row(both, array(np.full(2, 4, "float32")))
    assert [stack_rows(rows).numpy()[:, 0].tolist() for rows in (both, left, right)] == [
        [1, 2], [1, 2, 3], [1, 2, 4]
    ]  # fmt: skip


def test_a_row_is_copied_and_so_is_the_result():
    row = array(np.zeros(2, "float32"))
    rows = add_row(empty((0, 2), "float32"), row)
    row.copyfrom(np.ones(2, "float32"))
    first = stack_rows(rows)
    first.copyfrom(np.full((1, 2), 7, "float32"))
    assert stack_rows(rows).numpy().tolist() == [[0, 0]]


def test_a_type_of_its_own():
    rows = add_row(empty((0, 3), "bfloat16"), empty((3,), "bfloat16"))
    assert stack_rows(rows).dtype == "bfloat16"


def test_memory_is_written_once_a_row():
    rows = rows_of(*range(17))
    memory = rows.memory
    for number in range(15):
        rows = add_row(rows, array(np.full(2, number, "float32")))
        assert rows.memory is memory


def test_what_is_no_row():
    rows = rows_of(1)
    with pytest.raises(IRValueError, match=r"rows of shape \(2,\) and type float32, got .* \(3,\)"):
        add_row(rows, empty((3,), "float32"))
    with pytest.raises(IRValueError, match="got one of shape .* and type int32"):
        add_row(rows, empty((2,), "int32"))
    with pytest.raises(IRTypeError, match="expected the rows of a loop, got int"):
        stack_rows(3)
