"""Evaluates expressions of a script over explicit scopes, by the class of ast nodes, without eval.

Operators on Python values give Python values; if an operand is an IR expression, they build IR.
Nodes that an expression builds get the span of the expression, and errors its location.
"""

from __future__ import annotations

import ast
import contextlib
import inspect
import operator
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, Final

from weft.ir.expr import ExprOp, PrimExpr, RelaxExpr, as_prim_expr
from weft.script.ir_builder.tir_statement import as_value
from weft.script.parser.scope import Scopes
from weft.support.diagnostics import Source, render
from weft.support.errors import DiagnosticError, IRTypeError, IRValueError, TVMError
from weft.support.span import Span
from weft.tir import op as tir_op
from weft.tir.buffer import Buffer, BufferRegion
from weft.tir.expr import And, Not, Or, Var

Values = list[Any]
"""The positional arguments of a call in a script."""
Words = dict[str, Any]
"""The keyword arguments of a call in a script."""

USER_ERRORS: Final = (
    TVMError, TypeError, ValueError, LookupError, AttributeError, ArithmeticError,
    NotImplementedError, MemoryError,
)  # fmt: skip

BINARY: Final[dict[type[ast.operator], Callable[[Any, Any], object]]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
    ast.Div: operator.truediv, ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod,
    ast.Pow: operator.pow, ast.LShift: operator.lshift, ast.RShift: operator.rshift,
    ast.BitAnd: operator.and_, ast.BitOr: operator.or_, ast.BitXor: operator.xor,
    ast.MatMult: operator.matmul,
}  # fmt: skip
COMPARE: Final[dict[type[ast.cmpop], Callable[[Any, Any], object]]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le,
    ast.Gt: operator.gt, ast.GtE: operator.ge, ast.Is: operator.is_, ast.IsNot: operator.is_not,
    ast.In: lambda a, b: a in b, ast.NotIn: lambda a, b: a not in b,
}  # fmt: skip
_REFLECTED: Final[dict[type[ast.cmpop], Callable[[Any, Any], object]]] = {
    **COMPARE, ast.Eq: tir_op.equal, ast.NotEq: tir_op.not_equal, ast.Lt: tir_op.less,
    ast.LtE: tir_op.less_equal, ast.Gt: tir_op.greater, ast.GtE: tir_op.greater_equal,
}  # fmt: skip
"""Comparisons that keep their sides: for ``1 <= x`` and ``var < size_var`` Python would call the
method of the right side, and so exchange the sides."""
UNARY: Final[dict[type[ast.unaryop], Callable[[Any], object]]] = {
    ast.USub: operator.neg, ast.UAdd: lambda value: value, ast.Invert: operator.invert,
}  # fmt: skip


def _asks_right(left: object, right: object) -> bool:
    """Whether Python would call the method of the right side first: its class is a subclass."""
    if not isinstance(right, ExprOp):
        return False
    is_number = isinstance(left, bool | int | float)
    return is_number or (type(right) is not type(left) and isinstance(right, type(left)))


_CONVERSIONS: Final[dict[int, Callable[[object], str]]] = {97: ascii, 114: repr, 115: str}


_KIND: Final = inspect.Parameter
MAX_DEPTH: Final = 100
"""The deepest nesting of calls between functions of a script; each call uses C stack."""


