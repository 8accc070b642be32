"""Element-wise operators beside torch: no dimension, one element, none, several; broadcasting."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from tests.lib.aten import as_numpy, check_overload, graph_of, run_graph
from tests.lib.aten_samples import Call, calls_of, check_calls, pairs_of, values
from weft.relax.frontend.torch.operators.binary import (
    BITS,
    COMPARISONS,
    FLOATS,
    LOGIC,
)
from weft.relax.frontend.torch.operators.unary import (
    FLOAT_OPERATORS,
    INTEGER_KEEPING,
    PREDICATES,
    SAME_TYPE,
)

pytestmark = [pytest.mark.sampled(3), pytest.mark.torch]
f16, f32, f64, i8, i32, i64, u8, b8 = (
    torch.float16, torch.float32, torch.float64, torch.int8, torch.int32, torch.int64, torch.uint8,
    torch.bool,
)  # fmt: skip
ops = torch.ops.aten
DOMAIN = {
    "acosh": (1, 9), "acos": (-1, 1), "asin": (-1, 1), "atanh": (-0.9, 0.9), "log": (0, 9),
    "erfinv": (-1, 1), "lgamma": (-3.4, 30), "digamma": (-3.4, 30), "rsqrt": (0.1, 9),
    "sqrt": (0, 9), "log10": (0, 9), "log2": (0, 9), "special_ndtri": (0, 1), "tan": (-1.5, 1.5),
}  # fmt: skip
EDGES = torch.tensor([0.0, -0.0, math.inf, -math.inf, math.nan, 1e-30, -1e-30, 0.5, -2.5, 1e30])
ODD_AT_EDGES = {"digamma", "polygamma", "lgamma", "special_log_ndtr", "special_erfcx", "tan", "sin",
                "cos", "sinc", "i0", "special_i1"}  # fmt: skip
"""What torch itself gives at +-1e30 or +-inf differs between its own kernels."""


NO_HALF = {"special_erfcx", "special_log_ndtr", "special_ndtri"}
"""What torch does not take in float16 on a CPU."""


def test_operators_of_real_numbers():
    calls = []
    for name in FLOAT_OPERATORS:
        low, high = DOMAIN.get(name, (-3, 3))
        calls += calls_of(f"aten.{name}.default", [f32], [(2, 3)], low, high)
        calls += calls_of(f"aten.{name}.default", [i64], [()], low, high)
    check_calls(calls)


@pytest.mark.parametrize("names", [sorted(FLOAT_OPERATORS)[i::3] for i in range(3)])
def test_functions_of_real_numbers(names):
    calls = []
    for name in names:
        calls += calls_of(f"aten.{name}.default", [f32], [(7,)], *DOMAIN.get(name, (-3, 3)))
    check_calls(calls)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(FLOAT_OPERATORS))
def test_functions_of_real_numbers_in_all_types_and_shapes(name):
    low, high = DOMAIN.get(name, (-3, 3))
    full = f"aten.{name}.default"
    calls = calls_of(full, [f32, i64, b8], low=low, high=high)
    types = [f64, u8] if name in NO_HALF else [f16, f64, u8]
    calls += calls_of(full, types, [(2, 3)], low=low, high=high)
    if name not in ODD_AT_EDGES:
        calls.append(Call(calls[0].overload, (EDGES,), {}))
    check_calls(calls)


@pytest.mark.parametrize("name", sorted({*INTEGER_KEEPING, *SAME_TYPE, "abs", "relu", "frac"}))
def test_functions_that_keep_the_type(name):
    full = f"aten.{name}.default"
    integers = [] if name == "frac" else [i64]
    calls = calls_of(full, [f32, *integers]) + calls_of(full, [f16, *[i8, u8][: len(integers) * 2]],
                                                       [(2, 3)])  # fmt: skip
    calls.append(Call(calls[0].overload, (EDGES,), {}))
    check_calls(calls)


@pytest.mark.parametrize("name", sorted({*PREDICATES, "signbit", "isposinf", "isneginf"}))
def test_tests_of_numbers(name):
    calls = calls_of(f"aten.{name}.default", [f32, i64, b8, u8])
    check_calls([*calls, Call(calls[0].overload, (EDGES[[0, 1, 2, 3, 5]],), {})])


def test_complements():
    check_calls(calls_of("aten.bitwise_not.default", [i64, b8, u8])
                + calls_of("aten.logical_not.default", [i64, b8, f32]))  # fmt: skip


def test_rounding_to_decimals_and_limits():
    x = values((3, 4), f32, -9, 9)
    check_calls([
        *[Call(ops.round.decimals, (x * 1.37,), {"decimals": d}) for d in (2, 0, -1)],
        Call(ops.nan_to_num.default, (EDGES,), {}),
        Call(ops.nan_to_num.default, (EDGES, 3.0, 4.0, -5.0), {}),
        Call(ops.nan_to_num.default, (values((3,), i64),), {}),
        *[Call(ops.logit.default, (values((2, 3), f32, -0.2, 1.2), eps), {})
          for eps in (None, 0.1)],
        *[Call(ops.polygamma.default, (n, values((6,), f32, 0.3, 9)), {}) for n in (0, 1, 2, 4)],
        Call(ops.mvlgamma.default, (values((6,), f32, 2, 9), 3), {}),
    ])  # fmt: skip


@pytest.mark.parametrize("dtype", [f32, i64, f16], ids=str)
def test_clamp(dtype):
    x, low, high = values((2, 3), dtype), values((3,), dtype, -1, 1), values((2, 1), dtype, 0, 2)
    wrong = torch.tensor([math.nan, 1.0]).to(f32)
    check_calls([
        Call(ops.clamp.default, (x, -1, 2), {}), Call(ops.clamp.default, (x, None, 1.5), {}),
        Call(ops.clamp.default, (x, 2, -1), {}), Call(ops.clamp.Tensor, (x, low, high), {}),
        Call(ops.clamp.Tensor, (x, None, high), {}), Call(ops.clamp_min.default, (x, 1), {}),
        Call(ops.clamp_max.default, (x, 1), {}), Call(ops.clamp_min.Tensor, (x, low), {}),
        Call(ops.clamp_max.Tensor, (x, low), {}), Call(ops.clamp.default, (wrong, 0, 1), {}),
        Call(ops.clamp.default, (x[:0], 0, 1), {}), Call(ops.clamp.default, (x[0, 0], 0, 1), {}),
    ])  # fmt: skip


MIXED = [(f32, f32), (i64, i64), (i64, f32), (b8, i32), (f16, f32)]


@pytest.mark.parametrize("name", ["add.Tensor", "sub.Tensor", "mul.Tensor", "div.Tensor",
                                  "maximum.default", "minimum.default"])  # fmt: skip
def test_arithmetic_promotes_and_broadcasts(name):
    calls = pairs_of(f"aten.{name}", MIXED)
    if name.startswith("sub"):
        calls = [call for call in calls if call.args[0].dtype is not b8]
    else:
        calls += pairs_of(f"aten.{name}", [(b8, b8)])
    check_calls([call for call in calls if not name.startswith("div") or _no_zero(call)], 40)


def _no_zero(call: Call) -> bool:
    return call.args[1].dtype.is_floating_point or bool(call.args[1].all())


def test_numbers_as_operands():
    x, n = values((2, 3), f32), values((2, 3), i64)
    check_calls([
        Call(ops.add.Tensor, (x, n), {"alpha": 2}), Call(ops.add.Scalar, (n, 1.5), {}),
        Call(ops.add.Scalar, (n, 2, 3), {}), Call(ops.sub.Tensor, (n, n), {"alpha": 2}),
        Call(ops.mul.Scalar, (n, 2.5), {}), Call(ops.mul.Scalar, (n > 0, 2), {}),
        Call(ops.rsub.Scalar, (x, 2, 3), {}), Call(ops.div.Scalar, (n, 2), {}),
        Call(ops.eq.Scalar, (n, 1.0), {}), Call(ops.ge.Scalar, (n, 1.5), {}),
        Call(ops.bitwise_and.Scalar, (n, 6), {}), Call(ops.remainder.Scalar, (x, -1.3), {}),
        Call(ops.remainder.Scalar_Tensor, (7, x), {}), Call(ops.fmod.Scalar, (n, 2), {}),
        Call(ops.bitwise_or.Scalar, (n, 6), {}), Call(ops.bitwise_xor.Scalar, (n, 6), {}),
        Call(ops.gt.Scalar, (n, 1.5), {}),
        Call(ops.div.Scalar_mode, (n, 2), {"rounding_mode": "floor"}),
        Call(ops.atan2.out, (x, x * x), {"out": torch.zeros(2, 3)}),
        Call(ops.lerp.Scalar, (x, x * x, 0.75), {}), Call(ops.lerp.Tensor, (x, x * x, x), {}),
        Call(ops.addcmul.default, (x, x, n), {"value": 0.5}),
        Call(ops.addcdiv.default, (x, x, x * x + 1), {"value": -2}),
    ])  # fmt: skip


@pytest.mark.parametrize("mode", [None, "trunc", "floor"])
def test_quotients(mode):
    calls = pairs_of("aten.div.Tensor_mode", [(f32, f32), (i64, i64), (f64, f32), (u8, u8)],
                     kwargs={"rounding_mode": mode})  # fmt: skip
    edges = Call(ops.div.Tensor_mode, (EDGES[:, None], EDGES), {"rounding_mode": mode})
    check_calls([*[c for c in calls if _no_zero(c)], edges])


@pytest.mark.parametrize("name", ["remainder.Tensor", "fmod.Tensor"])
def test_remainders(name):
    calls = pairs_of(f"aten.{name}", [(f32, f32), (i64, i64), (i32, f32), (u8, u8)], -7, 8)
    check_calls([call for call in calls if _no_zero(call)])


@pytest.mark.parametrize("name", sorted({*COMPARISONS, *LOGIC}))
def test_comparisons_and_logic(name):
    overload = "Tensor" if name in COMPARISONS else "default"
    check_calls(pairs_of(f"aten.{name}.{overload}", [(f32, f32), (i64, f32), (b8, i64), (b8, b8)]))


@pytest.mark.parametrize("name", sorted(n for n in BITS if not n.startswith("__")))
def test_bits(name):
    is_shift = name.endswith("shift")
    dtypes = [(i64, i64)] if is_shift else [(i64, i64), (b8, b8)]
    low, high = (0, 70) if is_shift else (-9, 9)
    narrow = pairs_of(f"aten.{name}.Tensor", [(u8, i32), (i8, i8)], low, high)
    check_calls(pairs_of(f"aten.{name}.Tensor", dtypes, low, high) + narrow[::5])


INTEGERS_TOO = {"atan2", "fmax", "fmin", "xlogy", "copysign", "special_zeta", "special_xlog1py"}


@pytest.mark.parametrize("name", sorted({*FLOATS} - {"arctan2", "special_xlogy"}))
def test_functions_of_two_numbers(name):
    overload = "Tensor" if name in ("copysign", "xlogy") else "default"
    dtypes = [(f32, f32)] + ([(i64, i64)] if name in INTEGERS_TOO else [])
    calls = pairs_of(f"aten.{name}.{overload}", dtypes, 0.3, 4)
    check_calls(calls[::3] if name.startswith("special") else calls)
    if not name.startswith(("special", "xlogy")):
        check_overload(f"aten.{name}.{overload}", EDGES[:, None].contiguous(), EDGES)


def test_divisors_and_multiples():
    check_calls(pairs_of("aten.gcd.default", [(i64, i64)], -60, 48)
                + pairs_of("aten.lcm.default", [(i8, i32)], -9, 12)[::2])  # fmt: skip


def test_where_and_fills():
    x, n, c = values((2, 3), f32), values((3,), i64), values((2, 1), b8)
    check_calls([
        Call(ops.where.self, (c, x, n), {}), Call(ops.where.self, (c, n, n), {}),
        Call(ops.where.ScalarOther, (c, x, 2), {}), Call(ops.where.Scalar, (c, 1.0, 2), {}),
        Call(ops.masked_fill.Scalar, (x, c, -1), {}),
        Call(ops.masked_fill.Tensor, (x, c, torch.tensor(7)), {}),
        Call(ops.isclose.default, (EDGES, EDGES), {}),
        Call(ops.isclose.default, (EDGES, EDGES), {"equal_nan": True}),
        Call(ops.isclose.default, (n, n + 1), {"rtol": 0.4}),
    ])  # fmt: skip


@pytest.mark.parametrize("exponent", [0, 1, 2, 3, 0.5, -0.5, -1, -2, 1.7, 20, -20])
def test_powers_of_floats_to_a_number(exponent):
    x = values((2, 3), f32, 0.2, 3)
    check_calls([Call(ops.pow.Tensor_Scalar, (item, exponent), {}) for item in
                 (x, x[0, 0], x[:0], x.half(), values((3,), i64, 1, 4).double())])  # fmt: skip


def test_powers():
    n, k = values((2, 4), i64, -3, 4), values((4,), i64, 0, 70)
    x = values((2, 3), f32, 0.2, 3)
    check_calls([
        Call(ops.pow.Tensor_Scalar, (n, 3), {}), Call(ops.pow.Tensor_Scalar, (n, 41), {}),
        Call(ops.pow.Tensor_Scalar, (n, 1.5), {}), Call(ops.pow.Scalar, (2, k % 9), {}),
        Call(ops.pow.Scalar, (2.5, x), {}), Call(ops.pow.Tensor_Tensor, (n, k), {}),
        Call(ops.pow.Tensor_Tensor, (x, x), {}), Call(ops.pow.Tensor_Tensor, (x, k[:3] % 5), {}),
        Call(ops.pow.Tensor_Tensor, (values((4,), u8, 0, 9), values((4,), u8, 0, 9)), {}),
        Call(ops.pow.Tensor_Tensor, (torch.tensor([1, -1, -1, 2]),
                                     torch.tensor([-3, -3, -4, -1])), {}),
        Call(ops.float_power.Tensor_Scalar, (n, 2), {}),
    ])  # fmt: skip


def test_choices_between_values_at_the_edges():
    check_calls([
        Call(ops.threshold.default, (EDGES, 0.1, 20.0), {}),
        Call(ops.heaviside.default, (EDGES, EDGES.flip(0)), {}),
    ])  # fmt: skip


def exactly_equal(name, *args):
    """One call in weft and in torch, of which all bits are equal but those of NaN."""
    overload = getattr(ops, name).Tensor
    wanted = overload(*args)
    found = run_graph(graph_of(overload, args, {}), args)
    for mine, its in zip(found, wanted if isinstance(wanted, tuple) else [wanted], strict=True):
        assert mine.dtype == as_numpy(its).dtype
        # in float64, since numpy does not compare NaNs of bfloat16
        wide = [x.astype("float64") for x in (mine, as_numpy(its))]
        np.testing.assert_array_equal(*wide, err_msg=f"{name}{args}")


SCALED = [0.0, -0.0, math.inf, -math.inf, math.nan, 1e-40, -1.4e-45, 0.75, -2.5, 1.0, 3e38, -3e38]


@pytest.mark.parametrize("dtype", [f32, f64], ids=str)
def test_fractions_and_exponents(dtype):
    """Subnormal numbers, and powers beyond those of the type, are rounded once."""
    x = torch.tensor([*SCALED, 5e-324, 1e-310, -1e308], dtype=f64).to(dtype)
    exactly_equal("frexp", x)
    powers = torch.tensor([-2200, -1074, -200, -149, -24, -1, 0, 1, 127, 150, 1000, 1100, 2100])
    for chosen in (powers, powers.to(i32)):
        exactly_equal("ldexp", x[:, None].repeat(1, 13), chosen.repeat(15, 1))
    exactly_equal("ldexp", x, torch.tensor([3.0], dtype=dtype).repeat(15))


def test_fractions_and_exponents_of_other_types():
    x = torch.tensor([*SCALED[:5], 6e-8, 0.75, -300.0])
    for dtype in (f16, torch.bfloat16):
        exactly_equal("frexp", x.to(dtype))
        exactly_equal("ldexp", x.to(dtype), torch.tensor([3, 4, 5, 6, 7, 20, -24, 2]))
    exactly_equal("ldexp", torch.arange(5), torch.arange(5))
