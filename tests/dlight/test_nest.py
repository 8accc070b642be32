"""What rules of default schedules ask about blocks."""

from weft import te, tir, topi
from weft.dlight.nest import blocks_of


def test_blocks_are_listed_in_order_and_a_sort_has_none():
    x = te.placeholder((8,), name="x")
    chain = tir.Schedule(te.create_prim_func([x, topi.nn.relu(topi.add(x, x))]))
    assert [chain.get(block).name_hint for block in blocks_of(chain)] == ["T_add", "compute"]
    assert blocks_of(tir.Schedule(te.create_prim_func([x, topi.argsort(x)]))) == []
