"""The statements and values of graph functions: what ``R.<name>`` means inside a script.

Other names are operators: ``R.nn.relu`` is the function of that name in ``weft.relax.op``, which is
looked up when used, or a plain call of a registered operator that has no function.
"""

from __future__ import annotations

import importlib
from collections import abc
from collections.abc import Sequence
from typing import Any, Final, TypeGuard

from weft.ir.expr import ExprLike, GlobalVar, PrimExpr, Range, RelaxExpr
from weft.ir.global_info import VDevice
from weft.ir.op import Op
from weft.relax.expr import (
    Call,
    DataflowVar,
    DataTypeImm,
    Expr,
    ExternFunc,
    Function,
    PrimValue,
    RelaxLike,
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
from weft.relax.op.definition import FUNCTIONS
from weft.relax.struct_info import StructInfo
from weft.runtime.device import cpu, cuda, device
from weft.script.ir_builder import relax_distributed
from weft.script.ir_builder.base import IRBuilder, as_attributes
from weft.script.ir_builder.relax_call import (  # noqa: F401 - names of this module too
    call_builtin_with_ctx,
    call_dps_packed,
    call_inplace_packed,
    call_packed,
    call_pure_packed,
    call_tir,
    call_tir_inplace,
    call_tir_with_grad,
    infos_of,
    invoke_closure,
    invoke_pure_closure,
)
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
    InfoLike,
    Infos,
    Object,
    Prim,
    Shape,
    Tensor,
    Tuple,
    as_struct_info,
    find_vdevice,
)
from weft.script.ir_builder.tir_value import DTypeConstructor
from weft.support import plugins
from weft.support.errors import IRTypeError, IRValueError, wrong_type
from weft.support.missing import MissingNameError

__all__ = [
    "Object", "Prim", "Shape", "Tensor", "Tuple", "emit", "emit_match_cast", "emit_var_binding",
    "func_ret_value",
]  # fmt: skip


def function(is_pure: bool = True, is_private: bool = False) -> FunctionFrame:
    """Open a graph function; in a script ``@R.function`` does."""
    return FunctionFrame(is_pure, is_private)


def arg(name: str, struct_info: InfoLike) -> Var:
    """Add a parameter to the function, of a struct info such as ``R.Tensor((4,),
    "float32")``.
    """
    return find_function("R.arg").add_param(name, as_struct_info(struct_info))


def func_name(name: str) -> None:
    """Name the function: its ``global_symbol``, unless it is private."""
    find_function("R.func_name").name = name


def func_attr(attrs: abc.Mapping[str, object]) -> None:
    """Set attributes of the function: ``R.func_attr({"num_input": 1})``."""
    find_function("R.func_attr").attrs.update(as_attributes("R.func_attr", attrs))


def func_ret_struct_info(ret_sinfo: InfoLike) -> None:
    """State what the function returns: what ``-> R.Tensor(...)`` does in a script."""
    find_function("R.func_ret_struct_info").ret_struct_info = as_struct_info(ret_sinfo)


def is_pure() -> None:
    """State that the function has no effect but its result."""
    find_function("R.is_pure").is_pure = True


def is_impure() -> None:
    """State that the function has effects: it prints, or writes into an argument."""
    find_function("R.is_impure").is_pure = False


def dataflow() -> DataflowFrame:
    """Open a block of bindings without effects and branches, which passes may reorder.

    Only what ``R.output`` names at its end is seen after it.

    >>> from weft.script import relax as R
    >>> @R.function(private=True)
    ... def main(x: R.Tensor((4,), "float32")):
    ...     with R.dataflow():
    ...         y = R.exp(x)
    ...         z = R.add(y, y)
    ...         R.output(z)
    ...     return z
    """
    return DataflowFrame()


def output(*variables: Var) -> None:
    """State which variables of the dataflow block are seen after it."""
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


def If(condition: RelaxLike) -> IfFrame:  # noqa: N802 - TVM's name
    """Compute one of two branches: ``with R.If(condition)``, inside of it ``R.Then()``,
    ``R.Else()``.

    In a script write ``if``. Both branches end with a binding of the same variable, the result.
    """
    return IfFrame(condition)


def Then() -> ThenFrame:  # noqa: N802 - TVM's name
    """Open the branch of ``R.If`` that is computed where the condition holds."""
    return ThenFrame()


def Else() -> ElseFrame:  # noqa: N802 - TVM's name
    """Open the branch of ``R.If`` that is computed where the condition does not hold."""
    return ElseFrame()


class MatchCastPair:
    """``R.match_cast(value, struct_info)``, until it is assigned."""

    def __init__(self, value: Expr, struct_info: StructInfo) -> None:
        self.value, self.struct_info = value, struct_info


def match_cast(value: Expr, struct_info: InfoLike) -> MatchCastPair:
    """Check a value against a struct info at run time, and bind the symbols in it that are new.

    >>> from weft.script import relax as R
    >>> @R.function(private=True)
    ... def main(x: R.Tensor(ndim=1, dtype="float32")):
    ...     y = R.match_cast(x, R.Tensor(("n",), "float32"))
    ...     return y
    """
    if not isinstance(value, Expr):
        raise wrong_type("R.match_cast: expected a graph value", value)
    return MatchCastPair(value, as_struct_info(struct_info))


def shape(value: Sequence[ExprLike | PrimValue]) -> ShapeExpr:
    """Make a shape that is a value of the graph: ``R.shape([n, 4])``."""
    return ShapeExpr([item.value if isinstance(item, PrimValue) else item for item in value])


def prim_value(value: ExprLike) -> PrimValue:
    """Make a number that is a value of the graph: ``R.prim_value(3)``."""
    return PrimValue(value)


