"""Complex numbers inside of a model, and Fourier transforms, beside torch."""

from __future__ import annotations

import pytest
import torch

import weft
from tests.lib.aten import Model, check_model
from tests.lib.aten_samples import Call, check_calls
from weft.relax.frontend.missing import UnsupportedOperatorsError
from weft.relax.frontend.torch import from_exported_program
from weft.relax.frontend.torch.capture import capture
from weft.relax.frontend.torch.complex_tensor import COMPLEX
from weft.relax.frontend.torch.operators import CONVERTERS
from weft.relax.frontend.torch.operators.complex_numbers import BILINEAR, COMPONENTWISE

pytestmark = pytest.mark.torch
ops = torch.ops.aten


@pytest.fixture(autouse=True)
def same_numbers():
    torch.manual_seed(0)


def test_every_operator_of_parts_has_a_converter_of_real_tensors():
    assert sorted({*COMPONENTWISE, *BILINEAR} - set(CONVERTERS)) == []
    assert {name.removesuffix(COMPLEX) for name in CONVERTERS} > {"aten._fft_r2c.default"}


@pytest.mark.slow
def test_transforms_of_torch_fft():
    def transforms(x):
        return (
            torch.view_as_real(torch.fft.rfft(x)),
            torch.fft.fft2(x, norm="ortho").real,
            torch.fft.irfft(torch.fft.rfft(x, n=11), n=11),
            torch.fft.fftn(x).abs(),
            torch.fft.ifft(torch.fft.ifft2(x), n=5).imag,
            torch.fft.hfft(torch.fft.ihfft(x, norm="forward")),
            torch.fft.fftshift(torch.fft.fft(x, dim=0)).real,
            torch.fft.irfft2(torch.fft.rfft2(x, norm="backward"), s=(8, 10)),
        )

    check_model(Model(transforms), torch.randn(3, 8, 10))


def there_and_back(x):
    found = torch.fft.rfft(x)
    return torch.view_as_real(found), torch.fft.irfft(found * 1j)


def test_long_transforms_go_in_two_steps():
    program = capture(Model(there_and_back), (torch.randn(2, 1030),))
    assert "1030, 516)" not in from_exported_program(program).script()  # a matrix of all sines


@pytest.mark.slow
def test_long_transforms():
    check_model(Model(there_and_back), torch.randn(2, 1030))


def test_spectrograms():
    def power(x, window):
        return torch.stft(x, 8, 4, window=window, return_complex=True).abs() ** 2

    check_model(Model(power), torch.randn(2, 20), torch.hann_window(8))


@pytest.mark.slow
def test_short_time_transforms_and_back():
    def again(x, window):
        found = torch.stft(x, 16, 4, window=window, return_complex=True)
        return torch.istft(found, 16, 4, window=window, length=64)

    check_model(Model(again), torch.randn(2, 64), torch.hann_window(16))


class SpectralLayer(torch.nn.Module):
    """The layer of a Fourier neural operator (Li et al., 2021), with complex buffers beside."""

    def __init__(self):
        super().__init__()
        self.low = torch.nn.Parameter(torch.randn(3, 4, 3, 3, dtype=torch.cfloat))
        self.high = torch.nn.Parameter(torch.randn(3, 4, 3, 3, dtype=torch.cfloat))
        self.register_buffer("shift", torch.randn(8, 6, dtype=torch.cfloat))

    def forward(self, x):
        spectrum = torch.fft.rfft2(x)
        made = torch.zeros(x.shape[0], 4, 8, 6, dtype=torch.cfloat)
        made[:, :, :3, :3] = torch.einsum("bixy,ioxy->boxy", spectrum[:, :, :3, :3], self.low)
        made[:, :, -3:, :3] = torch.einsum("bixy,ioxy->boxy", spectrum[:, :, -3:, :3], self.high)
        return torch.fft.irfft2(made + self.shift, s=(8, 10))


def test_a_spectral_layer():
    check_model(SpectralLayer(), torch.randn(2, 3, 8, 10))


def test_a_transform_along_a_symbolic_dimension():
    n = torch.export.Dim("n", min=3, max=40)
    mixes = Model(lambda x: torch.fft.fft(x + 1, dim=0, norm="ortho").real)
    check_model(
        mixes, torch.randn(6), dynamic_shapes=(({0: n},),),
        others=[(torch.randn(9),), (torch.randn(16),)],
    )  # fmt: skip


def test_rotations_of_pairs():
    def rotated(q):
        angles = torch.outer(torch.arange(6.0), 100.0 ** -torch.arange(0, 1, 0.25))
        turns = torch.polar(torch.ones_like(angles), angles)
        pairs = torch.view_as_complex(q.reshape(2, 6, 4, 2))
        return torch.view_as_real(pairs * turns[None]).flatten(2)

    check_model(Model(rotated), torch.randn(2, 6, 8))


