"""Modules as functions of their own: ``define_subroutine = True`` on a class of nn.Module.

Each call of such a module becomes a call of a private graph function, which takes the arguments
and the module's parameters. Calls whose functions are equal share one.
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import Protocol

from weft.ir.expr import GlobalVar
from weft.ir.node import expect
from weft.relax.block_builder import BlockBuilder
from weft.relax.expr import Call, Expr, Function, Tuple, Var
from weft.relax.frontend.nn.tensor import Nested, Parameter, Tensor, current_builder, wrap_nested
from weft.relax.ir.substitution import copy_with_new_vars, replace
from weft.relax.rewrite.binding import function_symbols
from weft.support.errors import wrong_type


class SubroutineMixin:
    """Gives ``forward`` of subclasses the form that ``define_subroutine`` asks for."""

    define_subroutine: bool = False

    def __init_subclass__(cls, **options: object) -> None:
        super().__init_subclass__(**options)
        forward = cls.__dict__.get("forward")
        if callable(forward) and not getattr(forward, "_is_subroutine_mixin", False):
            cls.forward = _dispatching(forward)  # type: ignore[attr-defined]  # the user's own


class HasParameters(Protocol):
    """A module whose calls may become functions of their own."""

    define_subroutine: bool

    def parameters(self) -> Iterator[Parameter]: ...


Forward = Callable[..., object]
"""The method ``forward`` of a module."""


def _dispatching(forward: Forward) -> Forward:
    @functools.wraps(forward)
    def dispatched(self: HasParameters, *args: object, **kwargs: object) -> object:
        if not self.define_subroutine:
            return forward(self, *args, **kwargs)
        return _call_subroutine(self, forward, args, kwargs)

    dispatched._is_subroutine_mixin = True  # type: ignore[attr-defined]  # a mark on a function
    return dispatched


def _call_subroutine(
    module: HasParameters, forward: Forward, args: Sequence[object], kwargs: Mapping[str, object]
) -> Nested | Var:
    builder = current_builder(f"{type(module).__name__}, a class with define_subroutine,")
    bound = inspect.signature(forward).bind(module, *args, **kwargs).arguments
    names = list(bound)[1:]
    arguments = [_Argument(name, bound[name]) for name in names]
    weights = list(module.parameters())
    operands = [expr for item in arguments for expr in item.exprs]
    operands += [weight._expr for weight in weights]
    gvar, is_wrapped = _subroutine(module, builder, forward, arguments, weights)
    call = Call(gvar, operands)
    if is_wrapped:
        return wrap_nested(call, f"{gvar.name_hint}_output")
    return builder.emit(call, f"{gvar.name_hint}_output")


class _Argument:
    """An argument of ``forward``: its tensors become parameters, the rest is part of the code."""

    def __init__(self, name: str, value: object) -> None:
        self.name, self.given = name, value
        self.exprs = list(_exprs(value))

    def params(self) -> list[Var]:
        """New parameters for the tensors in it."""
        many = len(self.exprs) > 1
        return [
            Var(f"{self.name}_{index}" if many else self.name, expr.struct_info)
            for index, expr in enumerate(self.exprs)
        ]

    def rebuilt(self, params: list[Var]) -> object:
        """The argument with parameters in the place of its tensors."""
        left = iter(params)
        return _replaced(self.given, left)


def _exprs(value: object) -> Iterator[Expr]:
    if isinstance(value, list | tuple):
        for item in value:
            yield from _exprs(item)
    elif isinstance(value, Tensor):
        yield value._expr
    elif isinstance(value, Expr):
        yield current_builder("subroutine").emit(value) if value.struct_info is None else value


def _replaced(value: object, left: Iterator[Var]) -> object:
    if isinstance(value, list | tuple):
        return type(value)([_replaced(item, left) for item in value])
    if isinstance(value, Tensor):
        return Tensor(_expr=next(left))
    return next(left) if isinstance(value, Expr) else value


def _subroutine(
    module: HasParameters,
    builder: BlockBuilder,
    forward: Forward,
    arguments: list[_Argument],
    weights: list[Parameter],
) -> tuple[GlobalVar, bool]:
    """The function of one call, and whether it returns nn tensors (else plain expressions)."""
    groups = [item.params() for item in arguments]
    named = [expect(weight._expr, Var) for weight in weights]
    own = [Var(weight.name_hint, weight.struct_info) for weight in named]
    params = [*[param for group in groups for param in group], *own]
    is_dataflow = builder.current_block_is_dataflow()
    name = _snake_case(type(module).__name__)
    with (
        builder.aside(),
        _bound_to(weights, own),
        builder.function(name, params, private=True),
    ):
        with builder.dataflow() if is_dataflow else nullcontext():
            values = [item.rebuilt(group) for item, group in zip(arguments, groups, strict=True)]
            output, is_wrapped = _result(forward(module, *values), name)
            if is_dataflow:
                output = builder.emit_output(output)
        gvar = builder.emit_func_output(output)
    # The caller's symbols stand in the struct info of the parameters: the function gets its own.
    function = expect(builder.function_of(gvar), Function)
    symbols = {var: type(var)(var.name, var.dtype) for var in function_symbols(function)}
    builder.update_func(gvar, replace(copy_with_new_vars(function), symbols=symbols))
    return gvar, is_wrapped


@contextmanager
def _bound_to(weights: list[Parameter], params: list[Var]) -> Iterator[None]:
    """The module's parameters mean the function's own while it is built."""
    before = [weight._expr for weight in weights]
    for weight, param in zip(weights, params, strict=True):
        weight._expr = param
    try:
        yield
    finally:
        for weight, expr in zip(weights, before, strict=True):
            weight._expr = expr


def _result(value: object, name: str) -> tuple[Expr, bool]:
    """The expression that a forward method returned, and whether it returned nn tensors."""
    if isinstance(value, Tensor):
        return value._expr, True
    if isinstance(value, list | tuple):
        return Tuple([_result(item, name)[0] for item in value]), True
    if isinstance(value, Expr):
        return value, False
    raise wrong_type(
        f"{name}: a module with define_subroutine returns tensors or tuples of them", value
    )


def _snake_case(name: str) -> str:
    """``LayerNorm`` as ``layer_norm``, ``MLPBlock`` as ``mlp_block``."""
    split = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name)
    return split.lower()
