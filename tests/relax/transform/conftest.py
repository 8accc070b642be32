"""What every test of a graph pass asks: is the result the expected text, and does it compute it?"""

import sys

import numpy as np
import pytest

import weft
from weft import relax
from weft.ir.structural import assert_structural_equal
from weft.relax.analysis import well_formed
from weft.relax.reference import run


def _assert_equal_values(left, right):
    if isinstance(left, tuple):
        assert len(left) == len(right)
        for one, other in zip(left, right, strict=True):
            _assert_equal_values(one, other)
    else:
        np.testing.assert_array_equal(np.asarray(left), np.asarray(right))


@pytest.fixture
def check():
    """``check(pass, Before, Expected, *arrays, name="main")``: text, well-formedness, values."""

    def check_pass(graph_pass, before, expected, *arrays, name="main"):
        made = graph_pass(before)
        assert_structural_equal(made, expected)
        assert well_formed(made)
        if before is expected:
            assert made is before
        if arrays:
            _assert_equal_values(run(made, name, *arrays), run(before, name, *arrays))
        return made

    return check_pass


def _numpy(value):
    return tuple(map(_numpy, value)) if isinstance(value, tuple | list) else value.numpy()


def _assert_close_values(left, right, tolerance):
    if isinstance(left, tuple):
        assert len(left) == len(right)
        for one, other in zip(left, right, strict=True):
            _assert_close_values(one, other, tolerance)
    else:
        assert left.dtype == right.dtype
        np.testing.assert_allclose(left, right, rtol=tolerance, atol=tolerance)


@pytest.fixture
def check_native():
    """``check_native(before, after, *arrays, tolerance=0)``: compiled, both compute the same."""

    def check_modules(before, after, *arrays, tolerance=0.0):
        assert well_formed(after)
        results = []
        for mod in (before, after):
            machine = relax.VirtualMachine(relax.build(mod, "llvm"), weft.cpu())
            results.append(_numpy(machine["main"](*map(weft.nd.array, arrays))))
        _assert_close_values(*results, tolerance)

    return check_modules


@pytest.fixture
def calls():
    """``calls(function, *args)``: how many functions it calls, a measure of work without time."""

    def count(function, *args):
        number = 0

        def profile(frame, event, argument):
            nonlocal number
            number += event in ("call", "c_call")

        before = sys.getprofile()
        sys.setprofile(profile)
        try:
            function(*args)
        finally:
            sys.setprofile(before)
        return number

    return count
