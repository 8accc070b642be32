"""Mixtures of experts: the grouped products of PyTorch and of transformers."""

from __future__ import annotations

import pytest
import torch

from tests.lib.aten import check_overload
from weft.relax.frontend.torch.capture import CaptureError, capture
from weft.relax.frontend.torch.operators import CONVERTERS
from weft.support.errors import UnsupportedError

pytestmark = pytest.mark.torch

ENDS = torch.tensor([2, 2, 7], dtype=torch.int32)
ROWS, MATRICES = torch.randn(7, 16).bfloat16(), torch.randn(3, 16, 8).bfloat16()


@pytest.mark.parametrize(
    ("first", "second", "ends"),
    [
        (ROWS, MATRICES, ENDS),
        (ROWS, torch.randn(3, 8, 16).bfloat16().transpose(1, 2), ENDS),
        (torch.randn(3, 8, 16).bfloat16(), torch.randn(7, 16).bfloat16().T, ENDS),
        (torch.randn(3, 8, 16).bfloat16(), MATRICES, None),
    ],
    ids=["rows", "transposed", "columns", "batches"],
)
def test_grouped_products(first, second, ends):
    check_overload("aten._grouped_mm.default", first, second, ends)


def test_gradients_of_weights_stay_with_torch():
    with pytest.raises(UnsupportedError, match=r"groups of rows .* of columns .*, got 2 and 2"):
        left, right = torch.randn(8, 8).bfloat16(), torch.randn(8, 8).bfloat16()
        check_overload("aten._grouped_mm.default", left, right, ENDS)


def test_the_products_of_transformers_have_a_converter():
    assert "transformers.grouped_mm_fallback.default" in CONVERTERS


class ChosenExperts(torch.nn.Module):
    """A loop over the experts that were hit, as transformers' eager implementation has it."""

    def set_experts_implementation(self, name):
        """What models of transformers have."""

    def forward(self, x):
        total = torch.zeros_like(x)
        for place in torch.nonzero(x.sum(1) > 0):
            total = total + x[place[0]]
        return total


def test_a_loop_over_chosen_experts_is_told_what_to_do():
    with pytest.raises(CaptureError, match=r"set_experts_implementation\(\"grouped_mm\"\)"):
        capture(ChosenExperts(), (torch.randn(3, 4),))


class LocalAttention(torch.nn.Module):
    """A branch on data in a model that can have experts, as all models of transformers."""

    def set_experts_implementation(self, name):
        """What models of transformers have."""

    def forward(self, x):
        is_global = (x > 0).any().item()
        if is_global:
            return x * 2
        return x


def test_a_branch_on_data_elsewhere_is_named_by_its_line():
    with pytest.raises(CaptureError, match=r"in forward: if is_global:\n.*torch.compile") as info:
        capture(LocalAttention(), (torch.randn(3, 4),))
    assert "experts" not in str(info.value)
