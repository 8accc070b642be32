"""Tensor, Parameter and Object: construction, attributes, operators, wrong use."""

import numpy as np
import pytest

import weft
from weft import relax, tir
from weft.relax.frontend import nn


def test_constants_narrow_to_32_bits():
    assert repr(nn.Tensor.from_const(np.zeros((1, 10)))) == 'Tensor([1, 10], "float32")'
    assert nn.Tensor.from_const([1, 2]).dtype == "int32"
    assert nn.Tensor.from_const(np.zeros(2, "float16")).dtype == "float16"
    scalar = nn.Tensor.from_scalar(123.25, dtype="float16")
    assert (scalar.shape, scalar.ndim, scalar.dtype) == ([], 0, "float16")


def test_placeholder_takes_numbers_names_and_expressions():
    n = tir.Var("n", "int64")
    made = nn.Tensor.placeholder([2, "m", n, n + 1, tir.IntImm("int64", 3)], "float32", "x")
    assert made.shape[0] == 2
    assert made.shape[4] == 3
    assert made.shape[1].name == "m"
    assert made.shape[2] is n
    assert made.ndim == 5


def test_from_struct_info():
    made = nn.Tensor.from_struct_info(relax.TensorStructInfo((2, 3), "int8"), "q")
    assert (made.shape, made.dtype) == ([2, 3], "int8")


@pytest.mark.parametrize(
    ("shape", "error", "message"),
    [
        ([-1, 2], ValueError, "expected extents of 0 or more: .*, got -1"),
        ([2.5], TypeError, "integers, names or int64 expressions, got 2.5"),
        ([True], TypeError, "got True"),
        ([tir.Var("n", "int32")], TypeError, "got n of int32"),
    ],
)
def test_wrong_extents(shape, error, message):
    with pytest.raises(error, match=message):
        nn.Tensor.placeholder(shape, "float32")


@pytest.mark.parametrize(
    "info",
    [
        relax.TensorStructInfo(dtype="float32", ndim=2),
        relax.TensorStructInfo(dtype="float32"),
        relax.ObjectStructInfo(),
    ],
    ids=str,
)
def test_a_tensor_has_a_known_shape(info):
    with pytest.raises(weft.TVMError, match="expected an expression whose rank and shape are know"):
        nn.Tensor(_expr=relax.Var("x", info))


def test_python_operators(apply, random):
    x, y = random(3, 4), random(4)

    def all_of_them(x, y):
        return (x + y, x - y, x * y, x / y, x < y, x <= y, x > y, x >= y, -x, x.maximum(y),
                x.minimum(y), x @ y.reshape(4, 1))  # fmt: skip

    found = apply(all_of_them, x, y)
    wanted = (x + y, x - y, x * y, x / y, x < y, x <= y, x > y, x >= y, -x, np.maximum(x, y),
              np.minimum(x, y), x @ y.reshape(4, 1))  # fmt: skip
    for mine, its in zip(found, wanted, strict=True):
        assert mine.dtype == its.dtype
        np.testing.assert_allclose(mine, its, rtol=1e-6)


def test_numbers_on_either_side(apply, random):
    x = random(2, 3)
    found = apply(lambda x: (x + 2, 2 + x, x - 2, 2 - x, x * 2, 2 * x, x / 2, 2 / x, x > 0), x)
    wanted = (x + 2, 2 + x, x - 2, 2 - x, x * 2, 2 * x, x / 2, 2 / x, x > 0)
    for mine, its in zip(found, wanted, strict=True):
        np.testing.assert_allclose(mine, its, rtol=1e-6)


def test_a_number_takes_the_type_of_the_tensor(apply):
    x = np.arange(4, dtype="int8")
    (made,) = apply(lambda x: (x + tir.IntImm("int64", 3),), x)
    assert made.dtype == "int8"
    assert made.tolist() == [3, 4, 5, 6]


