"""``weft profile MODEL``: how long each kernel takes natively, by the time that it wastes."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import Any, Final

from weft.cli import pictures
from weft.cli.tables import print_table
from weft.support.errors import UnsupportedError
from weft.viz.timing import profile_of

HEADINGS: Final = ("kernel", "calls", "us", "wasted us", "GFLOP/s", "of peak", "GB/s", "of copy",
                   "threads")  # fmt: skip


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of this subcommand."""
    pictures.add_arguments(parser)


def run(options: argparse.Namespace) -> int:
    """Print the table, and below it what the machine can do."""
    picture = pictures.picture(options)
    if picture.model is None or picture.call is None:
        raise UnsupportedError(f"{picture.title} is no model: rt.time_evaluator times functions")
    call = picture.call
    profile, reason = profile_of(picture.record, picture.model, call.args, call.kwargs)
    if profile is None:
        raise UnsupportedError(f"{picture.title} cannot be measured: {reason}")
    calls: Any = profile["calls"]
    rows = [cells_of(row) for row in joined(calls)]
    print_table(f"{picture.title}: {profile['threads']} threads", HEADINGS, rows)
    print(
        f"peak {profile['peak_gflops']} GFLOP/s, memory {profile['bandwidth_gbs']} GB/s; "
        f"a copy of as many bytes is what counts as 100 % of copy"
    )
    return 0


def joined(calls: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """One row for each kernel, the one that wastes most time first."""
    rows: dict[str, dict[str, Any]] = {}
    for call in calls:
        row = rows.setdefault(call["kernel"], {**call, "calls": 0, **dict.fromkeys(_SUMMED, 0.0)})
        row["calls"] += 1
        for key in _SUMMED:
            row[key] += call[key] or 0.0
    for row in rows.values():
        own = [call for call in calls if call["kernel"] == row["kernel"]]
        for key in ("share_of_peak", "share_of_bandwidth"):
            row[key] = sum((call[key] or 0.0) * call["us"] for call in own) / max(row["us"], 1e-9)
    return sorted(rows.values(), key=lambda row: -row["wasted_us"])


_SUMMED: Final = ("us", "wasted_us", "gflop", "bytes")


def cells_of(row: Mapping[str, Any]) -> list[str]:
    """The cells of a row."""
    seconds = max(row["us"], 1e-9) / 1e6
    return [
        row["kernel"],
        str(row["calls"]),
        f"{row['us']:,.1f}",
        f"{row['wasted_us']:,.1f}",
        f"{row['gflop'] / seconds:,.1f}",
        f"{100 * row['share_of_peak']:.0f} %",
        f"{row['bytes'] / 1e9 / seconds:,.1f}",
        f"{100 * row['share_of_bandwidth']:.0f} %",
        str(row["threads"]),
    ]