def str_(value: str) -> StringImm:
    """Make a text that is a value of the graph: ``R.str("relu")``."""
    return StringImm(value)


def dtype_(value: str | DTypeConstructor) -> DataTypeImm:
    """Make a data type that is a value of the graph: ``R.dtype("float32")``."""
    return DataTypeImm(value.dtype if isinstance(value, DTypeConstructor) else value)


def tuple_(*fields: RelaxLike) -> TupleNode:
    """Make a tuple of values of the graph: ``R.tuple(x, y)``; ``x, y`` in a script."""
    return TupleNode([as_relax_expr(item) for item in fields])


def alloc_tensor(
    shape: ShapeExpr | Sequence[ExprLike],
    dtype: str,
    runtime_device_index: PrimExpr | int = 0,
    storage_scope: str = "global",
) -> Call:
    """Allocate a tensor whose content is not set.

    Args:
        shape: its shape.
        dtype: its type.
        runtime_device_index: the number of the device in the module's list of virtual devices.
        storage_scope: the memory it lies in.
    """
    dims = shape if isinstance(shape, Expr) else ShapeExpr(shape)
    kind = dtype if isinstance(dtype, Expr) else dtype_(dtype)
    index = as_relax_expr(runtime_device_index)
    return Call(
        Op.get("relax.builtin.alloc_tensor"), [dims, kind, index, as_relax_expr(storage_scope)]
    )


def emit_te(func: abc.Callable[..., object], *args: object, **kwargs: object) -> Call:
    """Make a TensorIR function from a function on tensor expressions, and call it.

    Args:
        func: takes the tensors (as ``te.Tensor``) and other arguments, and returns tensors.
        args: its arguments; graph values among them become the inputs of the call.
        kwargs: its keyword arguments; ``primfunc_name_hint`` names the function.

    >>> from weft import topi
    >>> from weft.script import ir as I, relax as R
    >>> @I.ir_module
    ... class Module:
    ...     @R.function
    ...     def main(x: R.Tensor((4,), "float32")):
    ...         y = R.emit_te(topi.exp, x)
    ...         return y
    >>> sorted(var.name_hint for var in Module.get_global_vars())
    ['exp', 'main']
    """
    return find_function("R.emit_te").bb.call_te(func, *args, **kwargs)


def to_vdevice(data: Expr, dst_vdevice: VDevice | str) -> Call:
    """Copy a tensor to a virtual device of the module, which may be given as ``"llvm:0"``."""
    device = find_vdevice(dst_vdevice) if isinstance(dst_vdevice, str) else dst_vdevice
    return FUNCTIONS["to_vdevice"](data, device)


def call_function(function_: RelaxExpr, args: Sequence[RelaxLike], kwargs: dict[str, Any]) -> Call:
    """A call of a function of the module, of a local function or of a closure."""
    attrs = kwargs.pop("attrs", None)
    infos = infos_of(kwargs.pop("sinfo_args", []))
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


def is_callable_value(value: object) -> TypeGuard[RelaxExpr]:
    """Whether a call of ``value`` is a call in the graph."""
    return isinstance(value, GlobalVar | Expr)


py_print: Final = print
"""Python's own ``print``; ``R.print`` is an operator."""
py_str: Final = str

NAMES: Final[dict[str, object]] = {
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
    "cpu": cpu,
    "cuda": cuda,
    "device": device,
    "dtype": dtype_,
    "str": str_,
    "to_vdevice": to_vdevice,
    "tuple": tuple_,
}
"""Names of ``R`` for which this module uses another Python name."""
COMPOSED: Final = frozenset({"linear"})
"""Functions of ``relax.op`` that call several operators."""


class Operators:
    """The operators below a dotted prefix, such as ``R.nn``."""

    def __init__(self, prefix: str) -> None:
        self.prefix_ = prefix

    def __getattr__(self, name: str) -> object:
        return operator(f"{self.prefix_}.{name}")

    def __dir__(self) -> list[str]:
        start = f"relax.{self.prefix_}."
        return sorted(
            [name.removeprefix(start) for name in Op.list_op_names() if name.startswith(start)]
        )

    def __repr__(self) -> str:
        return f"R.{self.prefix_}"


def operator(name: str) -> object:
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
    if Op.is_registered(f"relax.{name}"):
        return _plain(Op.get(f"relax.{name}"))
    registered = Op.list_op_names()
    if any(item.startswith(f"relax.{name}.") for item in registered):
        return Operators(name)
    if plugins.load_group(plugins.OPERATORS):
        return operator(name)

    text = f"R.{name} is neither an operator nor a part of the language"
    raise MissingNameError(text, name, lambda: {*_known_names(), *globals()}, "R.")


def _known_names() -> set[str]:
    registered = Op.list_op_names()
    operators = {item.removeprefix("relax.") for item in registered if item[:6] == "relax."}
    own = [name for name, item in globals().items() if _is_own(item) and name[0] != "_"]
    return {*operators, *NAMES, *FUNCTIONS, *own}


def _is_own(value: object) -> bool:
    """Whether a function belongs to the language: it is defined by a module of this package."""
    place = str(getattr(value, "__module__", None))
    return callable(value) and place.startswith(__name__.rpartition(".")[0])


def _plain(op: Op) -> abc.Callable[..., Call]:
    def build(*args: RelaxLike, sinfo_args: Infos | None = None, **attrs: object) -> Call:
        operands = [as_relax_expr(item) for item in args]
        infos = [] if sinfo_args is None else infos_of(sinfo_args)
        return Call(op, operands, attrs, infos if isinstance(infos, list) else [infos])

    return build


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return operator(name)


def __dir__() -> list[str]:
    importlib.import_module("weft.relax.op")  # which registers the operators
    return sorted({name.partition(".")[0] for name in _known_names()})
