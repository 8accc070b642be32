"""Functions of the user's own inside of a module: tensor expressions, TensorIR, packed functions.

Also what concerns more than one process (ccl) and debugging.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from weft import topi  # noqa: F401 - gives whole te tensors their operators
from weft.ir.expr import FloatImm, IntImm, PrimExpr
from weft.ir.node import expect
from weft.relax import op as relax_op
from weft.relax.expr import Expr, PrimValue, ShapeExpr, StringImm, Tuple
from weft.relax.frontend.nn.exporter import Exporter
from weft.relax.frontend.nn.tensor import (
    Nested,
    Object,
    Tensor,
    current_builder,
    emit,
    expr_of,
    wrap_nested,
)
from weft.relax.struct_info import ObjectStructInfo, StructInfo, TupleStructInfo
from weft.support.errors import IRTypeError, IRValueError, wrong_type
from weft.tir.function import PrimFunc

KernelArgs = Tensor | ShapeExpr | PrimExpr | Sequence[Tensor | ShapeExpr | PrimExpr]
"""What a PrimFunc is called with: tensors, then scalars."""
Out: TypeAlias = "Tensor | Object | Expr | Sequence[Out]"
"""Placeholders of outputs."""
PackedArg: TypeAlias = "Tensor | PrimExpr | float | str | Sequence[PackedArg]"
"""What a registered function is called with."""


def tensor_expr_op(
    tensor_expr_func: Callable[..., object],
    name_hint: str,
    args: Sequence[object],
    *,
    attrs: Mapping[str, object] | None = None,
) -> Nested:
    """What a function on ``te`` tensors computes: a Tensor, or a tuple of them.

    ``args`` are Tensors, symbols and numbers; ``attrs`` become attributes of the PrimFunc.

    >>> from weft import te
    >>> from weft.relax.frontend import nn
    >>> class Twice(nn.Module):
    ...     def forward(self, x: nn.Tensor):
    ...         def twice(a):
    ...             return te.compute(a.shape, lambda i: a[i] * 2)
    ...         return nn.tensor_expr_op(twice, "twice", [x])
    >>> mod, _ = Twice().export_tvm({"forward": {"x": nn.spec.Tensor(["n"], "int32")}})
    >>> sorted(var.name_hint for var in mod.functions)
    ['forward', 'twice']
    """
    result = current_builder(name_hint).emit_te(
        tensor_expr_func,
        *[arg._expr if isinstance(arg, Tensor) else arg for arg in args],
        primfunc_name_hint=name_hint,
        primfunc_attrs=attrs,
    )
    return wrap_nested(result, name_hint)


def tensor_ir_op(func: PrimFunc, name_hint: str, args: KernelArgs, out: Out) -> Nested:
    """A call of a PrimFunc, whose last buffers are its outputs.

    Args:
        func: the PrimFunc.
        name_hint: its name in the module.
        args: Tensors, and after them the values of its scalar parameters.
        out: placeholders (``Tensor.placeholder``) of the outputs: one or several.
    """
    tensors, scalars = _kernel_arguments(args, "tensor_ir_op")
    builder = current_builder(name_hint)
    gvar = builder.add_func(_checked(func, "tensor_ir_op"), name_hint)
    call = relax_op.call_tir(gvar, tensors, _out_infos(out, "tensor_ir_op"), scalars or None)
    return wrap_nested(builder.emit(call), name_hint)


def tensor_ir_inplace_op(
    func: PrimFunc,
    name_hint: str,
    args: KernelArgs,
    inplace_indices: int | Sequence[int],
    out: Out,
) -> Nested:
    """As ``tensor_ir_op``; output i is written into argument ``inplace_indices[i]`` (-1: new)."""
    tensors, scalars = _kernel_arguments(args, "tensor_ir_inplace_op")
    builder = current_builder(name_hint)
    gvar = builder.add_func(_checked(func, "tensor_ir_inplace_op"), name_hint)
    infos = _out_infos(out, "tensor_ir_inplace_op")
    call = relax_op.call_tir_inplace(gvar, tensors, inplace_indices, infos, scalars or None)
    return wrap_nested(builder.emit(call), name_hint)


def _checked(func: object, where: str) -> PrimFunc:
    if not isinstance(func, PrimFunc):
        raise wrong_type(f"{where}: expected a PrimFunc", func)
    return func


def _kernel_arguments(
    args: KernelArgs, where: str
) -> tuple[list[Expr], list[ShapeExpr | PrimExpr]]:
    tensors: list[Expr] = []
    scalars: list[ShapeExpr | PrimExpr] = []
    for arg in args if isinstance(args, list | tuple) else [args]:
        if isinstance(arg, Tensor):
            tensors.append(arg._expr)
        elif isinstance(arg, ShapeExpr | PrimExpr):
            scalars.append(arg)
        else:
            raise IRTypeError(
                f"Unsupported type: {where} args expect Tensor or ShapeExpr or PrimExpr, but got "
                f"{type(arg).__name__}"
            )
    return tensors, scalars


def _out_infos(out: Out, where: str) -> list[StructInfo]:
    outs = out if isinstance(out, list | tuple) else [out]
    return [expr_of(item, f"{where}: out").struct_info for item in outs]


def extern(name: str, args: Sequence[PackedArg], out: Out) -> Nested:
    """A call of a registered function that writes its last arguments (``call_dps_packed``).

    Args:
        name: the function's name, as ``weft.register_func`` has it.
        args: Tensors, numbers, texts, symbols, or lists of them.
        out: placeholders of the outputs: one, or a tuple or list of them.
    """
    operands = [_operand(arg, "extern") for arg in args]
    return wrap_nested(relax_op.call_dps_packed(name, operands, _out_info(out)), name)


def _out_info(out: Out) -> StructInfo:
    if isinstance(out, list | tuple):
        return TupleStructInfo([_out_info(item) for item in out])
    return expect(expr_of(out, "extern: out").struct_info, StructInfo)


def _operand(arg: PackedArg, where: str, float_type: str = "float64") -> Expr:
    if isinstance(arg, Tensor):
        return arg._expr
    if isinstance(arg, int):
        return PrimValue(IntImm("int64", int(arg)))
    if isinstance(arg, float):
        return PrimValue(FloatImm(float_type, arg))
    if isinstance(arg, str):
        return StringImm(arg)
    if isinstance(arg, PrimExpr):
        return PrimValue(arg)
    if isinstance(arg, list | tuple):
        return Tuple([_operand(item, where, float_type) for item in arg])
    raise IRTypeError(
        f"{where}: Unsupported input type: {type(arg).__name__}; expected an nn.Tensor, a number, "
        "a text or a symbol"
    )


def debug_func(name: str, *args: PackedArg, _line_info: str | None = None) -> None:
    """Call a registered function when the model runs: ``function(line, *args)``.

    ``line`` is the file and the line of this call. Raises IRValueError unless the module is
    exported with ``debug=True``.
    """
    exporter = Exporter.current()
    io = None if exporter is None else exporter.io_effect
    if io is None or io.effect is None:
        raise IRValueError(
            "debug_func: Debugging is only supported when debug mode is on: "
            "export_tvm(spec, debug=True), or jit(spec, debug=True)"
        )
    line = _line_info or _line_of_caller()
    operands = [_operand(arg, "debug_func", "float32") for arg in args]
    io.effect = current_builder("debug_func").emit(
        relax_op.call_pure_packed(
            "vm.builtin.invoke_debug_func",
            io.effect,
            StringImm(name),
            StringImm(line),
            *operands,
            sinfo_args=[ObjectStructInfo()],
        ),
        io.effect.name_hint,
    )


def print_(tensor: Tensor) -> None:
    """Print a tensor when the model runs, with the line of this call (see ``debug_func``)."""
    debug_func("vm.builtin.debug_print", tensor, _line_info=_line_of_caller())


def _line_of_caller() -> str:
    """File and line of whoever called the caller of this function."""
    frame = inspect.currentframe()
    for _ in range(2):
        frame = frame and frame.f_back
    assert frame is not None, "the caller of the caller is a function"
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


def ccl_allreduce(
    x: Tensor, op_type: str = "sum", in_group: bool = True, name: str = "ccl_allreduce"
) -> Tensor:
    """The sum (or prod, min, max, avg) of x over the processes."""
    return emit(relax_op.ccl.allreduce(expr_of(x, "ccl_allreduce"), op_type, in_group), name)


def ccl_allgather(x: Tensor, num_workers: int, name: str = "ccl_allgather") -> Tensor:
    """The tensors of all processes, one after the other along the first axis."""
    return emit(relax_op.ccl.allgather(expr_of(x, "ccl_allgather"), num_workers), name)


def ccl_broadcast_from_worker0(x: Tensor, name: str = "broadcast_from_worker") -> Tensor:
    """The tensor of the first process, in all of them."""
    received = relax_op.ccl.broadcast_from_worker0(expr_of(x, "ccl_broadcast_from_worker0"))
    return emit(received, name)
