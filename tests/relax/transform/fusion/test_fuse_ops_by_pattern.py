"""FuseOpsByPattern: what is grouped, what is left, and what the numbers are."""

import numpy as np
import pytest

import weft
from weft import relax
from weft.ir import assert_structural_equal
from weft.relax.dpl import is_const, is_op, is_tuple_get_item, wildcard
from weft.relax.transform import FuseOpsByPattern, FusionPattern, PatternCheckContext
from weft.script import ir as I
from weft.script import relax as R
from weft.support.errors import IRTypeError, IRValueError, PassError

MATMUL = is_op("relax.matmul")(wildcard(), wildcard())
MATMUL_RELU = is_op("relax.nn.relu")(MATMUL)


@I.ir_module
class Layer:
    @R.function
    def main(x: R.Tensor((2, 3), "float32"), w: R.Tensor((3, 3), "float32")):
        with R.dataflow():
            a = R.matmul(x, w)
            b = R.nn.relu(a)
            c = R.exp(b)
            R.output(c)
        return c


@I.ir_module
class LayerGrouped:
    @R.function
    def main(x: R.Tensor((2, 3), "float32"), w: R.Tensor((3, 3), "float32")):
        cls = LayerGrouped
        with R.dataflow():
            b = cls.fused_relax_matmul_relax_nn_relu(x, w)
            c = R.exp(b)
            R.output(c)
        return c

    @R.function(private=True)
    def fused_relax_matmul_relax_nn_relu(
        x: R.Tensor((2, 3), "float32"), w: R.Tensor((3, 3), "float32")
    ) -> R.Tensor((2, 3), "float32"):
        R.func_attr({"Composite": "lib.matmul_relu", "Primitive": 1})
        with R.dataflow():
            a = R.matmul(x, w)
            b = R.nn.relu(a)
            R.output(b)
        return b


def composites(module):
    found = [func.attrs.get("Composite") for func in module.functions.values()]
    return sorted(str(name) for name in found if name is not None)


def test_a_match_becomes_a_function():
    made = FuseOpsByPattern([("lib.matmul_relu", MATMUL_RELU)])(Layer)
    assert_structural_equal(made, LayerGrouped)


def test_nothing_changes_where_nothing_matches():
    assert FuseOpsByPattern([("lib.sin", is_op("relax.sin")(wildcard()))])(Layer) is Layer
    grouped = FuseOpsByPattern([("lib.matmul_relu", MATMUL_RELU)])
    assert grouped(LayerGrouped) is LayerGrouped


def test_earlier_patterns_win():
    patterns = [("lib.matmul_relu", MATMUL_RELU), ("lib.matmul", MATMUL)]
    assert composites(FuseOpsByPattern(patterns)(Layer)) == ["lib.matmul_relu"]
    assert composites(FuseOpsByPattern(patterns[::-1])(Layer)) == ["lib.matmul"]


def test_a_larger_match_takes_the_bindings_of_a_smaller_one():
    pattern = MATMUL | MATMUL_RELU
    made = FuseOpsByPattern([("lib.any", pattern)])(Layer)
    assert composites(made) == ["lib.any"]
    assert len(made["main"].body.blocks[0].bindings) == 2


def test_wrappers_carry_the_name_of_the_backend():
    @I.ir_module
    class Expected:
        @R.function
        def main(x: R.Tensor((2, 3), "float32"), w: R.Tensor((3, 3), "float32")):
            cls = Expected
            with R.dataflow():
                b = cls.fused_relax_matmul_relax_nn_relu_lib(x, w)
                c = R.exp(b)
                R.output(c)
            return c

        @R.function
        def fused_relax_matmul_relax_nn_relu_lib(
            x: R.Tensor((2, 3), "float32"), w: R.Tensor((3, 3), "float32")
        ) -> R.Tensor((2, 3), "float32"):
            R.func_attr({"Codegen": "lib"})

            @R.function
            def local_func(
                x1: R.Tensor((2, 3), "float32"), w1: R.Tensor((3, 3), "float32")
            ) -> R.Tensor((2, 3), "float32"):
                R.func_attr({"Composite": "lib.matmul_relu"})
                with R.dataflow():
                    a = R.matmul(x1, w1)
                    b = R.nn.relu(a)
                    R.output(b)
                return b

            output = local_func(x, w)
            return output

    made = FuseOpsByPattern([("lib.matmul_relu", MATMUL_RELU)], annotate_codegen=True)(Layer)
    assert_structural_equal(made, Expected)


