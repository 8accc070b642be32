"""``vm.builtin.*``: the functions that lowered Relax programs call by name (TVM 0.20's names).

VMBuiltinLower and VMShapeLower write calls of them; users may call them through
``get_global_func``. A shape is a tuple of integers, a tuple is a tuple, a storage is a
:class:`Storage`. Errors begin with the text that the compiler passed along: function, parameter,
annotation.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Final, SupportsInt

import numpy as np

from weft.runtime.memory.allocation import aligned_empty
from weft.runtime.memory.plan import plan_offsets
from weft.runtime.ndarray import NDArray, dtype_of, storage_dtype
from weft.runtime.registry import register_func
from weft.runtime.vm.builtins import BUILTINS
from weft.runtime.vm.kv_cache import BUILTINS as KV_CACHE
from weft.runtime.vm.param_cache import BUILTINS as PARAM_CACHE
from weft.runtime.vm.shape_codes import MakeShapeCode, MatchShapeCode
from weft.support.dtype import DataType
from weft.support.errors import IRTypeError, IRValueError, wrong_type


class Storage:
    """Bytes that tensors are placed in; a tensor keeps its storage alive."""

    __slots__ = ("_memory", "nbytes")

    def __init__(self, nbytes: int) -> None:
        if nbytes < 0:
            raise IRValueError(f"alloc_storage: expected a size of 0 or more bytes, got {nbytes}")
        self.nbytes = nbytes
        self._memory, _ = aligned_empty((nbytes,), np.dtype("uint8"), nbytes)

    def alloc_tensor(self, offset: int, shape: Sequence[int], dtype: str) -> NDArray:
        """The tensor at a byte offset; IRValueError with the numbers if it does not fit."""
        element = DataType(dtype)
        numpy_dtype = storage_dtype(element)
        full = tuple(shape) if element.lanes == 1 else (*shape, element.lanes)
        size = numpy_dtype.itemsize
        for extent in full:
            if extent < 0:
                raise IRValueError(f"alloc_tensor: expected extents of 0 or more, got {shape}")
            size *= extent
        if offset < 0 or offset + size > self.nbytes:
            raise IRValueError(
                f"alloc_tensor: a {dtype} tensor of shape {tuple(shape)} takes {size} bytes at "
                f"offset {offset}, but the storage has {self.nbytes}: a symbol may be larger than "
                "its tir_var_upper_bound says"
            )
        array = np.ndarray(full, numpy_dtype, self._memory.data, offset)
        return NDArray(array, element if element.lanes != 1 else None)


def alloc_storage(shape: Sequence[int], *_device_dtype_scope: object) -> Storage:
    """Storage of ``shape[0] * shape[1] * ...`` bytes."""
    nbytes = 1
    for extent in shape:
        nbytes *= extent
    return Storage(nbytes)


def alloc_tensor(storage: Storage, offset: int, shape: Sequence[int], dtype: str) -> NDArray:
    """A tensor at a byte offset of a storage."""
    if not isinstance(storage, Storage):
        raise wrong_type("alloc_tensor: expected a storage", storage)
    return storage.alloc_tensor(offset, shape, dtype)


def alloc_shape_heap(size: int) -> NDArray:
    """The heap of ``size`` numbers that a function keeps its symbolic extents in."""
    return NDArray(np.zeros((size,), np.int64))


def make_shape(heap: NDArray, size: int, *items: int) -> tuple[int, ...]:
    """A shape of ``size`` extents, each given as a code and a number or a slot of the heap."""
    return tuple(
        [
            _made(heap, code, value)
            for code, value in zip(items[: 2 * size : 2], items[1 : 2 * size : 2], strict=True)
        ]
    )


def make_prim_value(heap: NDArray, code: int, value: int) -> int:
    """A number, given as an extent of ``make_shape`` is."""
    return _made(heap, code, value)


def _made(heap: NDArray, code: int, value: int) -> int:
    if code == MakeShapeCode.USE_IMM:
        return value
    if code == MakeShapeCode.LOAD_SHAPE:
        return int(heap._array[value])  # noqa: SLF001 - the same room
    raise IRValueError(f"make_shape: expected a code of MakeShapeCode, got {code}")


def match_shape(value: Any, heap: NDArray | None, size: int, *items: int) -> None:
    """Compare or store the extents of a tensor or shape; the last item is the error's context."""
    actual = tuple(value.shape) if hasattr(value, "shape") else tuple(value)
    context = _context(items)
    if len(actual) != size:
        raise IRValueError(f"{context}expected {size} dimensions, got shape {actual}")
    expected: list[int] = []
    codes = items[: 2 * size]
    for extent, code, item in zip(actual, codes[::2], codes[1::2], strict=True):
        expected.append(_matched(extent, heap, code, item))
    if tuple(expected) != actual:
        raise IRValueError(f"{context}expected shape {tuple(expected)}, got {actual}")