class Evaluator:
    """Evaluates expressions of one source text."""

    METHODS: ClassVar[dict[type[ast.AST], Callable[[Any, Any], object]]]

    def __init__(self, source: Source, scopes: Scopes) -> None:
        self.source = source
        self.scopes = scopes
        self.methods = self.METHODS
        self.depth = 0
        self.fallback: Callable[[str], object] | None = None
        self.attribute_of: Callable[[object, str], object] = getattr
        self.call: Callable[[Callable[..., object], Values, Words, ast.Call], object] = _plain_call
        self.advice: Callable[
            [Callable[..., object], Values, ast.Call], contextlib.AbstractContextManager[None]
        ] = _no_advice

    def span(self, node: ast.AST) -> Span:
        """The location of ``node``."""
        line = getattr(node, "lineno", 1)
        start = getattr(node, "col_offset", 0)
        end_line = getattr(node, "end_lineno", None) or line
        end = getattr(node, "end_col_offset", None) or start + 1
        return self.source.span(line, end_line, start, end)

    def error(self, node: ast.AST, message: str) -> DiagnosticError:
        """The error to raise at ``node``."""
        return DiagnosticError(render(message, self.source, self.span(node)))

    @contextlib.contextmanager
    def placed(self, node: ast.AST) -> Iterator[None]:
        """Errors that are raised inside get the location of ``node``."""
        try:
            yield
        except DiagnosticError:
            raise
        except USER_ERRORS as error:
            raise self.error(node, _message(error)) from error

    def evaluate(self, node: ast.AST) -> Any:
        """The value of an expression."""
        method = self.methods.get(type(node))
        if method is None:
            raise self.error(node, f"{_describe(node)} is not part of TVMScript")
        try:
            value = method(self, node)
        except DiagnosticError:
            raise
        except USER_ERRORS as error:
            raise self.error(node, _message(error)) from error
        if isinstance(value, PrimExpr | RelaxExpr | BufferRegion) and value.span is None:
            if not isinstance(node, ast.Name | ast.Attribute):
                value.span = self.span(node)
        return value

    def name(self, node: ast.Name) -> object:
        is_known, value = self.scopes.find(node.id)
        if not is_known and self.fallback is not None:
            value = self.fallback(node.id)
            is_known = value is not None
        if not is_known:
            raise self.error(node, self.scopes.unknown(node.id))
        return value

    def constant(self, node: ast.Constant) -> object:
        return node.value

    def attribute(self, node: ast.Attribute) -> object:
        if node.attr.startswith("__"):
            raise self.error(node, f"attribute {node.attr!r} cannot be used in a script")
        return self.attribute_of(self.evaluate(node.value), node.attr)

    def subscript(self, node: ast.Subscript) -> object:
        value = self.evaluate(node.value)
        index = self.evaluate(node.slice)
        return value[index]

    def slice_(self, node: ast.Slice) -> slice:
        ends = (node.lower, node.upper, node.step)
        lower, upper, step = [None if end is None else self.evaluate(end) for end in ends]
        return slice(lower, upper, step)

    def items(self, nodes: list[ast.expr]) -> list[object]:
        """The values of a list of expressions; ``*x`` is unpacked."""
        values: list[object] = []
        for node in nodes:
            if isinstance(node, ast.Starred):
                values.extend(self.evaluate(node.value))
            else:
                values.append(self.evaluate(node))
        return values

    def tuple_(self, node: ast.Tuple) -> tuple[object, ...]:
        return tuple(self.items(node.elts))

    def list_(self, node: ast.List) -> list[object]:
        return self.items(node.elts)

    def set_(self, node: ast.Set) -> set[object]:
        return set(self.items(node.elts))

    def dict_(self, node: ast.Dict) -> dict[object, object]:
        entries: dict[object, object] = {}
        for key, value in zip(node.keys, node.values, strict=True):
            if key is None:
                entries.update(self.evaluate(value))
            else:
                entries[self.evaluate(key)] = self.evaluate(value)
        return entries

    def call_(self, node: ast.Call) -> object:
        function = self.evaluate(node.func)
        args, kwargs = self.arguments(node)
        return self.call(function, args, kwargs, node)

    def arguments(self, node: ast.Call) -> tuple[Values, Words]:
        """The positional and keyword arguments of a call."""
        args = self.items(node.args)
        kwargs: dict[str, object] = {}
        for item in node.keywords:
            if item.arg is None:
                kwargs.update(self.evaluate(item.value))
            else:
                kwargs[item.arg] = self.evaluate(item.value)
        return args, kwargs

    def binary(self, node: ast.BinOp) -> object:
        lhs, rhs = operand(self.evaluate(node.left)), operand(self.evaluate(node.right))
        check_no_buffer(lhs, rhs)
        return BINARY[type(node.op)](literal(lhs, rhs), literal(rhs, lhs))

    def unary(self, node: ast.UnaryOp) -> object:
        value = operand(self.evaluate(node.operand))
        if isinstance(node.op, ast.Not):
            self.require_known(node, value, "R.logical_not(x)")
            return Not(as_prim_expr(value)) if isinstance(value, ExprOp) else not value
        return UNARY[type(node.op)](value)

    def boolean(self, node: ast.BoolOp) -> object:
        is_and = isinstance(node.op, ast.And)
        result: object = None
        for position, item in enumerate(node.values):
            self.require_known(node, result, "R.logical_and(x, y) or R.logical_or(x, y)")
            if position and not isinstance(result, ExprOp) and bool(result) != is_and:
                return result
            value = operand(self.evaluate(item))
            result = value if not position else join(result, value, is_and)
        return result

    def compare(self, node: ast.Compare) -> object:
        left = operand(self.evaluate(node.left))
        result: object = None
        for position, (op, item) in enumerate(zip(node.ops, node.comparators, strict=True)):
            right = operand(self.evaluate(item))
            value = self.relation(op, left, right)
            self.require_known(node, result, "R.logical_and of two comparisons")
            result = value if not position else join(result, value, True)
            left = right
        return result

    def relation(self, kind: ast.cmpop, left: object, right: object) -> object:
        """A comparison of two values."""
        if isinstance(left, RelaxExpr) or isinstance(right, RelaxExpr):
            name = {ast.Eq: "equal", ast.NotEq: "not_equal"}.get(type(kind))
            if name is not None:  # Python would compare the objects, not what they hold
                raise IRTypeError(f"graph values are compared element by element: R.{name}(x, y)")
        table = _REFLECTED if _asks_right(left, right) else COMPARE
        return table[type(kind)](literal(left, right), literal(right, left))

    def choice(self, node: ast.IfExp) -> object:
        test = operand(self.evaluate(node.test))
        self.require_known(node, test, "R.where(c, x, y), or a statement `if` with both branches")
        if isinstance(test, ExprOp):
            yes, no = operand(self.evaluate(node.body)), operand(self.evaluate(node.orelse))
            return tir_op.if_then_else(test, yes, no)
        return self.evaluate(node.body if test else node.orelse)

    def require_known(self, node: ast.AST, value: object, instead: str) -> None:
        """Raise for a graph value, of which Python would decide now that it is true."""
        if isinstance(value, RelaxExpr):
            raise self.error(
                node, f"the value is not known before the function runs; write {instead}"
            )

    def string(self, node: ast.JoinedStr) -> str:
        parts = []
        for item in node.values:
            if isinstance(item, ast.FormattedValue):
                value = self.evaluate(item.value)
                convert = _CONVERSIONS.get(item.conversion)
                text = value if convert is None else convert(value)
                form = "" if item.format_spec is None else self.evaluate(item.format_spec)
                parts.append(self.formatted(text, form))
            else:
                parts.append(str(self.evaluate(item)))
        return "".join(parts)

    def formatted(self, value: object, form: str) -> str:
        """A value in a format of an f-string."""
        return format(value, form)

    def function(self, node: ast.Lambda) -> Callable[..., object]:
        signature = self.signature(node.args)
        visible = list(self.scopes.frames)

        def apply(*values: object, **words: object) -> object:
            bound = signature.bind(*values, **words)
            bound.apply_defaults()
            if self.depth >= MAX_DEPTH:
                raise IRValueError("a lambda calls itself without end")
            saved, self.scopes.frames = self.scopes.frames, list(visible)
            self.depth += 1
            try:
                with self.scopes.nested() as frame:
                    frame.update(bound.arguments)
                    return self.evaluate(node.body)
            finally:
                self.depth -= 1
                self.scopes.frames = saved

        apply.__signature__ = signature  # type: ignore[attr-defined] # for inspect
        return apply

    def signature(self, node: ast.arguments) -> inspect.Signature:
        """The parameters of a lambda, with their default values."""
        places: list[tuple[ast.arg | None, inspect._ParameterKind, ast.expr | None]] = []
        plain = [*node.posonlyargs, *node.args]
        defaults = [*[None] * (len(plain) - len(node.defaults)), *node.defaults]
        for index, (item, default) in enumerate(zip(plain, defaults, strict=True)):
            is_unnamed = index < len(node.posonlyargs)
            names = _KIND.POSITIONAL_ONLY if is_unnamed else _KIND.POSITIONAL_OR_KEYWORD
            places.append((item, names, default))
        places.append((node.vararg, _KIND.VAR_POSITIONAL, None))
        for item, default in zip(node.kwonlyargs, node.kw_defaults, strict=True):
            places.append((item, _KIND.KEYWORD_ONLY, default))
        places.append((node.kwarg, _KIND.VAR_KEYWORD, None))
        parts: list[inspect.Parameter] = []
        for parameter, kind, value in places:
            if parameter is not None:
                known = _KIND.empty if value is None else self.evaluate(value)
                parts.append(_KIND(parameter.arg, kind, default=known))
        return inspect.Signature(parts)

    def comprehension(
        self, node: ast.ListComp | ast.GeneratorExp | ast.SetComp
    ) -> list[object] | set[object]:
        items: list[object] = []
        self._generate(node.generators, 0, lambda: items.append(self.evaluate(node.elt)))
        return set(items) if isinstance(node, ast.SetComp) else items

    def dict_comprehension(self, node: ast.DictComp) -> dict[object, object]:
        entries: dict[object, object] = {}

        def add() -> None:
            entries[self.evaluate(node.key)] = self.evaluate(node.value)

        self._generate(node.generators, 0, add)
        return entries

    def _generate(
        self, parts: list[ast.comprehension], index: int, action: Callable[[], None]
    ) -> None:
        if index == len(parts):
            action()
            return
        part = parts[index]
        with self.scopes.nested():
            for value in self.evaluate(part.iter):
                for name, item in self.match(part.target, value):
                    self.scopes.define(name, item)
                if all(self.evaluate(test) for test in part.ifs):
                    self._generate(parts, index + 1, action)

    def match(self, target: ast.expr, value: object) -> list[tuple[str, object]]:
        """The names of an assignment's target with their values."""
        if isinstance(target, ast.Name):
            return [(target.id, value)]
        if isinstance(target, ast.Tuple | ast.List):
            return self._match_sequence(target, value)
        raise self.error(target, f"expected a name on the left side, got {_describe(target)}")

    def _match_sequence(self, target: ast.Tuple | ast.List, value: Any) -> list[tuple[str, object]]:
        count = len(target.elts)
        try:
            values = list(value)
        except TypeError:
            if count != 1:
                what = f"expected {count} values to unpack, got one {type(value).__name__}"
                if isinstance(value, Var):
                    what = f"expected {count} variables, but the right side gives one"
                raise self.error(target, what) from None
            values = [value]
        star = [i for i, item in enumerate(target.elts) if isinstance(item, ast.Starred)]
        if star:
            after = count - star[0] - 1
            if len(values) >= count - 1:
                middle = values[star[0] : len(values) - after]
                values = [*values[: star[0]], middle, *values[len(values) - after :]]
        if len(values) != count:
            raise self.error(target, f"expected {count} values to unpack, got {len(values)}")
        pairs: list[tuple[str, object]] = []
        for item, part in zip(target.elts, values, strict=True):
            pairs.extend(self.match(item.value if isinstance(item, ast.Starred) else item, part))
        return pairs