def test_constants_are_kept_inside_or_passed():
    @I.ir_module
    class Shifted:
        @R.function
        def main(x: R.Tensor((3,), "float32")):
            with R.dataflow():
                y = R.add(x, R.const([1.0, 2.0, 3.0], "float32"))
                R.output(y)
            return y

    pattern = ("lib.add", is_op("relax.add")(wildcard(), is_const()))
    for bind, count in ((True, 1), (False, 2)):
        made = FuseOpsByPattern([pattern], bind_constants=bind)(Shifted)
        call = made["main"].body.blocks[0].bindings[0].value
        assert len(call.args) == count


def test_a_check_sees_the_match_and_may_refuse_it():
    seen = []

    def check(context):
        assert isinstance(context, PatternCheckContext)
        seen.append(context)
        return context.annotated_expr["root"].args[1].struct_info.shape[0] == 4

    pattern = FusionPattern("lib.matmul_relu", MATMUL_RELU, {"root": MATMUL}, check)
    assert FuseOpsByPattern([pattern])(Layer) is Layer
    context = seen[0]
    assert context.matched_expr.op.name == "relax.nn.relu"
    names = {var.name_hint for var in context.matched_bindings}
    assert names == {"a", "b"}
    users = {var.name_hint: [u.name_hint for u in us] for var, us in context.var_usages.items()}
    assert users["b"] == ["c"]
    assert context.value_to_bound_var[context.matched_expr].name_hint == "b"


def test_attributes_are_made_from_annotated_expressions():
    pattern = FusionPattern(
        "lib.matmul_relu", MATMUL_RELU, {"root": MATMUL}, None,
        lambda parts: {"rank": str(parts["root"].struct_info.ndim)},
    )  # fmt: skip
    made = FuseOpsByPattern([pattern])(Layer)
    assert made["fused_relax_matmul_relax_nn_relu"].attrs["rank"] == "2"


def test_a_match_that_would_depend_on_itself_is_left():
    @I.ir_module
    class Circle:
        @R.function
        def main(x: R.Tensor((3,), "float32")):
            with R.dataflow():
                a = R.nn.relu(x)
                b = R.exp(a)
                c = R.add(a, b)
                R.output(c)
            return c

    relu = is_op("relax.nn.relu")(wildcard())
    pattern = is_op("relax.add")(relu, wildcard())
    assert FuseOpsByPattern([("lib.add", pattern)])(Circle) is Circle


def test_two_groups_do_not_depend_on_each_other():
    """exp(a) + c and negative(b) + d: either pair can be grouped, both cannot."""

    @I.ir_module
    class Crossed:
        @R.function
        def main(x: R.Tensor((3,), "float32")):
            with R.dataflow():
                a = R.exp(x)
                b = R.exp(x * R.const(2.0, "float32"))
                c = R.add(a, R.sin(b))
                d = R.add(b, R.sin(a))
                e = R.multiply(c, d)
                R.output(e)
            return e

    exp = is_op("relax.exp")(wildcard())
    pattern = is_op("relax.add")(exp, is_op("relax.sin")(wildcard()))
    made = FuseOpsByPattern([("lib.sum", pattern)])(Crossed)
    assert relax.analysis.well_formed(made)
    x = np.linspace(0, 1, 3).astype("float32")
    np.testing.assert_allclose(run(made, x), run(Crossed, x), rtol=1e-6)


