"""NDArray: the array that users and compiled code exchange, on the CPU a face on a numpy array.

The numpy array's base owns the memory (design.md 3.10); an NDArray adds what a native call needs at
once: address, shape, data type, and whether the data is compact. The memory is always writable, so
DLPack exports write through. Flow: user → NDArray → checked wrapper (wrapper.py) → native code.
"""

from __future__ import annotations

import math
import operator
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol, SupportsIndex, TypeGuard

import numpy as np
import numpy.typing as npt

from weft.runtime.device import CPU, Device, require_device
from weft.runtime.device_api import CPU_TYPE, Memory
from weft.runtime.memory.allocation import ALIGNMENT, aligned_empty, data_address
from weft.runtime.memory.dlpack import export_capsule, import_array
from weft.support.dtype import DataType, to_numpy_dtype
from weft.support.errors import IRIndexError, IRTypeError, IRValueError, UnsupportedError

Array = np.ndarray
Allocate = Callable[[tuple[int, ...], np.dtype, int], tuple[Array, int]]
"""Gives an array of a shape, a type and so many bytes, and its address."""
_DTYPES: dict[np.dtype, DataType] = {}
_STORAGE: dict[str, np.dtype] = {}


def dtype_of(numpy_dtype: np.dtype) -> DataType:
    """The data type of numpy's; raise IRTypeError for one that weft has not."""
    dtype = _DTYPES.get(numpy_dtype)
    if dtype is None:
        if numpy_dtype.kind not in "biufV":
            raise IRTypeError(f"expected an array of real numbers, got numpy type {numpy_dtype}")
        if not numpy_dtype.isnative:
            told = f"got numpy type {numpy_dtype}; x.astype('{numpy_dtype.newbyteorder()}') has it"
            raise IRTypeError(f"expected an array in native byte order, {told}")
        dtype = _DTYPES[numpy_dtype] = DataType(numpy_dtype)
    return dtype


def dtype_of_values(values: Array) -> DataType:
    """The data type of values that are to be converted, in whatever byte order they are."""
    return dtype_of(values.dtype if values.dtype.isnative else values.dtype.newbyteorder("="))


def storage_dtype(dtype: str) -> np.dtype:
    """The numpy type that stores one lane of ``dtype``."""
    storage = _STORAGE.get(dtype)
    if storage is None:
        parsed = DataType(dtype)
        if parsed.is_scalable or (parsed.bits < 8 and not parsed.is_bool):
            raise UnsupportedError(f"expected a type of whole bytes for an array, got {dtype}")
        storage = _STORAGE[dtype] = to_numpy_dtype(parsed)
    return storage


