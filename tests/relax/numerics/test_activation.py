"""Activations beyond the first dozen, against PyTorch."""

import math

import pytest

from tests.lib.operator_cases import SAMPLED, Table, by_torch, row, t

torch = pytest.importorskip("torch")
nn = torch.nn.functional
INF, NAN = math.inf, math.nan
N = ({"n": 0}, {"n": 1}, {"n": 5})
EXTREME = [-80.0, -20.0, -3.0, -0.5, 0.0, 0.5, 3.0, 20.0, 80.0, NAN, INF]

# operator: PyTorch's function, attributes of ours, options of PyTorch's
ACTIVATIONS = [
    ("nn.elu", nn.elu, {}, {}),
    ("nn.elu", nn.elu, {"alpha": 0.3}, {"alpha": 0.3}),
    ("nn.celu", nn.celu, {}, {}),
    ("nn.celu", nn.celu, {"alpha": 2.5}, {"alpha": 2.5}),
    ("nn.mish", nn.mish, {}, {}),
    ("nn.softsign", nn.softsign, {}, {}),
    ("nn.log_sigmoid", nn.logsigmoid, {}, {}),
    ("nn.hardsigmoid", nn.hardsigmoid, {}, {}),
    ("nn.hardswish", nn.hardswish, {}, {}),
    ("nn.hardtanh", nn.hardtanh, {}, {}),
    ("nn.hardtanh", nn.hardtanh, {"min_val": 0.25, "max_val": 2.0},
     {"min_val": 0.25, "max_val": 2.0}),
    ("nn.hardshrink", nn.hardshrink, {}, {}),
    ("nn.hardshrink", nn.hardshrink, {"lambd": 1.0}, {"lambd": 1.0}),
    ("nn.softshrink", nn.softshrink, {}, {}),
    ("nn.softshrink", nn.softshrink, {"lambd": 0.0}, {"lambd": 0.0}),
    ("nn.tanhshrink", nn.tanhshrink, {}, {}),
]  # fmt: skip


def cases():
    for name, function, attrs, options in ACTIVATIONS:
        reference, note = by_torch(function, **options), ",".join(map(str, attrs.values()))
        yield row(name, [t("n", 5)], reference, sizes=N, note=note, **attrs)
        yield row(name, [t()], reference, note=note, **attrs)
        yield row(name, [t(2, 3, dtype="float64")], reference, note=note, **attrs)
        yield row(name, [t(6, dtype="float16")], reference, note=note, tolerance=4e-3, **attrs)
        # softsign and mish of an infinity are NaN in PyTorch as by their formulas
        fill = EXTREME[:-1] if name in ("nn.softsign", "nn.mish", "nn.tanhshrink") else EXTREME
        yield row(name, [t(len(fill), fill=fill)], reference, note=f"extreme {note}", **attrs)


def slopes():
    yield row("nn.prelu", [t("n", 3, 4), t(1)], by_torch(nn.prelu), sizes=N[1:], note="one slope")
    yield row("nn.prelu", [t("n", 4, 3), t(3)], lambda x, a: x * (x > 0) + a * x * (x <= 0),
              axis=-1, sizes=N, note="last axis")  # fmt: skip


TABLE = Table([*cases(), *slopes()])


@SAMPLED
@pytest.mark.parametrize("case", TABLE.cases, ids=str)
def test_activation(case):
    TABLE.check(case)
