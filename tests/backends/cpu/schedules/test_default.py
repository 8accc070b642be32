"""Default schedules: every program they choose keeps the result, tails and symbolic sizes too."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest

import weft
from tests.lib.default_schedules import (
    SMALL,
    assert_results_are_kept,
    blocked,
    convolution,
    floats,
    matmul,
    native_source,
    of_one,
    product_and_relu,
    results_of,
    scheduled,
)
from weft import dlight, relax, te, tir, topi
from weft.backends.cpu.backend import BACKEND
from weft.backends.cpu.schedules import default
from weft.backends.cpu.schedules.rule import Default
from weft.backends.cpu.vectors.vector_reduction import ROWS_TOGETHER, VECTOR_REDUCTION
from weft.dlight.nest import blocks_of
from weft.driver.pipeline import lower_tir
from weft.ir.expr import IntImm
from weft.ir.functor import collect
from weft.relax.transform.stages import KERNELS
from weft.script import relax as R
from weft.script import tir as T
from weft.support.events import observing
from weft.target.machine import machine_of
from weft.target.target import Target
from weft.tir.buffer import BufferLoad
from weft.tir.interp import run
from weft.tir.schedule.errors import ScheduleFailure
from weft.tir.stmt import Allocate, BufferStore, For, ForKind
from weft.topi.nn.convolution_blocked import conv_blocked

pytestmark = pytest.mark.sampled(3)


def depthwise(data, kernel):
    def make():
        x, w = te.placeholder(data, name="x"), te.placeholder(kernel, name="w")
        return [x, w], topi.nn.depthwise_conv2d_nchw(x, w, 1, 1, 1)

    return make


def convolution_of_one_pixel():
    x, w = te.placeholder((1, 5, 1, 1, 4), name="x"), te.placeholder((3, 5, 1, 1, 4, 4), name="w")
    layouts = ("NCHW4c", "OIHW4i4o", "NCHW4c")
    return [x, w], topi.nn.relu(conv_blocked(x, w, 1, 0, 1, 1, layouts))


def broadcast(*shapes):
    def make():
        given = [te.placeholder(shape, name=f"x{i}") for i, shape in enumerate(shapes)]
        total = given[0]
        for other in given[1:]:
            total = topi.add(topi.exp(total), other)
        return given, total

    return make


RNG = np.random.default_rng(11)
CASES = {
    "product": matmul(16, 32, 8), "product with tails": matmul(13, 27, 5),
    "product of one row": matmul(1, 37, 9), "product of one column": matmul(9, 1, 6),
    "narrow product": matmul(7, 3, 4), "batched product": matmul(5, 6, 7, (3,)),
    "transposed product, bias, relu": product_and_relu(11, 18, 6),
    "transposed product that divides": product_and_relu(12, 32, 8),
    "convolution": convolution((1, 3, 7, 9), (5, 3, 3, 3)),
    "convolution with steps": convolution((2, 2, 9, 8), (4, 2, 3, 3), strides=2, dilation=2),
    "convolution of points": convolution((1, 4, 5, 6), (6, 4, 1, 1), padding=0),
    "blocked convolution": blocked(
        (1, 2, 6, 7, 4), (3, 2, 3, 3, 4, 8), ("NCHW4c", "OIHW4i8o", "NCHW8c")
    ),
    "blocks of more than one vector": blocked(
        (1, 1, 1, 3, 20), (1, 1, 1, 1, 20, 24), ("NCHW20c", "OIHW20i24o", "NCHW24c")
    ),
    "blocked convolution of one pixel": convolution_of_one_pixel,
    "mean of a blocked image": of_one(
        (1, 3, 5, 6, 4), lambda x: topi.nn.adaptive_pool(x, (1, 1), "avg", "NCHWc")
    ),
    "convolution of an image": blocked((1, 3, 6, 7), (2, 3, 3, 3, 8), ("NCHW", "OIHW8o", "NCHW8c")),
    "depthwise convolution": depthwise((1, 5, 6, 7), (5, 1, 3, 3)),
    "largest of windows": of_one(
        (1, 3, 9, 10), lambda x: topi.nn.pool2d(x, (3, 3), (2, 2), (1, 1), (1, 1, 1, 1), "max")
    ),
    "largest of padded windows, with tails": of_one(
        (2, 3, 11, 23), lambda x: topi.nn.pool2d(x, (3, 3), (2, 2), (1, 1), (1, 1, 1, 1), "max")
    ),
    "windows three apart, then a maximum": of_one(
        (1, 2, 10, 31), lambda x: topi.nn.relu(
            topi.nn.pool2d(x, (2, 3), (3, 3), (1, 1), (0, 1, 0, 1), "avg")
        )
    ),
    "windows side by side": of_one(
        (1, 2, 6, 19), lambda x: topi.nn.pool2d(x, (3, 3), (1, 1), (1, 1), (1, 1, 1, 1), "max")
    ),
    "windows across images": of_one(
        (1, 2, 5, 6, 13), lambda x: topi.nn.pool3d(
            x, (3, 3, 3), (1, 2, 2), (1, 1, 1), (1, 1, 1, 1, 1, 1), "max"
        )
    ),
    "windows of a row": of_one(
        (2, 3, 29), lambda x: topi.nn.pool1d(x, (3,), (2,), (1,), (1, 1), "max")
    ),
    "mean of windows": of_one(
        (1, 3, 8, 9), lambda x: topi.nn.pool2d(x, (2, 2), (2, 2), (1, 1), (0, 0, 0, 0), "avg")
    ),
    "softmax": of_one((5, 19), topi.nn.softmax),
    "softmax of one row": of_one((1, 41), topi.nn.softmax),
    "softmax of few": of_one((5, 3), topi.nn.softmax),
    "softmax over columns": of_one((5, 19), lambda x: topi.nn.softmax(x, axis=0)),
    "log_softmax": of_one((4, 16), topi.nn.log_softmax),
    "softmax of short rows": of_one((16, 21), topi.nn.softmax),
    "softmax of heads": of_one((3, 2, 12, 17), topi.nn.softmax),
    "log_softmax of short rows": of_one((2, 8, 33), topi.nn.log_softmax),
    "softmax of a sum": of_one(
        (8, 19), lambda x: topi.nn.softmax(topi.exp(topi.add(x, x)))
    ),
    "norm of short rows": of_one((24, 37), lambda x: topi.nn.layer_norm(x, None, None, [1])),
    "norm of short images": of_one(
        (2, 8, 5, 7), lambda x: topi.nn.instance_norm(x, None, None, 1, [2, 3])
    ),
    "norm of groups": of_one(
        (4, 8, 3, 3), lambda x: topi.nn.group_norm(x, None, None, 4, 1, [2, 3])
    ),
    "norm of rows": of_one((3, 37), lambda x: topi.nn.layer_norm(x, None, None, [1])),
    "norm of pixels": of_one(
        (2, 3, 5, 7), lambda x: topi.nn.instance_norm(x, None, None, 1, [2, 3])
    ),
    "sum of rows": of_one((6, 33), lambda x: topi.sum(x, axis=1)),
    "sum of long rows": of_one((5, 133), lambda x: topi.sum(x, axis=1)),
    "mean of images": of_one((2, 8, 3, 3), lambda x: topi.nn.adaptive_pool(x, (1, 1), "avg")),
    "mean of few images": of_one((2, 3, 3, 3), lambda x: topi.nn.adaptive_pool(x, (1, 1), "avg")),
    "lower triangle": of_one((19, 21), lambda x: topi.trilu(x, 0, False)),
    "sum of columns": of_one((33, 6), lambda x: topi.sum(x, axis=0)),
    "sum of many columns": of_one((9, 1030), lambda x: topi.sum(x, axis=0)),
    "sum over the middle": of_one((5, 9, 70), lambda x: topi.sum(x, axis=1)),
    "sum of all": of_one((7, 31), topi.sum),
    "largest of the middle": of_one((3, 10, 5), lambda x: topi.max(x, axis=1)),
    "mean of pixels": of_one((2, 3, 5, 7), lambda x: topi.sum(x, axis=[2, 3], keepdims=True)),
    "transpose": of_one((5, 7, 9), lambda x: topi.transpose(x, (2, 0, 1))),
    "chain": of_one((3, 41), lambda x: topi.tanh(topi.add(topi.exp(x), x))),
    "broadcast": broadcast((4, 1, 9), (5, 1), (9,)), "scalar": broadcast((), ()),
    "vector": of_one((100,), topi.exp),
    "pad": of_one((3, 5), lambda x: topi.nn.pad(x, [1, 2], [2, 1])),
    "reshape": of_one((4, 9), lambda x: topi.reshape(topi.transpose(x), (3, 12))),
    "pieces": of_one((6, 8), lambda x: topi.concatenate([x, topi.exp(x)], axis=1)),
    "a number for each channel": broadcast((2, 5, 3, 7), (5, 1, 1)),
    "a number for each row": broadcast((6, 37), (6, 1)), "outer sum": broadcast((9, 1), (1, 43)),
    "a row that others read again": broadcast((3, 1024), (1024,)),
    "images repeated": of_one((2, 3, 5, 4), lambda x: topi.repeat(x, 3, 1)),
    "columns": of_one((7, 90), lambda x: topi.strided_slice(x, [0, 11], [7, 61], [1, 1])),
    "pieces of a row": of_one((3, 41), lambda x: topi.concatenate([x, x], axis=1)),
    "pieces of channels": of_one((2, 3, 4, 6), lambda x: topi.concatenate([x, x], axis=1)),
    "padded image": of_one((1, 2, 5, 21), lambda x: topi.nn.pad(x, [0, 0, 1, 2])),
    "padded vector": of_one((300,), lambda x: topi.nn.pad(x, [3])),
    "nothing": of_one((3, 0, 2), topi.exp),
    "sum of nothing": of_one((3, 0), lambda x: topi.sum(x, 1)),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_results_are_kept(name):
    given, result = CASES[name]()
    func = te.create_prim_func([*given, result])
    shapes = [[int(extent) for extent in tensor.shape] for tensor in (*given, result)]
    arrays = [floats(*shape) for shape in shapes[:-1]]
    _, expected, interpreted, native = results_of(func, arrays, shapes[-1])
    np.testing.assert_allclose(interpreted, expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(native, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("shape", [(2, 1), (3, 2), (2, 2, 2), (1, 2, 1, 5)])
def test_axes_of_two_elements_whose_sizes_are_of_64_bits(shape):
    sizes = [weft.tir.IntImm("int64", extent) for extent in shape]
    x = te.placeholder(sizes, name="x")
    func = te.create_prim_func([x, topi.add(topi.sin(x), x)])
    array = floats(*shape)
    _, expected, interpreted, native = results_of(func, [array], shape)
    np.testing.assert_allclose(expected, np.sin(array) + array, rtol=1e-5)
    np.testing.assert_allclose(interpreted, expected, rtol=1e-4)
    np.testing.assert_allclose(native, expected, rtol=1e-4)


def inner_loop(func, cpu, register, cores=1):
    """The loop with the most multiply-adds, and the registers that they accumulate in."""
    _, text = native_source(func, f"llvm -mcpu={cpu} -num-cores={cores}")
    loops = re.split(r"^\.LBB\w+:", text, flags=re.MULTILINE)
    inner = re.split(r"\tj\w+\t", max(loops, key=lambda body: body.count("vfmadd")))[0]
    return inner, re.findall(rf"vfmadd\w+\s.*%{register}(\d+)$", inner, re.MULTILINE)


@pytest.mark.parametrize(
    ("cpu", "register", "accumulators"), [("x86-64-v3", "ymm", 12), ("skylake-avx512", "zmm", 24)]
)
def test_the_inner_loop_of_a_product_keeps_its_tile_in_registers(cpu, register, accumulators):
    [a, b], c = matmul(240, 192, 128)()
    inner, products = inner_loop(te.create_prim_func([a, b, c]), cpu, register)
    assert len(set(products)) == accumulators
    assert len(products) == 4 * accumulators  # as many steps in a row
    assert "rsp" not in inner  # no spills
    assert not re.search(r"vmovaps\s+%", inner)  # nothing is moved between registers


@pytest.mark.parametrize(
    ("cpu", "register", "size", "accumulators", "steps"),
    [
        ("x86-64-v3", "ymm", 12, 12, 4), ("x86-64-v3", "ymm", 7, 10, 4),
        ("skylake-avx512", "zmm", 14, 28, 1), ("skylake-avx512", "zmm", 7, 28, 1),
    ],
)  # fmt: skip
def test_the_inner_loop_of_a_convolution_keeps_its_tile_in_registers(
    cpu, register, size, accumulators, steps
):
    layouts = ("NCHW16c", "OIHW16i16o", "NCHW16c")
    data, kernel = (1, 16, size, size, 16), (2, 16, 1, 1, 16, 16)
    x, w = te.placeholder(data, name="x"), te.placeholder(kernel, name="w")
    func = te.create_prim_func([x, w, conv_blocked(x, w, 1, 0, 1, 1, layouts)])
    inner, products = inner_loop(func, cpu, register)
    assert (len(set(products)), len(products)) == (accumulators, steps * accumulators)
    assert "rsp" not in inner
    assert "vmovaps" not in inner


@pytest.mark.parametrize(("channels", "filters", "outermost"), [(16, 4, 28), (4, 8, 2)])
def test_pixels_that_the_cache_does_not_hold_are_read_once(channels, filters, outermost):
    """Rows of the image outermost, where there are more pixels than weights and results."""
    layouts = ("NCHW16c", "OIHW16i16o", "NCHW16c")
    data, kernel = (1, channels, 28, 28, 16), (filters, channels, 1, 1, 16, 16)
    x, w = te.placeholder(data, name="x"), te.placeholder(kernel, name="w")
    func = te.create_prim_func([x, w, conv_blocked(x, w, 1, 0, 1, 1, layouts)])
    target = weft.target.Target("llvm -mcpu=skylake-avx512 -num-cores=1 -l2-cache-bytes=524288")
    made = dlight.cpu.Default().apply(func, target, False)
    outer = made.mod["main"].body.block.body
    while int(outer.extent) == 1:
        outer = outer.body
    assert int(outer.extent) == outermost


def test_what_follows_a_convolution_of_one_image_is_computed_on_its_tile():
    """An axis of one value has no index in what is read of the convolution."""
    given, result = CASES["blocked convolution"]()
    made = scheduled(te.create_prim_func([*given, result]))
    assert {buffer.scope() for buffer in made.body.block.alloc_buffers} == {"local"}


@pytest.mark.parametrize("name", ["blocked convolution of one pixel", "mean of a blocked image"])
def test_axes_of_one_value_are_no_rows_of_a_tile(name):
    """Every store is a vector: the tile was found where the axes of the image have one value."""
    given, result = CASES[name]()
    made = scheduled(te.create_prim_func([*given, result]))
    lowered = lower_tir()(weft.IRModule({"main": made}))["main"]
    stores = collect(lowered, BufferStore)
    assert stores
    assert {store.value.dtype.lanes for store in stores} == {4}


def test_what_pixels_share_is_computed_before_them():
    """A gate of a channel is no work of each pixel: the loop over a row of them stays a loop."""
    x, gate = te.placeholder((1, 8, 9, 13, 4), name="x"), te.placeholder((1, 8, 1, 1, 4), name="g")
    made = scheduled(te.create_prim_func([x, gate, topi.multiply(x, topi.sigmoid(gate))]))
    loops = [int(loop.extent) for loop in collect(made.body, For) if loop.kind is ForKind.SERIAL]
    assert 13 in loops


@pytest.mark.parametrize("size", [28, 29, 30])
def test_where_a_tile_is_cut_off_is_known_when_it_is_compiled(size):
    """No loop of a window runs to an extent that each pass computes anew: that is no vector."""
    x = te.placeholder((1, 3, size, size), name="x")
    pool = topi.nn.pool2d(x, (3, 3), (1, 1), (1, 1), (1, 1, 1, 1), "max")
    machine = machine_of(weft.target.Target("llvm -vector-width=512 -num-cores=2"))
    made = default.schedule(tir.Schedule(te.create_prim_func([x, pool])), machine, ()).mod["main"]
    lowered = lower_tir()(weft.IRModule({"main": made}))["main"]
    assert all(isinstance(loop.extent, IntImm) for loop in collect(lowered, For))


def test_another_architecture_gets_its_own_tile():
    [a, b], c = matmul(240, 192, 64)()
    func = te.create_prim_func([a, b, c])
    machine = machine_of("llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a72 -num-cores=4")
    assert (machine.vector_bits, machine.vector_registers, machine.cores) == (128, 32, 4)
    target = "llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a72 -num-cores=1"
    made = dlight.cpu.Default().apply(func, weft.target.Target(target), False)
    vectors = [loop for loop in collect(made.mod["main"].body, For)
               if loop.kind is ForKind.VECTORIZED]  # fmt: skip
    assert {int(loop.extent) % 4 for loop in vectors} == {0}


def activated_convolution():
    """A convolution 1x1 of 240 channels, of images of any width, and a scaled hard swish of it."""
    batch, width = tir.SizeVar("batch", "int64"), tir.SizeVar("width", "int64")
    shapes = {"x": (batch, 15, 12, width, 16), "w": (15, 15, 1, 1, 16, 16), "b": (1, 15, 1, 1, 16)}
    x, w, b = [relax.Var(name, R.Tensor(shape, "float32")) for name, shape in shapes.items()]
    builder = relax.BlockBuilder()
    with builder.function("main", [x, w, b]):
        with builder.dataflow():
            y = relax.op.nn.conv2d(x, w, data_layout="NCHW16c", kernel_layout="OIHW16i16o")
            y = relax.op.multiply(relax.op.add(y, b), relax.const(0.64))
            y = relax.op.add(y, relax.const(0.19))
            gate = relax.op.add(relax.op.multiply(y, relax.const(1 / 6)), relax.const(0.5))
            gate = relax.op.maximum(relax.op.minimum(gate, relax.const(1.0)), relax.const(0.0))
            y = relax.op.multiply(relax.op.multiply(y, gate), relax.const(0.42))
            y = builder.emit_output(relax.op.add(y, relax.const(-0.2)))
        builder.emit_func_output(y)
    mod = weft.ir.transform.Sequential(KERNELS)(builder.get())
    (kernel,) = [func for func in mod.functions.values() if isinstance(func, tir.PrimFunc)]
    return kernel.with_attr("layout_free_buffers", [1, 2]).with_attr("global_symbol", "main")


@pytest.mark.parametrize(
    ("cpu", "register"), [("x86-64-v3", "ymm"), ("skylake-avx512", "zmm"), ("znver4", "zmm")]
)
def test_pixels_of_any_width_and_many_constants_behind_them_spill_no_sum(cpu, register):
    """LLVM's scheduler loads for four steps at once, and constants wait in registers, too."""
    inner, products = inner_loop(activated_convolution(), cpu, register, cores=2)
    assert len(set(products)) >= 8
    assert not re.search(rf"rsp.*{register}|{register}.*rsp", inner)


