"""Calls in graph scripts: ``R.call_tir``, ``R.call_dps_packed``, ``R.call_packed`` and the like."""

from __future__ import annotations

from collections import abc
from collections.abc import Sequence
from typing import Any

from weft.relax.expr import Call, Expr, ExternFunc, RelaxLike
from weft.relax.op import base
from weft.relax.struct_info import StructInfo
from weft.script.ir_builder.relax_info import Callee, Infos, Tensor, TirVars, as_struct_info
from weft.script.ir_builder.tir_value import TypeName
from weft.support.errors import IRTypeError

Dtypes = TypeName | Sequence[TypeName]
"""The type of a tensor, or those of several."""


def output_infos(
    what: str, out: Any, old: Infos | None, dtype: Any
) -> StructInfo | list[StructInfo]:
    """The struct info of a call's result: ``out_sinfo``, ``out_ty``, or a shape with a dtype."""
    if out is None:
        out = old
    if out is None:
        raise IRTypeError(f"R.{what}: out_sinfo=R.Tensor(shape, dtype) is missing")
    if dtype is None:
        return infos_of(out)
    if isinstance(out, list) and out and isinstance(out[0], list | tuple):
        dtypes = dtype if isinstance(dtype, list | tuple) else [dtype] * len(out)
        return [as_struct_info(Tensor(s, d)) for s, d in zip(out, dtypes, strict=True)]
    return as_struct_info(Tensor(out, dtype))


def infos_of(value: Infos) -> StructInfo | list[StructInfo]:
    """The struct info, or the list of them, that a value stands for."""
    if isinstance(value, list | tuple):
        return [as_struct_info(item) for item in value]
    return as_struct_info(value)


def call_tir(
    func: Callee,
    args: RelaxLike,
    out_sinfo: Infos | None = None,
    tir_vars: TirVars = None,
    *,
    dtype: Dtypes | None = None,
    out_ty: Infos | None = None,
) -> Call:
    """Call a TensorIR function with inputs, and with outputs that are allocated for it.

    The result is the output, or the tuple of several.

    Args:
        func: the GlobalVar of the function, in a script ``cls.add`` or ``Module.add``. A str is
            the name of a function registered at run time, as for ``R.call_dps_packed``.
        args: a tuple of the input tensors.
        out_sinfo: shape and type of the output, or a list of those of several.
        tir_vars: a shape with the values of the scalar parameters that come last.
        dtype: the type of the output where ``out_sinfo`` is only its shape (the spelling of
            2022).
        out_ty: ``out_sinfo`` by its name in later TVM.

    >>> from weft.script import ir as I, relax as R, tir as T
    >>> @I.ir_module
    ... class Module:
    ...     @T.prim_func(private=True)
    ...     def double(x: T.Buffer((4,), "float32"), y: T.Buffer((4,), "float32")):
    ...         for i in range(4):
    ...             with T.block("y"):
    ...                 v_i = T.axis.spatial(4, i)
    ...                 y[v_i] = x[v_i] * T.float32(2)
    ...
    ...     @R.function
    ...     def main(x: R.Tensor((4,), "float32")):
    ...         cls = Module
    ...         y = R.call_tir(cls.double, (x,), out_sinfo=R.Tensor((4,), "float32"))
    ...         return y
    >>> Module["main"].ret_struct_info.dtype
    'float32'
    """
    infos = output_infos("call_tir", out_sinfo, out_ty, dtype)
    if isinstance(func, str | ExternFunc):
        return base.call_dps_packed(func, args, infos)
    return base.call_tir(func, args, infos, tir_vars)


def call_tir_inplace(
    func: Callee,
    args: RelaxLike,
    inplace_indices: int | Sequence[int],
    out_sinfo: Infos | None = None,
    tir_vars: TirVars = None,
    *,
    out_ty: Infos | None = None,
) -> Call:
    """Call a TensorIR function that writes results into memory of its inputs.

    Args:
        func: the GlobalVar of the function.
        args: a tuple of the input tensors.
        inplace_indices: for each output, the index of the input that holds it; -1 for new
            memory.
        out_sinfo: shape and type of the output, or a list of those of several.
        tir_vars: a shape with the values of the scalar parameters that come last.
        out_ty: ``out_sinfo`` by its name in later TVM.
    """
    infos = output_infos("call_tir_inplace", out_sinfo, out_ty, None)
    return base.call_tir_inplace(func, args, inplace_indices, infos, tir_vars)


