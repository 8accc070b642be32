"""Evaluates expressions of a text, which may use nothing but the language.

A text is data. Names give namespaces (``text_names``), there is an allow-list of attributes by
class, only functions of the language and functions of Python without effects can be called, and
work and sizes are limited (``text_limits``). Values that the caller passes as ``extra_vars``, and
their attributes, are not restricted.
"""

from __future__ import annotations

import ast
import types
from collections.abc import Callable, Mapping
from typing import Any, Final

from weft.ir.expr import ExprOp, Range, RelaxExpr
from weft.ir.node import Array, Node
from weft.relax.op.definition import FUNCTIONS
from weft.script.ir_builder.relax import Operators
from weft.script.ir_builder.tir_block import axis
from weft.script.ir_builder.tir_value import DTypeConstructor
from weft.script.parser.evaluator import BINARY, Evaluator, check_no_buffer, literal, operand
from weft.script.parser.scope import PLAIN_BUILTINS, Scopes
from weft.script.parser.text_limits import Budget, call_builtin
from weft.script.parser.text_names import Namespace
from weft.support.diagnostics import Source
from weft.support.dtype import DataType
from weft.support.errors import IRAttributeError, IRTypeError
from weft.tir.buffer import Buffer
from weft.tir.expr import IterVar
from weft.tir.index_map import IndexMap

STEP: Final = 16
"""The cost of an expression; each item of a value that is copied costs 1."""
FORBIDDEN: Final = frozenset({"print", "type"})
"""Functions of Python that a decorated script may call, but not a text."""
METHODS: Final[tuple[tuple[type, frozenset[str]], ...]] = tuple(
    (kind, frozenset(names.split()))
    for kind, names in {
        Buffer: "vload vstore access_ptr offset_of scope get_flattened_buffer ndim",
        ExprOp: "astype equal dtype",
        RelaxExpr: "astype struct_info",
        Range: "extent min",
        DTypeConstructor: "dtype",
        DataType: "bits lanes element",
        str: "startswith endswith lower upper strip",
        tuple: "index count",
        list: "index count",
        dict: "get keys values items",
        Array: "index count",
    }.items()
)
"""Class -> the attributes that its instances have, besides the fields of nodes."""
STATIC: Final[tuple[tuple[type, frozenset[str]], ...]] = (
    (axis, frozenset(name for name in vars(axis) if not name.startswith("_"))),
    (IndexMap, frozenset({"from_func"})),
    (Range, frozenset({"from_min_extent"})),
    (IterVar, frozenset(name for name, item in vars(IterVar).items() if isinstance(item, int))),
    (Buffer, frozenset({"READ", "WRITE"})),
)
"""Class -> its attributes that may be used on the class itself."""


class TextEvaluator(Evaluator):
    """Evaluates expressions of a text."""

    def __init__(self, source: Source, scopes: Scopes, own: Mapping[str, object]) -> None:
        super().__init__(source, scopes)
        self.methods = _METHODS
        self.own = own
        self.budget = Budget(sum(map(len, source.lines)))

    def evaluate(self, node: ast.AST) -> Any:
        """The value of an expression, after paying for it."""
        if self.budget.left <= 0:
            raise self.error(node, "the text asks for too much work at parse time")
        self.budget.left -= STEP
        if type(node) is ast.Constant:  # every third expression is one
            return node.value
        value = super().evaluate(node)
        if isinstance(value, RelaxExpr) and not isinstance(node, ast.Name):
            with self.placed(node):
                self.budget.expression(value)
        return value

    def name(self, node: ast.Name) -> object:
        value = super().name(node)
        if node.id in FORBIDDEN and value is PLAIN_BUILTINS[node.id]:
            raise self.error(node, f"{node.id!r} cannot be used in a script's text")
        return value

    def attribute(self, node: ast.Attribute) -> object:
        value, name = self.evaluate(node.value), node.attr
        if name.startswith("_") and (name[:2] == "__" or type(value).__name__ != "ModuleProxy"):
            raise self.error(node, f"attribute {name!r} cannot be used in a script's text")
        if self._is_own(node):
            return self.attribute_of(value, name)
        return attribute_of(value, name)

    def _is_own(self, node: ast.expr) -> bool:
        """Whether an expression is a name of ``extra_vars``, perhaps with attributes."""
        while isinstance(node, ast.Attribute):
            node = node.value
        if not isinstance(node, ast.Name) or node.id not in self.own:
            return False
        value = self.own[node.id]
        return self.scopes.find(node.id)[1] is value and not isinstance(value, Namespace)

    def subscript(self, node: ast.Subscript) -> object:
        return self.budget.check(super().subscript(node))

    def items(self, nodes: list[ast.expr]) -> list[object]:
        values: list[object] = []
        for node in nodes:
            if isinstance(node, ast.Starred):
                values.extend(self.budget.check(self.evaluate(node.value)))
            else:
                values.append(self.evaluate(node))
        self.budget.check(values)
        return values

    def dict_(self, node: ast.Dict) -> dict[object, object]:
        return self.budget.check(super().dict_(node))

    def comprehension(
        self, node: ast.ListComp | ast.GeneratorExp | ast.SetComp
    ) -> list[object] | set[object]:
        return self.budget.check(super().comprehension(node))

    def dict_comprehension(self, node: ast.DictComp) -> dict[object, object]:
        return self.budget.check(super().dict_comprehension(node))

    def match(self, target: ast.expr, value: object) -> list[tuple[str, object]]:
        """The names of an assignment's target with their values."""
        if not isinstance(target, ast.Name):
            with self.placed(target):
                self.budget.check(value)
        return super().match(target, value)

    def call_(self, node: ast.Call) -> object:
        function = self.evaluate(node.func)
        args, kwargs = self.arguments(node)
        self.budget.check(kwargs)
        if id(function) in _BUILTINS:
            if function is range:
                return self.call(function, args, kwargs, node)
            with self.advice(function, args, node):
                result = call_builtin(function, args, kwargs, self.operation)
            return self.budget.check(result)
        if not self._is_own(node.func):
            check_callable(function)
        return self.budget.check(self.call(function, args, kwargs, node))

    def operation(self, kind: ast.operator, lhs: object, rhs: object) -> object:
        """An operation of two values, unless its result would be too large."""
        self.budget.binary(kind, lhs, rhs)
        return self.budget.check(BINARY[type(kind)](lhs, rhs))

    def binary(self, node: ast.BinOp) -> object:
        lhs, rhs = operand(self.evaluate(node.left)), operand(self.evaluate(node.right))
        check_no_buffer(lhs, rhs)
        return self.operation(node.op, literal(lhs, rhs), literal(rhs, lhs))

    def relation(self, kind: ast.cmpop, left: object, right: object) -> object:
        """A comparison of two values; costs as much as it compares."""
        if isinstance(left, ExprOp) or not isinstance(left, int):
            self.budget.check(right)
        return super().relation(kind, left, right)

    def formatted(self, value: object, form: str) -> str:
        """A value in a format of an f-string."""
        self.budget.format(form)
        return format(self.budget.check(value), form)

    def string(self, node: ast.JoinedStr) -> str:
        text = super().string(node)
        self.budget.check(text)
        return text


