"""Depth block by block: when, that results are kept, to the last bit, and in which chunks."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import weft
from tests.lib.default_schedules import (
    SMALL,
    blocked,
    convolution,
    floats,
    matmul,
    product_and_relu,
    results_of,
    scheduled,
)
from weft import te
from weft.backends.cpu.schedules import parts, tiled
from weft.backends.cpu.schedules.chunks import Chunks, _candidates, best_chunks
from weft.backends.cpu.schedules.order import Order, Side, Tiles
from weft.backends.cpu.schedules.tile_order import Traffic
from weft.runtime.threads.parallel import set_num_threads
from weft.target import Target
from weft.target.machine import Machine, machine_of

pytestmark = pytest.mark.sampled(3)

ONE, FOUR = [Machine(cores, 512, 32, 2, 32 << 10, 1 << 20, 32 << 20) for cores in (1, 4)]


def traffic(rows, columns, depth, tile=(8, 32)):
    """That of a product whose tiles are all whole."""
    across, down = Tiles(columns // tile[1]), Tiles(rows // tile[0])
    cycles = rows * columns * depth / 32
    sides = Side((across,), columns * depth * 4), Side((down,), rows * depth * 4)
    return Traffic(*sides, (), rows * columns, cycles)


def test_depth_is_cut_where_rows_do_not_fit_the_second_cache():
    assert best_chunks(ONE, traffic(128, 768, 3072), 24, Order()) == Chunks()
    assert best_chunks(ONE, traffic(128, 768, 512), 4, Order()) is None


def test_depth_is_cut_where_two_panels_do_not_fit():
    """Rows of 128 KiB would stay, but the panels that stream past them have 512 KiB each."""
    assert best_chunks(ONE, traffic(8, 1024, 4096), 32, Order()) == Chunks()
    assert best_chunks(ONE, traffic(8, 1024, 1024), 8, Order()) is None


def test_depth_is_cut_where_no_panel_fits_beside_a_tile():
    """A panel of 16 filters of 3x3 over 960 channels has 540 KiB, which each tile reads anew."""
    machine = Machine(1, 256, 16, 2, 32 << 10, 512 << 10, 32 << 20)
    columns = Side((Tiles(16),), 256 * 960 * 9 * 4)
    rows = Side((Tiles(33), Tiles(6, 0.5)), 960 * 57 * 57 * 4)
    elements = 33 * 33 * 256
    window = Traffic(columns, rows, (), elements, elements * 960 * 9 / 16)
    assert best_chunks(machine, window, 60, Order()) is not None


def test_cores_share_chunks():
    chunks = best_chunks(FOUR, traffic(128, 768, 3072), 24, Order())
    assert chunks is not None
    assert chunks.rows * chunks.columns == 4


def test_a_large_result_is_cut_until_a_chunk_stays():
    chunks = best_chunks(ONE, traffic(1024, 1024, 4096), 32, Order())
    assert chunks is not None
    assert 1024 * 1024 * 4 // (chunks.rows * chunks.columns) < ONE.l2


def test_no_block_fits_a_cache_that_is_smaller_than_its_panels():
    tiny = Machine(1, 512, 32, 2, 1 << 10, 4 << 10, 1 << 20)
    assert best_chunks(tiny, traffic(128, 768, 3072), 24, Order()) is None


CASES = {
    "product": matmul(16, 16, 24),
    "tails of rows, columns and depth": matmul(9, 19, 22),
    "one tile": matmul(3, 4, 12),
    "batched product": matmul(5, 6, 8, (2,)),
    "transposed product, bias, relu": product_and_relu(14, 24, 20),
    "filters are rows": convolution((1, 12, 3, 5), (10, 12, 1, 1), padding=0),
    "blocked convolution": blocked(
        (1, 3, 3, 3, 4), (4, 3, 1, 1, 4, 4), ("NCHW4c", "OIHW4i4o", "NCHW4c")
    ),
    "blocked convolution with padding": blocked(
        (1, 2, 3, 3, 4), (2, 2, 3, 3, 4, 4), ("NCHW4c", "OIHW4i4o", "NCHW4c")
    ),
}  # fmt: skip


def forced(monkeypatch, number):
    """Cut depth into blocks of some four steps, and results into the chunks of this number."""
    chosen = []

    def best(machine, around, blocks, order):
        possible = list(_candidates(around))
        chosen.append(possible[number % len(possible)])
        return chosen[-1]

    monkeypatch.setattr(parts, "_PART", 4)
    monkeypatch.setattr(parts, "_LONG", 8)
    monkeypatch.setattr(tiled, "best_chunks", best)
    return chosen


@pytest.mark.parametrize("number", [0, 1, -1])
@pytest.mark.parametrize("name", CASES)
def test_results_are_kept(name, number, monkeypatch):
    chosen = forced(monkeypatch, number)
    given, result = CASES[name]()
    func = te.create_prim_func([*given, result])
    shapes = [[int(extent) for extent in tensor.shape] for tensor in (*given, result)]
    arrays = [floats(*shape) for shape in shapes[:-1]]
    after, expected, interpreted, native = results_of(func, arrays, shapes[-1])
    assert chosen
    assert blocks_of_depth(after)
    np.testing.assert_allclose(interpreted, expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(native, expected, rtol=1e-4, atol=1e-5)


def blocks_of_depth(func):
    """Whether a total is in memory while the parts of a sum are added to it."""
    buffers = func.body.block.alloc_buffers
    is_cut = any(buffer.name.endswith("_rf") for buffer in buffers)
    return is_cut and any(buffer.scope() == "global" for buffer in buffers)


@pytest.mark.parametrize("number", [0, -1])
@pytest.mark.parametrize("part", [4, 128])
@pytest.mark.parametrize("holes", [1, 3, 9])
def test_an_image_of_any_size_is_summed_block_by_block(holes, part, number, monkeypatch, tmp_path):
    """The last tile must not overlap another one: it would add to the total twice.

    A part of 144 steps has a whole window, for which it pads 16 channels of the image.
    """
    monkeypatch.setenv("WEFT_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("WEFT_COMPILE_WORKERS", "1")  # what is patched is patched in this process
    forced(monkeypatch, number)
    monkeypatch.setattr(parts, "_PART", part)
    monkeypatch.setattr(parts, "_LONG", max(part, 8) + 16)
    placed, place_blocks = [], tiled.place_blocks

    def place(*args):
        panels = place_blocks(*args)
        placed.append(args[-1])
        return panels

    monkeypatch.setattr(tiled, "place_blocks", place)
    net = torch.nn.Conv2d(32, 48, 3, padding=holes, dilation=holes)
    height, width = (torch.export.Dim(name, min=2, max=99) for name in "hw")
    example = torch.ones(1, 32, 9, 9)
    with Target("llvm -mcpu=haswell -num-cores=2"):
        model = weft.compile(net, (example,), dynamic_shapes=({2: height, 3: width},))
    [padded] = placed
    assert bool(padded) == (part == 128)
    for size in ((2, 2), (2, 7), (9, 9), (5, 40), (33, 13)):
        x = torch.from_numpy(floats(1, 32, *size))
        np.testing.assert_allclose(model(x), net(x).detach(), rtol=1e-4, atol=1e-5)


def test_chunks_that_cut_tiles_leave_the_usual_order(monkeypatch):
    """The model gives no such chunks; if it did, the block would not stay unscheduled."""
    monkeypatch.setattr(tiled, "best_chunks", lambda *_: Chunks(2, 1))
    [a, b], c = matmul(16, 32, 1024)()
    after = scheduled(te.create_prim_func([a, b, c]))
    assert not blocks_of_depth(after)
    assert after.body.block.alloc_buffers


def native(func, arrays, shape, target):
    given = [weft.nd.array(array) for array in (*arrays, np.zeros(shape, "float32"))]
    weft.build(func, target)["main"](*given)
    return given[-1].numpy()


def test_results_are_the_same_to_the_last_bit(monkeypatch):
    """As without blocks, with any chunks, and with any number of threads."""
    [a, b], c = matmul(24, 32, 1024)()
    func, arrays = te.create_prim_func([a, b, c]), [floats(24, 1024), floats(1024, 32)]
    monkeypatch.setattr(tiled, "best_chunks", lambda *_: None)
    plain = scheduled(func)
    assert not blocks_of_depth(plain)
    expected = native(plain, arrays, (24, 32), SMALL)
    for chunks in (Chunks(), Chunks(2, 1), Chunks(1, 2), Chunks(2, 2)):
        monkeypatch.setattr(tiled, "best_chunks", lambda *_, chunks=chunks: chunks)
        after = scheduled(func)
        assert blocks_of_depth(after)
        for threads in (1, 2):
            set_num_threads(threads)
            try:
                result = native(after, arrays, (24, 32), SMALL)
            finally:
                set_num_threads(None)
            np.testing.assert_array_equal(result, expected)


def test_a_product_that_needs_it_has_blocks():
    """Without anything forced, on a machine with small caches."""
    small = weft.target.Target(
        "llvm -vector-width=128 -num-cores=1 -l1d-cache-bytes=4096 -l2-cache-bytes=32768"
    )
    [a, b], c = matmul(24, 40, 1024)()
    func, arrays = te.create_prim_func([a, b, c]), [floats(24, 1024), floats(1024, 40)]
    after = weft.dlight.cpu.Default().apply(func, small, False).mod["main"]
    assert blocks_of_depth(after)
    assert machine_of(small).l2 == 32768
    result = native(after, arrays, (24, 40), small)
    exact = arrays[0].astype("float64") @ arrays[1]
    np.testing.assert_allclose(result, exact, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("batch", [False, True])
def test_rows_of_unknown_number_have_blocks(batch, monkeypatch):
    """The same, to the last bit, as without; rows may lie along two axes, which are joined."""
    small = weft.target.Target(
        "llvm -vector-width=128 -num-cores=1 -l1d-cache-bytes=16384 -l2-cache-bytes=131072"
    )
    m, n = weft.tir.Var("m", "int64"), weft.tir.Var("n", "int64")
    rows = (m, n) if batch else (n,)
    depth, width = [weft.tir.IntImm("int64" if batch else "int32", size) for size in (1024, 40)]
    a, b = te.placeholder((*rows, depth), name="A"), te.placeholder((depth, width), name="B")
    func = te.create_prim_func([a, b, weft.topi.matmul(a, b)])
    after = weft.dlight.cpu.Default().apply(func, small, False).mod["main"]
    assert blocks_of_depth(after)
    monkeypatch.setattr(tiled, "best_chunks", lambda *_: None)
    plain = weft.dlight.cpu.Default().apply(func, small, False).mod["main"]
    assert not blocks_of_depth(plain)
    for number in (0, 1, 5, 130):
        lead = (3, number) if batch else (number,)
        arrays = [floats(*lead, 1024), floats(1024, 40)]
        result = native(after, arrays, (*lead, 40), small)
        exact = arrays[0].astype("float64") @ arrays[1]
        np.testing.assert_allclose(result, exact, rtol=1e-4, atol=1e-3)
        np.testing.assert_array_equal(result, native(plain, arrays, (*lead, 40), small))
