"""A cost model: when Winograd's algorithm is faster than the direct one on a machine.

The cycles of both algorithms are counted in the same way: multiply-adds of register tiles, at the
share of the peak that such kernels reach; weights that no cache holds, at the rate of memory; and
transforms, by the vectors that they store. ``docs/design/0010-default-schedules.md`` says where the
figures come from.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import Final

from weft.relax.op.nn.geometry import Geometry
from weft.target.machine import Machine
from weft.topi.nn.winograd_form import Form, tiles_of
from weft.topi.nn.winograd_matrices import TILES, WINDOW

_SHARE: Final = 0.85
"""The share of the peak that products and direct convolutions reach."""
_STREAM: Final = 4.0
"""Bytes per cycle that a core loads from beyond its caches."""
_NEAR: Final = 12.0
"""The same from the third cache."""
_SPILLED: Final = 2.0
"""The same for data that is written and soon read again."""
_SPILLED_NEAR: Final = 6.0
"""The same where the third cache holds it."""
_PER_VECTOR: Final = 2.5
"""Cycles of a transform for each vector that it stores, with the loads and additions for it."""
_PER_LINE: Final = 12.0
"""Cycles to transform a kernel, for each cache line of it and of the weights: these lines are
scattered over memory."""
_LATENCY: Final = 4
"""Cycles from a multiply-add to the next one on its result."""
_LOADS: Final = 2
"""How many vectors can be loaded in a cycle."""
_GAIN: Final = 1.2
"""By which factor Winograd's algorithm must be faster: it is less accurate and needs memory."""
_MOST_GROUPS: Final = 4
"""The most groups of tiles that a band has, if an extent is symbolic."""
_SMALL: Final = 0.25
"""The share of small images, if an extent is symbolic."""
_ELEMENT, _LINE = 4, 64
"""Bytes of an element and of a cache line."""


def has_form(sizes: Geometry) -> bool:
    """Whether Winograd's algorithms can compute a convolution: windows of 3x3, one pixel apart."""
    return sizes.is_dense and sizes.is_slid and sizes.kernel == (WINDOW, WINDOW)


def best_form(form: Form, machine: Machine, tiles: tuple[int, ...] = TILES) -> Form | None:
    """The convolution with the tile, band and panel that take the fewest cycles.

    The tile, band and panel of ``form`` itself do not matter. None if the direct algorithm is
    faster, or if there is nothing to compute.

    >>> from weft.target.machine import machine_of
    >>> machine = machine_of("llvm -num-cores=1 -vector-width=256")
    >>> large = Form(2, 1, (1, 1, 1, 1), (1, 4, 56, 56, 16), 64, 16, 16)
    >>> best_form(large, machine).tile
    4
    >>> best_form(Form(2, 1, (1, 1, 1, 1), (1, 1, 7, 7, 4), 4, 4, 4), machine) is None
    True
    """
    return form_faster_than(direct_cycles(form, machine), form, machine, tiles)


def form_faster_than(
    limit: float, form: Form, machine: Machine, tiles: tuple[int, ...] = TILES
) -> Form | None:
    """The same, compared with another algorithm that takes ``limit`` cycles."""
    forms = _forms(form, machine, tiles)
    candidates = [(cycles(candidate, machine), candidate) for candidate in forms]
    fewest, best = min(candidates, key=lambda pair: pair[0], default=(math.inf, form))
    return best if fewest * _GAIN < limit else None


def gain(form: Form, machine: Machine) -> float:
    """How many cycles a form saves compared with the direct algorithm."""
    return direct_cycles(form, machine) - cycles(form, machine)


def growth(form: Form) -> int:
    """By how many bytes transformed weights exceed the kernel; 0 if the form takes the kernel.

    >>> growth(Form(4, 1, (1, 1, 1, 1), (1, 1, 9, 9, 2), 3, 3, 3))
    648
    """
    if form.takes_kernel:
        return 0
    channels = form.data[1] * form.data[4]
    return (form.side**2 - WINDOW * WINDOW) * channels * form.filters * _ELEMENT


def _forms(form: Form, machine: Machine, tiles: tuple[int, ...]) -> Iterator[Form]:
    """The convolution with every possible tile, band and panel."""
    if min(form.data) < 1 or min(form.size) < 1:
        return
    blocks = form.filters // form.block
    panels = [form.block * count for count in range(1, 5) if blocks % count == 0]
    for tile in tiles:
        for panel in panels:
            plain = replace(form, tile=tile, panel=panel)
            for rows, groups in _bands(plain, machine):
                candidate = replace(plain, rows=rows, groups=groups)
                if candidate.tiles > 1:
                    yield candidate


