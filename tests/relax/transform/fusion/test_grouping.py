"""Grouping: partitions of bindings as functions: parameters, results, order, sharing."""

import numpy as np
import pytest

import weft
from weft import ir, relax
from weft.relax.transform.fusion.grouping import Group, make_grouped_functions
from weft.script import ir as I
from weft.script import relax as R
from weft.script import tir as T
from weft.support.errors import PassError


def partition(mod, *names, func="main", **attrs):
    """A partition by the names of variables: each argument is one group, ``"lv lv1"``."""
    by_name = {
        binding.var.name_hint: binding.var
        for block in mod[func].body.blocks
        for binding in block.bindings
    }
    groups = {}
    for text in names:
        group = Group(dict(attrs))
        groups.update({by_name[name]: group for name in text.split()})
    return groups


def grouped(mod, *names, lift_constants=True, **attrs):
    made = make_grouped_functions(mod, partition(mod, *names, **attrs), lift_constants)
    assert relax.analysis.well_formed(made)
    return made


def run(mod, *arrays):
    machine = relax.VirtualMachine(relax.build(mod, "llvm"), weft.cpu())
    found = machine["main"](*[weft.nd.array(array) for array in arrays])
    return [item.numpy() for item in (found if isinstance(found, tuple | list) else [found])]


def test_parameters_in_the_order_of_first_use():
    @I.ir_module
    class Before:
        @R.function
        def main(a: R.Tensor((4,), "float32"), b: R.Tensor((4,), "float32")):
            with R.dataflow():
                lv = R.exp(b)
                lv1 = R.add(lv, a)
                lv2 = R.multiply(lv1, b)
                gv = R.negative(lv2)
                R.output(gv)
            return gv

    @I.ir_module
    class Expected:
        @R.function(private=True)
        def fused_relax_add_relax_multiply(
            lv: R.Tensor((4,), "float32"),
            a: R.Tensor((4,), "float32"),
            b: R.Tensor((4,), "float32"),
        ) -> R.Tensor((4,), "float32"):
            R.func_attr({"Primitive": 1})
            with R.dataflow():
                lv1 = R.add(lv, a)
                gv = R.multiply(lv1, b)
                R.output(gv)
            return gv

        @R.function
        def main(a: R.Tensor((4,), "float32"), b: R.Tensor((4,), "float32")):
            cls = Expected
            with R.dataflow():
                lv = R.exp(b)
                lv2 = cls.fused_relax_add_relax_multiply(lv, a, b)
                gv = R.negative(lv2)
                R.output(gv)
            return gv

    after = grouped(Before, "lv1 lv2")
    ir.assert_structural_equal(after, Expected)
    x, y = np.arange(4, dtype="float32"), np.ones(4, "float32")
    np.testing.assert_allclose(run(after, x, y)[0], run(Before, x, y)[0])


def test_results_are_outputs_first_then_what_others_use():
    @I.ir_module
    class Before:
        @R.function
        def main(a: R.Tensor((4,), "float32")):
            with R.dataflow():
                lv = R.exp(a)
                gv = R.negative(lv)
                gv1 = R.sqrt(lv)
                R.output(gv, gv1)
            return (gv1, gv)

    @I.ir_module
    class Expected:
        @R.function(private=True)
        def fused_relax_exp_relax_negative(
            a: R.Tensor((4,), "float32"),
        ) -> R.Tuple(R.Tensor((4,), "float32"), R.Tensor((4,), "float32")):
            R.func_attr({"Primitive": 1})
            with R.dataflow():
                lv = R.exp(a)
                gv = R.negative(lv)
                R.output(lv, gv)
            return (gv, lv)

        @R.function
        def main(a: R.Tensor((4,), "float32")):
            cls = Expected
            with R.dataflow():
                both = cls.fused_relax_exp_relax_negative(a)
                gv = both[0]
                lv = both[1]
                gv1 = R.sqrt(lv)
                R.output(gv, gv1)
            return (gv1, gv)

    after = grouped(Before, "lv gv")
    ir.assert_structural_equal(after, Expected)
    x = np.arange(4, dtype="float32")
    for got, expected in zip(run(after, x), run(Before, x), strict=True):
        np.testing.assert_allclose(got, expected)


def test_equal_functions_are_shared_and_names_are_counted():
    @I.ir_module
    class Before:
        @R.function
        def main(a: R.Tensor((4,), "float32"), b: R.Tensor((2,), "float32")):
            with R.dataflow():
                lv = R.exp(a)
                lv1 = R.negative(lv)
                lv2 = R.exp(lv1)
                lv3 = R.negative(lv2)
                lv4 = R.exp(b)
                lv5 = R.negative(lv4)
                gv = (lv3, lv5)
                R.output(gv)
            return gv

    after = grouped(Before, "lv lv1", "lv2 lv3", "lv4 lv5")
    names = {gvar.name_hint for gvar in after.functions}
    assert names == {
        "main", "fused_relax_exp_relax_negative", "fused_relax_exp_relax_negative1"
    }  # fmt: skip


