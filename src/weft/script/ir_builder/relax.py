"""The statements and values of graph functions: what ``R.<name>`` means inside a script.

What is not here is an operator: ``R.nn.relu`` is ``weft.relax.op``'s function of that name, found
at use, or a plain call of a registered operator that has none.
"""

from __future__ import annotations

import importlib
from collections import abc
from typing import Any, Final, cast

from weft.ir.expr import GlobalVar, Range
from weft.ir.op import Op
from weft.relax.expr import (
    Call,
    DataflowVar,
    DataTypeImm,
    Expr,
    ExternFunc,
    Function,
    PrimValue,
    SeqExpr,
    ShapeExpr,
    StringImm,
    TupleGetItem,
    Var,
    VarBinding,
    as_relax_expr,
    const,
)
from weft.relax.expr import Tuple as TupleNode
from weft.relax.op import base
from weft.relax.op.definition import FUNCTIONS
from weft.relax.struct_info import StructInfo
from weft.script.ir_builder import relax_distributed
from weft.script.ir_builder.base import IRBuilder
from weft.script.ir_builder.relax_frame import (
    DataflowFrame,
    ElseFrame,
    FunctionFrame,
    IfFrame,
    ThenFrame,
    emit,
    emit_match_cast,
    emit_var_binding,
    find_function,
    func_ret_value,
)
from weft.script.ir_builder.relax_info import (
    Callable_,
    Object,
    Prim,
    Shape,
    Tensor,
    Tuple,
    as_struct_info,
)
from weft.script.ir_builder.tir_value import DTypeConstructor
from weft.support.errors import IRTypeError, IRValueError
from weft.support.missing import MissingNameError

__all__ = [
    "Object", "Prim", "Shape", "Tensor", "Tuple", "emit", "emit_match_cast", "emit_var_binding",
    "func_ret_value",
]  # fmt: skip


def function(is_pure: bool = True, is_private: bool = False) -> FunctionFrame:
    """A frame that makes a graph function."""
    return FunctionFrame(is_pure, is_private)


def arg(name: str, struct_info: Any) -> Any:
    """Add a parameter."""
    return find_function("R.arg").add_param(name, as_struct_info(struct_info))


def func_name(name: str) -> None:
    """Name the function."""
    find_function("R.func_name").name = name


def func_attr(attrs: abc.Mapping[str, Any]) -> None:
    """Set attributes of the function."""
    find_function("R.func_attr").attrs.update(attrs)


def func_ret_struct_info(ret_sinfo: Any) -> None:
    """Declare what the function returns."""
    find_function("R.func_ret_struct_info").ret_struct_info = as_struct_info(ret_sinfo)


def is_pure() -> None:
    """Declare the function pure."""
    find_function("R.is_pure").is_pure = True


def is_impure() -> None:
    """Declare the function impure."""
    find_function("R.is_impure").is_pure = False


def dataflow() -> DataflowFrame:
    """A dataflow block."""
    return DataflowFrame()


def output(*variables: Any) -> None:
    """The variables of the dataflow block that are seen outside."""
    frame = IRBuilder.current().last(DataflowFrame)
    if frame is None:
        raise IRValueError("R.output must stand directly inside `with R.dataflow()`")
    if frame.outputs:
        raise IRValueError("the dataflow block has two R.output")
    assert frame.seq is not None
    for var in variables:
        if not isinstance(var, Var) or frame.seq.bb.lookup_binding(var) is None:
            raise IRTypeError(f"R.output: expected variables of the dataflow block, got {var!r}")
    frame.outputs = list(dict.fromkeys(variables))


def If(condition: Any) -> IfFrame:  # noqa: N802 - TVM's name
    """A choice; R.Then and R.Else stand inside."""
    return IfFrame(condition)


def Then() -> ThenFrame:  # noqa: N802 - TVM's name
    """The branch taken where the condition holds."""
    return ThenFrame()


def Else() -> ElseFrame:  # noqa: N802 - TVM's name
    """The other branch."""
    return ElseFrame()


class MatchCastPair:
    """``R.match_cast(value, struct_info)``, until it is assigned."""

    def __init__(self, value: Any, struct_info: Any) -> None:
        self.value, self.struct_info = value, struct_info


def match_cast(value: Any, struct_info: Any) -> MatchCastPair:
    """The value after a check against ``struct_info``, whose symbols it defines."""
    if not isinstance(value, Expr):
        raise IRTypeError(f"R.match_cast: expected a graph value, got {type(value).__name__}")
    return MatchCastPair(value, as_struct_info(struct_info))


def shape(value: Any) -> ShapeExpr:
    """A shape value."""
    return ShapeExpr([item.value if isinstance(item, PrimValue) else item for item in value])


