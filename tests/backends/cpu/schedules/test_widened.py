"""Narrow weights in tiled reductions: few tiles convert what they load, many share a copy."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import weft
from weft import relax
from weft.driver.pipeline import relax_pipeline_of
from weft.ir.functor import collect
from weft.tir.expr import Cast
from weft.tir.function import PrimFunc
from weft.tir.stmt import Block

RNG = np.random.default_rng(0)
pytestmark = pytest.mark.sampled(4)

TARGET = "llvm -mcpu=x86-64-v3 -num-cores=1"
SECOND = np.random.default_rng(1).standard_normal((8, 24, 3, 3)).astype("float32") / 15
NARROW = {"bfloat16": ml_dtypes.bfloat16, "float16": np.float16}


def product(rows, depth, columns, dtype):
    x = relax.Var("x", relax.TensorStructInfo((rows, depth), "float32"))
    weight = (RNG.standard_normal((depth, columns)) / np.sqrt(depth)).astype(NARROW[dtype])
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        with builder.dataflow():
            whole = builder.emit(relax.op.matmul(x, relax.const(weight), out_dtype="float32"))
            result = builder.emit_output(relax.op.nn.relu(whole))
        builder.emit_func_output(result)
    return builder.get(), weight


def places_of_conversions(mod):
    """The names of the blocks that convert a weight, after schedules."""
    with weft.Target(TARGET):
        scheduled = relax_pipeline_of("weft")(mod)
    names = []
    for func in scheduled.functions.values():
        if isinstance(func, PrimFunc):
            blocks = [block for block in collect(func.body, Block) if block.name_hint != "root"]
            names += [block.name_hint for block in blocks if collect(block.body, Cast)]
    return names


@pytest.mark.parametrize("dtype", NARROW)
@pytest.mark.parametrize(
    ("depth", "columns"), [(64, 48), (768, 96), (3072, 768)], ids=["short", "parts", "blocks"]
)
def test_many_tiles_share_a_copy_of_a_panel(dtype, depth, columns):
    mod, _ = product(128, depth, columns, dtype)
    [name] = places_of_conversions(mod)
    assert not name.startswith("matmul")


def test_few_tiles_convert_what_they_load():
    mod, _ = product(4, 768, 96, "bfloat16")
    assert all(name.startswith("matmul") for name in places_of_conversions(mod))


@pytest.mark.parametrize("dtype", NARROW)
@pytest.mark.parametrize("rows", [0, 1, 5, 17, 64, "n"])
@pytest.mark.parametrize(("depth", "columns"), [(33, 7), (640, 50), (1024, 96)])
def test_results(dtype, rows, depth, columns):
    extent = weft.tir.Var("n", "int64") if rows == "n" else rows
    mod, weight = product(extent, depth, columns, dtype)
    model = weft.compile(mod, target="llvm -num-cores=2")
    for count in (1, 40, 7) if rows == "n" else (rows,):
        x = RNG.standard_normal((count, depth)).astype("float32")
        wanted = np.maximum(x.astype("float64") @ weight.astype("float64"), 0)
        np.testing.assert_allclose(model(x), wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dtype", NARROW)
@pytest.mark.parametrize("window", [1, 3])
@pytest.mark.parametrize(("channels", "size"), [(3, 9), (16, 14), (70, 5)])
def test_convolutions(dtype, window, channels, size):
    x = relax.Var("x", relax.TensorStructInfo((1, channels, size, size), "float32"))
    shape = (24, channels, window, window)
    weight = (RNG.standard_normal(shape) / np.sqrt(channels)).astype(NARROW[dtype])

    def compiled(value, **options):
        builder = relax.BlockBuilder()
        with builder.function("main", [x]):
            with builder.dataflow():
                first = builder.emit(
                    relax.op.nn.conv2d(x, relax.const(value), padding=1, **options)
                )
                second = relax.op.nn.conv2d(
                    builder.emit(relax.op.nn.relu(first)), relax.const(SECOND), padding=1
                )
                result = builder.emit_output(second)
            builder.emit_func_output(result)
        return weft.compile(builder.get())

    data = RNG.standard_normal((1, channels, size, size)).astype("float32")
    wanted = compiled(weight.astype("float32"))(data)
    np.testing.assert_allclose(
        compiled(weight, out_dtype="float32")(data), wanted, rtol=1e-4, atol=1e-4
    )
