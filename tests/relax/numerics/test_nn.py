"""Matrix products and the operators of neural networks against numpy and PyTorch."""

import math

import numpy as np
import pytest

from tests.lib.operator_cases import SAMPLED, Case, Table, by_torch, row, t
from weft.relax.op.definition import FUNCTIONS as F

torch = pytest.importorskip("torch")
nn = torch.nn.functional
INF, NAN = math.inf, math.nan
N = ({"n": 0}, {"n": 1}, {"n": 5})


def quiet_matmul(a, b):
    with np.errstate(all="ignore"):
        return np.matmul(a, b)


def products():
    for kind, other in (
        ("int32", "int32"),
        ("int8", "int8"),
        ("float64", "float64"),
        ("float16", "float16"),
    ):
        yield row("matmul", [t("n", 4, dtype=kind), t(4, 3, dtype=other)], np.matmul, sizes=N)
    yield row(
        "matmul",
        [t(2, 4, dtype="int8"), t(4, 3, dtype="int8")],
        lambda a, b: np.matmul(a.astype("int32"), b.astype("int32")),
        "int32",
        note="out_dtype",
    )
    yield row("matmul", [t(2, "n"), t("n", 3)], np.matmul, sizes=N)
    yield row("matmul", [t("n", 1, 2, 4), t(3, 4, 5)], np.matmul, sizes=N)
    yield row("matmul", [t("n"), t("n")], np.matmul, sizes=N)
    yield row("matmul", [t(4), t(2, 4, 3)], np.matmul)
    yield row("matmul", [t(2, 3, 4), t(4)], np.matmul)
    yield row("matmul", [t(1, 1), t(1, 1)], np.matmul)
    yield row("matmul", [t(2, 0), t(0, 3)], np.matmul, note="static empty")
    yield row(
        "matmul",
        [t(2, 2, fill=[1.0, NAN, INF, 0.0]), t(2, 2, fill=[0.0, 1.0, 1.0, 2.0])],
        quiet_matmul,
        note="special",
    )
    yield row("matmul", [t(33, 70), t(70, 17)], np.matmul)
    yield row("nn.dense", [t("n", 7), t(3, 7)], lambda x, w: x @ w.T, sizes=N)
    yield row("outer", [t("n"), t(3)], np.outer, sizes=N)
    for text, given in (
        ("ij,jk->ik", [t(2, 3), t(3, 4)]),
        ("bij->bji", [t(2, 3, 4)]),
        ("ii->i", [t(3, 3)]),
        ("ij->", [t(2, 3)]),
        ("i,j", [t(2), t(3)]),
        ("bij,bjk", [t("n", 2, 3), t("n", 3, 2)]),
    ):
        yield Case(
            "einsum",
            lambda *x, s=text: F["einsum"](list(x), s),
            given,
            lambda *x, s=text: np.einsum(s, *x),
            N if len(given[0].shape) == 3 and given[0].shape[0] == "n" else ({},),
            note=text,
        )


