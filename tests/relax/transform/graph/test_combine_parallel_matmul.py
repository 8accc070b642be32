"""CombineParallelMatmul: products with one left side are one product and a split."""

import numpy as np
import pytest

from weft import relax
from weft.ir.module import IRModule
from weft.relax import op
from weft.relax.transform import CombineParallelMatmul
from weft.script import ir as I
from weft.script import relax as R


def operators(mod, name="main"):
    """The names of the operators that the function calls, in order."""
    values = relax.analysis.get_var2val(mod[name]).values()
    return [value.op.name[6:] for value in values if isinstance(value, relax.Call)]


def arrays(*shapes):
    rng = np.random.default_rng(0)
    return [rng.integers(-3, 4, shape).astype("float32") for shape in shapes]


def test_three_products_become_one(check, check_native):
    @I.ir_module
    class Before:
        @R.function
        def main(x: R.Tensor((2, 3), "float32"), a: R.Tensor((3, 4), "float32"),
                 b: R.Tensor((3, 2), "float32"), c: R.Tensor((3, 5), "float32")):  # fmt: skip
            with R.dataflow():
                p = R.matmul(x, a)
                q = R.matmul(x, b)
                r = R.matmul(x, c)
                out = (p, q, r)
                R.output(out)
            return out

    @I.ir_module
    class Expected:
        @R.function
        def main(x: R.Tensor((2, 3), "float32"), a: R.Tensor((3, 4), "float32"),
                 b: R.Tensor((3, 2), "float32"), c: R.Tensor((3, 5), "float32")):  # fmt: skip
            with R.dataflow():
                w = R.concat((a, b, c), axis=1)
                y = R.matmul(x, w, out_dtype="float32")
                parts = R.split(y, indices_or_sections=[4, 6], axis=1)
                p = parts[0]
                q = parts[1]
                r = parts[2]
                out = (p, q, r)
                R.output(out)
            return out

    data = arrays((2, 3), (3, 4), (3, 2), (3, 5))
    made = check(CombineParallelMatmul(), Before, Expected, *data)
    check_native(Before, made, *data)
    check(CombineParallelMatmul(), made, made)


def test_bias_and_activation_go_along(check, check_native):
    @I.ir_module
    class Before:
        @R.function
        def main(x: R.Tensor((2, 4, 3), "float32"), a: R.Tensor((3, 4), "float32"),
                 b: R.Tensor((3, 4), "float32"), s: R.Tensor((4,), "float32"),
                 t: R.Tensor((4,), "float32")):  # fmt: skip
            with R.dataflow():
                p = R.matmul(x, a)
                p1 = R.add(p, s)
                p2 = R.nn.relu(p1)
                q = R.matmul(x, b)
                q1 = R.add(t, q)
                q2 = R.nn.relu(q1)
                out = R.add(p2, q2)
                R.output(out)
            return out

    @I.ir_module
    class Expected:
        @R.function
        def main(x: R.Tensor((2, 4, 3), "float32"), a: R.Tensor((3, 4), "float32"),
                 b: R.Tensor((3, 4), "float32"), s: R.Tensor((4,), "float32"),
                 t: R.Tensor((4,), "float32")):  # fmt: skip
            with R.dataflow():
                w = R.concat((a, b), axis=1)
                y = R.matmul(x, w, out_dtype="float32")
                bias = R.concat((s, t), axis=0)
                z = R.add(y, bias)
                u = R.nn.relu(z)
                parts = R.split(u, indices_or_sections=[4], axis=2)
                p2 = parts[0]
                q2 = parts[1]
                out = R.add(p2, q2)
                R.output(out)
            return out

    data = arrays((2, 4, 3), (3, 4), (3, 4), (4,), (4,))
    made = check(CombineParallelMatmul(), Before, Expected, *data)
    check_native(Before, made, *data)


def test_what_only_one_branch_has_stays_outside(check_native):
    @I.ir_module
    class Before:
        @R.function
        def main(x: R.Tensor((2, 3), "float32"), a: R.Tensor((3, 4), "float32"),
                 b: R.Tensor((3, 4), "float32"), s: R.Tensor((4,), "float32"),
                 one: R.Tensor((1,), "float32")):  # fmt: skip
            with R.dataflow():
                p = R.matmul(x, a)
                p1 = R.add(p, s)
                q = R.matmul(x, b)
                q1 = R.add(q, one)
                q2 = R.nn.gelu(q1)
                out = (p1, q2)
                R.output(out)
            return out

    made = CombineParallelMatmul()(Before)
    assert operators(made) == ["concat", "matmul", "split", "add", "add", "nn.gelu"]
    check_native(Before, made, *arrays((2, 3), (3, 4), (3, 4), (4,), (1,)))


def test_a_product_that_others_use_keeps_its_value(check_native):
    @I.ir_module
    class Before:
        @R.function
        def main(x: R.Tensor((2, 3), "float32"), a: R.Tensor((3, 4), "float32"),
                 b: R.Tensor((3, 4), "float32")):  # fmt: skip
            with R.dataflow():
                p = R.matmul(x, a)
                p1 = R.nn.relu(p)
                q = R.matmul(x, b)
                q1 = R.nn.relu(q)
                out = (p, p1, q1)
                R.output(out)
            return out

    made = CombineParallelMatmul()(Before)
    assert operators(made) == ["concat", "matmul", "split", "nn.relu", "nn.relu"]
    check_native(Before, made, *arrays((2, 3), (3, 4), (3, 4)))


