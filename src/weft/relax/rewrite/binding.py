"""Binding of parameters and symbolic variables, inlining of calls.

The implementation of ``Function.bind_params``, ``bind_symbolic_vars`` and ``inline_functions``, and
of the passes of these names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

import numpy as np

from weft.ir.expr import Extent, GlobalVar, IntImm, PrimExpr, RelaxExpr
from weft.ir.node import Array, expect
from weft.relax.analysis.unused import remove_all_unused
from weft.relax.expr import (
    BindingBlock,
    Call,
    Constant,
    DataflowBlock,
    Expr,
    Function,
    If,
    Var,
    VarBinding,
    const,
)
from weft.relax.expr_functor import PyExprMutator, post_order_visit
from weft.relax.ir.lattice import match_params, symbolic_vars, tensor_dims
from weft.relax.ir.substitution import copy_with_new_vars, replace
from weft.relax.struct_info import TensorStructInfo
from weft.runtime.ndarray import NDArray
from weft.runtime.weight_names import name_weight, weight_name
from weft.support.errors import IRValueError, wrong_type
from weft.tir.expr import Var as TirVar

Part = TypeVar("Part")
Result = TypeVar("Result")


def bind_params(func: Function, binding_map: Mapping[Var | str, object]) -> Function:
    """The function with parameters, by Var or name, replaced by constants (or expressions).

    Raises IRValueError for an unknown or ambiguous name and for a shape or dtype that differs.
    """
    mapping: dict[Var, RelaxExpr] = {}
    symbols: dict[TirVar, PrimExpr] = {}
    for key, value in binding_map.items():
        param = _parameter(func, key)
        constant = _as_constant(value)
        _match_shapes(param, constant, symbols)
        if isinstance(constant, Constant) and weight_name(constant.data) is None:
            name_weight(constant.data, param.name_hint)
        mapping[param] = constant
    params = Array([param for param in func.params if param not in mapping])
    bound = reinfer(replace(func.with_(params=params), mapping, symbols))
    count = func.attrs.get("num_input")
    if count is not None:
        kept = sum(1 for param in func.params[: int(count)] if param not in mapping)
        bound = bound.with_attr("num_input", kept)
    return bound


def _parameter(func: Function, key: Var | str) -> Var:
    if isinstance(key, Var):
        if key not in func.params:
            raise IRValueError(f"bind_params: {key.name_hint} is no parameter of the function")
        return key
    named = [param for param in func.params if param.name_hint == key]
    if len(named) != 1:
        names = ", ".join(param.name_hint for param in func.params)
        how = "no parameter has" if not named else f"{len(named)} parameters have"
        raise IRValueError(f"bind_params: {how} the name {key!r}; the parameters are: {names}")
    return named[0]


def _as_constant(value: object) -> Expr:
    if isinstance(value, Expr):
        return value
    if isinstance(value, NDArray | np.ndarray | int | float | bool) or hasattr(value, "detach"):
        return const(value)
    raise wrong_type("bind_params: expected an array or a constant", value)


def _match_shapes(param: Var, value: Expr, symbols: dict[TirVar, PrimExpr]) -> None:
    info = param.struct_info
    if not isinstance(info, TensorStructInfo) or not isinstance(value, Constant):
        return
    have = value.struct_info
    if info.dtype not in ("void", have.dtype):
        raise IRValueError(
            f"bind_params: {param.name_hint}: expected {info.dtype}, got {have.dtype}"
        )
    dims = tensor_dims(info)
    if info.ndim not in (-1, have.ndim):
        raise IRValueError(
            f"bind_params: {param.name_hint}: expected {info.ndim} dimensions, got {have.ndim}"
        )
    for index, (dim, size) in enumerate(zip(dims or (), value.data.shape, strict=False)):
        known = symbols.get(dim) if isinstance(dim, TirVar) else dim
        if known is None and isinstance(dim, TirVar):
            symbols[dim] = IntImm(dim.dtype, int(size))
        elif isinstance(known, IntImm) and known.value != int(size):
            raise IRValueError(
                f"bind_params: {param.name_hint}: dimension {index}: expected {known.value}, "
                f"got {size}"
            )


def bind_symbolic_vars(func: Function, binding_map: Mapping[TirVar | str, Extent]) -> Function:
    """The function with symbolic variables, by Var or name, replaced by expressions."""
    used: dict[str, list[TirVar]] = {}
    for var in function_symbols(func):
        used.setdefault(var.name, []).append(var)
    symbols: dict[TirVar, PrimExpr] = {}
    for key, value in binding_map.items():
        var = _symbol(used, key)
        symbols[var] = IntImm(var.dtype, value) if isinstance(value, int) else value
    return reinfer(replace(func, None, symbols))


def function_symbols(func: Function) -> list[TirVar]:
    """The symbolic variables in a function, its parameters' first."""
    symbols: dict[TirVar, None] = {}
    for param in func.params:
        symbols.update(dict.fromkeys(symbolic_vars(param.struct_info)))
    symbols.update(dict.fromkeys(symbolic_vars(func)))
    return list(symbols)