def test_the_first_convolution_of_a_network_spills_nothing():
    """Its windows slide over pixels that another row of the tile has met."""
    x = te.placeholder((1, 3, 64, 64), name="x")
    w = te.placeholder((2, 3, 3, 3, 16), name="w")
    result = conv_blocked(x, w, 2, 1, 1, 1, ("NCHW", "OIHW16o", "NCHW16c"))
    inner, products = inner_loop(te.create_prim_func([x, w, result]), "x86-64-v3", "ymm")
    assert products
    assert "rsp" not in inner


@pytest.mark.parametrize(
    "name", ["a product", "parts of a long product", "few rows", "columns of three vectors", "3x3"]
)
def test_neon_multiplies_and_adds_vectors_without_spills(name):
    """Compiled for another architecture: a tile of 128-bit vectors that stays in registers."""
    layouts = ("NCHW4c", "OIHW4i4o", "NCHW4c")
    x = te.placeholder((1, 16, 14, 14, 4), name="x")
    w = te.placeholder((4, 16, 3, 3, 4, 4), name="w")
    given, result = {
        "a product": matmul(240, 192, 128), "parts of a long product": matmul(128, 192, 512),
        "few rows": matmul(7, 96, 96), "columns of three vectors": matmul(64, 12, 64),
        "3x3": lambda: ([x, w], conv_blocked(x, w, 1, 1, 1, 1, layouts)),
    }[name]()  # fmt: skip
    target = "llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a72 -num-cores=1"
    func = te.create_prim_func([*given, result])
    made = dlight.cpu.Default().apply(func, weft.target.Target(target), False)
    text = BACKEND.emit(lower_tir()(made.mod), Target(target)).get_source("asm")
    loops = re.split(r"^\.LBB\w+:", text, flags=re.MULTILINE)
    inner = re.split(r"\tb\.\w+\t", max(loops, key=lambda body: body.count("fmla")))[0]
    products = re.findall(r"fmla\s+v(\d+)\.4s", inner)
    assert len(set(products)) >= 16
    assert len(products) == inner.count("fmla")
    assert "[sp" not in inner  # no spills
    assert not re.search(r"mov\s+v\d+\.s\[", inner)  # no vector is put together


