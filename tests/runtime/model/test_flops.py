"""Counts of operations as files carry them."""

import pytest

from weft.runtime.model.flops import FlopCount, flops_of
from weft.support.errors import TVMError


class Tensor:
    shape = (4, 3)


def test_counts_are_numbers_or_arithmetic_over_arguments():
    counts = {"a": FlopCount(7), "b": FlopCount("s0 * 2 + s1", ((1, 0), (0, None)))}
    assert flops_of(counts, "a", []) == 7
    assert flops_of(counts, "b", [5, Tensor()]) == 13
    assert flops_of(counts, "c", []) is None
    again = {name: FlopCount.from_json(item.to_json()) for name, item in counts.items()}
    assert again == counts


def test_what_damaged_files_say_is_refused_or_not_known():
    with pytest.raises(TVMError, match="expected integer arithmetic over names"):
        FlopCount("__import__('os')")
    with pytest.raises(TVMError, match=r"expected arithmetic over \['s0'\], got 's1'"):
        FlopCount("s1", ((0, 0),))
    for places in [((3, 0),), ((0, 7),), ((0, None),)]:
        assert flops_of({"a": FlopCount("s0", places)}, "a", [Tensor()]) is None
    assert flops_of({"a": FlopCount("s0 // 0", ((0, 0),))}, "a", [Tensor()]) is None
