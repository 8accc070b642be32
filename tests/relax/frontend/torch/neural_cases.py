"""Tables of calls of layers: overload, arguments and keywords, by family."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import torch

_SPEC = importlib.util.spec_from_file_location(
    "structure_cases", Path(__file__).with_name("structure_cases.py")
)
structure = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(structure)
call, numbers = structure.call, structure.numbers


def activations(dtype):
    """Calls of activations."""
    x, scalar, empty = (numbers(shape, dtype) for shape in ((5, 4), (), (0, 4)))
    plain = ("relu6", "selu", "silu", "mish", "hardswish", "hardsigmoid", "gelu", "hardtanh",
             "leaky_relu", "elu", "celu", "softplus", "softshrink", "hardshrink",
             "log_sigmoid_forward")  # fmt: skip
    made = [call(f"{name}.default", x) for name in plain]
    return [
        *made, call("gelu.default", scalar), call("gelu.default", x, approximate="tanh"),
        call("silu.default", empty), call("elu.default", x, 1.5, 1.25, 0.5),
        call("hardtanh.default", x, -0.5, 2.0), call("leaky_relu.default", x, -0.5),
        call("threshold.default", x, 0.5, 7.0), call("softplus.default", x, 2.0, 1.0),
        call("_prelu_kernel.default", x, numbers((1, 4), dtype)),
        call("prelu.default", x, numbers((4,), dtype)), call("glu.default", x),
        call("glu.default", x, 1), call("rrelu_with_noise.default", x, x),
        call("_softmax.default", x, 0, False), call("_softmax.default", scalar, -1, False),
        call("_log_softmax.default", x, -1, False), call("softmax.int", x, 1, torch.float32),
        call("_log_softmax.default", scalar, 0, False),
        call("_safe_softmax.default", torch.where(x > -9, x, -torch.inf), 1),
        call("_safe_softmax.default", torch.full_like(x, -torch.inf), 1),
    ]  # fmt: skip


def convolutions(dtype):
    """Calls of convolutions: grouped, depthwise, dilated, transposed, of 1 to 3 dimensions."""

    def conv(shape, weight, *options, bias=True, transposed=False, more=0, groups=1):
        rank = len(weight) - 2
        stride, padding, dilation = ([option] * rank for option in options)
        channels = weight[1] * groups if transposed else weight[0]
        return call(
            "convolution.default", numbers(shape, dtype), numbers(weight, dtype),
            numbers((channels,), dtype) if bias else None, stride, padding, dilation, transposed,
            [more] * rank, groups,
        )  # fmt: skip

    return [
        conv((2, 4, 9), (6, 4, 3), 2, 1, 1), conv((2, 4, 9, 8), (6, 2, 3, 2), 1, 1, 2, groups=2),
        conv((2, 4, 9, 8), (8, 1, 3, 3), 2, 0, 1, groups=4, bias=False),
        conv((1, 2, 5, 6, 4), (3, 2, 2, 3, 2), 1, 1, 1),
        conv((0, 4, 6, 6), (5, 4, 3, 3), 1, 0, 1),
        conv((2, 4, 5), (4, 3, 3), 2, 1, 1, transposed=True, more=1),
        conv((2, 4, 5, 5), (4, 3, 3, 2), 2, 1, 1, transposed=True, more=1, groups=2),
        conv((2, 4, 5, 5), (4, 3, 3, 2), 1, 0, 3, transposed=True, more=2, bias=False),
        conv((1, 2, 3, 3, 3), (2, 2, 2, 2, 2), 2, 1, 1, transposed=True),
    ]  # fmt: skip


def pools(dtype):
    """Calls of pooling: padding, ceil_mode, divisors, indices, adaptive sizes."""
    x, line, cube = (numbers(s, dtype) for s in ((2, 3, 9, 8), (2, 3, 9), (1, 2, 5, 6, 4)))
    return [
        call("max_pool1d.default", line, [3], [2], [1]),
        call("max_pool2d.default", x, [3, 2], [2, 2], [1, 1], [1, 2], True),
        call("max_pool3d.default", cube, [2], [2]),
        call("max_pool2d_with_indices.default", x, [3, 3], [2, 2], [1, 1], [1, 1], True),
        call("max_pool2d_with_indices.default", x[0], [2], [], [0], [2]),
        call("max_pool3d_with_indices.default", cube, [2, 3, 2], [1, 2, 1], [1, 1, 0]),
        call("avg_pool1d.default", line, [3], [2], [1], True, False),
        call("avg_pool2d.default", x, [3, 3], [2, 2], [1, 1], True, True),
        call("avg_pool2d.default", x, [3, 2], [2, 1], [1, 0], False, False),
        call("avg_pool2d.default", x[1], [3], [], [0], True),
        call("avg_pool2d.default", x, [3, 3], [2, 2], [1, 1], True, True, 5),
        call("avg_pool3d.default", cube, [2], [2], [1], True, False),
        call("_adaptive_avg_pool2d.default", x, [4, 3]),
        call("_adaptive_avg_pool2d.default", x, [3, 4]),
        call("_adaptive_avg_pool3d.default", cube, [2, 3, 2]),
        call("adaptive_avg_pool1d.default", line, [4]),
        call("adaptive_max_pool2d.default", x, [4, 3]),
        call("adaptive_max_pool3d.default", cube, [2, 6, 3]),
        call("adaptive_max_pool2d.default", x[0], [9, 2]),
    ]  # fmt: skip


def norms(dtype):
    """Calls of normalisations, with and without scales, and in training."""
    x, flat = numbers((2, 4, 5, 3), dtype), numbers((6, 4), dtype)
    w, b, mean = (numbers((4,), dtype) + shift for shift in (0.5, 1.0, 0.0))
    var = w.abs() + 0.5
    inference, functional = (
        "_native_batch_norm_legit_no_training.default",
        "_native_batch_norm_legit_functional.default",
    )
    return [
        call(inference, x, w, b, mean, var, 0.1, 1e-5),
        call(inference, flat, None, None, mean, var, 0.1, 1e-3),
        call(functional, x, w, b, mean, var, True, 0.1, 1e-5),
        call(functional, flat, None, b, mean, var, True, 0.3, 1e-5),
        call("_native_batch_norm_legit.no_stats", x, w, b, True, 0.1, 1e-5),
        call("native_layer_norm.default", x, [3], numbers((3,), dtype), numbers((3,), dtype), 1e-5),
        call("native_layer_norm.default", x, [5, 3], None, None, 1e-3),
        call("layer_norm.default", x, [3], numbers((3,), dtype)),
        call("native_group_norm.default", x, w, b, 2, 4, 15, 2, 1e-5),
        call("native_group_norm.default", x, None, None, 2, 4, 15, 4, 1e-5),
        call("native_group_norm.default", x[:0], w, b, 0, 4, 15, 2, 1e-5),
        call("rms_norm.default", x, [3], numbers((3,), dtype)),
        call("rms_norm.default", x, [5, 3], None, 1e-3),
        call("instance_norm.default", x, w, b, None, None, True, 0.1, 1e-5, False),
    ]  # fmt: skip


def attention(dtype):
    """Calls of attention: masks, causal, grouped heads, batches of other ranks."""
    q, k, v = (numbers(shape, dtype) for shape in ((2, 4, 3, 8), (2, 4, 5, 8), (2, 4, 5, 6)))
    allowed = torch.tensor([[True] * 5, [False] * 5, [True, False, True, True, False]])
    name = "scaled_dot_product_attention.default"
    flash = "_scaled_dot_product_flash_attention_for_cpu.default"
    return [
        call(name, q, k, v), call(name, q, k, v, None, 0.0, True),
        call(name, q, k, v, allowed), call(name, q, k, v, numbers((2, 1, 3, 5), dtype)),
        call(name, q, k, v, numbers((3, 1), dtype), scale=0.5),
        call(name, q, k, v, torch.where(allowed, 0.0, -torch.inf).to(q.dtype)),
        call(name, q[0], k[0], v[0]), call(name, q[0, 0], k[0, 0], v[0, 0], allowed),
        call(name, q[None], k[None], v[None], allowed[None, None, None]),
        call(name, q, k[:, :2], v[:, :2], enable_gqa=True),
        call(flash, q, k, k), call(flash, q, k, k, 0.0, True),
        call(flash, q, k, k, attn_mask=numbers((2, 4, 3, 5), dtype)),
    ]  # fmt: skip


def windows(dtype):
    """Calls of windows, unpooling, bags, distances, padding."""
    x, line = numbers((2, 3, 8, 9), dtype), numbers((2, 3, 7), dtype)
    geometry = ([3, 2], [1, 2], [1, 1], [2, 1])
    columns = torch.ops.aten.im2col(x.float(), *geometry).to(x.dtype)
    pooled, where = torch.ops.aten.max_pool2d_with_indices(x, [2, 2])
    rows, other = numbers((2, 3, 4), dtype), numbers((2, 5, 4), dtype)
    return [
        call("im2col.default", x, *geometry), call("col2im.default", columns, [8, 9], *geometry),
        call("im2col.default", x[0], [2, 2], [1, 1], [0, 0], [1, 1]),
        call("max_unpool2d.default", pooled, where, [8, 9]),
        *(call("_cdist_forward.default", rows, other, p, None)
          for p in (0.0, 1.0, 2.0, 3.0, float("inf"))),
        call("_pdist_forward.default", rows[0], 2.0),
        call("_trilinear.default", numbers((2, 3), dtype), numbers((4, 3, 5), dtype),
             numbers((2, 5), dtype), [1, 3], [0], [1, 2], [2, 3]),
        call("_weight_norm_interface.default", line, numbers((2, 1, 1), dtype) + 0.5, 0),
        call("constant_pad_nd.default", x, [1, -2, 0, 3], 1.5),
        call("constant_pad_nd.default", numbers((0, 3), dtype), [1, 1]),
        call("reflection_pad1d.default", line, [2, 3]),
        call("reflection_pad2d.default", x, [2, -1, 0, 3]),
        call("reflection_pad3d.default", x, [1, 2, 0, 1, 2, 1]),
        call("replication_pad2d.default", x, [-4, 5, 0, 9]),
        call("replication_pad1d.default", line[0], [9, 0]),
        call("pad.default", x, [1, 2, 3, 1], "circular"),
    ]  # fmt: skip


def gradients(dtype):
    """Calls of the gradients of pooling and convolution."""
    x, w = numbers((2, 4, 8, 9), dtype), numbers((6, 2, 3, 2), dtype)
    pooled, where = torch.ops.aten.max_pool2d_with_indices(x, [3, 3], [2, 2], [1, 1])
    options = ([2, 1], [1, 0], [1, 2], False, [0, 0], 2)
    made = torch.ops.aten.convolution(x, w, None, *options)
    turned = ([2, 1], [1, 0], [1, 2], True, [1, 0], 2)
    wt = numbers((4, 3, 3, 2), dtype)
    back = torch.ops.aten.convolution(x, wt, None, *turned)
    mask = [True, True, True]
    return [
        call("max_pool2d_with_indices_backward.default", pooled, x, [3, 3], [2, 2], [1, 1], [1, 1],
             False, where),
        call("avg_pool2d_backward.default", numbers((2, 4, 4, 5), dtype), x, [3, 3], [2, 2],
             [1, 1], False, True, None),
        call("avg_pool2d_backward.default", numbers((2, 4, 5, 5), dtype), x, [3, 3], [2, 2],
             [1, 1], True, False, None),
        call("avg_pool2d_backward.default", numbers((2, 4, 4, 5), dtype), x, [3, 3], [2, 2],
             [1, 1], False, True, 7),
        call("_adaptive_avg_pool2d_backward.default", numbers((2, 4, 3, 4), dtype), x),
        call("convolution_backward.default", made / 8, x, w, [6], *options, mask),
        call("convolution_backward.default", back / 8, x, wt, [6], *turned, mask),
    ]  # fmt: skip


def resampling(dtype):
    """Calls of resampling: sizes, factors, corners, antialias, grids."""
    line, x, cube = (numbers(s, dtype) for s in ((1, 2, 5), (1, 2, 4, 5), (1, 2, 3, 4, 5)))
    grid = (numbers((1, 3, 4, 2), dtype) / 3).clamp(-1.2, 1.2)
    points = (numbers((1, 2, 3, 4, 3), dtype) / 3).clamp(-1.2, 1.2)
    return [
        call("upsample_nearest1d.vec", line, None, [1.7]),
        call("upsample_nearest2d.vec", x, None, [2.0, 3.0]),
        call("upsample_nearest2d.vec", x, [7, 3], None),
        call("upsample_nearest3d.vec", cube, [3, 2, 9], None),
        call("_upsample_nearest_exact2d.vec", x, [7, 3], None),
        call("_upsample_nearest_exact2d.vec", x, None, [2.0, 2.0]),
        call("upsample_linear1d.vec", line, [8], False, None),
        call("upsample_bilinear2d.vec", x, None, False, [2.0, 2.0]),
        call("upsample_bilinear2d.vec", x, None, False, [1.7, 0.6]),
        call("upsample_bilinear2d.vec", x, [9, 1], True, None),
        call("upsample_bilinear2d.default", x, [3, 3], False),
        call("upsample_trilinear3d.vec", cube, [5, 3, 7], False, None),
        call("upsample_bicubic2d.vec", x, [9, 3], False, None),
        call("upsample_bicubic2d.vec", x, None, True, [2.3, 1.0]),
        call("upsample_bicubic2d.vec", x, None, False, [2.3, 1.6]),
        call("_upsample_bilinear2d_aa.vec", x, [2, 7], False, None),
        call("_upsample_bicubic2d_aa.vec", x, [2, 3], False, None),
        call("_upsample_bilinear2d_aa.vec", x, [2, 3], True, None),
        *(call("grid_sampler_2d.default", x, grid, mode, padding, False)
          for mode in (0, 1, 2) for padding in (0, 1, 2)),
        call("grid_sampler_3d.default", cube, points, 0, 1, True),
        call("affine_grid_generator.default", numbers((2, 2, 3), dtype), [2, 3, 4, 5], False),
        call("affine_grid_generator.default", numbers((1, 3, 4), dtype), [1, 1, 2, 3, 4], True),
    ]  # fmt: skip