class NDArray:
    """An n-dimensional array on the CPU.

    ``NDArray(array)`` wraps a writable numpy array without a copy; users call ``weft.nd.array``,
    which copies. With a vector type (``float32x4``) the numpy array has one more, last axis.
    ``==`` is identity, as TVM has it; compare ``a.numpy()``.
    """

    __slots__ = ("__weakref__", "_address", "_array", "_compact", "dtype", "shape")

    shape: tuple[int, ...]
    dtype: DataType

    def __init__(self, array: Array, dtype: DataType | None = None) -> None:
        flags = array.flags
        if not flags.writeable:
            raise IRValueError("expected a writable numpy array, got a read-only one; copy it")
        self._array = array
        self._address = data_address(array)
        self._compact = flags.carray
        self.dtype = dtype_of(array.dtype) if dtype is None else dtype
        self.shape = array.shape if dtype is None or dtype.lanes == 1 else array.shape[:-1]

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return self._array.size

    @property
    def strides(self) -> tuple[int, ...]:
        """Steps between neighbours along each axis, in elements."""
        step = self._array.itemsize * self.dtype.lanes
        return tuple(stride // step for stride in self._array.strides[: self.ndim])

    @property
    def device(self) -> Device:
        """Where the array lives: always the CPU."""
        return CPU

    @property
    def T(self) -> NDArray:
        """The transposed view."""
        if self.dtype.lanes == 1:
            return NDArray(self._array.T)
        return NDArray(self._array.transpose(*reversed(range(self.ndim)), self.ndim), self.dtype)

    def numpy(self) -> Array:
        """A copy as a numpy array; ``numpy.from_dlpack(a)`` gives a view."""
        return self._array.copy()

    def asnumpy(self) -> Array:
        """The older name of ``numpy()``."""
        return self.numpy()

    @property
    def memory(self) -> Memory:
        """The bytes of the elements, which are in order where the array is compact."""
        return Memory(CPU_TYPE, 0, self._address, self._array.nbytes, self._array)

    def _is_alike(self, other: NDArray) -> bool:
        """Whether the bytes of one are those of the other after a copy."""
        return (
            self.shape == other.shape
            and self.dtype == other.dtype
            and self._compact
            and other._compact
        )

    def _values(self) -> Array:
        """The elements on the CPU, perhaps in this array's own memory."""
        return self._array

    def item(self) -> bool | int | float | complex:
        """The one element as a Python number."""
        number: bool | int | float | complex = self._one(self._array.item)
        return number

    def tolist(self) -> Any:
        """Nested lists of Python numbers."""
        return self._array.tolist()

    def copyfrom(self, source: object) -> NDArray:
        """Copy the elements of ``source`` (same shape, converted to this type) into this array."""
        values = _as_numpy(source)
        if values.shape != self._array.shape:
            raise IRValueError(
                f"copyfrom: expected an array of shape {self.shape}, got {values.shape}"
            )
        dtype_of_values(values)
        self._array[...] = values
        return self

    def copyto(self, target: NDArray | Device, mem_scope: str | None = None) -> NDArray:
        """Copy into ``target``: an NDArray of the same shape, or a device, for a fresh one."""
        if isinstance(target, NDArray):
            return target.copyfrom(self)
        if isinstance(target, Device):
            there = empty(self.shape, self.dtype, target, mem_scope)
            return _copied(there, self) if self._compact else there.copyfrom(self)
        raise IRTypeError(f"copyto: expected an NDArray or a Device, got {type(target).__name__}")

    def same_as(self, other: object) -> bool:
        """Whether both names mean one object."""
        return self is other

    def structural_bytes(self) -> bytes:
        """Type, shape and content as bytes: what structural equality of programs compares."""
        return f"{self.dtype}{list(self.shape)}".encode() + self._array.tobytes()

    def is_contiguous(self) -> bool:
        """Whether the data is compact, row-major."""
        return bool(self._array.flags.c_contiguous)

    def to_dlpack(self) -> object:
        """A DLPack capsule on this memory."""
        return export_capsule(self._array, self.dtype)

    def __dlpack__(self, *, stream: object = None, **kwargs: object) -> object:
        if stream is not None:
            kwargs["stream"] = stream
        return export_capsule(self._array, self.dtype, **kwargs)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> Array:
        if copy:
            return np.array(self._array, dtype=dtype)
        return np.asarray(self._array, dtype=dtype)

    def __getitem__(self, index: Any) -> Any:
        """Indexing as in numpy: slices give views, index arrays copies, one element a number."""
        try:
            part = self._array[index if self.dtype.lanes == 1 else _of_vectors(index)]
        except IndexError as error:
            raise self._index_error(error) from error
        return NDArray(part, self.dtype) if isinstance(part, np.ndarray) else part

    def __setitem__(self, index: Any, value: object) -> None:
        values = _as_numpy(value)
        dtype_of_values(values)
        try:
            self._array[index if self.dtype.lanes == 1 else _of_vectors(index)] = values
        except IndexError as error:
            raise self._index_error(error) from error
        except ValueError as error:
            raise IRValueError(f"array of shape {self.shape}: {error}") from error

    def _index_error(self, error: IndexError) -> IRIndexError:
        return IRIndexError(f"array of shape {self.shape}: {str(error).partition(chr(10))[0]}")

    def __len__(self) -> int:
        if not self.shape:
            raise IRTypeError("an array of shape () has no length; a.item() gives its value")
        return len(self._array)

    def __iter__(self) -> Iterator[NDArray | bool | int | float]:
        for position in range(len(self)):
            yield self[position]

    def __bool__(self) -> bool:
        return bool(self._one(self._array.item))

    def __float__(self) -> float:
        return float(self._one(self._array.item))

    def __int__(self) -> int:
        return int(self._one(self._array.item))

    def _one(self, read: Callable[[], object]) -> Any:
        if self._array.size != 1:
            raise IRValueError(f"expected an array of one element, got shape {self.shape}")
        return read()

    def __reduce__(self) -> tuple[object, ...]:
        return _restored, (self._array.copy(), str(self.dtype))

    def __str__(self) -> str:
        return str(self._array)

    def __repr__(self) -> str:
        return f"<weft.nd.NDArray shape={self.shape}, {self.device}>\n{self._array!r}"

    def _create_view(self, shape: Sequence[int], dtype: str | None = None) -> NDArray:
        """The same memory under another shape; needs compact data."""
        stored = self._array if dtype is None else self._array.view(storage_dtype(dtype))
        if min(shape, default=0) < 0:
            raise IRValueError(f"expected extents of 0 or more, got {tuple(shape)}")
        if not self._compact or stored.size < (size := math.prod(shape)):
            raise IRValueError(
                f"expected compact data of at least {tuple(shape)} elements, got {self.shape}"
            )
        return NDArray(stored.reshape(-1)[:size].reshape(tuple(shape)))


def _of_vectors(index: Any) -> tuple[Any, ...]:
    """The index of numpy's array for one of elements that are vectors: their lanes stay whole."""
    return (*index, slice(None)) if isinstance(index, tuple) else (index, slice(None))


def _restored(values: Array, dtype: str) -> NDArray:
    """A fresh array of a type, from the values that were pickled."""
    kind = DataType(dtype)
    result = fresh(values.shape if kind.lanes == 1 else values.shape[:-1], kind)
    result._array[...] = values
    return result


class DeviceArray(NDArray):
    """A compact array on a device other than the CPU, which only its ``DeviceAPI`` can read.

    It is copied as a whole, to the CPU and from there; what needs its elements is an error.
    """

    __slots__ = ("_device", "_memory")

    def __init__(self, memory: Memory, shape: tuple[int, ...], dtype: DataType) -> None:
        self._device = Device(memory.device_type, memory.device_id)
        self._memory = memory
        self.shape, self.dtype, self._compact = shape, dtype, True

    @property
    def memory(self) -> Memory:
        """The bytes of the elements, in order."""
        return self._memory

    def _elements(self) -> Any:
        raise UnsupportedError(
            f"expected an array on the CPU, got one of shape {self.shape} on {self._device}; "
            "copy it first: a.copyto(weft.cpu())"
        )

    _array: Any = property(_elements)
    _address: Any = property(_elements)

    @property
    def device(self) -> Device:
        """Where the array lives."""
        return self._device

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape) * self.dtype.lanes

    @property
    def strides(self) -> tuple[int, ...]:
        """Steps between neighbours along each axis, in elements."""
        return tuple([math.prod(self.shape[axis + 1 :]) for axis in range(self.ndim)])

    def numpy(self) -> Array:
        """A copy as a numpy array."""
        return _copied(fresh(self.shape, self.dtype), self)._array

    def _values(self) -> Array:
        return self.numpy()

    def copyfrom(self, source: object) -> NDArray:
        """Copy the elements of ``source`` (same shape, converted to this type) to the device."""
        if not isinstance(source, NDArray) or not self._is_alike(source):
            source = fresh(self.shape, self.dtype).copyfrom(source)
        return _copied(self, source)

    def is_contiguous(self) -> bool:
        """It always is."""
        return True

    def structural_bytes(self) -> bytes:
        """Type, shape and content as bytes."""
        return NDArray(self.numpy(), self.dtype).structural_bytes()

    def __dlpack_device__(self) -> tuple[int, int]:
        return (self._device.device_type, self._device.device_id)

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> Array:
        return np.asarray(self.numpy(), dtype=dtype)

    def __reduce__(self) -> tuple[object, ...]:
        return _restored, (self.numpy(), str(self.dtype))

    def __str__(self) -> str:
        return str(self.numpy())

    def __repr__(self) -> str:
        return f"<weft.nd.NDArray shape={self.shape}, {self.device}>\n{self.numpy()!r}"


