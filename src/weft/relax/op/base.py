"""Operators of the language itself: calls of PrimFuncs and packed functions, print, assert, shapes.

The call of a PrimFunc or a packed function has its result's struct info in ``sinfo_args``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Protocol

from weft.ir.attrs import Attrs, as_attrs
from weft.ir.expr import Extent, GlobalVar, PrimExpr, RelaxExpr
from weft.ir.global_info import VDevice
from weft.ir.node import Array
from weft.ir.op import Op
from weft.ir.traits import Trait
from weft.relax.expr import Call, Expr, ExternFunc, RelaxLike, StringImm, Tuple, as_relax_expr
from weft.relax.ir.lattice import combined
from weft.relax.op.definition import FUNCTIONS, Infer, as_operand, as_shape, operator
from weft.relax.op.infer import constants, dims_of, shape_arg, tensor
from weft.relax.struct_info import (
    ObjectStructInfo,
    PrimStructInfo,
    ShapeStructInfo,
    StructInfo,
    TensorStructInfo,
    TupleStructInfo,
)
from weft.support import slots
from weft.support.errors import IRTypeError, IRValueError
from weft.tir.expr import Call as TirCall


class AsStructInfo(Protocol):
    """An annotation that stands for struct info: ``R.Tensor``."""

    def as_struct_info(self) -> StructInfo:
        """The struct info."""


InfoLike = StructInfo | AsStructInfo
Infos = InfoLike | Sequence[InfoLike]
"""The struct info of the result of a call, or a list of them for several results."""
Extents = Expr | Extent | Sequence[Extent]


def infer_from_args(call: Call) -> StructInfo:
    """The struct info that the call has in ``sinfo_args``."""
    return combined(call.sinfo_args)


def infer_none(call: Call) -> StructInfo:  # noqa: ARG001 - the signature of every rule
    """The empty tuple: the operator is called for its side effect."""
    return TupleStructInfo([])


def infer_any(call: Call) -> StructInfo:  # noqa: ARG001 - the signature of every rule
    """Any object."""
    return ObjectStructInfo()


def _register(
    name: str,
    infer: Infer,
    function: Callable[..., Call],
    pure: bool = True,
    params: Sequence[str] = (),
    traits: Trait = Trait.NONE,
) -> None:
    Op.register(
        f"relax.{name}",
        infer_struct_info=infer,
        function=function,
        pure=pure,
        params=tuple(params),
        attrs=(),
        traits=traits,
        form_problem=_FORM_PROBLEMS.get(name),
    )
    FUNCTIONS[name] = function


def _places_problem(call: Call) -> str | None:
    """What is wrong with ``inplace_indices`` of a call that was built by hand; None if nothing."""
    places, name = call.attrs.get("inplace_indices"), call.op.name
    if not isinstance(places, list | tuple | Array):
        return f"{name} has an attribute inplace_indices, a list, and the call does not say it"
    if call.op is CALL_TIR_INPLACE:
        outputs, given = _count(combined(call.sinfo_args)), _count(call.args[1].struct_info)
    else:
        outputs, given = len(places), len(call.args) - 1
    if len(places) != outputs:
        return f"{name}: {len(places)} inplace_indices for {outputs} outputs"
    for place in places:
        if not -1 <= int(place) < given:
            return (
                f"{name}: expected inplace_indices between -1, a new tensor, and {given - 1}, the "
                f"last argument, got {place}"
            )
    return _overwritten_problem(call, [int(place) for place in places if int(place) >= 0])


def _overwritten_problem(call: Call, places: Sequence[int]) -> str | None:
    """Why arguments at these places cannot be overwritten, each by an output of its own."""
    name = call.op.name
    for index, place in enumerate(places):
        if place in places[:index]:
            return f"{name}: argument {place} is overwritten by two outputs; -1 is a new tensor"
    if call.op is not CALL_TIR_INPLACE or not isinstance(call.args[1], Tuple):
        return None
    for place, argument in enumerate(call.args[1].fields):
        info = argument.struct_info
        wrong = (ObjectStructInfo, TupleStructInfo) if place in places else TupleStructInfo
        if isinstance(info, wrong):
            return f"{name}: argument {place}: expected a tensor, got {info}"
    return None


def _infer_in_place(call: Call) -> StructInfo:
    """What the call says, if its outputs can overwrite the arguments."""
    problem = _places_problem(call)
    if problem is not None:
        raise IRValueError(problem)
    return infer_from_args(call)


def _count(info: StructInfo | None) -> int:
    return len(info.fields) if isinstance(info, TupleStructInfo) else 1


_FORM_PROBLEMS: Final = {
    "call_tir_inplace": _places_problem, "call_inplace_packed": _places_problem,
}  # fmt: skip
"""Calls whose attributes are checked when a module is built: operator -> what tells the problem."""


def as_sinfo_args(value: Infos | None, what: str) -> list[StructInfo]:
    """A list of struct infos from one or several (annotations such as R.Tensor(...) too)."""
    items: list[object] = list(value) if isinstance(value, list | tuple) else [value]
    infos: list[StructInfo] = []
    for item in items:
        convert = getattr(item, "as_struct_info", None)
        if isinstance(item, StructInfo):
            infos.append(item)
        elif callable(convert):
            infos.append(convert())
        else:
            raise IRTypeError(
                f"{what}: expected struct info such as R.Tensor((2, 3), 'float32'), got {item!r}"
            )
    return infos


def inline_tuple(args: RelaxLike) -> RelaxExpr:
    """The argument tuple of call_tir: a list, one tensor, or a tuple-valued expression."""
    if isinstance(args, Tuple):
        return args
    if isinstance(args, RelaxExpr):
        if isinstance(args.struct_info, TupleStructInfo):
            return args
        return Tuple([args])
    if isinstance(args, list | tuple):
        return Tuple([as_operand(item) for item in args])
    return Tuple([as_operand(args)])


def _result_info(out_sinfo: Infos, what: str) -> list[StructInfo]:
    """The struct infos of outputs as ``sinfo_args``: several become one tuple."""
    infos = as_sinfo_args(out_sinfo, what)
    return infos if len(infos) == 1 else [TupleStructInfo(infos)]


def _or_legacy(what: str, function: Callable[..., Call]) -> Callable[..., Call]:
    """The function; after a TypeError it is tried again with arguments converted by weft.compat."""

    def call(*args: object, **kwargs: object) -> Call:
        try:
            return function(*args, **kwargs)
        except TypeError as error:
            adapted = adapt(what, args, kwargs)
            if adapted is None:
                raise
            if isinstance(adapted, Call):
                return adapted
            try:
                return function(*adapted[0], **adapted[1])
            except TypeError:
                raise error from None

    functools.update_wrapper(call, function, ("__name__", "__qualname__", "__doc__"), ())
    return call


def adapt(what: str, args: Sequence[object], kwargs: Mapping[str, object]) -> Any:
    """The arguments converted from an old spelling of TVM, or None if they are none."""
    try:
        legacy = slots.legacy.get()
    except ModuleNotFoundError:
        return None
    return legacy.adapt(what, args, kwargs)


def _callee(func: object, what: str) -> RelaxExpr:
    if isinstance(func, GlobalVar):
        return func
    raise IRTypeError(
        f"{what}: expected a GlobalVar (a function of the module), got {type(func).__name__}; for "
        "a function registered at run time use call_dps_packed"
    )


def _call_tir(
    gvar: GlobalVar, args: RelaxLike, out_sinfo: Infos, tir_vars: Extents | None = None
) -> Call:
    """A call of a PrimFunc in destination-passing style; outputs are allocated by the caller.

    ``out_sinfo`` is one TensorStructInfo or a list of them; ``tir_vars`` scalars that the
    PrimFunc takes after its buffers.
    """
    operands = [_callee(gvar, "call_tir"), inline_tuple(args)]
    if tir_vars is not None:
        operands.append(as_shape(tir_vars))
    return Call(CALL_TIR, operands, None, _result_info(out_sinfo, "call_tir"))


def _call_tir_inplace(
    gvar: GlobalVar,
    args: RelaxLike,
    inplace_indices: int | Sequence[int],
    out_sinfo: Infos,
    tir_vars: Extents | None = None,
) -> Call:
    """As call_tir, but output i overwrites argument ``inplace_indices[i]`` (-1: a new tensor)."""
    indices = [inplace_indices] if isinstance(inplace_indices, int) else inplace_indices
    infos = as_sinfo_args(out_sinfo, "call_tir_inplace")
    if len(indices) != len(infos):
        raise IRValueError(
            f"call_tir_inplace: {len(indices)} inplace_indices for {len(infos)} outputs"
        )
    operands = [_callee(gvar, "call_tir_inplace"), inline_tuple(args)]
    if tir_vars is not None:
        operands.append(as_shape(tir_vars))
    attrs = Attrs({"inplace_indices": Array([int(i) for i in indices])})
    return Call(CALL_TIR_INPLACE, operands, attrs, _result_info(infos, "call_tir_inplace"))


def _call_tir_with_grad(
    gvar: GlobalVar,
    args: RelaxLike,
    out_sinfo: Infos,
    te_grad_name: str,
    te_grad_kwargs: Mapping[str, object] | None = None,
    tir_vars: Extents | None = None,
) -> Call:
    """As call_tir, with the name of the TE function that computes its gradient."""
    operands = [_callee(gvar, "call_tir_with_grad"), inline_tuple(args)]
    if tir_vars is not None:
        operands.append(as_shape(tir_vars))
    attrs = Attrs({"te_grad_name": te_grad_name, "te_grad_kwargs": Attrs(te_grad_kwargs or {})})
    infos = _result_info(out_sinfo, "call_tir_with_grad")
    return Call(Op.get("relax.call_tir_with_grad"), operands, attrs, infos)


def _call_dps_packed(func: str | RelaxExpr, args: RelaxLike, out_sinfo: Infos) -> Call:
    """A call of a registered function in destination-passing style."""
    callee = ExternFunc(func) if isinstance(func, str) else func
    operands = [callee, inline_tuple(args)]
    infos = _result_info(out_sinfo, "call_dps_packed")
    return Call(Op.get("relax.call_dps_packed"), operands, None, infos)


def _packed_arguments(args: Sequence[RelaxLike]) -> list[RelaxExpr]:
    return [StringImm(arg) if isinstance(arg, str) else as_relax_expr(arg) for arg in args]


def call_packed(
    func: str | RelaxExpr, *args: RelaxLike, sinfo_args: Infos | None = None, **kwargs: object
) -> Call:
    """A call of a registered function that returns its result; may have side effects."""
    callee = ExternFunc(func) if isinstance(func, str) else func
    if sinfo_args is None:
        raise IRTypeError("call_packed: sinfo_args (the struct info of the result) is missing")
    attrs = as_attrs(kwargs.get("attrs") or kwargs)
    return Call(callee, _packed_arguments(args), attrs, as_sinfo_args(sinfo_args, "call_packed"))


def call_pure_packed(
    func: str | RelaxExpr, *args: RelaxLike, sinfo_args: Infos | None = None
) -> Call:
    """A call of a registered function that returns its result and has no side effect."""
    callee = ExternFunc(func) if isinstance(func, str) else func
    if sinfo_args is None:
        raise IRTypeError("call_pure_packed: sinfo_args (the result's struct info) is missing")
    operands = [callee, *_packed_arguments(args)]
    infos = as_sinfo_args(sinfo_args, "call_pure_packed")
    return Call(Op.get("relax.call_pure_packed"), operands, None, infos)


def call_inplace_packed(
    func: str | RelaxExpr,
    *args: RelaxLike,
    inplace_indices: int | Sequence[int],
    sinfo_args: Infos | None = None,
) -> Call:
    """A call of a registered function that overwrites some of its arguments and returns them."""
    callee = ExternFunc(func) if isinstance(func, str) else func
    indices = [inplace_indices] if isinstance(inplace_indices, int) else inplace_indices
    attrs = Attrs({"inplace_indices": Array([int(i) for i in indices])})
    infos = as_sinfo_args(sinfo_args, "call_inplace_packed")
    operands = [callee, *_packed_arguments(args)]
    return Call(Op.get("relax.call_inplace_packed"), operands, attrs, infos)


def call_builtin_with_ctx(
    func: str | RelaxExpr, args: RelaxLike, *, sinfo_args: Infos | None = None
) -> Call:
    """A call of a VM builtin that takes the VM's context first."""
    callee = ExternFunc(func) if isinstance(func, str) else func
    infos = as_sinfo_args(sinfo_args, "call_builtin_with_ctx") if sinfo_args is not None else []
    operands = [callee, inline_tuple(args)]
    return Call(Op.get("relax.call_builtin_with_ctx"), operands, None, infos)


