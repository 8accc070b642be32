"""Windows and diagonals against PyTorch, through relax.build."""

import math
from functools import partial

import numpy as np
import pytest

from tests.lib.operator_cases import SAMPLED, Case, Table, by_torch, row, t
from weft import relax
from weft.relax.op.definition import FUNCTIONS as F

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch
N = ({"n": 0}, {"n": 1}, {"n": 5})


def windows():
    sizes = ({"n": 3}, {"n": 4}, {"n": 8})
    for dtype in ("float32", "float16", "int64", "bool"):
        every_other = by_torch(torch.Tensor.unfold, dimension=1, size=3, step=2)
        yield row("unfold", [t(2, "n", dtype=dtype)], every_other, 1, 3, 2, sizes=sizes)
    for axis, size, step in ((0, 1, 1), (-1, 4, 3), (1, 3, 1), (0, 0, 2)):
        yield row("unfold", [t(2, 3, 7)], by_torch(torch.Tensor.unfold, dimension=axis, size=size,
                  step=step), axis, size, step, note=f"{axis},{size},{step}")  # fmt: skip
    yield row("unfold", [t("n", 0, 2)], by_torch(torch.Tensor.unfold, dimension=2, size=2, step=1),
              2, 2, 1, sizes=N)  # fmt: skip


def diagonals():
    def diagonal(**at):
        return by_torch(torch.diagonal, **at)

    for offset in (0, 1, -2, 9, -9):
        yield row("diagonal", [t("n", 4, dtype="int32")], diagonal(offset=offset), offset, sizes=N,
                  note=f"{offset}")  # fmt: skip
        yield row("diagonal", [t(3, 5)], diagonal(offset=offset), offset, note=f"{offset}")
    yield row("diagonal", [t(2, "n", 3)], diagonal(offset=-1, dim1=-1, dim2=0), -1, -1, 0, sizes=N)
    yield row("diagonal", [t("n", "n")], diagonal(), sizes=N)

    def scattered(**at):
        return by_torch(torch.diagonal_scatter, **at)

    yield row("diagonal_scatter", [t("n", "n"), t("n")], scattered(), sizes=N)
    for kind in ("bool", "int64"):
        yield row(
            "diagonal_scatter", [t(3, 5, dtype=kind), t(3, dtype=kind)], scattered(offset=1), 1
        )
    yield row("diagonal_scatter", [t(2, "n", 3), t("n", 1)], scattered(offset=-1, dim1=0, dim2=-1),
              -1, 0, -1, sizes=N)  # fmt: skip


def strides():
    def strided(x, shape, steps, offset=0):
        return np.lib.stride_tricks.as_strided(
            np.ascontiguousarray(x).reshape(-1)[offset:], shape, [s * x.itemsize for s in steps]
        )

    for shape, steps, offset in (
        ((3, 3), (1, 2), 2),
        ((4,), (0,), 5),
        ((), (), 3),
        ((0, 2), (1, 1), 0),
    ):
        at = (shape, steps, offset)
        yield row("as_strided", [t(3, 4)], lambda x, at=at: strided(x, *at), *at, note=f"{shape}")

    def columns(x):
        rows, width = x.struct_info.shape
        return F["as_strided"](x, [width, rows], [1, width])

    yield Case("as_strided", columns, [t("n", 3)], lambda x: x.T, N, note="symbolic")


GEOMETRIES = (
    ((2, 3), {}), ((2, 2), {"strides": 2, "padding": 1}),
    ((3, 1), {"dilation": [2, 1], "padding": [2, 0, 1, 3], "strides": [1, 2]}),
)  # fmt: skip