def test_what_the_user_wrote_as_loops_stays_as_written():
    @T.prim_func(private=True)
    def doubled(x: T.Buffer((8,), "float32"), y: T.Buffer((8,), "float32")):
        for i in range(8):
            with T.block("y"):
                v = T.axis.spatial(8, i)
                y[v] = x[v] * T.float32(2)

    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorStructInfo((8,), "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            first = builder.emit(
                relax.call_tir(builder.add_func(doubled, "doubled"), [x], x.struct_info)
            )
            out = builder.emit_output(builder.emit_te(topi.exp, first))
        builder.emit_func_output(out)
    mod = dlight.ScheduleGeneratedFunctions(dlight.cpu.Default())(builder.get())
    assert "tir.is_scheduled" not in mod["doubled"].attrs
    assert "tir.is_scheduled" in mod["exp"].attrs
    every = dlight.ApplyDefaultSchedule(dlight.cpu.Default())(mod)
    assert "tir.is_scheduled" in every["doubled"].attrs
    assert dlight.ApplyDefaultSchedule(dlight.cpu.Default())(every) is every


def test_a_rule_is_what_a_pass_is_made_of():
    with pytest.raises(weft.TVMError, match="expected schedule rules, got str"):
        dlight.ApplyDefaultSchedule("cpu")


