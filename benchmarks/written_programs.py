"""Ten programs as users write them in TVMScript, which no default schedule was made for.

Each is a plain nest of loops. ``PROGRAMS`` has them by name; arguments are random
(``weft.meta_schedule``'s own: floats between 0 and 1, integers 0 or 1).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from weft.script import tir as T
from weft.tir.function import PrimFunc


@T.prim_func
def heat(x: T.Buffer((1026, 1026), "float32"), y: T.Buffer((1024, 1024), "float32")):
    """A stencil of five points."""
    for i, j in T.grid(1024, 1024):
        with T.block("heat"):
            vi, vj = T.axis.remap("SS", [i, j])
            y[vi, vj] = x[vi + 1, vj + 1] * T.float32(0.6) + T.float32(0.1) * (
                x[vi, vj + 1] + x[vi + 2, vj + 1] + x[vi + 1, vj] + x[vi + 1, vj + 2]
            )


@T.prim_func
def blur(x: T.Buffer((130, 130, 130), "float32"), y: T.Buffer((128, 128, 128), "float32")):
    """The mean of 27 neighbours in three dimensions."""
    for i, j, k, di, dj, dk in T.grid(128, 128, 128, 3, 3, 3):
        with T.block("blur"):
            vi, vj, vk, vdi, vdj, vdk = T.axis.remap("SSSRRR", [i, j, k, di, dj, dk])
            with T.init():
                y[vi, vj, vk] = T.float32(0)
            y[vi, vj, vk] = y[vi, vj, vk] + x[vi + vdi, vj + vdj, vk + vdk] / T.float32(27)


@T.prim_func
def scan(x: T.Buffer((256, 4096), "float32"), y: T.Buffer((256, 4096), "float32")):
    """Running means along rows, each element from the one before."""
    for i, j in T.grid(256, 4096):
        with T.block("scan"):
            vi, vj = T.axis.remap("SR", [i, j])
            y[vi, vj] = T.if_then_else(
                vj == 0, x[vi, vj], y[vi, T.max(vj - 1, 0)] * T.float32(0.9) + x[vi, vj]
            )


@T.prim_func
def columns(x: T.Buffer((2048, 1024), "float32"), y: T.Buffer((1024,), "float32")):
    """Sums of the squares of columns."""
    for j, i in T.grid(1024, 2048):
        with T.block("columns"):
            vj, vi = T.axis.remap("SR", [j, i])
            with T.init():
                y[vj] = T.float32(0)
            y[vj] = y[vj] + x[vi, vj] * x[vi, vj]


@T.prim_func
def sparse(
    values: T.Buffer((8192, 32), "float32"),
    places: T.Buffer((8192, 32), "int32"),
    x: T.Buffer((8192, 16), "float32"),
    y: T.Buffer((8192, 16), "float32"),
):
    """A sparse matrix of 32 numbers a row (ELLPACK) times a matrix of 16 columns."""
    for i, c, k in T.grid(8192, 16, 32):
        with T.block("sparse"):
            vi, vc, vk = T.axis.remap("SSR", [i, c, k])
            with T.init():
                y[vi, vc] = T.float32(0)
            y[vi, vc] = y[vi, vc] + values[vi, vk] * x[places[vi, vk], vc]


@T.prim_func
def convolution(
    x: T.Buffer((8, 18, 34, 34), "float32"),
    w: T.Buffer((16, 8, 3, 3, 3), "float32"),
    y: T.Buffer((16, 16, 32, 32), "float32"),
):
    """A convolution in three dimensions."""
    for o, d, i, j, c, kd, ki, kj in T.grid(16, 16, 32, 32, 8, 3, 3, 3):
        with T.block("convolution"):
            vo, vd, vi, vj, vc, vkd, vki, vkj = T.axis.remap(
                "SSSSRRRR", [o, d, i, j, c, kd, ki, kj]
            )
            with T.init():
                y[vo, vd, vi, vj] = T.float32(0)
            y[vo, vd, vi, vj] = (
                y[vo, vd, vi, vj] + x[vc, vd + vkd, vi + vki, vj + vkj] * w[vo, vc, vkd, vki, vkj]
            )


@T.prim_func
def histogram(x: T.Buffer((64, 4096), "int32"), y: T.Buffer((64, 32), "int32")):
    """How often each of 32 numbers is in a row."""
    for i, b, k in T.grid(64, 32, 4096):
        with T.block("histogram"):
            vi, vb, vk = T.axis.remap("SSR", [i, b, k])
            with T.init():
                y[vi, vb] = 0
            y[vi, vb] = y[vi, vb] + T.Select(x[vi, vk] == vb, 1, 0)


@T.prim_func
def butterfly(
    re: T.Buffer((64, 2, 4096), "float32"),
    im: T.Buffer((64, 2, 4096), "float32"),
    wr: T.Buffer((4096,), "float32"),
    wi: T.Buffer((4096,), "float32"),
    out_re: T.Buffer((64, 2, 4096), "float32"),
    out_im: T.Buffer((64, 2, 4096), "float32"),
):
    """One stage of a fast Fourier transform of 64 signals."""
    for b, k in T.grid(64, 4096):
        with T.block("butterfly"):
            vb, vk = T.axis.remap("SS", [b, k])
            out_re[vb, 0, vk] = re[vb, 0, vk] + wr[vk] * re[vb, 1, vk] - wi[vk] * im[vb, 1, vk]
            out_im[vb, 0, vk] = im[vb, 0, vk] + wr[vk] * im[vb, 1, vk] + wi[vk] * re[vb, 1, vk]
            out_re[vb, 1, vk] = re[vb, 0, vk] - wr[vk] * re[vb, 1, vk] + wi[vk] * im[vb, 1, vk]
            out_im[vb, 1, vk] = im[vb, 0, vk] - wr[vk] * im[vb, 1, vk] - wi[vk] * re[vb, 1, vk]


@T.prim_func
def distances(
    x: T.Buffer((512, 64), "float32"),
    y: T.Buffer((512, 64), "float32"),
    d: T.Buffer((512, 512), "float32"),
):
    """The sum of absolute differences of each pair of rows."""
    for i, j, k in T.grid(512, 512, 64):
        with T.block("distances"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                d[vi, vj] = T.float32(0)
            d[vi, vj] = d[vi, vj] + T.abs(x[vi, vk] - y[vj, vk])


@T.prim_func
def erosion(x: T.Buffer((516, 516), "float32"), y: T.Buffer((512, 512), "float32")):
    """The least of 25 neighbours."""
    for i, j, di, dj in T.grid(512, 512, 5, 5):
        with T.block("erosion"):
            vi, vj, vdi, vdj = T.axis.remap("SSRR", [i, j, di, dj])
            with T.init():
                y[vi, vj] = T.float32(1e30)
            y[vi, vj] = T.min(y[vi, vj], x[vi + vdi, vj + vdj])


PROGRAMS: Final[Mapping[str, PrimFunc]] = {
    "heat": heat, "blur": blur, "scan": scan, "columns": columns, "sparse": sparse,
    "convolution": convolution, "histogram": histogram, "butterfly": butterfly,
    "distances": distances, "erosion": erosion,
}  # fmt: skip