def _copied(target: NDArray, source: NDArray) -> NDArray:
    """``target`` with the bytes of ``source``, by the device that is not the CPU if one is not."""
    devices = [item for item in (target.device, source.device) if item != CPU] or [CPU]
    if devices[0].device_type != devices[-1].device_type:
        source, devices = NDArray(source.numpy(), source.dtype), devices[:1]
    _, api = require_device(devices[0])
    api.copy(target.memory, source.memory, target.memory.nbytes)
    for device in devices:
        api.sync(device.device_id)
    return target


def empty(
    shape: Iterable[SupportsIndex] | SupportsIndex,
    dtype: str = "float32",
    device: Device | str | None = None,
    mem_scope: str | None = None,
) -> NDArray:
    """An uninitialised array in fresh memory, 64-byte aligned."""
    try:
        extents = shape if isinstance(shape, Iterable) else (shape,)
        sizes = tuple([operator.index(extent) for extent in extents])
    except TypeError as error:
        raise IRTypeError(f"empty: expected a shape of integers, got {shape!r}") from error
    if sizes and min(sizes) < 0:
        raise IRValueError(f"empty: expected extents of 0 or more, got shape {sizes}")
    if device is None:
        return fresh(sizes, DataType(dtype))
    return _on_device(sizes, DataType(dtype), device)