def make_closure(func: RelaxExpr, args: RelaxLike) -> Call:
    """A closure of a function and captured values."""
    return Call(Op.get("relax.make_closure"), [func, inline_tuple(args)])


def invoke_closure(closure: RelaxExpr, args: RelaxLike, sinfo_args: Infos) -> Call:
    """A call of a closure."""
    infos = as_sinfo_args(sinfo_args, "invoke_closure")
    return Call(Op.get("relax.invoke_closure"), [closure, inline_tuple(args)], None, infos)


def invoke_pure_closure(closure: RelaxExpr, args: RelaxLike, sinfo_args: Infos) -> Call:
    """A call of a closure without side effects."""
    infos = as_sinfo_args(sinfo_args, "invoke_pure_closure")
    return Call(Op.get("relax.invoke_pure_closure"), [closure, inline_tuple(args)], None, infos)


def print(*values: RelaxLike, format: str | Expr = "") -> Call:  # noqa: A001, A002 - TVM's names
    """Print values at run time, by a format text as of Python's ``str.format``."""
    text = StringImm(format) if isinstance(format, str) else format
    return Call(Op.get("relax.print"), [text, *[as_operand(value) for value in values]])


def assert_op(
    condition: RelaxLike,
    format_args: RelaxLike | None = None,
    format: str | Expr = "",  # noqa: A002 - TVM's name
) -> Call:
    """Stop with a message unless the boolean scalar holds."""
    if format_args is None:
        format_args = []
    elif not isinstance(format_args, list | tuple):
        format_args = [format_args]
    text = StringImm(format) if isinstance(format, str) else format
    operands = [as_operand(condition), text, *[as_operand(value) for value in format_args]]
    return Call(Op.get("relax.assert_op"), operands)