def _no_advice(
    function: Callable[..., object], args: Values, node: ast.Call
) -> contextlib.AbstractContextManager[None]:
    return contextlib.nullcontext()


def _plain_call(
    function: Callable[..., object], args: Values, kwargs: Words, node: ast.Call
) -> object:
    return function(*args, **kwargs)


def operand(value: object) -> Any:
    """A value as an operator takes it: regions of buffers become vector loads."""
    return as_value(value) if isinstance(value, BufferRegion) else value


def check_no_buffer(*operands: object) -> None:
    """Refuse arithmetic of whole buffers."""
    for value in operands:
        if isinstance(value, Buffer):
            indices = ", ".join("ijklmnop"[: len(value.shape)])
            raise IRTypeError(
                f"expected a number or an element, got the whole buffer {value.name}; "
                f"loop over the elements and write {value.name}[{indices}]"
            )


def literal(value: object, beside: object) -> object:
    """A Python number whose other operand is unsigned becomes a constant of that type."""
    if type(value) is int and value >= 0 and isinstance(beside, PrimExpr):
        element = beside.dtype.element
        if element.kind == "uint" and value < 1 << element.bits:
            return tir_op.const(value, element)
    return value


def join(lhs: Any, rhs: Any, is_and: bool) -> object:
    """``lhs and rhs`` or ``lhs or rhs``; an IR expression if one side is one."""
    if not isinstance(lhs, ExprOp) and not isinstance(rhs, ExprOp):
        return (lhs and rhs) if is_and else (lhs or rhs)
    kind = And if is_and else Or
    a, b = as_prim_expr(lhs), as_prim_expr(rhs)
    if a.dtype.lanes == b.dtype.lanes == 1:
        return kind(a, b)
    return tir_op.bitwise_and(a, b) if is_and else tir_op.bitwise_or(a, b)


