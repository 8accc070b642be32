"""Numbers of the interpreter at the ends of their types."""

from __future__ import annotations

import numpy as np

from weft.support.dtype import DataType
from weft.tir.interp import arithmetic


def test_the_least_integer_is_divided_in_lanes_as_alone():
    """The absolute value of -128 is no int8."""
    lanes = np.array([-128, -128, -127, 127], "int8"), np.array([7, -1, 7, -7], "int8")
    for name in ("Div", "Mod", "FloorDiv", "FloorMod"):
        one = arithmetic.binary(name, DataType("int8"))
        expected = [one(int(a), int(b)) for a, b in zip(*lanes, strict=True)]
        with np.errstate(all="ignore"):
            vector = arithmetic.binary(name, DataType("int8x4"))(*lanes)
        assert vector.tolist() == expected