def run(module, *arrays):
    machine = relax.VirtualMachine(relax.build(module, target="llvm"), weft.cpu())
    return machine["main"](*(weft.nd.array(array) for array in arrays)).numpy()


def test_a_group_whose_parts_are_used_outside_returns_them_too():
    @I.ir_module
    class Branch:
        @R.function
        def main(x: R.Tensor((2, 3), "float32"), w: R.Tensor((3, 3), "float32")):
            with R.dataflow():
                a = R.matmul(x, w)
                b = R.nn.relu(a)
                c = R.add(a, b)
                R.output(c)
            return c

    made = FuseOpsByPattern([("lib.matmul_relu", MATMUL_RELU)])(Branch)
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((2, 3)).astype("f4"), rng.standard_normal((3, 3)).astype("f4")
    assert composites(made) == ["lib.matmul_relu"]
    np.testing.assert_allclose(run(made, x, w), run(Branch, x, w), rtol=1e-6)


def test_fields_of_a_tuple_belong_to_a_match():
    @I.ir_module
    class Halves:
        @R.function
        def main(x: R.Tensor((4,), "float32")):
            with R.dataflow():
                parts = R.split(x, 2)
                a = parts[0]
                b = R.exp(a)
                R.output(b)
            return b

    pattern = is_op("relax.exp")(is_tuple_get_item(is_op("relax.split")(wildcard()), 0))
    made = FuseOpsByPattern([("lib.half", pattern)])(Halves)
    assert len(made["main"].body.blocks[0].bindings) == 1


def test_a_match_stays_within_its_block():
    @I.ir_module
    class Blocks:
        @R.function
        def main(x: R.Tensor((2, 3), "float32"), w: R.Tensor((3, 3), "float32")):
            with R.dataflow():
                a = R.matmul(x, w)
                R.output(a)
            between = R.exp(x)  # noqa: F841 - keeps the two blocks apart
            with R.dataflow():
                b = R.nn.relu(a)
                R.output(b)
            return b

    assert FuseOpsByPattern([("lib.matmul_relu", MATMUL_RELU)])(Blocks) is Blocks


def test_only_entry_functions_are_partitioned():
    two = weft.IRModule({"main": Layer["main"], "other": relax_copy(Layer["main"])})
    fuse = FuseOpsByPattern([("lib.matmul_relu", MATMUL_RELU)], entry_functions=["other"])
    made = fuse(two)
    assert len(made["main"].body.blocks[0].bindings) == 3
    assert len(made["other"].body.blocks[0].bindings) == 2
    with pytest.raises(PassError, match="the module has no graph function 'absent'"):
        FuseOpsByPattern([("a.b", MATMUL)], entry_functions=["absent"])(two)


def relax_copy(func):
    return relax.utils.copy_with_new_vars(func).with_attr("global_symbol", "other")


def test_errors_name_what_was_expected():
    with pytest.raises(IRValueError, match="expected a FusionPattern, or a tuple"):
        FuseOpsByPattern([MATMUL])
    with pytest.raises(IRTypeError, match="FusionPattern: expected a name and a pattern"):
        FuseOpsByPattern([("lib.matmul", 3)])
    shared = weft.IRModule({"main": Layer["main"], "other": Layer["main"]})
    with pytest.raises(IRValueError, match="bound in two places"):
        FuseOpsByPattern([("lib.matmul_relu", MATMUL_RELU)])(shared)


def test_a_thousand_bindings_are_partitioned_quickly():
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorStructInfo((4, 4), "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            value = x
            for _ in range(500):
                value = builder.emit(relax.op.nn.relu(builder.emit(relax.op.matmul(value, x))))
            result = builder.emit_output(value)
        builder.emit_func_output(result)
    made = FuseOpsByPattern([("lib.matmul_relu", MATMUL_RELU)])(builder.get())
    assert len(made["main"].body.blocks[0].bindings) == 501  # the output renames the last one
    assert composites(made) == ["lib.matmul_relu"] * 2  # the first takes x for both arguments
