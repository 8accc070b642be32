"""Overloads that take numbers, of 16-bit floats: the result is that of torch, bit by bit.

torch computes with float32 numbers where it multiplies or compares with bounds, and with the number
that the narrow type has where it adds or raises to a power.
"""

import pytest

import weft

torch = pytest.importorskip("torch")
aten, F = torch.ops.aten, torch.nn.functional

FEW = {
    "add.Scalar, alpha": lambda x, y, z: aten.add.Scalar(x, 0.7, 0.3),
    "add.Tensor, alpha": lambda x, y, z: aten.add.Tensor(x, y, alpha=0.3),
    "sub.Tensor, alpha": lambda x, y, z: aten.sub.Tensor(x, y, alpha=0.3),
    "rsub.Scalar, alpha": lambda x, y, z: aten.rsub.Scalar(x, 0.7, 0.3),
    "div, floor": lambda x, y, z: aten.div.Scalar_mode(x, 0.7, rounding_mode="floor"),
    "div, trunc": lambda x, y, z: aten.div.Scalar_mode(x, 0.7, rounding_mode="trunc"),
    "pow.Tensor_Scalar": lambda x, y, z: aten.pow.Tensor_Scalar(x, 1.3),
    "lerp.Scalar": lambda x, y, z: aten.lerp.Scalar(x, y, 0.7),
    "elu": lambda x, y, z: aten.elu(-x, 0.7, 1.3, 0.9),
    "times a number as a tensor": lambda x, y, z: x * torch.tensor(0.7),
    "glu": lambda x, y, z: F.glu(x),
}
MORE = {
    "sub.Scalar, alpha": lambda x, y, z: aten.sub.Scalar(x, 0.7, 0.3),
    "rsub.Tensor, alpha": lambda x, y, z: aten.rsub.Tensor(x, y, alpha=0.3),
    "add.Scalar": lambda x, y, z: aten.add.Scalar(x, 1e5),
    "rsub.Scalar": lambda x, y, z: aten.rsub.Scalar(x, 0.7),
    "floor_divide": lambda x, y, z: torch.floor_divide(x, 0.7),
    "remainder.Scalar": lambda x, y, z: aten.remainder.Scalar(x, 0.7),
    "remainder.Scalar_Tensor": lambda x, y, z: aten.remainder.Scalar_Tensor(6.3, x),
    "fmod.Scalar": lambda x, y, z: aten.fmod.Scalar(x, 0.7),
    "pow.Scalar": lambda x, y, z: aten.pow.Scalar(0.7, x),
    "negative power": lambda x, y, z: aten.pow.Tensor_Scalar(x, -0.7),
    "small weight": lambda x, y, z: aten.lerp.Scalar(x, y, 0.3),
    "addcdiv": lambda x, y, z: aten.addcdiv(x, y, z, value=0.7),
    "clamp": lambda x, y, z: aten.clamp(x, 0.7, 1.3),
    "clamp_min": lambda x, y, z: aten.clamp_min(x, 0.7),
    "clamp_max": lambda x, y, z: aten.clamp_max(x, 0.7),
    "where.ScalarOther": lambda x, y, z: aten.where.ScalarOther(x > 1, x, 0.7),
    "where.ScalarSelf": lambda x, y, z: aten.where.ScalarSelf(x > 1, 0.7, x),
    "masked_fill": lambda x, y, z: aten.masked_fill.Scalar(x, x > 1, 0.7),
    "copysign": lambda x, y, z: aten.copysign.Scalar(x, -0.7),
    "threshold": lambda x, y, z: aten.threshold(x, 0.7, 0.1),
    "hardshrink": lambda x, y, z: aten.hardshrink(x, 0.7),
    "hardtanh": lambda x, y, z: aten.hardtanh(x, -0.7, 0.7),
    "leaky_relu": lambda x, y, z: aten.leaky_relu(-x, 0.7),
    "celu": lambda x, y, z: F.celu(-x, 0.7),
    "rrelu": lambda x, y, z: F.rrelu(-x, 0.1, 0.3, False),
    "nan_to_num": lambda x, y, z: aten.nan_to_num(x / (x - x), 0.7, 0.1, 0.3),
    "isclose": lambda x, y, z: torch.isclose(x, y, 0.07, 0.01),
    "plus a number as a tensor": lambda x, y, z: x + torch.tensor(0.7),
    "to a number as a tensor": lambda x, y, z: x ** torch.tensor(1.3),
    "over a number as a tensor": lambda x, y, z: x > torch.tensor(0.7),
    "full_like": lambda x, y, z: aten.full_like(x, 0.7),
    "pad": lambda x, y, z: F.pad(x, (1, 1), value=0.7),
    "index_add": lambda x, y, z: aten.index_add(x, 0, torch.arange(4096), y, alpha=0.7),
    "scatter": lambda x, y, z: aten.scatter.value(x, 0, torch.arange(99), 0.7),
    "arange": lambda x, y, z: torch.arange(0.1, 7.3, 0.3, dtype=x.dtype),
    "addmm": lambda x, y, z: torch.addmm(
        x[:16].reshape(4, 4), y[:12].reshape(4, 3), z[:12].reshape(3, 4), beta=0.3, alpha=0.7
    ),
    "baddbmm": lambda x, y, z: torch.baddbmm(
        x[:16].reshape(1, 4, 4), y[:12].reshape(1, 4, 3), z[:12].reshape(1, 3, 4), beta=0.3,
        alpha=0.7,
    ),
    **{
        name: lambda x, y, z, name=name: getattr(aten, name).Scalar(x, 0.7)
        for name in ("eq", "ne", "lt", "le", "gt", "ge")
    },
}  # fmt: skip


