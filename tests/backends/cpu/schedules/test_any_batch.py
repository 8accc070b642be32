"""A batch of unknown size may be a single image: its work is shared out among the cores, too."""

from __future__ import annotations

import math

import numpy as np
import pytest

from weft import relax, tir
from weft.arith import Analyzer
from weft.backends.cpu.schedules.order import Tiles, share_of_busiest
from weft.ir.functor import collect, substitute
from weft.target.target import Target
from weft.tir.size_hints import SIZE_HINTS
from weft.tir.stmt import For, ForKind

RNG = np.random.default_rng(0)


def parallel_parts(batch, channels, filters, size, kernel, strides, cores):
    """How many parts the cores share of a convolution; ``n`` images are usually one for each."""
    n = tir.SizeVar("n", "int64") if batch == "n" else batch
    image = relax.Var("x", relax.TensorStructInfo((n, channels, size, size), "float32"))
    shape = (filters, channels, kernel, kernel)
    weights = relax.const(RNG.standard_normal(shape).astype("float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [image]):
        with builder.dataflow():
            y = relax.op.nn.conv2d(image, weights, strides=strides, padding=kernel // 2)
            y = builder.emit_output(relax.op.nn.relu(builder.emit(y)))
        builder.emit_func_output(y)
    module = builder.get().with_attr(SIZE_HINTS, {"n": cores})
    caches = "-l1d-cache-bytes=32768 -l2-cache-bytes=1048576"
    with Target(f"llvm -mcpu=cascadelake -num-cores={cores} {caches}"):
        lowered = relax.get_pipeline("weft")(module)
    (func,) = [func for name, func in lowered.functions.items()
               if isinstance(func, tir.PrimFunc) and "conv2d" in name.name_hint]  # fmt: skip
    return math.prod(iterations(func))


def iterations(func):
    """How many iterations all parallel loops of a kernel have, one inside the other, for n = 1."""
    extents = [loop.extent for loop in collect(func.body, For) if loop.kind == ForKind.PARALLEL]
    once = {var: tir.IntImm(var.dtype, 1) for extent in extents for var in collect(extent, tir.Var)}
    return [int(Analyzer().simplify(substitute(extent, once))) for extent in extents]


@pytest.mark.parametrize("cores", [2, 16])
@pytest.mark.parametrize(
    ("channels", "filters", "size", "kernel", "strides"),
    [
        (64, 64, 56, 3, 1),
        (256, 256, 14, 3, 1),
        (512, 512, 7, 3, 1),
        (128, 256, 28, 3, 2),
        (16, 96, 112, 1, 1),
        (960, 160, 7, 1, 1),
    ],
)
def test_cores_share_one_image(channels, filters, size, kernel, strides, cores):
    sizes = (channels, filters, size, kernel, strides, cores)
    of_one = parallel_parts(1, *sizes)
    assert parallel_parts("n", *sizes) >= min(cores, of_one) * 0.8, of_one


def test_a_batch_of_unknown_size_is_no_work_for_many_cores():
    images = Tiles(4, is_known=False)
    assert share_of_busiest([images, Tiles(3, 0.5)], 4) == pytest.approx((1 / 4 + 1) / 2)
    assert share_of_busiest([images, Tiles(4)], 4) == pytest.approx(1 / 4)
    assert share_of_busiest([Tiles(4), Tiles(3, 0.5)], 4) == pytest.approx(1 / 4)
