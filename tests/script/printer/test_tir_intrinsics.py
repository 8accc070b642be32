"""A call of every registered TensorIR intrinsic comes back from its text."""

import pytest

from tests.lib.round_trip import assert_round_trip
from weft.ir.op import Op
from weft.tir.expr import Call, Var
from weft.tir.function import PrimFunc
from weft.tir.stmt import Evaluate

NAMES = [name for name in Op.list_op_names() if name.startswith("tir.")]
FLOATS = [Var(name, "float32") for name in "abcd"]
INTS = [Var(name, "int32") for name in "ijkl"]
NO_SUCH_CALL = {
    "tir.call_extern": {2, 3, 4}, "tir.call_pure_extern": {2, 3, 4}, "tir.reinterpret": {2, 3},
    "tir.type_annotation": {1}, "tir.vectorcombine": {3}, "tir.vectorhigh": {2},
    "tir.vectorlow": {2},
}  # fmt: skip
"""Numbers of arguments that read as another call: a name or a data type comes first there."""


@pytest.mark.parametrize("name", NAMES)
def test_a_call_comes_back(name):
    for args in (FLOATS, INTS):
        for count in range(5):
            if count in NO_SUCH_CALL.get(name, ()):
                continue
            call = Call(str(args[0].dtype), Op.get(name), args[:count])
            func = PrimFunc([*FLOATS, *INTS], Evaluate(call))
            assert_round_trip(func.with_attr("global_symbol", "f"))
