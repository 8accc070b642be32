"""Quantised models: products of int8, and what torchao makes of layers where it is installed."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
import torch
import torch.ao.quantization.fx._decomposed  # the operators of PT2E

import weft
from tests.lib.aten import check_model, check_overload
from weft.ir.functor import collect
from weft.relax.expr import Call
from weft.relax.frontend.torch import from_exported_program
from weft.relax.transform.layout.dequantize_after_product import DequantizeAfterProduct

pytestmark = [pytest.mark.sampled(3), pytest.mark.torch]


@pytest.mark.parametrize("shape", [(5, 64, 8), (1, 300, 3)])
def test_products_of_int8_are_summed_in_int32(shape):
    rows, depth, columns = shape
    left = torch.randint(-128, 128, (rows, depth)).to(torch.int8)
    right = torch.full((depth, columns), -128, dtype=torch.int8)
    check_overload("aten._int_mm.default", left, right)
    check_overload("aten._int_mm.default", left, right.T.contiguous().T)


@pytest.mark.parametrize("name", ["Int8DynamicActivationInt8WeightConfig", "Int8WeightOnlyConfig"])
def test_layers_of_torchao(name):
    quantization = pytest.importorskip("torchao.quantization")
    model = torch.nn.Sequential(torch.nn.Linear(64, 32), torch.nn.ReLU(), torch.nn.Linear(32, 8))
    quantization.quantize_(model.eval(), getattr(quantization, name)())
    check_model(model, torch.randn(4, 64))


NETWORK_STEP = 0.05
"""The quantum of what the network below returns."""


def quantized(x, scale, zero_point, low=-128, high=127, dtype=torch.int8):
    """Integers and back, as convert_pt2e writes it around layers."""
    limits = (scale, zero_point, low, high, dtype)
    integers = torch.ops.quantized_decomposed.quantize_per_tensor.default(x, *limits)
    return torch.ops.quantized_decomposed.dequantize_per_tensor.default(integers, *limits)


class Weight(torch.nn.Module):
    """A weight of int8 with a scale for each of its first axis."""

    def __init__(self, weight):
        super().__init__()
        scales = weight.abs().amax(dim=tuple(range(1, weight.ndim))) / 127
        zeros = torch.zeros_like(scales, dtype=torch.int64)
        integers = torch.ops.quantized_decomposed.quantize_per_channel.default(
            weight, scales, zeros, 0, -127, 127, torch.int8
        )
        for name, tensor in (("integers", integers), ("scales", scales), ("zeros", zeros)):
            self.register_buffer(name, tensor)

    def forward(self):
        """The weight in float32."""
        return torch.ops.quantized_decomposed.dequantize_per_channel.default(
            self.integers, self.scales, self.zeros, 0, -127, 127, torch.int8
        )


class StaticNetwork(torch.nn.Module):
    """A convolution and a dense layer as PT2E's static quantisation leaves them."""

    def __init__(self):
        super().__init__()
        self.kernel, self.weight = Weight(torch.randn(8, 3, 3, 3) / 5), Weight(torch.randn(5, 8))
        self.bias = torch.nn.Parameter(torch.randn(8))

    def forward(self, x):
        """Five numbers of each image."""
        x = quantized(x, 0.03, 3)
        x = torch.nn.functional.conv2d(x, self.kernel(), self.bias, padding=1)
        x = quantized(torch.relu(x), 0.02, 0, 0, 255, torch.uint8)
        x = quantized(x.mean((2, 3)), 0.01, -5)
        return quantized(torch.nn.functional.linear(x, self.weight()), NETWORK_STEP, 1)


@pytest.mark.parametrize("shape", [(2, 3, 9, 7), (1, 3, 1, 1), (3, 3, 16, 5)])
def test_a_network_of_static_quantisation_is_within_a_quantum(shape):
    torch.manual_seed(0)
    model, x = StaticNetwork().eval(), torch.randn(shape)
    compiled = weft.compile(model, (x,), cache=False)
    for images in (x, 3 * torch.randn(shape)):
        with torch.no_grad():
            apart = (compiled(images) - model(images)).abs().max()
        assert float(apart) <= NETWORK_STEP * 1.01