def activations():
    functions = {
        "nn.relu": torch.relu,
        "nn.relu6": nn.relu6,
        "nn.gelu": nn.gelu,
        "nn.gelu_tanh": lambda x: nn.gelu(x, approximate="tanh"),
        "nn.selu": torch.selu,
        "nn.silu": nn.silu,
        "nn.leakyrelu": lambda x: nn.leaky_relu(x, 0.01),
        "nn.softplus": nn.softplus,
    }
    for name, function in functions.items():
        yield row(name, [t("n", 5)], by_torch(function), sizes=N)
        yield row(name, [t()], by_torch(function))
        yield row(name, [t(4, dtype="float64")], by_torch(function))
        yield row(name, [t(6, dtype="float16")], by_torch(function))
        yield row(
            name,
            [t(6, fill=[-80.0, -20.0, 0.0, 20.0, 80.0, NAN])],
            by_torch(function),
            note="extreme",
        )
    yield row("nn.relu", [t(5, dtype="int32")], lambda x: np.maximum(x, 0))
    yield row("nn.prelu", [t("n", 3, 4), t(3)], by_torch(nn.prelu), sizes=N[1:])
    for name, function in (("nn.softmax", nn.softmax), ("nn.log_softmax", nn.log_softmax)):
        for axis in (-1, 0, 1):
            yield row(
                name,
                [t(3, "n", 4)],
                by_torch(function, dim=axis),
                axis=axis,
                sizes=N,
                note=f"{axis}",
            )
        yield row(name, [t(2, 5, dtype="float64")], by_torch(function, dim=-1))
        yield row(name, [t(2, 5, dtype="float16")], by_torch(function, dim=-1), tolerance=4e-3)
        yield row(
            name,
            [t(4, 3, fill=[1e4, -1e4, 1e4, 88.0, 89.0, 0.0])],
            by_torch(function, dim=-1),
            note="extreme",
        )
        yield row(
            name,
            [t(3, 3, fill=[-INF, -INF, -INF, 0.0, -INF, 1.0, NAN, 1.0, 2.0])],
            by_torch(function, dim=-1),
            note="special",
        )
        yield row(name, [t(1)], by_torch(function, dim=-1))


def convolutions_first():
    conv2d = [
        ({}, {}, (2, 3, 7, 6), (4, 3, 3, 2)),
        (
            {"strides": (2, 1), "padding": (1, 2)},
            {"stride": (2, 1), "padding": (1, 2)},
            (1, 3, 8, 7),
            (4, 3, 3, 3),
        ),
        ({"dilation": 2, "padding": 2}, {"dilation": 2, "padding": 2}, (1, 2, 7, 7), (3, 2, 3, 3)),
        ({"groups": 2}, {"groups": 2}, (1, 4, 5, 5), (6, 2, 3, 3)),
        ({"groups": 4, "padding": 1}, {"groups": 4, "padding": 1}, (1, 4, 5, 5), (4, 1, 3, 3)),
        ({}, {}, (1, 1, 1, 1), (1, 1, 1, 1)),
    ]
    for attrs, options, data, weight in conv2d:
        yield row(
            "nn.conv2d",
            [t("n", *data[1:]), t(*weight)],
            by_torch(nn.conv2d, **options),
            sizes=N[1:] + N[:1],
            **attrs,
        )
    yield row(
        "nn.conv2d",
        [t(2, 5, 6, 3), t(4, 3, 2, 2)],
        lambda x, w: by_torch(nn.conv2d)(x.transpose(0, 3, 1, 2), w).transpose(0, 2, 3, 1),
        data_layout="NHWC",
        note="NHWC",
    )
    yield row(
        "nn.conv2d",
        [t(1, 2, 5, 5), t(2, 2, 3, 3)],
        lambda x, w: by_torch(nn.conv2d)(np.pad(x, ((0, 0), (0, 0), (1, 0), (2, 1))), w),
        padding=(1, 2, 0, 1),
        note="asymmetric",
    )
    yield row(
        "nn.conv2d",
        [t(1, 2, 5, 5, dtype="int8"), t(2, 2, 3, 3, dtype="int8")],
        lambda x, w: by_torch(nn.conv2d)(x.astype("float64"), w.astype("float64")).astype("int32"),
        out_dtype="int32",
    )
    yield row(
        "nn.conv2d",
        [t(1, 2, "n", 5), t(2, 2, 3, 3)],
        by_torch(nn.conv2d),
        sizes=({"n": 3}, {"n": 8}),
    )


