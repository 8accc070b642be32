"""Products of 16-bit floats, einsum with ellipses, and what else matrix products promise."""

import numpy as np
import pytest

from tests.lib.operator_cases import SAMPLED, Case, Table, t
from weft import relax
from weft.relax import op
from weft.relax.op.definition import FUNCTIONS as F

N = ({"n": 0}, {"n": 1}, {"n": 5})


def positive(generator, shape):
    return generator.uniform(0.5, 1.5, shape)


def half(*shape):
    return t(*shape, dtype="float16", fill=positive)


def products():
    yield Case("matmul", op.matmul, [half(2, 3000), half(3000, 3)], np.matmul, note="long")
    yield Case("matmul", op.matmul, [half(3000), half("n", 3000, 2)], np.matmul, N, note="long")
    yield Case("matmul", lambda a, b: op.matmul(a, b, "float32"), [half(2, 70), half(70, 3)],
               np.matmul, note="to float32")  # fmt: skip
    for shape in ((2, 3000), (2, "n", 3000)):
        yield Case("nn.dense", F["nn.dense"], [half(*shape), half(4, 3000)],
                   lambda a, b: a @ b.T, N[1:] if "n" in shape else ({},), note="long")  # fmt: skip
    yield Case("add", op.linear, [half("n", 3000), half(4, 3000), half(4)],
               lambda x, w, b: x @ w.T + b, N, note="linear")  # fmt: skip


def einsum(subscripts, given, sizes=({},), note=""):
    return Case(
        "einsum", lambda *x: op.einsum(list(x), subscripts), given,
        lambda *x: np.einsum(subscripts, *x), sizes, note=f"{subscripts}{note}",
    )  # fmt: skip


def sums():
    yield einsum("ij,jk", [half(2, 3000), half(3000, 3)], note=" long")
    yield einsum("...ij,...jk->...ik", [t(2, 1, 3, 4), t(5, 4, 2)])
    yield einsum("...j->...", [t("n", 3, 4)], N)
    yield einsum("i...->...", [t("n", 3)], N)
    yield einsum("...,...", [t(2, 3), t(3)])
    yield einsum("ii->i", [t(4, 4)])
    yield einsum("ii", [t(4, 4)])
    yield einsum("a,b,c->cab", [t("n"), t(2), t(3)], N)
    yield einsum("ab,ab->", [t("n", 3, dtype="int32"), t("n", 3, dtype="int32")], N)


def grouped():
    def case(rows, depth, columns, ends, sizes=({},), dtype="float32", kind="int32", note=""):
        def of_each(data, weight, ends):
            stops = [int(end) for end in ends]
            runs = zip([0, *stops], stops, weight, strict=False)
            products = [data[start:stop] @ matrix for start, stop, matrix in runs]
            rest = np.zeros((len(data) - stops[-1], weight.shape[2]))
            return np.concatenate([*products, rest])

        given = [
            t(rows, depth, dtype=dtype), t(len(ends), depth, columns, dtype=dtype),
            t(len(ends), dtype=kind, fill=ends),
        ]  # fmt: skip
        return Case("grouped_matmul", op.grouped_matmul, given, of_each, sizes, note=note)

    yield case(7, 5, 6, [2, 2, 5, 7], note="an empty group")
    yield case("n", 33, 70, [0, 1, 3], ({"n": 3}, {"n": 3}, {"n": 8}), note="rows behind the last")
    yield case("n", "k", 4, [0], ({"n": 0, "k": 3}, {"n": 2, "k": 0}), kind="int64", note="nothing")
    yield case(3, 4, 1, [1, 3], note="one column")
    yield case(1, 1, 3, [0, 0, 1], note="one row")
    yield case(6, 3000, 3, [4, 6], dtype="float16", note="float16")
    yield case(5, 4, 3, [2, 5], dtype="float64", note="float64")


