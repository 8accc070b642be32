"""A model's call on tensors of a framework as one native function (call.tensor_call_ir).

A CallPlan printed as the table that this function reads.

The way through Python (weft.runtime.call.native_entry) takes some microseconds, more than a small
model computes. Tensors of a class that offers DLPack's exchange functions in C, as PyTorch's, are
read and made without it. Every call that is not as usual answers ``NotImplemented``, and the caller
goes the way through Python.

The table has numbers for shapes. For a function of symbolic shapes there is a table for each
combination of extents that has come several times (``CallsBySize``).
"""

from __future__ import annotations

import ctypes
import functools
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NoReturn

import numpy as np

from weft.runtime.call.abi import DLPACK_BOOL, DLDataType, DLDevice, DLTensor
from weft.runtime.call.native_entry import constant_table, make_planner
from weft.runtime.call.plan import Bind, CallPlan, Compare, Count, Pass, Rank, Take, plan_of_entry
from weft.runtime.call.tensor_call_ir import (
    CALL_FIELDS,
    EXPECTED_FIELDS,
    MOST_ARGUMENTS,
    TENSOR_CALL,
    tensor_call_ir,
)
from weft.runtime.extent import Extent, is_within
from weft.runtime.faults import pop_fault
from weft.runtime.memory.allocation import ALIGNMENT, aligned_empty
from weft.runtime.memory.dlpack import capsule_pointer
from weft.runtime.native.foreign import CompiledFunction
from weft.runtime.native.parts import load_part
from weft.runtime.ndarray import NDArray, storage_dtype
from weft.runtime.threads.parallel import own_count_key
from weft.runtime.vm.bytecode import NativeEntry, Result
from weft.support.dtype import DataType

TensorCall = Callable[..., object]
"""Takes the inputs; gives the one output, a tuple of several, or ``NotImplemented``."""

_FASTCALL: Final = 0x80
_NAME: Final = b"dlpack_exchange_api"
_MAJOR: Final = 1
_TYPES: Final[dict[str, type]] = {
    "ptr": ctypes.c_void_p, "i64": ctypes.c_int64, "i32": ctypes.c_int32,
}  # fmt: skip
_TYPE_OFFSET: Final = object.__basicsize__ - ctypes.sizeof(ctypes.c_void_p)
"""Where an object's class stands in it: last in the header that all objects have."""
_KINDS: Final = frozenset({"bool", "int", "uint", "float", "bfloat"})
"""Kinds of numbers that DLPack and weft write alike; bool differs and is looked after."""

_PRINTED: Final = (Count, Take, Compare, Bind, Rank)
"""The steps of a plan that the table has: the number of arguments, each as it is expected. Where
shapes are numbers, these say what symbols are and how many axes there are."""
_PASSED: Final = frozenset({"argument", "output", "arena", "offsets", "constants", "symbol"})
"""The kinds of native arguments that the native code passes, in this order."""
_OFTEN: Final = 8
"""After how many calls of some extents there is a native call for them."""
_KEPT: Final = 16
"""For how many combinations of extents there are native calls at a time."""
_COUNTED: Final = 1024
"""For how many combinations of extents calls are counted, before counting begins anew."""
_MOST_WORKING_MEMORY: Final = 4 << 20
"""Bytes of working memory with which symbolic shapes get native calls: each has its own. It may be
that of the largest sizes; the system gives a process what calls touch of it."""

Range = tuple[int | None, int | None]
"""The least and the greatest value of a symbol; None: no limit."""

Item = tuple[str, tuple[int, ...], int]
"""A tensor as it is expected: data type, shape, alignment of its memory in bytes."""


class _Call(ctypes.Structure):
    _fields_ = [(name, _TYPES[kind]) for name, kind in CALL_FIELDS.items()]


class _Expected(ctypes.Structure):
    _fields_ = [(name, _TYPES[kind]) for name, kind in EXPECTED_FIELDS.items()]


class _Method(ctypes.Structure):
    """CPython's ``PyMethodDef``."""

    _fields_ = [
        ("name", ctypes.c_char_p), ("code", ctypes.c_void_p), ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    ]  # fmt: skip


