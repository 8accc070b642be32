"""Programs that designs of search are tried on: convolutions, products, norms (TVM's names).

``create_te_workload("C2D", 0)`` is one of the layers that Ansor's and MetaSchedule's papers use.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

from weft import te, topi
from weft.meta_schedule.testing.te_transposed import conv2d_transpose_nhwc
from weft.support.errors import IRValueError
from weft.te.tensor import Tensor
from weft.tir.function import PrimFunc

Tensors: TypeAlias = tuple[Tensor, ...]


def _convolution(
    name: str, sizes: Sequence[int], channels: tuple[int, int], kernel: int, options: dict[str, Any]
) -> Tensors:
    """A convolution with channels last over any number of dimensions."""
    stride, padding = options["stride"], options["padding"]
    dilation, groups = options["dilation"], options["groups"]
    batch, *inner = sizes
    out_dtype, count = options["out_dtype"], len(inner)
    in_group, out_group = channels[0] // groups, channels[1] // groups
    data = te.placeholder((*sizes, channels[0]), name="inputs", dtype=options["in_dtype"])
    weight = te.placeholder(
        (*[kernel] * count, in_group, channels[1]), name="weight", dtype=options["in_dtype"]
    )
    reach = dilation * (kernel - 1)
    result = [(size + 2 * padding - reach - 1) // stride + 1 for size in inner]
    steps = [
        te.reduce_axis((0, kernel), name=f"r{axis}") for axis in ("lhw"[0], "hw", "dhw")[count - 1]
    ]
    rc = te.reduce_axis((0, in_group), name="rc")
    padded = topi.nn.pad(data, [0, *[padding] * count, 0])

    def element(n: Any, *rest: Any) -> Any:
        *place, co = rest
        where = [p * stride + r * dilation for p, r in zip(place, steps, strict=True)]
        channel = co // out_group * in_group + rc
        left = padded[(n, *where, channel)].astype(out_dtype)
        return te.sum(left * weight[(*steps, rc, co)].astype(out_dtype), axis=[*steps, rc])

    return data, weight, te.compute((batch, *result, channels[1]), element, name=name)


def conv1d_nlc(
    N: int, L: int, CI: int, CO: int, kernel_size: int, stride: int = 1, padding: int = 0,
    dilation: int = 1, groups: int = 1, in_dtype: str = "float32", out_dtype: str = "float32",
) -> Tensors:  # fmt: skip
    """A convolution over one dimension, channels last: data, weight, result."""
    options = {
        "stride": stride, "padding": padding, "dilation": dilation, "groups": groups,
        "in_dtype": in_dtype, "out_dtype": out_dtype,
    }  # fmt: skip
    return _convolution("conv1d_nlc", (N, L), (CI, CO), kernel_size, options)


def conv2d_nhwc(
    N: int, H: int, W: int, CI: int, CO: int, kernel_size: int, stride: int = 1, padding: int = 0,
    dilation: int = 1, groups: int = 1, in_dtype: str = "float32", out_dtype: str = "float32",
) -> Tensors:  # fmt: skip
    """A convolution over two dimensions, channels last: data, weight, result."""
    options = {
        "stride": stride, "padding": padding, "dilation": dilation, "groups": groups,
        "in_dtype": in_dtype, "out_dtype": out_dtype,
    }  # fmt: skip
    return _convolution("conv2d_nhwc", (N, H, W), (CI, CO), kernel_size, options)


def conv3d_ndhwc(
    N: int, D: int, H: int, W: int, CI: int, CO: int, kernel_size: int, stride: int = 1,
    padding: int = 0, dilation: int = 1, groups: int = 1, in_dtype: str = "float32",
    out_dtype: str = "float32",
) -> Tensors:  # fmt: skip
    """A convolution over three dimensions, channels last: data, weight, result."""
    options = {
        "stride": stride, "padding": padding, "dilation": dilation, "groups": groups,
        "in_dtype": in_dtype, "out_dtype": out_dtype,
    }  # fmt: skip
    return _convolution("conv3d_ndhwc", (N, D, H, W), (CI, CO), kernel_size, options)


def depthwise_conv2d_nhwc(
    N: int, H: int, W: int, C: int, kernel_size: int, stride: int = 1, padding: int = 0,
    dilation: int = 1, factor: int = 1, in_dtype: str = "float32", out_dtype: str = "float32",
) -> Tensors:  # fmt: skip
    """A convolution of each channel by itself: data, weight, result."""
    data = te.placeholder((N, H, W, C), name="placeholder", dtype=in_dtype)
    weight = te.placeholder(
        (factor, kernel_size, kernel_size, C), name="placeholder", dtype=in_dtype
    )
    reach = dilation * (kernel_size - 1)
    height, width = ((size + 2 * padding - reach - 1) // stride + 1 for size in (H, W))
    rh, rw = (te.reduce_axis((0, kernel_size), name=name) for name in ("rh", "rw"))
    padded = topi.nn.pad(data, [0, padding, padding, 0])

    def element(n: Any, h: Any, w: Any, c: Any) -> Any:
        left = padded[n, h * stride + rh * dilation, w * stride + rw * dilation, c // factor]
        right = weight[c % factor, rh, rw, c // factor]
        return te.sum(left.astype(out_dtype) * right.astype(out_dtype), axis=[rh, rw])

    result = te.compute((N, height, width, C * factor), element, name="depth_conv2d_nhwc")
    return data, weight, result


def conv2d_capsule_nhwijc(
    N: int, H: int, W: int, CI: int, CO: int, kernel_size: int, stride: int = 1, padding: int = 0,
    capsule_size: int = 4, in_dtype: str = "float32", out_dtype: str = "float32",
) -> Tensors:  # fmt: skip
    """A convolution of matrices instead of numbers: data, weight, result."""
    inner, kernel = (capsule_size, capsule_size), (kernel_size, kernel_size)
    data = te.placeholder((N, H, W, *inner, CI), name="inputs", dtype=in_dtype)
    weight = te.placeholder((*kernel, *inner, CI, CO), name="weight", dtype=in_dtype)
    height, width = ((size + 2 * padding - kernel_size) // stride + 1 for size in (H, W))
    rh, rw = (te.reduce_axis((0, kernel_size), name=name) for name in ("rh", "rw"))
    k = te.reduce_axis((0, capsule_size), name="cap_k")
    rc = te.reduce_axis((0, CI), name="rc")
    padded = topi.nn.pad(data, [0, padding, padding, 0, 0, 0])

    def element(n: Any, h: Any, w: Any, i: Any, j: Any, co: Any) -> Any:
        left = padded[n, h * stride + rh, w * stride + rw, i, k, rc].astype(out_dtype)
        right = weight[rh, rw, k, j, rc, co].astype(out_dtype)
        return te.sum(left * right, axis=[rh, rw, k, rc])

    shape = (N, height, width, *inner, CO)
    return data, weight, te.compute(shape, element, name="conv2d_capsule_nhwijc")


def batch_matmul_nkkm(
    B: int, N: int, M: int, K: int, in_dtype: str = "float32", out_dtype: str = "float32"
) -> Tensors:
    """A batch of products of matrices: left, right, result."""
    left = te.placeholder((B, N, K), name="X", dtype=in_dtype)
    right = te.placeholder((B, K, M), name="Y", dtype=in_dtype)
    k = te.reduce_axis((0, K), name="k")

    def element(b: Any, i: Any, j: Any) -> Any:
        return te.sum(left[b, i, k].astype(out_dtype) * right[b, k, j].astype(out_dtype), axis=[k])

    return left, right, te.compute((B, N, M), element, name="Z")


def matmul(
    n: int, m: int, k: int, in_dtype: str = "float32", out_dtype: str = "float32"
) -> Tensors:
    """A product of matrices: left, right, result."""
    left = te.placeholder((n, k), name="A", dtype=in_dtype)
    right = te.placeholder((k, m), name="B", dtype=in_dtype)
    axis = te.reduce_axis((0, k), name="k")

    def element(i: Any, j: Any) -> Any:
        return te.sum(left[i, axis].astype(out_dtype) * right[axis, j].astype(out_dtype), axis=axis)

    return left, right, te.compute((n, m), element, name="C")


def matmul_relu(
    n: int, m: int, k: int, in_dtype: str = "float32", out_dtype: str = "float32"
) -> Tensors:
    """A product of matrices and relu: left, right, result."""
    left, right, product = matmul(n, m, k, in_dtype, out_dtype)
    return left, right, topi.nn.relu(product)


def transpose_batch_matmul(
    batch: int, seq_len: int, n_head: int, n_dim: int, in_dtype: str = "float32",
    out_dtype: str = "float32",
) -> Tensors:  # fmt: skip
    """The products of queries and values of attention: query, value, result."""
    shape = (batch, seq_len, n_head, n_dim)
    query, value = (te.placeholder(shape, name=name, dtype=in_dtype) for name in ("query", "value"))
    left = te.compute(
        (batch, n_head, seq_len, n_dim), lambda b, h, s, d: query[b, s, h, d], name="query_T"
    )
    right = te.compute(
        (batch, n_head, n_dim, seq_len), lambda b, h, d, s: value[b, s, h, d], name="value_T"
    )
    k = te.reduce_axis((0, n_dim), name="k")

    def element(b: Any, h: Any, i: Any, j: Any) -> Any:
        products = left[b, h, i, k].astype(out_dtype) * right[b, h, k, j].astype(out_dtype)
        return te.sum(products, axis=[k])

    result = te.compute((batch, n_head, seq_len, seq_len), element, name="C")
    return query, value, result


def conv2d_nhwc_bn_relu(
    N: int, H: int, W: int, CI: int, CO: int, kernel_size: int, strides: int, padding: int,
    dilation: int = 1, in_dtype: str = "float32", out_dtype: str = "float32",
) -> Tensors:  # fmt: skip
    """A convolution, a normalisation and relu: data, weight, bias, offset, scale, result."""
    data = te.placeholder((N, H, W, CI), name="data", dtype=in_dtype)
    kernel = te.placeholder((kernel_size, kernel_size, CI, CO), name="kernel", dtype=in_dtype)
    bias, scale, offset = (
        te.placeholder((CO,), name=name) for name in ("bias", "bn_scale", "bn_offset")
    )
    reach = dilation * (kernel_size - 1)
    height, width = ((size + 2 * padding - reach - 1) // strides + 1 for size in (H, W))
    padded = topi.nn.pad(data, [0, padding, padding, 0], name="PaddedInput")
    rc = te.reduce_axis((0, CI), name="rc")
    ry, rx = (te.reduce_axis((0, kernel_size), name=name) for name in ("ry", "rx"))

    def element(nn: Any, yy: Any, xx: Any, ff: Any) -> Any:
        left = padded[nn, yy * strides + ry * dilation, xx * strides + rx * dilation, rc]
        return te.sum(
            left.astype(out_dtype) * kernel[ry, rx, rc, ff].astype(out_dtype), [ry, rx, rc]
        )

    shape = (N, height, width, CO)
    result = te.compute(shape, element, name="Conv2dOutput", tag="conv2d_nhwc")
    added = te.compute(shape, lambda n, h, w, c: result[n, h, w, c] + bias[c], name="bias_add")
    scaled = te.compute(shape, lambda n, h, w, c: added[n, h, w, c] * scale[c], name="bn_mul")
    moved = te.compute(shape, lambda n, h, w, c: scaled[n, h, w, c] + offset[c], name="bn_add")
    return data, kernel, bias, offset, scale, topi.nn.relu(moved)


def conv2d_nchw(
    n: int, h: int, w: int, ci: int, co: int, kh: int, kw: int, stride: int, padding: int,
    dilation: int = 1, in_dtype: str = "float32", out_dtype: str = "float32",
) -> Tensors:  # fmt: skip
    """A convolution with channels first: data, weight, result."""
    data = te.placeholder((n, ci, h, w), name="X", dtype=in_dtype)
    weight = te.placeholder((co, ci, kh, kw), name="W", dtype=in_dtype)
    return data, weight, topi.nn.conv2d_nchw(data, weight, stride, padding, dilation, out_dtype)


def conv2d_nchw_bias_bn_relu(
    n: int, h: int, w: int, ci: int, co: int, kh: int, kw: int, stride: int, padding: int,
    dilation: int = 1, in_dtype: str = "float32", out_dtype: str = "float32",
) -> Tensors:  # fmt: skip
    """The same, a bias, a normalisation and relu: data, weight, bias, scale, offset, result."""
    data, weight, value = conv2d_nchw(
        n, h, w, ci, co, kh, kw, stride, padding, dilation, in_dtype, out_dtype
    )
    height = (h + 2 * padding - (kh - 1) * dilation - 1) // stride + 1
    width = (w + 2 * padding - (kw - 1) * dilation - 1) // stride + 1
    shape = (n, co, height, width)
    bias, scale, offset = (
        te.placeholder((co, 1, 1), name=name, dtype=out_dtype)
        for name in ("B", "bn_scale", "bn_offset")
    )
    added = te.compute(shape, lambda n, c, h, w: value[n, c, h, w] + bias[c, 0, 0], name="bias_add")
    scaled = te.compute(shape, lambda n, c, h, w: added[n, c, h, w] * scale[c, 0, 0], name="bn_mul")
    moved = te.compute(
        shape, lambda n, c, h, w: scaled[n, c, h, w] + offset[c, 0, 0], name="bn_add"
    )
    return data, weight, bias, scale, offset, topi.nn.relu(moved)


def max_pool2d_nchw(n: int, h: int, w: int, ci: int, padding: int) -> Tensors:
    """The largest of each window of 2 by 2: data, result."""
    data = te.placeholder((n, ci, h, w), name="X")
    return data, topi.nn.pool2d(data, [2, 2], [1, 1], [1, 1], [padding] * 4, "max")


def softmax_mn(m: int, n: int) -> Tensors:
    """Softmax of each row: data, result."""
    data = te.placeholder((m, n), name="A")
    return data, topi.nn.softmax(data, axis=1)


def norm_bmn(B: int, M: int, N: int) -> Tensors:
    """The Euclidean norm of each matrix of a batch: data, result."""
    data = te.placeholder((B, M, N), name="A")
    i, j = te.reduce_axis((0, M), name="i"), te.reduce_axis((0, N), name="j")
    squares = te.compute(
        (B,), lambda b: te.sum(data[b, i, j] * data[b, i, j], axis=[i, j]), name="C"
    )
    return data, te.compute((B,), lambda b: te.sqrt(squares[b]), name="D")


Row: TypeAlias = tuple[Callable[..., Tensors], Sequence[tuple[int, ...]]]
_RESNET: Final = (
    (1, 224, 224, 3, 64, 7, 2, 3), (1, 56, 56, 64, 64, 1, 1, 0), (1, 14, 14, 256, 256, 3, 1, 1),
    (1, 7, 7, 512, 512, 3, 1, 1),
)  # fmt: skip
CONFIGS: Final[dict[str, Row]] = {
    "C1D": (
        conv1d_nlc,
        (
            (1, 256, 64, 128, 3, 2, 1), (1, 128, 128, 256, 1, 2, 0), (1, 64, 256, 256, 5, 1, 2),
            (1, 32, 512, 512, 3, 1, 1),
        ),
    ),
    "C2D": (conv2d_nhwc, _RESNET),
    "C3D": (conv3d_ndhwc, tuple([(n, 16, *rest) for n, *rest in _RESNET])),
    "GMM": (
        batch_matmul_nkkm,
        ((1, 128, 128, 128), (1, 512, 32, 512), (1, 512, 512, 512), (1, 1024, 1024, 1024)),
    ),
    "GRP": (
        conv2d_nhwc,
        ((1, 56, 56, 64, 128, 3, 2, 1, 1, 4), *[(*row, 1, 4) for row in _RESNET[1:]]),
    ),
    "DIL": (conv2d_nhwc, tuple([(*row, 2) for row in _RESNET])),
    "DEP": (
        depthwise_conv2d_nhwc,
        (
            (1, 112, 112, 32, 3, 1, 1), (1, 112, 112, 64, 3, 2, 1), (1, 14, 14, 512, 3, 2, 1),
            (1, 7, 7, 1024, 3, 1, 1),
        ),
    ),
    "T2D": (
        conv2d_transpose_nhwc,
        (
            (1, 4, 4, 512, 256, 4, 2, 1), (1, 8, 8, 256, 128, 4, 2, 1),
            (1, 16, 16, 128, 64, 4, 2, 1), (1, 32, 32, 64, 3, 4, 2, 1),
        ),
    ),
    "CAP": (
        conv2d_capsule_nhwijc,
        (
            (1, 16, 16, 32, 32, 3, 2, 1), (1, 8, 8, 32, 32, 3, 1, 1), (1, 16, 16, 8, 16, 3, 2, 1),
            (1, 8, 8, 16, 16, 3, 1, 1),
        ),
    ),
    "NRM": (norm_bmn, ((1, 256, 256), (1, 512, 512), (1, 1024, 1024), (1, 4096, 1024))),
    "SFM": (softmax_mn, ((256, 256), (512, 512), (1024, 1024), (2048, 2048))),
    "CBR": (
        conv2d_nhwc_bn_relu,
        (
            (1, 224, 224, 3, 64, 7, 2, 3), (1, 56, 56, 64, 128, 3, 2, 1),
            (1, 28, 28, 128, 256, 1, 2, 0), (1, 7, 7, 512, 512, 3, 1, 1),
        ),
    ),
    "TBG": (
        transpose_batch_matmul,
        ((1, 128, 12, 64), (1, 128, 16, 64), (1, 64, 12, 128), (1, 128, 12, 128)),
    ),
}  # fmt: skip
"""Name -> the program and the sizes that it is tried with."""


def create_te_workload(name: str, idx: int) -> PrimFunc:
    """A program of the table by its name and the number of its sizes.

    >>> list(create_te_workload("GMM", 0).buffer_map.values())[0].shape
    [1, 128, 128]
    """
    if name not in CONFIGS or not 0 <= idx < len(CONFIGS[name][1]):
        raise IRValueError(
            f"create_te_workload: expected one of {', '.join(CONFIGS)} and a number of its sizes, "
            f"got {name!r} and {idx}"
        )
    workload, sizes = CONFIGS[name]
    return te.create_prim_func(list(workload(*sizes[idx])))
