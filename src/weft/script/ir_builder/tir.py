"""The names of TensorIR for the builder and for scripts: statements, values, operators.

Statements come from ``tir_statement`` and ``tir_block``, values from ``tir_value``; ``int32x4`` and
the like are made on demand; every other name is a function of ``weft.tir.op``, a node of
``weft.tir.expr``, an ``IndexMap`` or a ``Target``, or a plain call of a registered intrinsic.
"""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Callable
from typing import Any

from weft.ir.expr import FloatImm, IntImm, StringImm, as_prim_expr
from weft.ir.op import Op
from weft.script.ir_builder import tir_block as _block
from weft.script.ir_builder import tir_statement as _build
from weft.script.ir_builder import tir_value as _value
from weft.script.ir_builder.tir_value import DTypeConstructor, HandleConstructor, LetAnnotation
from weft.support.dtype import DataType
from weft.support.errors import IRTypeError
from weft.support.intrinsic_names import lookup_id
from weft.support.missing import MissingNameError
from weft.support.span import Span
from weft.tir import expr as _nodes
from weft.tir import op as _op
from weft.tir.device_intrinsic import CONSTRUCTORS


def _call_intrinsic(op: Op) -> Callable[..., Any]:
    def build(*args: Any, dtype: str = "handle") -> Any:
        return _nodes.Call(dtype, op, args)

    build.__name__ = op.name.removeprefix("tir.")
    return build


def _of_argument(position: int) -> Callable[[Op], Callable[..., Any]]:
    """Intrinsics whose result has the type of one argument."""

    def make(op: Op) -> Callable[..., Any]:
        def build(*args: Any, dtype: Any = None) -> Any:
            items = [as_prim_expr(item) for item in args]
            return _nodes.Call(dtype or items[position].dtype, op, items)

        return build

    return make


_RESULTS: dict[str, Callable[[Op], Callable[..., Any]]] = {
    "tvm_warp_shuffle": _of_argument(1), "tvm_warp_shuffle_up": _of_argument(1),
    "tvm_warp_shuffle_down": _of_argument(1),
    "tvm_warp_activemask": lambda op: lambda dtype="uint32": _nodes.Call(dtype, op, ()),
    "get_active_lane_mask": lambda op: lambda dtype, base, limit: _nodes.Call(
        _plain_dtype(dtype), op, (base, limit)
    ),
}  # fmt: skip
"""Intrinsics of known result type, which the name of the intrinsic alone does not say."""


def _typed(function: Callable[..., Any]) -> Callable[..., Any]:
    """An intrinsic whose first argument is a data type takes ``dtype=`` as well."""

    def build(*args: Any, dtype: Any = None, **kwargs: Any) -> Any:
        if dtype is not None:
            args = (dtype, *args)
        return function(*[_plain_dtype(item) for item in args], **kwargs)

    build.__name__ = getattr(function, "__name__", "call")
    return build


def _device(function: Callable[..., Any]) -> Callable[..., Any]:
    """An intrinsic of a machine; ``dtype=`` of one whose result type is fixed replaces that."""
    parameters = list(inspect.signature(function).parameters)
    if "dtype" in parameters:
        return _typed(function) if parameters[0] == "dtype" else function

    def build(*args: Any, dtype: Any = None, **kwargs: Any) -> Any:
        call = function(*args, **kwargs)
        return call if dtype is None else _nodes.Call(_plain_dtype(dtype), call.op, call.args)

    build.__name__ = function.__name__
    return build


def _inferred(function: Callable[..., Any]) -> Callable[..., Any]:
    """An operator whose type follows from its operands: ``dtype=`` is taken, and says nothing."""
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return function
    if "dtype" in parameters:
        return function

    @functools.wraps(function)
    def build(*args: Any, dtype: Any = None, **kwargs: Any) -> Any:
        del dtype
        return function(*args, **kwargs)

    return build


def _plain_dtype(value: Any) -> Any:
    return value.dtype if isinstance(value, DTypeConstructor) else value