def attribute_of(value: object, name: str) -> object:
    """An attribute that the class of ``value`` allows."""
    return _admitted(allowed_attribute(value, name), name)


def allowed_attribute(value: object, name: str) -> object:
    """The value of an attribute, if the tables allow it."""
    if isinstance(value, Namespace):
        return value.lookup(name)
    if isinstance(value, Operators) or type(value).__name__ == "ModuleProxy":
        kind: Any = type(value)
        return kind.__getattr__(value, name)
    if isinstance(value, type):
        if any(value is kind and name in names for kind, names in STATIC):
            return getattr(value, name)
    elif isinstance(value, Node) and any(spec.name == name for spec in value.FIELDS):
        return getattr(value, name)
    elif any(isinstance(value, kind) and name in names for kind, names in METHODS):
        return getattr(value, name)
    if value is axis:
        return getattr(axis, name)  # raises: it names the nearest
    what = value.__name__ if isinstance(value, type) else type(value).__name__
    raise IRAttributeError(f"{what} has no attribute {name!r} that a script's text can use")


def _admitted(value: object, name: str) -> object:
    """``value``; an error if it is not of the language: a module, a numpy array."""
    if isinstance(value, types.ModuleType) or _home(type(value)) in ("numpy", "weft.runtime"):
        raise IRAttributeError(f"attribute {name!r} cannot be used in a script's text")
    return value


def _home(kind: type) -> str:
    """The package of a class; for weft, with the name of the subpackage."""
    first, _, rest = kind.__module__.partition(".")
    return f"weft.{rest.partition('.')[0]}" if first == "weft" else first


def check_callable(function: object) -> None:
    """Refuse a call of anything but functions of the language and allowed methods.

    An operator that the user's program registered belongs to the language.
    """
    place = getattr(function, "__module__", None) or type(function).__module__
    owner = getattr(function, "__self__", None)
    is_known = place.partition(".")[0] == "weft" or isinstance(owner, str | tuple | list | dict)
    if not is_known and not any(function is operator for operator in FUNCTIONS.values()):
        name = getattr(function, "__name__", type(function).__name__)
        raise IRTypeError(f"{name!r} cannot be called in a script's text")


_BUILTINS: Final = frozenset(
    id(value) for name, value in PLAIN_BUILTINS.items() if name not in FORBIDDEN
)
"""Which functions of Python may be called, by ``id``: not all values have a hash."""
_OVERRIDES: Final[dict[type[ast.AST], Callable[[Any, Any], object]]] = {
    ast.Name: TextEvaluator.name, ast.Attribute: TextEvaluator.attribute,
    ast.Subscript: TextEvaluator.subscript, ast.Dict: TextEvaluator.dict_,
    ast.Call: TextEvaluator.call_, ast.BinOp: TextEvaluator.binary,
    ast.JoinedStr: TextEvaluator.string,
    ast.ListComp: TextEvaluator.comprehension, ast.GeneratorExp: TextEvaluator.comprehension,
    ast.SetComp: TextEvaluator.comprehension, ast.DictComp: TextEvaluator.dict_comprehension,
}  # fmt: skip
_METHODS: Final = {**Evaluator.METHODS, **_OVERRIDES}