def test_products_of_static_quantisation_are_sums_of_integers():
    """The pass for ONNX's QDQ models takes PT2E's, too, and their kernels multiply bytes."""
    torch.manual_seed(0)
    model, x = StaticNetwork().eval(), torch.randn(2, 3, 9, 7)
    target = weft.target.Target("llvm -mcpu=icelake-server -num-cores=2")
    with target:
        mod = DequantizeAfterProduct()(from_exported_program(torch.export.export(model, (x,))))
    calls = collect(mod["main"].body, Call)
    products = [call for call in calls if call.op.name in ("relax.nn.conv2d", "relax.matmul")]
    assert [str(call.struct_info.dtype) for call in products] == ["int32", "int32"]
    compiled = weft.compile(model, (x,), target=target, cache=False)
    assert "vpdpbusd" in compiled.get_source("asm")


DEGENERATE = torch.tensor([[-1e9, -0.5, 0.5], [1.5, 0.0, 1e9], [0.25, 0.75, -0.25]])


@pytest.mark.parametrize(
    ("dtype", "low", "high"),
    [
        (torch.int8, -128, 127), (torch.int8, -8, 7), (torch.uint8, 0, 255),
        (torch.uint8, 3, 100), (torch.int16, -32768, 32767), (torch.int32, -1000, 1000),
    ],
    ids=str,
)  # fmt: skip
def test_numbers_to_integers_and_back(dtype, low, high):
    """Ties go to even; what is outside of the limits becomes the nearest of them."""
    room, limits = "quantized_decomposed.", (low, high, dtype)
    scales, zeros = torch.tensor([0.5, 0.25, 3.0]), torch.tensor([3, 0, 5])
    for data in (DEGENERATE, DEGENERATE.bfloat16()):
        check_overload(room + "quantize_per_tensor.default", data, 0.5, 3, *limits)
    one = torch.tensor([0.5]), torch.tensor([3])
    check_overload(room + "quantize_per_tensor.tensor", DEGENERATE, *one, *limits)
    check_overload(room + "quantize_per_channel.default", DEGENERATE, scales, zeros, 1, *limits)
    integers = torch.randint(low, high + 1, (3, 4)).to(dtype)
    check_overload(room + "dequantize_per_tensor.default", integers, 0.1, 3, *limits)
    check_overload(room + "dequantize_per_tensor.tensor", integers, *one, *limits)
    check_overload(room + "dequantize_per_channel.default", integers, scales, zeros, 0, *limits)
    check_overload(room + "dequantize_per_channel.default", integers, scales, None, 0, *limits)


class Int4(torch.nn.Module):
    """A layer of torchao with weights of int4, a scale and a zero for each group of columns."""

    def __init__(self, rows, columns, group, dtype):
        super().__init__()
        numbers = torch.randint(0, 16, (rows, columns), dtype=torch.int32)
        packed = torch.ops.aten._convert_weight_to_int4pack_for_cpu(numbers, 1)
        self.register_buffer("packed", packed)
        self.register_buffer("scales", (torch.randn(columns // group, rows, 2) / 8).to(dtype))
        self.group = group

    def forward(self, x):
        """x times the weight that the packed numbers stand for."""
        return torch.ops.aten._weight_int4pack_mm_for_cpu(x, self.packed, self.group, self.scales)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_layers_of_int4(dtype):
    """Rows in whole blocks, in none, and in both."""
    torch.manual_seed(0)
    for rows, group in ((48, 64), (64, 32), (144, 32)):
        check_model(Int4(rows, 64, group, dtype), torch.randn(5, 64).to(dtype))


@pytest.mark.parametrize("shape", [(16, 2), (64, 4), (80, 6), (160, 32)])
def test_weights_are_packed_as_torch_packs_them(shape):
    numbers = torch.randint(0, 16, shape, dtype=torch.int32)
    check_overload("aten._convert_weight_to_int4pack_for_cpu.default", numbers, 1)


@pytest.mark.parametrize("capability", ["avx2", "default"])
def test_the_order_of_packed_weights_is_that_of_the_machine(capability):
    """What PyTorch does on other CPUs, which it decides once for a process."""
    code = (
        "import torch\n"
        "from tests.lib.aten import check_overload\n"
        "numbers = torch.randint(0, 16, (80, 6), dtype=torch.int32)\n"
        "check_overload('aten._convert_weight_to_int4pack_for_cpu.default', numbers, 1)\n"
    )
    environment = {**os.environ, "ATEN_CPU_CAPABILITY": capability}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_products_with_weights_of_int8(dtype):
    weight, scales = torch.randint(-128, 128, (32, 64)).to(torch.int8), torch.rand(32).to(dtype)
    name = "aten._weight_int8pack_mm.default"
    check_overload(name, torch.randn(5, 64).to(dtype), weight, scales)
