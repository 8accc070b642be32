"""AlterOpImpl: other implementations of operators, with layouts of their own."""

import numpy as np
import pytest

from weft import relax
from weft.relax.transform import AlterOpImpl, DeadCodeElimination
from weft.script import ir as I
from weft.script import relax as R
from weft.script import tir as T
from weft.support.errors import PassError
from weft.tir import IndexMap


@I.ir_module
class Add:
    @T.prim_func(private=True)
    def add(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32"),
            C: T.Buffer((16,), "float32")):  # fmt: skip
        T.func_attr({"operator_name": "my.add"})
        for i in range(16):
            with T.block("add"):
                vi = T.axis.spatial(16, i)
                C[vi] = A[vi] + B[vi]

    @R.function
    def main(x: R.Tensor((16,), "float32"), y: R.Tensor((16,), "float32")):
        with R.dataflow():
            a = R.call_tir(Add.add, (x, y), out_sinfo=R.Tensor((16,), "float32"))
            out = R.call_tir(Add.add, (a, y), out_sinfo=R.Tensor((16,), "float32"))
            R.output(out)
        return out


@T.prim_func(private=True)
def add_square(A: T.Buffer((4, 4), "float32"), B: T.Buffer((4, 4), "float32"),
               C: T.Buffer((4, 4), "float32")):  # fmt: skip
    for i, j in T.grid(4, 4):
        with T.block("add"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = A[vi, vj] + B[vi, vj]


def square(i):
    return i // 4, i % 4


def altered(mod, name, func, transforms, after=None, before=None):
    made = AlterOpImpl({name: func}, {name: transforms}, {name: after}, {name: before})(mod)
    return DeadCodeElimination()(made)


def calls(mod, name):
    values = relax.analysis.get_var2val(mod["main"]).values()
    return [v for v in values if isinstance(v, relax.Call) and v.op.name == f"relax.{name}"]


def test_a_replacement_with_layouts(check_native):
    made = altered(Add, "my.add", add_square, [square] * 3)
    assert sorted(gvar.name_hint for gvar in made.functions) == ["main", "my_add_replacement"]
    assert made["my_add_replacement"].attrs["operator_name"] == "my.add"
    assert [str(call.args[0].name_hint) for call in calls(made, "layout_transform")] == [
        "x", "y", "lv2", "a", "y", "lv5",
    ]  # fmt: skip
    data = [np.arange(16, dtype="float32"), np.ones(16, "float32")]
    check_native(Add, made, *data)


def test_the_form(check):
    @I.ir_module
    class Before:
        @T.prim_func(private=True)
        def twice(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
            T.func_attr({"operator_name": "my.twice"})
            for i in range(16):
                with T.block("twice"):
                    vi = T.axis.spatial(16, i)
                    B[vi] = A[vi] * T.float32(2)

        @R.function
        def main(x: R.Tensor((16,), "float32")):
            with R.dataflow():
                out = R.call_tir(Before.twice, (x,), out_sinfo=R.Tensor((16,), "float32"))
                R.output(out)
            return out

    @T.prim_func(private=True)
    def twice_square(A: T.Buffer((4, 4), "float32"), B: T.Buffer((16,), "float32")):
        for i in range(16):
            with T.block("twice"):
                vi = T.axis.spatial(16, i)
                B[vi] = A[vi // 4, vi % 4] * T.float32(2)

    @I.ir_module
    class Expected:
        @R.function
        def main(x: R.Tensor((16,), "float32")):
            with R.dataflow():
                lv = R.layout_transform(x, lambda i: (i // 4, i % 4))
                out = R.call_tir(
                    Expected.my_twice_replacement, (lv,), out_sinfo=R.Tensor((16,), "float32")
                )
                R.output(out)
            return out

        @T.prim_func(private=True)
        def my_twice_replacement(A: T.Buffer((4, 4), "float32"), B: T.Buffer((16,), "float32")):
            T.func_attr({"operator_name": "my.twice"})
            for i in range(16):
                with T.block("twice"):
                    vi = T.axis.spatial(16, i)
                    B[vi] = A[vi // 4, vi % 4] * T.float32(2)

    def run(mod):
        return altered(mod, "my.twice", twice_square, [square, None])

    check(run, Before, Expected, np.arange(16, dtype="float32"))


def test_no_transformations_keep_the_tensors(check_native):
    @T.prim_func(private=True)
    def reversed_loop(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32"),
                      C: T.Buffer((16,), "float32")):  # fmt: skip
        for i in range(16):
            with T.block("add"):
                vi = T.axis.spatial(16, 15 - i)
                C[vi] = B[vi] + A[vi]

    made = altered(Add, "my.add", reversed_loop, [])
    assert not calls(made, "layout_transform")
    check_native(Add, made, np.arange(16, dtype="float32"), np.ones(16, "float32"))


@I.ir_module
class Padded:
    @T.prim_func(private=True)
    def relu(A: T.Buffer((14,), "float32"), B: T.Buffer((14,), "float32")):
        T.func_attr({"operator_name": "my.relu"})
        for i in range(14):
            with T.block("relu"):
                vi = T.axis.spatial(14, i)
                B[vi] = T.max(A[vi], T.float32(0))

    @R.function
    def main(x: R.Tensor((14,), "float32")):
        with R.dataflow():
            out = R.call_tir(Padded.relu, (x,), out_sinfo=R.Tensor((14,), "float32"))
            R.output(out)
        return out


def test_padding_is_cut_off(check_native):
    @T.prim_func(private=True)
    def relu_square(A: T.Buffer((4, 4), "float32"), B: T.Buffer((4, 4), "float32")):
        for i, j in T.grid(4, 4):
            with T.block("relu"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = T.max(A[vi, vj], T.float32(0))

    made = altered(Padded, "my.relu", relu_square, [square, square])
    assert made["remove_pad"].attrs["operator_name"] == "remove_pad"
    check_native(Padded, made, np.arange(14, dtype="float32") - 7)


def test_several_outputs_and_separators(check_native):
    @I.ir_module
    class Before:
        @T.prim_func(private=True)
        def both(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32"),
                 C: T.Buffer((16,), "float32")):  # fmt: skip
            T.func_attr({"operator_name": "my.both"})
            for i in range(16):
                with T.block("both"):
                    vi = T.axis.spatial(16, i)
                    B[vi] = A[vi] + T.float32(1)
                    C[vi] = A[vi] * T.float32(2)

        @R.function
        def main(x: R.Tensor((16,), "float32")):
            with R.dataflow():
                both = R.call_tir(
                    Before.both,
                    (x,),
                    out_sinfo=[R.Tensor((16,), "float32"), R.Tensor((16,), "float32")],
                )
                left = both[0]
                right = both[1]
                out = R.subtract(left, right)
                R.output(out)
            return out  # fmt: skip

    @T.prim_func(private=True)
    def both_square(A: T.Buffer((4, 4), "float32"), B: T.Buffer((4, 4), "float32"),
                    C: T.Buffer((4, 4), "float32")):  # fmt: skip
        for i, j in T.grid(4, 4):
            with T.block("both"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] + T.float32(1)
                C[vi, vj] = A[vi, vj] * T.float32(2)

    index_map, separators = IndexMap.from_func_with_separators(
        lambda i: (i // 4, IndexMap.AXIS_SEPARATOR, i % 4)
    )
    made = altered(Before, "my.both", both_square, [(index_map, separators)] * 3, [separators] * 3)
    found = calls(made, "layout_transform")
    assert len(found) == 3
    assert all([int(s) for s in call.attrs["axis_separators"]] == [1] for call in found)
    plain = altered(Before, "my.both", both_square, [index_map] * 3)
    check_native(Before, plain, np.arange(16, dtype="float32"))


def test_other_operators_stay():
    assert AlterOpImpl({"my.mul": add_square}, {"my.mul": [square] * 3}, {}, {})(Add) is Add


def test_wrong_numbers_are_errors():
    with pytest.raises(PassError, match="each of the 3 parameters of the replacement, got 2"):
        AlterOpImpl({"my.add": add_square}, {"my.add": [square] * 2}, {}, {})
    with pytest.raises(PassError, match="a replacement with 2 parameters as relu has, got 3"):
        AlterOpImpl({"my.relu": add_square}, {"my.relu": [square] * 3}, {}, {})(Padded)