def images():
    for kernel, options in GEOMETRIES:

        def unfolded(x, kernel=kernel, options=options):
            pads = list(
                relax.op.nn.im2col(np.ones((1, 1, 9, 9)), kernel, **options).attrs["padding"]
            )
            given = torch.nn.functional.pad(
                torch.from_numpy(x), [pads[1], pads[3], pads[0], pads[2]]
            )
            steps, spread = options.get("strides", 1), options.get("dilation", 1)
            flat = torch.nn.functional.unfold(given.double(), kernel, spread, 0, steps)
            reach = [(k - 1) * d + 1 for k, d in zip(kernel, np.resize(spread, 2), strict=True)]
            counts = [(e - r) // s + 1 for e, r, s in zip(
                given.shape[2:], reach, np.resize(steps, 2), strict=True)]  # fmt: skip
            return flat.reshape(*x.shape[:2], *kernel, *counts).numpy()

        for dtype in ("float32", "float16"):
            yield row("nn.im2col", [t(2, 3, 6, 7, dtype=dtype)], unfolded, kernel, note=f"{kernel}",
                      **options)  # fmt: skip
        yield row("nn.im2col", [t(1, 2, "n", 7)], unfolded, kernel, note=f"{kernel}",
                  sizes=({"n": 5}, {"n": 8}), **options)  # fmt: skip
    taps = np.arange(3)[:, None] + np.arange(4)
    yield row("nn.im2col", [t(1, 2, 6, dtype="int32")], lambda x: x[:, :, taps], [3])


def between(image, y, x):
    """The value between four pixels; outside of the image are zeros."""
    top, left = math.floor(y), math.floor(x)
    total = 0.0
    for i, j in ((top, left), (top, left + 1), (top + 1, left), (top + 1, left + 1)):
        if 0 <= i < image.shape[0] and 0 <= j < image.shape[1]:
            total += image[i, j] * (1 - abs(y - i)) * (1 - abs(x - j))
    return total


