"""Everything that a page shows of a compilation, as JSON data (docs/design/0022-pictures.md)."""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from weft.codegen.cache import cache_folder
from weft.driver.recording import Recording
from weft.runtime.model.compiled_model import CompiledModel
from weft.runtime.native.object_code import obstacle_of
from weft.tir.expr import Var
from weft.viz.fusion import fusion_rows
from weft.viz.graphs import graph_rows
from weft.viz.kernels import kernel_rows
from weft.viz.lowering import Lowering, lower_again
from weft.viz.memory import kernel_weights, memory_of, weight_bytes
from weft.viz.passes import States, lowering_rows
from weft.viz.passes import graph_rows as pass_rows
from weft.viz.report import report_rows
from weft.viz.schedules import attempts_of, schedule_row
from weft.viz.texts import Texts
from weft.viz.timing import call_seconds, profile_of, symbols_of

VERSION = 1
Row = dict[str, object]


@dataclass(frozen=True)
class Call:
    """Arguments of a call, for what is measured."""

    args: Sequence[object] = ()
    kwargs: Mapping[str, object] = field(default_factory=dict)


def page_data(
    record: Recording, title: str, model: CompiledModel | None = None, call: Call | None = None
) -> Row:
    """The data of a page.

    Args:
        record: what was recorded.
        title: the name of the model.
        model: what was compiled, if it is a model.
        call: arguments of a call; None: no times are measured.
    """
    texts = Texts()
    states = States(texts)
    kernels = record.kernels()
    lowering = lower_again(kernels, record.target, record.context)
    passes = [*pass_rows(record.passes, states), *_lowering_rows(lowering, states)]
    memory = memory_of(
        record, "main" if model is None else model.entry, _symbols(record, model, call)
    )
    profile, reason = _measured(record, model, call)
    rows, weights = kernel_rows(lowering, record.target, texts), kernel_weights(record)
    for row in rows:
        name = str(row["name"])
        row["weights"] = weights[name]
        row["schedule"] = schedule_row(attempts_of(name, record.attempts), texts)
    return {
        "version": VERSION,
        "title": title,
        "target": str(record.target),
        "created": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "summary": {
            "kernels": len(kernels),
            "passes": len(passes),
            "weight_bytes": weight_bytes(memory),
            "arena_bytes": memory["arena_bytes"],
            "compile_seconds": round(record.seconds, 4),
            "call_us": _microseconds(model, call),
        },
        "texts": texts.by_digest,
        "states": states.rows,
        "passes": passes,
        "graphs": graph_rows(record.passes, kernels),
        "fusion": fusion_rows(record.passes),
        "kernels": rows,
        "memory": memory,
        "profile": profile,
        "compile": compile_of(record),
        "report": [*report_rows(record, memory, rows, profile), *_no_times(reason)],
    }


def _measured(
    record: Recording, model: CompiledModel | None, call: Call | None
) -> tuple[Row | None, str]:
    """The part ``profile``, or the reason why there is none."""
    if model is None:
        return None, "functions are called from Python, with arguments that only the caller has"
    if call is None:
        return None, "no arguments of a call were given; model.viz(x) measures with x"
    obstacle = "" if model.code is None else obstacle_of(model.code)
    if obstacle:
        return None, obstacle
    return profile_of(record, model, call.args, call.kwargs)


def _no_times(reason: str) -> list[Row]:
    return [{"topic": "time", "text": f"no times: {reason}", "kernel": None}] if reason else []


def _microseconds(model: CompiledModel | None, call: Call | None) -> float | None:
    if model is None or call is None or (model.code is not None and obstacle_of(model.code)):
        return None
    return round(call_seconds(model, call.args, call.kwargs) * 1e6, 2)


def _lowering_rows(lowering: Lowering, states: States) -> list[Row]:
    if not lowering.scheduled:
        return []
    return lowering_rows(lowering.passes, lowering.seconds, lowering.states, states)


def _symbols(
    record: Recording, model: CompiledModel | None, call: Call | None
) -> Mapping[Var, int]:
    if model is None or call is None or record.lowered is None:
        return {}
    host = record.lowered.hosts.get(model.entry)
    return {} if host is None else symbols_of(host, model, call.args, call.kwargs)


def compile_of(record: Recording) -> Row:
    """The phases of the compilation, and where the code of each kernel came from."""
    known = sum(record.phases.values())
    phases = [*record.phases.items(), ("other", max(record.seconds - known, 0.0))]
    return {
        "phases": [{"name": name, "seconds": round(took, 5)} for name, took in phases],
        "cache": [
            {
                "kernel": ", ".join(_defined(code.names)),
                "hit": code.is_cached,
                "reason": _why(code.is_cached, code.has_key),
            }
            for code in record.codes
        ],
    }


def _defined(names: Sequence[str]) -> list[str]:
    """The functions whose code a part has: a host function stands with those that it calls."""
    hosts = [name for name in names if re.search(r"__host_*$", name)]
    return hosts or list(names)


def _why(is_cached: bool, has_key: bool) -> str:
    if is_cached:
        return "the same function was compiled before for this target, by this weft"
    if cache_folder() is None:
        return "the caches are off (WEFT_NO_CACHE), or their folder cannot be used"
    if not has_key:
        return "nothing tells what the backend's sources are, so that nothing is kept"
    return "no function of this content was compiled for this target, by this weft, and kept"