def _infer_assert(call: Call) -> StructInfo:
    info = call.args[0].struct_info
    is_scalar = isinstance(info, PrimStructInfo) or (
        isinstance(info, TensorStructInfo) and info.ndim in (-1, 0)
    )
    if not is_scalar or info.dtype not in ("bool", "void"):
        raise IRTypeError(f"relax.assert_op: expected a boolean scalar, got {info}")
    return TupleStructInfo([])


def null_value() -> Call:
    """The object None."""
    return Call(Op.get("relax.null_value"), [])


def _infer_shape_of(call: Call) -> StructInfo:
    info = tensor(call, 0)
    return ShapeStructInfo(dims_of(info), info.ndim)


@operator("relax.shape_of", _infer_shape_of)
def shape_of(expr: Expr) -> None:
    """The shape of a tensor."""


def _infer_tensor_to_shape(call: Call) -> StructInfo:
    info = tensor(call, 0)
    sizes = constants(dims_of(info))
    if info.ndim not in (-1, 1):
        raise IRValueError(f"relax.tensor_to_shape: expected 1 dimension, got {info.ndim}")
    return ShapeStructInfo(None, sizes[0] if sizes else -1)


@operator("relax.tensor_to_shape", _infer_tensor_to_shape)
def tensor_to_shape(expr: Expr) -> None:
    """The shape whose dimensions are the elements of an int64 vector."""


