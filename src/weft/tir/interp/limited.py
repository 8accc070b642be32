"""Runs PrimFuncs for ``verify=True`` with a limit of work: large ones run as compiled code.

The interpreter takes about 30 microseconds for an operation, so one layer of a large network would
take hours. A PrimFunc whose loops execute more than ``verify.max_operations`` stores (an option of
PassContext) is compiled as it is and called on the same arguments; if it cannot be compiled, it is
not run. A VerifyWarning is issued for the first one; ``compiled`` and ``skipped`` list all of them.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from weft.arith.analyzer import Analyzer
from weft.ir.expr import GlobalVar, IntImm, PrimExpr
from weft.ir.functor import collect, substitute
from weft.ir.module import IRModule
from weft.ir.transform import PassContext
from weft.support import slots
from weft.support.errors import TVMError, UnsupportedError
from weft.tir.expr import Var
from weft.tir.function import PrimFunc
from weft.tir.interp.machine import run
from weft.tir.interp.values import Value
from weft.tir.stmt import BufferStore, Evaluate, For, IfThenElse, Stmt

OPTION: Final = "verify.max_operations"
DEFAULT_LIMIT: Final = 1 << 14
"""It takes the interpreter about half a second."""


class VerifyWarning(UserWarning):
    """``verify=True`` does not run everything in the interpreter."""


class TooMuchWorkError(UnsupportedError):
    """A PrimFunc is too large for the interpreter, and cannot be compiled as it is."""


class LimitedRunner:
    """Runs PrimFuncs on numpy arguments in place: interpreted, or compiled if above the limit.

    ``compiled`` and ``skipped`` map the names of the large ones to their numbers of operations.
    """

    def __init__(self) -> None:
        self.compiled: dict[str, int] = {}
        self.skipped: dict[str, int] = {}
        self._built: dict[int, tuple[PrimFunc, Callable[..., Value] | None]] = {}
        self._work: dict[int, tuple[PrimFunc, tuple[tuple[int, ...], ...], int]] = {}

    def clear(self) -> None:
        """Start afresh."""
        for kept in (self.compiled, self.skipped, self._built, self._work):
            kept.clear()

    def compiled_functions(self) -> list[PrimFunc]:
        """The functions that ran compiled."""
        return [func for func, built in self._built.values() if built is not None]

    def __call__(
        self, name: str, func: PrimFunc, arguments: Sequence[object], module: IRModule | None
    ) -> Value:
        """Run a function, and return its value; TooMuchWorkError if it cannot be run."""
        work = self.work(func, arguments)
        limit = PassContext.current().config.get(OPTION, DEFAULT_LIMIT)
        if work <= limit:
            return run(func, *arguments, module=module)
        self._say(name, work, limit)
        built = self._built.get(id(func))
        if built is None:
            built = self._built[id(func)] = (func, self._compile(name, func, work))
        if built[1] is None:
            raise TooMuchWorkError(f"{name} does {work} operations and cannot be compiled")
        self.compiled[name] = work
        return built[1](*arguments)

    def _compile(self, name: str, func: PrimFunc, work: int) -> Callable[..., Value] | None:
        if collect(func.body, GlobalVar):  # the functions that it calls would be needed too
            self.skipped[name] = work
            return None
        try:
            with PassContext():  # without instruments: these passes need not be verified
                native: Callable[..., Value] = slots.evaluate.get().compiled(func)
                return native
        except TVMError:
            self.skipped[name] = work
            return None

    def _say(self, name: str, work: int, limit: int) -> None:
        if not self.compiled and not self.skipped:
            warnings.warn(
                f"verify: {name} does {work} operations, more than {limit}: it and others as large "
                f"run compiled, not in the interpreter; PassContext(config={{{OPTION!r}: n}}) sets "
                "the limit",
                VerifyWarning,
                stacklevel=2,
            )

    def work(self, func: PrimFunc, arguments: Sequence[Value]) -> int:
        """An upper bound of the stores and calls that a function executes on the arguments."""
        shapes = tuple([np.shape(value) for value in arguments])
        known = self._work.get(id(func))
        if known is None or known[1] != shapes:
            known = self._work[id(func)] = (func, shapes, operations_of(func, arguments))
        return known[2]


def operations_of(func: PrimFunc, arguments: Sequence[Value]) -> int:
    """The number of stores and calls that are executed, with inits of blocks.

    An extent that depends on an outer loop counts with its value in that loop's last iteration, one
    that depends on data counts as 1, and a While as one iteration.
    """
    values: dict[Var, PrimExpr] = {}
    for param, value in zip(func.params, arguments, strict=True):
        buffer = func.buffer_map.get(param)
        if buffer is not None:
            for extent, size in zip(buffer.shape, np.shape(value), strict=False):
                if isinstance(extent, Var):
                    values.setdefault(extent, IntImm(extent.dtype, int(size)))
        elif param.dtype.is_int:
            values[param] = IntImm(param.dtype, int(value))
    return _operations(func.body, values, Analyzer())


def _operations(stmt: Stmt | None, values: dict[Var, PrimExpr], analyzer: Analyzer) -> int:
    if isinstance(stmt, For):
        extent = _number(stmt.extent, values, analyzer)
        last = IntImm(stmt.loop_var.dtype, max(extent - 1, 0))
        return extent * _operations(stmt.body, {**values, stmt.loop_var: last}, analyzer)
    if isinstance(stmt, (BufferStore, Evaluate)):
        return 1
    if isinstance(stmt, IfThenElse):
        parts = [_operations(part, values, analyzer) for part in (stmt.then_case, stmt.else_case)]
        return max(parts)
    total = 0
    for name in () if stmt is None else stmt.CHILDREN:
        child = getattr(stmt, name)
        for item in child if isinstance(child, tuple) else (child,):
            if isinstance(item, Stmt):
                total += _operations(item, values, analyzer)
    return total


def _number(expr: PrimExpr, values: dict[Var, PrimExpr], analyzer: Analyzer) -> int:
    count = analyzer.simplify(substitute(expr, values))
    return max(count.value, 0) if isinstance(count, IntImm) else 1
