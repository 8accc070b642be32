"""Buffers (typed views of memory with a shape), loads of their elements, and their regions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Final, NoReturn

from weft.ir.expr import ExprLike, IntImm, PrimExpr, Range, as_prim_expr
from weft.ir.node import Array, Node, field, node
from weft.ir.type import PointerType, PrimType
from weft.support import slots
from weft.support.dtype import DataType
from weft.support.errors import IRIndexError, IRTypeError, IRValueError, wrong_type
from weft.support.span import Span
from weft.tir.constant import is_const_int
from weft.tir.expr import Ramp, Var

_KINDS: Final = {"": 1, "default": 1, "auto_broadcast": 2}


def buffer_kind(name: str) -> int:
    """The number of a kind of buffers by its name."""
    if name not in _KINDS:
        raise IRValueError(f"a buffer's type is 'default' or 'auto_broadcast', got {name!r}")
    return _KINDS[name]


@node
class Buffer(Node):
    """A view of the memory at ``data``: element (i, j, ...) of ``shape``.

    ``strides`` in elements, empty for compact row-major; ``elem_offset`` in elements from ``data``;
    ``data_alignment`` in bytes; ``offset_factor`` divides ``elem_offset``. ``buffer_type`` is 1
    for the default kind and 2 for auto-broadcast. All are as in TVM 0.20.
    """

    IS_IDENTIFIED: ClassVar[bool] = True

    data: Var = field(defines=True)
    dtype: DataType
    shape: Array[PrimExpr] = field(defines=True)
    strides: Array[PrimExpr] = field(defines=True)
    elem_offset: PrimExpr = field(defines=True, takes_none=True)
    name: str = field(compare=False)
    data_alignment: int = 64
    offset_factor: int = 1
    buffer_type: int = 1
    axis_separators: Array[PrimExpr] = field(default=())

    READ = 1
    WRITE = 2

    def _check_(self) -> None:
        self.dtype = DataType(self.dtype)
        if self.elem_offset is None:
            self.elem_offset = as_prim_expr(0)
        if isinstance(self.buffer_type, str):
            self.buffer_type = buffer_kind(self.buffer_type)
        for axis in self.axis_separators:
            if isinstance(axis, IntImm) and not 0 <= axis.value <= len(self.shape):
                raise IRValueError(
                    f"a buffer of {len(self.shape)} dimensions has no axis separator {axis.value}"
                )

    def scope(self) -> str:
        """The storage scope: ``global``, ``shared``, ``local`` ..."""
        annotation = self.data.type_annotation
        return (
            (annotation.storage_scope or "global")
            if isinstance(annotation, PointerType)
            else ("global")
        )

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    def __getitem__(self, indices: object) -> BufferLoad | BufferRegion:
        """A load, or a region where an index is a slice (with step 1 or None)."""
        if not isinstance(indices, (tuple, list)):
            indices = (indices,)
        element: BufferLoad | BufferRegion = slots.operators.get().index_buffer(self, indices)
        return element

    def __iter__(self) -> NoReturn:  # of __getitem__ alone, Python would read elements without end
        raise IRTypeError(f"a buffer is not iterable; read the elements of {self.name} by index")

    def vload(
        self, begin: object, dtype: str | None = None, predicate: object = None
    ) -> BufferLoad:
        """A load at ``begin``; with a vector ``dtype``, of that many consecutive elements."""
        return BufferLoad(self, self._vector_indices(begin, dtype), predicate)

    def vstore(
        self,
        begin: ExprLike | Sequence[ExprLike],
        value: ExprLike,
        predicate: ExprLike | None = None,
    ) -> Any:
        """A store at ``begin`` of a scalar or of a vector of consecutive elements."""
        value = as_prim_expr(value)
        indices = self._vector_indices(begin, value.dtype)
        return slots.operators.get().buffer_store(self, value, indices, predicate)

    def _vector_indices(self, begin: Any, dtype: str | None) -> list[PrimExpr]:
        indices = [
            as_prim_expr(i) for i in (begin if isinstance(begin, (list, tuple)) else [begin])
        ]
        if dtype is not None and DataType(dtype).lanes // self.dtype.lanes > 1:
            last = indices[-1]
            if last.dtype.lanes == 1:
                lanes = DataType(dtype).lanes // self.dtype.lanes
                indices[-1] = Ramp(last, IntImm(last.dtype, 1), as_prim_expr(lanes))
        return indices

    def access_ptr(
        self,
        access_mask: int | str,
        ptr_type: str = "handle",
        content_lanes: int = 1,
        offset: object = 0,
        extent: object = None,
    ) -> Any:
        """A pointer into the buffer for intrinsics: ``tvm_access_ptr``."""
        call = slots.operators.get().buffer_access_ptr
        return call(self, access_mask, ptr_type, content_lanes, offset, extent)

    def offset_of(self, indices: Sequence[object]) -> Array[PrimExpr]:
        """The flat element offset of ``indices``, as an array of length 1."""
        return Array(slots.operators.get().buffer_offset(self, indices))

    def get_flattened_buffer(self) -> Buffer:
        """The buffer as one dimension over the same data."""
        flat: Buffer = slots.operators.get().flattened_buffer(self)
        return flat


def check_rank(buffer: Buffer, count: int) -> None:
    """Raise IRIndexError unless the buffer has ``count`` dimensions."""
    if count != len(buffer.shape):
        rank = len(buffer.shape)
        indices = ", ".join("ijklmnop"[:rank]) if 0 < rank <= 8 else ""
        hint = f"; write {buffer.name}[{indices}]" if indices else ""
        raise IRIndexError(
            f"buffer {buffer.name} has {rank} {'dimension' if rank == 1 else 'dimensions'}, "
            f"got {count} {'index' if count == 1 else 'indices'}{hint}"
        )


@node
class BufferLoad(PrimExpr):
    """The element of a buffer at ``indices``; the last index may be a vector."""

    buffer: Buffer
    indices: Array[PrimExpr]
    predicate: PrimExpr | None = None

    def _check_(self) -> None:
        if getattr(self.buffer, "dtype", None) is None:
            raise wrong_type("BufferLoad: expected a Buffer", self.buffer)
        check_rank(self.buffer, len(self.indices))
        lanes, scalable = 1, False
        if self.indices:
            last = self.indices[-1].dtype
            lanes, scalable = last.lanes, last.is_scalable
        dtype = self.buffer.dtype
        if lanes == 1 and not scalable:
            self.dtype = dtype
        else:
            self.dtype = dtype.with_lanes(lanes * dtype.lanes, scalable)


@node
class BufferRegion(Node):
    """The part of a buffer that ``region`` describes: one range for each dimension."""

    buffer: Buffer
    region: Array[Range]

    def _check_(self) -> None:
        check_rank(self.buffer, len(self.region))

    @property
    def dtype(self) -> DataType:
        """The type of the buffer's elements."""
        return self.buffer.dtype

    @staticmethod
    def full_region(buffer: Buffer) -> BufferRegion:
        """The whole buffer."""
        ranges = [Range(n) for n in buffer.shape]
        return BufferRegion(buffer, ranges)

    def as_prim_expr(self) -> PrimExpr:
        """The region as an expression: a load, with a vector index where an extent is not 1."""
        indices = [
            item.min
            if is_const_int(item.extent, 1)
            else Ramp(item.min, IntImm(item.min.dtype, 1), _as_lanes(item.extent))
            for item in self.region
        ]
        return BufferLoad(self.buffer, indices)


