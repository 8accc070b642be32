"""The order of two matrix products."""

import numpy as np
import pytest

from weft import relax
from weft.ir.structural import assert_structural_equal
from weft.relax import op
from weft.relax.transform import AdjustMatmulOrder
from weft.relax.transform.graph.adjust_matmul_order import is_positive
from weft.script import ir as I
from weft.script import relax as R
from weft.script import tir as T
from weft.tir import Var

N, M = Var("n", "int64"), Var("m", "int64")


def chain(first, shapes, transposed=False, **attrs):
    """A product of three, the first two or the last two first; the inner one may be transposed."""
    params = [
        relax.Var(name, relax.TensorStructInfo(shape, "float32"))
        for name, shape in zip("abc", shapes, strict=True)
    ]
    a, b, c = params
    builder = relax.BlockBuilder()
    with builder.function("main", params, attrs=attrs or None):
        pair = [a, b] if first == "left" else [b, c]
        inner = op.matmul(*reversed(pair)) if transposed else op.matmul(*pair)
        inner = op.permute_dims(inner) if transposed else inner
        out = op.matmul(inner, c) if first == "left" else op.matmul(a, inner)
        builder.emit_func_output(builder.emit(out))
    return builder.get()


def order(mod):
    """Which product a module computes first."""
    bindings = [b for block in mod["main"].body.blocks for b in block.bindings]
    products = {b.var: b.value for b in bindings if b.value.op.name == "relax.matmul"}
    last = list(products.values())[-1]
    return "left" if last.args[0] in products else "right"


CASES = {
    "vector on the left": ("right", [(16,), (16, 2), (2, 32)], "left"),
    "vector on the right": ("left", [(32, 2), (2, 16), (16,)], "right"),
    "small rank": ("left", [(64, 2), (2, 64), (64, 3)], "right"),
    "already best": ("right", [(64, 2), (2, 64), (64, 3)], "right"),
    "symbolic rank": ("right", [(1, 16), (16, N), (N, 32)], "left"),
    "batch of a symbol": ("right", [(N, 1, 16), (16, M), (M, 32)], "left"),
    "nothing is known": ("left", [(N, M), (M, N), (N, M)], "left"),
    "nothing else is known": ("right", [(N, M), (M, N), (N, M)], "right"),
}


@pytest.mark.parametrize("name", sorted(CASES))
def test_the_order_with_fewer_products(name):
    first, shapes, expected = CASES[name]
    mod = chain(first, shapes)
    made = AdjustMatmulOrder()(mod)
    assert order(mod) == first
    assert order(made) == expected
    if first == expected:
        assert_structural_equal(made, mod)
    assert_structural_equal(AdjustMatmulOrder()(made), made)


def test_products_of_weights_stay_together():
    shapes = [(16,), (16, 2), (2, 32)]
    assert order(AdjustMatmulOrder()(chain("right", shapes, num_input=1))) == "right"
    assert order(AdjustMatmulOrder()(chain("left", shapes, num_input=1))) == "right"
    assert order(AdjustMatmulOrder()(chain("right", shapes, num_input=3))) == "left"
    whole = chain("left", [(2, 3), (3, 40), (40, 2)], num_input=0)
    assert_structural_equal(AdjustMatmulOrder()(whole), whole)


def test_bounds_of_symbols_decide():
    shapes = [(N, 4096), (4096, M), (M, 4096)]
    assert order(AdjustMatmulOrder()(chain("right", shapes))) == "right"
    bounded = chain("right", shapes, tir_var_upper_bound={"m": 2048})
    assert order(AdjustMatmulOrder()(bounded)) == "left"
    beyond = chain("right", shapes, tir_var_upper_bound={"m": 2050})
    assert order(AdjustMatmulOrder()(beyond)) == "right"


def test_a_transposed_product_is_taken_apart(check, check_native):
    @I.ir_module
    class Before:
        @R.function
        def main(
            x: R.Tensor((16,), "float32"),
            a: R.Tensor((32, "r"), "float32"),
            b: R.Tensor(("r", 16), "float32"),
        ):
            with R.dataflow():
                weight = R.permute_dims(R.matmul(a, b))
                out = R.matmul(x, weight)
                R.output(out)
            return out

    @I.ir_module
    class Expected:
        @R.function
        def main(
            x: R.Tensor((16,), "float32"),
            a: R.Tensor((32, "r"), "float32"),
            b: R.Tensor(("r", 16), "float32"),
        ):
            r = T.int64()
            with R.dataflow():
                turned = R.permute_dims(b)
                first: R.Tensor((r,), "float32") = R.matmul(x, turned)
                turned1 = R.permute_dims(a)
                out = R.matmul(first, turned1)
                R.output(out)
            return out

    made = check(AdjustMatmulOrder(), Before, Expected)
    rng = np.random.default_rng(0)
    data = [rng.standard_normal(shape).astype("float32") for shape in ((16,), (32, 2), (2, 16))]
    check_native(Before, made, *data, tolerance=1e-4)


def test_the_other_transposed_product():
    mod = chain("left", [(64, 2), (2, 64), (64, 1)], transposed=False)
    assert order(AdjustMatmulOrder()(mod)) == "right"
    turned = chain("left", [(2, 64), (64, 2), (64, 1)], transposed=True)
    made = AdjustMatmulOrder()(turned)
    assert order(made) == "right"
    assert made["main"].ret_struct_info == turned["main"].ret_struct_info


@pytest.mark.parametrize(
    ("value", "bounds", "expected"),
    [
        (N - 1, {}, False),
        (N, {}, True),
        (N * M - N - M + 2, {}, True),
        (N * M - N - M, {}, False),
        (10 - N, {}, False),
        (10 - N, {"n": 9}, True),
        (10 - N, {"n": 10}, False),
        (N * N + 1, {}, False),  # not linear: not proved
        (N // 2 + 1, {}, False),
    ],
)
def test_what_is_proved_of_polynomials(value, bounds, expected):
    assert is_positive(value, bounds) is expected
    if expected:
        numbers = [(n, m) for n in range(1, 9) for m in range(1, 9)]
        for n, m in numbers:
            text = str(value).replace("T.int64", "")
            assert eval(text, {"n": n, "m": m}) > 0