def numbers(*shape):
    return torch.randn(shape, dtype=torch.cfloat)


def test_arithmetic_of_complex_numbers():
    z, w, x = numbers(2, 3), numbers(3), torch.randn(2, 3)
    zero = torch.zeros(2, dtype=torch.cfloat)
    check_calls([
        Call(ops.add.Tensor, (z, w), {"alpha": 2}), Call(ops.add.Tensor, (x, z), {}),
        Call(ops.sub.Tensor, (z, x), {}), Call(ops.add.Scalar, (z, 1 - 2j), {}),
        Call(ops.mul.Tensor, (z, w), {}), Call(ops.mul.Tensor, (x, w), {}),
        Call(ops.mul.Tensor, (z, numbers()), {}), Call(ops.div.Tensor, (z, w), {}),
        Call(ops.div.Tensor, (x, w), {}), Call(ops.div.Tensor, (z, x), {}),
        Call(ops.div.Tensor, (z * 1e30, w * 1e30), {}), Call(ops.reciprocal.default, (z,), {}),
        Call(ops.mm.default, (z, numbers(3, 2)), {}), Call(ops.neg.default, (z[:0],), {}),
        Call(ops.abs.default, (torch.cat([z.flatten(), zero]) * 1e30,), {}),
        Call(ops.angle.default, (z,), {}), Call(ops.sgn.default, (torch.cat([w, zero]),), {}),
        Call(ops._conj.default, (z,), {}), Call(ops.exp.default, (z,), {}),
        Call(ops.log.default, (z,), {}),
        Call(ops._to_copy.default, (x,), {"dtype": torch.cfloat}),
    ])  # fmt: skip


def test_shapes_and_choices_of_complex_numbers():
    z, x = numbers(2, 3), torch.randn(2, 3)
    mask = torch.tensor([True, False])
    check_calls([
        Call(ops.cat.default, ([z, x], 1), {}), Call(ops.where.self, (x > 0, z, x), {}),
        Call(ops.masked_fill.Scalar, (z, x > 0, 1), {}), Call(ops.sum.dim_IntList, (z, [0]), {}),
        Call(ops.constant_pad_nd.default, (z, [1, 0], 2), {}),
        Call(ops.split.Tensor, (z, 2, 1), {}), Call(ops.roll.default, (z, [1], [1]), {}),
        Call(ops.index_put.default, (z, [mask], numbers(3)), {}),
        Call(ops.new_zeros.default, (z, [2]), {"dtype": torch.float32}),
        Call(ops.full.default, ([2, 2], 1 + 2j), {}), Call(ops.ones_like.default, (z,), {}),
        Call(ops.t.default, (z,), {}), Call(ops.mean.dim, (z, [-1]), {}),
    ])  # fmt: skip


def test_checks_of_complex_numbers_are_left_out():
    """torch.export asserts the dtype that ``to`` saw."""

    def widened(x):
        return torch.view_as_real(torch.view_as_complex(x).to(torch.complex128))

    check_model(Model(widened).eval(), torch.randn(3, 2))


@pytest.mark.parametrize(
    ("function", "told"),
    [
        (lambda x: torch.fft.fft(x), "expected a model with real results"),
        (
            lambda x: torch.fft.fft(x).logcumsumexp(0).real,
            r"aten\.logcumsumexp\.default \(complex\), once",
        ),
        (
            lambda x: torch.einsum("...a,a,a->a", *[torch.fft.fft(x)] * 3).real,
            "expected a letter for each axis of two operands or more",
        ),
    ],
)
def test_what_cannot_be_imported_is_told(function, told):
    program = capture(Model(function), (torch.randn(4),))
    with pytest.raises(weft.TVMError, match=told):
        from_exported_program(program)


def test_complex_inputs_are_refused():
    program = capture(Model(lambda z: z.real), (numbers(4),))
    with pytest.raises(weft.TVMError, match=r"expected a real tensor.*torch\.view_as_real"):
        from_exported_program(program)


def test_the_fallback_runs_operators_of_complex_numbers_in_torch():
    model = Model(lambda x: torch.fft.fft(x).logcumsumexp(0).abs())
    program = capture(model, (torch.randn(4),))
    with pytest.raises(UnsupportedOperatorsError):
        from_exported_program(program)
    x = torch.randn(4)
    found = weft.compile(program, fallback="torch")(x)
    torch.testing.assert_close(found, model(x))


