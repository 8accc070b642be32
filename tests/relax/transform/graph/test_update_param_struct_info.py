"""UpdateParamStructInfo: new infos of parameters reach results and callers."""

import numpy as np
import pytest

from weft.relax.struct_info import TensorStructInfo
from weft.relax.transform import UpdateParamStructInfo
from weft.script import ir as I
from weft.script import relax as R
from weft.support.errors import PassError, TVMError


@I.ir_module
class Before:
    @R.function
    def main(x: R.Tensor((2, 3), "float32"), w: R.Tensor((3, 4), "float32")):
        cls = Before
        a = cls.dense(x, w)
        b: R.Tensor((2, 4), "float32") = R.exp(a)
        return b

    @R.function(private=True)
    def dense(x: R.Tensor((2, 3), "float32"), w: R.Tensor((3, 4), "float32")) -> R.Tensor(
        (2, 4), "float32"
    ):
        a = R.matmul(x, w)
        return a


@I.ir_module
class Expected:
    @R.function
    def main(x: R.Tensor((2, 3), "float32"), w: R.Tensor((3, 5), "float32")):
        cls = Expected
        a: R.Tensor((2, 5), "float32") = cls.dense(x, w)
        b = R.exp(a)
        return b

    @R.function(private=True)
    def dense(x: R.Tensor((2, 3), "float32"), w: R.Tensor((3, 5), "float32")) -> R.Tensor(
        (2, 5), "float32"
    ):
        a = R.matmul(x, w)
        return a


def test_results_and_callers_follow(check):
    def wider(param):
        return TensorStructInfo((3, 5), "float32") if param.name_hint == "w" else None

    check(UpdateParamStructInfo(wider), Before, Expected)


def test_without_an_answer_nothing_changes(check):
    x, w = np.ones((2, 3), "float32"), np.ones((3, 4), "float32")
    check(UpdateParamStructInfo(lambda param: None), Before, Before, x, w)


def test_what_an_operator_cannot_take_is_its_error():
    def bad(param):
        return TensorStructInfo((7, 5), "float32") if param.name_hint == "w" else None

    with pytest.raises(TVMError, match="matmul"):
        UpdateParamStructInfo(bad)(Before)
    with pytest.raises(PassError, match="expected the function to return struct info or None, got"):
        UpdateParamStructInfo(lambda param: "float32")(Before)