def convolutions_second():
    for groups in (1, 2):
        yield row(
            "nn.conv1d",
            [t("n", 4, 9), t(6, 4 // groups, 3)],
            by_torch(nn.conv1d, stride=2, padding=1, groups=groups),
            strides=2,
            padding=1,
            groups=groups,
            sizes=N,
            note=f"{groups}",
        )
        yield row(
            "nn.conv1d_transpose",
            [t(2, 4, 5), t(4, 3, 3)],
            by_torch(nn.conv_transpose1d, stride=2, padding=1, output_padding=1, groups=groups),
            strides=2,
            padding=1,
            output_padding=1,
            groups=groups,
            note=f"{groups}",
        )
        yield row(
            "nn.conv2d_transpose",
            [t(1, 4, 4, 5), t(4, 2, 3, 2)],
            by_torch(nn.conv_transpose2d, stride=(2, 1), padding=1, dilation=2, groups=groups),
            strides=(2, 1),
            padding=1,
            dilation=2,
            groups=groups,
            note=f"{groups}",
        )
    yield row(
        "nn.conv3d",
        [t(1, 2, 4, 5, 4), t(3, 2, 2, 3, 2)],
        by_torch(nn.conv3d, padding=1, stride=(1, 2, 1)),
        padding=1,
        strides=(1, 2, 1),
    )


def pools_first():
    shapes = {1: (2, 3, 9), 2: (2, 3, 8, 7), 3: (1, 2, 6, 5, 6)}
    for count, shape in shapes.items():
        most, mean = getattr(nn, f"max_pool{count}d"), getattr(nn, f"avg_pool{count}d")
        for ceil in (False, True):
            options = {"kernel_size": 3, "stride": 2, "padding": 1, "ceil_mode": ceil}
            attrs = {
                "pool_size": [3] * count,
                "strides": [2] * count,
                "padding": [1] * count,
                "ceil_mode": ceil,
            }
            yield row(
                f"nn.max_pool{count}d",
                [t("n", *shape[1:])],
                by_torch(most, **options),
                sizes=N[1:] + N[:1],
                note=f"{ceil}",
                **attrs,
            )
            for inside in (False, True):
                yield row(
                    f"nn.avg_pool{count}d",
                    [t(*shape)],
                    by_torch(mean, count_include_pad=inside, **options),
                    count_include_pad=inside,
                    note=f"{ceil},{inside}",
                    **attrs,
                )
        adaptive = getattr(nn, f"adaptive_avg_pool{count}d")
        for size in (1, 3, 4):
            yield row(
                f"nn.adaptive_avg_pool{count}d",
                [t(*shape)],
                by_torch(adaptive, output_size=size),
                [size] * count,
                note=f"{size}",
            )


def pools_second():
    window = {"pool_size": [2, 2], "strides": [2, 2]}
    yield row(
        "nn.max_pool2d",
        [t(1, 1, 4, 4, fill=[-INF])],
        by_torch(nn.max_pool2d, kernel_size=2),
        note="-inf",
        **window,
    )
    yield row(
        "nn.max_pool2d",
        [t(1, 1, 4, 4, fill=[1.0, NAN, -INF, 2.0, INF])],
        by_torch(nn.max_pool2d, kernel_size=2),
        note="special",
        **window,
    )
    yield row(
        "nn.max_pool2d",
        [t(1, 1, 4, 4, dtype="int8", fill=[-128, 3, 127])],
        lambda x: x.reshape(1, 1, 2, 2, 2, 2).max(axis=(3, 5)),
        **window,
    )
    yield row(
        "nn.max_pool2d",
        [t(1, 2, 9, 9)],
        by_torch(nn.max_pool2d, kernel_size=3, dilation=2, stride=2),
        [3, 3],
        [2, 2],
        dilation=[2, 2],
        note="dilation",
    )
    yield row(
        "nn.max_pool2d",
        [t(1, 4, 6, 2)],
        lambda x: x.reshape(1, 2, 2, 3, 2, 2).max(axis=(2, 4)),
        layout="NHWC",
        **window,
    )


def moved(function, *orders, back):
    """A reference of torch's layouts: axes of the inputs moved before, of the result after."""

    def run(*arrays):
        given = [
            a.transpose(order) if order else a for a, order in zip(arrays, orders, strict=True)
        ]
        return np.transpose(function(*given), back)

    return run


def other_layouts():
    yield row(
        "nn.conv2d",
        [t("n", 3, 5, 4), t(4, 3, 3, 3)],
        moved(by_torch(nn.conv2d), None, None, back=(0, 2, 3, 1)),
        out_layout="NHWC",
        sizes=N,
    )
    yield row(
        "nn.conv2d",
        [t(1, 5, 4, 3), t(3, 3, 3, 4)],
        moved(by_torch(nn.conv2d), (0, 3, 1, 2), (3, 2, 0, 1), back=(2, 0, 3, 1)),
        data_layout="NHWC",
        kernel_layout="HWIO",
        out_layout="HNWC",
    )
    yield row(
        "nn.conv1d",
        [t(2, 3, 7), t(4, 3, 3)],
        moved(by_torch(nn.conv1d), None, None, back=(0, 2, 1)),
        out_layout="NWC",
    )
    for data, kernel, out in (
        ("NHWC", "IOHW", "NHWC"),
        ("NCHW", "IOHW", "NHWC"),
        ("NHWC", "HWOI", "NCHW"),
    ):
        shapes = [{"N": 2, "C": 3, "H": 4, "W": 5}, {"I": 3, "O": 2, "H": 3, "W": 3}]
        yield row(
            "nn.conv2d_transpose",
            [t(*[shapes[0][c] for c in data]), t(*[shapes[1][c] for c in kernel])],
            moved(
                by_torch(nn.conv_transpose2d, stride=2),
                [data.index(c) for c in "NCHW"],
                [kernel.index(c) for c in "IOHW"],
                back=["NCHW".index(c) for c in out],
            ),
            strides=2,
            data_layout=data,
            kernel_layout=kernel,
            out_layout=out,
            note=f"{data} to {out}",
        )


def other_layouts_of_pools():
    yield row(
        "nn.max_pool2d",
        [t(1, 2, 4, 6)],
        moved(by_torch(nn.max_pool2d, kernel_size=2), None, back=(0, 2, 3, 1)),
        [2, 2],
        [2, 2],
        out_layout="NHWC",
    )
    yield row(
        "nn.avg_pool1d",
        [t(2, 3, 6)],
        moved(by_torch(nn.avg_pool1d, kernel_size=3), None, back=(2, 1, 0)),
        [3],
        [3],
        out_layout="WCN",
    )
    yield row(
        "nn.adaptive_avg_pool2d",
        [t(1, 5, 7, 3)],
        moved(by_torch(nn.adaptive_avg_pool2d, output_size=2), (0, 3, 1, 2), back=(0, 1, 2, 3)),
        [2, 2],
        layout="NHWC",
        out_layout="NCHW",
    )


def layer_norm(x, g, b, axes=(-1,)):
    mean, spread = x.mean(axes, keepdims=True), x.var(axes, keepdims=True)
    return (x - mean) / np.sqrt(spread + 1e-5) * g + b


def outlier_first(generator, shape):
    made = generator.standard_normal(shape) + 30
    made[..., 0] = 1000
    return made


def group_norm(x, g, b):
    return by_torch(lambda x, g, b: nn.group_norm(x, 2, g, b))(x, g, b)


def batch_norm(x, g, b, m, v):
    shaped = [p[:, None, None] for p in (g, b, m, v)]
    return [(x - shaped[2]) / np.sqrt(shaped[3] + 1e-5) * shaped[0] + shaped[1], m, v]


def trained(x, g, b, m, v):
    mean, spread = x.mean((0, 2, 3)), x.var((0, 2, 3))
    out = batch_norm(x, g, b, mean, spread)[0]
    return [out, 0.9 * m + 0.1 * mean, 0.9 * v + 0.1 * spread]


def attention(q, k, v, causal=False):
    q, k, v = [a.transpose(0, 2, 1, 3) for a in (q, k, v)]
    scores = q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])
    if causal:
        scores = np.where(np.tri(*scores.shape[-2:], dtype=bool), scores, -INF)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return ((weights / weights.sum(-1, keepdims=True)) @ v).transpose(0, 2, 1, 3)


