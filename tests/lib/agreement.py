"""Whether every way to run a program gives the same result: the check behind the fuzzers.

A program runs in the reference interpreter as written and lowered, and as native code; it is
printed and parsed back. ``disagreement`` says what differs, ``shrunk`` makes a failing program
small, ``report`` is what a fuzzer prints.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tests.lib.generate import RandomProgram
from weft.backends.cpu.backend import BACKEND
from weft.driver.pipeline import lower_tir
from weft.ir.expr import IntImm, PrimExpr
from weft.ir.functor import Mutator, collect
from weft.ir.module import IRModule
from weft.ir.structural import structural_equal, structural_hash
from weft.runtime.native.native_library import NativeLibrary
from weft.runtime.ndarray import array
from weft.script.parser.entry import from_source
from weft.support.errors import RuntimeFault, TVMError
from weft.target.target import Target
from weft.tir.analysis.bounds import check_bounds
from weft.tir.expr import BinaryExpr, Call, Cast, Let, Select
from weft.tir.function import PrimFunc
from weft.tir.interp import run
from weft.tir.stmt import BufferStore, IfThenElse, SeqStmt

EXACT_TARGET = "llvm -fast-math-contract=0"


def disagreement(program: RandomProgram, *, native: bool = True, text: bool = True) -> str | None:
    """What differs between the ways to run (or print) the program; None if nothing does."""
    func = program.func
    if text:
        found = text_difference(func)
        if found:
            return found
    check_bounds(func)  # refuses what is proved to fault; these programs do not
    expected, fault = _outcome(lambda *args: run(func, *args), program)
    lowered = lower_tir()(IRModule({"main": func}))
    if text:
        found = text_difference(lowered)
        if found:
            return f"lowered: {found}"
    found = _difference(
        "lowered", expected, fault, *_outcome(lambda *args: run(lowered["main"], *args), program)
    )
    if found or not native:
        return found
    compiled = BACKEND.emit(lowered, Target(EXACT_TARGET))
    function = NativeLibrary(compiled.object_code).function(compiled.specs[0])
    return _difference("native", expected, fault, *_outcome(_on_arrays(function), program))


def text_difference(node: Any) -> str | None:
    """Whether the printed text parses to the same program, with the same hash."""
    again: Any = from_source(node.script(show_meta=True))
    if not structural_equal(node, again):
        return "the parsed text is another program"
    if structural_hash(node) != structural_hash(again):
        return "the parsed text has another hash"
    return None


def _on_arrays(function: Any) -> Callable[..., Any]:
    def call(*args: Any) -> Any:
        given = [array(a) if isinstance(a, np.ndarray) else a for a in args]
        result = function(*given)
        for mine, theirs in zip(args, given, strict=True):
            if isinstance(mine, np.ndarray):
                mine[...] = theirs.numpy()
        return result

    return call


def _outcome(call: Callable[..., Any], program: RandomProgram) -> tuple[list[Any], str | None]:
    """What the outputs are after a call (and what it returns), or the fault it ends with."""
    arguments = program.copy_arguments()
    try:
        result = call(*arguments)
    except RuntimeFault as error:
        return [], str(error)
    return [result, *[arguments[index] for index in program.outputs]], None


def _difference(
    who: str, expected: list[Any], fault: str | None, got: list[Any], its_fault: str | None
) -> str | None:
    if fault is not None:  # a fault in a value that nothing uses may be gone
        return None
    if its_fault is not None:
        return f"{who} faults: {its_fault}"
    for position, (want, have) in enumerate(zip(expected, got, strict=True)):
        if want is None and have is None:
            continue
        one, other = np.asarray(want), np.asarray(have)
        same = (one == other) | ((one != one) & (other != other))
        if not np.all(same):
            what = "the returned value" if position == 0 else f"output {position - 1}"
            return f"{who}: {what} ({one.dtype}) differs"
    return None


class _Replace(Mutator):
    """Puts ``new`` in the place of one node."""

    def __init__(self, old: Any, new: Any) -> None:
        super().__init__()
        self.old, self.new = old, new

    def visit(self, node: Any) -> Any:
        return self.new if node is self.old else super().visit(node)


def _smaller(func: PrimFunc) -> Iterator[PrimFunc]:
    """Programs with one node replaced by a part of it."""
    kinds = (SeqStmt, IfThenElse, BinaryExpr, Select, Cast, Let, Call)
    for node in collect(func.body, kinds):
        for part in _parts(node):
            yield func.with_(body=_Replace(node, part).visit(func.body))
    for store in collect(func.body, BufferStore):
        if not isinstance(store.value, IntImm) and store.value.dtype.is_integral:
            if store.value.dtype.lanes == 1:
                constant = store.with_(value=IntImm(store.value.dtype, 1))
                yield func.with_(body=_Replace(store, constant).visit(func.body))


def _parts(node: Any) -> Iterator[Any]:
    if isinstance(node, SeqStmt):
        for index in range(len(node.seq)):
            rest = [item for place, item in enumerate(node.seq) if place != index]
            yield rest[0] if len(rest) == 1 else node.with_(seq=type(node.seq)(rest))
    elif isinstance(node, IfThenElse):
        yield from [case for case in (node.then_case, node.else_case) if case is not None]
    else:
        operands = [getattr(node, name, None) for name in (
            "a", "b", "value", "body", "true_value", "false_value")]  # fmt: skip
        for part in [*operands, *getattr(node, "args", ())]:
            if isinstance(part, PrimExpr) and part.dtype is node.dtype:
                yield part


def shrunk(
    program: RandomProgram, fails: Callable[[RandomProgram], str | None], steps: int = 300
) -> RandomProgram:
    """A smaller program that ``fails`` still rejects."""
    best = program
    while steps > 0:
        for func in _smaller(best.func):
            steps -= 1
            candidate = RandomProgram(func, best.arguments, best.outputs, best.seed, best.stages)
            if _still(candidate, fails):
                best = candidate
                break
            if steps <= 0:
                break
        else:
            break
    return best


def _still(program: RandomProgram, fails: Callable[[RandomProgram], str | None]) -> bool:
    try:
        return fails(program) is not None
    except TVMError:
        return False


def checked(program: RandomProgram) -> str | None:
    """``disagreement``; a compiler error is one too."""
    try:
        return disagreement(program)
    except TVMError as error:
        return f"{type(error).__name__}: {str(error).splitlines()[0]}"


def report(program: RandomProgram) -> str | None:
    """None where all agree; else the seed, the difference and the smallest failing program."""
    found = checked(program)
    if found is None:
        return None

    def same_failure(candidate: RandomProgram) -> str | None:
        again = checked(candidate)
        return again if again is not None and again[:20] == found[:20] else None

    small = shrunk(program, same_failure)
    return f"seed {program.seed}: {found}\n{small.func.script(show_meta=True)}"