def _symbol(used: dict[str, list[TirVar]], key: TirVar | str) -> TirVar:
    if isinstance(key, TirVar):
        if not any(key is var for named in used.values() for var in named):
            raise IRValueError(f"bind_symbolic_vars: the function does not use {key.name}")
        return key
    named = used.get(key, [])
    if len(named) != 1:
        names = ", ".join(used) or "none"
        how = "no symbolic variable has" if not named else f"{len(named)} variables have"
        raise IRValueError(f"bind_symbolic_vars: {how} the name {key!r}; there are: {names}")
    return named[0]


def reinfer(func: Function) -> Function:
    """The function with struct infos inferred again, for example after symbols became constants."""
    return _Reinfer().visit_expr(func)


class _Reinfer(PyExprMutator):
    """Infers operator calls again."""

    def visit_call_(self, op: Call) -> RelaxExpr:
        call: RelaxExpr = super().visit_call_(op)
        if call is op and not op.sinfo_args:
            return Call(op.op, op.args, op.attrs, op.sinfo_args, op.span)
        return call

    def visit_var_binding_(self, binding: VarBinding) -> None:
        value = self.visit_expr(binding.value)
        if value.struct_info is not None and binding.value.struct_info is not None:
            if value is not binding.value and isinstance(binding.value, Call):
                same_args = isinstance(value, Call) and all(
                    a is b for a, b in zip(value.args, binding.value.args, strict=False)
                )
                if same_args and value.struct_info == binding.value.struct_info:
                    value = binding.value
        if value is binding.value:
            self.builder_.emit_normalized(binding)
        else:
            self.reemit(binding, self.visit_var_def(binding.var), value)


def inline_functions(
    func: Function, function_map: Mapping[GlobalVar, Function] | Mapping[str, Function]
) -> Function:
    """The function with calls of the given functions (by GlobalVar or name) replaced by bodies.

    A dataflow block may not hold an If: a call in one stays if the function branches.
    """
    by_name = {
        key if isinstance(key, str) else key.name_hint: value for key, value in function_map.items()
    }
    inlined: Function = _Inliner(by_name).visit_expr(func)
    return inlined if inlined is func else remove_all_unused(inlined)


def _branches(func: Function) -> bool:
    branches: list[If] = []
    post_order_visit(
        func.body, lambda expr: branches.append(expr) if isinstance(expr, If) else None
    )
    return bool(branches)


class _Inliner(PyExprMutator):
    def __init__(self, functions: Mapping[str, Function]) -> None:
        super().__init__()
        self.functions = functions
        self.open: dict[str, None] = {}
        self.in_dataflow = False
        """Whether the block being built is dataflow: an inlined body becomes part of that block."""

    def visit_function_(self, op: Function) -> Function:
        return expect(self._within(False, super().visit_function_, op), Function)

    def visit_dataflow_block_(self, block: DataflowBlock) -> BindingBlock:
        return self._within(True, super().visit_dataflow_block_, block)

    def _within(self, in_dataflow: bool, visit: Callable[[Part], Result], part: Part) -> Result:
        outer, self.in_dataflow = self.in_dataflow, in_dataflow
        rewritten = visit(part)
        self.in_dataflow = outer
        return rewritten

    def visit_call_(self, op: Call) -> RelaxExpr:
        call: Call = self.visit_expr_post_order(op)
        callee = call.op
        if not isinstance(callee, GlobalVar) or callee.name_hint not in self.functions:
            return call
        func = self.functions[callee.name_hint]
        if self.in_dataflow and _branches(func):
            return call
        if callee.name_hint in self.open:
            raise IRValueError(
                f"inline_functions: {callee.name_hint} calls itself "
                f"({' -> '.join([*self.open, callee.name_hint])}); a recursive function has no end "
                "when it is inlined"
            )
        body = copy_with_new_vars(func)
        mapping = dict(zip(body.params, call.args, strict=True))
        symbols = match_params(
            [param.struct_info for param in body.params], [arg.struct_info for arg in call.args]
        )
        self.open[callee.name_hint] = None
        inlined: RelaxExpr = self.visit_expr(replace(body.body, mapping, symbols))
        del self.open[callee.name_hint]
        return inlined
