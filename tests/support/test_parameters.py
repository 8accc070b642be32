"""What weft says of a function that does not take what it is called with."""

import pytest

from weft.support.parameters import mismatch


def both(call, *, axis):
    """Takes an argument and a keyword."""


@pytest.mark.parametrize(
    ("function", "args", "keywords", "message"),
    [
        (both, ["call"], ["axis"], None),
        (lambda *args, **attrs: args, ["x", "y"], ["axis"], None),
        (both, ["call"], [], "missing a required argument: 'axis'; it is called with (call)"),
        (lambda: 0, ["x"], ["axis"], "too many positional arguments; it is called with (x, axis=)"),
        (max, [], [], None),
    ],
)
def test_what_is_told(function, args, keywords, message):
    assert mismatch(function, args, keywords) == message
