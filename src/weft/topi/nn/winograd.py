"""Winograd's algorithms for 3x3 convolutions over blocks of channels, as a function of stages.

An image is divided into tiles of m x m results, each from (m + 2) x (m + 2) elements. The stages:

=============  =======================================================  ===========================
pixels         (*band, row, channels / a, m + 2, width, a)              rows of tiles, padded
lines          (*band, row, channels / a, m + 2, width, a)              changed from line to line
data           (*band, m + 2, m + 2, channels / a, tile, a)             and along the lines
products       (*band, m + 2, m + 2, filters / p, tile, p)              a matrix product a place
lines of tile  (*band, filters / b, tile, m, m + 2, b)                  changed back, lines first
tiles          (*band, filters / b, tile, m, m, b)                      and along the lines
result         (batch, filters / b, height, width, b)                   without what is beyond edges
=============  =======================================================  ===========================

If the function takes the kernel itself, a further stage ``weights`` computes from it what
``transformed_weights`` computes otherwise: ((m + 2) (m + 2), filters / p, channels, p).

A band consists of as many rows of tiles as fit into a cache with all their stages; ``tile`` counts
the tiles of a band. ``*band`` stands for two axes: the image and the band of rows. If one band
holds all rows of all images, both have extent 1. a is the block of the data's channels, b that of
the result's, p the number of filters in a panel of the weights. Blocks have the annotation
``STAGE``, by which default schedules recognize them.

If an extent is symbolic, tiles are numbered through all images, row by row, and a band consists of
groups of so many tiles with numbers in a row; ``*band`` is the band and the group. So only the last
band has tiles too many, whatever the sizes are: these compute the last tile again, and are not
stored. (Schedules leave out groups of such tiles.) Each tile then is a row of tiles of its own.
(Lavin and Gray, CVPR 2016; bands as in Jia et al., "Optimizing N-dimensional, Winograd-based
Convolution for Manycore CPUs", PPoPP 2018.)

A block of a transform stores all results of a line, so that the factors are constants without
unrolling. Tensor expressions, which store one element each, cannot express that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from weft.ir.attrs import Attrs
from weft.ir.expr import Extent, IntImm, PrimExpr, Range
from weft.ir.node import Map
from weft.tir import op
from weft.tir.analysis.block_access_region import get_block_access_region
from weft.tir.buffer import BufferLoad, decl_buffer
from weft.tir.expr import IterType, IterVar, Var
from weft.tir.function import PrimFunc
from weft.tir.stmt import Block, BlockRealize, BufferStore, For, ForKind, Stmt, seq
from weft.topi.extents import Shape
from weft.topi.nn.winograd_form import BATCH, HEIGHT, WIDTH, Form, results, tiles_of
from weft.topi.nn.winograd_matrices import WINDOW, Matrix, matrices

DTYPE: Final = "float32"
"""The type in which all stages compute."""
STAGE: Final = "weft.winograd"
"""The annotation of a block: which stage it is."""
PIXELS, LINES, DATA, WEIGHTS, PRODUCTS, TILE_LINES, TILES, RESULT = (
    "pixels", "lines", "data", "weights", "products", "lines of tile", "tiles", "result"
)  # fmt: skip
GROUPS: Final = "weft.winograd_groups"
"""The annotation of a block, if an extent is symbolic: how many groups of tiles a band has."""
STAGES: Final = (PIXELS, LINES, DATA, PRODUCTS, TILE_LINES, TILES, RESULT)
"""The values of the annotation, in the order in which the stages run; ``WEIGHTS`` may be one."""
BAND_AXES: Final = 2
"""How many axes of each stage between the data and the result say which band it is."""
_INDEX: Final = "int64"


def transformed_weights(weights: np.ndarray, tile: int, within: str = "float64") -> np.ndarray:
    """Weights (filters, channels, 3, 3) as (m + 2, m + 2, channels, filters) in their dtype.

    Computed in the dtype ``within``; float32 gives what a function that takes the kernel computes.
    Values that do not fit into the dtype become infinite or NaN.

    >>> transformed_weights(np.ones((4, 2, 3, 3), "float32"), 2).shape
    (4, 4, 2, 4)
    """
    by_tap = np.array(matrices(tile).weights)
    both = np.kron(by_tap, by_tap).astype(within)  # (places, taps) of two axes at once
    filters, channels = weights.shape[:2]
    taps = weights.transpose(2, 3, 1, 0).reshape(WINDOW * WINDOW, channels * filters)
    side = tile + WINDOW - 1
    with np.errstate(all="ignore"):
        products = (both @ taps.astype(within)).astype(weights.dtype)
    result: np.ndarray = products.reshape(side, side, channels, filters)
    return result


def in_panels(weights: np.ndarray, panel: int) -> np.ndarray:
    """Transformed weights as (m + 2, m + 2, filters / panel, channels, panel).

    >>> in_panels(np.ones((4, 4, 2, 8)), 4).shape
    (4, 4, 2, 2, 4)
    """
    high, wide, channels, filters = weights.shape
    split = weights.reshape(high, wide, channels, filters // panel, panel)
    return np.ascontiguousarray(split.swapaxes(2, 3))


def winograd_function(form: Form) -> PrimFunc:
    """The function of data, transformed weights and result.

    The data is (n, c / a, h, w, a), the result (n, filters / b, h', w', b). The weights are the
    result of ``transformed_weights`` and ``in_panels``, or, if the function takes the kernel,
    (filters / b, c / a, 3, 3, a, b). Those of n, h and w that are symbols of the form are variables
    that a call binds.
    """
    return _Function(form).prim_func()


class _Function:
    """Builds one function."""

    def __init__(self, form: Form) -> None:
        self.form = form
        blocks, a = form.data[1], form.data[4]
        top, left, bottom, right = form.padding
        extents = [
            Var(name, _INDEX) if axis in form.symbols else form.data[axis]
            for axis, name in ((BATCH, "n"), (HEIGHT, "h"), (WIDTH, "w"))
        ]
        batch, self.height, self.width = extents
        size = (results(self.height, top, bottom), results(self.width, left, right))
        self.across, self.down = tiles_of(size[1], form.tile), tiles_of(size[0], form.tile)
        """Tiles of a row, and rows of tiles of an image."""
        self.count = batch * self.down * self.across
        """Tiles of all images."""
        bands: tuple[Extent, ...] = (1, 1)
        if form.symbols:
            bands = (tiles_of(self.count, form.tiles), form.groups)
        elif not form.is_whole:
            bands = (batch, tiles_of(self.down, form.rows))
        filters, side, tiles = form.filters // form.block, form.side, form.rows * form.row
        lines = (*bands, form.rows, blocks, side, form.row * form.tile + WINDOW - 1, a)
        shapes: dict[str, tuple[Extent, ...]] = {
            "x": (batch, blocks, self.height, self.width, a),
            "kernel": form.kernel,
            PIXELS: lines,
            LINES: lines,
            WEIGHTS: (side * side, *form.weights[2:]) if form.takes_kernel else form.weights,
            DATA: (*bands, side, side, blocks, tiles, a),
            PRODUCTS: (*bands, side, side, form.filters // form.panel, tiles, form.panel),
            TILE_LINES: (*bands, filters, tiles, form.tile, side, form.block),
            TILES: (*bands, filters, tiles, form.tile, form.tile, form.block),
            RESULT: (batch, filters, *size, form.block),
        }
        self.buffers = {
            name: decl_buffer(_integers(shape), DTYPE, _label(name))
            for name, shape in shapes.items()
        }

    def prim_func(self) -> PrimFunc:
        """The function of all stages."""
        stages = [
            self.pixels(),
            self.lines(),
            self.data(),
            self.products(),
            self.tile_lines(),
            self.tiles(),
            self.result(),
        ]
        inside, given = [self.buffers[name] for name in STAGES[:-1]], WEIGHTS
        if self.form.takes_kernel:
            stages.insert(0, self.weights())
            inside, given = [self.buffers[WEIGHTS], *inside], "kernel"
        root = Block([], [], [], "root", seq(*stages), None, inside)
        arguments = [self.buffers[name] for name in ("x", given, RESULT)]
        params = [Var(f"var_{buffer.name}", "handle") for buffer in arguments]
        body = BlockRealize([], IntImm("bool", 1), root)
        attrs = Attrs({"tir.noalias": True})
        buffer_map = Map(dict(zip(params, arguments, strict=True)))
        return PrimFunc(params, body, None, buffer_map, attrs)

    def load(self, name: str, *indices: Extent) -> PrimExpr:
        """An element of a buffer."""
        return BufferLoad(self.buffers[name], _integers(indices))

    def store(self, name: str, value: PrimExpr, *indices: Extent) -> Stmt:
        """A store of an element of a buffer."""
        return BufferStore(self.buffers[name], value, _integers(indices))

    def stage(
        self,
        name: str,
        axes: Mapping[str, PrimExpr],
        body: Callable[..., Sequence[Stmt]],
        reduced: Sequence[str] = (),
        init: Callable[..., Stmt] | None = None,
    ) -> Stmt:
        """A nest of loops around the block of a stage."""
        iters = [
            IterVar(
                Range.from_min_extent(_integer(0), extent),
                Var(f"v_{axis}", _INDEX),
                IterType.CommReduce if axis in reduced else IterType.DataPar,
            )
            for axis, extent in axes.items()
        ]
        variables = [item.var for item in iters]
        block = Block(
            iters,
            [],
            [],
            _label(name),
            seq(*body(*variables)),
            None if init is None else init(*variables),
            annotations=Attrs(
                {STAGE: name, GROUPS: self.form.groups} if self.form.symbols else {STAGE: name}
            ),
        )
        known = {buffer.data: buffer for buffer in self.buffers.values()}
        reads, writes, _ = get_block_access_region(block, known)
        loops = [Var(axis, _INDEX) for axis in axes]
        nest: Stmt = BlockRealize(loops, IntImm("bool", 1), block.with_(reads=reads, writes=writes))
        for loop, extent in reversed(list(zip(loops, axes.values(), strict=True))):
            nest = For(loop, _integer(0), extent, ForKind.SERIAL, nest)
        return nest

    def axes(self, name: str, letters: str) -> dict[str, PrimExpr]:
        """Letter -> dimension of a buffer; a dimension under a dot is no axis of the block."""
        pairs = zip(letters, self.buffers[name].shape, strict=True)
        return {letter: extent for letter, extent in pairs if letter != "."}

    def pixels(self) -> Stmt:
        """Each line of a row of tiles, zeros where there is padding."""
        form, height, width = self.form, self.height, self.width
        top, left = form.padding[:2]

        def body(*at: Any) -> list[Stmt]:
            outer, inner, r, c, x, k = at
            band, (image, row, start) = (outer, inner), self.place(outer, inner, r)
            place = start + x - left
            stores = []
            for i in range(form.side):
                line = row * form.tile + (i - top)
                inside = op.all(line >= 0, line < height, place >= 0, place < width)
                number = self.load("x", image, c, line, place, k)
                value = op.if_then_else(inside, number, op.const(0, DTYPE))
                stores.append(self.store(PIXELS, value, *band, r, c, i, x, k))
            return stores

        return self.stage(PIXELS, self.axes(PIXELS, "nbrc.xk"), body)

    def place(self, outer: Any, inner: Any, row: Any) -> tuple[Any, Any, Any]:
        """The image, the row of tiles and the first column of a row of a band."""
        form = self.form
        if form.is_whole:
            return row // form.down, row % form.down, 0
        if not form.symbols:
            return outer, inner * form.rows + row, 0
        number = op.min((outer * form.groups + inner) * form.rows + row, self.count - 1)
        line, start = number // self.across, number % self.across * form.tile
        if BATCH in form.symbols or form.data[0] > 1:
            return line // self.down, line % self.down, start
        return 0, line, start

    def lines(self) -> Stmt:
        """The first transform of the data, down the lines."""

        def body(*at: Var) -> list[Stmt]:
            *before, x, k = at
            values = [self.load(PIXELS, *before, i, x, k) for i in range(self.form.side)]
            sums = _by_parity(matrices(self.form.tile).data, values)
            return [self.store(LINES, value, *before, i, x, k) for i, value in enumerate(sums)]

        return self.stage(LINES, self.axes(LINES, "nbrc.xk"), body)

    def data(self) -> Stmt:
        """The second transform of the data, along the lines."""
        form = self.form

        def body(*at: Var) -> list[Stmt]:
            *band, i, c, t, k = at
            row, start = t // form.row, t % form.row * form.tile
            values = [self.load(LINES, *band, row, c, i, start + j, k) for j in range(form.side)]
            sums = _by_parity(matrices(form.tile).data, values)
            return [self.store(DATA, value, *band, i, j, c, t, k) for j, value in enumerate(sums)]

        return self.stage(DATA, self.axes(DATA, "nbi.ctk"), body)

    def weights(self) -> Stmt:
        """The kernel's windows transformed, down the lines and along them."""
        form, a = self.form, self.form.data[4]
        by_tap = matrices(form.tile).weights

        def body(f: Var, c: Var, p: Var) -> list[Stmt]:
            filters = f * form.panel + p
            place, inside = (filters // form.block, c // a), (c % a, filters % form.block)
            lines = []
            for x in range(WINDOW):
                taps = [self.load("kernel", *place, y, x, *inside) for y in range(WINDOW)]
                lines.append(_of_taps(by_tap, taps))
            rows = [_of_taps(by_tap, line) for line in zip(*lines, strict=True)]
            places = [value for row in rows for value in row]
            return [self.store(WEIGHTS, value, i, f, c, p) for i, value in enumerate(places)]

        return self.stage(WEIGHTS, self.axes(WEIGHTS, ".fcp"), body)

    def products(self) -> Stmt:
        """Sums over the channels, for each place of a tile."""
        _, blocks, _, _, a = self.form.data
        side = self.form.side

        def init(*at: Var) -> Stmt:
            return self.store(PRODUCTS, op.const(0, DTYPE), *at[:-2])

        def body(*at: Var) -> list[Stmt]:
            *band, i, j, f, t, p, c, k = at
            number = self.load(DATA, *band, i, j, c, t, k)
            place = (i * side + j,) if self.form.takes_kernel else (i, j)
            weight = self.load(WEIGHTS, *place, f, c * a + k, p)
            return [self.store(PRODUCTS, self.load(PRODUCTS, *at[:-2]) + number * weight, *at[:-2])]

        axes = {**self.axes(PRODUCTS, "nbijftp"), "c": _integer(blocks), "k": _integer(a)}
        return self.stage(PRODUCTS, axes, body, "ck", init)

    def tile_lines(self) -> Stmt:
        """The first transform of the products, down the lines."""
        form = self.form

        def body(*at: Var) -> list[Stmt]:
            *band, f, t, j, k = at
            filters = f * form.block + k
            panel, place = filters // form.panel, filters % form.panel
            values = [self.load(PRODUCTS, *band, i, j, panel, t, place) for i in range(form.side)]
            sums = _by_pairs(matrices(form.tile).results, values)
            return [self.store(TILE_LINES, s, *band, f, t, i, j, k) for i, s in enumerate(sums)]

        return self.stage(TILE_LINES, self.axes(TILE_LINES, "nbft.jk"), body)

    def tiles(self) -> Stmt:
        """The second transform of the products, along the lines."""

        def body(*at: Var) -> list[Stmt]:
            *before, k = at
            values = [self.load(TILE_LINES, *before, j, k) for j in range(self.form.side)]
            sums = _by_pairs(matrices(self.form.tile).results, values)
            return [self.store(TILES, value, *before, x, k) for x, value in enumerate(sums)]

        return self.stage(TILES, self.axes(TILES, "nbfti.k"), body)

    def result(self) -> Stmt:
        """The images made of the tiles, without elements beyond the edges."""
        form = self.form

        def body(n: Var, f: Var, y: Var, x: Var, k: Var) -> list[Stmt]:
            row, column = y // form.tile, x // form.tile
            number = (n * self.down + row) * self.across + column
            band: tuple[Extent, ...] = (n, row // form.rows)
            tile = row % form.rows * form.row + column
            if form.is_whole:
                band, tile = (0, 0), number
            if form.symbols:
                group, tile = number // form.rows, number % form.rows
                band = (group // form.groups, group % form.groups)
            value = self.load(TILES, *band, f, tile, y % form.tile, x % form.tile, k)
            return [self.store(RESULT, value, n, f, y, x, k)]

        return self.stage(RESULT, self.axes(RESULT, "nfyxk"), body)


def _label(name: str) -> str:
    return name if name in ("x", "kernel", WEIGHTS) else "winograd_" + name.replace(" ", "_")


def _integers(values: Sequence[int | PrimExpr]) -> list[PrimExpr]:
    return [_integer(value) for value in values]


def _integer(value: int | PrimExpr) -> PrimExpr:
    return IntImm(_INDEX, value) if isinstance(value, int) else value


# Sums with constant factors


def _by_parity(matrix: Matrix, values: Sequence[PrimExpr]) -> list[PrimExpr]:
    """The product of a matrix and values, as the sum of its even and its odd terms.

    Rows of opposite points have equal even parts and opposite odd parts. Both are shared
    expressions here, so that code generation computes them once.
    """
    products = []
    for row in matrix:
        terms = list(zip(row, values, strict=True))
        even, odd = terms[::2], terms[1::2]
        leading = [factor for factor, _ in odd if factor]
        if leading and leading[-1] < 0 and any(factor for factor, _ in even):
            products.append(_sum(even) - _sum([(-factor, value) for factor, value in odd]))
        else:
            products.append(_plus(_sum(even), _sum(odd)))
    return products


def _of_taps(matrix: Matrix, taps: Shape) -> list[PrimExpr]:
    """The product of a matrix and three taps; opposite points share the sum of the outer taps.

    >>> _of_taps(((1.0, 0.0, 0.0), (1.0, 1.0, 1.0), (1.0, -1.0, 1.0)), [2, 3, 4])
    [2, 9, 3]
    """
    products = []
    for row in matrix:
        outer, inner = _sum([(row[0], taps[0]), (row[2], taps[2])]), _sum([(abs(row[1]), taps[1])])
        products.append(outer - inner if row[1] < 0 else _plus(outer, inner))
    return products


def _by_pairs(matrix: Matrix, values: Shape) -> list[PrimExpr]:
    """The product of a matrix and values, after adding and subtracting those of opposite points.

    >>> _by_pairs(((1.0, 1.0, 1.0, 0.0), (0.0, 1.0, -1.0, 1.0)), [3, 5, 2, 4])
    [10, 7]
    """
    products = []
    for row in matrix:
        pairs = []
        for at in range(1, len(values) - 1, 2):
            both = (
                values[at] + values[at + 1]
                if row[at] == row[at + 1]
                else (values[at] - values[at + 1])
            )
            pairs.append((row[at], both))
        products.append(_plus(_sum(pairs), _sum([(row[0], values[0]), (row[-1], values[-1])])))
    return products


def _sum(terms: Sequence[tuple[float, Any]]) -> Any:
    """The sum of factor * value, an expression or a number; None if all factors are 0."""
    total = None
    for factor, value in terms:
        if factor:
            product = value if factor == 1 else value * op.const(factor, value.dtype)
            total = _plus(total, product)
    return total


def _plus(first: Any, second: Any) -> Any:
    """The sum of two values; None counts as nothing."""
    if first is None or second is None:
        return second if first is None else first
    return first + second
