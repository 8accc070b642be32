"""Losses against PyTorch: with and without weights, over inner axes, of one sample."""

import itertools

import numpy as np
import pytest

from tests.lib.operator_cases import SAMPLED, Table, by_torch, row, t

torch = pytest.importorskip("torch")
nn = torch.nn.functional
SHAPES = [((3,), ()), ((4, 3), (4,)), ((2, 3, 4, 5), (2, 4, 5))]
WEIGHTS = [[], [t(3, fill=[0.5, 1.0, 2.0])]]


def likelihoods():
    for (shape, classes), weights in itertools.product(SHAPES, WEIGHTS):
        for reduction in ("none", "sum", "mean"):
            yield row(
                "nn.nll_loss", [t(*shape), t(*classes, dtype="int64", fill=[0, 2, 1, 1]), *weights],
                by_torch(lambda p, y, *w, r=reduction: nn.nll_loss(p, y, *w, reduction=r)),
                reduction=reduction, note=reduction,
            )  # fmt: skip
    ignored = t("n", dtype="int64", fill=[0, -100, 1])
    yield row("nn.nll_loss", [t("n", 3), ignored], by_torch(nn.nll_loss),
              sizes=({"n": 1}, {"n": 5}), note="ignored targets")  # fmt: skip


def entropies():
    name = "nn.cross_entropy_with_logits"
    yield row(name, [t(5), t(5)], lambda p, y: -np.sum(p * y))
    yield row(name, [t("n", 5), t("n", 5)], lambda p, y: -np.sum(p * y) / len(p),
              sizes=({"n": 1}, {"n": 4}))  # fmt: skip
    yield row(name, [t(2, 3, 4), t(2, 3, 4)], lambda p, y: -np.sum(p * y) / 2)


TABLE = Table([*likelihoods(), *entropies()])


@SAMPLED
@pytest.mark.parametrize("case", TABLE.cases, ids=str)
def test_loss(case):
    TABLE.check(case)
