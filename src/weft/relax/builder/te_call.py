"""From tensor expressions to call_tir: what ``emit_te`` and ``call_te`` share.

Tensors among the arguments become placeholders, and symbolic variables are copied, since a PrimFunc
has variables of its own. A variable that no buffer's shape defines becomes a scalar parameter, also
when the tensor expression took it from the surrounding Python code and not from an argument.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from weft.ir.attrs import as_attrs
from weft.ir.expr import PrimExpr, RelaxExpr
from weft.ir.functor import substitute
from weft.ir.node import Array
from weft.ir.op import Op
from weft.ir.type import Type
from weft.relax.expr import ShapeExpr, Tuple, Var
from weft.relax.ir.lattice import symbolic_vars, tensor_dims
from weft.relax.struct_info import (
    PrimStructInfo,
    ShapeStructInfo,
    TensorStructInfo,
    TupleStructInfo,
)
from weft.support.errors import IRTypeError, IRValueError
from weft.te.operation import placeholder
from weft.te.primfunc import create_prim_func
from weft.te.tensor import Tensor
from weft.tir.analysis.undefined_vars import undefined_vars
from weft.tir.expr import Var as TirVar
from weft.tir.function import PrimFunc
from weft.tir.stmt_functor import renew_defs


@dataclass
class TeCall:
    """The PrimFunc of a tensor expression, and what call_tir passes to it."""

    func: PrimFunc
    args: list[RelaxExpr]
    out_sinfo: list[TensorStructInfo]
    tir_vars: ShapeExpr | None


@dataclass
class _Arguments:
    """The arguments converted so far, and the two mappings between symbolic variables."""

    to_te: dict[TirVar, TirVar] = field(default_factory=dict)
    to_relax: dict[TirVar, TirVar] = field(default_factory=dict)
    call_args: list[RelaxExpr] = field(default_factory=list)
    func_args: list[Tensor | TirVar] = field(default_factory=list)
    scalars: list[PrimExpr] = field(default_factory=list)

    def convert(self, arg: object) -> object:
        if isinstance(arg, Tuple) or isinstance(getattr(arg, "struct_info", None), TupleStructInfo):
            return self.tuple(arg)
        if isinstance(arg, RelaxExpr) and not isinstance(arg, Op):
            return self.expr(arg)
        if isinstance(arg, PrimExpr):
            self.scalars.append(arg)
            return self.copy(arg)
        if isinstance(arg, list | tuple):
            items = [self.convert(item) for item in arg]
            if isinstance(arg, list):
                return items
            return Array(items) if type(arg) is Array else tuple(items)
        if isinstance(arg, Mapping):
            return {key: self.convert(item) for key, item in arg.items()}
        passed = int | float | str | np.generic | Type | Op | Tensor
        if arg is None or callable(arg) or isinstance(arg, passed):
            return arg
        raise IRTypeError(f"emit_te: an argument of type {type(arg).__name__} is not supported")

    def tuple(self, arg: object) -> tuple[object, ...]:
        if not isinstance(arg, Tuple):
            raise IRTypeError(
                "emit_te: pass the fields of a tuple (x[0], x[1]), not a variable of a tuple"
            )
        return tuple([self.convert(item) for item in arg.fields])

    def expr(self, arg: RelaxExpr) -> object:
        info = arg.struct_info
        if isinstance(info, TensorStructInfo):
            return self.tensor(arg, info)
        if isinstance(info, ShapeStructInfo):
            if info.values is None:
                raise IRValueError("emit_te: the dimensions of a shape argument must be known")
            return [self.convert(value) for value in info.values]
        if isinstance(info, PrimStructInfo):
            if info.value is not None:
                return self.convert(info.value)
            param = TirVar(self.name_of(arg), info.dtype)
            self.call_args.append(arg)
            self.func_args.append(param)
            return param
        raise IRTypeError(f"emit_te: cannot take an argument of struct info {info}")

    def tensor(self, arg: RelaxExpr, info: TensorStructInfo) -> Tensor:
        dims = tensor_dims(info)
        if dims is None:
            raise IRValueError(
                f"emit_te: the shape of {arg} must be known (constants or symbolic variables), "
                f"got {info}; use match_cast first"
            )
        if info.dtype == "void":
            raise IRValueError(f"emit_te: the data type of {arg} must be known, got {info}")
        tensor: Tensor = placeholder(
            [self.copy(dim) for dim in dims], info.dtype, self.name_of(arg)
        )
        self.call_args.append(arg)
        self.func_args.append(tensor)
        return tensor

    def name_of(self, arg: RelaxExpr) -> str:
        if isinstance(arg, Var):
            return arg.name_hint
        index = len(self.func_args)
        return chr(ord("A") + index) if index < 26 else f"input{index}"

    def copy(self, value: PrimExpr) -> PrimExpr:
        """The expression with the graph's variables replaced by the PrimFunc's."""
        used = symbolic_vars(value)
        for var in used:
            if var not in self.to_te:
                fresh = type(var)(var.name, var.dtype)  # a SizeVar stays known to be 0 or more
                self.to_te[var], self.to_relax[fresh] = fresh, var
        return substitute(value, {var: self.to_te[var] for var in used})

    def relax(self, value: PrimExpr) -> PrimExpr:
        """The expression with the PrimFunc's variables replaced by the graph's."""
        return substitute(value, self.to_relax)


def _outputs(result: object, func: object) -> list[Tensor]:
    if isinstance(result, Tensor):
        return [result]
    if isinstance(result, list | tuple) and result and all(isinstance(t, Tensor) for t in result):
        return list(result)
    raise IRTypeError(
        f"emit_te: {getattr(func, '__name__', func)} must return a te.Tensor or a list of them, "
        f"got {type(result).__name__}"
    )


def _unbound(arguments: _Arguments, outs: list[Tensor]) -> list[TirVar]:
    """The PrimFunc's variables that no dimension of a buffer and no scalar parameter defines."""
    bound: dict[TirVar, None] = {}
    used: dict[TirVar, None] = {}
    for item in [*arguments.func_args, *outs]:
        if isinstance(item, TirVar):
            bound[item] = None
            continue
        for dim in item.shape:
            if isinstance(dim, TirVar):
                bound[dim] = None
            for var in symbolic_vars(dim):
                used[var] = None
    for scalar in arguments.scalars:
        for var in symbolic_vars(arguments.copy(scalar)):
            used[var] = None
    return [var for var in used if var not in bound and var in arguments.to_relax]