def call_tir_with_grad(
    func: Callee,
    args: RelaxLike,
    out_sinfo: Infos,
    te_grad_name: str,
    te_grad_kwargs: abc.Mapping[str, object] | None = None,
    tir_vars: TirVars = None,
) -> Call:
    """Call a TensorIR function as ``R.call_tir`` does, and name the TE function of its
    gradient.

    Args:
        func: the GlobalVar of the function.
        args: a tuple of the input tensors.
        out_sinfo: shape and type of the output, or a list of those of several.
        te_grad_name: the name under which the gradient is registered.
        te_grad_kwargs: keyword arguments of the gradient.
        tir_vars: a shape with the values of the scalar parameters that come last.
    """
    infos = infos_of(out_sinfo)
    return base.call_tir_with_grad(func, args, infos, te_grad_name, te_grad_kwargs, tir_vars)


def call_dps_packed(
    func: Callee,
    args: RelaxLike,
    out_sinfo: Infos | None = None,
    *,
    dtype: Dtypes | None = None,
    out_ty: Infos | None = None,
) -> Call:
    """Call a function registered at run time that writes into outputs that are allocated for
    it.

    Args:
        func: its name: ``R.call_dps_packed("my.matmul", (x, w), out_sinfo=...)``.
        args: a tuple of the inputs.
        out_sinfo: shape and type of the output, or a list of those of several.
        dtype: the type of the output where ``out_sinfo`` is only its shape (the spelling of
            2022).
        out_ty: ``out_sinfo`` by its name in later TVM.
    """
    infos = output_infos("call_dps_packed", out_sinfo, out_ty, dtype)
    return base.call_dps_packed(func, args, infos)


def call_packed(
    func: Callee, *args: RelaxLike, sinfo_args: Infos | None = None, **kwargs: object
) -> Call:
    """Call a function registered at run time that returns its result; it may have effects.

    Args:
        func: its name: ``R.call_packed("my.debug", x, sinfo_args=R.Tensor(ndim=1))``.
        args: the inputs.
        sinfo_args: the struct info of the result.
        kwargs: attributes of the call.
    """
    infos = [] if sinfo_args is None else infos_of(sinfo_args)
    return base.call_packed(func, *args, sinfo_args=infos, **kwargs)


def call_pure_packed(func: Callee, *args: RelaxLike, sinfo_args: Infos | None = None) -> Call:
    """Call a function registered at run time that returns its result and has no other effect.

    Arguments as those of ``R.call_packed``.
    """
    infos = [] if sinfo_args is None else infos_of(sinfo_args)
    return base.call_pure_packed(func, *args, sinfo_args=infos)


def call_inplace_packed(
    func: Callee,
    *args: RelaxLike,
    inplace_indices: int | Sequence[int],
    sinfo_args: Infos | None = None,
) -> Call:
    """Call a function registered at run time that changes some of its inputs and returns them.

    Args:
        func: its name.
        args: the inputs.
        inplace_indices: the indices of the inputs that it returns changed; -1 for a new result.
        sinfo_args: the struct info of the result, or a list of those of several.
    """
    infos = [] if sinfo_args is None else infos_of(sinfo_args)
    return base.call_inplace_packed(func, *args, inplace_indices=inplace_indices, sinfo_args=infos)


def call_builtin_with_ctx(
    func: Callee, args: RelaxLike, *, sinfo_args: Infos | None = None
) -> Call:
    """Call a function of the virtual machine that takes the machine's own state besides
    ``args``.

    Args:
        func: its name, such as ``"vm.builtin.call_tir_dyn"``.
        args: a tuple of the inputs.
        sinfo_args: the struct info of the result.
    """
    infos = None if sinfo_args is None else infos_of(sinfo_args)
    return base.call_builtin_with_ctx(func, args, sinfo_args=infos)


def invoke_closure(closure: Expr, args: RelaxLike, sinfo_args: Infos) -> Call:
    """Call a closure with a tuple of arguments; ``sinfo_args`` describes the result."""
    return base.invoke_closure(closure, args, infos_of(sinfo_args))


def invoke_pure_closure(closure: Expr, args: RelaxLike, sinfo_args: Infos) -> Call:
    """Call a closure that has no effect but its result, as ``R.invoke_closure``."""
    return base.invoke_pure_closure(closure, args, infos_of(sinfo_args))
