"""NormalizeGlobalVar: public functions take their names, private ones move."""

import numpy as np
import pytest

from weft.relax.analysis import well_formed
from weft.relax.transform import NormalizeGlobalVar
from weft.script import ir as I
from weft.script import relax as R
from weft.support.errors import IRValueError

X = np.arange(6, dtype="float32").reshape(2, 3)


def test_a_private_function_moves_out_of_the_way(check):
    @I.ir_module(check_well_formed=False)
    class Before:
        @R.function(private=True)
        def f(x: R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32"):
            a = R.exp(x)
            return a

        @R.function
        def g(x: R.Tensor((2, 3), "float32")):
            R.func_attr({"global_symbol": "f"})
            cls = Before
            a: R.Tensor((2, 3), "float32") = cls.f(x)
            return a

    @I.ir_module
    class Expected:
        @R.function(private=True)
        def f1(x: R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32"):
            a = R.exp(x)
            return a

        @R.function
        def f(x: R.Tensor((2, 3), "float32")):
            cls = Expected
            a: R.Tensor((2, 3), "float32") = cls.f1(x)
            return a

    assert not well_formed(Before)
    made = check(NormalizeGlobalVar(), Before, Expected)
    assert NormalizeGlobalVar()(made) is made


def test_two_functions_cannot_have_one_symbol():
    @I.ir_module(check_well_formed=False)
    class Before:
        @R.function
        def f(x: R.Tensor((2, 3), "float32")):
            R.func_attr({"global_symbol": "h"})
            return x

        @R.function
        def g(x: R.Tensor((2, 3), "float32")):
            R.func_attr({"global_symbol": "h"})
            return x

    with pytest.raises(IRValueError, match="both f and g have the global_symbol 'h'"):
        NormalizeGlobalVar()(Before)