def moved_windows():
    def moved(x, offset, kernel, groups=1, stride=1, padding=(0, 0), dilation=(1, 1)):
        counts = offset.shape[2:]
        made = np.zeros((*x.shape[:2], *kernel, *counts))
        for n, c, a, b, i, j in np.ndindex(*made.shape):
            number = (c * groups // x.shape[1]) * math.prod(kernel) + a * kernel[1] + b
            y = i * stride - padding[0] + a * dilation[0] + offset[n, 2 * number, i, j]
            z = j * stride - padding[1] + b * dilation[1] + offset[n, 2 * number + 1, i, j]
            made[n, c, a, b, i, j] = between(x[n, c], y, z)
        return made

    def far(generator, shape):
        return generator.uniform(-3, 3, shape)

    yield row("nn.deform_im2col", [t("n", 2, 4, 5), t("n", 8, 3, 4, fill=far)],
              lambda x, o: moved(x, o, (2, 2)), 2, sizes=N)  # fmt: skip
    yield row("nn.deform_im2col", [t(1, 4, "h", 5), t(1, 24, "h", 3, fill=far)],
              lambda x, o: moved(x, o, (3, 2), 2, 1, (1, 0), (1, 2)), (3, 2), sizes=({"h": 4},),
              padding=[1, 0], dilation=[1, 2], offset_groups=2)  # fmt: skip
    yield row("nn.deform_im2col", [t(1, 1, 7, 7, dtype="float16"), t(1, 18, 3, 3, fill=far,
              dtype="float16")], lambda x, o: moved(x, o, (3, 3), 1, 2), 3, 2)  # fmt: skip


def added_up():
    def folded(x):
        flat = torch.from_numpy(x).double().reshape(x.shape[0], -1, x.shape[4] * x.shape[5])
        return torch.nn.functional.fold(flat, (5, 6), (2, 3), 1, 1, (2, 1)).numpy()

    how = {"strides": [2, 1], "padding": 1}
    for dtype in ("float32", "float16"):
        yield row("nn.col2im", [t("n", 2, 2, 3, 3, 6, dtype=dtype)], folded, [5, 6],
                  sizes=({"n": 1}, {"n": 5}), **how)  # fmt: skip
    yield row("nn.col2im", [t("n", 1, 2, 3, dtype="int64")], lambda x: np.pad(
        x[:, :, 0], [(0, 0), (0, 0), (0, 1)]) + np.pad(x[:, :, 1], [(0, 0), (0, 0), (1, 0)]), [4],
        sizes=N)  # fmt: skip


def of_onnx():
    """Bits of another type; sequences of a length each; neighbouring channels."""
    numbers = [0.0, -0.0, 1.5, -2.0, np.inf]
    for source, target in (("float32", "int32"), ("float16", "int16"), ("float64", "int64")):
        yield row("bitcast", [t("n", 2, dtype=source, fill=numbers)],
                  lambda x, s=source, d=target: x.astype(s).view(d), target, sizes=N)  # fmt: skip
    yield row("bitcast", [t(3, dtype="int32", fill=[0, 1069547520, -1073741824])],
              lambda x: x.view("float32"), "float32")  # fmt: skip
    yield row("bitcast", [t(dtype="uint8", fill=200)], lambda x: x.view("int8"), "int8")
    lengths = t("n", dtype="int64", fill=[0, 3, 1, 2])

    def reversed_rows(x, counts):
        return np.stack([[*r[:c][::-1], *r[c:]] for r, c in zip(x, counts, strict=True)])

    for dtype in ("float32", "int32"):
        data = t("n", 3, 2, dtype=dtype)
        yield row("reverse_sequence", [data, lengths], reversed_rows, sizes=N[1:])

    def reversed_columns(x, counts):
        columns = x.copy()
        for batch, count in enumerate(counts):
            columns[:count, :, batch] = x[:count, :, batch][::-1]
        return columns

    turned = [t(3, 2, "n"), t("n", dtype="int32", fill=[2, 3])]
    yield row("reverse_sequence", turned, reversed_columns, 0, -1, sizes=N)

    def normalised(x, size, axis):
        rows, before = np.moveaxis(x, axis, -1), (size - 1) // 2
        count = rows.shape[-1]
        near = [range(max(i - before, 0), min(i + size - before, count)) for i in range(count)]
        sums = np.stack([(rows[..., list(part)] ** 2).sum(-1) for part in near], -1)
        return np.moveaxis(rows / (2 + 0.1 / size * sums) ** 0.75, -1, axis)

    for size, axis in ((1, 1), (3, 1), (4, -1), (9, 0)):
        given = partial(normalised, size=size, axis=axis)
        note = f"{size},{axis}"
        yield row("nn.lrn", [t(2, 5, "n")], given, size, axis, 0.1, sizes=N[1:], note=note)


def largest():
    """Where the largest elements of windows are: padding, ties, NaN, symbols."""
    odd = t(1, 2, 5, 6, fill=[*[1.0, -np.inf, 2.0, 2.0, -1.0, 0.5] * 9, np.nan, *[0.0] * 5])
    nn = torch.nn.functional
    windows = (((2, 2), {}), ((3, 2), {"strides": 2, "padding": 1}), ((2, 1), {"dilation": 2}))
    for kernel, options in windows:
        how = {"stride": options.get("strides", 1), "padding": options.get("padding", 0),
               "dilation": options.get("dilation", 1)}  # fmt: skip

        def by_pool(x, kernel=kernel, how=how):
            return nn.max_pool2d(torch.from_numpy(x), kernel, **how, return_indices=True)[1].numpy()

        for given in (t(2, "n", 5, 6), odd):
            sizes = ({"n": 1}, {"n": 3}) if given is not odd else ({},)
            name = "nn.max_pool_indices"
            yield row(name, [given], by_pool, kernel, sizes=sizes, note=f"{kernel}", **options)
    after = {"strides": [2], "padding": [0, 1]}
    yield row("nn.max_pool_indices", [t(1, 1, "n", dtype="int32", fill=[3, 1, 4, 1, 5, 9])],
              lambda _: np.array([[[0, 2, 5]]]), [2], sizes=({"n": 6},), **after)  # fmt: skip
    for size in ((1, 1), (3, 2), (5, 6), (7, 4)):

        def by_adaptive(x, size=size):
            pooled = nn.adaptive_max_pool2d(torch.from_numpy(x), size, return_indices=True)
            return pooled[1].numpy()

        for given in (t(2, 2, "n", 6), odd):
            sizes = ({"n": 3}, {"n": 5}) if given is not odd else ({},)
            yield row("nn.adaptive_max_pool_indices", [given], by_adaptive, size, sizes=sizes,
                      note=f"{size}")  # fmt: skip


TABLE = Table([
    *windows(), *diagonals(), *strides(), *images(), *moved_windows(), *added_up(), *largest(),
])  # fmt: skip
OTHERS = Table([*of_onnx()])


@SAMPLED
@pytest.mark.parametrize("case", TABLE.cases, ids=str)
def test_strided(case):
    TABLE.check(case)


@SAMPLED
@pytest.mark.parametrize("case", OTHERS.cases, ids=str)
def test_what_onnx_has(case):
    OTHERS.check(case)
