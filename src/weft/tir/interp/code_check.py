"""Compares native code with the interpreter: the last step of ``verify=True``.

Every function of a lowered module runs on random arguments, interpreted and as native code. For a
function that is too large for the interpreter, all loops are cut short (weft.tir.interp.shortened)
and the result is compiled, so that at least the same statements are compared. A difference is a bug
of the code generator or of LLVM, since both run the program after all passes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from weft.ir.expr import GlobalVar
from weft.ir.functor import collect
from weft.ir.module import IRModule
from weft.ir.transform import PassContext
from weft.support.dtype import DataType
from weft.support.errors import ArtifactTargetError, CodegenError, TVMError
from weft.support.recursion import deep_recursion
from weft.tir.buffer import Buffer
from weft.tir.expr import Call
from weft.tir.function import PrimFunc
from weft.tir.interp.arguments import random_arguments
from weft.tir.interp.limited import DEFAULT_LIMIT, OPTION, operations_of
from weft.tir.interp.machine import run
from weft.tir.interp.shortened import shortened, with_zeroed_memory
from weft.tir.interp.values import Value
from weft.tir.stmt import BufferStore

TOLERANCE: Final = {"float64": 1e-9, "float32": 1e-4, "float16": 2e-2, "bfloat16": 1e-1}
"""dtype -> the allowed difference, relative to the largest value. The interpreter rounds at every
operation; native code may contract products and sums, and rounds less often.
"""

WHOLE: Final = "as a whole"
HANDS_BUFFERS: Final = "it hands buffers to kernels; the virtual machine's results are compared"
"""The reason why host functions of graphs are not compared (weft.relax.reference.verify does)."""

Native = Mapping[str, Callable[..., Value]]
"""Name -> native function."""


@dataclass
class CodeReport:
    """By function: ``problems``, how it was ``compared``, or why it was ``left_out``."""

    problems: dict[str, str] = field(default_factory=dict)
    compared: dict[str, str] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)

    def rows(self) -> dict[str, str]:
        """Function -> how it was compared, or ``not: reason``."""
        return self.compared | {name: f"not: {why}" for name, why in self.left_out.items()}


@dataclass(frozen=True)
class _Case:
    """A function, its arguments, and a text that says how much of it runs."""

    func: PrimFunc
    arguments: list[Value]
    extent: str = WHOLE


@deep_recursion
def check_code(
    mod: IRModule,
    native: Callable[[], Native],
    compile_module: Callable[[IRModule], Native],
    *,
    seed: int = 0,
    size: int = 5,
) -> CodeReport:
    """Compare the native functions of a lowered module with the interpreter's results.

    ``native()`` loads the code of ``mod``; ``compile_module`` compiles functions whose loops were
    cut short, for the same target. Symbolic extents are ``size``.
    """
    report = CodeReport()
    try:
        functions = native()
    except (ArtifactTargetError, CodegenError) as error:
        report.left_out["*"] = f"{error}"
        return report
    limit = PassContext.current().config.get(OPTION, DEFAULT_LIMIT)
    whole: dict[str, _Case] = {}
    short: dict[str, _Case] = {}
    for var, func in mod.functions.items():
        name = str(func.attrs.get("global_symbol", var.name_hint))
        if isinstance(func, PrimFunc) and name in functions:
            case = _case_of(name, func, mod, limit, seed, size)
            if isinstance(case, str):
                report.left_out[name] = case
            else:
                (whole if case.extent == WHOLE else short)[name] = case
    for name, case in whole.items():
        _compare(report, name, case, functions[name], mod)
    if short:
        zeroed = {name: with_zeroed_memory(case.func) for name, case in short.items()}
        compiled = compile_module(IRModule(zeroed))
        for name, case in short.items():
            _compare(report, name, case, compiled[name], mod)
    return report


def _case_of(
    name: str, func: PrimFunc, mod: IRModule, limit: int, seed: int, size: int
) -> _Case | str:
    """The case to run for a function, or the reason why none can be run."""
    if any(isinstance(item, Buffer) for call in collect(func.body, Call) for item in call.args):
        return HANDS_BUFFERS
    arguments = random_arguments(name, func, seed, size)
    if arguments is None:
        return "its arguments are too large"
    work = operations_of(func, arguments)
    called = [var for var in collect(func.body, GlobalVar) if var in mod]
    for var in called:
        inputs = random_arguments(var.name_hint, mod[var], seed, size)
        work = limit + 1 if inputs is None else work + operations_of(mod[var], inputs)
    budget = limit // _lanes(func)
    if work <= budget:
        return _Case(func, arguments)
    if called:
        return "it calls kernels that are too large for the interpreter"
    cut = shortened(func, arguments, budget)
    if cut is None:
        return f"it does {work} operations, and its loops cannot be made short"
    return _Case(cut[0], arguments, f"in the first {cut[1]} iterations of each loop")


def _lanes(func: PrimFunc) -> int:
    """The lanes of the widest store: the interpreter handles them one by one."""
    stores = collect(func.body, BufferStore)
    return max([store.value.dtype.lanes for store in stores], default=1)


def _compare(
    report: CodeReport, name: str, case: _Case, native: Callable[..., object], mod: IRModule
) -> None:
    expected = [_copied(value) for value in case.arguments]
    try:
        result = run(case.func, *expected, module=mod)
    except TVMError as error:
        report.left_out[name] = f"the interpreter faults: {str(error).splitlines()[0][:200]}"
        return
    got = [_copied(value) for value in case.arguments]
    try:
        returned = native(*got)
    except TVMError as error:
        report.problems[name] = (
            f"native code faults, the interpreter does not: {str(error).splitlines()[0][:200]}"
        )
        return
    report.compared[name] = case.extent
    names = [_name_of(case.func, index) for index in range(len(expected))]
    pairs = zip([*names, "the returned value"], [*expected, result], [*got, returned], strict=True)
    has_floats = any(
        DataType(value.dtype.name).is_float
        for value in case.arguments
        if isinstance(value, np.ndarray)
    )
    for buffer, want, have in pairs:
        problem = first_difference(want, have, may_round=has_floats)
        if problem is not None:
            report.problems[name] = f"{buffer}{problem}"
            return


def _name_of(func: PrimFunc, index: int) -> str:
    param = func.params[index]
    buffer = func.buffer_map.get(param)
    return str(param.name if buffer is None else buffer.name)


def _copied(value: object) -> object:
    return value.copy() if isinstance(value, np.ndarray) else value


def first_difference(want: object, have: object, *, may_round: bool = False) -> str | None:
    """The first element that differs, as ``[1, 2]: the interpreter gives 3.0, native code 4.0``.

    None if they agree: floats within TOLERANCE, integers exactly, or by 1 where ``may_round`` (an
    integer that is rounded from a float differs by 1 where the float differs in its last digit).
    """
    if want is None and have is None:
        return None
    expected, other = np.asarray(want), np.asarray(have)
    same = _agree(expected, other, may_round)
    if same.all():
        return None
    at = tuple([int(index) for index in np.argwhere(~same)[0]])
    place = f"[{', '.join([str(index) for index in at])}]" if at else ""
    return (
        f"{place}: the interpreter gives {expected[at]}, native code {other[at]} "
        f"({np.count_nonzero(~same)} of {same.size} elements differ)"
    )


def _agree(expected: np.ndarray, other: np.ndarray, may_round: bool) -> np.ndarray:
    """A mask of the elements that agree; False if the shapes differ."""
    if expected.shape != other.shape:
        return np.asarray(False)
    if not DataType(expected.dtype.name).is_float:
        if may_round and expected.dtype.kind in "iu":
            distance = np.abs(expected.astype("float64") - other.astype("float64"))
            return np.asarray((expected == other) | (distance <= 1))
        return np.asarray(expected == other)
    if np.array_equal(expected, other):
        return np.asarray(True)
    wide, narrow = expected.astype("float64"), other.astype("float64")
    largest = np.abs(wide[np.isfinite(wide)]).max(initial=0.0)
    allowed = TOLERANCE.get(expected.dtype.name, 0.5)
    close = np.isclose(narrow, wide, rtol=allowed, atol=allowed * largest, equal_nan=True)
    return np.asarray(close)