def _message(error: BaseException) -> str:
    if isinstance(error, KeyError) and not isinstance(error, TVMError):
        return f"no entry {error}"
    return str(error) or type(error).__name__


def _describe(node: ast.AST) -> str:
    names = {"Await": "await", "Yield": "yield", "NamedExpr": ":="}
    return names.get(type(node).__name__, f"this {type(node).__name__}")


Evaluator.METHODS = {
    ast.Name: Evaluator.name, ast.Constant: Evaluator.constant,
    ast.Attribute: Evaluator.attribute, ast.Subscript: Evaluator.subscript,
    ast.Slice: Evaluator.slice_, ast.Tuple: Evaluator.tuple_, ast.List: Evaluator.list_,
    ast.Set: Evaluator.set_, ast.Dict: Evaluator.dict_, ast.Call: Evaluator.call_,
    ast.BinOp: Evaluator.binary, ast.UnaryOp: Evaluator.unary, ast.BoolOp: Evaluator.boolean,
    ast.Compare: Evaluator.compare, ast.IfExp: Evaluator.choice,
    ast.JoinedStr: Evaluator.string, ast.Lambda: Evaluator.function,
    ast.ListComp: Evaluator.comprehension, ast.GeneratorExp: Evaluator.comprehension,
    ast.SetComp: Evaluator.comprehension, ast.DictComp: Evaluator.dict_comprehension,
}  # fmt: skip
