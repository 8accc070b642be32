"""Working memory as rectangles over steps, and the weights that a model holds."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from weft.driver.recording import PassRun, Recording
from weft.ir.expr import GlobalVar, IntImm, StringImm
from weft.ir.function import BaseFunc
from weft.ir.functor import collect
from weft.relax.expr import Call, Constant, Function, Tuple
from weft.relax.vm.host import HostFunction
from weft.relax.vm.host_parts import Step
from weft.runtime.memory.plan import largest_live, plan_offsets
from weft.runtime.ndarray import NDArray
from weft.runtime.weight_names import weight_label
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
        "arena_bytes": 0, "live_bound_bytes": 0, "steps": [], "buffers": [],
        "weights": list(weights.values()),
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


def weight_rows(record: Recording) -> dict[int, Row]:
    """The constants of the final graph by ``id``: as the model has them, or what was made of them.

    A constant that is no constant of the imported graph was computed while the model was compiled:
    ``packed`` for a kernel that takes it in the layout of its tiles, else ``transformed``. It has
    the name of the largest weight that it was computed of.
    """
    imported = {id(item.data) for item in constants_of(record.passes)}
    rows: dict[int, Row] = {}
    for argument in _arguments(record):
        data, kernel = argument.data, argument.kernel
        if id(data) in rows:
            continue
        is_given = id(data) in imported
        is_packed = kernel is not None and re.search(r"_prepacked", kernel)
        kind = "as given" if is_given else "packed" if is_packed else "transformed"
        rows[id(data)] = {
            "name": weight_label(data, len(rows)),
            "bytes": size_of(data),
            "kind": kind,
            "kernel": kernel,
        }
    return rows


def kernel_weights(record: Recording) -> dict[str, list[Row]]:
    """The weights of each kernel: the parameter that takes it, its name, what became of it.

    A kernel that is called for several layers has a row for each of their weights.
    """
    known, kernels = weight_rows(record), record.kernels()
    rows: dict[str, list[Row]] = {name: [] for name in kernels}
    for argument in _arguments(record):
        func = kernels.get(argument.kernel or "")
        if func is None or argument.at is None:
            continue
        param = func.params[argument.at]
        weight = known[id(argument.data)]
        row: Row = {
            "parameter": func.buffer_map[param].name if param in func.buffer_map else param.name,
            "weight": weight["name"],
            "kind": weight["kind"],
        }
        if row not in rows[str(argument.kernel)]:
            rows[str(argument.kernel)].append(row)
    return rows


def weight_bytes(memory: Row) -> int:
    """The bytes of all weights of the part ``memory``."""
    weights: Any = memory["weights"]
    return sum(row["bytes"] for row in weights)


def constants_of(runs: Sequence[PassRun]) -> list[Constant]:
    """The constants of the imported graph."""
    functions: list[BaseFunc] = [func for _, func in runs[0].before] if runs else []
    return [
        constant
        for func in functions
        if isinstance(func, Function)
        for constant in collect(func.body, Constant)
    ]


class _Argument(NamedTuple):
    """A constant that a call takes: the kernel that is called, and the place among its inputs."""

    data: NDArray
    kernel: str | None
    at: int | None


def _arguments(record: Recording) -> Iterator[_Argument]:
    """The constants that the calls of the final graph take."""
    functions = [] if record.module is None else record.module.functions.values()
    for func in functions:
        if isinstance(func, Function):
            for call in collect(func.body, Call):
                yield from _constants_taken(call)


def _constants_taken(call: Call) -> Iterator[_Argument]:
    kernel = None
    for argument in call.args:
        if isinstance(argument, GlobalVar):
            kernel = argument.name_hint
        elif isinstance(argument, Constant):
            yield _Argument(argument.data, kernel, None)
        elif isinstance(argument, Tuple):
            for at, item in enumerate(argument.fields):
                if isinstance(item, Constant):
                    yield _Argument(item.data, kernel, at)


def size_of(data: NDArray) -> int:
    """The bytes of an array."""
    return math.prod(int(extent) for extent in data.shape) * DataType(str(data.dtype)).bits // 8
