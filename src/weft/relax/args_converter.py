"""``args_converter``: decorators that turn arguments into graph expressions.

For those who write operators: a decorated function may be called with numbers, strings, arrays and
tuples; ``as_relax_expr`` turns each of them into an expression before the function sees it.
"""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable, Collection
from typing import ParamSpec, TypeVar, Union, get_args, get_origin, get_type_hints

from weft.ir.expr import RelaxExpr
from weft.relax.expr import Expr, RelaxLike, as_relax_expr
from weft.support.errors import IRValueError, wrong_type

P = ParamSpec("P")
R = TypeVar("R")


def _converted(
    where: str, value: RelaxLike | None, is_list: bool
) -> RelaxExpr | list[RelaxExpr] | None:
    """The argument as an expression, or as a list of expressions; None stays None."""
    if value is None:
        return None
    if not is_list:
        return as_relax_expr(value)
    if not isinstance(value, list | tuple):
        raise wrong_type(f"{where}: expected a list of expressions", value)
    return [as_relax_expr(item) for item in value]


def _converting(
    func: Callable[P, R], single: Collection[str], several: Collection[str]
) -> Callable[P, R]:
    signature = inspect.signature(func)
    for name in (*single, *several):
        if name not in signature.parameters:
            raise IRValueError(
                f"args_converter: {func.__name__} has no parameter {name!r}; its parameters are: "
                f"{', '.join(signature.parameters)}"
            )

    @functools.wraps(func)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
        bound = signature.bind(*args, **kwargs)
        for name, value in bound.arguments.items():
            if name not in single and name not in several:
                continue
            where, is_list = f"{func.__name__}: {name}", name in several
            kind = signature.parameters[name].kind
            if kind is inspect.Parameter.VAR_POSITIONAL:
                bound.arguments[name] = tuple([_converted(where, item, is_list) for item in value])
            elif kind is inspect.Parameter.VAR_KEYWORD:
                bound.arguments[name] = {
                    key: _converted(where, item, is_list) for key, item in value.items()
                }
            else:
                bound.arguments[name] = _converted(where, value, is_list)
        return func(*bound.args, **bound.kwargs)

    return wrapper


class ArgsConverter:
    """The decorators, under the one name ``args_converter``."""

    @staticmethod
    def to_expr(*arg_names: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
        """Convert the named arguments to expressions; None stays None.

        >>> @args_converter.to_expr("x")
        ... def kind(x):
        ...     return type(x).__name__
        >>> kind(1), kind((1, 2)), kind("a")
        ('PrimValue', 'Tuple', 'StringImm')
        """
        return lambda func: _converting(func, arg_names, ())

    @staticmethod
    def to_list_expr(*arg_names: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
        """Convert the named lists and tuples to lists of expressions; None stays None."""
        return lambda func: _converting(func, (), arg_names)

    @staticmethod
    def auto(func: Callable[P, R]) -> Callable[P, R]:
        """Convert each argument that is annotated as ``Expr`` or ``list[Expr]`` (or None)."""
        hints = {name: hint for name, hint in get_type_hints(func).items() if name != "return"}
        single = [name for name, hint in hints.items() if _without_none(hint) is Expr]
        several = [name for name, hint in hints.items() if _is_list(_without_none(hint))]
        return _converting(func, single, several)


def _without_none(hint: object) -> object:
    """The annotation without its None: ``Expr`` for ``Expr | None``."""
    if get_origin(hint) not in (Union, types.UnionType):
        return hint
    others = [item for item in get_args(hint) if item is not type(None)]
    return others[0] if len(others) == 1 else hint


def _is_list(hint: object) -> bool:
    return get_origin(hint) is list and get_args(hint) == (Expr,)


args_converter = ArgsConverter()
