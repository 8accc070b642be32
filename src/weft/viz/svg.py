"""Small drawings for notebooks: working memory, the roofline, a loop nest.

They are plain SVG: text has the colour of the text around, so that they are read in dark themes.
"""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from weft.support.errors import UnsupportedError

WIDTH: Final = 640
COLOURS: Final = ("#4c8eda", "#d9822b", "#5aa469", "#b05fa8", "#c6524e", "#3f9fa8", "#8c7ae6")
KINDS: Final = {
    "parallel": COLOURS[1], "vectorized": COLOURS[2], "unrolled": COLOURS[3], "serial": COLOURS[0],
}  # fmt: skip


@dataclass(frozen=True)
class Drawing:
    """A picture that a notebook shows; ``svg`` is its text.

    >>> Drawing("<svg/>")._repr_svg_()
    '<svg/>'
    """

    svg: str

    def _repr_svg_(self) -> str:
        return self.svg

    def __repr__(self) -> str:
        return f"Drawing({len(self.svg)} bytes of SVG)"


def svg_of(height: float, parts: Iterable[str]) -> Drawing:
    """A drawing ``WIDTH`` wide, of parts that are text of SVG."""
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" '
        f'width="{WIDTH}" font-family="sans-serif" font-size="11" fill="currentColor">'
    )
    return Drawing("".join([head, *parts, "</svg>"]))


def _rectangle(x: float, y: float, width: float, height: float, colour: str, title: str) -> str:
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(width, 1):.1f}" height="{max(height, 1):.1f}" '
        f'fill="{colour}" fill-opacity="0.75" stroke="currentColor" stroke-opacity="0.4">'
        f"<title>{html.escape(title)}</title></rect>"
    )


def text_at(x: float, y: float, text: str, anchor: str = "start") -> str:
    """A line of text; ``anchor`` is the part of it that lies at (x, y)."""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{html.escape(text)}</text>'


def draw_arena(memory: Mapping[str, Any]) -> Drawing:
    """Working memory over the steps of a call; a rectangle for each tensor.

    Args:
        memory: the part ``memory`` of a page's data.
    """
    buffers, steps = memory["buffers"], max(len(memory["steps"]), 1)
    total, height = max(memory["arena_bytes"], 1), 240.0
    parts = [text_at(4, 12, f"{total:,} bytes; at least {memory['live_bound_bytes']:,}")]
    for at, row in enumerate(buffers):
        span = row["last"] - row["first"] + 1
        parts.append(
            _rectangle(
                row["first"] / steps * WIDTH,
                20 + height * (1 - (row["offset"] + row["bytes"]) / total),
                span / steps * WIDTH,
                height * row["bytes"] / total,
                COLOURS[at % len(COLOURS)],
                f"{row['name']}: {row['bytes']:,} bytes, by {row['producer']}, for "
                f"{', '.join(row['users'])}",
            )
        )
    parts.append(text_at(4, height + 34, f"{steps} steps"))
    return svg_of(height + 40, parts)


def draw_roofline(profile: Mapping[str, Any] | None) -> Drawing:
    """Speed over operations for each byte, both in powers, below the roof of the machine.

    Args:
        profile: the part ``profile`` of a page's data.

    Raises UnsupportedError where nothing was measured.
    """
    if profile is None:
        raise UnsupportedError("roofline: no times were measured; give viz() inputs of a call")
    points = [
        (call["gflop"] * 1e9 / call["bytes"], call["gflop"] / call["us"] * 1e6, call)
        for call in profile["calls"]
        if call["gflop"] and call["bytes"] and call["us"]
    ]
    peak, bandwidth = profile["peak_gflops"], profile["bandwidth_gbs"]
    ridge = peak / bandwidth
    low, high = _decades([ridge, *[x for x, _, _ in points]])
    least, most = _decades([peak, *[y for _, y, _ in points]])

    def at(x: float, y: float) -> tuple[float, float]:
        across = (math.log10(x) - low) / (high - low)
        up = (math.log10(max(y, 10**least)) - least) / (most - least)
        return 40 + across * (WIDTH - 60), 20 + (1 - up) * 220

    corners = [at(10**low, bandwidth * 10**low), at(ridge, peak), at(10**high, peak)]
    path = " ".join([f"{x:.1f},{y:.1f}" for x, y in corners])
    parts = [
        f'<polyline points="{path}" fill="none" stroke="currentColor" stroke-width="1.5"/>',
        text_at(WIDTH - 20, corners[2][1] - 4, f"{peak} GFLOP/s", "end"),
        text_at(44, corners[0][1] - 6, f"{bandwidth} GB/s"),
        text_at(WIDTH / 2, 262, "operations for each byte", "middle"),
    ]
    for index, (x, y, call) in enumerate(points):
        across, down = at(x, y)
        title = html.escape(f"{call['kernel']}: {y:.1f} GFLOP/s, {call['us']} us")
        parts.append(
            f'<circle cx="{across:.1f}" cy="{down:.1f}" r="5" fill="'
            f'{COLOURS[index % len(COLOURS)]}"><title>{title}</title></circle>'
        )
    return svg_of(270, parts)


def _decades(values: Sequence[float]) -> tuple[int, int]:
    """The powers of ten around some numbers.

    >>> _decades([3.0, 250.0])
    (0, 3)
    """
    low = math.floor(math.log10(min(values)))
    return low, max(math.ceil(math.log10(max(values))), low + 1)


def draw_loops(kernel: Mapping[str, Any]) -> Drawing:
    """The loops of a kernel, one line each: how often, what kind, how many bytes and operations.

    Args:
        kernel: a row of ``kernels`` of a page's data.
    """
    line, parts = (
        20,
        [text_at(4, 14, f"{kernel['name']}: {kernel['schedule']['rule'] or 'as written'}")],
    )
    for at, loop in enumerate(kernel["loops"]):
        x, y = 8 + 18 * loop["depth"], 22 + line * at
        facts = [f"{loop['var']} {loop['extent']}", loop["kind"]]
        if loop["bytes"]:
            facts.append(f"{loop['bytes']:,} bytes")
        if loop["flops"]:
            facts.append(f"{loop['flops']:,.0f} operations")
        parts.append(_rectangle(x, y + 3, 10, line - 8, KINDS[loop["kind"]], loop["kind"]))
        parts.append(text_at(x + 16, y + 13, ", ".join(facts)))
    return svg_of(28 + line * max(len(kernel["loops"]), 1), parts)
