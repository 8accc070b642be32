"""FuseOps: which bindings are fused, how the functions look, and that results stay."""

import numpy as np
import pytest

import weft
from weft import ir, relax
from weft.ir.transform import PassContext, Sequential
from weft.relax.analysis.op_pattern import OpPatternKind
from weft.relax.op import add, exp, matmul, multiply, negative, permute_dims, split, sqrt, take
from weft.relax.op import sum as sum_
from weft.relax.transform import AnnotateTIROpPattern, FuseOps, FuseTIR, LegalizeOps
from weft.relax.transform.fusion.fusion_partition import FusionNode, partition
from weft.script import ir as I
from weft.script import relax as R
from weft.script import tir as T
from weft.support.errors import PassError

INFO = relax.TensorStructInfo((4, 4), "float32")
RNG = np.random.default_rng(1)


def graph(body, count=1, info=INFO):
    """A module whose main computes ``body(builder, *inputs)``."""
    bb = relax.BlockBuilder()
    inputs = [relax.Var(f"x{index}", info) for index in range(count)]
    with bb.function("main", inputs):
        with bb.dataflow():
            out = bb.emit_output(body(bb, *inputs))
        bb.emit_func_output(out)
    return bb.get()


def kernels(mod):
    return AnnotateTIROpPattern()(LegalizeOps()(mod))


def run(mod, *arrays):
    machine = relax.VirtualMachine(relax.build(mod, "llvm"), weft.cpu())
    found = machine["main"](*[weft.nd.array(array) for array in arrays])
    return [item.numpy() for item in (found if isinstance(found, tuple | list) else [found])]


def fused(mod, **options):
    """The names of the fused functions; results before and after are compared."""
    before = kernels(mod)
    grouped = FuseOps(**options)(before)
    assert relax.analysis.well_formed(grouped)
    made = FuseTIR()(grouped)
    assert relax.analysis.well_formed(made)
    count = len(mod["main"].params)
    arrays = [RNG.uniform(0.5, 1.5, (4, 4)).astype("float32") for _ in range(count)]
    for got, expected in zip(run(made, *arrays), run(before, *arrays), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-5)
    return sorted(
        gvar.name_hint
        for gvar, func in grouped.functions.items()
        if isinstance(func, relax.Function) and "Primitive" in func.attrs
    )


@I.ir_module
class Before:
    @T.prim_func(private=True)
    def double(a: T.Buffer((4,), "float32"), b: T.Buffer((4,), "float32")):
        T.func_attr({"op_pattern": 0})
        for i in range(4):
            with T.block("b"):
                vi = T.axis.spatial(4, i)
                b[vi] = a[vi] * T.float32(2)

    @R.function
    def main(x: R.Tensor((4,), "float32")):
        cls = Before
        with R.dataflow():
            lv = R.call_tir(cls.double, (x,), out_sinfo=R.Tensor((4,), "float32"))
            gv = R.call_tir(cls.double, (lv,), out_sinfo=R.Tensor((4,), "float32"))
            R.output(gv)
        return gv