def match_prim_value(
    value: SupportsInt, heap: NDArray | None, code: int, item: int, *context: object
) -> None:
    """Compare or store a number."""
    expected = _matched(int(value), heap, code, item)
    if expected != value:
        raise IRValueError(f"{_context(context)}expected {expected}, got {value}")


def _matched(extent: int, heap: NDArray | None, code: int, item: int) -> int:
    """What an extent has to be, by its code; one that is only stored may be anything."""
    if code == MatchShapeCode.ASSERT_EQUAL_TO_IMM:
        return item
    if code == MatchShapeCode.NO_OP:
        return extent
    if heap is None:
        raise IRValueError("match_shape: expected a heap to keep extents in, got None")
    if code == MatchShapeCode.STORE_TO_HEAP:
        heap._array[item] = extent  # noqa: SLF001 - the same room
        return extent
    return int(heap._array[item])  # noqa: SLF001 - the same room


def check_tensor_info(value: object, ndim: int, *rest: object) -> None:
    """Check that a value is a tensor of ``ndim`` dimensions (-1: any) and, if given, of a dtype."""
    context = _context(rest)
    dtype = str(rest[0]) if len(rest) > 1 else "void"
    if not hasattr(value, "shape") or not hasattr(value, "dtype"):
        raise wrong_type(f"{context}expected a tensor", value)
    if ndim not in (-1, len(value.shape)):
        raise IRValueError(f"{context}expected {ndim} dimensions, got shape {tuple(value.shape)}")
    actual = value.dtype if isinstance(value, NDArray) else dtype_of(np.dtype(value.dtype))
    if dtype not in ("", "void") and str(actual) != dtype:
        raise IRTypeError(f"{context}expected dtype {dtype}, got {actual}")


def check_shape_info(value: object, ndim: int, *context: object) -> None:
    """Check that a value is a shape of ``ndim`` dimensions (-1: any)."""
    if not isinstance(value, tuple | list) or not all(isinstance(x, int) for x in value):
        raise wrong_type(f"{_context(context)}expected a shape", value)
    if ndim not in (-1, len(value)):
        raise IRValueError(
            f"{_context(context)}expected a shape of {ndim} dimensions, got {tuple(value)}"
        )


def check_tuple_info(value: object, size: int, *context: object) -> None:
    """Check that a value is a tuple of ``size`` fields."""
    if not isinstance(value, tuple | list):
        raise wrong_type(f"{_context(context)}expected a tuple", value)
    if len(value) != size:
        raise IRValueError(f"{_context(context)}expected {size} fields, got {len(value)}")


def check_func_info(value: object, *context: object) -> None:
    """Check that a value can be called."""
    if not callable(value):
        raise wrong_type(f"{_context(context)}expected a function", value)


def check_prim_value_info(value: object, dtype: str, *context: object) -> None:
    """Check that a value is a number of a kind: integral, or floating."""
    is_float = DataType(dtype).is_float
    if not isinstance(value, int | float) or isinstance(value, float) is not is_float:
        raise IRTypeError(f"{_context(context)}expected a number of type {dtype}, got {value!r}")


def _context(items: Sequence[object]) -> str:
    text = items[-1] if items and isinstance(items[-1], str) else ""
    return f"{text.strip()}: " if text.strip() else ""


def reshape(value: NDArray, shape: Sequence[int]) -> NDArray:
    """The tensor with another shape; its memory is the same where it is compact."""
    count = 1
    for extent in shape:
        count *= extent
    if count != value.size:
        raise IRValueError(
            f"reshape: {tuple(value.shape)} has {value.size} elements, {tuple(shape)} has {count}"
        )
    compact = value if value.is_contiguous() else NDArray(np.ascontiguousarray(value.numpy()))
    return compact._create_view(tuple(shape))  # noqa: SLF001 - the same room


