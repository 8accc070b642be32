"""mma on 16x16 tiles: ``ldmatrix`` and ``mma.sync`` of PTX, with the fragments in scope ``warp``.

A fragment is a buffer (32 threads, elements a thread) whose layouts are in ``cuda_layout``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any, Final

from weft.ir.expr import PrimExpr
from weft.script import tir as T
from weft.support.errors import IRValueError
from weft.tensor_intrin import cuda_layout as layout
from weft.tensor_intrin.cuda_tile import Pair
from weft.tir import op
from weft.tir.buffer import Buffer
from weft.tir.function import PrimFunc

Layout = Callable[[PrimExpr, PrimExpr], tuple[PrimExpr, PrimExpr]]

M_DIM: Final = 16
N_DIM: Final = 16
WARP_SIZE: Final = 32
HALF_WARP: Final = 16
BYTES: Final = ("int8", "float8_e4m3fn", "float8_e5m2")


def check_choice(what: str, given: str, allowed: Collection[str]) -> None:
    """An error unless ``given`` is one of ``allowed``."""
    if given not in allowed:
        raise IRValueError(f"{what}: expected one of {', '.join(allowed)}, got {given!r}")


def _check_loadable(k_dim: int, dtype: str, matrix_name: str, transposed: bool) -> None:
    check_choice("ldmatrix: matrix_name", matrix_name, ("A", "B"))
    if not (k_dim == 16 and dtype == "float16") and not (k_dim == 32 and dtype in BYTES):
        raise IRValueError(
            f"ldmatrix: expected k_dim 16 of float16 or 32 of {', '.join(BYTES)}, got {k_dim} "
            f"of {dtype}"
        )
    if k_dim == 32 and matrix_name == "A" and transposed:
        raise IRValueError("ldmatrix: A of bytes cannot be transposed, only B")


def _source_offset(
    k_dim: int, is_b: bool, transposed: bool
) -> Callable[[PrimExpr, PrimExpr], PrimExpr]:
    """The offset in shared memory, in rows of ``stride``, at which thread ``tx`` starts to load."""
    if k_dim == 32 and is_b and not transposed:
        return lambda _, stride: stride  # ldmatrix cannot transpose bytes: a loop is emitted
    if k_dim == 32 and not is_b:
        return lambda tx, stride: stride * (tx % 16) + 16 * (tx // 16)
    step = 8 if k_dim == 16 else 16
    if transposed:
        return lambda tx, stride: (
            stride * 8 * (tx // HALF_WARP) + stride * (tx % 8) + step * (tx % HALF_WARP // 8)
        )
    return lambda tx, stride: stride * (tx % HALF_WARP) + 8 * (tx // HALF_WARP)


def _fragment_layout(k_dim: int, is_b: bool, transposed: bool) -> Layout:
    if k_dim == 16:
        return layout.shared_16x16_to_ldmatrix_32x8_layout
    if is_b and not transposed:
        return layout.shared_32x16_to_ldmatrix_32x16_layout
    return layout.shared_16x32_to_ldmatrix_32x16_layout


@dataclass(frozen=True)
class _Load:
    """A tile in shared memory, and the fragment that it becomes."""

    k_dim: int
    dtype: str
    is_b: bool
    transposed: bool
    scope: str

    @property
    def extents(self) -> tuple[int, int]:
        """Rows and columns of the tile."""
        rows, columns = (self.k_dim, N_DIM) if self.is_b else (M_DIM, self.k_dim)
        return (columns, rows) if self.transposed else (rows, columns)

    @property
    def held(self) -> int:
        """The elements of a thread."""
        return M_DIM * self.k_dim // WARP_SIZE

    @property
    def options(self) -> dict[str, Any]:
        """What the buffers of the tile and of the fragment have in common."""
        return {"dtype": self.dtype, "align": 64, "offset_factor": self.extents[1]}


def get_ldmatrix_intrin(
    k_dim: int, dtype: str, matrix_name: str, transposed: bool, shared_scope: str = "shared"
) -> Pair:
    """A tile of an operand, from shared memory into the registers of a warp (``ldmatrix``)."""
    _check_loadable(k_dim, dtype, matrix_name, transposed)
    load = _Load(k_dim, dtype, matrix_name == "B", transposed, shared_scope)
    return _copied_by_elements(load), _copied_by_ldmatrix(load)


def _copied_by_elements(load: _Load) -> PrimFunc:
    (rows, columns), held, tile, shared_scope = load.extents, load.held, load.options, load.scope
    index_map = _fragment_layout(load.k_dim, load.is_b, load.transposed)

    @T.prim_func
    def desc(warp_handle: T.handle, shared_handle: T.handle) -> None:
        shared = T.match_buffer(shared_handle, (rows, columns), scope=shared_scope, **tile)
        warp = T.match_buffer(warp_handle, (WARP_SIZE, held), scope="warp", **tile)
        with T.block("root"):
            T.reads(shared[0:rows, 0:columns])
            T.writes(warp[0:WARP_SIZE, 0:held])
            for i, j in T.grid(rows, columns):
                with T.block("shared_warp"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    T.reads(shared[vi, vj])
                    thread, local = T.meta_var(index_map(vi, vj))
                    T.writes(warp[thread, local])
                    warp[thread, local] = shared[vi, vj]

    return desc


def _copied_by_ldmatrix(load: _Load) -> PrimFunc:
    (rows, columns), held, tile, shared_scope = load.extents, load.held, load.options, load.scope
    offset = _source_offset(load.k_dim, load.is_b, load.transposed)
    turned, dtype = load.transposed is not load.is_b, load.dtype

    @T.prim_func
    def impl(warp_handle: T.handle, shared_handle: T.handle) -> None:
        s0, s1 = T.int32(), T.int32()
        shared = T.match_buffer(
            shared_handle, (rows, columns), scope=shared_scope, strides=[s0, s1], **tile
        )
        warp = T.match_buffer(warp_handle, (WARP_SIZE, held), scope="warp", **tile)
        with T.block("root"):
            T.reads(shared[0:rows, 0:columns])
            T.writes(warp[0:WARP_SIZE, 0:held])
            for tx in T.thread_binding(0, WARP_SIZE, "threadIdx.x"):
                T.evaluate(
                    T.ptx_ldmatrix(
                        turned, 4, ".b16", warp.data, warp.elem_offset + held * tx,
                        shared.access_ptr("r"), offset(tx, s0), dtype=dtype,
                    )
                )  # fmt: skip

    return impl


_SHORT: Final = {
    "float16": "fp16", "float32": "fp32", "int8": "int8", "int32": "int32",
    "float8_e4m3fn": "e4m3", "float8_e5m2": "e5m2",
}  # fmt: skip


def _check_multiplied(k_dim: int, **dtypes: str) -> None:
    if k_dim not in (16, 32):
        raise IRValueError(f"mma: k_dim: expected 16 or 32, got {k_dim}")
    for name, dtype in dtypes.items():
        check_choice(f"mma: {name}", dtype, _SHORT)


@dataclass(frozen=True)
class _Product:
    """What is multiplied: the data types of the fragments, and which of them are transposed."""

    k_dim: int
    dtypes: tuple[str, str, str]
    a_transposed: bool
    b_transposed: bool

    @property
    def held(self) -> tuple[int, int]:
        """The elements of a thread: of an operand, of the result."""
        return M_DIM * self.k_dim // WARP_SIZE, M_DIM * N_DIM // WARP_SIZE

    @property
    def options(self) -> tuple[dict[str, Any], ...]:
        """What is said of the buffers of a, b and c."""
        of_a, of_b, of_c = ({"dtype": dtype, "align": 64, "scope": "warp"} for dtype in self.dtypes)
        return (
            {**of_a, "offset_factor": M_DIM if self.a_transposed else self.k_dim},
            {**of_b, "offset_factor": self.k_dim if self.b_transposed else N_DIM},
            {**of_c, "offset_factor": N_DIM},
        )


def get_mma_intrin(
    k_dim: int,
    a_dtype: str = "float16",
    b_dtype: str = "float16",
    out_dtype: str = "float16",
    a_transposed: bool = False,
    b_transposed: bool = False,
) -> Pair:
    """The product of two 16-wide fragments added to a 16x16 one: two ``mma.sync`` of 8 columns."""
    _check_multiplied(k_dim, a_dtype=a_dtype, b_dtype=b_dtype, out_dtype=out_dtype)
    product = _Product(k_dim, (a_dtype, b_dtype, out_dtype), a_transposed, b_transposed)
    return _multiplied_by_elements(product), _multiplied_by_mma(product)


def _multiplied_by_elements(product: _Product) -> PrimFunc:
    k_dim, (held, total), (a_tile, b_tile, c_tile) = product.k_dim, product.held, product.options
    of_a = _fragment_layout(k_dim, False, False)
    of_b = _fragment_layout(k_dim, True, product.b_transposed)
    of_c = layout.shared_16x16_to_ldmatrix_32x8_layout
    a_transposed, b_transposed, out_dtype = (
        product.a_transposed, product.b_transposed, product.dtypes[2],
    )  # fmt: skip

    def wide(value: PrimExpr) -> PrimExpr:
        return op.cast(out_dtype, value) if out_dtype in ("float32", "int32") else value

    def turn(i: PrimExpr, j: PrimExpr, flag: bool) -> tuple[PrimExpr, PrimExpr]:
        return (j, i) if flag else (i, j)

    @T.prim_func
    def desc(a: T.handle, b: T.handle, c: T.handle) -> None:
        A = T.match_buffer(a, (WARP_SIZE, held), **a_tile)
        B = T.match_buffer(b, (WARP_SIZE, held), **b_tile)
        C = T.match_buffer(c, (WARP_SIZE, total), **c_tile)
        with T.block("root"):
            T.reads(C[0:WARP_SIZE, 0:total], A[0:WARP_SIZE, 0:held], B[0:WARP_SIZE, 0:held])
            T.writes(C[0:WARP_SIZE, 0:total])
            for i, j, k in T.grid(M_DIM, N_DIM, k_dim):
                with T.block("C"):
                    vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                    ta, la = T.meta_var(of_a(*turn(vi, vk, a_transposed)))
                    tb, lb = T.meta_var(of_b(*turn(vk, vj, b_transposed)))
                    tc, lc = T.meta_var(of_c(vi, vj))
                    T.reads(C[tc, lc], A[ta, la], B[tb, lb])
                    T.writes(C[tc, lc])
                    C[tc, lc] = C[tc, lc] + wide(A[ta, la]) * wide(B[tb, lb])

    return desc


def _multiplied_by_mma(product: _Product) -> PrimFunc:
    (held, total), (a_tile, b_tile, c_tile) = product.held, product.options
    shape = f"m16n8k{product.k_dim}"
    types = [_SHORT[dtype] for dtype in product.dtypes]

    def half(position: int, a: Buffer, b: Buffer, c: Buffer, tx: PrimExpr) -> Any:
        """One ``mma.sync``, for the left or the right half of the columns."""
        return T.ptx_mma(
            shape, "row", "col", *types,
            a.data, a.elem_offset + tx * held,
            b.data, b.elem_offset + tx * held + position * (held // 2),
            c.data, c.elem_offset + tx * total + position * (total // 2),
            False, dtype=product.dtypes[2],
        )  # fmt: skip

    @T.prim_func
    def impl(a: T.handle, b: T.handle, c: T.handle) -> None:
        A = T.match_buffer(a, (WARP_SIZE, held), **a_tile)
        B = T.match_buffer(b, (WARP_SIZE, held), **b_tile)
        C = T.match_buffer(c, (WARP_SIZE, total), **c_tile)
        with T.block("root"):
            T.reads(C[0:WARP_SIZE, 0:total], A[0:WARP_SIZE, 0:held], B[0:WARP_SIZE, 0:held])
            T.writes(C[0:WARP_SIZE, 0:total])
            for tx in T.thread_binding(0, WARP_SIZE, "threadIdx.x"):
                T.evaluate(half(0, A, B, C, tx))
                T.evaluate(half(1, A, B, C, tx))

    return impl


def get_mma_fill_intrin(dtype: str, local_size: int) -> Pair:
    """A 16x16 fragment of zeros."""
    zero = op.const(0, dtype)
    index_map = layout.shared_16x16_to_ldmatrix_32x8_layout

    @T.prim_func
    def desc(a: T.handle) -> None:
        C = T.match_buffer(a, (WARP_SIZE, local_size), dtype=dtype, scope="warp")
        with T.block("root"):
            T.reads()
            T.writes(C[0:WARP_SIZE, 0:local_size])
            for i, j in T.grid(M_DIM, N_DIM):
                with T.block("C_warp"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    thread, local = T.meta_var(index_map(vi, vj))
                    T.reads()
                    T.writes(C[thread, local])
                    C[thread, local] = zero

    @T.prim_func
    def impl(a: T.handle) -> None:
        C = T.match_buffer(a, (WARP_SIZE, local_size), dtype=dtype, scope="warp", offset_factor=1)
        with T.block("root"):
            T.reads()
            T.writes(C[0:WARP_SIZE, 0:local_size])
            for _tx in T.thread_binding(0, WARP_SIZE, "threadIdx.x"):
                T.evaluate(T.mma_fill(local_size, C.data, C.elem_offset, dtype=dtype))

    return desc, impl


def get_mma_store_intrin(
    dtype: str, local_size: int, scope: str = "global", use_mma_store_intrinic: bool = True
) -> Pair:
    """A 16x16 fragment into memory: by ``mma_store``, or by one store an element."""
    store = _stored_by_mma_store if use_mma_store_intrinic else _stored_by_threads
    return _stored_by_elements(dtype, local_size, scope), store(dtype, local_size, scope)


def _stored_by_elements(dtype: str, local_size: int, scope: str) -> PrimFunc:
    index_map = layout.shared_16x16_to_ldmatrix_32x8_layout

    @T.prim_func
    def desc(a: T.handle, c: T.handle) -> None:
        W = T.match_buffer(a, (WARP_SIZE, local_size), dtype=dtype, scope="warp")
        C = T.match_buffer(c, (M_DIM, N_DIM), dtype=dtype, scope=scope)
        with T.block("root"):
            T.reads(W[0:WARP_SIZE, 0:local_size])
            T.writes(C[0:M_DIM, 0:N_DIM])
            for i, j in T.grid(M_DIM, N_DIM):
                with T.block("C_warp"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    thread, local = T.meta_var(index_map(vi, vj))
                    T.reads(W[thread, local])
                    T.writes(C[vi, vj])
                    C[vi, vj] = W[thread, local]

    return desc


def _stored_by_mma_store(dtype: str, local_size: int, scope: str) -> PrimFunc:
    held = {"dtype": dtype, "scope": "warp"}

    @T.prim_func
    def impl(a: T.handle, c: T.handle) -> None:
        s0, s1 = T.int32(), T.int32()
        W = T.match_buffer(a, (WARP_SIZE, local_size), offset_factor=1, **held)
        C = T.match_buffer(
            c, (M_DIM, N_DIM), dtype=dtype, scope=scope, offset_factor=1, strides=[s0, s1]
        )
        with T.block("root"):
            T.reads(W[0:WARP_SIZE, 0:local_size])
            T.writes(C[0:M_DIM, 0:N_DIM])
            for _tx in T.thread_binding(0, WARP_SIZE, "threadIdx.x"):
                T.evaluate(
                    T.mma_store(
                        M_DIM, N_DIM, C.access_ptr("w"), W.data, W.elem_offset, s0, dtype=dtype
                    )
                )

    return impl


def _stored_by_threads(dtype: str, local_size: int, scope: str) -> PrimFunc:
    back = layout.ldmatrix_32x8_to_shared_16x16_layout
    held = {"dtype": dtype, "scope": "warp"}

    @T.prim_func
    def simple(a: T.handle, c: T.handle) -> None:
        s0, s1 = T.int32(), T.int32()
        W = T.match_buffer(a, (WARP_SIZE, local_size), offset_factor=1, **held)
        C = T.match_buffer(
            c, (M_DIM, N_DIM), dtype=dtype, scope=scope, offset_factor=1, strides=[s0, s1]
        )
        with T.block("root"):
            T.reads(W[0:WARP_SIZE, 0:local_size])
            T.writes(C[0:M_DIM, 0:N_DIM])
            for tx in T.thread_binding(0, WARP_SIZE, "threadIdx.x"):
                for local in range(local_size):
                    row, column = T.meta_var(back(tx, local))
                    C[row, column] = W[tx, local]

    return simple
