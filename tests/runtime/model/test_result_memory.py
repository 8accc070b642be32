"""Results that lie in the memory of arguments or constants become the caller's own."""

from __future__ import annotations

import numpy as np
import pytest

from weft.runtime.call.spec import FunctionSpec
from weft.runtime.model.memory_report import MemoryReport
from weft.runtime.model.result_memory import may_return_foreign_memory, own_results
from weft.runtime.ndarray import array
from weft.runtime.vm.bytecode import NativeEntry, VMFunction

torch = pytest.importorskip("torch")


def writes(result, given):
    """Whether a store into the result is seen in what was given."""
    before = np.array(given)
    result[0] = -7
    return not (np.array(given) == before).all()


GIVEN = [
    ("the argument", lambda x: x, True), ("a view of it", lambda x: x[1:], True),
    ("its transpose", lambda x: x.T, True), ("a copy", lambda x: array(x), False),
]  # fmt: skip


@pytest.mark.parametrize(("make", "shares"), [row[1:] for row in GIVEN], ids=[r[0] for r in GIVEN])
def test_what_shares_memory_is_copied_and_nothing_else(make, shares):
    x = array(np.arange(4.0))
    result = make(x)
    (owned,) = own_results((result,), (x,), ())
    assert (owned is not result) is shares
    assert owned.tolist() == result.tolist()
    assert not writes(owned, x)


def test_constants_and_nested_arguments_and_results_count():
    weight, inside = array(np.ones(3)), array(np.zeros(3))
    results = own_results((weight, (inside, 5)), ((1, [inside]),), (weight,))
    assert results[0] is not weight
    assert results[1][0] is not inside
    assert results[1][1] == 5


def test_arrays_of_numpy_and_tensors_of_torch_have_memory_too():
    source, tensor = np.zeros(3), torch.zeros(3)
    from weft.runtime.ndarray import NDArray, from_dlpack

    shared, shared_tensor = NDArray(source), from_dlpack(tensor)
    first, second = own_results((shared, shared_tensor), (source, tensor), ())
    assert first is not shared
    assert second is not shared_tensor


def test_neighbours_in_one_block_do_not_share():
    block = array(np.arange(6.0))
    low, high = block[:3], block[3:]
    (owned,) = own_results((high,), (low,), ())
    assert owned is high


def native(result):
    entry = NativeEntry(FunctionSpec("f", ()), (), result)
    return VMFunction("f", (), (), 0, entry)


@pytest.mark.parametrize(("result", "expected"), [
    (("output", 0), False), (("input", 0), True),
    (("tuple", (("output", 0), ("shape", ()))), False),
    (("tuple", (("output", 0), ("tuple", (("input", 1),)))), True), (("expr", "n"), False),
])  # fmt: skip
def test_which_functions_may_return_what_they_were_given(result, expected):
    assert may_return_foreign_memory(native(result)) is expected


def test_bytecode_may_return_anything():
    assert may_return_foreign_memory(VMFunction("f", (), (("ret", ("value", 1)),), 0))


REPORTS = [
    (MemoryReport(1024, 10, 6), 1040,
     "arena     1,024 bytes\nconstants 10 bytes\noutputs   6 bytes"),
    (MemoryReport(None, 10, 6), None,
     "arena     depends on the inputs\nconstants 10 bytes\noutputs   6 bytes"),
    (MemoryReport(8, 0, None), None,
     "arena     8 bytes\nconstants 0 bytes\noutputs   depends on the inputs"),
    (MemoryReport(8, 0, 4, True), 12,
     "arena     8 bytes (at most)\nconstants 0 bytes\noutputs   4 bytes (at most)"),
]  # fmt: skip


@pytest.mark.parametrize(("report", "total", "text"), REPORTS)
def test_reports_of_memory(report, total, text):
    assert report.total == total
    assert str(report) == text
