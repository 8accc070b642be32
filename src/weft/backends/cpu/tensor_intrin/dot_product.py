"""What every tensor intrinsic of a dot product computes, as TensorIR for ``tensorize`` to match.

``register_dot_product`` makes such an intrinsic of the one expression in which processors differ.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from weft.ir.expr import PrimExpr
from weft.script import tir as T
from weft.tir.buffer import Buffer
from weft.tir.function import PrimFunc
from weft.tir.tensor_intrinsic import TensorIntrin

Add: TypeAlias = Callable[[PrimExpr, PrimExpr, Buffer], Any]
"""(the sums so far, all numbers of A as one scalar, B in a row) -> the sums with the products."""


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


def _implementation(
    lanes: int, steps: int, left: str, right: str, result: str, add: Add
) -> PrimFunc:
    @T.prim_func
    def impl(a: T.handle, b: T.handle, c: T.handle) -> None:
        A = T.match_buffer(a, (steps,), left, offset_factor=1)
        B = T.match_buffer(b, (lanes, steps), right, offset_factor=1)
        C = T.match_buffer(c, (lanes,), result, offset_factor=1)
        with T.block("root"):
            T.reads(C[0:lanes], A[0:steps], B[0:lanes, 0:steps])
            T.writes(C[0:lanes])
            B_flat = T.decl_buffer((lanes * steps,), right, data=B.data, elem_offset=B.elem_offset)
            packed = T.reinterpret(result, A.vload([0], f"{left}x{steps}"))
            C[T.ramp(0, 1, lanes)] = add(C.vload([0], f"{result}x{lanes}"), packed, B_flat)

    return impl


def register_dot_product(
    name: str, lanes: int, steps: int, left: str, right: str, add: Add, result: str = "int32"
) -> None:
    """Register ``dot_product_desc`` of these numbers with ``add`` as its implementation."""

    def make() -> tuple[PrimFunc, PrimFunc]:
        description = dot_product_desc(lanes, steps, left, right, result=result)
        return description, _implementation(lanes, steps, left, right, result, add)

    TensorIntrin.register_maker(name, make)
