"""The element-wise operators of Relax as a table: PyTorch's function and the ranges of numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch.nn import functional as nn

Range = tuple[float, float]
ANY, UNIT, POSITIVE, ABOVE_ONE = (-10.0, 10.0), (-0.99, 0.99), (0.05, 10.0), (1.0, 50.0)
SHARE, WHOLE, FACTOR = (0.01, 0.99), (-1000.0, 1000.0), (1.0, 100.0)


@dataclass(frozen=True)
class Operation:
    """An operator by its name in Relax, the same in PyTorch, and a range for each argument."""

    name: str
    torch: Callable[..., Any]
    ranges: tuple[Range, ...]
    bounds: tuple[float, ...] = ()
    """Further arguments, which are numbers."""

    @property
    def arity(self) -> int:
        """The number of tensors."""
        return len(self.ranges)

    def ranges_of(self, dtype: str) -> tuple[Range, ...]:
        """The ranges; of integers those of ``WHOLE_RANGES``, or from -1000 to 1000."""
        if dtype.startswith("int"):
            return WHOLE_RANGES.get(self.name, (WHOLE,) * self.arity)
        return self.ranges

    def numbers(self, dtype: str) -> list[float]:
        """The further arguments in the type of the tensors."""
        return [int(n) if dtype.startswith("int") else n for n in self.bounds]


WHOLE_RANGES: Final[dict[str, tuple[Range, ...]]] = {
    "power": ((-9, 10), (0, 9)), "left_shift": (WHOLE, (0, 20)), "right_shift": (WHOLE, (0, 20)),
    **dict.fromkeys(("divide", "floor_divide", "mod", "floor_mod", "exact_floor_divide"),
                    (WHOLE, FACTOR)),
}  # fmt: skip
"""Ranges of integers where not all numbers do."""


def _quotient(x: Any, y: Any) -> Any:
    return x / y if x.is_floating_point() else torch.div(x, y, rounding_mode="trunc")


def _floor_quotient(x: Any, y: Any) -> Any:
    return torch.div(x, y, rounding_mode="floor")


UNARY: Final[dict[str, tuple[Callable[..., Any], Range]]] = {
    "abs": (torch.abs, ANY), "acos": (torch.acos, UNIT), "acosh": (torch.acosh, ABOVE_ONE),
    "asin": (torch.asin, UNIT), "asinh": (torch.asinh, ANY), "atan": (torch.atan, ANY),
    "atanh": (torch.atanh, UNIT), "ceil": (torch.ceil, ANY), "cos": (torch.cos, ANY),
    "cosh": (torch.cosh, ANY), "deg2rad": (torch.deg2rad, ANY), "digamma": (torch.digamma, ANY),
    "entr": (torch.special.entr, POSITIVE), "erf": (torch.erf, ANY), "erfc": (torch.erfc, ANY),
    "erfcx": (torch.special.erfcx, POSITIVE), "erfinv": (torch.erfinv, UNIT),
    "exp": (torch.exp, ANY), "exp2": (torch.exp2, ANY), "expm1": (torch.expm1, ANY),
    "floor": (torch.floor, ANY), "frac": (torch.frac, ANY), "i0": (torch.special.i0, ANY),
    "i0e": (torch.special.i0e, ANY), "i1": (torch.special.i1, ANY),
    "i1e": (torch.special.i1e, ANY), "isfinite": (torch.isfinite, ANY),
    "isinf": (torch.isinf, ANY), "isnan": (torch.isnan, ANY), "lgamma": (torch.lgamma, ANY),
    "log": (torch.log, POSITIVE), "log10": (torch.log10, POSITIVE),
    "log1p": (torch.log1p, POSITIVE), "log2": (torch.log2, POSITIVE),
    "log_ndtr": (torch.special.log_ndtr, ANY), "logical_not": (torch.logical_not, ANY),
    "bitwise_not": (torch.bitwise_not, ANY), "ndtr": (torch.special.ndtr, ANY),
    "ndtri": (torch.special.ndtri, SHARE), "negative": (torch.neg, ANY),
    "rad2deg": (torch.rad2deg, ANY), "reciprocal": (torch.reciprocal, ANY),
    "round": (torch.round, ANY), "rsqrt": (torch.rsqrt, POSITIVE),
    "sigmoid": (torch.sigmoid, ANY), "sign": (torch.sign, ANY), "sin": (torch.sin, ANY),
    "sinc": (torch.sinc, ANY), "sinh": (torch.sinh, ANY), "sqrt": (torch.sqrt, POSITIVE),
    "square": (torch.square, ANY), "tan": (torch.tan, ANY), "tanh": (torch.tanh, ANY),
    "trigamma": (lambda x: torch.polygamma(1, x), POSITIVE), "trunc": (torch.trunc, ANY),
    "nn.celu": (nn.celu, ANY), "nn.elu": (nn.elu, ANY), "nn.gelu": (nn.gelu, ANY),
    "nn.gelu_tanh": (lambda x: nn.gelu(x, approximate="tanh"), ANY),
    "nn.hardshrink": (nn.hardshrink, ANY), "nn.hardsigmoid": (nn.hardsigmoid, ANY),
    "nn.hardswish": (nn.hardswish, ANY), "nn.hardtanh": (nn.hardtanh, ANY),
    "nn.leakyrelu": (nn.leaky_relu, ANY), "nn.log_sigmoid": (nn.logsigmoid, ANY),
    "nn.mish": (nn.mish, ANY), "nn.relu": (torch.relu, ANY), "nn.relu6": (nn.relu6, ANY),
    "nn.selu": (nn.selu, ANY), "nn.silu": (nn.silu, ANY), "nn.softplus": (nn.softplus, ANY),
    "nn.softshrink": (nn.softshrink, ANY), "nn.softsign": (nn.softsign, ANY),
    "nn.tanhshrink": (nn.tanhshrink, ANY),
}  # fmt: skip
BINARY: Final[dict[str, tuple[Callable[..., Any], Range, Range]]] = {
    "add": (torch.add, ANY, ANY), "atan2": (torch.atan2, ANY, ANY),
    "bitwise_and": (torch.bitwise_and, ANY, ANY), "bitwise_or": (torch.bitwise_or, ANY, ANY),
    "bitwise_xor": (torch.bitwise_xor, ANY, ANY), "copysign": (torch.copysign, ANY, ANY),
    "divide": (_quotient, ANY, ANY), "equal": (torch.eq, ANY, ANY),
    "exact_floor_divide": (_floor_quotient, ANY, ANY),
    "floor_divide": (_floor_quotient, ANY, ANY), "floor_mod": (torch.remainder, ANY, ANY),
    "fmax": (torch.fmax, ANY, ANY), "fmin": (torch.fmin, ANY, ANY), "gcd": (torch.gcd, ANY, ANY),
    "greater": (torch.gt, ANY, ANY), "greater_equal": (torch.ge, ANY, ANY),
    "heaviside": (torch.heaviside, ANY, ANY), "hypot": (torch.hypot, ANY, ANY),
    "left_shift": (torch.bitwise_left_shift, ANY, ANY), "less": (torch.lt, ANY, ANY),
    "less_equal": (torch.le, ANY, ANY), "log_add_exp": (torch.logaddexp, ANY, ANY),
    "log_add_exp2": (torch.logaddexp2, ANY, ANY), "logical_and": (torch.logical_and, ANY, ANY),
    "logical_or": (torch.logical_or, ANY, ANY), "logical_xor": (torch.logical_xor, ANY, ANY),
    "maximum": (torch.maximum, ANY, ANY), "minimum": (torch.minimum, ANY, ANY),
    "mod": (torch.fmod, ANY, ANY), "multiply": (torch.mul, ANY, ANY),
    "nextafter": (torch.nextafter, ANY, ANY), "not_equal": (torch.ne, ANY, ANY),
    "power": (torch.pow, POSITIVE, ANY), "right_shift": (torch.bitwise_right_shift, ANY, ANY),
    "subtract": (torch.sub, ANY, ANY), "xlog1py": (torch.special.xlog1py, ANY, POSITIVE),
    "xlogy": (torch.xlogy, ANY, POSITIVE), "zeta": (torch.special.zeta, ABOVE_ONE, POSITIVE),
}  # fmt: skip
LEFT_OUT: Final = frozenset(("astype", "bitcast", "where"))
"""Operators whose arguments or results have types of their own."""
ROWS: Final = (
    *[Operation(name, function, (low,)) for name, (function, low) in UNARY.items()],
    *[Operation(name, function, tuple(ranges)) for name, (function, *ranges) in BINARY.items()],
    Operation("clip", lambda x: torch.clamp(x, -3, 4), (ANY,), (-3.0, 4.0)),
    Operation("ewise_fma", lambda a, b, c: torch.addcmul(c, a, b), (ANY, ANY, ANY)),
)
"""Every operator that is measured."""