def test_attributes_make_a_function_of_one_binding():
    @I.ir_module
    class Before:
        @R.function
        def main(a: R.Tensor((4,), "float32")):
            with R.dataflow():
                gv = R.exp(a)
                R.output(gv)
            return gv

    assert make_grouped_functions(Before, partition(Before, "gv")) is Before
    after = grouped(Before, "gv", Composite="x.exp")
    func = after["fused_relax_exp"]
    assert func.attrs["Composite"] == "x.exp"
    assert func.attrs["Primitive"] == 1
    assert make_grouped_functions(after, partition(after, "gv", func="fused_relax_exp")) is after


@pytest.mark.parametrize("lift", [True, False])
def test_constants(lift):
    bb = relax.BlockBuilder()
    a = relax.Var("a", relax.TensorStructInfo((4,), "float32"))
    weight = relax.const(np.arange(4, dtype="float32"))
    with bb.function("main", [a]):
        with bb.dataflow():
            x = bb.emit(relax.op.add(a, weight))
            out = bb.emit_output(relax.op.multiply(x, weight))
        bb.emit_func_output(out)
    before = bb.get()
    after = grouped(before, "lv gv", lift_constants=lift)
    func = after["fused_relax_add_relax_multiply"]
    assert [p.name_hint for p in func.params] == (["a", "param_0"] if lift else ["a"])
    call = after["main"].body.blocks[0].bindings[0].value
    assert len(call.args) == (2 if lift else 1)
    x = np.ones(4, "float32")
    np.testing.assert_allclose(run(after, x)[0], run(before, x)[0])


def test_symbols_without_a_parameter_are_passed_as_a_shape():
    @I.ir_module
    class Before:
        @R.function
        def main(a: R.Tensor((1, "n + 1"), "float32"), s: R.Shape(["n"])):
            n = T.int64()
            with R.dataflow():
                lv = R.exp(a)
                gv = R.broadcast_to(lv, R.shape([4, n + 1]))
                R.output(gv)
            return gv

    after = grouped(Before, "lv gv")
    func = after["fused_relax_exp_relax_broadcast_to"]
    assert [p.name_hint for p in func.params] == ["a", "param_0", "tir_vars"]
    assert isinstance(func.params[2].struct_info, relax.ShapeStructInfo)
    own = relax.analysis.tir_vars_in_struct_info(func.params[0].struct_info)
    main = relax.analysis.tir_vars_in_struct_info(after["main"].params[0].struct_info)
    assert own[0] is not main[0]


def test_fields_of_a_tuple_are_passed_alone():
    @I.ir_module
    class Before:
        @R.function
        def main(
            t: R.Tuple(
                R.Tensor((4,), "float32"), R.Tensor((2,), "float32"), R.Tensor((4,), "float32")
            ),
        ):
            with R.dataflow():
                lv = t[2]
                lv1 = t[0]
                gv = R.add(lv, lv1)
                R.output(gv)
            return gv

    after = grouped(Before, "lv lv1 gv")
    func = after["fused_relax_add"]
    assert [p.name_hint for p in func.params] == ["t_2", "t_0"]
    assert len(func.body.blocks[0].bindings) == 1


def test_a_tuple_used_whole_stays_whole():
    @I.ir_module
    class Before:
        @R.function
        def main(t: R.Tuple(R.Tensor((4,), "float32"), R.Tensor((4,), "float32"))):
            with R.dataflow():
                lv = R.concat(t)
                lv1 = t[0]
                lv2 = R.concat((lv, lv1))
                gv = R.exp(lv2)
                R.output(gv)
            return gv

    after = grouped(Before, "lv lv1 lv2 gv")
    (func,) = [after[g] for g in after.functions if g.name_hint != "main"]
    assert [p.name_hint for p in func.params] == ["t"]


def test_calls_move_only_behind_what_they_need():
    """The group waits for the match_cast whose symbol it mentions."""

    @I.ir_module
    class Before:
        @R.function
        def main(a: R.Tensor(("n",), "float32"), b: R.Tensor(ndim=1, dtype="float32")):
            m = T.int64()
            with R.dataflow():
                lv = R.exp(a)
                cast = R.match_cast(b, R.Tensor((m,), "float32"))
                ones = R.ones(R.shape([m]), "float32")
                gv = R.concat((lv, ones))
                gv1 = R.exp(cast)
                R.output(gv, gv1)
            return (gv, gv1)

    after = grouped(Before, "lv ones gv")
    order = [b.var.name_hint for b in after["main"].body.blocks[0].bindings]
    assert order == ["cast", "gv", "gv1"]
    x, y = np.arange(3, dtype="float32"), np.arange(2, dtype="float32")
    for got, expected in zip(run(after, x, y), run(Before, x, y), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-6)


def test_a_circle_is_an_error():
    @I.ir_module
    class Before:
        @R.function
        def main(a: R.Tensor((4,), "float32")):
            with R.dataflow():
                lv = R.exp(a)
                lv1 = R.negative(lv)
                gv = R.add(lv, lv1)
                R.output(gv)
            return gv

    with pytest.raises(PassError, match="in a circle, but that of lv1 and that of gv do"):
        make_grouped_functions(Before, partition(Before, "lv gv"))
