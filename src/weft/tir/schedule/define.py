"""``@primitive``: how a function becomes a method of ``Schedule`` that traces know.

The decorated function is the method: it takes the schedule and random variables, finds the
references, checks that it is legal, edits the state and returns new random variables. The
decorator adds what all of them share: arguments are bound and checked by their annotations, block
names become blocks, the call is a transaction (a failure leaves the program as it was) and is
recorded in the trace. Calls of primitives inside a primitive are part of the outer one.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Concatenate, NoReturn, ParamSpec, TypeVar

from weft.support.annotations import spelled
from weft.support.errors import IRTypeError, IRValueError
from weft.support.recursion import deep_recursion
from weft.tir.schedule.instruction import (
    DECISION,
    Call,
    Codec,
    InstructionKind,
    several,
    short_text,
)
from weft.tir.schedule.random_variable import BlockRV, LoopRV
from weft.tir.schedule.session import Session
from weft.tir.schedule.tree import INLINE_MARK, ROOT_MARK

P = ParamSpec("P")
R = TypeVar("R")

Canonical = Callable[[Session, dict[str, Any]], None]
MOVES = ("ComputeAt", "ReverseComputeAt")
"""The instructions whose loop may be a place that ``sample_compute_location`` returned."""


def primitive(
    name: str,
    inputs: str = "",
    *,
    pure: bool = False,
    canonical: Canonical | None = None,
    attr_codec: Mapping[str, Codec] | None = None,
    texts: Mapping[str, Callable[[Any], str]] | None = None,
) -> Callable[[Callable[Concatenate[Session, P], R]], Callable[Concatenate[Session, P], R]]:
    """Declare a method of ``Schedule``.

    ``name`` is the instruction's in traces. ``inputs`` names the parameters that are random
    variables or expressions of them, in TVM's order; ``*name`` takes the rest (see
    ``InstructionKind``). ``canonical`` changes the bound arguments into the form that is recorded
    (a function becomes an IndexMap, a buffer's name its place) before the body runs.
    ``attr_codec`` gives attributes that are no plain values their JSON form and back,
    ``texts`` arguments their Python text.
    """

    def declare(function: Any) -> Any:
        signature = inspect.signature(function)
        names = tuple(inputs.split())
        taken = {item.lstrip("*") for item in names} | {DECISION}
        parameters = list(signature.parameters)[1:]
        kind = InstructionKind(
            name,
            function.__name__,
            names,
            tuple([item for item in parameters if item not in taken]),
            pure,
            signature,
            DECISION in parameters,
            attr_codec or {},
            texts or {},
        )
        InstructionKind.REGISTRY[name] = kind
        checks = _checks(signature)

        @functools.wraps(function)
        @deep_recursion  # once for all walks of the call
        def method(self: Session, *args: Any, **kwargs: Any) -> Any:
            bound = _bound(kind, self, args, kwargs)
            for key, check in checks:
                bound.arguments[key] = check(self, kind, key, bound.arguments[key])
            if canonical is not None:
                canonical(self, bound.arguments)
            call = Call(kind, bound.arguments)
            with self._calling(call) as outermost:
                result = function(*bound.args, **bound.kwargs)
            if outermost:
                self._record(call, result)
            return result

        return method

    return declare


def _bound(
    kind: InstructionKind, schedule: Session, args: tuple[object, ...], kwargs: dict[str, object]
) -> inspect.BoundArguments:
    try:
        bound = kind.signature.bind(schedule, *args, **kwargs)
    except TypeError as error:
        parameters = list(kind.signature.parameters.values())[1:]
        wanted = ", ".join([str(p.replace(annotation=p.empty)) for p in parameters])
        raise IRTypeError(
            f"sch.{kind.method}: {error}; it is called as {kind.method}({wanted})"
        ) from None
    bound.apply_defaults()
    return bound


# ---- arguments by the annotation of their parameter

Check = Callable[[Session, InstructionKind, str, object], object]


def _block(schedule: Session, kind: InstructionKind, key: str, value: object) -> object:
    if isinstance(value, str):
        return schedule.get_block(value)
    return value if isinstance(value, BlockRV) else _wrong(kind, key, "a BlockRV or a name", value)


def _loop(schedule: Session, kind: InstructionKind, key: str, value: object) -> object:
    if not isinstance(value, LoopRV):
        return _wrong(kind, key, "a LoopRV", value)
    if schedule._symbols.get(value) in (INLINE_MARK, ROOT_MARK) and kind.name not in MOVES:
        raise IRValueError(
            f"sch.{kind.method}: {key}: sample_compute_location chose no loop but "
            f'"{"inline" if schedule._symbols[value] is INLINE_MARK else "where it stands"}"; '
            "only compute_at and reverse_compute_at take that"
        )
    return value


def _place(schedule: Session, kind: InstructionKind, key: str, value: object) -> object:
    if isinstance(value, LoopRV):
        return value
    return _block(schedule, kind, key, value)


def _flag(schedule: Session, kind: InstructionKind, key: str, value: object) -> object:
    if isinstance(value, int) and value in (0, 1):  # a trace's JSON may have numbers
        return bool(value)
    return _wrong(kind, key, "a bool", value)


def _number(schedule: Session, kind: InstructionKind, key: str, value: object) -> object:
    number = getattr(value, "value", value)
    if isinstance(number, bool) or not isinstance(number, int):
        return _wrong(kind, key, "an int", value)
    return number


def _text(schedule: Session, kind: InstructionKind, key: str, value: object) -> object:
    return value if isinstance(value, str) else _wrong(kind, key, "a str", value)


def _loops(schedule: Session, kind: InstructionKind, key: str, value: object) -> object:
    return tuple([_loop(schedule, kind, key, item) for item in several(value)])


def _wrong(kind: InstructionKind, key: str, wanted: str, value: object) -> NoReturn:
    if isinstance(value, list) and value and isinstance(value[0], LoopRV) and "loop" in key:
        wanted += " (unpack the list: *loops)"
    raise IRTypeError(
        f"sch.{kind.method}: {key}: expected {wanted}, got {type(value).__name__} "
        f"{short_text(value)}"
    )


def _factors(schedule: Session, kind: InstructionKind, key: str, value: object) -> object:
    if isinstance(value, Sequence) and not isinstance(value, str):
        return value
    if isinstance(value, int):
        return _wrong(kind, key, f"a list such as [None, {value}], one for each new loop", value)
    return _wrong(kind, key, "a list such as [None, 4], one for each new loop", value)


_CHECKS: dict[str, Check] = {
    "BlockRV": _block, "BlockRV | str": _block, "LoopRV": _loop, "BlockRV | LoopRV": _place,
    "BlockRV | LoopRV | str": _place, "bool": _flag, "int": _number, "str": _text,
    "list[int | ExprRV | None]": _factors, "Sequence[int | ExprRV | None]": _factors,
}  # fmt: skip


def _checks(signature: inspect.Signature) -> list[tuple[str, Check]]:
    checks = []
    for parameter in signature.parameters.values():
        check = _CHECKS.get(spelled(parameter.annotation))
        if parameter.kind is inspect.Parameter.VAR_POSITIONAL and check is _loop:
            check = _loops
        if check is not None:
            checks.append((parameter.name, check))
    return checks
