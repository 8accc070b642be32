"""Modules as functions of their own: ``define_subroutine = True`` on a class of nn.Module.

Each call of such a module becomes a call of a private graph function, which takes the arguments
and the module's parameters. Calls whose functions are equal share one.
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

from weft.relax.block_builder import BlockBuilder
from weft.relax.expr import Call, Expr, Tuple, Var
from weft.relax.frontend.nn.tensor import Tensor, current_builder, wrap_nested
from weft.relax.ir.substitution import copy_with_new_vars, replace
from weft.relax.rewrite.binding import function_symbols
from weft.support.errors import IRTypeError
from weft.tir.expr import Var as TirVar


class SubroutineMixin:
    """Gives ``forward`` of subclasses the form that ``define_subroutine`` asks for."""

    define_subroutine: bool = False

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        forward = cls.__dict__.get("forward")
        if callable(forward) and not getattr(forward, "_is_subroutine_mixin", False):
            cls.forward = _dispatching(forward)  # type: ignore[attr-defined]  # the user's own


def _dispatching(forward: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(forward)
    def dispatched(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not self.define_subroutine:
            return forward(self, *args, **kwargs)
        return _call_subroutine(self, forward, args, kwargs)

    dispatched._is_subroutine_mixin = True  # type: ignore[attr-defined]  # a mark on a function
    return dispatched


def _call_subroutine(
    module: Any, forward: Callable[..., Any], args: Any, kwargs: dict[str, Any]
) -> Any:
    builder = current_builder(f"{type(module).__name__}, a class with define_subroutine,")
    bound = inspect.signature(forward).bind(module, *args, **kwargs).arguments
    names = list(bound)[1:]
    given = [_Argument(name, bound[name]) for name in names]
    weights = list(module.parameters())
    operands = [expr for item in given for expr in item.exprs]
    operands += [weight._expr for weight in weights]
    gvar, is_wrapped = _subroutine(module, builder, forward, given, weights)
    call = Call(gvar, operands)
    if is_wrapped:
        return wrap_nested(call, f"{gvar.name_hint}_output")
    return builder.emit(call, f"{gvar.name_hint}_output")


class _Argument:
    """An argument of ``forward``: its tensors become parameters, the rest is part of the code."""

    def __init__(self, name: str, value: Any) -> None:
        self.name, self.given = name, value
        self.exprs = list(_exprs(value))

    def params(self) -> list[Var]:
        """New parameters for the tensors in it."""
        many = len(self.exprs) > 1
        return [
            Var(f"{self.name}_{index}" if many else self.name, expr.struct_info)
            for index, expr in enumerate(self.exprs)
        ]

    def rebuilt(self, params: list[Var]) -> Any:
        """The argument with parameters in the place of its tensors."""
        left = iter(params)
        return _replaced(self.given, left)


def _exprs(value: Any) -> Iterator[Any]:
    if isinstance(value, list | tuple):
        for item in value:
            yield from _exprs(item)
    elif isinstance(value, Tensor):
        yield value._expr
    elif isinstance(value, Expr):
        yield current_builder("subroutine").emit(value) if value.struct_info is None else value


def _replaced(value: Any, left: Iterator[Var]) -> Any:
    if isinstance(value, list | tuple):
        return type(value)([_replaced(item, left) for item in value])
    if isinstance(value, Tensor):
        return Tensor(_expr=next(left))
    return next(left) if isinstance(value, Expr) else value


def _subroutine(
    module: Any,
    builder: BlockBuilder,
    forward: Callable[..., Any],
    given: list[_Argument],
    weights: list[Any],
) -> tuple[Any, bool]:
    """The function of one call, and whether it returns nn tensors (else plain expressions)."""
    groups = [item.params() for item in given]
    own = [Var(weight._expr.name_hint, weight._expr.struct_info) for weight in weights]
    params = [*[param for group in groups for param in group], *own]
    is_dataflow = builder.current_block_is_dataflow()
    name = _snake_case(type(module).__name__)
    with (
        builder.aside(),
        _bound_to(weights, own),
        builder.function(name, params, private=True),
    ):
        with builder.dataflow() if is_dataflow else nullcontext():
            values = [item.rebuilt(group) for item, group in zip(given, groups, strict=True)]
            made = forward(module, *values)
            output, is_wrapped = _result(made, name)
            if is_dataflow:
                output = builder.emit_output(output)
        gvar = builder.emit_func_output(output)
    # The caller's symbols stand in the struct info of the parameters: the function gets its own.
    function: Any = builder.function_of(gvar)
    symbols = {var: TirVar(var.name, var.dtype) for var in function_symbols(function)}
    builder.update_func(gvar, replace(copy_with_new_vars(function), symbols=symbols))
    return gvar, is_wrapped


@contextmanager
def _bound_to(weights: list[Any], params: list[Var]) -> Iterator[None]:
    """The module's parameters mean the function's own while it is built."""
    before = [weight._expr for weight in weights]
    for weight, param in zip(weights, params, strict=True):
        weight._expr = param
    try:
        yield
    finally:
        for weight, expr in zip(weights, before, strict=True):
            weight._expr = expr


def _result(made: Any, name: str) -> tuple[Any, bool]:
    if isinstance(made, Tensor):
        return made._expr, True
    if isinstance(made, list | tuple):
        return Tuple([_result(item, name)[0] for item in made]), True
    if isinstance(made, Expr):
        return made, False
    raise IRTypeError(
        f"{name}: a module with define_subroutine returns tensors or tuples of them, got "
        f"{type(made).__name__}"
    )


def _snake_case(name: str) -> str:
    """``LayerNorm`` as ``layer_norm``, ``MLPBlock`` as ``mlp_block``."""
    split = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name)
    return split.lower()