@I.ir_module
class Expected:
    @T.prim_func(private=True)
    def double(a: T.Buffer((4,), "float32"), b: T.Buffer((4,), "float32")):
        T.func_attr({"op_pattern": 0})
        for i in range(4):
            with T.block("b"):
                vi = T.axis.spatial(4, i)
                b[vi] = a[vi] * T.float32(2)

    @R.function(private=True)
    def fused_double_double(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        R.func_attr({"Primitive": 1})
        cls = Expected
        with R.dataflow():
            lv = R.call_tir(cls.double, (x,), out_sinfo=R.Tensor((4,), "float32"))
            gv = R.call_tir(cls.double, (lv,), out_sinfo=R.Tensor((4,), "float32"))
            R.output(gv)
        return gv

    @R.function
    def main(x: R.Tensor((4,), "float32")):
        cls = Expected
        with R.dataflow():
            gv = cls.fused_double_double(x)
            R.output(gv)
        return gv


def test_a_chain_becomes_a_function():
    after = FuseOps()(Before)
    ir.assert_structural_equal(after, Expected)
    assert FuseOps()(after) is after


def test_level_zero_fuses_nothing():
    assert FuseOps(fuse_opt_level=0)(Before) is Before
    with PassContext(opt_level=0):
        assert FuseOps()(Before) is Before
        assert FuseOps(fuse_opt_level=1)(Before) is not Before


def test_a_product_takes_what_follows_element_by_element():
    mod = graph(lambda bb, x, y: exp(bb.emit(add(bb.emit(matmul(x, y)), x))), 2)
    assert fused(mod) == ["fused_matmul_add_tir_exp"]


def test_a_product_is_not_fused_before_a_transposition():
    mod = graph(lambda bb, x, y: permute_dims(bb.emit(matmul(x, y))), 2)
    assert fused(mod) == []


def test_two_products_are_not_in_one_function():
    def body(bb, x, y):
        return add(bb.emit(matmul(x, y)), bb.emit(matmul(y, x)))

    (name,) = fused(graph(body, 2))
    assert name.count("matmul") == 1


def test_a_product_used_by_two_sums_is_not_duplicated():
    def body(bb, x, y):
        product = bb.emit(matmul(x, y))
        return relax.Tuple([bb.emit(add(product, x)), bb.emit(add(product, y))])

    assert fused(graph(body, 2)) == []


def test_branches_that_meet_are_one_function():
    def body(bb, x):
        root = bb.emit(exp(x))
        return add(bb.emit(negative(root)), bb.emit(sqrt(root)))

    (name,) = fused(graph(body))
    assert name.count("tir_") == 3
    assert "add" in name


def test_into_a_reduction_but_not_out_of_it():
    mod = graph(lambda bb, x: exp(bb.emit(sum_(bb.emit(exp(x)), 1))))
    assert fused(mod) == ["fused_tir_exp_sum"]


def test_injective_operators_are_fused_behind_and_before_others():
    mod = graph(lambda bb, x: permute_dims(bb.emit(exp(bb.emit(permute_dims(x))))))
    (name,) = fused(mod)
    assert name == "fused_transpose_tir_exp_transpose"


def test_fields_of_a_split():
    def body(bb, x):
        halves = bb.emit(split(x, 2, 1))
        left, right = (bb.emit(relax.TupleGetItem(halves, i)) for i in range(2))
        return add(left, right)

    assert fused(graph(body)) == ["fused_split_add"]


def test_a_gather_is_not_fused_into_the_index_of_another():
    """In a chain of n of them an index would have 3 to the power of n loads, each with a choice."""

    def body(bb, *tables):
        at = tables[0]
        for table in tables[1:]:
            less = bb.emit(relax.op.less(at, relax.const(0, "int64")))
            wrapped = bb.emit(add(at, relax.const(4, "int64")))
            at = bb.emit(take(table, bb.emit(relax.op.where(less, wrapped, at)), 0))
        return negative(at)

    mod = graph(body, 4, relax.TensorStructInfo((4,), "int64"))
    tables = [np.array(table) for table in ([-1, 0, 2, -4], [1, -2, 3, 0], [-3, 2, 1, 0],
                                            [5, 6, 7, 8])]  # fmt: skip
    expected = -tables[3][tables[2][tables[1][tables[0]]]]
    after = FuseTIR()(FuseOps()(kernels(mod)))
    np.testing.assert_array_equal(run(after, *tables)[0], expected)
    takes = [name for name in (gvar.name_hint for gvar in after.functions) if "take" in name]
    assert len(takes) == 2, "two kernels serve three gathers, the last with its negation"


def broadcast_kernels(rows, body):
    """The kernels of ``x + body(v)`` with x[rows, 512] and v[512]; its values are compared."""
    bb = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorStructInfo((rows, 512), "float32"))
    v = relax.Var("v", relax.TensorStructInfo((512,), "float32"))
    with bb.function("main", [x, v]):
        with bb.dataflow():
            gv = bb.emit_output(add(x, body(bb, v)))
        bb.emit_func_output(gv)
    before = kernels(bb.get())
    after = FuseTIR()(FuseOps()(before))
    count = rows if isinstance(rows, int) else 3
    arrays = [RNG.uniform(0.5, 1.5, shape).astype("float32") for shape in ((count, 512), (512,))]
    np.testing.assert_allclose(run(after, *arrays)[0], run(before, *arrays)[0], rtol=1e-6)
    return sorted(gvar.name_hint for gvar in after.functions if gvar.name_hint != "main")


