"""Checked wrappers: a CallPlan printed as the source of a Python function.

The text of a wrapper for ``f(x: (n, 4) float32, y: (n,) float32, out)`` reads ::

    def f(*args):
        try: a0, a1 = args
        except ValueError: raise count_error(contract, len(args)) from None
        if type(a0) is NDArray and a0.dtype is D0 and a0._compact: p0 = a0._address; s0 = a0.shape
        else: p0, s0, _ = R0(a0)
        ...                                    # bind symbols, compare shapes, look for overlaps
        code = native(p0, p1)
        if code: raise pop_fault(code, 'f')

A correct call on NDArrays meets only local comparisons and one ctypes call, which releases the GIL.
Only text made here from checked specs is executed.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from functools import partial
from types import CodeType
from typing import Any, assert_never

import numpy as np

from weft.runtime.call import arguments
from weft.runtime.call.abi import scalar_c_type
from weft.runtime.call.callbacks import holding
from weft.runtime.call.plan import (
    Bind,
    CallPlan,
    Cast,
    Check,
    Compare,
    Count,
    Limit,
    Open,
    Overlap,
    Pass,
    Rank,
    Same,
    Take,
    plan_of,
)
from weft.runtime.call.spec import FunctionSpec
from weft.runtime.extent import Extent, may_divide, python_text
from weft.runtime.faults import pop_fault
from weft.runtime.memory.allocation import reach
from weft.runtime.ndarray import NDArray, storage_dtype
from weft.support.dtype import DataType


def make_wrapper(spec: FunctionSpec, address: int) -> Callable[..., object]:
    """The checked Python function that calls the native function at ``address``."""
    writer = CallWriter(plan_of(spec), address)
    writer.checks()
    writer.call()
    return writer.build()


def make_binder(
    spec: FunctionSpec, address: int, owner: object
) -> Callable[..., Callable[[], None]]:
    """Like ``make_wrapper``, but the function returns the native call as a thunk.

    The thunk keeps ``owner``, whose code it calls, and the arguments alive.
    """
    writer = CallWriter(plan_of(spec), address)
    writer.names["owner"] = owner
    writer.checks()
    writer.thunk()
    return writer.build()


def _timed(native: Callable[..., int], passed: tuple[object, ...], keep: object, name: str) -> None:
    del keep  # arguments and code live as long as the thunk that holds them
    code = native(*passed)
    if code:
        raise pop_fault(code, name)


@functools.lru_cache(maxsize=1024)
def _code_of(text: str, place: str) -> CodeType:
    """The code of a text; functions of one name and signature have the same, in many models."""
    return compile(text, place, "exec")


class CallWriter:
    """Prints a plan: the lines of a Python function, and the names that they use.

    In the text, argument 0 is ``a0``, its address ``p0``, its shape ``s0``, its strides ``t0``, the
    bytes that it touches ``z0``; the symbol n is ``v_n``.
    """

    def __init__(self, plan: CallPlan, address: int) -> None:
        self.plan = plan
        self.params = [take.param for take in plan.takes]
        self.lines: list[str] = []
        self.bound: dict[str, str] = {}
        self.begin: dict[int, str] = {}
        self.names: dict[str, Any] = {
            "NDArray": NDArray,
            "contract": plan,
            "pop_fault": pop_fault,
            "name": plan.name,
            "count_error": arguments.count_error,
            "shape_error": arguments.shape_error,
            "division_error": arguments.division_error,
            "stride_error": arguments.stride_mismatch,
            "overlap_error": arguments.overlap_error,
            "timed": _timed,
            "reach": reach,
            "partial": partial,
            "holding": holding,
            "byref": ctypes.byref,
            "addressof": ctypes.addressof,
            "native": native_function(plan, address),
        }

    def build(self) -> Callable[..., Any]:
        """Execute the text and return the function in it."""
        text = "def wrapper(*args):\n" + "".join(f"    {line}\n" for line in self.lines)
        code = _code_of(text, f"<wrapper of {self.plan.name}>")
        exec(code, self.names)  # noqa: S102 - text made by this module
        # A function that is among its own globals would live until a collection of cycles.
        function: Callable[..., object] = self.names.pop("wrapper")
        function.__name__ = function.__qualname__ = self.plan.name
        function.__doc__ = f"Compiled function {self.plan.name}."
        return function

    def checks(self) -> None:
        """Every check of the plan, in its order."""
        for step in self.plan.checks:
            self.check(step)

    def check(self, step: Check) -> None:
        """The lines of one step."""
        match step:
            case Count():
                self._count(step)
            case Take():
                self._take(step)
            case Rank():
                i, error = step.argument, self._error("shape", step.argument)
                self.lines += [f"if len(s{i}) != {step.rank}:", f"    raise {error}"]
            case Bind():
                self._bind(step)
            case Compare():
                self._compare(step)
            case Overlap():
                self._overlap(step)
            case Open() | Same() | Cast() | Limit():
                raise AssertionError(f"only a model has {step}")
            case _:
                assert_never(step)

    def _count(self, step: Count) -> None:
        targets = "".join([f"a{i}, " for i in range(step.number)])
        if not targets:
            self.lines += ["if args:", "    raise count_error(contract, len(args))"]
            return
        self.lines += [
            "try:",
            f"    {targets}= args",
            "except ValueError:",
            "    raise count_error(contract, len(args)) from None",
        ]

    def _take(self, step: Take) -> None:
        if step.param.kind == "buffer":
            self._take_buffer(step)
        else:
            self._take_scalar(step)

    def _take_buffer(self, step: Take) -> None:
        i = step.argument
        self.names[f"R{i}"] = arguments.TensorChecker(self.plan.place(i), step.param)
        self.names[f"D{i}"] = DataType(step.param.dtype)
        if step.param.strides is None:
            self.lines += [
                f"if type(a{i}) is NDArray and a{i}.dtype is D{i} and a{i}._compact:",
                f"    p{i} = a{i}._address",
                f"    s{i} = a{i}.shape",
                "else:",
                f"    p{i}, s{i}, _ = R{i}(a{i})",
            ]
        else:
            self.lines.append(f"p{i}, s{i}, t{i} = R{i}(a{i})")

    def _take_scalar(self, step: Take) -> None:
        i = step.argument
        checker = arguments.ScalarChecker(self.plan.place(i), step.param)
        self.names[f"C{i}"] = checker
        if checker.dtype.is_float and checker.dtype.bits >= 32:
            test = f"type(a{i}) is not float"
        elif checker.dtype.is_int or checker.dtype.is_uint:
            test = f"type(a{i}) is not int or not {checker.low} <= a{i} <= {checker.high}"
        else:
            test = "True"
        self.lines += [f"if {test}:", f"    a{i} = C{i}(a{i})"]

    def _bind(self, step: Bind) -> None:
        if step.of == "value":
            self.bound[step.symbol] = f"a{step.argument}"
            return
        source = {"shape": "s", "strides": "t"}.get(step.of)
        value = "0" if source is None else f"{source}{step.argument}[{step.axis}]"
        self.bound[step.symbol] = f"v_{step.symbol}"
        self.lines.append(f"v_{step.symbol} = {value}")

    def _compare(self, step: Compare) -> None:
        i = step.argument
        expected = "".join([f"{self.value(entry)}, " for entry in step.shape])
        lines = [f"if s{i} != ({expected}):", f"    raise {self._error('shape', i)}"]
        for axis, entry in enumerate(step.strides or ()):
            lines += [
                f"if t{i}[{axis}] != {self.value(entry)} and s{i}[{axis}] > 1:",
                f"    raise {self._error('stride', i)}",
            ]
        if may_divide((*step.shape, *(step.strides or ()))):
            lines = [
                "try:",
                *[f"    {line}" for line in lines],
                "except ZeroDivisionError:",
                f"    raise division_error(contract, {i}) from None",
            ]
        self.lines += lines

    def _error(self, what: str, i: int) -> str:
        known = "".join(f"{name!r}: {value}, " for name, value in self.bound.items())
        return f"{what}_error(contract, {i}, {'s' if what == 'shape' else 't'}{i}, {{{known}}})"

    def value(self, extent: Extent) -> str:
        """An extent as a Python expression over the bound symbols."""
        return python_text(extent, self.bound.__getitem__)

    def _overlap(self, step: Overlap) -> None:
        i, j = step.output, step.other
        if not self.begin:  # all sizes first: most are compared several times
            pairs = [pair for pair in self.plan.checks if isinstance(pair, Overlap)]
            for argument in sorted({k for pair in pairs for k in (pair.output, pair.other)}):
                self._size(argument)
        a, b = self.begin[i], self.begin[j]
        self.lines += [
            f"if {b} < {a} + z{i} and {a} < {b} + z{j}:",
            f"    e = overlap_error(contract, {i}, {j}, ({a}, z{i}, {b}, z{j}))",
            "    if e: raise e",
        ]

    def _size(self, i: int) -> None:
        """Assign ``z<i>``, the bytes that the argument touches from ``begin[i]`` on."""
        param = self.params[i]
        dtype = DataType(param.dtype)
        width = storage_dtype(dtype).itemsize * dtype.lanes
        if i in self.begin:
            return
        if param.strides is not None:
            self.begin[i] = f"b{i}"
            self.lines.append(f"b{i}, z{i} = reach(p{i}, s{i}, t{i}, {width})")
            return
        self.begin[i] = f"p{i}"
        extents = [self.value(entry) for entry in param.shape]
        self.lines.append(f"z{i} = {' * '.join([*extents, str(width)])}")

    def passed(self, item: Pass) -> str:
        """The text of one argument of the native function."""
        if item.kind == "argument":
            return f"{'p' if self.params[item.index].kind == 'buffer' else 'a'}{item.index}"
        if item.kind == "symbol":
            return self.bound[item.symbol]
        assert item.kind == "result", "a function of a library has no memory of its own"
        return "byref(result)"

    def call(self) -> None:
        """The native call, the fault check, the result."""
        kind, dtype = self.plan.result
        if kind == "number":
            self.names["Result"] = _result_type(dtype)
            self.lines.append("result = Result()")
        call = f"code = native({', '.join([self.passed(item) for item in self.plan.passed])})"
        if self.plan.calls_packed:
            self.lines += [f"with holding(args, [{', '.join(self.ranges())}]):", f"    {call}"]
        else:
            self.lines.append(call)
        self.lines += ["if code:", "    raise pop_fault(code, name)"]
        if kind == "number":
            self.lines.append(f"return {_read_result(dtype, self.names)}")

    def ranges(self) -> list[str]:
        """The memory of the arguments, from where to where; its sizes are computed before."""
        ranges = []
        for i, param in enumerate(self.params):
            if param.kind == "buffer":
                self._size(i)
                ranges.append(f"({self.begin[i]}, {self.begin[i]} + z{i})")
        return ranges

    def thunk(self) -> None:
        """Return a call without arguments that keeps everything it needs."""
        kind, dtype = self.plan.result
        if kind == "number":
            self.names["Result"] = _result_type(dtype)
            self.lines += ["result = Result()", "args = (args, result)"]
        texts = [self.passed(item) for item in self.plan.passed if item.kind != "result"]
        values = "".join([f"{text}, " for text in texts])
        values += "addressof(result), " if kind == "number" else ""
        self.lines.append(f"return partial(timed, native, ({values}), (args, owner), name)")


def native_function(plan: CallPlan, address: int) -> Callable[..., int]:
    """The ctypes function at ``address`` with the parameter types of a plan."""
    types: list[type] = []
    for item in plan.passed:
        param = plan.takes[item.index].param if item.kind == "argument" else None
        if param is not None and param.kind == "scalar":
            types.append(scalar_c_type(DataType(param.dtype)))
        else:
            types.append(ctypes.c_int64 if item.kind == "symbol" else ctypes.c_void_p)
    return ctypes.CFUNCTYPE(ctypes.c_int32, *types)(address)


def _result_type(dtype: str) -> object:
    parsed = DataType(dtype)
    if parsed.is_float and parsed.bits == 16:
        return ctypes.c_uint16
    return scalar_c_type(parsed)


def _read_result(dtype: str, names: dict[str, object]) -> str:
    parsed = DataType(dtype)
    if parsed.is_float and parsed.bits < 32:
        names["decode"] = partial(_decode, parsed)
        return "decode(result.value)"
    return "result.value"


def _decode(dtype: DataType, raw: int) -> float:
    return float(np.array(raw, f"uint{dtype.bits}").view(storage_dtype(dtype)))