def reshape_into(value: NDArray, out: NDArray) -> None:
    """Copy the elements to a tensor of another shape; both must have as many."""
    out._array[...] = reshape(value, tuple(out.shape))._array  # noqa: SLF001 - the same room


def view(
    value: NDArray,
    shape: Sequence[int] = (),
    dtype: str | tuple[()] = (),
    offset: int | tuple[()] = (),
) -> NDArray:
    """The memory of a tensor seen with another shape, dtype or start; ``()`` keeps the old."""
    wanted = tuple(shape) if shape != () or value.ndim == 0 else tuple(value.shape)
    kind = DataType(dtype) if isinstance(dtype, str) else value.dtype
    start = int(offset) if isinstance(offset, int) else 0
    if min(wanted, default=0) < 0:
        raise IRValueError(f"view: expected extents of 0 or more, got {wanted}")
    array = np.ascontiguousarray(value._array)  # noqa: SLF001 - the same room
    numpy_dtype = storage_dtype(kind)
    full = wanted if kind.lanes == 1 else (*wanted, kind.lanes)
    size = numpy_dtype.itemsize * int(np.prod(full, dtype=np.int64))
    if start < 0 or start + size > array.nbytes:
        raise IRValueError(
            f"view: {size} bytes at offset {start} do not fit into {array.nbytes}: a tensor of "
            f"shape {tuple(value.shape)} and dtype {value.dtype} as {wanted} of {kind}"
        )
    return NDArray(np.ndarray(full, numpy_dtype, array.data, start), kind)


def to_device(value: object, device_type: int, device_id: int) -> object:
    """The value on a device: there is the CPU alone."""
    if (device_type, device_id) != (1, 0):
        raise IRValueError(
            f"to_device: expected the CPU (1, 0), got device ({device_type}, {device_id})"
        )
    return value


@functools.lru_cache(maxsize=256)
def _planned(sizes: tuple[int, ...], lives: tuple[int, ...]) -> tuple[int, ...]:
    offsets, total = plan_offsets(sizes, list(zip(lives[::2], lives[1::2], strict=True)))
    return (*offsets, total)


def plan_tensors(sizes: Sequence[int], lives: Sequence[int]) -> tuple[int, ...]:
    """The offset of each tensor and the size of the whole; ``lives`` are pairs of steps."""
    return _planned(tuple(sizes), tuple(lives))


def tuple_reset_item(value: object, index: int) -> tuple[()]:
    """Let go of an item of a list; a tuple cannot lose its items and keeps it."""
    if isinstance(value, list):
        value[index] = None
    return ()


LIBRARY: Final[dict[str, Callable[..., object]]] = {
    "alloc_storage": alloc_storage,
    "alloc_tensor": alloc_tensor,
    "check_func_info": check_func_info,
    "check_prim_value_info": check_prim_value_info,
    "check_shape_info": check_shape_info,
    "check_tensor_info": check_tensor_info,
    "check_tuple_info": check_tuple_info,
    "ensure_zero_offset": lambda value: value,
    "make_prim_value": make_prim_value,
    "make_shape": make_shape,
    "make_tuple": lambda *items: items,
    "match_prim_value": match_prim_value,
    "match_shape": match_shape,
    "plan_offsets": plan_tensors,
    "read_if_cond": BUILTINS["to_condition"],
    "reshape": reshape,
    "reshape_into": reshape_into,
    "to_device": to_device,
    "tuple_reset_item": tuple_reset_item,
    "view": view,
    **{
        name: BUILTINS[name]
        for name in ("assert_op", "copy", "debug_print", "invoke_debug_func", "null_value", "print",
                     "shape_of", "shape_to_tensor", "tensor_to_shape", "tuple_getitem")
    },
    **KV_CACHE,
    **PARAM_CACHE,
}  # fmt: skip
"""Name without ``vm.builtin.`` -> function."""

for _name, _function in LIBRARY.items():
    register_func(f"vm.builtin.{_name}", _function, override=True)
