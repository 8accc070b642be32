"""UseWinograd: which convolutions it takes, how exact they are, and that it can be switched off."""

from __future__ import annotations

import numpy as np
import pytest

import weft
from weft import relax, tir
from weft.ir.functor import collect
from weft.ir.structural import assert_structural_equal
from weft.ir.transform import PassContext, Sequential
from weft.relax.reference import run
from weft.relax.transform import FoldConstant
from weft.relax.transform.layout import winograd as pass_of_winograd
from weft.relax.transform.layout import winograd_choice
from weft.relax.transform.layout.block_channels import BlockChannels
from weft.relax.transform.layout.winograd import UseWinograd
from weft.relax.transform.layout.winograd_cost import best_form, cycles, direct_cycles, growth
from weft.relax.transform.layout.winograd_error import error_of
from weft.target.machine import machine_of
from weft.topi.nn.winograd import transformed_weights
from weft.topi.nn.winograd_form import Form

pytestmark = pytest.mark.sampled(3)

RNG = np.random.default_rng(8)
TARGET = weft.target.Target("llvm -mcpu=x86-64-v3 -num-cores=2")


KERNEL = "kernel"
"""Stands for the tile of a function that transforms the kernel itself."""


def weights_of(filters, channels, window=3):
    made = RNG.normal(size=(filters, channels, window, window))
    return (made / np.sqrt(channels * window * window)).astype("float32")


def network(shape, weights, residual=False, **options):
    """A convolution with a bias and relu, and, if asked for, the data added."""
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorStructInfo(shape, "float32"))
    bias = RNG.normal(size=(1, len(weights), 1, 1)).astype("float32")
    with builder.function("main", [x]):
        with builder.dataflow():
            made = builder.emit(
                relax.op.nn.conv2d(x, relax.const(weights), **{"padding": 1, **options})
            )
            made = builder.emit(relax.op.add(made, relax.const(bias)))
            made = builder.emit(relax.op.add(made, x)) if residual else made
            out = builder.emit_output(relax.op.nn.relu(made))
        builder.emit_func_output(out)
    return builder.get()


def replaced(mod, tolerance=5e-5):
    """The module, and the sizes of the tiles of its convolutions."""
    with TARGET:
        made = Sequential([BlockChannels(), FoldConstant(), UseWinograd(tolerance)])(mod)
    given = [func.buffer_map[func.params[1]].shape
             for func in made.functions.values() if isinstance(func, tir.PrimFunc)]  # fmt: skip
    return made, [KERNEL if len(shape) == 6 else int(shape[0]) - 2 for shape in given]


def native(mod, *arrays, target=TARGET, **options):
    with PassContext(config=options):
        model = weft.compile(mod, target=target, cache=False)
    return np.asarray(model(*arrays))


SHAPES = {
    "an odd image": ((1, 32, 17, 13), {}),
    "padding on one side": ((2, 16, 16, 11), {"padding": [1, 0, 2, 1]}),
    "no padding": ((3, 16, 9, 14), {"padding": 0}),
    "channels in small blocks": ((1, 24, 12, 12), {}),
    "a wide image": ((1, 16, 4, 40), {}),
}


@pytest.mark.parametrize("name", SHAPES)
def test_results_are_those_of_the_convolution(name):
    shape, options = SHAPES[name]
    mod = network(shape, weights_of(shape[1], shape[1]), **options)
    assert replaced(mod)[1] in ([2], [4])
    data = RNG.normal(size=shape).astype("float32")
    wanted = run(mod, "main", data)
    limit = 5e-5 * np.abs(wanted).max()
    np.testing.assert_allclose(native(mod, data), wanted, rtol=0, atol=limit)


UNFIT = {
    "a line": ((1, 32, 1, 37), weights_of(32, 32), {}),
    "a pixel": ((1, 16, 1, 1), weights_of(16, 16), {}),
    "strides": ((1, 32, 17, 13), weights_of(32, 32), {"strides": 2}),
    "dilation": ((1, 32, 17, 13), weights_of(32, 32), {"dilation": 2, "padding": 2}),
    "groups": ((1, 32, 17, 13), weights_of(32, 16), {"groups": 2}),
    "points": ((1, 32, 17, 13), weights_of(32, 32, 1), {"padding": 0}),
    "large windows": ((1, 32, 17, 13), weights_of(32, 32, 5), {"padding": 2}),
    "channels that make no blocks": ((1, 7, 24, 24), weights_of(16, 7), {}),
    "no images": ((0, 32, 17, 13), weights_of(32, 32), {}),
    "no images of symbolic height": ((0, 32, tir.Var("h", "int64"), 13), weights_of(32, 32), {}),
}


@pytest.mark.parametrize("name", UNFIT)
def test_other_convolutions_stay(name):
    shape, weights, options = UNFIT[name]
    _, tiles = replaced(network(shape, weights, **options))
    assert tiles == []