class All(torch.nn.Module):
    def __init__(self, functions):
        super().__init__()
        self.functions = functions

    def forward(self, x, y, z):
        return tuple(function(x, y, z) for function in self.functions)


def check(calls, dtype):
    """Of whole vectors: torch rounds what is left over in its own ways."""
    torch.manual_seed(0)
    given = [(torch.rand(4096) * 3 + 0.1).to(dtype) for _ in range(3)]
    model = All(list(calls.values()))
    made = weft.compile(model, tuple(given), cache=False)(*given)
    for name, got, want in zip(calls, made, model(*given), strict=True):
        torch.testing.assert_close(
            torch.as_tensor(got), want, rtol=0, atol=0, equal_nan=True, msg=lambda m, n=name: n + m
        )


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_numbers_that_change_most(dtype):
    check(FEW, dtype)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_all_numbers(dtype):
    check(MORE, dtype)


def test_xlogy_of_a_number():
    x = (torch.rand(100) + 0.1).half()
    model = All([lambda x, y, z: torch.xlogy(x, 0.7), lambda x, y, z: torch.xlogy(0.7, x)])
    made = weft.compile(model, (x, x, x), cache=False)(x, x, x)
    for got, want in zip(made, model(x, x, x), strict=True):
        torch.testing.assert_close(torch.as_tensor(got), want, rtol=2e-3, atol=1e-3)


MANY, GROUPS = 1800, torch.arange(1800) % 3
ROWS = GROUPS[:, None].expand(-1, 8)
FACTORS = 1 + (torch.arange(1800 * 8).reshape(-1, 8) % 5 > 1) * 2.0**-7
SUMS = {
    "index_add": lambda x, y, z: y.index_add(0, GROUPS, x),
    "scatter_add": lambda x, y, z: y.scatter_add(0, ROWS, x),
    "scatter_reduce, sum": lambda x, y, z: y.scatter_reduce(0, ROWS, x, "sum"),
    "scatter_reduce, prod": lambda x, y, z: y.scatter_reduce(0, ROWS, FACTORS.to(x), "prod"),
    "scatter_reduce, mean": lambda x, y, z: y.scatter_reduce(0, ROWS, x, "mean"),
    "bags": lambda x, y, z: F.embedding_bag(GROUPS.view(3, -1), x, mode="sum"),
    "means of bags": lambda x, y, z: F.embedding_bag(GROUPS.view(3, -1), x, mode="mean"),
}


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_many_values_are_added_in_float32(dtype):
    """A sum of ones stops at 256 in bfloat16, at 2048 in float16."""
    torch.manual_seed(0)
    given = [(torch.rand(MANY, 8) + 0.5).to(dtype), *torch.ones(2, 3, 8, dtype=dtype)]
    made = weft.compile(All(list(SUMS.values())), tuple(given), cache=False)(*given)
    exact = [function(*(x.double() for x in given)) for function in SUMS.values()]
    for name, got, want in zip(SUMS, made, exact, strict=True):
        tolerance = 4 * torch.finfo(dtype).eps
        torch.testing.assert_close(
            torch.as_tensor(got).double(), want, rtol=tolerance, atol=0,
            msg=lambda m, n=name: f"{n}: {m}",
        )  # fmt: skip


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_the_root_of_small_mean_squares(dtype):
    """The epsilon that RMSNorm takes if it is given none: that of the type torch computes in."""
    model, x = torch.nn.RMSNorm(8).to(dtype), torch.rand(4, 8, dtype=dtype) / 1000
    made = weft.compile(model, (x,), cache=False)(x)
    torch.testing.assert_close(torch.as_tensor(made), model(x).detach())
