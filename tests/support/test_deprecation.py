"""Names that will go: what their users are told, and when they must be gone."""

from __future__ import annotations

import datetime
import warnings

import pytest

from weft.support.deprecation import deprecated, is_overdue
from weft.support.errors import IRValueError


@deprecated("weft.twice", since="0.2", removal="0.4", replacement="weft.double")
def twice(x: int) -> int:
    """Twice the number."""
    return 2 * x


def test_the_caller_is_told_once_at_each_line():
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("default")
        for _ in range(3):
            assert twice(2) == 4
        assert twice(3) == 6
    assert len(told) == 2
    assert {item.category for item in told} == {DeprecationWarning}
    assert {item.filename for item in told} == {__file__}
    assert told[1].lineno == told[0].lineno + 1
    assert str(told[0].message) == (
        "weft.twice is deprecated since weft 0.2 and goes in 0.4; write weft.double"
    )


def test_the_function_keeps_its_name_and_doc():
    assert (twice.__name__, twice.__doc__) == ("twice", "Twice the number.")


def test_a_day_of_removal():
    function = deprecated("a", since="0.2", removal="2027-06-30", replacement="b")(lambda: 1)
    with pytest.warns(DeprecationWarning, match="goes after 2027-06-30; write b"):
        function()


@pytest.mark.parametrize(
    ("removal", "version", "overdue"),
    [
        ("0.4", "0.3.9", False),
        ("0.4", "0.4", True),
        ("0.4.0", "0.4", True),
        ("1.0", "0.99", False),
        ("1.0", "1.0.0rc1", True),
        ("2027-06-30", "9.0", False),
        ("2027-06-29", "0.1", True),
    ],
)
def test_when_a_name_must_be_gone(removal, version, overdue):
    assert is_overdue(removal, version, datetime.date(2027, 6, 30)) is overdue


@pytest.mark.parametrize("removal", ["soon", ""])
def test_a_removal_that_says_nothing(removal):
    with pytest.raises(IRValueError, match=r"expected a version such as 0\.4 or a day"):
        deprecated("a", since="0.2", removal=removal, replacement="b")


def test_a_day_that_is_none():
    with pytest.raises(IRValueError, match="expected a version such as"):
        deprecated("a", since="0.2", removal="2027-02-31", replacement="b")