def test_roots_sines_norms_and_comparisons():
    def functions(x, y):
        z = torch.complex(x, y)
        found = [
            function(z)
            for function in (torch.sqrt, torch.sinh, torch.cosh, torch.tanh, torch.sin, torch.cos,
                             torch.tan)
        ]  # fmt: skip
        norms = torch.linalg.vector_norm(z, dim=1), torch.linalg.norm(z), z.norm(p=1, dim=0)
        compared = z == z.conj(), z != 2.0, z == torch.complex(y, x), z == x
        return *[torch.view_as_real(item) for item in found], *norms, *compared

    x, y = torch.randn(4, 5), torch.randn(4, 5)
    y[:, 0] = 0
    x[0, :2], x[1, 0] = 0, 2.0
    check_model(Model(functions), x, y)


def test_the_tangent_of_large_numbers_is_no_nan():
    x = torch.tensor([-90.0, 90.0, 3.0])
    check_model(Model(lambda x: torch.view_as_real(torch.tanh(torch.complex(x, x)))), x)


def of_numbers(*functions):
    """A model that gives what functions of complex numbers give, as real numbers."""

    def give(x, y):
        results = [function(torch.complex(x, y)) for function in functions]
        results = [item.resolve_conj() for item in results]
        return [torch.view_as_real(item) if item.is_complex() else item for item in results]

    return Model(give)


def test_inverses_logarithms_and_powers():
    x, y = torch.randn(5, 6) * 2, torch.randn(5, 6)
    x[0], y[1], x[2], y[2] = 0, 0, 0.001, 0.001
    names = "asin acos atan asinh acosh atanh expm1 log1p exp2 log2 log10 sinc rsqrt".split()
    functions = [getattr(torch, name) for name in names]
    powers = [
        lambda z: z**2.5, lambda z: z**-3, lambda z: z**0.5, lambda z: z ** (1 + 2j),
        lambda z: z**z, lambda z: 2**z, lambda z: z**0, torch.sigmoid,
        lambda z: (0 * z) ** (z.abs() + 1), lambda z: (0 * z) ** (1 + 2j), lambda z: z**z.real,
    ]  # fmt: skip
    check_model(of_numbers(*functions, *powers), x, y)


def test_inverses_are_exact_in_float64():
    """On both sides of the branch cuts, near 0, near 1 and far away."""
    x = torch.tensor([1e-9, -1e-9, 0.5, 1.0, -1.0, 2.0, -2.0, 1e8, -3.0, 1.0000001]).double()
    y = torch.tensor([1e-9, 1e-9, -1e-12, 1e-7, 1e-7, 0.0, 0.0, 1e8, -0.0, -1e-8]).double()
    for name in ("asin", "acos", "atan", "asinh", "acosh", "atanh"):
        function = getattr(torch, name)
        found = weft.compile(of_numbers(function), (x, y), cache=False)(x, y)[0]
        want = torch.view_as_real(function(torch.complex(x, y)))
        torch.testing.assert_close(found, want, rtol=1e-13, atol=1e-22)


def test_products_and_moments():
    check_model(
        of_numbers(
            torch.prod, lambda z: z.prod(1), lambda z: z.prod(0, keepdim=True),
            lambda z: z[:, :0].prod(1), lambda z: z[0, 0].prod(), lambda z: z.cumprod(1),
            lambda z: z.var(1), lambda z: z.std(), lambda z: z.var(0, unbiased=False),
            lambda z: torch.vdot(z[0], z[1]), torch.trace,
            lambda z: torch.einsum("ab,cb,cd", z, z, z),
            lambda z: torch.einsum("a,b,c->cb", z[0], z[1], z[2]),
            lambda z: torch.lerp(z, z * 2j, 0.3), lambda z: torch.addcmul(z, z, z, value=2j),
            lambda z: torch.addcdiv(z, z, z + 1),
            lambda z: torch.addmm(z[:4], z[:4, :4], z[:4]),
            lambda z: z[:4, :4] @ torch.eye(4, 3, dtype=torch.cfloat),
        ),
        torch.randn(5, 7), torch.randn(5, 7),
    )  # fmt: skip


def test_properties_and_choices():
    x = torch.tensor([1.0, float("nan"), 0.0, float("inf"), 2.0])
    y = torch.tensor([float("nan"), 1.0, float("inf"), 0.0, 3.0])
    check_model(of_numbers(torch.isnan, torch.isinf, torch.isfinite), x, y)
    z = torch.randn(3, 4)
    masked = of_numbers(lambda z: torch.masked_select(z, z.real > 0))
    check_model(masked, z, torch.randn(3, 4))


def test_matrices():
    check_model(
        of_numbers(
            torch.linalg.inv, lambda z: torch.linalg.solve(z, z[0, :, 0]), torch.linalg.matrix_exp,
            lambda z: torch.linalg.solve(z, z.mT), lambda z: torch.linalg.solve(z, z, left=False),
        ),
        torch.randn(2, 3, 3), torch.randn(2, 3, 3),
    )  # fmt: skip
