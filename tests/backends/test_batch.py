"""What the conformance suite finds: differences, faults, writes beside arrays."""

from __future__ import annotations

import numpy as np
import pytest

from tests.backends import batch
from tests.backends.batch import GUARD, MARK, Case, check
from tests.backends.cases import GATHER, GROUPS
from tests.backends.platforms import NATIVE
from weft.tir.interp import run

pytestmark = pytest.mark.skipif(bool(NATIVE.missing()), reason=NATIVE.missing() or "none")


def gather(place=3):
    places = np.full(96, place, "int32")
    return Case("gather", GATHER, (np.arange(96, dtype="float32"), places, np.zeros(96, "float32")))


def test_a_difference_is_told_with_its_place(tmp_path, monkeypatch):
    def other(func, *arrays):
        run(func, *arrays)
        arrays[2][7] = -1

    monkeypatch.setattr(batch, "run", other)
    with pytest.raises(AssertionError, match=r"1 of 1 on native:\ngather: argument 2: 1 of 96 .*"
                       r"first at \(7,\): expected .*-1.0.*, got .*3.0"):  # fmt: skip
        check([gather()], NATIVE, tmp_path)


def test_a_fault_that_does_not_come_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr(batch, "run", lambda _, *arrays: run(GATHER, *gather(96).arguments))
    with pytest.raises(AssertionError, match="gather: expected a fault .*, got done"):
        check([gather()], NATIVE, tmp_path)


@pytest.mark.parametrize("place", [GUARD - 1, GUARD + 4 * 96])
def test_writes_beside_an_array_are_told(place):
    case = gather()
    places, memory = batch._laid_out([case])
    assert memory[place] == MARK
    memory[place] = 0
    found = batch._difference(case, places[0], "0 gather done", memory)
    assert found == "it wrote beside argument 0"


@pytest.mark.parametrize(
    ("wanted", "found", "same"),
    [
        (0.0, -0.0, False), (np.nan, np.nan, True), (np.nan, 1.0, False), (np.inf, np.inf, True),
        (1.0, np.nextafter(np.float32(1), np.float32(2)), False), (np.inf, 3e38, False),
    ],
)  # fmt: skip
def test_bits_are_compared(wanted, found, same):
    arrays = [np.array([1.0, value], "float32") for value in (wanted, found)]
    assert (batch._unequal(gather(), *arrays) == "") is same


def test_last_places_are_counted():
    case = Case("", GATHER, (), ulp=2)
    one = np.array([1.0, 1e-45], "float32")
    assert batch._unequal(case, one, one + np.float32([2.0**-22, 0])) == ""
    assert batch._unequal(case, one, one + np.float32([2.0**-21, 0])) != ""


def test_every_type_of_number_is_in_every_group_of_operations():
    names = " ".join(case.name for group in GROUPS.values() for case in group())
    for dtype in ("int8", "int16", "int32", "int64", "uint8", "uint64", "bfloat16", "float16"):
        assert names.count(f" {dtype}") > 20