def test_weights_are_laid_out_when_the_model_is_built():
    weight = RNG.normal(size=(64, 96)).astype("float32")
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorStructInfo((4, 64), "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            out = builder.emit_output(relax.op.matmul(x, relax.const(weight)))
        builder.emit_func_output(out)
    with SMALL:
        mod = relax.get_pipeline("weft")(builder.get())
    calls = [call for call in collect(mod["main"], relax.Call) if call.op.name == "relax.call_tir"]
    [panels] = [arg for arg in calls[0].args[1].fields if isinstance(arg, relax.Constant)]
    shape = [int(extent) for extent in panels.struct_info.shape.values]
    assert len(calls) == 1
    assert len(shape) == 3
    assert shape[1] == 64
    np.testing.assert_array_equal(panels.data.numpy()[1, 5], weight[5, shape[2] : 2 * shape[2]])
    data = RNG.normal(size=(4, 64)).astype("float32")
    found = weft.compile(builder.get(), target=SMALL, cache=False)(data)
    np.testing.assert_allclose(found, data @ weight, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("size", [1, 4])
def test_groups_of_a_symbolic_size(size):
    """The place of a group's mean is computed from the size itself."""
    n = tir.Var("n", "int64")
    x = te.placeholder((6, n), name="x")
    axis = te.reduce_axis((0, n), "k")
    sums = te.compute((6,), lambda i: te.sum(x[i, axis], axis), name="sums")
    out = te.compute((6 * n,), lambda i: x[i // n, i % n] - sums[i // n], name="out")
    func = te.create_prim_func([x, out])
    _, expected, interpreted, native = results_of(func, [floats(6, size)], (6 * size,))
    np.testing.assert_allclose(interpreted, expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(native, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("size", [43, 2100])  # one of few vectors, one of twice as many
@pytest.mark.parametrize("compute", [topi.argmax, topi.argmin])
def test_the_place_of_the_largest_is_found_in_lanes(compute, size):
    x = te.placeholder((5, size), name="x")
    func = te.create_prim_func([x, compute(x, axis=1)])
    data = RNG.integers(0, size // 5, (5, size)).astype("float32")
    made, expected, interpreted, native = results_of(func, [data], (5,), "int32")
    lowered = lower_tir()(weft.IRModule({"main": made}))["main"]
    names = {item.buffer_var.name for item in collect(lowered.body, Allocate)}
    assert any(name.endswith("_lanes") for name in names)
    np.testing.assert_array_equal(interpreted, expected)
    np.testing.assert_array_equal(native, expected)


@pytest.mark.parametrize("rows", [1, 2, 13])
def test_one_schedule_serves_every_number_of_rows(rows):
    n = tir.Var("n", "int64")
    a, b = te.placeholder((n, 9), name="A"), te.placeholder((9, 21), name="B")
    func = te.create_prim_func([a, b, topi.nn.softmax(topi.matmul(a, b))])
    left, right = floats(rows, 9), floats(9, 21)
    _, expected, interpreted, native = results_of(func, [left, right], (rows, 21))
    np.testing.assert_allclose(interpreted, expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(native, expected, rtol=1e-4, atol=1e-5)


def test_a_softmax_of_one_row_sums_the_powers_where_they_are_computed():
    x = te.placeholder((1, 41), name="x")
    made = scheduled(te.create_prim_func([x, topi.nn.softmax(x)]))
    reductions = [loop for loop in collect(made.body, For) if VECTOR_REDUCTION in loop.annotations]
    stores = [len(collect(loop.body, BufferStore)) for loop in reductions]
    assert stores == [1, 2]  # the largest; the powers and their sum


@pytest.mark.parametrize(
    ("shape", "compute", "rows"),
    [
        ((16, 21), topi.nn.softmax, [4, 4]), ((3, 2, 12, 17), topi.nn.softmax, [4, 4]),
        ((6, 21), topi.nn.softmax, []), ((16, 200), topi.nn.softmax, []),
        ((1, 21), topi.nn.softmax, []), ((7, 21), topi.nn.softmax, []),
        ((24, 37), lambda x: topi.nn.layer_norm(x, None, None, [1]), [4, 4]),
        ((24, 37), lambda x: topi.argmax(x, 1), []), ((24, 37), lambda x: topi.sum(x, 1), [4]),
    ],
)  # fmt: skip
def test_short_rows_of_several_reductions_are_joined_together(shape, compute, rows):
    x = te.placeholder(shape, name="x")
    made = scheduled(te.create_prim_func([x, compute(x)]))
    found = [loop for loop in collect(made.body, For) if ROWS_TOGETHER in loop.annotations]
    assert [loop.extent.value for loop in found] == rows


@pytest.mark.parametrize(
    "compute", [topi.nn.softmax, lambda x: topi.nn.layer_norm(x, None, None, [1])]
)
def test_eight_rows_are_joined_as_two_groups_of_four(compute):
    x = te.placeholder((16, 13), name="x")
    func = te.create_prim_func([x, compute(x)])
    made = default.schedule(tir.Schedule(func), machine_of("llvm -mcpu=x86-64-v3"), ()).mod["main"]
    found = [loop for loop in collect(made.body, For) if ROWS_TOGETHER in loop.annotations]
    assert [loop.extent.value for loop in found] == [8, 8]
    data, expected, lowered, native = floats(16, 13), *np.zeros((3, 16, 13), "float32")
    run(func, data, expected)
    run(lower_tir()(weft.IRModule({"main": made}))["main"], data, lowered)
    weft.build(made)["main"](data, native)
    np.testing.assert_allclose(lowered, expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(native, expected, rtol=1e-4, atol=1e-5)


def test_a_row_that_others_read_again_is_read_in_parts_that_stay_in_cache():
    x, y = te.placeholder((6, 3072), name="x"), te.placeholder((3072,), name="y")
    made = scheduled(te.create_prim_func([x, y, topi.add(x, y)]))
    extents = [loop.extent.value for loop in collect(made.body, For)]
    assert sorted(extents) == [6, 6, 512]


@pytest.mark.parametrize(("channels", "around"), [(1, 2), (18, 6), (11, 8)])
def test_the_place_of_a_row_is_computed_for_several_images(channels, around):
    """The loop around a row of nine runs two batches, six channels or eight rows."""
    x = te.placeholder((2, channels, 3, 5), name="x")
    result = topi.image.resize2d(x, None, (8, 9), method="linear")
    assert_results_are_kept([x, result])
    _, loop, *_ = collect(scheduled(te.create_prim_func([x, result])).body, For)
    assert loop.extent.value == around


def test_one_image_of_a_batch_of_unknown_size_uses_all_cores():
    """The batch may be one: the blocks of channels below it run in parallel, too."""
    n = tir.Var("n", "int32")
    x, w = te.placeholder((n, 2, 7, 6, 4), name="x"), te.placeholder((8, 2, 3, 3, 4, 4), name="w")
    layouts = ("NCHW4c", "OIHW4i4o", "NCHW4c")
    func = te.create_prim_func([x, w, topi.nn.relu(conv_blocked(x, w, 1, 1, 1, 1, layouts))])
    loops = [loop for loop in collect(scheduled(func).body, For) if loop.kind is ForKind.PARALLEL]
    for loop in loops:
        alone = tir.stmt_functor.substitute(loop.extent, {n: 1})
        assert int(weft.arith.Analyzer().simplify(alone)) >= 2
    assert loops
    data = floats(1, 2, 7, 6, 4), floats(8, 2, 3, 3, 4, 4)
    _, expected, interpreted, native = results_of(func, data, (1, 8, 7, 6, 4))
    np.testing.assert_allclose(interpreted, expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(native, expected, rtol=1e-4, atol=1e-5)


def test_rows_in_parallel_compute_nothing_for_each_other():
    """A product that is not read at its own place by a softmax stays outside of its rows: each row
    would compute all batches again, and threads would write the same sums.
    """
    n = tir.Var("n", "int64")
    builder = relax.BlockBuilder()
    q, k, v = [relax.Var(name, relax.TensorStructInfo((n, 4, 2, 3), "float32")) for name in "qkv"]
    bias = relax.Var("bias", relax.TensorStructInfo((n, 2, 4, 4), "float32"))
    with builder.function("main", [q, k, v, bias]):
        with builder.dataflow():
            out = builder.emit_output(relax.op.nn.attention(q, k, v, bias, causal_mask="TopLeft"))
        builder.emit_func_output(out)
    with SMALL:
        mod = relax.get_pipeline("weft")(builder.get())
    [func] = [func for func in mod.functions.values() if isinstance(func, tir.PrimFunc)]
    parallel = [loop for loop in collect(func.body, For) if loop.kind is ForKind.PARALLEL]
    assert parallel
    for loop in parallel:
        assert all(isinstance(inner.extent, IntImm) for inner in collect(loop.body, For))


def test_a_schedule_that_fails_costs_speed_not_the_model(monkeypatch):
    def failing(*_):
        raise KeyError("a fault of ours")

    monkeypatch.setattr(default.elementwise, "schedule", failing)
    x = te.placeholder((8,), name="x")
    func = te.create_prim_func([x, topi.add(x, x)])
    data = floats(8)
    with pytest.warns(RuntimeWarning, match=r"schedule failed, .* as written; .*KeyError"):
        _, *results = results_of(func, [data], (8,))
    for result in results:
        np.testing.assert_array_equal(result, data + data)


def chain(step, length):
    """A function that does a step so many times, each with the result of the one before."""
    data = te.placeholder((3, 5), name="x")
    value = data
    for _ in range(length):
        value = step(value)
    return te.create_prim_func([data, value]), [int(extent) for extent in value.shape]


def joined(x):
    return topi.concatenate([x, x, x], axis=0)


def around(x):
    """Each element and its neighbours to both sides, with borders of 0."""
    wide = topi.nn.pad(x, [0, 1], [0, 1])
    return te.compute(x.shape, lambda i, j: wide[i, j] - 2 * wide[i, j + 1] + wide[i, j + 2])


@pytest.mark.parametrize("step", [joined, around])
def test_programs_are_linear_in_the_length_of_a_chain(step):
    """A block that is read several times is not inlined again and again: 3**n loads."""
    loads = []
    for length in (5, 6, 7, 8):
        func = scheduled(chain(step, length)[0])
        loads.append(len(collect(func.body, BufferLoad)))
    grown = [after - before for before, after in itertools.pairwise(loads)]
    assert max(grown) <= 64
    func, shape = chain(step, 4)
    _, expected, interpreted, native = results_of(func, [floats(3, 5)], shape)
    np.testing.assert_allclose(interpreted, expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(native, expected, rtol=1e-5, atol=1e-5)


def test_what_does_not_fit_is_put_into_words_only_for_observers(monkeypatch):
    """The text of such an error has the whole program: with 100 blocks that took minutes."""
    x = te.placeholder((8,), name="x")
    y = te.compute((8,), lambda i: te.exp(x[i]), name="y")
    two = te.create_prim_func([x, y, te.compute((8,), lambda i: y[i] + y[7 - i], name="z")])
    asked = []
    monkeypatch.setattr(ScheduleFailure, "__str__", lambda self: asked.append(self) or "no")
    rule = Default()

    def refused(sch, *_):
        sch.compute_inline(blocks_of(sch)[-1])  # an output has no reader

    monkeypatch.setattr(default.elementwise, "schedule", refused)
    rule.apply(two, Target("llvm -num-cores=2"), False)
    assert not asked
    told = []
    with observing(lambda event, *details: event == "program" and told.append(str(details[1]))):
        rule.apply(two, Target("llvm -num-cores=2"), False)
    assert "no" in told
    assert asked
