"""Quantised models: products of int8, and what torchao makes of layers where it is installed."""

from __future__ import annotations

import pytest
import torch

from tests.lib.aten import check_model, check_overload

pytestmark = pytest.mark.torch


@pytest.mark.parametrize("shape", [(5, 64, 8), (1, 300, 3)])
def test_products_of_int8_are_summed_in_int32(shape):
    rows, depth, columns = shape
    left = torch.randint(-128, 128, (rows, depth)).to(torch.int8)
    right = torch.full((depth, columns), -128, dtype=torch.int8)
    check_overload("aten._int_mm.default", left, right)
    check_overload("aten._int_mm.default", left, right.T.contiguous().T)


@pytest.mark.parametrize(
    "name", ["Int8DynamicActivationInt8WeightConfig", "Int8WeightOnlyConfig"]
)
def test_layers_of_torchao(name):
    quantization = pytest.importorskip("torchao.quantization")
    model = torch.nn.Sequential(torch.nn.Linear(64, 32), torch.nn.ReLU(), torch.nn.Linear(32, 8))
    quantization.quantize_(model.eval(), getattr(quantization, name)())
    check_model(model, torch.randn(4, 64))
