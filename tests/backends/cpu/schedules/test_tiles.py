"""The cost model of register tiles, and the machine that it asks."""

from __future__ import annotations

from dataclasses import replace

import pytest

from weft.backends.cpu.schedules.tiles import Work, balanced_tile, best_tile, likely_tiles
from weft.relax.transform.layout.block_channels import block_of
from weft.target.machine import Machine, machine_of

AVX2 = Machine(2, 256, 16, 2, 32 << 10, 1 << 20, 8 << 20)
AVX512 = Machine(2, 512, 32, 2, 48 << 10, 2 << 20, 32 << 20)


@pytest.mark.parametrize("machine", [AVX2, AVX512], ids=["avx2", "avx512"])
@pytest.mark.parametrize("rows", [1, 5, 6, 7, 14, 49, 56, 128, 197, None])
@pytest.mark.parametrize("columns", [1, 3, 8, 10, 16, 64, 1000, None])
@pytest.mark.parametrize("shared", [True, False])
def test_a_tile_fits_the_registers(machine, rows, columns, shared):
    tile = best_tile(machine, Work(rows, columns, shared))
    assert tile.products + tile.vectors < machine.vector_registers
    assert rows is None or tile.rows <= rows
    assert tile.lanes <= machine.lanes()
    assert columns is None or (tile.vectors - 1) * tile.lanes < columns


@pytest.mark.parametrize(("machine", "products"), [(AVX2, 8), (AVX512, 8)])
def test_a_large_product_is_bound_by_its_multiply_adds(machine, products):
    """At least latency times ports accumulators, and loads for less than the cycles they take."""
    tile = best_tile(machine, Work(768, 768, depth=768))
    assert tile.products >= products
    assert (tile.rows + tile.vectors) / 2 <= tile.rows * tile.vectors / machine.fma_ports


@pytest.mark.parametrize("machine", [AVX2, AVX512], ids=["avx2", "avx512"])
@pytest.mark.parametrize(("columns", "blocks"), [(16, 4), (16, 15), (8, 3), (4, 9), (24, 2)])
@pytest.mark.parametrize("size", [7, 14, 28, 56, 112])
def test_a_tile_takes_parts_of_one_block_of_channels_or_whole_blocks(
    machine, columns, blocks, size
):
    tile = best_tile(machine, Work(size, columns, high=size, blocks=blocks, depth=288))
    assert blocks % tile.several == 0
    assert tile.several == 1 or tile.columns >= columns
    assert tile.high == 1 or tile.rows == size
    assert tile.products + tile.vectors < machine.vector_registers
    assert tile.products > 8  # the latency of a chain is hidden, with something to spare


def test_short_rows_of_an_image_share_a_tile():
    assert best_tile(AVX512, Work(7, 16, high=7, blocks=32, depth=4608)).high == 2


def test_rows_of_symbolic_length_are_taken_to_be_short():
    """Sevens end with the rows of images that were halved."""
    machine = Machine(2, 512, 32, 2, 32 << 10, 1 << 20, 8 << 20)
    image = Work(None, 16, high=None, blocks=16, depth=9 * 128)
    assert best_tile(machine, image).rows == 14
    assert best_tile(machine, replace(image, rows=1024, high=64)).rows == 6
    deep = replace(image, blocks=32, depth=9 * 1024)
    assert best_tile(machine, deep).vectors == 2, "the second cache holds parts of its panels"


def test_numbers_are_broadcast_by_loads_where_registers_are_few():
    """Rows of 33 fill tiles of 11, which load 11 numbers for as many multiply-adds."""
    machine = Machine(1, 256, 16, 2, 32 << 10, 512 << 10, 32 << 20)
    image = Work(None, 16, high=None, depth=960, likely_rows=33, likely_high=33)
    assert best_tile(machine, image).vectors == 2


def test_weights_that_stream_from_the_second_cache_are_read_less_often():
    """Two rows by four vectors would wait for 256 bytes in four cycles."""
    tile = best_tile(AVX512, Work(7, 16, high=1, blocks=32, depth=4608))
    assert tile.vectors < tile.rows == 7


def test_wide_loads_cost_beside_multiply_adds():
    """Four blocks of 16 share each number; 14 rows of two blocks would load more, and as wide
    vectors from the second cache do.
    """
    tile = best_tile(AVX512, Work(28, 16, high=28, blocks=4, depth=64))
    assert (tile.rows, tile.vectors) == (6, 4)
    assert best_tile(AVX512, Work(28, 16, high=28, blocks=4, depth=1152)).vectors == 2


def test_rows_at_a_distance_leave_each_other_in_the_cache():
    assert best_tile(AVX512, Work(128, 32, depth=1024)).rows > 8
    assert best_tile(AVX512, Work(128, 32, depth=1024, apart=True)).rows <= 8


def test_a_target_says_more_than_the_machine():
    machine = machine_of("llvm -num-cores=3 -vector-width=256 -fma-ports=1 -l2-cache-bytes=4096")
    assert (machine.cores, machine.vector_bits, machine.fma_ports, machine.l2) == (3, 256, 1, 4096)
    assert machine_of("llvm").l1 >= 16 << 10


@pytest.mark.parametrize(
    ("channels", "width", "block"),
    [
        (64, 16, 16), (24, 16, 24), (36, 16, 36), (1000, 16, 40), (72, 16, 24), (20, 16, 20),
        (24, 8, 8), (3, 16, 1), (6, 8, 1),
    ],
)  # fmt: skip
def test_channels_have_the_block_that_takes_the_fewest_vectors(channels, width, block):
    assert block_of(channels, width) == block


@pytest.mark.parametrize("bits", [128, 256, 512])
@pytest.mark.parametrize("columns", [1, 16, 100, 1024])
def test_a_sum_of_columns_reads_long_runs(bits, columns):
    registers = 32 if bits == 512 else 16
    one, two = [Machine(cores, bits, registers, 2, 32 << 10, 1 << 20, 8 << 20) for cores in (1, 64)]
    tile = best_tile(one, Work(1, columns, depth=1024, once=True))
    assert tile.products <= registers - 2
    assert tile.vectors > 4 or tile.columns >= columns or columns <= 4 * tile.lanes
    assert best_tile(two, Work(1, columns, depth=1024, once=True)).vectors <= 4


ROWS_OF_SEVEN = Work(7, 16, high=7, blocks=10, depth=960)
"""A convolution of 160 filters over 7 x 7 pixels."""


def test_the_best_tile_is_taken_where_cores_have_equal_shares():
    assert balanced_tile(AVX512, ROWS_OF_SEVEN, lambda tile: 0.5) == best_tile(
        AVX512, ROWS_OF_SEVEN
    )
    assert balanced_tile(AVX512, ROWS_OF_SEVEN, lambda tile: None) == best_tile(
        AVX512, ROWS_OF_SEVEN
    )


def test_another_tile_is_taken_where_it_shares_the_work_out_better():
    """Five columns of tiles keep two cores busy for five sixths of the time."""
    best = best_tile(AVX512, ROWS_OF_SEVEN)
    other = likely_tiles(AVX512, ROWS_OF_SEVEN, 2)[1]

    def share(tile):
        return 0.6 if tile == best else 0.51

    assert best != other
    assert balanced_tile(AVX512, ROWS_OF_SEVEN, share) == other


def test_a_tile_that_shares_a_little_better_is_not():
    best = best_tile(AVX512, ROWS_OF_SEVEN)

    def share(tile):
        return 0.53 if tile == best else 0.52

    assert balanced_tile(AVX512, ROWS_OF_SEVEN, share) == best