def _infer_shape_to_tensor(call: Call) -> StructInfo:
    rank = shape_arg(call, 0).ndim
    return TensorStructInfo(None if rank == -1 else [rank], "int64", ndim=1)


@operator("relax.shape_to_tensor", _infer_shape_to_tensor)
def shape_to_tensor(expr: Expr) -> None:
    """The dimensions of a shape as an int64 vector."""


def _infer_to_vdevice(call: Call) -> StructInfo:
    info, device = tensor(call, 0), call.attrs["dst_vdevice"]
    if not isinstance(device, VDevice):
        raise IRTypeError(f"relax.to_vdevice: dst_vdevice: expected a VDevice, got {device!r}")
    return TensorStructInfo(info.shape, info.dtype, device, info.ndim)


@operator("relax.to_vdevice", _infer_to_vdevice, traits=Trait.SAME_VALUE)
def to_vdevice(data: Expr, dst_vdevice: object) -> None:
    """The tensor copied to a virtual device."""


@operator("relax.hint_on_device", lambda call: tensor(call, 0), traits=Trait.SAME_VALUE)
def hint_on_device(data: Expr, dst_vdevice: object) -> None:
    """The tensor, known to live on a virtual device."""


call_tir = _or_legacy("relax.op.call_tir", _call_tir)
call_tir_inplace = _or_legacy("relax.op.call_tir_inplace", _call_tir_inplace)
call_tir_with_grad = _or_legacy("relax.op.call_tir_with_grad", _call_tir_with_grad)
call_dps_packed = _or_legacy("relax.op.call_dps_packed", _call_dps_packed)
for _name in ("call_tir", "call_tir_inplace", "call_tir_with_grad", "call_dps_packed"):
    globals()[_name].__name__ = _name
    _register(
        _name,
        _infer_in_place if _name == "call_tir_inplace" else infer_from_args,
        globals()[_name],
        params=("func", "args", "tir_vars"),
        traits=Trait.WRITES if _name == "call_tir_inplace" else Trait.NONE,
    )