def _on_device(shape: tuple[int, ...], dtype: DataType, device: Device | str | int) -> NDArray:
    """An uninitialised array in memory that its device has given."""
    where, api = require_device(device)
    full, storage, nbytes = _layout(shape, dtype)
    try:
        memory = api.alloc(where.device_id, nbytes, ALIGNMENT)
    except IRValueError as error:
        text = f"no memory for an array of shape {shape}, {nbytes} bytes"
        raise IRValueError(text) from error
    if where != CPU:
        return DeviceArray(memory, shape, dtype)
    block: Any = memory.owner
    return compact(np.ndarray(full, storage, block), memory.address, shape, dtype)


def fresh(shape: tuple[int, ...], dtype: DataType, allocate: Allocate = aligned_empty) -> NDArray:
    """``empty`` on the CPU for arguments that are known to be right: the runtime's own."""
    memory, address = allocate(*_layout(shape, dtype))
    return compact(memory, address, shape, dtype)


def _layout(shape: tuple[int, ...], dtype: DataType) -> tuple[tuple[int, ...], np.dtype, int]:
    """How a compact array is stored: the shape and type of numpy's, and its bytes."""
    storage = storage_dtype(dtype)
    full = shape if dtype.lanes == 1 else (*shape, dtype.lanes)
    nbytes = storage.itemsize
    for extent in full:
        nbytes *= extent
    if nbytes >> 62:
        raise IRValueError(f"expected an array of less than 2**62 bytes, got shape {shape}")
    return full, storage, nbytes


def compact(array: Array, address: int, shape: tuple[int, ...], dtype: DataType) -> NDArray:
    """The NDArray on compact writable memory of which everything is known: nothing is looked up."""
    result = NDArray.__new__(NDArray)
    result._array = array
    result._address = address
    result._compact = True
    result.dtype = dtype
    result.shape = shape
    return result


def array(arr: object, device: Device | str | None = None, mem_scope: str | None = None) -> NDArray:
    """A fresh NDArray with the values of ``arr``: numpy array, nested lists, number, torch tensor,
    NDArray, or anything with ``__dlpack__``. The values are always copied.
    """
    if isinstance(arr, NDArray):
        return empty(arr.shape, arr.dtype, device, mem_scope).copyfrom(arr)
    source = _as_numpy(arr)
    if not source.dtype.isnative:
        source = source.astype(source.dtype.newbyteorder("="))
    if device is not None and require_device(device)[0] != CPU:
        return empty(source.shape, dtype_of(source.dtype), device).copyfrom(source)
    result = fresh(source.shape, dtype_of(source.dtype))
    result._array[...] = source
    return result


def from_dlpack(dltensor: object) -> NDArray:
    """An NDArray on the memory of ``dltensor`` (an object with ``__dlpack__``, or a capsule).

    No copy is made, except of read-only data.
    """
    if isinstance(dltensor, NDArray):
        return NDArray(dltensor._array, dltensor.dtype)
    if isinstance(dltensor, np.ndarray) and not dltensor.flags.writeable:
        return array(dltensor)
    imported = import_array(dltensor)
    return NDArray(imported if imported.flags.writeable else imported.copy())


def numpyasarray(np_data: Array) -> NDArray:
    """An NDArray on the memory of a numpy array, without a copy where it is writable."""
    if not isinstance(np_data, np.ndarray):
        raise IRTypeError(f"expected a numpy array, got {type(np_data).__name__}")
    return NDArray(np_data) if np_data.flags.writeable else array(np_data)


class TorchTensor(Protocol):
    """A tensor of torch, which has no types here."""

    def detach(self) -> TorchTensor:
        """The values, without the graph of gradients."""


def is_torch_tensor(value: object) -> TypeGuard[TorchTensor]:
    """Whether ``value`` is a torch tensor; torch is not imported for the question."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def _as_numpy(value: Any) -> Array:
    """The values of ``value`` as a numpy array, which may share its memory."""
    if isinstance(value, np.ndarray):
        return value
    if isinstance(value, NDArray):
        return value._values()
    if is_torch_tensor(value):
        return import_array(value.detach())
    try:
        if hasattr(value, "__dlpack__") and not isinstance(value, np.generic):
            return import_array(value)
        converted = np.array(value)
    except (ValueError, TypeError, BufferError) as error:
        raise IRTypeError(
            f"expected numbers, nested lists of one shape, or an array, got "
            f"{type(value).__name__}: {error}"
        ) from error
    if converted.dtype.kind not in "biufV":
        raise IRTypeError(
            f"expected numbers, nested lists of one shape, or an array, got {type(value).__name__} "
            f"of numpy type {converted.dtype}"
        )
    return converted