def test_methods(apply, random):
    x = random(2, 1, 10)
    reshaped, turned, repeated, cast, listed, back = apply(
        lambda x: (x.reshape(2, 5, 2), x.permute_dims(2, 1, 0), x.repeat(2, axis=1),
                   x.astype("float64"), x.reshape([2, -1]), x.permute_dims()),
        x,
    )  # fmt: skip
    np.testing.assert_array_equal(reshaped, x.reshape(2, 5, 2))
    np.testing.assert_array_equal(turned, x.transpose(2, 1, 0))
    np.testing.assert_array_equal(repeated, x.repeat(2, axis=1))
    np.testing.assert_array_equal(cast, x.astype("float64"))
    np.testing.assert_array_equal(listed, x.reshape(2, 10))
    np.testing.assert_array_equal(back, x.transpose())


def test_astype_to_its_own_type_is_the_tensor():
    x = nn.Tensor.placeholder((2,), "float32")
    assert x.astype("float32") is x


def test_operators_need_an_export():
    x = nn.Tensor.placeholder((2,), "float32")
    with pytest.raises(weft.TVMError, match="add: no function is being built; operators of nn"):
        x + 1


def test_operators_name_what_is_no_tensor(export):
    two = nn.spec.Tensor([2], "float32")
    with pytest.raises(TypeError, match="add: expected an nn.Tensor, got str"):
        export(lambda x: x + "1", two)
    with pytest.raises(TypeError, match="add: expected an nn.Tensor, got int and int"):
        export(lambda x: nn.add(1, 2), two)
    with pytest.raises(TypeError, match=r"n is a symbolic integer.*tensor_expr_op"):
        export(lambda x: x + x.shape[0], nn.spec.Tensor(["n"], "float32"))
    with pytest.raises(TypeError, match="relu: expected an nn.Tensor, got ndarray"):
        export(lambda x: nn.relu(np.zeros(2)), two)


class TestParameter:
    def test_data_by_kind(self):
        torch = pytest.importorskip("torch")
        weight = nn.Parameter((2, 3))
        assert weight.data is None
        assert weight.dtype == "float32"
        assert weight.attrs == {}
        values = np.arange(6, dtype="float32").reshape(2, 3)
        source = torch.tensor(values, requires_grad=True)
        for given in (values, weft.nd.array(values), torch.nn.Parameter(source)):
            weight.data = given
            np.testing.assert_array_equal(weight.data.numpy(), values)
        weight.data = None
        assert weight.data is None

    def test_data_of_torch_shares_memory(self):
        torch = pytest.importorskip("torch")
        tensor, weight = torch.zeros(3), nn.Parameter((3,))
        weight.data = tensor
        tensor[1] = 5
        assert weight.data.numpy().tolist() == [0, 5, 0]

    @pytest.mark.parametrize(
        ("data", "error", "message"),
        [
            (np.zeros((3, 2), "float32"), ValueError, r"Shape mismatch: expected \(2, 3\), got"),
            (np.zeros((2, 3)), ValueError, "Dtype mismatch: expected float32, got float64"),
            ([[1, 2, 3]], TypeError, "Unsupported data type: list"),
        ],
    )
    def test_data_that_does_not_fit(self, data, error, message):
        weight = nn.Parameter((2, 3))
        with pytest.raises(error, match=message):
            weight.data = data

    def test_to(self):
        weight = nn.Parameter((2,))
        weight.to("float16")
        weight.to()
        assert weight.dtype == "float16"
        weight.data = np.zeros(2, "float16")
        with pytest.raises(ValueError, match="expected a parameter without data, this one has"):
            weight.to("float32")

    def test_default_dtype(self):
        assert nn.get_default_dtype() == "float32"
        nn.set_default_dtype("float16")
        try:
            assert nn.Linear(2, 2).bias.dtype == "float16"
        finally:
            nn.set_default_dtype("float32")
        with pytest.raises(TypeError, match="flaot16"):
            nn.set_default_dtype("flaot16")


def test_object_is_an_object():
    var = relax.Var("o", relax.ObjectStructInfo())
    assert nn.Object(_expr=var, _name="o")._expr is var
    with pytest.raises(TypeError, match=r"nn.Object t: expected an expression of struct info R.Ob"):
        nn.Object(_expr=relax.Var("t", relax.ShapeStructInfo([1])), _name="t")


def test_wrap_nested_refuses_what_is_no_tensor(export):
    with pytest.raises(TypeError, match="shape: expected a tensor or a tuple of them as the resul"):
        export(lambda x: nn.wrap_nested(relax.ShapeExpr([1]), "shape"), nn.spec.Tensor([2], "int8"))
