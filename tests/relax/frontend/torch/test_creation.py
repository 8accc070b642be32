"""Tensors made from numbers, copies, gradients of normalisations, and ``item``, beside torch."""

from __future__ import annotations

import pytest
import torch

from tests.lib.aten import check_model
from tests.lib.aten_samples import SHAPES, Call, check_calls, run_calls, values

pytestmark = pytest.mark.torch
f16, f32, f64, i32, i64, u8, b8 = (
    torch.float16, torch.float32, torch.float64, torch.int32, torch.int64, torch.uint8, torch.bool,
)  # fmt: skip
ops = torch.ops.aten


def test_one_value_everywhere():
    x = values((2, 3), i64)
    check_calls([
        *[Call(ops.full.default, (shape, 2), {"dtype": dtype})
          for shape in SHAPES for dtype in (f32, i64, b8)],
        Call(ops.full_like.default, (x, 2.5), {"dtype": f16}), Call(ops.fill.Scalar, (x, 7), {}),
        Call(ops.fill.Tensor, (x, torch.tensor(7.5)), {}),
        Call(ops.new_full.default, (x, [0, 2], 1), {}), Call(ops.zeros.default, ([2],), {}),
        Call(ops.ones_like.default, (x,), {}), Call(ops.new_zeros.default, (x, [3]), {}),
        Call(ops.scalar_tensor.default, (3,), {"dtype": f64}),
    ])  # fmt: skip


def test_what_is_empty_has_the_shape_and_the_type():
    calls = [Call(ops.empty.memory_format, ([2, 0],), {"dtype": i64}),
             Call(ops.empty_strided.default, ([2, 3], [1, 2]), {})]  # fmt: skip
    (first,), (second,) = run_calls(calls)
    assert (first.shape, first.dtype) == ((2, 0), "int64")
    assert (second.shape, second.dtype) == ((2, 3), "float32")


def test_rows_of_numbers():
    check_calls([
        Call(ops.arange.start_step, (0, 7, 2), {}), Call(ops.arange.start_step, (5, -4, -3), {}),
        Call(ops.arange.start_step, (0.5, 3.0, 0.3), {}), Call(ops.arange.default, (0,), {}),
        Call(ops.arange.start, (1, 4), {"dtype": f16}),
        Call(ops.arange.start_step, (1.5, 8.0, 1.7), {"dtype": i64}),
        Call(ops.linspace.default, (-1, 2, 7), {}), Call(ops.linspace.default, (3, 0, 1), {}),
        Call(ops.linspace.default, (0, 9, 0), {}), Call(ops.linspace.default, (0, 9, 5),
                                                       {"dtype": i32}),
        Call(ops.logspace.default, (0, 3, 4), {}), Call(ops.logspace.default, (0, 3, 4, 2.0), {}),
    ])  # fmt: skip


def test_triangles_and_diagonals():
    x = values((2, 3, 4), f32)
    check_calls([
        Call(ops.eye.default, (3,), {}), Call(ops.eye.m, (2, 4), {"dtype": i64}),
        *[Call(op, (x, k), {}) for op in (ops.tril.default, ops.triu.default) for k in (-1, 0, 2)],
        Call(ops.tril.default, (x[0] > 0,), {}), Call(ops.triu.default, (x[:0],), {}),
        Call(ops.tril_indices.default, (3, 4, 1), {}), Call(ops.triu_indices.default, (3, 4), {}),
    ])  # fmt: skip


def test_conversions_and_copies():
    x, n = values((2, 3), f32, 0, 90), values((3,), i64, -300, 300)
    check_calls([
        *[Call(ops._to_copy.default, (item,), {"dtype": dtype})
          for item in (x, n > 0, x[:0], x[0, 0]) for dtype in (f16, f32, f64, i32, i64, b8, u8)],
        Call(ops._to_copy.default, (n,), {"dtype": u8}), Call(ops.clone.default, (x,), {}),
        Call(ops.copy.default, (x, n), {}), Call(ops.resize_.default, (x, [2, 2]), {}),
    ])  # fmt: skip


