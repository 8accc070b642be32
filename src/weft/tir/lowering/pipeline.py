"""Which passes of this package run before code generation, in which order, and why there."""

from __future__ import annotations

from weft.ir.transform import Pass, Sequential
from weft.tir.lowering.decompose_math import DecomposeMath
from weft.tir.lowering.define_integers import DefineIntegers, Supported, supports_nothing
from weft.tir.lowering.insert_checks import InsertChecks
from weft.tir.lowering.share_values import ShareValues
from weft.tir.lowering.short_floats import WidenShortFloats


def lower_meaning(supported: Supported = supports_nothing, checks: bool = True) -> Pass:
    """The passes as one; ``supported`` says which expressions the target has instructions for.

    Code generation runs them itself: no pipeline of a user can leave them out.
    """
    return Sequential(
        (
            ShareValues(checks),  # first: of the branches below each is then visited once
            WidenShortFloats(),  # before conversions to integers, which are of float32 then
            InsertChecks(checks),  # bounds are proved before divisions in them are taken apart
            DefineIntegers(supported),  # guards, while conditions around an operation prove it safe
            DecomposeMath(supported),  # last: formulas have nothing to check, prove or guard
        ),
        name="tir.lower_meaning",
    )
