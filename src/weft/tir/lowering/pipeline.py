"""The passes of this package that run before code generation, in their order, and why there."""

from __future__ import annotations

from weft.ir.transform import Pass, Sequential
from weft.tir.lowering.decompose_math import DecomposeMath
from weft.tir.lowering.define_integers import DefineIntegers, Supported, supports_nothing
from weft.tir.lowering.insert_checks import InsertChecks
from weft.tir.lowering.share_values import ShareValues
from weft.tir.lowering.short_floats import WidenShortFloats


def lower_meaning(supported: Supported = supports_nothing, checks: bool = True) -> Pass:
    """The passes as one; ``supported`` says which expressions the target has instructions for.

    Code generation runs them by itself, so that no pipeline of a user can leave them out.
    """
    return Sequential(
        (
            ShareValues(checks),  # first, so that the other passes visit shared branches once
            WidenShortFloats(),  # before DefineIntegers, which then converts float32 only
            InsertChecks(checks),  # before DefineIntegers, behind whose guards less is proved
            DefineIntegers(supported),  # guards what the conditions around it do not prove safe
            DecomposeMath(supported),  # last: formulas have nothing to check, prove or guard
        ),
        name="tir.lower_meaning",
    )
