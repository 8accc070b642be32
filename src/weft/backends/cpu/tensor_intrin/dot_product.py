"""What every tensor intrinsic of a dot product computes, as TensorIR for ``tensorize`` to match."""

from __future__ import annotations

from weft.script import tir as T
from weft.tir.function import PrimFunc


def dot_product_desc(
    lanes: int,
    steps: int = 4,
    left: str = "uint8",
    right: str = "int8",
    scope: str = "global",
    result: str = "int32",
) -> PrimFunc:
    """``C[i] += sum of A[k] * B[i, k] over k``, for ``lanes`` sums of ``steps`` products.

    ``left``, ``right`` and ``result`` are the data types of A, B and C; ``scope`` is where the
    sums lie.
    """

    @T.prim_func
    def desc(a: T.handle, b: T.handle, c: T.handle) -> None:
        A = T.match_buffer(a, (steps,), left, offset_factor=1)
        B = T.match_buffer(b, (lanes, steps), right, offset_factor=1)
        C = T.match_buffer(c, (lanes,), result, offset_factor=1, scope=scope)
        with T.block("root"):
            T.reads(C[0:lanes], A[0:steps], B[0:lanes, 0:steps])
            T.writes(C[0:lanes])
            for i, k in T.grid(lanes, steps):
                with T.block("update"):
                    vi, vk = T.axis.remap("SR", [i, k])
                    C[vi] = C[vi] + T.cast(A[vk], result) * T.cast(B[vi, vk], result)

    return desc