def norms_first():
    positive = [0.5, 1.5, 2.0]
    four = [t(3), t(3), t(3), t(3, fill=positive)]
    yield row(
        "nn.batch_norm", [t("n", 3, 4, 5), *four], batch_norm, axis=1, training=False, sizes=N
    )
    yield row(
        "nn.batch_norm", [t(2, 3, 4, 5), *four], trained, axis=1, training=True, note="training"
    )
    yield row("nn.dropout", [t("n", 3)], lambda x: [x, np.ones_like(x)], rate=0.25, sizes=N)
    yield row("nn.layer_norm", [t("n", 6), t(6), t(6)], layer_norm, axes=[-1], sizes=N)
    yield row(
        "nn.layer_norm",
        [t(2, 3, 4), t(3, 4), t(3, 4)],
        lambda x, g, b: layer_norm(x, g, b, (1, 2)),
        axes=[1, 2],
    )
    yield row(
        "nn.layer_norm",
        [t(2, 6, fill=lambda g, s: g.standard_normal(s) + 300), t(6), t(6)],
        layer_norm,
        axes=[-1],
        note="far",
    )
    yield row(
        "nn.layer_norm",
        [t(2, "n", fill=outlier_first), t("n"), t("n")],
        layer_norm,
        axes=[-1],
        sizes=({"n": 1024},),
        note="outlier first",
    )
    yield row(
        "nn.layer_norm",
        [t(3, 8, dtype="float16"), t(8, dtype="float16"), t(8, dtype="float16")],
        layer_norm,
        axes=[-1],
        tolerance=1e-2,
    )
    yield row(
        "nn.rms_norm",
        [t("n", 6), t(6)],
        lambda x, w: x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5) * w,
        axes=[-1],
        sizes=N,
    )


