"""How far axes go in memory: nothing that data decides is a place, nor taken apart as one."""

from __future__ import annotations

from weft import te, tir
from weft.backends.cpu.schedules.places import Places, parts_of
from weft.dlight.nest import Nest, blocks_of
from weft.tir.schedule import Schedule


def parts_and_steps(*tensors):
    """The extents of the parts of the last block, and their steps: of the store, then of loads."""
    sch = Schedule(te.create_prim_func(list(tensors)))
    nest = Nest(sch, blocks_of(sch)[-1])
    parts = parts_of(nest)
    assert parts is not None
    steps = Places(nest, parts).steps
    return [(part.extent, steps[part]) for part in parts]


def test_rows_that_data_picks_have_no_step_and_their_columns_have() -> None:
    table, rows = te.placeholder((9, 8), name="table"), te.placeholder((5,), "int32", name="rows")
    taken = te.compute((5, 8), lambda i, j: table[rows[i] // 2 + 1, j])
    accesses = parts_and_steps(table, rows, taken)
    assert accesses == [(5, [8, 1, None]), (8, [1, 0, 1])]


def test_a_remainder_of_data_cuts_no_axis() -> None:
    table, rows = te.placeholder((72,), name="table"), te.placeholder((6,), "int64", name="rows")
    zero = tir.const(0, "int64")
    taken = te.compute(
        (6, 8), lambda i, j: table[tir.Select(rows[i] % 2 == 0, rows[i], zero) * 8 + j]
    )
    accesses = parts_and_steps(table, rows, taken)
    assert accesses == [(6, [8, 1, 1, None]), (8, [1, 0, 0, 1])]


def test_what_is_data_for_one_axis_is_a_quotient_of_another() -> None:
    table, rows = te.placeholder((72,), name="table"), te.placeholder((6,), "int64", name="rows")
    taken = te.compute((6, 8), lambda i, j: table[rows[i] * 8 + j % 2 * 4 + j // 2])
    accesses = parts_and_steps(table, rows, taken)
    assert accesses == [(6, [8, 1, None]), (4, [2, 0, 1]), (2, [1, 0, 4])]