def _bands(form: Form, machine: Machine) -> Iterator[tuple[int, int]]:
    """The rows of tiles that a band may have; if an extent is symbolic, its groups and their tiles.

    The products of a group are in registers together.
    """
    if form.symbols:
        most = machine.accumulator_rows(-(-form.panel // machine.lanes()))
        sizes = {most, -(-most // 2)} if most > 1 else ()
        yield from product(sizes, range(1, _MOST_GROUPS + 1))
        return
    down = form.down
    whole = down * form.data[0]
    rows = [count for count in range(1, down + 1) if down % count == 0]
    # A kernel is transformed once, not for each band.
    for count in [whole] if form.takes_kernel else sorted({*rows, whole}):
        yield count, 1


def direct_cycles(
    form: Form, machine: Machine, rate: float = 1.0, element: int = _ELEMENT
) -> float:
    """Cycles of the direct algorithm on all cores.

    Numbers that are multiplied ``rate`` times as fast as float32 have ``element`` bytes.
    """
    height, width = form.size
    channels = form.data[1] * form.data[4]
    products = form.data[0] * height * width * channels * form.filters * WINDOW * WINDOW
    vectors = products / min(machine.lanes(), form.block)
    weights = channels * form.filters * WINDOW * WINDOW * element
    steps = vectors / machine.fma_ports / rate / _SHARE
    return (steps + _streamed(weights, machine)) / machine.cores


def cycles(form: Form, machine: Machine) -> float:
    """Cycles of Winograd's algorithm on all cores.

    Only the run tells a symbolic extent. So the time in which tiles beyond the last one are
    computed, weights come again, or cores wait, is a mean of two cases: what is likely, and, at a
    quarter, a single image of half the height and width.
    """
    if not form.symbols:
        return _cycles(form, machine)
    _, blocks, height, width, block = form.data
    small = replace(form, data=(1, blocks, -(-height // 2), -(-width // 2), block))
    if min(small.size) < 1:
        small = form
    rare = _cycles(small, machine) * form.count / small.count
    return (1 - _SMALL) * _cycles(form, machine) + _SMALL * rare


def _cycles(form: Form, machine: Machine) -> float:
    """The cycles for images of exactly these sizes."""
    count, channels, side = form.bands, form.data[1] * form.data[4], form.side
    panels = form.filters // form.panel
    steps = form.groups * _tile_steps(form.rows * form.row, form.panel, machine)
    each = steps * channels * panels * side * side / _SHARE + _kernel_transform(form)
    places = WINDOW * WINDOW if form.takes_kernel else side * side
    weights = places * channels * form.filters * _ELEMENT
    again, used = _read_again(weights, machine), float(count)
    if form.symbols:
        again = max(again - each / 2, 0)  # such small bands are fast: weights come meanwhile
        used = tiles_of(form.count, form.rows) / form.groups  # the last band has fewer groups
    work = used * (each + _transforms(form, machine) + _spilled(form, machine))
    work += _streamed(weights, machine) + (count - 1) * again
    return work / machine.cores * (1.0 if form.is_whole else _idle(count, machine))


def _idle(count: int, machine: Machine) -> float:
    """How many times as long ``count`` bands take because cores wait for the busiest of them."""
    return -(-count // machine.cores) * machine.cores / count


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
    tiles, side = form.tiles, form.side
    lines = form.rows * form.groups * (form.row * form.tile + WINDOW - 1) * side
    into = form.data[1] * -(-form.data[4] // machine.lanes()) * (lines + tiles * side * side)
    places = side * side + form.tile * side + form.tile * form.tile
    out = form.filters // form.block * -(-form.block // machine.lanes()) * tiles * places
    return _PER_VECTOR * (into + out)


def _kernel_transform(form: Form) -> float:
    """Cycles in which a function transforms the kernel; 0 if it takes transformed weights."""
    if not form.takes_kernel:
        return 0.0
    lines = form.data[1] * form.data[4] * -(-form.filters * _ELEMENT // _LINE)
    return _PER_LINE * lines * (form.side**2 + WINDOW * WINDOW)


def _spilled(form: Form, machine: Machine) -> float:
    """Cycles to write and read a band's transformed data and products, if no cache holds them."""
    channels = form.data[1] * form.data[4]
    numbers = form.side**2 * form.tiles * (channels + form.filters)
    cores = machine.cores if form.is_whole else 1
    size = numbers * _ELEMENT
    rate = _SPILLED_NEAR if size <= machine.l3 // 2 else _SPILLED
    return 0.0 if size <= machine.l2 * cores else 2 * size / rate


def _streamed(weights: int, machine: Machine) -> float:
    """Cycles to load weights from memory once; 0 if half of the second cache holds them."""
    return weights / _STREAM if weights > machine.l2 // 2 else 0.0


def _read_again(weights: int, machine: Machine) -> float:
    """Cycles to load weights once more, from the third cache if that holds them."""
    near = weights <= machine.l3 // 2
    return weights / (_NEAR if near else _STREAM) if weights > machine.l2 // 2 else 0.0
