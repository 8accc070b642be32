"""Working memory as rectangles over steps, and the weights that a model holds."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from weft.driver.recording import PassRun, Recording
from weft.ir.expr import GlobalVar, IntImm, StringImm
from weft.ir.function import BaseFunc
from weft.ir.functor import collect
from weft.relax.expr import Call, Constant, Function, Tuple
from weft.relax.vm.host import HostFunction
from weft.relax.vm.host_parts import Step
from weft.runtime.memory.plan import largest_live, plan_offsets
from weft.runtime.ndarray import NDArray
from weft.support.dtype import DataType
from weft.tir.buffer import Buffer
from weft.tir.expr import Call as TirCall
from weft.tir.expr import Var
from weft.tir.stmt import Evaluate
from weft.viz.timing import bytes_of

Row = dict[str, object]


def memory_of(record: Recording, entry: str, symbols: Mapping[Var, int]) -> Row:
    """The part ``memory`` of the page; ``symbols`` are sizes for which symbolic memory is shown."""
    host = None if record.lowered is None else record.lowered.hosts.get(entry)
    weights = weight_rows(record)
    empty: Row = {
        "arena_bytes": 0, "live_bound_bytes": 0, "steps": [], "buffers": [], "weights": weights,
    }  # fmt: skip
    return empty if host is None else {**empty, **arena_of(host, symbols)}


def arena_of(host: HostFunction, symbols: Mapping[Var, int]) -> Row:
    """Steps and buffers of a host function; no buffers where a size is not known."""
    lives = host.plan.lives
    steps = [step_name(step) for step in host.steps]
    sizes = [bytes_of(life.buffer, symbols) for life in lives]
    known = [size for size in sizes if size is not None]
    if len(known) != len(lives):
        return {"steps": steps}
    spans = [(life.first, life.last) for life in lives]
    offsets = [place.value for _, place in host.plan.places if isinstance(place, IntImm)]
    total = host.plan.size or 0
    if len(offsets) != len(lives):  # symbolic: planned as a call with these sizes plans it
        planned, total = plan_offsets(known, spans)
        offsets = list(planned)
    return {
        "arena_bytes": total,
        "live_bound_bytes": largest_live(known, spans),
        "steps": steps,
        "buffers": [
            {
                "name": life.buffer.name,
                "bytes": size,
                "offset": offset,
                "first": life.first,
                "last": life.last,
                "producer": steps[life.first],
                "users": _users(host.steps, life.buffer, life.first),
            }
            for life, size, offset in zip(lives, known, offsets, strict=True)
        ],
    }


def _users(steps: Sequence[Step], buffer: Buffer, first: int) -> list[str]:
    users = [
        step_name(step) for step in steps[first + 1 :] if any(used is buffer for used in step.uses)
    ]
    return list(dict.fromkeys(users))


def step_name(step: Step) -> str:
    """The kernel that a step calls, or what else it does."""
    stmt = step.stmt
    if stmt is None:
        return step.mark or "if"
    if isinstance(stmt, Evaluate) and isinstance(stmt.value, TirCall):
        callee = stmt.value.op
        if isinstance(callee, GlobalVar):
            return callee.name_hint
        first = stmt.value.args[0] if stmt.value.args else None
        return first.value if isinstance(first, StringImm) else "call"
    return "copy"


def weight_rows(record: Recording) -> list[Row]:
    """The constants of the final graph: as the model has them, or what was made of them.

    A constant that is no constant of the imported graph was computed while the model was compiled:
    ``packed`` for a kernel that takes it in the layout of its tiles, else ``transformed``.
    """
    if record.module is None:
        return []
    imported = {id(item.data) for item in constants_of(record.passes)}
    rows: dict[int, Row] = {}
    for func in record.module.functions.values():
        if not isinstance(func, Function):
            continue
        for call in collect(func.body, Call):
            for constant, kernel in _arguments(call):
                data = constant.data
                if id(data) in rows:
                    continue
                is_given = id(data) in imported
                is_packed = kernel is not None and re.search(r"_prepacked", kernel)
                kind = "as given" if is_given else "packed" if is_packed else "transformed"
                rows[id(data)] = {
                    "name": f"constant{len(rows)} {data.dtype}{list(data.shape)}",
                    "bytes": size_of(data),
                    "kind": kind,
                    "kernel": kernel,
                }
    return list(rows.values())


def weight_bytes(memory: Row) -> int:
    """The bytes of all weights of the part ``memory``."""
    weights: Any = memory["weights"]
    return sum(row["bytes"] for row in weights)


def packed_for(kernel: str, memory: Row) -> list[str]:
    """The weights that were copied into the layout of a kernel."""
    weights: Any = memory["weights"]
    return [r["name"] for r in weights if r["kernel"] == kernel and r["kind"] == "packed"]


def constants_of(runs: Sequence[PassRun]) -> list[Constant]:
    """The constants of the imported graph."""
    functions: list[BaseFunc] = [func for _, func in runs[0].before] if runs else []
    return [
        constant
        for func in functions
        if isinstance(func, Function)
        for constant in collect(func.body, Constant)
    ]


def _arguments(call: Call) -> list[tuple[Constant, str | None]]:
    """The constants that a call takes, each with the kernel that is called."""
    kernel = None
    pairs: list[tuple[Constant, str | None]] = []
    for argument in call.args:
        if isinstance(argument, GlobalVar):
            kernel = argument.name_hint
        for item in argument.fields if isinstance(argument, Tuple) else (argument,):
            if isinstance(item, Constant):
                pairs.append((item, kernel))
    return pairs


def size_of(data: NDArray) -> int:
    """The bytes of an array."""
    return math.prod(int(extent) for extent in data.shape) * DataType(str(data.dtype)).bits // 8