_DTYPE_FIRST = frozenset(
    {
        "call_extern", "call_pure_extern", "call_intrin", "call_pure_intrin", "call_llvm_intrin",
        "call_llvm_pure_intrin", "reinterpret", "infinity", "max_value", "min_value",
        "tvm_load_matrix_sync", "ptx_mma", "ptx_mma_sp", "ptx_ldmatrix", "ptx_cp_async",
        "vectorlow", "vectorhigh", "vectorcombine", "mma_store", "mma_fill", "Cast",
    }
)  # fmt: skip
_OTHER = {
    "handle": HandleConstructor("handle"), "let": LetAnnotation(), "void": DTypeConstructor("void"),
    "FloatImm": FloatImm, "IntImm": IntImm, "StringImm": StringImm, "broadcast": _nodes.Broadcast,
    "ramp": _nodes.Ramp, "sblock": _block.block, "sblock_attr": _block.block_attr,
    "buffer": _value.Buffer, "buffer_decl": _value.Buffer, "buffer_var": _value.ptr,
    "Ptr": _value.PtrProxy(), "pow": _op.power, "bool": DTypeConstructor("bool"),
}  # fmt: skip


def cast(value: Any, dtype: Any, span: Span | None = None) -> Any:
    """Convert ``value`` to a data type: ``T.cast(x, "int64")``; constants are converted
    here.
    """
    return _op.cast(_plain_dtype(dtype), value, span)


def index_map(
    mapping: Callable[..., Any], *, inverse_index_map: Any = None, index_dtype: str = "int64"
) -> Any:
    """Make a mapping of indices from a function: ``T.index_map(lambda i, j: (j, i))``.

    Args:
        mapping: takes the old indices and returns the new ones.
        inverse_index_map: the mapping back, where it cannot be derived.
        index_dtype: the type of the indices.
    """
    index_maps = importlib.import_module("weft.tir.index_map").IndexMap
    return index_maps.from_func(
        mapping, inverse_index_map=inverse_index_map, index_dtype=index_dtype
    )


def target(config: Any, host: Any = None) -> Any:
    """Make a target from its text or from a dict of its attributes: ``T.target("llvm")``."""
    return importlib.import_module("weft.target.target").Target(config, host)


def llvm_lookup_intrinsic_id(name: str) -> int:
    """Give an LLVM intrinsic a number that holds in this process."""
    return lookup_id(name)


def TVMBackendAllocWorkspace(*args: Any, dtype: str = "handle") -> Any:  # noqa: N802 - TVM's name
    """Call the runtime for temporary memory."""
    return _nodes.Call(dtype, "tir.TVMBackendAllocWorkspace", args)


def TVMBackendFreeWorkspace(*args: Any, dtype: str = "int32") -> Any:  # noqa: N802 - TVM's name
    """Call the runtime to give temporary memory back."""
    return _nodes.Call(dtype, "tir.TVMBackendFreeWorkspace", args)


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    value = _resolve(name)
    globals()[name] = value
    return value


def _resolve(name: str) -> Any:
    if name in _OTHER:
        return _OTHER[name]
    for module in (_build, _block, _value):
        if getattr(getattr(module, name, None), "__module__", None) == module.__name__:
            return getattr(module, name)
    if name == "Buffer":
        return _value.Buffer
    if name == "Target":
        return target
    try:
        return DTypeConstructor(DataType(name))
    except IRTypeError:
        pass
    function = getattr(_op, name, None)
    if function is not None and not name.startswith("_"):
        return _typed(function) if name in _DTYPE_FIRST else _inferred(function)
    node = getattr(_nodes, name, None)
    if node is not None and not name.startswith("_"):
        return node
    if f"tir.{name}" in Op.list_op_names():
        op = Op.get(f"tir.{name}")
        if name not in _RESULTS and name in CONSTRUCTORS:
            return _device(CONSTRUCTORS[name])
        return _RESULTS.get(name, _call_intrinsic)(op)
    raise MissingNameError(f"T.{name} is not part of TVMScript", name, _known_names, "T.")


def _known_names() -> set[str]:
    known = {name for module in (_build, _block, _value, _op) for name in dir(module)}
    return known | {"int32", "int64", "float32", "prim_func"}
