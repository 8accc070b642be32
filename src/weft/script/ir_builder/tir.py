"""The names of ``T`` for the builder and for scripts: statements, values, operators.

Statements come from ``tir_statement`` and ``tir_block``, values from ``tir_value``; types such as
``int32x4`` are created when used. Every other name is a function of ``weft.tir.op``, a node of
``weft.tir.expr``, an ``IndexMap`` or a ``Target``, or a plain call of a registered intrinsic.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from types import ModuleType
from typing import Any

from weft.ir.expr import ExprLike, FloatImm, IntImm, PrimExpr, Range, StringImm, as_prim_expr
from weft.ir.op import Op
from weft.script.ir_builder import tir_block as _block
from weft.script.ir_builder import tir_loop as _loop
from weft.script.ir_builder import tir_statement as _build
from weft.script.ir_builder import tir_value as _value
from weft.script.ir_builder.tir_value import DTypeConstructor, HandleConstructor, LetAnnotation
from weft.support.dtype import DataType
from weft.support.errors import IRTypeError
from weft.support.intrinsic_names import lookup_id
from weft.support.missing import MissingNameError
from weft.support.span import Span
from weft.target.target import Target as _Target
from weft.target.target import TargetLike as _TargetLike
from weft.tir import expr as _nodes
from weft.tir import op as _op
from weft.tir.buffer import BufferRegion
from weft.tir.device_intrinsic import CONSTRUCTORS
from weft.tir.index_map import IndexMap as _IndexMap

Builder = Callable[..., Any]
"""A function of ``T``: it makes a node from arguments."""
Dtype = DTypeConstructor | DataType | str


def _call_intrinsic(op: Op) -> Builder:
    def build(*args: ExprLike, dtype: str = "handle") -> _nodes.Call:
        return _nodes.Call(dtype, op, args)

    build.__name__ = op.name.removeprefix("tir.")
    return build


def _of_second_argument(op: Op) -> Builder:
    """An intrinsic whose result has the type of its second argument."""

    def build(*args: ExprLike, dtype: Dtype | None = None) -> _nodes.Call:
        items = [as_prim_expr(item) for item in args]
        return _nodes.Call(_plain_dtype(dtype) or items[1].dtype, op, items)

    return build


_RESULTS: dict[str, Callable[[Op], Builder]] = {
    "tvm_warp_shuffle": _of_second_argument, "tvm_warp_shuffle_up": _of_second_argument,
    "tvm_warp_shuffle_down": _of_second_argument,
    "tvm_warp_activemask": lambda op: lambda dtype="uint32": _nodes.Call(dtype, op, ()),
    "get_active_lane_mask": lambda op: lambda dtype, base, limit: _nodes.Call(
        _plain_dtype(dtype), op, (base, limit)
    ),
}  # fmt: skip
"""Intrinsic -> how its call is built, if the registry does not give the type of its result."""


def _typed(function: Builder) -> Builder:
    """Let an intrinsic whose first argument is a data type also take ``dtype=``."""

    def build(*args: object, dtype: Dtype | None = None, **kwargs: object) -> object:
        if dtype is not None:
            args = (dtype, *args)
        return function(*[_plain_dtype(item) for item in args], **kwargs)

    build.__name__ = getattr(function, "__name__", "call")
    build.__doc__ = function.__doc__
    return build


def _device(function: Builder) -> Builder:
    """A machine's intrinsic; ``dtype=`` replaces the type of its result, if that is fixed."""
    parameters = list(inspect.signature(function).parameters)
    if "dtype" in parameters:
        return _typed(function) if parameters[0] == "dtype" else function

    def build(*args: object, dtype: Dtype | None = None, **kwargs: object) -> object:
        call = function(*args, **kwargs)
        return call if dtype is None else _nodes.Call(_plain_dtype(dtype), call.op, call.args)

    build.__name__ = function.__name__
    return build


def _inferred(function: Builder) -> Builder:
    """An operator whose type follows from its operands; ``dtype=`` is accepted and ignored."""
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return function
    if "dtype" in parameters:
        return function

    @functools.wraps(function)
    def build(*args: object, dtype: Dtype | None = None, **kwargs: object) -> object:
        del dtype
        return function(*args, **kwargs)

    return build


def _plain_dtype(value: object) -> Any:
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
    "Ptr": _value.PtrProxy(), "pow": _op.power, "Range": Range,
    "BufferRegion": BufferRegion, "bool": DTypeConstructor("bool"),
}  # fmt: skip


def cast(value: ExprLike, dtype: Dtype, span: Span | None = None) -> PrimExpr:
    """Convert ``value`` to a data type: ``T.cast(x, "int64")``; constants are converted
    here.
    """
    return _op.cast(_plain_dtype(dtype), value, span)


def index_map(
    mapping: Callable[..., object], *, inverse_index_map: object = None, index_dtype: str = "int64"
) -> _IndexMap:
    """Make a mapping of indices from a function: ``T.index_map(lambda i, j: (j, i))``.

    Args:
        mapping: takes the old indices and returns the new ones.
        inverse_index_map: the mapping back, where it cannot be derived.
        index_dtype: the type of the indices.
    """
    return _IndexMap.from_func(
        mapping, inverse_index_map=inverse_index_map, index_dtype=index_dtype
    )


def target(config: _TargetLike, host: _TargetLike | None = None) -> _Target:
    """Make a target from its text or from a dict of its attributes: ``T.target("llvm")``."""
    return _Target(config, host)


def llvm_lookup_intrinsic_id(name: str) -> int:
    """Give an LLVM intrinsic a number that holds in this process."""
    return lookup_id(name)


def TVMBackendAllocWorkspace(  # noqa: N802 - TVM's name
    *args: ExprLike, dtype: str = "handle"
) -> _nodes.Call:
    """Call the runtime for temporary memory."""
    return _nodes.Call(dtype, "tir.TVMBackendAllocWorkspace", args)


def TVMBackendFreeWorkspace(  # noqa: N802 - TVM's name
    *args: ExprLike, dtype: str = "int32"
) -> _nodes.Call:
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
    for module in (_build, _loop, _block, _value):
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
    function = vars(_op).get(name)  # not what install_as_tvm lets the module have, too
    if function is not None and not name.startswith("_"):
        return _typed(function) if name in _DTYPE_FIRST else _inferred(function)
    node = getattr(_nodes, name, None)
    if node is not None and not name.startswith("_"):
        return _typed(node) if name in _DTYPE_FIRST else node
    if Op.is_registered(f"tir.{name}"):
        op = Op.get(f"tir.{name}")
        if name not in _RESULTS and name in CONSTRUCTORS:
            return _device(CONSTRUCTORS[name])
        return _RESULTS.get(name, _call_intrinsic)(op)
    raise MissingNameError(f"T.{name} is not part of TVMScript", name, _known_names, "T.")


def _known_names() -> set[str]:
    known = {*_OTHER, "Buffer", "int32", "int64", "float32", "prim_func", "macro"}
    for module in (_build, _loop, _block, _value, _nodes):
        own = [name for name, item in vars(module).items() if _is_of(item, module.__name__)]
        known.update([name for name in own if not name.startswith("_")])
    own = [name for name in dir(_op) if not isinstance(vars(_op).get(name), ModuleType)]
    return known | {name for name in own if not name.startswith("_") and name != "annotations"}


def __dir__() -> list[str]:
    return sorted(_known_names())


def _is_of(value: object, module: str) -> bool:
    return getattr(value, "__module__", None) == module