def norms_second():
    positive = [0.5, 1.5, 2.0]
    classes = t(4, dtype="int64", fill=[0, 2, 1, 1])
    yield row(
        "nn.group_norm",
        [t("n", 4, 3, 2), t(4), t(4)],
        group_norm,
        num_groups=2,
        channel_axis=1,
        axes=[2, 3],
        sizes=N[1:],
    )
    yield row("nn.attention", [t("n", 5, 2, 4)] * 3, attention, sizes=N)
    yield row(
        "nn.attention",
        [t(1, 5, 2, 4)] * 3,
        lambda *a: attention(*a, causal=True),
        causal_mask="TopLeft",
        note="causal",
    )
    yield row("nn.cross_entropy_with_logits", [t(4, 3), t(4, 3)], lambda p, y: -(p * y).sum() / 4)
    for reduction in ("mean", "sum", "none"):
        yield row(
            "nn.nll_loss",
            [t(4, 3), classes, t(3, fill=positive)],
            by_torch(lambda p, y, w, r=reduction: nn.nll_loss(p, y, w, reduction=r)),
            reduction=reduction,
            note=reduction,
        )
    yield row(
        "nn.nll_loss",
        [t(4, 3), classes],
        by_torch(lambda p, y: nn.nll_loss(p, y, ignore_index=1)),
        ignore_index=1,
    )
    yield row(
        "nn.pad",
        [t("n", 3)],
        lambda x: np.pad(x, ((1, 2), (0, 1)), constant_values=2.5),
        [1, 2, 0, 1],
        pad_value=2.5,
        sizes=N,
    )