@pytest.mark.parametrize("rows", [512, weft.tir.Var("n", "int64")], ids=str)
def test_an_expensive_function_is_not_computed_again_for_each_row(rows):
    assert broadcast_kernels(rows, lambda _, v: relax.op.nn.gelu(v)) == ["add", "gelu"]
    doubled = broadcast_kernels(
        rows, lambda bb, v: negative(bb.emit(relax.op.erfinv(bb.emit(relax.op.sin(v)))))
    )
    assert doubled == ["add", "fused_tir_sin_erfinv_tir_negative"]


def test_what_is_cheap_or_small_is_fused_where_it_is_broadcast():
    assert broadcast_kernels(512, lambda _, v: relax.op.sqrt(v)) == ["fused_tir_sqrt_add"]
    assert broadcast_kernels(2, lambda _, v: relax.op.nn.gelu(v)) == ["fused_gelu_add"]


def resize_kernels(body, size=64, method="linear"):
    """The kernels of ``body(x)`` of an image, resized to twice its size."""
    bb = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorStructInfo((1, 4, size, size), "float32"))
    with bb.function("main", [x]):
        with bb.dataflow():
            wanted = relax.ShapeExpr([2 * size, 2 * size])
            call = relax.op.image.resize2d(bb.emit(body(bb, x)), wanted, method=method)
            gv = bb.emit_output(call)
        bb.emit_func_output(gv)
    before = kernels(bb.get())
    after = FuseTIR()(FuseOps()(before))
    array = RNG.uniform(0.5, 1.5, (1, 4, size, size)).astype("float32")
    np.testing.assert_allclose(run(after, array)[0], run(before, array)[0], rtol=1e-5)
    return sorted(gvar.name_hint for gvar in after.functions if gvar.name_hint != "main")


def test_what_a_resize_reads_for_several_pixels_is_computed_once():
    assert resize_kernels(lambda _, x: relax.op.nn.gelu(x)) == ["gelu", "resize2d"]
    assert resize_kernels(lambda _, x: relax.op.nn.relu(x)) == ["relu", "resize2d"]


def test_what_a_resize_reads_once_or_of_few_pixels_is_fused():
    (nearest,) = resize_kernels(lambda _, x: relax.op.nn.relu(x), method="nearest_neighbor")
    (small,) = resize_kernels(lambda _, x: relax.op.nn.relu(x), size=4)
    assert nearest == small == "fused_relu_resize2d"


