"""The table of converters: one for each operator and opset from which it holds.

A converter is a plain function::

    @converter("Softmax", since=13)
    def softmax(context: Context, x: Value, *, axis: int = -1) -> Expr:
        return context.emit(op.nn.softmax(x.expr, axis))

It gets the node's inputs in order (``None`` for one that is left out, ``*values`` for a variadic
one) and the node's attributes by their ONNX names; attributes that the node leaves out have the
default of the schema of the model's opset. It returns one ``Value`` or ``Expr``, or a list of them
for several outputs. Of several converters for one operator that with the highest ``since`` not
above the model's opset is taken.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, TypeVar

from weft.relax.frontend.onnx.protos import Attribute
from weft.relax.frontend.onnx.value import Result
from weft.support.registration import refuse_second

Function = Callable[..., Result]
"""What converts a node: see the module's docstring."""
F = TypeVar("F", bound=Function)
AI_ONNX: Final = ""
MICROSOFT: Final = "com.microsoft"


@dataclass(frozen=True)
class Converter:
    """One row: the function, the opset it holds from, the attributes it takes or may pass over."""

    function: Function
    since: int
    attributes: frozenset[str]
    takes_all: bool
    ignores: frozenset[str]
    neutral: Mapping[str, tuple[Attribute, ...]]


_TABLE: Final[dict[tuple[str, str], list[Converter]]] = {}


def make_converter(
    function: Function,
    since: int,
    ignores: Iterable[str] = (),
    neutral: Mapping[str, tuple[Attribute, ...]] = MappingProxyType({}),
) -> Converter:
    """The row of a function: its keyword-only parameters are the attributes it takes."""
    parameters = inspect.signature(function).parameters.values()
    return Converter(
        function,
        since,
        frozenset([p.name for p in parameters if p.kind is p.KEYWORD_ONLY]),
        any(p.kind is p.VAR_KEYWORD for p in parameters),
        frozenset(ignores),
        neutral,
    )


def converter(
    *names: str,
    since: int = 1,
    domain: str = AI_ONNX,
    ignores: Iterable[str] = (),
    neutral: Mapping[str, tuple[Attribute, ...]] = MappingProxyType({}),
    override: bool = False,
) -> Callable[[F], F]:
    """Enter the function for operators of those names, from opset ``since`` on.

    ``ignores`` are attributes that change nothing of the result (``consumed_inputs``); ``neutral``
    are values of attributes that ask for nothing, where no schema gives a default.

    Raises:
        IRValueError: there is a converter for one of the names from that opset on, and
            ``override`` is not given.
    """

    def enter(function: F) -> F:
        row = make_converter(function, since, ignores, neutral)
        for name in names:
            rows = _TABLE.setdefault((domain, name), [])
            what = f"the converter from opset {since} on of"
            is_taken = any(other.since == since for other in rows)
            refuse_second(what, qualified(domain, name), is_taken, override)
            rows[:] = [other for other in rows if other.since != since] + [row]
            rows.sort(key=lambda item: item.since)
        return function

    return enter


def find_converter(domain: str, name: str, opset: int) -> Converter | None:
    """The row with the highest ``since`` that is not above the opset, or None."""
    newest = None
    for row in _TABLE.get((domain, name), ()):
        if row.since <= opset:
            newest = row
    return newest


def first_opset(name: str) -> int | None:
    """The opset from which on an operator has a converter; its name as ``qualified`` writes it."""
    domain, _, plain = name.rpartition("::")
    rows = _TABLE.get((domain, plain))
    return rows[0].since if rows else None


def converter_names() -> Iterator[str]:
    """The operators that have a converter; those of other domains as ``domain::name``."""
    for domain, name in _TABLE:
        yield qualified(domain, name)


def qualified(domain: str, name: str) -> str:
    """``Softmax``, or ``com.microsoft::FastGelu``."""
    return f"{domain}::{name}" if domain else name


def plain_domain(domain: str) -> str:
    """The domain, "" for ONNX's own."""
    return AI_ONNX if domain == "ai.onnx" else domain