def test_branches_that_need_each_other_are_left_out(check_native):
    @I.ir_module
    class Before:
        @R.function
        def main(x: R.Tensor((3, 3), "float32"), a: R.Tensor((3, 3), "float32"),
                 b: R.Tensor((3, 3), "float32")):  # fmt: skip
            with R.dataflow():
                p = R.matmul(x, a)
                w = R.nn.relu(p)
                q = R.matmul(x, w)
                v = R.nn.relu(b)
                r = R.matmul(x, v)
                out = (p, q, r)
                R.output(out)
            return out

    made = CombineParallelMatmul()(Before)
    found = operators(made)
    assert found.count("matmul") == 2
    assert found[:3] == ["nn.relu", "concat", "matmul"]  # what r needs is computed before
    check_native(Before, made, *arrays((3, 3), (3, 3), (3, 3)))


def test_two_groups_that_would_need_each_other(check_native):
    @I.ir_module
    class Before:
        @R.function
        def main(x: R.Tensor((3, 3), "float32"), y: R.Tensor((3, 3), "float32"),
                 w: R.Tensor((3, 3), "float32")):  # fmt: skip
            with R.dataflow():
                a1 = R.matmul(x, w)
                b1 = R.matmul(y, w)
                a2 = R.matmul(x, b1)
                b2 = R.matmul(y, a1)
                out = (a1, b1, a2, b2)
                R.output(out)
            return out

    made = CombineParallelMatmul()(Before)
    assert operators(made).count("matmul") == 3
    check_native(Before, made, *arrays((3, 3), (3, 3), (3, 3)))


def test_the_check_sees_the_group_and_may_refuse():
    @I.ir_module
    class Before:
        @R.function
        def main(x: R.Tensor((2, 3), "float32"), a: R.Tensor((3, 4), "float32"),
                 b: R.Tensor((3, 4), "float32"), s: R.Tensor((4,), "float32")):  # fmt: skip
            with R.dataflow():
                p = R.matmul(x, a)
                p1 = R.add(p, s)
                q = R.matmul(x, b)
                q1 = R.add(q, s)
                out = (p1, q1)
                R.output(out)
            return out

    seen = []

    def refuse(lhs, rhs, bias, bindings):
        names = [[v.name_hint for v in part] for part in ([lhs], rhs, bias)]
        seen.append((names, sorted(v.name_hint for v in bindings)))
        return False

    assert CombineParallelMatmul(refuse)(Before) is Before
    assert seen == [([["x"], ["a", "b"], ["s", "s"]], ["out", "p", "p1", "q", "q1"])]


def test_one_extent_that_is_not_constant_is_the_last_part(check, check_native):
    @I.ir_module
    class Before:
        @R.function
        def main(x: R.Tensor((2, 3), "float32"), a: R.Tensor((3, "n"), "float32"),
                 b: R.Tensor((3, 4), "float32"), c: R.Tensor((3, "m"), "float32")):  # fmt: skip
            with R.dataflow():
                p = R.matmul(x, a)
                q = R.matmul(x, b)
                r = R.matmul(x, c)
                out = (p, q, r)
                R.output(out)
            return out

    made = CombineParallelMatmul()(Before)
    split = relax.analysis.name_to_binding(made["main"])["lv2"][0].value
    assert split.struct_info == relax.TupleStructInfo(
        [
            relax.TensorStructInfo((2, 4), "float32"),
            relax.TensorStructInfo((2, Before["main"].params[1].struct_info.shape[1]), "float32"),
        ]
    )
    assert operators(made).count("matmul") == 2
    for n in (0, 3):
        check_native(Before, made, *arrays((2, 3), (3, n), (3, 4), (3, 2)))


@pytest.mark.parametrize(
    ("lhs", "rhs", "combined"),
    [
        ((3,), [(3, 4), (3, 2)], True),  # a vector has one dimension less
        ((2, 3), [(3,), (3,)], False),  # a vector on the right has no columns
        ((5, 3), [(2, 3, 4), (2, 3, 1)], True),
        ((5, 3), [(2, 3, 4), (1, 3, 4)], False),
        ((2, 3), [(3, 4), (3, 0)], True),
    ],
)
def test_ranks(lhs, rhs, combined, check_native):
    bb = relax.BlockBuilder()
    params = [
        relax.Var(f"p{index}", relax.TensorStructInfo(shape, "float32"))
        for index, shape in enumerate([lhs, *rhs])
    ]
    with bb.function("main", params):
        with bb.dataflow():
            products = [bb.emit(op.matmul(params[0], weight)) for weight in params[1:]]
            out = bb.emit_output(relax.Tuple(products))
        bb.emit_func_output(out)
    before = bb.get()
    made = CombineParallelMatmul()(before)
    assert (made is not before) == combined
    assert operators(made).count("matmul") == (1 if combined else 2)
    check_native(before, made, *arrays(lhs, *rhs))


def layers(count):
    """A function of ``count`` layers, each with three products of one value."""
    info = relax.TensorStructInfo((4, 4), "float32")
    x, w = relax.Var("x", info), relax.Var("w", info)
    bb = relax.BlockBuilder()
    with bb.function("main", [x, w]):
        with bb.dataflow():
            value = x
            for _ in range(count):
                q, k, v = [bb.emit(op.matmul(value, w)) for _ in range(3)]
                value = bb.emit(op.add(bb.emit(op.add(q, k)), v))
            out = bb.emit_output(value)
        bb.emit_func_output(out)
    return IRModule({"main": bb.get()["main"]})


def test_cost_is_linear(calls):
    small, large = layers(10), layers(80)
    assert operators(CombineParallelMatmul()(large)).count("matmul") == 80
    few, many = (calls(CombineParallelMatmul(), mod) for mod in (small, large))
    assert many < 1.35 * 8 * few
