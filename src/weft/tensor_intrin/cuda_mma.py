"""mma on 16x16 tiles: ``ldmatrix`` and ``mma.sync`` of PTX, with the fragments in scope ``warp``.

A fragment is a buffer (32 threads, elements a thread) whose layouts are in ``cuda_layout``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, Final

from weft.ir.expr import PrimExpr
from weft.script import tir as T
from weft.support.errors import IRValueError
from weft.tensor_intrin import cuda_layout as layout
from weft.tensor_intrin.cuda_tile import Pair
from weft.tir import op
from weft.tir.buffer import Buffer

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


def get_ldmatrix_intrin(
    k_dim: int, dtype: str, matrix_name: str, transposed: bool, shared_scope: str = "shared"
) -> Pair:
    """A tile of an operand, from shared memory into the registers of a warp (``ldmatrix``)."""
    _check_loadable(k_dim, dtype, matrix_name, transposed)
    is_b = matrix_name == "B"
    rows, columns = (k_dim, N_DIM) if is_b else (M_DIM, k_dim)
    if transposed:
        rows, columns = columns, rows
    held = M_DIM * k_dim // WARP_SIZE
    offset = _source_offset(k_dim, is_b, transposed)
    index_map = _fragment_layout(k_dim, is_b, transposed)
    turned = transposed is not is_b
    tile = {"dtype": dtype, "align": 64, "offset_factor": columns}

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

    return desc, impl


_SHORT: Final = {
    "float16": "fp16", "float32": "fp32", "int8": "int8", "int32": "int32",
    "float8_e4m3fn": "e4m3", "float8_e5m2": "e5m2",
}  # fmt: skip


def _check_multiplied(k_dim: int, **dtypes: str) -> None:
    if k_dim not in (16, 32):
        raise IRValueError(f"mma: k_dim: expected 16 or 32, got {k_dim}")
    for name, dtype in dtypes.items():
        check_choice(f"mma: {name}", dtype, _SHORT)


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
    held, total = M_DIM * k_dim // WARP_SIZE, M_DIM * N_DIM // WARP_SIZE
    of_a = _fragment_layout(k_dim, False, False)
    of_b = _fragment_layout(k_dim, True, b_transposed)
    of_c = layout.shared_16x16_to_ldmatrix_32x8_layout
    shape = f"m16n8k{k_dim}"
    types = [_SHORT[dtype] for dtype in (a_dtype, b_dtype, out_dtype)]
    kind = {"align": 64, "scope": "warp"}
    a_tile = {"dtype": a_dtype, "offset_factor": M_DIM if a_transposed else k_dim, **kind}
    b_tile = {"dtype": b_dtype, "offset_factor": k_dim if b_transposed else N_DIM, **kind}
    c_tile = {"dtype": out_dtype, "offset_factor": N_DIM, **kind}

    def wide(value: PrimExpr) -> PrimExpr:
        return op.cast(out_dtype, value) if out_dtype in ("float32", "int32") else value

    def turn(i: PrimExpr, j: PrimExpr, flag: bool) -> tuple[PrimExpr, PrimExpr]:
        return (j, i) if flag else (i, j)

    def half(position: int, a: Buffer, b: Buffer, c: Buffer, tx: PrimExpr) -> Any:
        """One ``mma.sync``, for the left or the right half of the columns."""
        return T.ptx_mma(
            shape, "row", "col", *types,
            a.data, a.elem_offset + tx * held,
            b.data, b.elem_offset + tx * held + position * (held // 2),
            c.data, c.elem_offset + tx * total + position * (total // 2),
            False, dtype=out_dtype,
        )  # fmt: skip

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

    return desc, impl


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
    index_map = layout.shared_16x16_to_ldmatrix_32x8_layout
    back = layout.ldmatrix_32x8_to_shared_16x16_layout
    held = {"dtype": dtype, "scope": "warp"}

    @T.prim_func
    def desc(a: T.handle, c: T.handle) -> None:
        W = T.match_buffer(a, (WARP_SIZE, local_size), **held)
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

    return desc, impl if use_mma_store_intrinic else simple