def _as_lanes(extent: PrimExpr) -> PrimExpr:
    return IntImm(DataType("int32"), extent.value) if isinstance(extent, IntImm) else extent


def decl_buffer(
    shape: object,
    dtype: str | None = None,
    name: str = "buffer",
    data: Var | None = None,
    strides: Sequence[object] | None = None,
    elem_offset: object = None,
    scope: str = "",
    data_alignment: int = -1,
    offset_factor: int = 0,
    buffer_type: str = "",
    axis_separators: Sequence[int] | None = None,
    span: Span | None = None,
) -> Buffer:
    """A new buffer; parameters as in TVM's ``tir.decl_buffer``.

    Without ``data`` the buffer gets a new pointer variable with its name; ``offset_factor`` > 0
    without ``elem_offset`` gives it a symbolic offset.
    """
    sizes = shape if isinstance(shape, (list, tuple)) else (shape,)
    element = DataType("float32" if dtype is None else dtype)
    for stride in strides or ():
        if isinstance(stride, (str, float)):
            raise IRTypeError(
                f"decl_buffer: expected strides that are integers or expressions, got {stride!r}; "
                "make a variable: tir.Var(name, 'int32')"
            )
    if offset_factor != 0 and elem_offset is None:
        index_type = as_prim_expr(sizes[0]).dtype if sizes else DataType("int32")
        elem_offset = Var(f"{name}_elem_offset", index_type)
    if data is None:
        storage = DataType("int8") if element.is_bool else element
        data = Var(name, PointerType(PrimType(storage), scope or "global"), span)
    elif not isinstance(data, Var):
        raise wrong_type("decl_buffer: expected data to be a Var", data)
    return Buffer(
        data,
        element,
        sizes,
        strides or (),
        elem_offset,
        name,
        64 if data_alignment <= 0 else data_alignment,
        offset_factor or 1,
        buffer_kind(buffer_type),
        [as_prim_expr(axis) for axis in axis_separators or ()],
        span=span,
    )
