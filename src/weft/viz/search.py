"""The page of a search: the time of each trial of ``weft.tune``, what won, and by which answers.

It is drawn from the file of trials, as plain HTML with one SVG; it has no script.
"""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

from weft.driver.tuning.journal import Entry, entries_of
from weft.support.errors import IRValueError
from weft.viz.svg import COLOURS, WIDTH, Drawing, svg_of, text_at

HEADINGS: Final = (
    "kernel", "calls", "trials", "failed", "default us", "fastest us", "gain", "won by",
)  # fmt: skip
_SPAN: Final = 4.0
"""Trials that take more than so many times the default's time, or less than that part of it, are
drawn at the edge."""
_TOP, _HEIGHT, _LEFT = 20.0, 260.0, 44.0
_PAGE: Final = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{title}</title>
<style>
body {{ font-family: sans-serif; margin: 2em; color-scheme: light dark; }}
svg {{ max-width: 100%; height: auto; }}
table {{ border-collapse: collapse; margin-top: 1em; }}
th, td {{ padding: 0.2em 0.8em; text-align: right; }}
th:first-child, td:first-child, th:last-child, td:last-child {{ text-align: left; }}
</style>
</head>
<body>
<h1>{title}</h1>
<p>{summary}</p>
{drawing}
<table>
<thead><tr>{headings}</tr></thead>
<tbody>
{rows}
</tbody>
</table>
</body>
</html>
"""


class Trial(NamedTuple):
    """A trial: its number in the search, its answers, its microseconds (None: it failed)."""

    number: int
    taken: Mapping[str, str]
    microseconds: float | None


@dataclass
class KernelSearch:
    """The trials of one kernel, oldest first."""

    name: str
    calls: int
    trials: list[Trial] = field(default_factory=list)
    winner: Mapping[str, str] | None = None
    """The answers that are in the model; None: those of the default schedule are."""

    @property
    def default(self) -> float | None:
        """Microseconds of the default schedule, the shortest that were measured."""
        times = [trial.microseconds for trial in self.trials if not trial.taken]
        return min([time for time in times if time is not None], default=None)

    @property
    def fastest(self) -> float | None:
        """Microseconds of the fastest trial."""
        times = [trial.microseconds for trial in self.trials]
        return min([time for time in times if time is not None], default=None)

    def row(self) -> list[str]:
        """The kernel as a row of a table with ``HEADINGS``."""
        default, fastest = self.default, self.fastest
        gain = default / fastest if default and fastest else None
        failed = len([trial for trial in self.trials if trial.microseconds is None])
        numbers = ["-" if number is None else f"{number:.1f}" for number in (default, fastest)]
        ratio = "-" if gain is None else f"{gain:.3f}"
        won = _said(self.winner) if self.winner else "the default"
        counts = [str(count) for count in (self.calls, len(self.trials), failed)]
        return [self.name, *counts, *numbers, ratio, won]


def _said(taken: Mapping[str, str]) -> str:
    return ", ".join([f"{name}: {answer}" for name, answer in taken.items()])


def searches_of(path: Path) -> list[KernelSearch]:
    """The kernels in a file of trials, what takes most time first.

    A file may hold searches for several processors, numbers of threads and versions of weft; the
    trials of the last one count. Raises IRValueError if there are none.
    """
    try:
        entries = list(entries_of(path))
    except OSError as error:
        raise IRValueError(f"{path}: cannot be read: {error.strerror}") from error
    if not entries:
        raise IRValueError(
            f"{path}: expected trials that `weft tune --database {path}` wrote, found none"
        )
    last = entries[-1][0]
    searches: dict[str, KernelSearch] = {}
    for number, entry in enumerate([entry for place, entry in entries if place == last]):
        _add(searches, number, entry)
    return sorted(searches.values(), key=lambda item: -(item.default or 0.0) * item.calls)


def _add(searches: dict[str, KernelSearch], number: int, entry: Entry) -> None:
    name = entry.name or entry.kernel[:8]
    search = searches.setdefault(entry.kernel, KernelSearch(name, entry.calls))
    search.trials.append(Trial(number, entry.taken, entry.microseconds))
    if entry.is_winner:
        search.winner = entry.taken


def gains(searches: Sequence[KernelSearch]) -> list[tuple[int, float]]:
    """(trial, how many times as fast all kernels are so far): the fastest form of each counts."""
    trials = sorted(
        [(trial, at) for at, search in enumerate(searches) for trial in search.trials],
        key=lambda item: item[0].number,
    )
    defaults = [(search.default or 0.0) * search.calls for search in searches]
    best, line = list(defaults), []
    for trial, at in trials:
        time = trial.microseconds
        if time is not None:
            best[at] = min(best[at], time * searches[at].calls)
        line.append((trial.number, sum(defaults) / sum(best) if sum(best) else 1.0))
    return line


def draw_search(searches: Sequence[KernelSearch]) -> Drawing:
    """Each trial's time as a share of its kernel's default, over the number of the trial.

    The line is the time of all kernels together, by the fastest trials so far; crosses failed.
    """
    line = gains(searches)
    last = max([number for number, _ in line], default=0) or 1

    def place(number: int, share: float) -> tuple[float, float]:
        height = (math.log(min(max(share, 1 / _SPAN), _SPAN)) / math.log(_SPAN) + 1) / 2
        across = _LEFT + number / last * (WIDTH - _LEFT - 12)
        return across, _TOP + (1 - height) * _HEIGHT

    parts = []
    for share in (1 / _SPAN, 0.5, 1.0, 2.0, _SPAN):
        _, y = place(0, share)
        parts.append(
            f'<line x1="{_LEFT}" y1="{y:.1f}" x2="{WIDTH - 12}" y2="{y:.1f}" '
            'stroke="currentColor" stroke-opacity="0.25"/>'
        )
        parts.append(text_at(_LEFT - 6, y + 4, f"{share:g}", "end"))
    for at, search in enumerate(searches):
        parts += [
            _mark(search, trial, place, COLOURS[at % len(COLOURS)]) for trial in search.trials
        ]
    corners = [place(number, 1 / gain) for number, gain in line]
    path = " ".join([f"{x:.1f},{y:.1f}" for x, y in corners])
    parts.append(
        f'<polyline points="{path}" fill="none" stroke="currentColor" stroke-width="1.5"/>'
    )
    parts.append(text_at(4, 12, "time as a share of the default's"))
    parts.append(text_at(WIDTH - 12, _TOP + _HEIGHT + 16, f"{last + 1} trials", "end"))
    return svg_of(_TOP + _HEIGHT + 24, parts)


def _mark(
    search: KernelSearch,
    trial: Trial,
    place: Callable[[int, float], tuple[float, float]],
    colour: str,
) -> str:
    """A dot for a trial, or a cross if it failed, which says what was tried."""
    time, default = trial.microseconds, search.default
    took = "failed" if time is None else f"{time:.1f} us"
    said = html.escape(f"{search.name}: {took}; {_said(trial.taken) or 'the default'}")
    x, y = place(trial.number, _SPAN if time is None or not default else time / default)
    if time is None:
        shape = f'<path d="M{x - 3:.1f} {y - 3:.1f}l6 6m0 -6l-6 6" stroke="{colour}">'
        return f"{shape}<title>{said}</title></path>"
    radius = 4 if trial.taken == search.winner else 2
    return (
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius}" fill="{colour}" fill-opacity="0.75">'
        f"<title>{said}</title></circle>"
    )


def search_page(title: str, searches: Sequence[KernelSearch]) -> str:
    """The page as the text of an HTML file."""
    trials = sum([len(search.trials) for search in searches])
    won = len([search for search in searches if search.winner])
    gain = max([gain for _, gain in gains(searches)], default=1.0)
    rows = [[html.escape(cell) for cell in search.row()] for search in searches]
    return _PAGE.format(
        title=html.escape(title),
        summary=(
            f"{trials} trials of {len(searches)} kernels; {won} won beside their default. By the "
            f"fastest trials, all kernels together are {gain:.3f} times as fast."
        ),
        drawing=draw_search(searches).svg,
        headings="".join([f"<th>{heading}</th>" for heading in HEADINGS]),
        rows="\n".join(
            ["<tr>" + "".join([f"<td>{c}</td>" for c in row]) + "</tr>" for row in rows]
        ),
    )