def block_scaled():
    def of_all(data, weight, scales):
        return data @ (weight * scales[:, None, :]).reshape(-1, weight.shape[2])

    def case(rows, blocks, size, columns, sizes=({},), kind="int8", dtype="float32", note=""):
        given = [
            t(*rows, blocks * size, dtype=dtype), t(blocks, size, columns, dtype=kind),
            t(blocks, columns, dtype=dtype, fill=positive),
        ]  # fmt: skip
        return Case("block_scaled_matmul", op.block_scaled_matmul, given, of_all, sizes, note=note)

    yield case(("n",), 3, 16, 20, N)
    yield case((2, "n"), 4, 32, 70, N, note="a batch")
    yield case((), 2, 8, 5, note="a vector")
    yield case((1,), 5, 32, 33, note="one row")
    yield case((3,), 1, 7, 1, note="one block, one column")
    yield case((9,), 2, 16, 24, kind="uint8", note="uint8")
    yield case((4,), 40, 64, 6, dtype="float16", note="float16")
    yield case((4,), 2, 8, 6, dtype="float64", note="float64")


TABLE = Table([*products(), *sums(), *grouped(), *block_scaled()])


@SAMPLED
@pytest.mark.parametrize("case", TABLE.cases, ids=str)
def test_products(case):
    TABLE.check(case)


def test_ellipsis_is_deduced(infer):
    def tensor(*dims):
        return relax.TensorStructInfo(dims, "float32")

    unknown = relax.TensorStructInfo(None, "float32")
    made = infer(lambda a, b: op.einsum([a, b], "...i,i->..."), tensor(2, 1, 3), tensor(3))
    assert made == tensor(2, 1)
    assert infer(lambda a: op.einsum([a], "...i->..."), unknown) == unknown
    with pytest.raises(ValueError, match=r"operand 0 \(ij\) must have 2 dimensions, got 3"):
        infer(lambda a: op.einsum([a], "ij->i"), tensor(2, 1, 3))
    with pytest.raises(ValueError, match="an unknown or repeated letter"):
        infer(lambda a: op.einsum([a], "ij->ik"), tensor(2, 3))


def test_block_scaled_matmul_refuses_what_does_not_agree(infer):
    def tensor(*dims, dtype="float32"):
        return relax.TensorStructInfo(dims, dtype)

    made, scales = tensor(2, 4, 3, dtype="int8"), tensor(2, 3)
    assert infer(op.block_scaled_matmul, tensor(5, 8), made, scales) == tensor(5, 3)
    for given, message in (
        ((tensor(5, 9), made, scales), "2 blocks of 4 elements, got 9"),
        ((tensor(5, 8), made, tensor(3, 3)), r"scales of shape \(2, 3\), got"),
        ((tensor(5, 8), tensor(2, 4, 3), scales), "weight: expected int8 or uint8, got float32"),
        ((tensor(dtype="float32"), made, scales), "at least 1 dimension, got 0"),
        ((tensor(5, 8, dtype="int32"), made, tensor(2, 3, dtype="int32")), "floats, got int32"),
    ):
        with pytest.raises(ValueError, match=message):
            infer(op.block_scaled_matmul, *given)


def test_grouped_matmul_refuses_what_does_not_agree(infer):
    def tensor(*dims, dtype="float32"):
        return relax.TensorStructInfo(dims, dtype)

    ends = tensor(4, dtype="int32")
    with pytest.raises(ValueError, match="rows of 5 elements for .*, got 6"):
        infer(op.grouped_matmul, tensor(7, 6), tensor(4, 5, 3), ends)
    with pytest.raises(ValueError, match="an end for each of 3 groups, got 4"):
        infer(op.grouped_matmul, tensor(7, 5), tensor(3, 5, 3), ends)
    with pytest.raises(ValueError, match="ends: expected int32 or int64, got float32"):
        infer(op.grouped_matmul, tensor(7, 5), tensor(4, 5, 3), tensor(4))