def prim_value(value: Any) -> PrimValue:
    """A scalar value."""
    return PrimValue(value)


def str_(value: str) -> StringImm:
    """A text value."""
    return StringImm(value)


def dtype_(value: Any) -> DataTypeImm:
    """A data type value."""
    return DataTypeImm(value.dtype if isinstance(value, DTypeConstructor) else value)


def tuple_(*fields: Any) -> TupleNode:
    """A tuple value."""
    return TupleNode([as_relax_expr(item) for item in fields])


def _outputs(what: str, out: Any, old: Any, dtype: Any) -> Any:
    """The result's struct info by any year's spelling: out_sinfo, out_ty, shape with dtype."""
    if out is None:
        out = old
    if out is None:
        raise IRTypeError(f"R.{what}: out_sinfo=R.Tensor(shape, dtype) is missing")
    if dtype is None:
        return _infos(out)
    if isinstance(out, list) and out and isinstance(out[0], list | tuple):
        dtypes = dtype if isinstance(dtype, list | tuple) else [dtype] * len(out)
        return [as_struct_info(Tensor(s, d)) for s, d in zip(out, dtypes, strict=True)]
    return as_struct_info(Tensor(out, dtype))


def _infos(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [as_struct_info(item) for item in value]
    return as_struct_info(value)


def call_tir(
    func: Any, args: Any, out_sinfo: Any = None, tir_vars: Any = None, *, dtype: Any = None,
    out_ty: Any = None,
) -> Call:
    """A call of a PrimFunc; a function registered at run time, by name, as in 2022."""
    infos = _outputs("call_tir", out_sinfo, out_ty, dtype)
    if isinstance(func, str | ExternFunc):
        return cast(Call, base.call_dps_packed(func, args, infos))
    return cast(Call, base.call_tir(func, args, infos, tir_vars))


def call_tir_inplace(
    func: Any, args: Any, inplace_indices: Any, out_sinfo: Any = None, tir_vars: Any = None, *,
    out_ty: Any = None,
) -> Call:
    """A call of a PrimFunc that writes into arguments."""
    infos = _outputs("call_tir_inplace", out_sinfo, out_ty, None)
    return cast(Call, base.call_tir_inplace(func, args, inplace_indices, infos, tir_vars))


def call_tir_with_grad(
    func: Any, args: Any, out_sinfo: Any, te_grad_name: str, te_grad_kwargs: Any = None,
    tir_vars: Any = None,
) -> Call:
    """A call of a PrimFunc whose gradient is a named TE function."""
    infos = _infos(out_sinfo)
    made = base.call_tir_with_grad(func, args, infos, te_grad_name, te_grad_kwargs, tir_vars)
    return cast(Call, made)


def call_dps_packed(
    func: Any, args: Any, out_sinfo: Any = None, *, dtype: Any = None, out_ty: Any = None
) -> Call:
    """A call of a registered function in destination-passing style."""
    infos = _outputs("call_dps_packed", out_sinfo, out_ty, dtype)
    return cast(Call, base.call_dps_packed(func, args, infos))


def call_packed(func: Any, *args: Any, sinfo_args: Any = None, **kwargs: Any) -> Call:
    """A call of a registered function that returns its result."""
    infos = [] if sinfo_args is None else _infos(sinfo_args)
    return base.call_packed(func, *args, sinfo_args=infos, **kwargs)


def call_pure_packed(func: Any, *args: Any, sinfo_args: Any = None) -> Call:
    """A call of a registered function without side effects."""
    infos = [] if sinfo_args is None else _infos(sinfo_args)
    return base.call_pure_packed(func, *args, sinfo_args=infos)


def call_inplace_packed(
    func: Any, *args: Any, inplace_indices: Any, sinfo_args: Any = None
) -> Call:
    """A call of a registered function that returns some of its arguments, changed."""
    infos = [] if sinfo_args is None else _infos(sinfo_args)
    return base.call_inplace_packed(
        func, *args, inplace_indices=inplace_indices, sinfo_args=infos
    )


def call_builtin_with_ctx(func: Any, args: Any, *, sinfo_args: Any = None) -> Call:
    """A call of a builtin of the virtual machine."""
    infos = None if sinfo_args is None else _infos(sinfo_args)
    return base.call_builtin_with_ctx(func, args, sinfo_args=infos)


def invoke_closure(closure: Any, args: Any, sinfo_args: Any) -> Call:
    """A call of a closure."""
    return base.invoke_closure(closure, args, _infos(sinfo_args))


def invoke_pure_closure(closure: Any, args: Any, sinfo_args: Any) -> Call:
    """A call of a closure without side effects."""
    return base.invoke_pure_closure(closure, args, _infos(sinfo_args))


def alloc_tensor(
    shape: Any, dtype: Any, runtime_device_index: Any = 0, storage_scope: Any = "global"
) -> Call:
    """A new tensor with undefined content."""
    dims = shape if isinstance(shape, Expr) else ShapeExpr(shape)
    kind = dtype if isinstance(dtype, Expr) else dtype_(dtype)
    index = as_relax_expr(runtime_device_index)
    return Call(
        Op.get("relax.builtin.alloc_tensor"), [dims, kind, index, as_relax_expr(storage_scope)]
    )


def emit_te(func: Any, *args: Any, **kwargs: Any) -> Call:
    """A call of a new PrimFunc of the module, made from a function on te tensors."""
    return find_function("R.emit_te").bb.call_te(func, *args, **kwargs)


def call_function(function_: Any, args: list[Any], kwargs: dict[str, Any]) -> Call:
    """A call of a function of the module, of a local function or of a closure."""
    attrs = kwargs.pop("attrs", None)
    infos = _infos(kwargs.pop("sinfo_args", []))
    if kwargs:
        raise IRTypeError(f"a call of {function_!r} has no keyword {next(iter(kwargs))!r}")
    operands = [as_relax_expr(item) for item in args]
    return Call(function_, operands, attrs, infos if isinstance(infos, list) else [infos])


def local_variable(name: str, info: StructInfo | None) -> Var:
    """The variable of a local function, which its body may call."""
    in_dataflow = isinstance(IRBuilder.current().frames[-1], DataflowFrame)
    return (DataflowVar if in_dataflow else Var)(name, info)


def bind_local(var: Var, func: Function) -> None:
    """Bind the variable of a local function to the function."""
    bb = find_function(var.name_hint).bb
    value = bb.normalize(func)
    var.struct_info = value.struct_info
    bb.emit_normalized(VarBinding(var, value))


def is_callable_value(value: Any) -> bool:
    """Whether a call of ``value`` is a call in the graph."""
    return isinstance(value, GlobalVar | Expr)


py_print: Final = print
"""Python's own ``print`` and ``str``, where ``R.print`` and ``R.str`` are other things."""
py_str: Final = str

NAMES: Final[dict[str, Any]] = {
    **relax_distributed.NAMES,
    "Callable": Callable_,
    "ExternFunc": ExternFunc,
    "Range": Range,
    "SeqExpr": SeqExpr,
    "ShapeExpr": ShapeExpr,
    "TupleGetItem": TupleGetItem,
    "alloc_tensor": alloc_tensor,
    "builtin.alloc_tensor": alloc_tensor,
    "const": const,
    "dtype": dtype_,
    "str": str_,
    "tuple": tuple_,
}
"""Names of ``R`` that are no Python names of this module."""
COMPOSED: Final = frozenset({"linear"})
"""Functions of ``relax.op`` that stand for several operators."""


class Operators:
    """The operators below a dotted prefix, such as ``R.nn``."""

    def __init__(self, prefix: str) -> None:
        self.prefix_ = prefix

    def __getattr__(self, name: str) -> Any:
        return operator(f"{self.prefix_}.{name}")

    def __repr__(self) -> str:
        return f"R.{self.prefix_}"


def operator(name: str) -> Any:
    """The builder of an operator by its name without ``relax.``, or a namespace of them."""
    if name in NAMES:
        return NAMES[name]
    if name in FUNCTIONS:
        return FUNCTIONS[name]
    operators = importlib.import_module("weft.relax.op")
    if name in COMPOSED:
        return getattr(operators, name)
    if name in FUNCTIONS:
        return FUNCTIONS[name]
    registered = Op.list_op_names()
    if f"relax.{name}" in registered:
        return _plain(Op.get(f"relax.{name}"))
    if any(item.startswith(f"relax.{name}.") for item in registered):
        return Operators(name)

    def known() -> set[str]:
        operators = {item.removeprefix("relax.") for item in registered if item[:6] == "relax."}
        return {*operators, *NAMES, *globals()}

    text = f"R.{name} is neither an operator nor a part of the language"
    raise MissingNameError(text, name, known, "R.")


def _plain(op: Op) -> abc.Callable[..., Call]:
    def build(*args: Any, sinfo_args: Any = None, **attrs: Any) -> Call:
        operands = [as_relax_expr(item) for item in args]
        infos = [] if sinfo_args is None else _infos(sinfo_args)
        return Call(op, operands, attrs, infos if isinstance(infos, list) else [infos])

    return build


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return operator(name)
