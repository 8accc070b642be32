"""Which cases `make test` runs of tests that are marked ``sampled``."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest

from tests.lib.sampling import left_out


@dataclass(eq=False)
class Item:
    """What ``left_out`` reads of a test: its names, its marker and its parameters."""

    test: str
    case: str
    marker: pytest.Mark | None
    callspec: SimpleNamespace = field(init=False)

    def __post_init__(self):
        self.callspec = SimpleNamespace(params={"case": self.case})

    @property
    def name(self):
        return f"{self.test}[{self.case}]"

    @property
    def nodeid(self):
        return f"tests/test_x.py::{self.name}"

    def get_closest_marker(self, name):
        return self.marker


def cases_that_run(items):
    unwanted = left_out(items)
    return [item.case for item in items if item not in unwanted]


def test_a_share_of_each_test_runs_the_same_in_every_run():
    third = pytest.mark.sampled(3).mark
    items = [Item("test_a", case, third) for case in "abcdefg"]
    few = cases_that_run(items)
    assert len(few) == 3
    assert sorted(few) == sorted(cases_that_run(items[::-1]))
    assert len(cases_that_run([*items, Item("test_b", "h", third)])) == 4


def test_every_group_keeps_a_case():
    tenth = pytest.mark.sampled(10, by=lambda parameters: parameters["case"][0]).mark
    items = [Item("test_a", case, tenth) for case in ("add 1", "add 2", "sub 1", "mul 1", "mul 2")]
    assert {case[0] for case in cases_that_run(items)} == {"a", "s", "m"}
    assert len(cases_that_run(items)) == 3


def test_tests_without_the_marker_run():
    assert cases_that_run([Item("test_a", case, None) for case in "abc"]) == ["a", "b", "c"]