N, H, W = [tir.Var(name, "int64") for name in "nhw"]
SYMBOLIC = {
    "batch": ((N, 32, 17, 13), [(0, 17, 13), (1, 17, 13), (3, 17, 13)]),
    "width": ((1, 32, 9, W), [(1, 9, 1), (1, 9, 4), (1, 9, 31)]),
    "image": ((N, 32, H, W), [(1, 1, 1), (2, 3, 18), (1, 16, 7), (0, 5, 5)]),
}


@pytest.mark.parametrize("name", SYMBOLIC)
@pytest.mark.parametrize("residual", [False, True])
def test_one_function_computes_images_of_any_size(name, residual):
    shape, sizes = SYMBOLIC[name]
    mod = network(shape, weights_of(32, 32), residual)
    assert replaced(mod)[1] in ([2], [4])
    model = weft.compile(mod, target=TARGET, cache=False)
    for batch, height, width in sizes:
        data = RNG.normal(size=(batch, 32, height, width)).astype("float32")
        wanted = run(mod, "main", data)
        limit = 5e-5 * np.abs(wanted).max(initial=0)
        np.testing.assert_allclose(np.asarray(model(data)), wanted, rtol=0, atol=limit)


def test_extents_of_a_layer_inside_of_a_network_may_be_expressions():
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorStructInfo((1, 32, H, W), "float32"))
    weights = relax.const(weights_of(32, 32))
    with builder.function("main", [x]):
        with builder.dataflow():
            pooled = builder.emit(relax.op.nn.max_pool2d(x, 2, 2))
            out = builder.emit_output(relax.op.nn.conv2d(pooled, weights, padding=1))
        builder.emit_func_output(out)
    mod = builder.get()
    assert replaced(mod)[1] in ([2], [4])
    model = weft.compile(mod, target=TARGET, cache=False)
    for height, width in ((2, 3), (15, 26), (3, 8)):
        data = RNG.normal(size=(1, 32, height, width)).astype("float32")
        np.testing.assert_allclose(np.asarray(model(data)), run(mod, "main", data), atol=1e-4)


def test_what_follows_is_computed_with_the_tiles():
    shape = (1, 32, 16, 16)
    mod = network(shape, weights_of(32, 32), residual=True)
    with TARGET:
        lowered = relax.get_pipeline("weft")(mod)
    [kernel] = [call for call in collect(lowered["main"], relax.Call)
                if call.op.name == "relax.call_tir" and "winograd" in call.args[0].name_hint
              ]  # fmt: skip
    func = lowered[kernel.args[0]]
    assert "tir.is_scheduled" in func.attrs
    assert len(kernel.args[1].fields) == 3  # the data, which is added too, weights and bias
    data = RNG.normal(size=shape).astype("float32")
    np.testing.assert_allclose(native(mod, data), run(mod, "main", data), rtol=1e-4, atol=1e-5)


def test_it_can_be_switched_off():
    mod = network((1, 32, 16, 16), weights_of(32, 32))
    with PassContext(config={"relax.winograd": False}):
        made, tiles = replaced(mod)
    assert tiles == []
    assert len(replaced(mod)[1]) == 1
    convolutions = [call for call in collect(made["main"], relax.Call)
                    if getattr(call.op, "name", "") == "relax.nn.conv2d"]  # fmt: skip
    assert len(convolutions) == 1


def test_weights_that_the_large_tiles_do_not_fit_get_smaller_ones_or_none():
    plain = weights_of(32, 32)
    errors = [error_of(plain, transformed_weights(plain, tile)) for tile in (2, 4)]
    assert errors[0] < errors[1] < 5e-5
    mod = network((1, 32, 40, 40), plain)
    assert replaced(mod)[1] == [4]
    assert replaced(mod, (errors[0] + errors[1]) / 2)[1] == [2]
    assert replaced(mod, errors[0] / 2)[1] == []


@pytest.mark.parametrize("bad", [np.nan, np.inf, 3e38])
def test_weights_that_overflow_are_declined(bad):
    weights = weights_of(32, 32)
    weights[3] = bad
    assert error_of(weights, transformed_weights(weights, 4)) == np.inf
    assert replaced(network((1, 32, 40, 40), weights))[1] == []


def test_filters_of_different_size_are_each_as_exact():
    """An error that is small beside the largest filter may be all of a small one."""
    weights = weights_of(32, 32) * np.logspace(-12, 12, 32, dtype="float32")[:, None, None, None]
    weights[5] = 0
    transformed = transformed_weights(weights, 4)
    assert error_of(weights, transformed) < 5e-5
    transformed[..., 0] += 1e-6 * np.abs(transformed).max()
    assert error_of(weights, transformed) > 1


def test_two_builds_are_equal():
    mod = network((1, 32, 17, 13), weights_of(32, 32))
    first, second = replaced(mod)[0], replaced(mod)[0]
    assert_structural_equal(first, second)
    constants = [collect(made["main"], relax.Constant)[0].data.numpy() for made in (first, second)]
    np.testing.assert_array_equal(*constants)


