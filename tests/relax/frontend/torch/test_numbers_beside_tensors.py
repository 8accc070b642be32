"""Python numbers beside tensors: of 16-bit floats factors are float32, terms are not; sizes."""

import math

import pytest

import weft

pytestmark = pytest.mark.sampled(3)

torch = pytest.importorskip("torch")


class Of(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


def ran(function, x):
    return torch.as_tensor(weft.compile(Of(function), (x,), cache=False)(x))


OPERATIONS = {
    "x * 0.7": lambda x: x * 0.7, "x * 1e-6": lambda x: x * 1e-6, "x + 0.7": lambda x: x + 0.7,
    "x - 0.1": lambda x: x - 0.1, "0.1 - x": lambda x: 0.1 - x, "x / 0.7": lambda x: x / 0.7,
    "x * 1e5 / 1e5": lambda x: x * 1e5 / 1e5, "x * 2": lambda x: x * 2,
}  # fmt: skip


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("name", OPERATIONS)
def test_result_is_that_of_torch(name, dtype):
    torch.manual_seed(0)
    x = (torch.rand(1000) * 3 + 0.1).to(dtype)
    torch.testing.assert_close(
        ran(OPERATIONS[name], x), OPERATIONS[name](x), rtol=0, atol=0, equal_nan=True
    )


@pytest.mark.parametrize("bounds", [(-1, 1), (-1, None), (-5, -1), (1, 3)])
def test_negative_bounds_of_unsigned_integers_wrap(bounds):
    x = torch.tensor([0, 5, 200], dtype=torch.uint8)
    assert torch.equal(ran(lambda y: torch.clip(y, *bounds), x), torch.clip(x, *bounds))


SIZES = {
    "sym_float": lambda x: x * torch.sym_float(x.shape[0]),
    "floor": lambda x: x + math.floor(x.shape[0] * 0.5),
    "trunc": lambda x: x + math.trunc(x.shape[0] / 3),
    "ceil": lambda x: x + math.ceil(x.shape[0] / 3), "round": lambda x: x + round(x.shape[0] / 3),
}  # fmt: skip


@pytest.mark.parametrize("name", SIZES)
def test_a_number_computed_of_a_symbolic_size_has_torchs_type(name):
    from tests.lib.aten import check_model

    n = torch.export.Dim("n", min=2, max=64)
    x, other = (torch.arange(3 * rows, dtype=torch.int32).reshape(rows, 3) for rows in (7, 10))
    check_model(Of(SIZES[name]), x, dynamic_shapes=({0: n},), others=[(other,)])
