"""How kernels got their schedules: rules that fitted, rules that did not, the trace step by step."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from weft.driver.recording import Attempt
from weft.ir.module import IRModule
from weft.support.errors import TVMError
from weft.tir.function import PrimFunc
from weft.tir.schedule.schedule import Schedule
from weft.tir.schedule.trace import Trace
from weft.viz.texts import Texts

Row = dict[str, object]


def schedule_row(attempt: Attempt | None, texts: Texts) -> Row:
    """The schedule of a kernel; without a rule where nothing scheduled it."""
    if attempt is None:
        return {"rule": None, "refused": [], "start": None, "steps": []}
    rule = attempt.rule
    if rule is not None and attempt.fitted:
        rule += ": " + ", ".join(dict.fromkeys(attempt.fitted))
    refused = dict.fromkeys(attempt.refused)
    return {
        "rule": rule,
        "refused": [{"rule": name, "reason": _brief(reason)} for name, reason in refused],
        "start": texts.of(attempt.func, attempt.kernel),
        "steps": _steps(attempt, texts),
    }


def _brief(reason: str) -> str:
    """The first lines of an error's message, without the program that it shows."""
    lines = [line for line in reason.strip().split("\n") if line.strip()]
    return " ".join(lines[:2])[:300]


def _steps(attempt: Attempt, texts: Texts) -> list[Row]:
    """The trace of a schedule, replayed; each step with the program after it, if that changed.

    Where a schedule began anew, after steps that no text can name, the replay may stop: the steps
    that remain have no program.
    """
    schedule = attempt.schedule
    if schedule is None or schedule.trace is None:
        return []
    trace = schedule.trace.simplified(remove_postproc=False)
    lines = trace.as_python()
    rows: list[Row] = [{"text": line, "script": None} for line in lines]
    for row, func in zip(rows, _replayed(attempt.func, trace), strict=False):
        row["script"] = None if func is None else texts.of(func, attempt.kernel)
    return rows


def _replayed(func: PrimFunc, trace: Trace) -> Iterator[PrimFunc | None]:
    """The function after each step; None where a step changed nothing."""
    schedule = Schedule(func, debug_mask="none")
    before, known = func, dict[object, object]()
    for instruction in trace.insts:
        try:
            trace.play(instruction, schedule, known)
        except TVMError:
            return
        now = _only(schedule.mod)
        yield None if now is before else now
        before = now


def _only(module: IRModule) -> PrimFunc:
    (func,) = [item for item in module.functions.values() if isinstance(item, PrimFunc)]
    return func


def origin_of(kernel: str) -> str:
    """The name that a kernel had when it was scheduled.

    >>> origin_of("dense1_prepacked"), origin_of("dense1_weight_prepack")
    ('dense1', 'dense1')
    """
    return re.sub(r"_(?:prepacked|weight_prepack)(?:_?\d+)?$", "", kernel)


def attempt_of(kernel: str, attempts: Sequence[Attempt]) -> Attempt | None:
    """How the kernel of a name got its schedule; None if it was not scheduled by a rule."""
    by_name = {attempt.kernel: attempt for attempt in attempts}
    return by_name.get(kernel) or by_name.get(origin_of(kernel))