class Sizes(torch.nn.Module):
    def forward(self, x):
        n = x.shape[0]
        line = torch.arange(n, dtype=f32)
        return (
            torch.full((n, 2), 1.5), line + x, torch.zeros_like(x), torch.eye(n),
            torch.full((2,), n) * n, torch.ones(n, n).tril(), x.clone().fill_(n),
        )  # fmt: skip


class Made(torch.nn.Module):
    """Tensors that torch makes of numbers by operators that have no converter."""

    def forward(self, x):
        windows = (torch.hamming_window(6, periodic=False), torch.kaiser_window(6),
                   torch.blackman_window(6, dtype=f64), torch.bartlett_window(6))  # fmt: skip
        frequencies = torch.fft.fftfreq(6, 0.5), torch.fft.rfftfreq(10)
        return [x * item for item in (*windows, *frequencies)]


def test_windows_and_frequencies():
    check_model(Made(), torch.randn(2, 6))


def test_symbolic_sizes():
    n = torch.export.Dim("n", min=2)
    check_model(Sizes(), torch.randn(4), dynamic_shapes=({0: n},), others=[(torch.randn(7),)])


class Scaled(torch.nn.Module):
    def forward(self, x, s):
        return x * s.item(), torch.arange(4) + s.max().item()


def test_item_of_a_float_is_a_number():
    x = values((3,), f32)
    check_model(Scaled(), x, torch.tensor(2.5), others=[(x, torch.tensor(-1.5))])


class Head(torch.nn.Module):
    def forward(self, x, n):
        k = n.item()
        torch._check(k >= 0)
        torch._check(k <= x.shape[0])
        return x[:k] * 2, x + k, torch.full((k,), 1.5)


def test_item_of_an_integer_is_a_size():
    x = values((5, 3), f32)
    check_model(Head(), x, torch.tensor(3), others=[(x, torch.tensor(0)), (x, torch.tensor(5))])


def test_item_of_a_boolean_is_a_condition():
    for holds in (True, False):
        check_calls([Call(ops._local_scalar_dense.default, (torch.tensor(holds),), {})])


@pytest.mark.parametrize("mask", [[True, True, True], [True, False, False]])
def test_gradient_of_layer_normalisation(mask):
    x, w = values((2, 3, 4), f32).sin(), values((3, 4), f32)
    _, mean, rstd = ops.native_layer_norm(x, [3, 4], w, w, 1e-5)
    backward = ops.native_layer_norm_backward.default
    check_calls([Call(backward, (x.cos(), x, [3, 4], mean, rstd, w, w, mask), {}),
                 Call(backward, (x.cos(), x, [3, 4], mean, rstd, None, None,
                                 [mask[0], False, False]), {})])  # fmt: skip


def test_gradient_of_group_normalisation():
    torch.manual_seed(0)
    x, w = torch.randn(2, 6, 5), values((6,), f32)
    _, mean, rstd = ops.native_group_norm(x, w, w, 2, 6, 5, 3, 1e-5)
    backward = ops.native_group_norm_backward.default
    check_calls([Call(backward, (x.cos(), x, mean, rstd, w, 2, 6, 5, 3, [True] * 3), {}),
                 Call(backward, (x.cos(), x, mean, rstd, None, 2, 6, 5, 3,
                                 [True, False, False]), {})])  # fmt: skip


@pytest.mark.parametrize("by_frequency", [False, True])
@pytest.mark.parametrize("padding", [-1, 1])
def test_gradient_of_an_embedding(padding, by_frequency):
    gradient, places = values((2, 3, 4), f32), torch.tensor([[0, 1, 1], [3, 1, 6]])
    check_calls([Call(ops.embedding_dense_backward.default,
                      (gradient, places, 7, padding, by_frequency), {})])  # fmt: skip
