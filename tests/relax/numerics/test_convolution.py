"""Convolutions and pools with groups, dilation and strides mixed; transposes; float16; windows."""

import numpy as np
import pytest

from tests.lib.operator_cases import SAMPLED, Table, by_torch, row, t

torch = pytest.importorskip("torch")
nn = torch.nn.functional
N = ({"n": 0}, {"n": 1}, {"n": 3})
CONV = {1: nn.conv1d, 2: nn.conv2d, 3: nn.conv3d}
TRANSPOSE = {1: nn.conv_transpose1d, 2: nn.conv_transpose2d, 3: nn.conv_transpose3d}
EXTENTS = (9, 8, 7)
KERNEL = (3, 2, 1)


def mixes(rank):
    """Options of PyTorch and ours alike: strides, padding, dilation and groups."""
    yield {}
    yield {"stride": 2, "padding": 1, "dilation": 2}
    yield {"stride": (3, 1, 2)[:rank], "padding": (1, 2, 0)[:rank], "groups": 2}
    yield {"dilation": (2, 1, 3)[:rank], "groups": 4}


def ours(options):
    """The same options by our names."""
    return {"strides" if key == "stride" else key: value for key, value in options.items()}


def convolutions():
    for rank, function in CONV.items():
        for number, options in enumerate(mixes(rank)):
            groups = options.get("groups", 1)
            given = [t("n", 4, *EXTENTS[:rank]), t(8, 4 // groups, *KERNEL[:rank])]
            yield row(
                f"nn.conv{rank}d", given, by_torch(function, **options), sizes=N,
                note=f"mix {number}", **ours(options),
            )  # fmt: skip
    yield row(
        "nn.conv2d", [t(1, 2, "n", "m"), t(3, 2, 3, 2)],
        by_torch(nn.conv2d, stride=2, padding=1), strides=2, padding=1,
        sizes=({"n": 1, "m": 1}, {"n": 8, "m": 3}, {"n": 5, "m": 6}), note="symbolic space",
    )  # fmt: skip


def transposes():
    for rank, function in TRANSPOSE.items():
        for number, options in enumerate(mixes(rank)):
            groups = options.get("groups", 1)
            extra = [step - 1 for step in np.broadcast_to(options.get("stride", 1), rank).tolist()]
            given = [t("n", 4, *EXTENTS[:rank]), t(4, 4 // groups, *KERNEL[:rank])]
            yield row(
                f"nn.conv{rank}d_transpose", given,
                by_torch(function, output_padding=extra, **options), sizes=N,
                note=f"mix {number}", output_padding=extra, **ours(options),
            )  # fmt: skip
    yield row(
        "nn.conv2d_transpose", [t(1, 2, "n", 4), t(2, 3, 3, 3)],
        by_torch(nn.conv_transpose2d, stride=2, padding=1), strides=2, padding=1, sizes=N[1:],
        note="symbolic space",
    )  # fmt: skip
    yield row(
        "nn.conv3d_transpose", [t(1, 3, 4, 3, 2), t(2, 2, 2, 2, 2)],
        lambda x, w: by_torch(nn.conv_transpose3d)(
            x.transpose(0, 4, 1, 2, 3), w.transpose(1, 0, 2, 3, 4)
        ).transpose(0, 2, 3, 4, 1),
        data_layout="NDHWC", kernel_layout="OIDHW", note="layouts",
    )  # fmt: skip


def sums_of_halves():
    """4,608 products of float16: their sum is rounded once."""
    big = [t(1, 512, 4, 4, dtype="float16"), t(8, 512, 3, 3, dtype="float16")]
    yield row("nn.conv2d", big, by_torch(nn.conv2d), note="long sum")
    yield row(
        "nn.conv2d_transpose",
        [t(1, 512, 3, 3, dtype="float16"), t(512, 4, 3, 3, dtype="float16")],
        by_torch(nn.conv_transpose2d), note="long sum",
    )  # fmt: skip
    ones = t(1, 1, 64, 64, dtype="float16", fill=lambda g, s: g.uniform(0.5, 1.5, s))
    yield row("nn.avg_pool2d", [ones], by_torch(nn.avg_pool2d, kernel_size=64), [64, 64],
              note="long sum")  # fmt: skip
    yield row("nn.adaptive_avg_pool2d", [ones], by_torch(nn.adaptive_avg_pool2d, output_size=1),
              [1, 1], note="long sum")  # fmt: skip


def split_channels(function):
    """A reference of NCHW on tensors of NCHW8c."""

    def run(x):
        n, outer, height, width, inner = x.shape
        plain = x.transpose(0, 1, 4, 2, 3).reshape(n, outer * inner, height, width)
        made = function(plain)
        return made.reshape(n, outer, inner, *made.shape[2:]).transpose(0, 1, 3, 4, 2)

    return run


def pools():
    for rank, extents in ((1, (9,)), (2, (8, 7)), (3, (6, 5, 6))):
        largest = getattr(nn, f"adaptive_max_pool{rank}d")
        for size in (1, 3, extents[0]):
            yield row(
                f"nn.adaptive_max_pool{rank}d", [t("n", 3, *extents)],
                by_torch(largest, output_size=size), [size] * rank, sizes=N[1:], note=f"{size}",
            )  # fmt: skip
        yield row(f"nn.adaptive_max_pool{rank}d", [t(2, 3, *extents)], lambda x: x, note="None")
        yield row(f"nn.adaptive_avg_pool{rank}d", [t(2, 3, *extents)], lambda x: x, note="None")
    yield row(
        "nn.adaptive_max_pool2d", [t(1, 5, 7, 3)],
        lambda x: by_torch(nn.adaptive_max_pool2d, output_size=2)(
            x.transpose(0, 3, 1, 2)
        ).transpose(0, 2, 3, 1),
        [2, 2], layout="NHWC", note="NHWC",
    )  # fmt: skip
    for inside in (False, True):
        yield row(
            "nn.avg_pool2d", [t(1, 2, "n", 7)],
            by_torch(nn.avg_pool2d, kernel_size=(3, 3), stride=(2, 2), padding=1,
                     ceil_mode=True, count_include_pad=inside),
            [3, 3], [2, 2], 1, ceil_mode=True, count_include_pad=inside,
            sizes=({"n": 4}, {"n": 7}, {"n": 8}), note=f"ceil {inside}",
        )  # fmt: skip
    yield row(
        "nn.max_pool3d", [t(1, 2, 7, 8, 9)],
        by_torch(nn.max_pool3d, kernel_size=2, stride=(1, 2, 3), dilation=(3, 2, 1), padding=1,
                 ceil_mode=True),
        2, (1, 2, 3), 1, (3, 2, 1), ceil_mode=True, note="dilation",
    )  # fmt: skip
    for name, function in (("nn.max_pool1d", nn.max_pool1d), ("nn.avg_pool1d", nn.avg_pool1d)):
        options = {"stride": 3, "ceil_mode": True}
        yield row(
            name, [t(2, 1, "n")], by_torch(function, kernel_size=3, **options), 3, 3,
            ceil_mode=True, sizes=({"n": 1}, {"n": 2}, {"n": 4}), note="part of a window",
        )  # fmt: skip
    for name, function in (("nn.max_pool2d", nn.max_pool2d), ("nn.avg_pool2d", nn.avg_pool2d)):
        yield row(
            name, [t("n", 2, 6, 4, 8)], split_channels(by_torch(function, kernel_size=2)),
            2, 2, layout="NCHW8c", sizes=N, note="NCHW8c",
        )  # fmt: skip
    yield row(
        "nn.adaptive_avg_pool2d", [t(1, 2, 6, 4, 8)],
        split_channels(by_torch(nn.adaptive_avg_pool2d, output_size=(2, 1))), (2, 1),
        layout="NCHW8c", note="NCHW8c",
    )  # fmt: skip
    yield row("nn.max_pool1d", [t(2, 1, 1)], lambda x: x, note="size 1")


def windows_of_nothing():
    """No window fits into nothing: the result is empty, whether the extent is known or not."""
    for extent in (0, "n"):
        for name in ("nn.max_pool1d", "nn.avg_pool1d"):
            yield row(name, [t(2, 1, extent)], lambda x: x[..., ::2], 2, 2, sizes=({"n": 0},),
                      note="of nothing")  # fmt: skip
        yield row("nn.conv1d", [t(2, 1, extent), t(3, 1, 2)],
                  lambda x, w: np.zeros((2, 3, 0), "float32"), strides=2, sizes=({"n": 0},),
                  note="of nothing")  # fmt: skip


def dilated_average(x, ceil_mode, count_include_pad):
    """Windows of 3 with dilation 2, stride 2 and padding 1 along the last axis."""
    extent = x.shape[-1]
    room, made = extent + 2 - 5, []
    for start in range(0, 2 * ((room + ceil_mode) // 2) + 1, 2):
        taps = [place for place in (start, start + 2, start + 4) if place < extent + 2]
        inside = [place - 1 for place in taps if 1 <= place < extent + 1]
        count = len(taps) if count_include_pad else len(inside)
        made.append(x[..., inside].sum(-1) / count)
    return np.stack(made, -1)


def dilated_averages():
    for ceil_mode in (False, True):
        for count in (False, True):
            yield row(
                "nn.avg_pool1d", [t(1, 2, "n")],
                lambda x, c=ceil_mode, p=count: dilated_average(x, c, p), 3, 2, 1, 2,
                ceil_mode=ceil_mode, count_include_pad=count, sizes=({"n": 9}, {"n": 10}),
                note=f"dilation {ceil_mode} {count}",
            )  # fmt: skip


def other_halves():
    """Everything else that sums float16."""
    wide = t(2, 4096, dtype="float16")
    yield row("nn.softmax", [wide], by_torch(nn.softmax, dim=-1), note="long sum")
    yield row("nn.log_softmax", [wide], by_torch(nn.log_softmax, dim=-1), note="long sum")
    yield row("nn.cross_entropy_with_logits", [wide, wide], lambda p, y: -(p * y).sum() / 2,
              note="long sum")  # fmt: skip
    classes = t(64, dtype="int64", fill=[0, 2, 1, 1])
    yield row("nn.nll_loss", [t(64, 3, dtype="float16"), classes], by_torch(nn.nll_loss),
              note="long sum")  # fmt: skip


CONVOLUTIONS = Table([*convolutions()])
TRANSPOSES = Table([*transposes()])
OTHERS = Table([
    *sums_of_halves(), *other_halves(), *pools(), *dilated_averages(), *windows_of_nothing(),
])  # fmt: skip


@SAMPLED
@pytest.mark.parametrize("case", CONVOLUTIONS.cases, ids=str)
def test_convolution(case):
    CONVOLUTIONS.check(case)


@SAMPLED
@pytest.mark.parametrize("case", TRANSPOSES.cases, ids=str)
def test_transpose(case):
    TRANSPOSES.check(case)


@SAMPLED
@pytest.mark.parametrize("case", OTHERS.cases, ids=str)
def test_sums_of_halves_and_pools(case):
    OTHERS.check(case)