for _function, _is_pure, _traits in (
    (call_pure_packed, True, Trait.OPAQUE),
    (call_inplace_packed, True, Trait.OPAQUE | Trait.WRITES),
    (call_builtin_with_ctx, True, Trait.OPAQUE),
    (invoke_closure, False, Trait.OPAQUE),
    (invoke_pure_closure, True, Trait.OPAQUE),
):
    _register(_function.__name__, infer_from_args, _function, _is_pure, traits=_traits)
_register("make_closure", infer_any, make_closure, traits=Trait.OPAQUE)
_register("null_value", infer_any, null_value)
_register("print", infer_none, print, False)
_register("assert_op", _infer_assert, assert_op, False, ("condition", "format"))
FUNCTIONS["call_packed"] = call_packed


def call_global(gvar: GlobalVar, args: Sequence[RelaxLike]) -> Call | TirCall:
    """``gvar(*args)``: a graph call; a call within TensorIR if an argument is a scalar."""
    if any(isinstance(arg, PrimExpr) for arg in args):
        return TirCall("void", gvar, args)
    return Call(gvar, args)


CALL_TIR: Final = Op.get("relax.call_tir")
CALL_TIR_INPLACE: Final = Op.get("relax.call_tir_inplace")
CALLS_OF_KERNELS: Final = (CALL_TIR, CALL_TIR_INPLACE)
"""Passes compare the operator of a call with these."""