def test_weights_that_are_used_twice_are_transformed_once(monkeypatch):
    count = 0
    plain = pass_of_winograd.transformed_weights

    def counted(*args):
        nonlocal count
        count += 1
        return plain(*args)

    monkeypatch.setattr(pass_of_winograd, "transformed_weights", counted)
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorStructInfo((1, 32, 16, 16), "float32"))
    weight = relax.const(weights_of(32, 32))
    with builder.function("main", [x]):
        with builder.dataflow():
            first = builder.emit(relax.op.nn.conv2d(x, weight, padding=1))
            out = builder.emit_output(relax.op.nn.conv2d(first, weight, padding=1))
        builder.emit_func_output(out)
    assert len(replaced(builder.get())[1]) == 1  # one kernel
    assert count == 1


MACHINES = ["llvm -mcpu=x86-64-v3 -num-cores=1", "llvm -mcpu=skylake-avx512 -num-cores=4"]


@pytest.mark.parametrize("target", MACHINES)
def test_large_images_win_and_small_ones_with_many_channels_do_not(target):
    machine = machine_of(f"{target} -l2-cache-bytes=1048576")
    large = Form(2, 1, (1, 1, 1, 1), (1, 4, 56, 56, 16), 64, 16, 16)
    best = best_form(large, machine)
    assert best.tile == 4
    assert cycles(best, machine) < direct_cycles(large, machine) / 2
    assert best_form(Form(2, 1, (1, 1, 1, 1), (1, 64, 7, 7, 16), 1024, 16, 16), machine) is None
    assert best_form(Form(2, 1, (1, 1, 1, 1), (1, 4, 0, 7, 16), 64, 16, 16), machine) is None


class WithoutKernels(pass_of_winograd._Finder):
    """As if no function took the kernel."""

    def affordable(self):
        self.offers = {key: [offer for offer in offers if not offer.form.takes_kernel]
                       for key, offers in self.offers.items()}  # fmt: skip
        return super().affordable()


def test_functions_take_the_kernel_where_weights_may_not_grow(monkeypatch):
    mod = network((1, 256, 14, 14), weights_of(256, 256))
    monkeypatch.setattr(winograd_choice, "_SHARE_OF_WEIGHTS", 0.0)
    for limit, expected in ((0, KERNEL), (7 * 4 * 256 * 256, 2)):
        monkeypatch.setattr(winograd_choice, "_FREE_GROWTH", limit)
        made, tiles = replaced(mod)
        assert tiles == [expected]
    sizes = [const.data.numpy().nbytes for const in collect(made, relax.Constant)]
    assert max(sizes) == 16 * 4 * 256 * 256
    monkeypatch.setattr(winograd_choice, "_FREE_GROWTH", 0)
    sizes = [const.data.numpy().nbytes for const in collect(replaced(mod)[0], relax.Constant)]
    assert max(sizes) == 9 * 4 * 256 * 256
    data = RNG.normal(size=(1, 256, 14, 14)).astype("float32")
    wanted = run(mod, "main", data)
    np.testing.assert_allclose(native(mod, data), wanted, rtol=0, atol=5e-5 * np.abs(wanted).max())


def test_a_kernel_is_not_transformed_again_for_each_band():
    machine = machine_of("llvm -mcpu=x86-64-v3 -num-cores=2 -l2-cache-bytes=1048576")
    for size, block in ((14, 16), (28, 16), (56, 4)):
        form = Form(2, 1, (1, 1, 1, 1), (1, block, size, size, 16), 16 * block, 16, 16, True)
        found = best_form(form, machine)
        assert found is None or (found.takes_kernel and found.is_whole)
        assert growth(form) == 0


def test_weights_grow_within_a_limit_first_where_most_is_gained(monkeypatch):
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorStructInfo((1, 64, 56, 56), "float32"))
    with builder.function("main", [x]):
        with builder.dataflow():
            value = builder.emit(relax.op.nn.conv2d(x, relax.const(weights_of(64, 64)), padding=1))
            value = builder.emit(relax.op.nn.max_pool2d(value, 2, 2))
            for step in range(2):
                weight = relax.const(weights_of(128, 128 if step else 64))
                value = builder.emit(relax.op.nn.conv2d(value, weight, padding=1))
            out = builder.emit_output(value)
        builder.emit_func_output(out)
    mod, channels = builder.get(), 64 * 64 + 64 * 128 + 128 * 128
    small, large = 7 * 4, 27 * 4  # bytes that F(2x2) and F(4x4) add for a pair of channels
    tiles = {}
    monkeypatch.setattr(pass_of_winograd, "_Finder", WithoutKernels)
    for limit in (0, small * 64 * 64, small * channels, large * channels):
        monkeypatch.setattr(winograd_choice, "_FREE_GROWTH", limit)
        monkeypatch.setattr(winograd_choice, "_SHARE_OF_WEIGHTS", 0.0)
        tiles[limit] = replaced(mod)[1]
    assert [*tiles.values()] == [[], [2], [2, 2, 2], [4, 4, 4]]
    monkeypatch.setattr(winograd_choice, "_SHARE_OF_WEIGHTS", 1.0)  # as much as there is
    monkeypatch.setattr(winograd_choice, "_FREE_GROWTH", 0)
    assert small * channels < 9 * 4 * channels < large * 64 * 64 + small * (channels - 64 * 64)
    assert replaced(mod)[1] == [2, 2, 2]
