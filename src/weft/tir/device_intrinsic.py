"""Constructors of intrinsics of devices and runtimes, built from one table.

These are tensor cores, asynchronous copies, warp shuffles, structures of the runtime. Programs with
them can be built, printed, parsed and transformed; the code generator decides which of them it
supports. Names, parameters and result types are TVM 0.20's.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable
from typing import Final

from weft.ir.expr import as_prim_expr
from weft.ir.op import Op
from weft.support.dtype import DataType
from weft.tir.expr import Call
from weft.tir.intrinsic import CallEffectKind

DTYPE: Final = "its dtype"
"""Marks a result whose type is the parameter ``dtype``, which is not an argument of the call."""

_MMA: Final = (
    "dtype shape A_layout B_layout A_dtype B_dtype C_dtype multiplicand_a a_index multiplicand_b "
    "b_index accumulator c_index"
)
_MATRIX: Final = "fragment m n k index buffer_ptr stride layout"
_FRAGMENTS: Final = "fragment_d index_d fragment_a index_a fragment_b index_b fragment_c index_c"
_COPY: Final = "dtype shared_ptr shared_offset global_ptr global_offset bytes"
_SIMD: Final = "d index ptr stride col=8 row=8 transpose_matrix=False"

_TABLE: Final[dict[str, tuple[str, str]]] = {
    "TVMBackendAllocWorkspace": (
        "handle", "device_type device_id nbytes dtype_code_hint dtype_bits_hint",
    ),
    "TVMBackendFreeWorkspace": ("int32", "device_type device_id ptr"),
    "anylist_getitem": ("handle", "list_handle index"),
    "anylist_resetitem": ("int32", "list_handle index"),
    "create_barriers": ("void", "barrier_count"),
    "dp4a": ("int32", "vec1 vec2 acc=0"),
    "end_profile_intrinsic": ("handle", "id"),
    "get_active_lane_mask": (DTYPE, "dtype base limit"),
    "ignore_loop_partition": ("bool", "predicate"),
    "lookup_param": ("handle", "param_name"),
    "make_filled_simdgroup_matrix": ("handle", "d index value col=8 row=8"),
    "mma_fill": (DTYPE, "dtype local_size local_ptr offset"),
    "mma_store": (DTYPE, "dtype m n dst_ptr src_ptr src_offset dst_stride"),
    "ptx_arrive_barrier": ("void", "barrier_id"),
    "ptx_arrive_barrier_expect_tx": ("void", "barrier_id byte_count"),
    "ptx_commit_group": ("void", ""),
    "ptx_cp_async": (DTYPE, _COPY),
    "ptx_cp_async_barrier": ("void", "barrier_id"),
    "ptx_cp_async_bulk": (DTYPE, f"{_COPY} barrier_id"),
    "ptx_init_barrier_thread_count": ("void", "barrier_id thread_count"),
    "ptx_ldmatrix": (
        DTYPE, "dtype trans num type local_ptr local_offset smem_ptr smem_offset",
    ),
    "ptx_mma": (DTYPE, f"{_MMA} saturate operator=None"),
    "ptx_mma_sp": (DTYPE, f"{_MMA} metadata meta_index sparse_selector saturate"),
    "ptx_wait_barrier": ("void", "barrier_id"),
    "ptx_wait_group": ("void", "num"),
    "simdgroup_load": ("handle", _SIMD),
    "simdgroup_multiply_accumulate": (
        "handle", "d index_d a index_a b index_b c index_c",
    ),
    "simdgroup_store": ("handle", _SIMD),
    "start_profile_intrinsic": ("handle", "id"),
    "tvm_bmma_sync": ("handle", _FRAGMENTS),
    "tvm_check_return": ("int32", "expected return_unexpected nested_call"),
    "tvm_fill_fragment": ("handle", "fragment m n k index value"),
    "tvm_load_matrix_sync": ("handle", _MATRIX),
    "tvm_mma_sync": ("handle", _FRAGMENTS),
    "tvm_stack_alloca": ("handle", "dtype_str num"),
    "tvm_stack_make_array": ("handle", "data shape strides ndim arr_dtype elem_offset"),
    "tvm_stack_make_shape": ("handle", "*args"),
    "tvm_store_matrix_sync": ("handle", _MATRIX),
    "tvm_struct_get": (DTYPE, "arr index field dtype"),
    "tvm_struct_set": ("int32", "arr index field value"),
    "tvm_thread_invariant": ("cond", "cond"),
    "tvm_throw_last_error": ("handle", ""),
    "tvm_tuple": ("handle", "*value"),
    "tvm_warp_activemask": ("uint32", ""),
    "tvm_warp_shuffle": ("value", "mask value warp_id width warp_size"),
    "tvm_warp_shuffle_down": ("value", "mask value offset width warp_size"),
    "tvm_warp_shuffle_up": ("value", "mask value offset width warp_size"),
    "type_annotation": (DTYPE, "dtype"),
}  # fmt: skip
"""Name -> (the result's type, or the parameter whose type it has; the parameters)."""


def _signature(parameters: str) -> inspect.Signature:
    signature = []
    for text in parameters.split():
        name, _, default = text.partition("=")
        several, single = inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.POSITIONAL_OR_KEYWORD
        kind = several if name.startswith("*") else single
        value = ast.literal_eval(default) if default else inspect.Parameter.empty
        signature.append(inspect.Parameter(name.removeprefix("*"), kind, default=value))
    return inspect.Signature(signature)


def _constructor(name: str, result: str, parameters: str) -> Callable[..., Call]:
    signature = _signature(parameters)
    op = Op.get(f"tir.{name}")

    def build(*args: object, **kwargs: object) -> Call:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        given = dict(bound.arguments)
        dtype = str(given.pop("dtype")) if result == DTYPE else result
        if result in given:
            given[result] = as_prim_expr(given[result])
            dtype = given[result].dtype
        values = given.pop("args", given.pop("value", ())) if "*" in parameters else given.values()
        return Call(DataType(dtype), op, [value for value in values if value is not None])

    build.__name__ = build.__qualname__ = name
    build.__doc__ = f"The call ``tir.{name}`` of the machine or the runtime."
    build.__signature__ = signature  # type: ignore[attr-defined] # for help() and inspect
    return build


CONSTRUCTORS: Final[dict[str, Callable[..., Call]]] = {}
"""Every constructor by the name of its intrinsic."""

for _name, (_result, _parameters) in _TABLE.items():
    if not Op.is_registered(f"tir.{_name}"):
        Op.register(f"tir.{_name}", TCallEffectKind=CallEffectKind.Opaque)
    CONSTRUCTORS[_name] = _constructor(_name, _result, _parameters)


def __getattr__(name: str) -> object:
    if name in CONSTRUCTORS:
        return CONSTRUCTORS[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
