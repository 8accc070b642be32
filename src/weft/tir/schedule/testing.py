"""Comparisons for tests of schedules, under TVM's names."""

from __future__ import annotations

import functools
import json
from collections.abc import Sequence
from types import SimpleNamespace

from weft.ir.expr import PrimExpr
from weft.ir.module import IRModule
from weft.ir.structural import assert_structural_equal
from weft.support.errors import IRValueError
from weft.tir import op
from weft.tir.expr import Cast
from weft.tir.function import PrimFunc
from weft.tir.index_map import IndexMap
from weft.tir.schedule.schedule import Schedule
from weft.tir.schedule.trace import Trace

NO_NAME = ""


def assert_structural_equal_ignore_global_symbol(
    mod1: PrimFunc | IRModule, mod2: PrimFunc | IRModule, map_free_vars: bool = False
) -> None:
    """``assert_structural_equal`` of two functions (or modules) whose global symbols may differ."""
    assert_structural_equal(_unnamed(mod1), _unnamed(mod2), map_free_vars)


def _unnamed(given: PrimFunc | IRModule) -> PrimFunc | IRModule:
    """A function, or a module of functions, all under one and the same global symbol."""
    if isinstance(given, IRModule):
        functions = {
            var: func.with_attr("global_symbol", NO_NAME) if isinstance(func, PrimFunc) else func
            for var, func in given.functions.items()
        }
        return IRModule(functions, attrs=given.attrs, global_infos=given.global_infos)
    return given.with_attr("global_symbol", NO_NAME)


def verify_trace_roundtrip(
    sch: Schedule,
    mod: PrimFunc | IRModule,
    *,
    debug_mask: str | int = "all",
    text_format: str | Sequence[str] = ("python", "json"),
) -> Schedule:
    """Replay the trace of ``sch`` on ``mod``, through its text forms; the module must be the same.

    Returns the schedule of the last replay. Raises IRValueError with the first difference.
    """
    formats = [text_format] if isinstance(text_format, str) else list(text_format)
    trace = sch.trace
    assert trace is not None, "the schedule keeps no trace"
    replayed = sch
    for form in formats:
        replayed = Schedule(mod, debug_mask=debug_mask)
        if form == "json":
            stored = json.loads(json.dumps(trace.as_json()))
            Trace.apply_json_to_schedule(stored, replayed)
            _check_read(stored)
        elif form == "python":
            _run_python(trace, replayed)
        else:
            raise IRValueError(f"text_format: expected 'python' or 'json', got {form!r}")
        assert_structural_equal_ignore_global_symbol(replayed.mod, sch.mod)
    return replayed


def _check_read(stored: object) -> None:
    """Raise IRValueError unless ``Trace.from_json`` reads the trace that was stored."""
    again = json.loads(json.dumps(Trace.from_json(stored).as_json()))
    if again != stored:
        raise IRValueError(f"Trace.from_json: expected {stored}, got {again}")


def _run_python(trace: Trace, sch: Schedule) -> None:
    own = SimpleNamespace(tir=SimpleNamespace(IndexMap=IndexMap))  # a map with its inverse
    names: dict[str, object] = {"sch": sch, "T": _Constants(), "tvm": own}
    exec("\n".join(trace.as_python()), names)  # noqa: S102 - text that weft itself has written


class _Constants:
    """What expressions in traces need of ``T``: ``T.int8(3)``, ``T.Cast(...)``, functions."""

    def __getattr__(self, name: str) -> object:
        if name == "Cast":
            return Cast
        function = getattr(op, name, None)
        return function if callable(function) else functools.partial(_constant, name)


def _constant(dtype: str, value: float) -> PrimExpr:
    return op.const(value, dtype)