class _Exchange(ctypes.Structure):
    """DLPack's ``DLPackExchangeAPI``: what a class of tensors offers in C."""

    _fields_ = [
        ("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("earlier", ctypes.c_void_p),
        ("allocate", ctypes.c_void_p), ("share", ctypes.c_void_p), ("wrap", ctypes.c_void_p),
        ("read", ctypes.c_void_p), ("stream", ctypes.c_void_p),
    ]  # fmt: skip


def make_tensor_call(
    entry: NativeEntry,
    host: CompiledFunction,
    constants: Sequence[NDArray],
    tensor_class: type,
    threads: int | None,
    ranges: Mapping[str, Range] | None = None,
) -> TensorCall | None:
    """The native call of ``entry`` on tensors of ``tensor_class``; None where there can be none.

    Args:
        threads: of parallel loops in these calls; None: as the process has it.
        ranges: the least and the greatest value of symbols.
    """
    plan = plan_of_entry(entry)

    def native(values: Mapping[str, int]) -> TensorCall | None:
        return _native_call(plan, values, host, constants, tensor_class, threads)

    if not plan.symbols:
        return native({})
    places = plan.symbols_from_shapes()
    return None if places is None else CallsBySize(places, ranges or {}, native)


class CallsBySize:
    """The native calls of a function of symbolic shapes, for combinations of extents that come.

    A table takes longer to write than it saves in one call, and has working memory of its own. So
    there is one for extents that came ``_OFTEN`` times, for few at a time, and none where calls
    need much working memory, beside which the way through Python takes no time.

    Args:
        places: each symbol, and which axis of which argument is its value.
        ranges: the least and the greatest value of symbols.
        native: makes the call for values of the symbols; None where there can be none.
    """

    def __init__(
        self,
        places: Sequence[tuple[str, int, int]],
        ranges: Mapping[str, Range],
        native: Callable[[Mapping[str, int]], TensorCall | None],
    ) -> None:
        self._symbols = [symbol for symbol, _, _ in places]
        self._places = [(argument, axis) for _, argument, axis in places]
        self._ranges, self._native = ranges, native
        self._calls: dict[tuple[int, ...], TensorCall] = {}
        self._counts: Counter[tuple[int, ...]] = Counter()

    def __call__(self, *args: Any) -> object:
        """The result, or ``NotImplemented``."""
        try:
            extents = tuple([args[argument].shape[axis] for argument, axis in self._places])
        except Exception:  # noqa: BLE001 - whatever a stranger's tensor raises, Python explains
            return NotImplemented
        call = self._calls.get(extents)
        return self._add(extents) if call is None else call(*args)

    def _add(self, extents: tuple[int, ...]) -> object:
        """Count a call that goes through Python; after some of them, the next ones do not."""
        if len(self._counts) >= _COUNTED:
            self._counts.clear()
        self._counts[extents] += 1
        if self._counts[extents] >= _OFTEN and all(type(extent) is int for extent in extents):
            if len(self._calls) >= _KEPT:
                self._calls.clear()  # other threads may be in some of them, which keep themselves
            values = dict(zip(self._symbols, extents, strict=True))
            call = self._native(values) if self._are_allowed(values) else None
            self._calls[extents] = _refuse if call is None else call
        return NotImplemented

    def _are_allowed(self, values: Mapping[str, int]) -> bool:
        return all(
            is_within(extent, *self._ranges.get(symbol, (None, None)))
            for symbol, extent in values.items()
        )


def _refuse(*_: object) -> object:
    """The call for extents for which there is no native one."""
    return NotImplemented


def _native_call(
    symbolic: CallPlan,
    values: Mapping[str, int],
    host: CompiledFunction,
    constants: Sequence[NDArray],
    tensor_class: type,
    threads: int | None,
) -> TensorCall | None:
    """The native call for these values of the symbols; None where there can be none."""
    exchange = _exchange_of(tensor_class)
    plan = symbolic.for_extents(values)
    if exchange is None or own_count_key() < 0 or plan is None or not _is_direct(plan):
        return None
    used = [constants[index] for index in plan.constants]
    memory = _Memory(plan, values, used)
    if values and memory.size > _MOST_WORKING_MEMORY:
        return None
    inputs, outputs = _items(plan)
    expected = (_Expected * (len(inputs) + len(outputs)))()
    prototypes = (DLTensor * len(outputs))()
    axes = [_fill(expected[i], item) for i, item in enumerate([*inputs, *outputs])]
    for prototype, wanted in zip(prototypes, expected[len(inputs) :], strict=True):
        _fill_prototype(prototype, wanted)
    negated = "is_neg" if hasattr(tensor_class, "is_neg") else None
    fail = functools.partial(_fail, plan.name)
    call = _Call(
        function=host.address, inputs=len(inputs), outputs=len(outputs),
        handles=len(memory.words), expected=ctypes.addressof(expected),
        prototypes=ctypes.addressof(prototypes), arena=memory.address,
        has_arena=plan.arena is not None, words=ctypes.addressof(memory.words),
        threads=threads or 0, count_key=own_count_key(),
        type_offset=_TYPE_OFFSET, tensor_class=id(tensor_class),
        negated=None if negated is None else id(negated), read=exchange.read,
        allocate=exchange.allocate, wrap=exchange.wrap, refused=id(NotImplemented),
        false=id(False), fail=id(fail), bare=len(outputs) == 1,
    )  # fmt: skip
    keep = (call, host, used, memory, expected, prototypes, axes, tensor_class, negated, fail)
    method, state = ctypes.addressof(_method()), ctypes.addressof(call)
    function: TensorCall | None = _make_function(method, (state, keep), None)
    return function


class _Memory:
    """What a native call is given beside tensors, and the memory that it stands in.

    ``size`` and ``address`` are those of working memory; ``words`` are the values of the handles.
    """

    def __init__(self, plan: CallPlan, values: Mapping[str, int], used: Sequence[NDArray]) -> None:
        self.table = constant_table(used)
        arena, self.plan = plan.arena, None
        self.size, self.address = 0 if arena is None else arena.size, None
        if arena is not None and arena.planned is not None:
            self.plan = make_planner(arena.planned)(*[values[x] for x in arena.planned.symbols])
            self.size = self.plan.size
        if arena is not None:
            self.block, self.address = aligned_empty((self.size,), np.dtype("uint8"), self.size)
        handles = [item for item in plan.passed if item.kind not in ("argument", "output")]
        self.words = (ctypes.c_int64 * len(handles))(
            *[self._word(item, values) for item in handles]
        )

    def _word(self, item: Pass, values: Mapping[str, int]) -> int:
        match item.kind:
            case "constants":
                return ctypes.addressof(self.table)
            case "offsets":
                assert self.plan is not None
                return self.plan.address
            case "symbol":
                return values[item.symbol]
        return 0  # the call puts working memory there


def _is_direct(plan: CallPlan) -> bool:
    """Whether the table can say all of a plan: compact tensors of fixed shapes, fresh results."""
    return (
        all(isinstance(step, _PRINTED) for step in plan.checks)
        and all(item.kind in _PASSED for item in plan.passed)
        and len(plan.passed) <= MOST_ARGUMENTS
        and not plan.calls_packed
        and _gives_all(plan.result, len(plan.outputs))
        and all(take.param.kind == "buffer" and take.param.strides is None for take in plan.takes)
        and all(_is_fixed(take.param.dtype, take.param.shape) for take in plan.takes)
        and all(_is_fixed(output.dtype, output.shape) for output in plan.outputs)
    )


def _is_fixed(dtype: str, shape: Sequence[Extent]) -> bool:
    known = DataType(dtype)
    return (
        known.kind in _KINDS
        and known.lanes == 1
        and all(isinstance(extent, int) and extent > 0 for extent in shape)
    )


def _gives_all(result: Result, outputs: int) -> bool:
    """Whether a result is the one output, or a tuple of all in their order."""
    if result[0] == "tuple":
        return list(result[1]) == [("output", index) for index in range(outputs)]
    return outputs == 1 and result == ("output", 0)


def _items(plan: CallPlan) -> tuple[list[Item], list[Item]]:
    """Inputs, on boundaries of their elements, and outputs, on those of fresh arrays."""
    params = [take.param for take in plan.takes]
    inputs = [
        (param.dtype, _extents(param.shape), storage_dtype(param.dtype).itemsize)
        for param in params
    ]
    outputs = [(output.dtype, _extents(output.shape), ALIGNMENT) for output in plan.outputs]
    return inputs, outputs


def _extents(shape: Sequence[Extent]) -> tuple[int, ...]:
    return tuple([int(extent) for extent in shape])


def _fill(expected: _Expected, item: Item) -> object:
    """Write what is expected; the memory of shape and strides, which must live as long."""
    name, shape, alignment = item
    dtype, rank = DataType(name), len(shape)
    code, bits = (DLPACK_BOOL, 8) if dtype.is_bool else (int(dtype.type_code), dtype.bits)
    strides = [1] * rank
    for axis in range(rank - 2, -1, -1):
        strides[axis] = strides[axis + 1] * shape[axis + 1]
    axes = (ctypes.c_int64 * (2 * rank))(*shape, *strides)
    expected.ndim = rank
    expected.dtype = int.from_bytes(bytes(DLDataType(code, bits, 1)), sys.byteorder)
    expected.shape = ctypes.addressof(axes)
    expected.strides = ctypes.addressof(axes) + rank * ctypes.sizeof(ctypes.c_int64)
    expected.mask = alignment - 1
    return axes


def _fill_prototype(prototype: DLTensor, expected: _Expected) -> None:
    prototype.device, prototype.ndim = DLDevice(1, 0), expected.ndim
    prototype.dtype = DLDataType.from_buffer_copy(ctypes.c_int32(expected.dtype))
    prototype.shape, prototype.strides = expected.shape, expected.strides


def _fail(name: str, code: int) -> NoReturn:
    raise pop_fault(code, name)


@functools.cache
def _exchange_of(tensor_class: type) -> _Exchange | None:
    """The exchange functions of a class, of the version that is known here."""
    if sys.implementation.name != "cpython":
        return None
    address = capsule_pointer(getattr(tensor_class, "__dlpack_c_exchange_api__", None), _NAME)
    while address:
        exchange = _Exchange.from_address(address)
        if exchange.major == _MAJOR:
            return exchange if exchange.allocate and exchange.wrap and exchange.read else None
        address = exchange.earlier
    return None


@functools.cache
def _method() -> _Method:
    """The native code as CPython wants it told; neither is ever given back."""
    loaded = load_part(tensor_call_ir())
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(loaded))
    return _Method(b"call", loaded.address(TENSOR_CALL), _FASTCALL, None)


_make_function = ctypes.pythonapi.PyCFunction_NewEx
_make_function.argtypes = [ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p]
_make_function.restype = ctypes.py_object
