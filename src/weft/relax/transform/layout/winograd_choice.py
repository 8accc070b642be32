"""Which convolutions of a module use Winograd's algorithm: their forms, and memory for weights."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple, TypeVar

from weft.ir.expr import Extent, PrimExpr
from weft.ir.functor import collect
from weft.relax.ir.shape_arith import constant_value
from weft.relax.op.nn.geometry import Geometry
from weft.relax.transform.layout.winograd_cost import (
    best_form,
    direct_cycles,
    form_faster_than,
    gain,
    growth,
    has_form,
)
from weft.target.machine import Machine
from weft.tir.expr import Var
from weft.tir.size_hints import likely_size
from weft.topi.nn.winograd_form import BATCH, HEIGHT, WIDTH, Form
from weft.topi.nn.winograd_matrices import TILES

_SHARE_OF_WEIGHTS: Final = 0.15
"""Weights may grow by this share of the size of all constants of the module."""
_SHARE_OF_ANY_SIZE: Final = 0.3
"""The same where extents are symbolic: no function transforms the kernel itself then."""
_FREE_GROWTH: Final = 6 << 20
"""Bytes by which weights may grow in any case."""
_ASSUMED: Final = (1, 224, 224)
"""What symbols of the batch, the height and the width are taken for where no size hint tells."""
_Key = TypeVar("_Key")


class Offer(NamedTuple):
    """A form of a convolution: the cycles that it saves, and how many bytes weights grow by."""

    form: Form
    saved: float
    growth: int

    def __str__(self) -> str:
        form = self.form
        part = f"{form.groups} x {form.rows} tiles" if form.symbols else f"{form.rows} rows"
        kernel = ", of the kernel" if form.takes_kernel else ""
        return f"tiles of {form.tile} in bands of {part}, panels of {form.panel}{kernel}"


class Offers(tuple[Offer, ...]):
    """The forms that a convolution may have beside the direct one."""

    __slots__ = ()

    def __str__(self) -> str:
        return "; ".join([str(offer) for offer in self]) or "direct"


def offers_of(kinds: Sequence[Form], machine: Machine) -> Offers:
    """The best form of each kind and tile that the cost model takes to be faster than the direct.

    The tile, band and panel of ``kinds`` themselves do not matter.
    """
    best = [best_form(kind, machine, (tile,)) for kind in kinds for tile in TILES]
    forms = [form for form in best if form is not None]
    return Offers([Offer(form, gain(form, machine), growth(form)) for form in forms])


def other_offers(kinds: Sequence[Form], machine: Machine) -> Iterator[Offers]:
    """What a search may try: the direct algorithm, and the best form of each kind and tile.

    A form that a search prefers counts as one that saves all cycles of the direct algorithm.
    """
    yield Offers()
    for kind in kinds:
        for tile in TILES:
            form = form_faster_than(math.inf, kind, machine, (tile,))
            if form is not None:
                yield Offers([Offer(form, direct_cycles(form, machine), growth(form))])


def growth_limit(size: int, offers: Iterable[Sequence[Offer]]) -> int:
    """By how many bytes weights may grow in a module whose constants have ``size`` bytes."""
    is_any_size = any(offer.form.symbols for forms in offers for offer in forms)
    share = _SHARE_OF_ANY_SIZE if is_any_size else _SHARE_OF_WEIGHTS
    return max(int(size * share), _FREE_GROWTH)


def affordable(offers: Mapping[_Key, Sequence[Offer]], limit: int) -> dict[_Key, Form]:
    """The convolutions that use Winograd's algorithm, and their forms, as far as memory allows.

    A greedy choice: each step takes what saves the most cycles per byte, be it one more convolution
    or larger tiles for one that is chosen already.
    """
    chosen: dict[_Key, Offer] = {}
    while steps := [*_steps(offers, chosen, limit)]:
        _, more, key, offer = max(steps, key=lambda step: step[0])
        limit -= more
        chosen[key] = offer
    return {key: offer.form for key, offer in chosen.items()}


def _steps(
    offers: Mapping[_Key, Sequence[Offer]], chosen: Mapping[_Key, Offer], limit: int
) -> Iterator[tuple[float, int, _Key, Offer]]:
    """(cycles saved per byte, bytes, convolution, offer) of each step that fits ``limit``."""
    for key, forms in offers.items():
        now, held = chosen[key][1:] if key in chosen else (0.0, 0)
        for offer in forms:
            saved, more = offer.saved - now, offer.growth - held
            if saved > 0 and more <= limit:
                yield saved / max(more, 1), more, key, offer


def form_of_sizes(
    sizes: Geometry, blocks: tuple[int, int], hints: Mapping[str, int]
) -> Form | None:
    """The form of a convolution over these blocks of channels and of filters, if it has one.

    Tile, band and panel of the form are placeholders (2, one row, one block) until
    ``winograd_cost`` chooses them.
    """
    depth = [constant_value(item) for item in (sizes.channels, sizes.filters)]
    numbers = [size for size in (*depth, *sizes.padding) if size is not None]
    if not has_form(sizes) or len(numbers) != 6 or min(numbers) < 0:
        return None
    channels, filters, top, left, bottom, right = numbers
    extents = (sizes.batch, *[window.extent for window in sizes.space])
    assumed = zip(extents, _ASSUMED, strict=True)
    batch, height, width = [_size(extent, size, hints) for extent, size in assumed]
    if min(batch, channels, filters, height, width) < 1:
        return None
    into, out = blocks
    data = (batch, channels // into, height, width, into)
    axes = zip((BATCH, HEIGHT, WIDTH), extents, strict=True)
    symbols = frozenset([axis for axis, extent in axes if constant_value(extent) is None])
    form = Form(2, 1, (top, left, bottom, right), data, filters, out, out, symbols=symbols)
    return form if min(form.size) >= 1 else None


def _size(extent: Extent, assumed: int, hints: Mapping[str, int]) -> int:
    """The number of an extent; if it is symbolic, what it is if all symbols are as the hints say.

    Symbols without a hint are ``assumed``.
    """
    size = constant_value(extent)
    if size is None and isinstance(extent, PrimExpr):
        names = {var.name for var in collect(extent, Var)}
        size = likely_size(extent, {**dict.fromkeys(names, assumed), **hints})
    return 0 if size is None else size
