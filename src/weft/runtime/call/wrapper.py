"""Checked wrappers: Python source generated from a FunctionSpec (design.md 3.6).

The text of a wrapper for ``f(x: (n, 4) float32, y: (n,) float32, out)`` reads ::

    def f(*args):
        try: a0, a1 = args
        except ValueError: raise count_error(spec, len(args)) from None
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
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from weft.runtime.call import arguments
from weft.runtime.call.abi import scalar_c_type
from weft.runtime.call.callbacks import holding
from weft.runtime.call.spec import FunctionSpec, ParamSpec
from weft.runtime.extent import Extent, python_text
from weft.runtime.faults import pop_fault
from weft.runtime.memory.allocation import reach
from weft.runtime.ndarray import NDArray, storage_dtype
from weft.support.dtype import DataType
from weft.support.errors import UnsupportedError


def make_wrapper(spec: FunctionSpec, address: int) -> Callable[..., object]:
    """The checked Python function that calls the native function at ``address``."""
    writer = WrapperWriter(spec, address)
    writer.checks()
    writer.call()
    return writer.build()


def make_binder(
    spec: FunctionSpec, address: int, owner: object
) -> Callable[..., Callable[[], None]]:
    """Like ``make_wrapper``, but the function returns the native call as a thunk.

    The thunk keeps ``owner``, whose code it calls, and the arguments alive.
    """
    writer = WrapperWriter(spec, address)
    writer.names["owner"] = owner
    writer.checks()
    writer.thunk()
    return writer.build()


def _timed(native: Callable[..., int], passed: tuple[object, ...], keep: object, name: str) -> None:
    del keep  # arguments and code live as long as the thunk that holds them
    code = native(*passed)
    if code:
        raise pop_fault(code, name)


class WrapperWriter:
    """Writes the source of one wrapper and the names it uses."""

    def __init__(self, spec: FunctionSpec, address: int) -> None:
        self.spec = spec
        self.lines: list[str] = []
        self.passed: list[str] = []
        self.bound: dict[str, str] = {}
        self.begin: dict[int, str] = {}
        self.names: dict[str, Any] = {
            "NDArray": NDArray, "spec": spec, "pop_fault": pop_fault, "name": spec.name,
            "count_error": arguments.count_error, "shape_error": arguments.shape_error,
            "division_error": arguments.division_error,
            "stride_error": arguments.stride_mismatch, "overlap_error": arguments.overlap_error,
            "timed": _timed, "reach": reach, "partial": partial, "holding": holding,
            "byref": ctypes.byref, "addressof": ctypes.addressof,
            "native": native_function(spec, address),
        }  # fmt: skip

    def build(self) -> Callable[..., Any]:
        """Execute the text and return the function in it."""
        text = "def wrapper(*args):\n" + "".join(f"    {line}\n" for line in self.lines)
        code = compile(text, f"<wrapper of {self.spec.name}>", "exec")
        exec(code, self.names)  # noqa: S102 - text made by this module
        # A function that is among its own globals would live until a collection of cycles.
        function: Callable[..., object] = self.names.pop("wrapper")
        function.__name__ = function.__qualname__ = self.spec.name
        function.__doc__ = f"Compiled function {self.spec.name}."
        return function

    def checks(self) -> None:
        """Number, kinds, data types, compactness; then symbols; then shapes; then overlaps."""
        self._unpack()
        buffers = [(i, p) for i, p in enumerate(self.spec.params) if p.kind == "buffer"]
        for position, param in enumerate(self.spec.params):
            if param.kind == "buffer":
                self._take_buffer(position, param)
            else:
                self._take_scalar(position, param)
        for position, param in buffers:
            self._bind_symbols(position, param)
        for position, param in buffers:
            self._compare(position, param)
        self._overlaps(buffers)
        self.passed += [self._symbol(name) for name in self.spec.implicit]

    def _unpack(self) -> None:
        targets = "".join(f"a{i}, " for i in range(len(self.spec.params)))
        if not targets:
            self.lines += ["if args:", "    raise count_error(spec, len(args))"]
            return
        self.lines += [
            "try:", f"    {targets}= args",
            "except ValueError:", "    raise count_error(spec, len(args)) from None",
        ]  # fmt: skip

    def _take_buffer(self, i: int, param: ParamSpec) -> None:
        self.names[f"R{i}"] = arguments.TensorChecker(self.spec, i)
        self.names[f"D{i}"] = DataType(param.dtype)
        if param.strides is None:
            self.lines += [
                f"if type(a{i}) is NDArray and a{i}.dtype is D{i} and a{i}._compact:",
                f"    p{i} = a{i}._address", f"    s{i} = a{i}.shape",
                "else:", f"    p{i}, s{i}, _ = R{i}(a{i})",
            ]  # fmt: skip
        else:
            self.lines.append(f"p{i}, s{i}, t{i} = R{i}(a{i})")
        self.passed.append(f"p{i}")

    def _take_scalar(self, i: int, param: ParamSpec) -> None:
        checker = arguments.ScalarChecker(self.spec, i)
        self.names[f"C{i}"] = checker
        if checker.dtype.is_float and checker.dtype.bits >= 32:
            test = f"type(a{i}) is not float"
        elif checker.dtype.is_int or checker.dtype.is_uint:
            test = f"type(a{i}) is not int or not {checker.low} <= a{i} <= {checker.high}"
        else:
            test = "True"
        self.lines += [f"if {test}:", f"    a{i} = C{i}(a{i})"]
        self.passed.append(f"a{i}")
        if param.kind == "scalar":
            self.bound[param.name] = f"a{i}"

    def _bind_symbols(self, i: int, param: ParamSpec) -> None:
        rank = len(param.shape)
        if any(isinstance(entry, str) for entry in param.shape) or param.strides is not None:
            self.lines += [f"if len(s{i}) != {rank}:", f"    raise {self._error('shape', i)}"]
        self._bind(param.shape, f"s{i}")
        if param.strides is not None:
            self._bind(param.strides, f"t{i}")
        offset = param.elem_offset
        if isinstance(offset, str) and offset.isidentifier() and offset not in self.bound:
            self.bound[offset] = f"v_{offset}"
            self.lines.append(f"v_{offset} = 0")
        elif offset != 0 and not isinstance(offset, str):
            raise UnsupportedError(
                f"{self.spec.name}: parameter {param.name}: expected element offset 0 or a "
                f"symbol, got {offset}"
            )

    def _bind(self, entries: tuple[Extent, ...], source: str) -> None:
        for axis, entry in enumerate(entries):
            if isinstance(entry, str) and entry.isidentifier() and entry not in self.bound:
                self.bound[entry] = f"v_{entry}"
                self.lines.append(f"v_{entry} = {source}[{axis}]")

    def _compare(self, i: int, param: ParamSpec) -> None:
        expected = "".join(f"{self._value(entry)}, " for entry in param.shape)
        lines = [f"if s{i} != ({expected}):", f"    raise {self._error('shape', i)}"]
        for axis, entry in enumerate(param.strides or ()):
            # the stride of an axis of extent 1 or less means nothing
            lines += [
                f"if t{i}[{axis}] != {self._value(entry)} and s{i}[{axis}] > 1:",
                f"    raise {self._error('stride', i)}",
            ]
        entries = [str(entry) for entry in (*param.shape, *(param.strides or ()))]
        if any("/" in entry or "%" in entry for entry in entries):
            lines = [
                "try:", *[f"    {line}" for line in lines],
                "except ZeroDivisionError:", f"    raise division_error(spec, {i}) from None",
            ]  # fmt: skip
        self.lines += lines

    def _error(self, what: str, i: int) -> str:
        known = "".join(f"{name!r}: {value}, " for name, value in self.bound.items())
        return f"{what}_error(spec, {i}, {'s' if what == 'shape' else 't'}{i}, {{{known}}})"

    def _value(self, entry: Extent) -> str:
        return python_text(entry, self._symbol)

    def _symbol(self, name: str) -> str:
        return self.bound.get(name, f"v_{name}")

    def _overlaps(self, buffers: list[tuple[int, ParamSpec]]) -> None:
        outputs = [i for i, p in buffers if p.noalias and p.is_output is not False]
        if outputs:
            for i, param in buffers:
                self._size(i, param)
        for i in outputs:
            for j, _ in buffers:
                if j == i or (j in outputs and j < i):
                    continue
                a, b = self.begin[i], self.begin[j]
                self.lines += [
                    f"if {b} < {a} + z{i} and {a} < {b} + z{j}:",
                    f"    e = overlap_error(spec, {i}, {j}, ({a}, z{i}, {b}, z{j}))",
                    "    if e: raise e",
                ]

    def _size(self, i: int, param: ParamSpec) -> None:
        """Assign ``z<i>``, the bytes that the argument touches from ``begin[i]`` on."""
        dtype = DataType(param.dtype)
        width = storage_dtype(dtype).itemsize * dtype.lanes
        if i in self.begin:
            return
        if param.strides is not None:
            self.begin[i] = f"b{i}"
            self.lines.append(f"b{i}, z{i} = reach(p{i}, s{i}, t{i}, {width})")
            return
        self.begin[i] = f"p{i}"
        extents = [self._value(entry) for entry in param.shape]
        self.lines.append(f"z{i} = {' * '.join([*extents, str(width)])}")

    def call(self) -> None:
        """The native call, the fault check, the result."""
        passed = list(self.passed)
        if self.spec.ret is not None:
            self.names["Result"] = _result_type(self.spec.ret)
            self.lines.append("result = Result()")
            passed.append("byref(result)")
        call = f"code = native({', '.join(passed)})"
        if self.spec.calls_packed:
            self.lines += [f"with holding(args, [{self._ranges()}]):", f"    {call}"]
        else:
            self.lines.append(call)
        self.lines += ["if code:", "    raise pop_fault(code, name)"]
        if self.spec.ret is not None:
            self.lines.append(f"return {_read_result(self.spec.ret, self.names)}")

    def _ranges(self) -> str:
        spans = []
        for i, param in enumerate(self.spec.params):
            if param.kind == "buffer":
                self._size(i, param)
                spans.append(f"({self.begin[i]}, {self.begin[i]} + z{i})")
        return ", ".join(spans)

    def thunk(self) -> None:
        """Return a call without arguments that keeps everything it needs."""
        passed = list(self.passed)
        if self.spec.ret is not None:
            self.names["Result"] = _result_type(self.spec.ret)
            self.lines += ["result = Result()", "args = (args, result)"]
            passed.append("addressof(result)")
        values = "".join(f"{item}, " for item in passed)
        self.lines.append(f"return partial(timed, native, ({values}), (args, owner), name)")


def native_function(spec: FunctionSpec, address: int) -> Callable[..., int]:
    """The ctypes function at ``address`` with the parameter types of ``spec``."""
    types: list[type] = []
    for param in spec.params:
        is_scalar = param.kind == "scalar"
        types.append(scalar_c_type(DataType(param.dtype)) if is_scalar else ctypes.c_void_p)
    types += [ctypes.c_int64] * len(spec.implicit)
    if spec.ret is not None:
        types.append(ctypes.c_void_p)
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