def norms_of_instances():
    yield row(
        "nn.instance_norm",
        [t("n", 3, 4, 2), t(3), t(3)],
        by_torch(lambda x, g, b: nn.instance_norm(x, weight=g, bias=b)),
        channel_axis=1,
        axes=[2, 3],
        sizes=N[1:],
    )
    yield row(
        "nn.instance_norm",
        [t(2, 5, 3, dtype="float16"), t(3, dtype="float16"), t(3, dtype="float16")],
        lambda x, g, b: (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-3),
        channel_axis=-1,
        axes=[1],
        epsilon=1e-3,
        center=False,
        scale=False,
    )
    for factor in (1, 2, 3):
        yield row(
            "nn.pixel_shuffle",
            [t("n", 2 * factor**2, 2, 3)],
            by_torch(nn.pixel_shuffle, upscale_factor=factor),
            factor,
            sizes=N,
            note=f"{factor}",
        )
    yield row("nn.pixel_shuffle", [t(4, 1, "n")], by_torch(nn.pixel_shuffle, upscale_factor=2), 2,
              sizes=N)  # fmt: skip


def norms_third():
    for mode, numpy_mode in (("reflect", "reflect"), ("replicate", "edge"), ("circular", "wrap")):
        yield row(
            "nn.pad",
            [t(1, 2, 4, 5)],
            lambda x, m=numpy_mode: np.pad(x, ((0, 0), (0, 0), (1, 2), (2, 1)), m),
            [0, 0, 0, 0, 1, 2, 2, 1],
            mode,
            note=mode,
        )
    yield row(
        "quantize",
        [t(2, 5), t(fill=[0.1]), t(dtype="int8", fill=[3])],
        lambda x, s, z: np.clip(
            np.round(x.astype("float32") / s.astype("float32")) + z, -128, 127
        ).astype("int8"),
    )
    yield row(
        "dequantize",
        [t(2, 5, dtype="int8"), t(5), t(5, dtype="int8")],
        lambda x, s, z: s * (x.astype("int32") - z),
        axis=-1,
    )
    yield row(
        "image.resize2d",
        [t(1, 2, 4, 5)],
        by_torch(nn.interpolate, size=(7, 3), mode="bilinear"),
        (7, 3),
    )
    yield row(
        "image.resize2d",
        [t(1, 2, 4, 6)],
        by_torch(nn.interpolate, size=(8, 3), mode="nearest"),
        (8, 3),
        method="nearest_neighbor",
        coordinate_transformation_mode="asymmetric",
        rounding_method="floor",
        note="nearest",
    )


def norms_fourth():
    yield row(
        "image.resize2d",
        [t(1, 2, 4, 6)],
        by_torch(nn.interpolate, size=(8, 9), mode="bicubic"),
        (8, 9),
        method="cubic",
        cubic_alpha=-0.75,
        note="cubic",
    )


PRODUCTS, ACTIVATIONS = Table(list(products())), Table(list(activations()))
CONVOLUTIONS, POOLS, NORMS = (
    Table(
        [
            *convolutions_first(),
            *convolutions_second(),
            *other_layouts(),
            *other_layouts_of_pools(),
        ]
    ),
    Table([*pools_first(), *pools_second()]),
    Table(
        [
            *norms_first(),
            *norms_second(),
            *norms_of_instances(),
            *norms_third(),
            *norms_fourth(),
        ]
    ),
)


@SAMPLED
@pytest.mark.parametrize("case", PRODUCTS.cases, ids=str)
def test_product(case):
    PRODUCTS.check(case)


@SAMPLED
@pytest.mark.parametrize("case", ACTIVATIONS.cases, ids=str)
def test_activation(case):
    ACTIVATIONS.check(case)


@SAMPLED
@pytest.mark.parametrize("case", CONVOLUTIONS.cases, ids=str)
def test_convolution(case):
    CONVOLUTIONS.check(case)


@SAMPLED
@pytest.mark.parametrize("case", POOLS.cases, ids=str)
def test_pool(case):
    POOLS.check(case)


@SAMPLED
@pytest.mark.parametrize("case", NORMS.cases, ids=str)
def test_norm_and_others(case):
    NORMS.check(case)
