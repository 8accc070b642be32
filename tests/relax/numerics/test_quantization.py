"""Quantisation: types, one scale for all and one an index, constants, what leaves the range."""

import numpy as np
import pytest

from tests.lib.operator_cases import SAMPLED, Case, Table, row, t
from weft.relax.expr import const
from weft.relax.op.definition import FUNCTIONS as F

N = ({"n": 0}, {"n": 1}, {"n": 5})
SCALES = [0.1, 0.02, 0.5]


def quantized(axis, out, data_type="float32"):
    limits = np.iinfo(out)

    def reference(x, scale, zero):
        shape = [-1 if place == axis % x.ndim else 1 for place in range(x.ndim)]
        x, scale = x.astype(data_type), np.reshape(scale, shape).astype(data_type)
        whole = np.round(x / scale) + np.reshape(zero, shape).astype(data_type)
        return np.clip(whole, limits.min, limits.max).astype(out)

    return reference


def dequantized(axis):
    def reference(x, scale, zero):
        shape = [-1 if place == axis % x.ndim else 1 for place in range(x.ndim)]
        distance = x.astype("float64") - np.reshape(zero, shape).astype("float64")
        return distance * np.reshape(scale, shape)

    return reference


def far(generator, shape):
    return generator.standard_normal(shape) * 40


def to_integers():
    for out in ("int8", "uint8", "int16"):
        parameters = [t(3, fill=SCALES), t(3, dtype=out, fill=[0, 3, 7])]
        yield row("quantize", [t("n", 3, fill=far), *parameters], quantized(-1, out), sizes=N,
                  axis=-1, out_dtype=out, note=out)  # fmt: skip
        yield row("quantize", [t(2, 3, "n", fill=far), *parameters], quantized(1, out),
                  sizes=N, axis=1, out_dtype=out, note=f"{out} inner axis")  # fmt: skip
    yield row("quantize", [t(4, fill=[0.25, 0.75, -0.25, 1.25]), t(fill=[0.5]), t(dtype="int8")],
              quantized(0, "int8"), note="ties")  # fmt: skip
    yield row(
        "quantize",
        [t(6, dtype="float16"), t(dtype="float16", fill=[0.03]), t(dtype="int8", fill=[2])],
        quantized(0, "int8", "float16"), note="half",
    )  # fmt: skip
    yield Case(
        "quantize", lambda x: F["quantize"](x, const(0.1, "float32"), const(3, "int8")),
        [t("n", 4, fill=far)],
        lambda x: quantized(0, "int8")(x, np.array([0.1]), np.array([3])), N, note="constants",
    )  # fmt: skip


def to_floats():
    for kind in ("int8", "uint8", "int32"):
        parameters = [t(3, fill=SCALES), t(3, dtype=kind, fill=[0, 3, 7])]
        for out in ("float32", "float16"):
            yield row("dequantize", [t("n", 3, dtype=kind), *parameters], dequantized(-1),
                      sizes=N, axis=-1, out_dtype=out, note=f"{kind} {out}")  # fmt: skip
    # 70,000 has no float16, 70,000 * 0.01 has
    large = t(3, dtype="int32", fill=[70_000, -70_000, 12_345])
    yield row("dequantize", [large, t(fill=[0.01]), t(dtype="int32")], dequantized(0),
              out_dtype="float16", note="large distance")  # fmt: skip
    yield row(
        "dequantize", [large, t(fill=[1.0]), t(dtype="int32")],
        lambda x, s, z: np.clip(dequantized(0)(x, s, z), -65504, 65504),
        out_dtype="float16", note="beyond the range",
    )  # fmt: skip
    yield row("dequantize", [t(4), t(fill=[0.5]), t(fill=[0.25])], dequantized(0),
              note="of floats")  # fmt: skip
    yield Case(
        "dequantize", lambda x: F["dequantize"](x, const(0.1, "float32"), const(3, "int8")),
        [t("n", 4, dtype="int8")],
        lambda x: (x.astype("float64") - 3) * np.float32(0.1), N, note="constants",
    )  # fmt: skip


TABLE = Table([*to_integers(), *to_floats()])


@SAMPLED
@pytest.mark.parametrize("case", TABLE.cases, ids=str)
def test_quantization(case):
    TABLE.check(case)
