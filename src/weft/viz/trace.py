"""A run and a compilation as a trace for ``chrome://tracing`` or Perfetto (trace event format)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from weft.support.errors import UnsupportedError


def trace_events(data: Mapping[str, Any]) -> list[dict[str, object]]:
    """The calls of kernels in their threads, and the passes one after the other.

    Args:
        data: the data of a page.
    """
    profile = data["profile"]
    if profile is None:
        raise UnsupportedError("weft viz --trace: no run was measured; the report says why")
    events = [
        _event(row["kernel"], "kernel", 1, row["thread"], row["begin_us"], row["end_us"])
        for row in profile["activity"] or ()
    ]
    return [*_names(), *events, *_passes(data["passes"])]


def _passes(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, object]]:
    """Passes as they lie in each other: one begins where the one before it ended."""
    events: list[dict[str, object]] = []
    ends: list[float] = [0.0]
    for row in rows:
        depth = min(row["depth"], len(ends) - 1)
        del ends[depth + 1 :]
        begin = ends[depth]
        end = begin + row["ms"] * 1e3
        events.append(_event(row["name"], "pass", 2, 0, begin, end))
        ends[depth] = end
        ends.append(begin)
    return events


def _names() -> list[dict[str, object]]:
    return [
        {"name": "process_name", "ph": "M", "pid": pid, "args": {"name": name}}
        for pid, name in ((1, "a call of the model"), (2, "its compilation"))
    ]


def _event(
    name: str, category: str, process: int, thread: int, begin: float, end: float
) -> dict[str, object]:
    return {
        "name": name,
        "cat": category,
        "ph": "X",
        "pid": process,
        "tid": thread,
        "ts": round(begin, 3),
        "dur": round(end - begin, 3),
    }


def write_trace(path: Path, data: Mapping[str, Any]) -> None:
    """Write the trace of a page's data to a file of JSON."""
    path.write_text(json.dumps({"traceEvents": trace_events(data)}), encoding="utf-8")
