"""Tensor cores of NVIDIA GPUs: the table of intrinsics and the groups that schedules use.

``WMMA_…`` are CUDA's wmma fragments, ``LDMATRIX_…`` and ``MMA_…`` PTX's mma on 16x16 tiles. An
intrinsic is made when it is first used. Names are TVM 0.20's, constants included.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Final, NamedTuple

from weft.support.errors import IRAttributeError
from weft.tensor_intrin import cuda_layout, cuda_m16n8k8, cuda_mma, cuda_wmma
from weft.tensor_intrin.cuda_mma import check_choice
from weft.tir.function import PrimFunc
from weft.tir.tensor_intrinsic import TensorIntrin

shared_16x16_to_ldmatrix_32x8_layout = cuda_layout.shared_16x16_to_ldmatrix_32x8_layout
shared_16x32_to_ldmatrix_32x16_layout = cuda_layout.shared_16x32_to_ldmatrix_32x16_layout
shared_32x16_to_ldmatrix_32x16_layout = cuda_layout.shared_32x16_to_ldmatrix_32x16_layout
ldmatrix_32x8_to_shared_16x16_layout = cuda_layout.ldmatrix_32x8_to_shared_16x16_layout
get_ldmatrix_intrin = cuda_mma.get_ldmatrix_intrin
get_mma_intrin = cuda_mma.get_mma_intrin
get_mma_fill_intrin = cuda_mma.get_mma_fill_intrin
get_mma_store_intrin = cuda_mma.get_mma_store_intrin
get_wmma_load_intrin = cuda_wmma.get_wmma_load_intrin
get_wmma_fill_intrin = cuda_wmma.get_wmma_fill_intrin
get_wmma_store_intrin = cuda_wmma.get_wmma_store_intrin
get_wmma_sync_intrin = cuda_wmma.get_wmma_sync_intrin


class Row(NamedTuple):
    """An intrinsic: the constant that names it (if any), its name, how it is made."""

    constant: str
    name: str
    make: Callable[..., tuple[PrimFunc, PrimFunc]]
    arguments: tuple[object, ...]


SHORT: Final = {
    "float16": "f16", "float32": "f32", "int8": "i8", "int32": "i32", "float8_e4m3fn": "e4m3",
    "float8_e5m2": "e5m2",
}  # fmt: skip
LOAD_SCOPES: Final = {"shared": "", "shared.dyn": "_dyn"}
RESULTS: Final = ("float16", "float32", "int32")
STORE_SCOPES: Final = ("global", "shared", "shared.dyn")


def _ldmatrix_rows() -> Iterator[Row]:
    for dtype, k_dim, scopes in (
        ("float16", 16, ("shared", "shared.dyn")),
        ("int8", 32, ("shared",)),
        ("float8_e4m3fn", 32, ("shared",)),
        ("float8_e5m2", 32, ("shared",)),
    ):
        for matrix in "AB":
            for transposed in (False, True):
                if k_dim == 32 and matrix == "A" and transposed:
                    continue
                for scope in scopes:
                    turned = "_trans" if transposed else ""
                    tail = f"{turned}{LOAD_SCOPES[scope]}"
                    yield Row(
                        f"LDMATRIX_{SHORT[dtype]}_{matrix}{tail.upper()}_INTRIN",
                        f"mma_ldmatrix_{SHORT[dtype]}_{matrix.lower()}{tail}",
                        get_ldmatrix_intrin,
                        (k_dim, dtype, matrix, transposed, scope),
                    )


def _mma_rows() -> Iterator[Row]:
    for dtype, out, k_dim in (
        ("float16", "float32", 16),
        ("float16", "float16", 16),
        ("int8", "int32", 32),
        ("float8_e5m2", "float32", 32),
        ("float8_e4m3fn", "float32", 32),
    ):
        for turn_a in (False, True) if k_dim == 16 else (False,):
            for turn_b in (False, True):
                kind = f"{SHORT[dtype]}{SHORT[dtype]}{SHORT[out]}"
                tail = ("_trans_a" if turn_a else "") + ("_trans_b" if turn_b else "")
                yield Row(
                    f"MMA_{kind}{tail.upper()}_INTRIN",
                    f"mma_{kind}{tail}",
                    get_mma_intrin,
                    (k_dim, dtype, dtype, out, turn_a, turn_b),
                )
    for dtype in ("float32", "float16", "int32"):
        name = f"fill_16x16_{SHORT[dtype]}"
        yield Row(f"MMA_{name}_INTRIN", f"mma_{name}", get_mma_fill_intrin, (dtype, 8))
    for dtype, scope, simple in (
        ("float32", "global", False),
        ("float32", "shared.dyn", False),
        ("float32", "shared.dyn", True),
        ("float16", "shared.dyn", True),
        ("float16", "global", False),
        ("int32", "global", False),
    ):
        name = f"store_16x16_{SHORT[dtype]}_{scope.replace('.', '_')}"
        yield Row(
            f"MMA_{name}_INTRIN{'_SIMPLE' if simple else ''}",
            f"mma_{name}_{'simple_' if simple else ''}",
            get_mma_store_intrin,
            (dtype, 8, scope, not simple),
        )


def _wmma_rows() -> Iterator[Row]:
    big, small = (16, 16, 16), (8, 8, 32)
    for dims, dtype, out, kind, turns in (
        (big, "float16", "float32", "f16f16f32", (False, True)),
        (big, "float16", "float16", "f16f16f16", (False, True)),
        (big, "int8", "int32", "s8s8s32", (False, True)),
        (small, "int4", "int32", "s4s4s32", (True,)),
    ):
        for turned in turns:
            shape, tail = "x".join(map(str, dims)), "_trans" if turned else ""
            yield Row(
                f"WMMA_SYNC_{shape}_{kind}{tail.upper()}_INTRIN",
                f"wmma_sync_{shape}_{kind}{tail}",
                get_wmma_sync_intrin,
                (*dims, dtype, out, turned),
            )
    for dims, dtype, short, pairs in (
        (big, "float16", "f16", ("A", "B", "A_TRANS", "B_TRANS")),
        (big, "int8", "s8", ("A", "B", "A_TRANS", "B_TRANS")),
        (small, "int4", "s4", ("A", "B_TRANS")),
    ):
        for pair in pairs:
            for scope, dynamic in LOAD_SCOPES.items():
                head = f"{'x'.join(map(str, dims))}_{short}_{pair.lower()}"
                yield Row(
                    f"WMMA_LOAD_{'x'.join(map(str, dims))}_{short.upper()}_{pair}"
                    f"{dynamic.upper()}_INTRIN",
                    f"wmma_load_{head}_shared{dynamic}",
                    get_wmma_load_intrin,
                    (*dims, dtype, scope, pair[0] == "B", pair.endswith("TRANS")),
                )
    yield from _wmma_result_rows(big, (("float32", "f32"), ("float16", "f16"), ("int32", "s32")))
    yield from _wmma_result_rows(small, (("int32", "s32"),))


def _wmma_result_rows(
    dims: tuple[int, int, int], types: tuple[tuple[str, str], ...]
) -> Iterator[Row]:
    shape = "x".join(map(str, dims))
    for dtype, short in types:
        yield Row(
            f"WMMA_FILL_{shape}_{short.upper()}_INTRIN",
            f"wmma_fill_{shape}_{short}",
            get_wmma_fill_intrin,
            (*dims, dtype),
        )
        for scope in STORE_SCOPES:
            place = scope.replace(".", "_")
            yield Row(
                f"WMMA_STORE_{shape}_{short.upper()}_{place.upper()}_INTRIN",
                f"wmma_store_{shape}_{short}_{place}",
                get_wmma_store_intrin,
                (*dims, dtype, scope),
            )


def _m16n8k8_rows() -> Iterator[Row]:
    for short, dtype in (("f16", "float16"), ("f32", "float32")):
        yield Row(
            "", f"mma_init_m16n8k8_{short}", cuda_m16n8k8.get_mma_init_intrin, (16, 8, 8, dtype)
        )
        yield Row(
            "",
            f"mma_sync_m16n8k8_f16f16{short}",
            cuda_m16n8k8.get_mma_sync_intrin,
            (16, 8, 8, "float16", dtype, False),
        )
        yield Row(
            "",
            f"mma_store_m16n8k8_{short}_global",
            cuda_m16n8k8.get_mma_store_dummy_intrin,
            (16, 8, 8, dtype),
        )
    for matrix in "AB":
        yield Row(
            "",
            f"mma_load_m16n8k8_f16_{matrix}_shared_dyn",
            cuda_m16n8k8.get_mma_load_intrin,
            (32, 32, 8, "float16", "shared.dyn", matrix == "B", False),
        )


ROWS: Final = (*_ldmatrix_rows(), *_mma_rows(), *_wmma_rows(), *_m16n8k8_rows())
_CONSTANTS: Final = {row.constant: row.name for row in ROWS if row.constant}

for _row in ROWS:
    TensorIntrin.register_maker(_row.name, partial(_row.make, *_row.arguments))


def __getattr__(name: str) -> str:
    """The constants, such as ``WMMA_SYNC_16x16x16_f16f16f32_INTRIN``."""
    constant = _CONSTANTS.get(name)
    if constant is None:
        raise IRAttributeError(f"module {__name__!r} has no attribute {name!r}")
    return constant


def __dir__() -> list[str]:
    return sorted([*globals(), *_CONSTANTS])


def get_wmma_intrin_group(
    load_scope: str, store_scope: str, in_dtype: str, out_dtype: str, trans_b: bool
) -> dict[str, str]:
    """The names of the wmma intrinsics of a schedule: init, load_a, load_b, compute, store."""
    check_choice("load_scope", load_scope, tuple(LOAD_SCOPES))
    check_choice("store_scope", store_scope, STORE_SCOPES)
    check_choice("in_dtype", in_dtype, ("float16", "int8"))
    check_choice("out_dtype", out_dtype, RESULTS)
    shape, turned = "16x16x16", "_trans" if trans_b else ""
    kind = "f16" if in_dtype == "float16" else "s8"
    out = {"float16": "f16", "float32": "f32", "int32": "s32"}[out_dtype]
    place = f"shared{LOAD_SCOPES[load_scope]}"
    return {
        "init": f"wmma_fill_{shape}_{out}",
        "load_a": f"wmma_load_{shape}_{kind}_a_{place}",
        "load_b": f"wmma_load_{shape}_{kind}_b{turned}_{place}",
        "compute": f"wmma_sync_{shape}_{kind}{kind}{out}{turned}",
        "store": f"wmma_store_{shape}_{out}_{store_scope.replace('.', '_')}",
    }


def get_mma_intrin_group(
    load_scope: str,
    store_scope: str,
    in_dtype: str,
    out_dtype: str,
    trans_a: bool,
    trans_b: bool,
    not_use_mma_store_intrinic: bool = True,
    store_to_smem_dtype: str | None = None,
) -> dict[str, str]:
    """The names of the mma intrinsics of a schedule: init, load_a, load_b, compute, store."""
    check_choice("load_scope", load_scope, tuple(LOAD_SCOPES))
    check_choice("store_scope", store_scope, STORE_SCOPES)
    check_choice("in_dtype", in_dtype, ("float16", "int8", "float8_e4m3fn", "float8_e5m2"))
    check_choice("out_dtype", out_dtype, RESULTS)
    if store_to_smem_dtype is not None:
        check_choice("store_to_smem_dtype", store_to_smem_dtype, RESULTS)
    kind, out = SHORT[in_dtype], SHORT[out_dtype]
    turn_a, turn_b = "_trans" if trans_a else "", "_trans" if trans_b else ""
    tail = (f"{turn_a}_a" if trans_a else "") + (f"{turn_b}_b" if trans_b else "")
    stored = SHORT[store_to_smem_dtype] if store_to_smem_dtype else out
    simple = "simple_" if not_use_mma_store_intrinic else ""
    return {
        "init": f"mma_fill_16x16_{out}",
        "load_a": f"mma_ldmatrix_{kind}_a{turn_a}{LOAD_SCOPES[load_scope]}",
        "load_b": f"mma_ldmatrix_{kind}_b{turn_b}{LOAD_SCOPES[load_scope]}",
        "compute": f"mma_{kind}{kind}{out}{tail}",
        "store": f"mma_store_16x16_{stored}_{store_scope.replace('.', '_')}_{simple}",
    }