def test_features_of_an_image_of_any_size_are_resized_one_axis_after_the_other():
    h, w = weft.tir.Var("h", "int64"), weft.tir.Var("w", "int64")
    bb = relax.BlockBuilder()
    features = [1, 128, weft.tir.floordiv(h, 16), weft.tir.floordiv(w, 16)]
    x = relax.Var("x", relax.TensorStructInfo(features, "float32"))
    image = relax.Var("image", relax.TensorStructInfo((h, w), "float32"))
    tables = [
        relax.Var(f"{kind}{name}", relax.TensorStructInfo([weft.tir.floordiv(side, 8), 2], dtype))
        for name, side in (("h", h), ("w", w))
        for kind, dtype in (("places", "int64"), ("weights", "float32"))
    ]
    with bb.function("main", [x, image, *tables]):
        with bb.dataflow():
            rows = bb.emit(relax.op.image.weighted_taps(x, *tables[:2], axis=2))
            gv = bb.emit_output(relax.op.image.weighted_taps(rows, *tables[2:], axis=3))
        bb.emit_func_output(gv)
    before = kernels(bb.get())
    after = FuseTIR()(FuseOps()(before))
    places = np.array([[0, 1], [1, 1], [1, 0], [0, 0]])
    weights = RNG.uniform(size=(4, 2)).astype("float32")
    arrays = [RNG.uniform(size=(1, 128, 2, 2)).astype("float32"), np.zeros((32, 32), "float32")]
    results = [run(mod, *arrays, places, weights, places, weights)[0] for mod in (after, before)]
    np.testing.assert_allclose(*results, rtol=1e-6)
    names = [gvar.name_hint for gvar in after.functions if gvar.name_hint != "main"]
    assert sorted(names) == ["weighted_taps", "weighted_taps1"]


def test_parts_of_a_concatenation_are_read_one_at_a_time():
    """Each element is of one of the parts, so nothing is computed again."""

    def body(bb, x):
        y = bb.emit(relax.op.nn.gelu(x))
        halves = [bb.emit(relax.op.strided_slice(y, [0], [begin], [begin + 2000]))
                  for begin in (2000, 0)]  # fmt: skip
        return relax.op.concat(halves, 0)

    mod = FuseOps()(kernels(graph(body, info=relax.TensorStructInfo((4000,), "float32"))))
    assert [gvar.name_hint for gvar in mod.functions if "fused" in gvar.name_hint] == [
        "fused_gelu_strided_slice_strided_slice1_concatenate"
    ]


def test_what_is_read_twice_at_the_same_place_is_fused():
    names = fused(graph(lambda bb, x: relax.op.multiply(*[bb.emit(exp(x))] * 2)))
    assert names == ["fused_tir_exp_multiply"]


def test_a_function_of_what_was_broadcast_is_fused():
    names = fused(graph(lambda bb, x: exp(bb.emit(add(x, relax.const(1.0, "float32"))))))
    assert names == ["fused_add_tir_exp"]


def test_outputs_are_not_in_between():
    bb = relax.BlockBuilder()
    x = relax.Var("x", INFO)
    with bb.function("main", [x]):
        with bb.dataflow():
            first = bb.emit_output(exp(x))
            second = bb.emit_output(negative(first))
        bb.emit_func_output(relax.Tuple([first, second]))
    assert fused(bb.get()) == []


def test_constants_are_parameters():
    weight = relax.const(RNG.normal(size=(4, 4)).astype("float32"))
    mod = graph(lambda bb, x: exp(bb.emit(add(x, weight))))
    assert fused(mod) == ["fused_add_tir_exp"]
    func = FuseOps()(kernels(mod))["fused_add_tir_exp"]
    assert [param.name_hint for param in func.params] == ["x0", "param_0"]


@pytest.mark.parametrize("depth", [1, 2, 3, 5])
def test_the_largest_function(depth):
    def body(bb, x):
        for _ in range(5):
            x = bb.emit(exp(x))
        return exp(x)

    with PassContext(config={"relax.FuseOps.max_depth": depth}):
        names = fused(graph(body))
        made = FuseOps()(kernels(graph(body)))
    assert all(name.count("tir_exp") <= depth for name in names)
    assert bool(names) == (depth > 1)
    if depth == 1:
        assert all(not f.attrs.get("Primitive", 0) for f in made.functions.values())


def test_a_depth_below_one_is_an_error():
    with (
        PassContext(config={"relax.FuseOps.max_depth": 0}),
        pytest.raises(PassError, match="max_depth of at least 1, got 0"),
    ):
        FuseOps()(Before)


