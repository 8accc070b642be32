"""When Winograd's algorithm wins over the direct one: cycles by counting, for a machine.

Both algorithms are counted alike: multiply-adds of a register tile at the share of the peak that
products reach, weights that no cache holds at the rate at which memory streams, transforms by the
vectors that they load and store. What the figures come from: ``docs/design/0010``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from weft.relax.op.nn.geometry import Geometry
from weft.target.machine import Machine
from weft.topi.nn.winograd import Form
from weft.topi.nn.winograd_matrices import TILES, WINDOW

_SHARE: Final = 0.85
"""Of the peak, that products and direct convolutions reach."""
_STREAM: Final = 4.0
"""Bytes a cycle that a core gets from beyond its caches."""
_SPILLED: Final = 2.0
"""The same for what is written and read again soon."""
_PER_VECTOR: Final = 2.5
"""Cycles of a transform for each vector that it stores, loads and additions in it."""
_PER_LINE: Final = 12.0
"""The same for each cache line of a kernel, and of weights made of it, each in another place."""
_LATENCY: Final = 4
"""Cycles from a multiply-add to the next one on its result."""
_LOADS: Final = 2
"""Vectors that can be loaded in a cycle."""
_GAIN: Final = 1.2
"""How much less the count must be: results are less exact, and weights larger."""
_ELEMENT, _LINE = 4, 64
"""Bytes of a number, and of a cache line."""


def has_form(sizes: Geometry) -> bool:
    """Whether Winograd's algorithms can compute a convolution: windows of 3x3, one pixel apart."""
    return sizes.is_dense and sizes.is_slid and sizes.kernel == (WINDOW, WINDOW)


def best_form(form: Form, machine: Machine, tiles: tuple[int, ...] = TILES) -> Form | None:
    """The convolution in tiles, bands and panels that take the fewest cycles.

    ``form`` says the convolution; its own tile, rows and panel do not count. None where the direct
    algorithm takes fewer, and where there is nothing to compute.

    >>> from weft.target.machine import machine_of
    >>> machine = machine_of("llvm -num-cores=1 -vector-width=256")
    >>> large = Form(2, 1, (1, 1, 1, 1), (1, 4, 56, 56, 16), 64, 16, 16)
    >>> best_form(large, machine).tile
    4
    >>> best_form(Form(2, 1, (1, 1, 1, 1), (1, 1, 7, 7, 4), 4, 4, 4), machine) is None
    True
    """
    candidates = [(cycles(candidate, machine), candidate) for candidate in _forms(form, tiles)]
    if not candidates:
        return None
    least, best = min(candidates, key=lambda pair: pair[0])
    return best if least * _GAIN < direct_cycles(form, machine) else None


def gain(form: Form, machine: Machine) -> float:
    """Cycles that a form saves of the direct algorithm's."""
    return direct_cycles(form, machine) - cycles(form, machine)


def growth(form: Form) -> int:
    """Bytes by which transformed weights are larger than the kernel; 0 where that is taken.

    >>> growth(Form(4, 1, (1, 1, 1, 1), (1, 1, 9, 9, 2), 3, 3, 3))
    648
    """
    if form.takes_kernel:
        return 0
    channels = form.data[1] * form.data[4]
    return (form.side**2 - WINDOW * WINDOW) * channels * form.filters * _ELEMENT


def _forms(form: Form, tiles: tuple[int, ...]) -> Iterator[Form]:
    """The convolution in every way in which it can be cut."""
    if min(form.data) < 1 or min(form.size) < 1:
        return
    blocks = form.filters // form.block
    panels = [form.block * count for count in range(1, 5) if blocks % count == 0]
    for tile in tiles:
        down = replace(form, tile=tile).down
        rows = {count for count in range(1, down + 1) if down % count == 0} | {down * form.data[0]}
        if form.takes_kernel:  # once, not for each band
            rows = {down * form.data[0]}
        for count in sorted(rows):
            for panel in panels:
                candidate = replace(form, tile=tile, rows=count, panel=panel)
                if candidate.rows * candidate.across > 1:
                    yield candidate


def direct_cycles(form: Form, machine: Machine) -> float:
    """Cycles of the direct algorithm on all cores."""
    height, width = form.size
    channels = form.data[1] * form.data[4]
    products = form.data[0] * height * width * channels * form.filters * WINDOW * WINDOW
    vectors = products / min(machine.lanes(), form.block)
    weights = channels * form.filters * WINDOW * WINDOW * _ELEMENT
    return (vectors / machine.fma_ports / _SHARE + _streamed(weights, machine)) / machine.cores


def cycles(form: Form, machine: Machine) -> float:
    """Cycles of Winograd's algorithm on all cores."""
    images, bands = form.bands
    count, tiles = images * bands, form.rows * form.across
    channels, side = form.data[1] * form.data[4], form.side
    panels = form.filters // form.panel
    each = _tile_steps(tiles, form.panel, machine) * channels * panels * side * side / _SHARE
    each += _kernel_transform(form)
    places = WINDOW * WINDOW if form.takes_kernel else side * side
    weights = places * channels * form.filters * _ELEMENT
    work = count * (each + _transforms(form, machine) + _spilled(form, machine))
    work += _streamed(weights, machine) * (count if weights > machine.l2 // 2 else 1)
    idle = 1.0 if form.is_whole else -(-count // machine.cores) * machine.cores / count
    return work / machine.cores * idle


def _tile_steps(tiles: int, panel: int, machine: Machine) -> float:
    """Cycles of one step of the reduction for all tiles of a band and one panel."""
    vectors = -(-panel // machine.lanes())
    most = machine.accumulator_rows(vectors)
    if most < 1:
        return float("inf")
    parts = -(-tiles // most)
    rows = -(-tiles // parts)
    last = tiles - rows * (parts - 1)
    return (parts - 1) * _step(rows, vectors, machine) + _step(last, vectors, machine)


def _step(rows: int, vectors: int, machine: Machine) -> float:
    return max(rows * vectors / machine.fma_ports, (rows + vectors) / _LOADS, _LATENCY)


def _transforms(form: Form, machine: Machine) -> float:
    """Cycles of the transforms of a band."""
    tiles, side = form.rows * form.across, form.side
    lines = form.rows * (form.across * form.tile + WINDOW - 1) * side
    into = form.data[1] * -(-form.data[4] // machine.lanes()) * (lines + tiles * side * side)
    places = side * side + form.tile * side + form.tile * form.tile
    out = form.filters // form.block * -(-form.block // machine.lanes()) * tiles * places
    return _PER_VECTOR * (into + out)


def _kernel_transform(form: Form) -> float:
    """Cycles in which a function makes all weights of the kernel."""
    if not form.takes_kernel:
        return 0.0
    lines = form.data[1] * form.data[4] * -(-form.filters * _ELEMENT // _LINE)
    return _PER_LINE * lines * (form.side**2 + WINDOW * WINDOW)


def _spilled(form: Form, machine: Machine) -> float:
    """Cycles for transformed data and products of a band that the cache does not hold."""
    channels = form.data[1] * form.data[4]
    numbers = form.side**2 * form.rows * form.across * (channels + form.filters)
    cores = machine.cores if form.is_whole else 1
    return 0.0 if numbers * _ELEMENT <= machine.l2 * cores else 2 * numbers * _ELEMENT / _SPILLED


def _streamed(weights: int, machine: Machine) -> float:
    """Cycles until weights have come from memory once; a cache may hold few of them."""
    return weights / _STREAM if weights > machine.l2 // 2 else 0.0