def _captured(func: PrimFunc) -> list[TirVar]:
    """Variables of the graph that the expression uses without having them as arguments."""
    shapes = [dim for buffer in func.buffer_map.values() for dim in buffer.shape]
    bound = {*func.params, *[dim for dim in shapes if isinstance(dim, TirVar)]}
    used = dict.fromkeys([*symbolic_vars(Array(shapes)), *undefined_vars(func.body)])
    return [var for var in used if var not in bound and var.dtype != "handle"]


def _has_foreign_extents(func: PrimFunc, arguments: _Arguments) -> bool:
    """Whether an extent is a variable of the graph that occurs in no argument."""
    return any(
        isinstance(dim, TirVar) and dim not in arguments.to_relax and dim not in func.params
        for buffer in func.buffer_map.values()
        for dim in buffer.shape
    )


def make_te_call(
    te_func: Callable[..., object], args: Sequence[object], kwargs: Mapping[str, object]
) -> TeCall:
    """Call ``te_func`` on placeholders for the arguments, and build a PrimFunc of its result.

    The keyword ``primfunc_attrs`` gives the PrimFunc's attributes; ``te_func`` does not get it.
    """
    options = dict(kwargs)
    attrs = options.pop("primfunc_attrs", None)
    arguments = _Arguments()
    te_args = [arguments.convert(arg) for arg in args]
    te_kwargs = {name: arguments.convert(value) for name, value in options.items()}
    outs = _outputs(te_func(*te_args, **te_kwargs), te_func)
    unbound = _unbound(arguments, outs)
    inputs = [*arguments.func_args, *outs, *unbound]
    func = create_prim_func(inputs, "int64")
    captured = _captured(func)
    if captured:
        unbound = [*unbound, *captured]
        func = create_prim_func([*inputs, *captured], "int64")
    if captured or _has_foreign_extents(func, arguments):
        # The PrimFunc holds variables of the graph: replace them by variables of its own.
        func = renew_defs(func)
    func = func.without_attr("global_symbol")
    func.provenance = "te"
    if attrs:
        func = func.with_attrs({**func.attrs, **as_attrs(attrs)})
    infos = [
        TensorStructInfo([arguments.relax(dim) for dim in out.shape], out.dtype) for out in outs
    ]
    given = [arguments.to_relax.get(var, var) for var in unbound]
    tir_vars = ShapeExpr(given) if given else None
    return TeCall(func, arguments.call_args, infos, tir_vars)


__all__ = ["TeCall", "make_te_call"]