def test_a_match_cast_is_not_moved_over():
    """What needs its symbol stays behind it, though no variable says so."""

    @I.ir_module
    class Graph:
        @R.function
        def main(x: R.Tensor((4,), "float32"), y: R.Tensor(ndim=1, dtype="float32")):
            m = T.int64()
            with R.dataflow():
                lv = R.exp(x)
                cast = R.match_cast(y, R.Tensor((m,), "float32"))
                ones = R.full(R.shape([m]), R.const(1, "float32"), "float32")
                lv2 = R.negative(ones)
                lv3 = R.negative(lv)
                gv = R.concat((lv2, lv3))
                gv1 = R.exp(cast)
                R.output(gv, gv1)
            return (gv, gv1)

    before = kernels(Graph)
    after = FuseTIR()(FuseOps()(before))
    assert relax.analysis.well_formed(after)
    x, y = np.arange(4, dtype="float32"), np.arange(3, dtype="float32")
    for got, expected in zip(run(after, x, y), run(before, x, y), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-6)


def test_symbolic_shapes():
    @I.ir_module
    class Graph:
        @R.function
        def main(x: R.Tensor(("n", 4), "float32"), y: R.Tensor((4,), "float32")):
            with R.dataflow():
                lv = R.add(x, y)
                lv1 = R.exp(lv)
                lv2 = R.permute_dims(lv1)
                gv = R.sum(lv2, axis=[0])
                R.output(gv)
            return gv

    before = kernels(Graph)
    grouped = FuseOps()(before)
    assert "fused_add_tir_exp_transpose" in [g.name_hint for g in grouped.functions]
    after = FuseTIR()(grouped)
    for size in (1, 3):
        x = RNG.normal(size=(size, 4)).astype("float32")
        y = np.ones(4, "float32")
        np.testing.assert_allclose(run(after, x, y)[0], run(before, x, y)[0], rtol=1e-5)


OPERATORS = (exp, negative, permute_dims, lambda x: relax.op.nn.softmax(x, 1))


def random_body(rng, size):
    """Random operators on 4x4 tensors, each on what came before."""

    def body(bb, *inputs):
        values = list(inputs)
        for _ in range(size):
            pick = rng.integers(0, 8)
            one, two = (values[rng.integers(max(0, len(values) - 4), len(values))] for _ in "ab")
            if pick < 4:
                made = OPERATORS[pick](bb.emit(multiply(one, relax.const(0.25, "float32"))))
            elif pick == 4:
                made = matmul(one, two)
            elif pick == 5:
                made = add(bb.emit(sum_(one, 1, True)), two)
            elif pick == 6:
                halves = bb.emit(split(one, 2, int(rng.integers(0, 2))))
                fields = [bb.emit(relax.TupleGetItem(halves, i)) for i in range(2)]
                made = relax.op.concat(fields[::-1], int(int(fields[0].struct_info.shape[1]) == 2))
            else:
                made = add(one, two)
            values.append(bb.emit(multiply(bb.emit(made), relax.const(0.5, "float32"))))
        return relax.Tuple(values[-2:])

    return body


@pytest.mark.parametrize("seed", range(6))
def test_random_graphs(seed):
    rng = np.random.default_rng(seed)
    fused(graph(random_body(rng, 8), 2))


def test_ten_thousand_bindings_are_partitioned_in_seconds():
    nodes = [FusionNode(OpPatternKind.ELEMWISE, False) for _ in range(10000)]
    for index in range(9999):
        nodes[index].users.append((index + 1, OpPatternKind.ELEMWISE))
    nodes[-1].is_output = True
    found = partition(nodes, 256)
    sizes = np.unique(found, return_counts=True)[1]
    assert sizes.max() == 256


def test_the_pass_in_a_sequence():
    mod = graph(lambda bb, x: exp(bb.emit(exp(x))))
    made = Sequential([LegalizeOps(), AnnotateTIROpPattern(), FuseOps(), FuseTIR()])(mod)
    assert {gvar.name_hint for gvar in made.functions} == {"fused_tir_exp_tir_exp", "main"}
