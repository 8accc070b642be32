"""The cost model of register tiles, and the machine that it asks."""

from __future__ import annotations

import pytest

from weft.dlight.cpu.tiles import best_tile
from weft.relax.transform.block_channels import block_of
from weft.target.machine import Machine, machine_of

AVX2 = Machine(2, 256, 16, 2, 32 << 10, 1 << 20, 8 << 20)
AVX512 = Machine(2, 512, 32, 2, 48 << 10, 2 << 20, 32 << 20)


@pytest.mark.parametrize("machine", [AVX2, AVX512], ids=["avx2", "avx512"])
@pytest.mark.parametrize("rows", [1, 5, 6, 7, 14, 49, 56, 128, 197, None])
@pytest.mark.parametrize("columns", [1, 3, 8, 10, 16, 64, 1000, None])
@pytest.mark.parametrize("shared", [True, False])
def test_a_tile_fits_the_registers(machine, rows, columns, shared):
    tile = best_tile(machine, rows, columns, shared)
    assert tile.rows * tile.vectors + tile.vectors < machine.vector_registers
    assert rows is None or tile.rows <= rows
    assert tile.lanes <= machine.lanes()
    assert columns is None or (tile.vectors - 1) * tile.lanes < columns


@pytest.mark.parametrize(("machine", "products"), [(AVX2, 8), (AVX512, 8)])
def test_a_large_product_is_bound_by_its_multiply_adds(machine, products):
    """At least latency times ports accumulators, and loads for less than the cycles they take."""
    tile = best_tile(machine, 768, 768, True)
    assert tile.rows * tile.vectors >= products
    assert (tile.rows + tile.vectors) / 2 <= tile.rows * tile.vectors / machine.fma_ports


def test_a_target_says_more_than_the_machine():
    machine = machine_of("llvm -num-cores=3 -vector-width=256 -fma-ports=1 -l2-cache-bytes=4096")
    assert (machine.cores, machine.vector_bits, machine.fma_ports, machine.l2) == (3, 256, 1, 4096)
    assert machine_of("llvm").l1 >= 16 << 10


@pytest.mark.parametrize(
    ("channels", "width", "block"), [(64, 16, 16), (24, 16, 8), (36, 16, 4), (3, 16, 1), (6, 8, 1)]
)
def test_channels_have_the_largest_block_that_divides_them(channels, width, block):
    assert block_of(channels, width) == block
