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


F = torch.nn.functional
WRAPPED = {
    "add": lambda x, v: x + v, "from": lambda x, v: v - x, "times": lambda x, v: x * v,
    "power of": lambda x, v: v ** (x % 4), "floor": lambda x, v: x // v, "and": lambda x, v: x & v,
    "rest": lambda x, v: x % v, "fmod": torch.fmod, "equal": lambda x, v: x == v,
    "less": lambda x, v: x < v, "more": lambda x, v: x >= v,
}  # fmt: skip
HELD = {
    "where": lambda x, v: torch.where(x > 3, x, v),
    "fill": lambda x, v: x.masked_fill(x > 3, v),
    "full": torch.full_like,
    "new": lambda x, v: x.new_full((2,), v),
    "clip": lambda x, v: torch.clip(x, v, 120),
    "at least": torch.clamp_min,
    "at most": torch.clamp_max,
    "threshold": lambda x, v: F.threshold(x, 3, v),
    "pad": lambda x, v: torch.ops.aten.constant_pad_nd(x, [1, 0], v),
    "scatter": lambda x, v: x.scatter(0, torch.tensor([1]), v),
    "index": lambda x, v: x.index_fill(0, torch.tensor([1]), v),
}


class Every(torch.nn.Module):
    """The results of all functions of a tensor and a number that PyTorch itself computes."""

    def __init__(self, functions, number):
        super().__init__()
        self.functions, self.number = functions, number

    def forward(self, x):
        return tuple(function(x, self.number) for function in self.functions)


@pytest.mark.parametrize("number", [-1, -200, 300, 2**35 + 7])
@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int16])
def test_integers_that_the_type_does_not_hold_wrap_around(dtype, number):
    x = torch.tensor([0, 5, 100, 3], dtype=dtype)
    functions = {**WRAPPED, **(HELD if dtype is torch.uint8 and -256 < number < 256 else {})}
    model = Every(list(functions.values()), number)
    made = weft.compile(model, (x,), cache=False)(x)
    for name, got, want in zip(functions, made, model(x), strict=True):
        got = torch.as_tensor(got)
        assert got.dtype == want.dtype
        assert torch.equal(got, want), name


@pytest.mark.parametrize("name", HELD)
def test_a_number_that_torch_does_not_convert_is_refused(name):
    x = torch.tensor([0, 5, 100, 3], dtype=torch.uint8)
    with pytest.raises(RuntimeError, match="without overflow"):
        HELD[name](x, 300)
    with pytest.raises(weft.TVMError, match="300"):
        weft.compile(Every([HELD[name]], 300), (x,), cache=False)


def test_padding_holds_every_integer():
    x, number = torch.arange(3), 2**53 + 1
    pad = HELD["pad"]
    assert torch.equal(ran(lambda y: pad(y, number), x), pad(x, number))


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
