"""Rewrite rules as rows of text, compiled to Python matchers.

``Rule("cancel", "(x + y) - x", "y")`` reads as Python with Python's ``//`` and ``%``. Names:
``x y z w`` stand for any integer expression, ``p q r`` for any boolean one, ``c1 c2 ...`` for
constants (in ``after`` and ``where`` their integer values). Functions: ``min``, ``max``,
``truncdiv``, ``truncmod``, ``select``. ``where`` joins Python conditions on the constants and the
predicates of ``Predicates``, each of which a test can evaluate too.

Compilation expands commutative operators (so one row covers all operand orders), puts the class
tests of the whole pattern first, and indexes the matchers by the classes of root and operands.
``x + c1`` also matches ``x - 2`` (c1 = -2): fold.py keeps sums in that form.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import gcd
from typing import Any, Final

from weft.arith import fold
from weft.arith.deep_equal import BINARY, expr_deep_equal
from weft.arith.facts import INT32, INT64
from weft.ir.expr import IntImm, PrimExpr
from weft.tir import expr as nodes
from weft.tir.arithmetic import truncated_quotient, truncated_remainder


@dataclass(frozen=True, slots=True)
class Rule:
    """One row: ``before`` becomes ``after`` if ``where``."""

    name: str
    before: str
    after: str
    where: str = ""
    exact: bool = False
    """Whether operands of commutative operators match only in the order of the row."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """A parsed side: an operator with operands, or a leaf (``kind`` var, const or literal)."""

    kind: str
    name: str = ""
    operands: tuple[Pattern, ...] = ()
    value: int = 0

    @property
    def is_constant(self) -> bool:
        """Whether only constants occur, so that the side is computed and not built."""
        if self.kind in ("const", "literal"):
            return True
        return bool(self.operands) and all(operand.is_constant for operand in self.operands)


Matcher = Callable[[Any, Any], Any]
Shape = type | tuple[type, type, type]

_OPERATORS: Final[dict[type, str]] = {
    ast.Add: "Add", ast.Sub: "Sub", ast.Mult: "Mul", ast.FloorDiv: "FloorDiv",
    ast.Mod: "FloorMod", ast.Eq: "EQ", ast.NotEq: "NE", ast.Lt: "LT", ast.LtE: "LE",
    ast.And: "And", ast.Or: "Or",
}  # fmt: skip
_FUNCTIONS: Final = {
    "min": "Min", "max": "Max", "truncdiv": "Div", "truncmod": "Mod", "select": "Select",
}  # fmt: skip
_COMMUTATIVE: Final = frozenset({"Add", "Mul", "Min", "Max", "EQ", "NE", "And", "Or"})
_PYTHON: Final = {
    "Add": "({} + {})", "Sub": "({} - {})", "Mul": "({} * {})", "FloorDiv": "({} // {})",
    "FloorMod": "({} % {})", "Min": "min({}, {})", "Max": "max({}, {})", "LT": "({} < {})",
    "LE": "({} <= {})", "EQ": "({} == {})", "NE": "({} != {})", "Div": "quotient({}, {})",
    "Mod": "remainder({}, {})",
}  # fmt: skip
_FIELDS: Final = {
    "Not": ("a",), "Select": ("condition", "true_value", "false_value"),
}  # fmt: skip
_BUILDERS: Final = {
    **{kind.__name__: f"fold.{function.__name__}" for kind, function in fold.BUILDERS.items()},
    "Not": "fold.not_", "Select": "fold.select",
}  # fmt: skip


def parse(text: str) -> Pattern:
    """The pattern of one side of a rule."""
    return _pattern(ast.parse(text, mode="eval").body)


def _pattern(tree: ast.expr) -> Pattern:
    match tree:
        case ast.Name(id=name):
            return Pattern("const" if name[0] == "c" else "var", name)
        case ast.Constant(value=bool() as truth):
            return Pattern("truth", value=int(truth))
        case ast.Constant(value=int() as number):
            return Pattern("literal", value=number)
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() as number)):
            return Pattern("literal", value=-number)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return Pattern("Not", operands=(_pattern(operand),))
        case ast.BinOp(left=left, op=operator, right=right) if type(operator) in _OPERATORS:
            return Pattern(_OPERATORS[type(operator)], operands=(_pattern(left), _pattern(right)))
        case ast.Compare(left=left, ops=[operator], comparators=[right]):
            return Pattern(_OPERATORS[type(operator)], operands=(_pattern(left), _pattern(right)))
        case ast.BoolOp(op=operator, values=[first, *rest]):
            joined = _pattern(first)
            for value in rest:
                joined = Pattern(_OPERATORS[type(operator)], operands=(joined, _pattern(value)))
            return joined
        case ast.Call(func=ast.Name(id=name), args=arguments) if name in _FUNCTIONS:
            return Pattern(_FUNCTIONS[name], operands=tuple(_pattern(a) for a in arguments))
    raise ValueError(f"a rule cannot say {ast.unparse(tree)!r}")


def _variants(pattern: Pattern) -> list[Pattern]:
    """The pattern with the operands of commutative operators in every order."""
    if not pattern.operands:
        return [pattern]
    choices = [_variants(operand) for operand in pattern.operands]
    variants = [Pattern(pattern.kind, operands=chosen) for chosen in itertools.product(*choices)]
    swappable = pattern.kind in _COMMUTATIVE and not pattern.operands[1].is_constant
    if swappable and not pattern.operands[0].is_constant:
        variants += [Pattern(variant.kind, operands=variant.operands[::-1]) for variant in variants]
    return variants


def _renamed(pattern: Pattern, names: dict[str, str]) -> Hashable:
    if pattern.kind in ("var", "const"):
        key = names.setdefault(pattern.name, f"{pattern.kind}{len(names)}")
        return key
    return (pattern.kind, pattern.value, *[_renamed(o, names) for o in pattern.operands])


class _Emitter:
    """Writes the matcher of one variant: class tests, then equalities, then ``where``."""

    def __init__(self, rule: Rule, pattern: Pattern) -> None:
        self.rule = rule
        self.tests: list[str] = []
        self.equalities: list[str] = []
        self.bound: set[str] = set()
        self.typed = ""
        self.temporaries = itertools.count()
        self.match(pattern, "e", root=True)

    def match(self, pattern: Pattern, path: str, root: bool = False) -> None:
        """Add the tests that the value at ``path`` is an instance of ``pattern``."""
        if pattern.kind == "var":
            self.match_variable(pattern.name, path)
        elif pattern.kind == "const":
            self.tests.append(f"if type({path}) is not IntImm: return None")
            self.match_constant(pattern, f"{path}.value")
            self.typed = self.typed or f"{path}.dtype"
        elif pattern.kind in ("literal", "truth"):
            test = f"type({path}) is not IntImm or {path}.value != {pattern.value}"
            test += f" or {path}.dtype is not BOOL" if pattern.kind == "truth" else ""
            self.tests.append(f"if {test}: return None")
        else:
            self.match_operator(pattern, path, root)

    def match_variable(self, name: str, path: str) -> None:
        if name in self.bound:
            self.equalities.append(f"if not equal({name}, {path}): return None")
            return
        self.bound.add(name)
        self.tests.append(f"{name} = {path}")
        if name in "xyzw" and not self.typed:
            self.typed = f"{name}.dtype"

    def match_constant(self, pattern: Pattern, value: str) -> None:
        if pattern.kind == "literal":
            self.tests.append(f"if {value} != {pattern.value}: return None")
        elif pattern.name in self.bound:
            self.tests.append(f"if {pattern.name} != {value}: return None")
        else:
            self.bound.add(pattern.name)
            self.tests.append(f"{pattern.name} = {value}")

    def match_operator(self, pattern: Pattern, path: str, root: bool) -> None:
        operands = pattern.operands
        if _adds_constant(pattern):
            pair = f"t{next(self.temporaries)}"
            self.tests.append(f"{pair} = plus_constant({path})")
            self.tests.append(f"if {pair} is None: return None")
            self.match_constant(operands[1], f"{pair}[1]")
            self.typed = self.typed or f"{path}.dtype"
            self.match(operands[0], f"{pair}[0]")
            return
        if not root:
            self.tests.append(f"if type({path}) is not nodes.{pattern.kind}: return None")
        fields = _FIELDS.get(pattern.kind, ("a", "b"))
        for field, operand in zip(fields, operands, strict=True):
            name = f"t{next(self.temporaries)}"
            self.tests.append(f"{name} = {path}.{field}")
            self.match(operand, name)

    def source(self, name: str) -> str:
        """The text of the function."""
        lines = [f"def {name}(e, k):", *self.tests]
        if self.typed:
            lines.append(f"dt = {self.typed}")
            lines.append("if dt is not INT32 and dt is not INT64: return None")
        lines += self.equalities
        if self.rule.where:
            tree = ast.parse(self.rule.where, mode="eval").body
            parts = (
                tree.values
                if isinstance(tree, ast.BoolOp) and isinstance(tree.op, ast.And)
                else [tree]
            )
            parts = sorted(parts, key=_calls_predicate)
            lines += [f"if not ({_condition(part)}): return None" for part in parts]
        lines.append(f"return {_build(parse(self.rule.after))}")
        return "\n    ".join(lines)


def _calls_predicate(tree: ast.expr) -> bool:
    return any(
        isinstance(node, ast.Call) and ast.unparse(node.func) in PREDICATES
        for node in ast.walk(tree)
    )


def _condition(tree: ast.expr) -> str:
    """Python text of one condition; the first argument of a predicate is built."""
    if isinstance(tree, ast.Call) and ast.unparse(tree.func) in PREDICATES:
        first = _build(_pattern(tree.args[0]))
        rest = "".join(f", {ast.unparse(argument)}" for argument in tree.args[1:])
        return f"k.{ast.unparse(tree.func)}({first}{rest})"
    if isinstance(tree, ast.BoolOp):
        word = " and " if isinstance(tree.op, ast.And) else " or "
        return "(" + word.join([_condition(value) for value in tree.values]) + ")"
    if isinstance(tree, ast.UnaryOp) and isinstance(tree.op, ast.Not):
        return f"not {_condition(tree.operand)}"
    return ast.unparse(tree)


def _number(pattern: Pattern) -> str:
    """Python text that computes a constant pattern."""
    if pattern.kind == "const":
        return pattern.name
    if pattern.kind == "literal":
        return f"({pattern.value})"
    return _PYTHON[pattern.kind].format(*[_number(operand) for operand in pattern.operands])


def _build(pattern: Pattern) -> str:
    """Python text that builds the expression of a pattern."""
    if pattern.kind == "var":
        return pattern.name
    if pattern.kind == "truth":
        return "fold.TRUE" if pattern.value else "fold.FALSE"
    if pattern.is_constant:
        return f"fold.const(dt, {_number(pattern)})"
    operands = ", ".join([_build(operand) for operand in pattern.operands])
    return f"{_BUILDERS[pattern.kind]}({operands})"


PREDICATES: Final = frozenset(
    {"within", "nonneg", "zero", "positive", "nonzero", "multiple", "nonconst", "at_least"}
)


class Predicates:
    """What ``where`` may ask about an expression; the rewrite simplifier implements it."""

    def range_of(self, expr: PrimExpr) -> tuple[int, int]:
        """Inclusive bounds."""
        raise NotImplementedError

    def divides(self, expr: PrimExpr, factor: int) -> bool:
        """Whether ``factor`` divides the value."""
        raise NotImplementedError

    def within(self, expr: PrimExpr, low: int, high: int) -> bool:
        """low <= expr < high."""
        bound = self.range_of(expr)
        return low <= bound[0] and bound[1] < high

    def at_least(self, expr: PrimExpr, low: int) -> bool:
        """low <= expr."""
        return self.range_of(expr)[0] >= low

    def nonneg(self, expr: PrimExpr) -> bool:
        """0 <= expr."""
        return self.range_of(expr)[0] >= 0

    def positive(self, expr: PrimExpr) -> bool:
        """0 < expr."""
        return self.range_of(expr)[0] > 0

    def nonzero(self, expr: PrimExpr) -> bool:
        """The value is not 0."""
        bound = self.range_of(expr)
        return bound[0] > 0 or bound[1] < 0

    def zero(self, expr: PrimExpr) -> bool:
        """The value is 0."""
        return self.range_of(expr) == (0, 0)

    def multiple(self, expr: PrimExpr, factor: int) -> bool:
        """Whether ``factor`` divides the value."""
        return factor != 0 and self.divides(expr, factor)

    def nonconst(self, expr: PrimExpr) -> bool:
        """Whether the expression is no constant."""
        return type(expr) is not IntImm


class Simplifier(Predicates):
    """What rules that are functions may ask as well; the rewrite simplifier implements it."""

    def visit(self, expr: PrimExpr) -> PrimExpr:
        """The simplified expression; ``expr`` itself where nothing applies."""
        raise NotImplementedError

    def literal(self, expr: PrimExpr) -> PrimExpr:
        """``expr``; a constant if it, or its negation, is a known condition."""
        raise NotImplementedError


def plus_constant(expr: PrimExpr) -> tuple[PrimExpr, int] | None:
    """(x, c) of ``x + c`` or of ``x - (-c)``."""
    if type(expr) is nodes.Add and type(expr.b) is IntImm:
        return expr.a, expr.b.value
    if type(expr) is nodes.Sub and type(expr.b) is IntImm:
        return expr.a, -expr.b.value
    return None


_SCOPE: Final = {
    "fold": fold, "nodes": nodes, "IntImm": IntImm, "INT32": INT32, "INT64": INT64, "gcd": gcd,
    "equal": expr_deep_equal, "plus_constant": plus_constant, "quotient": truncated_quotient,
    "remainder": truncated_remainder, "BOOL": fold.BOOL,
}  # fmt: skip


class Compiled:
    """One variant of a rule: a quick test of the operands' classes, and its matcher.

    The matcher is generated and compiled at first use, since most programs need few of the rules.
    """

    __slots__ = ("_function", "_pattern", "rule")

    def __init__(self, rule: Rule, pattern: Pattern) -> None:
        self.rule = rule
        self._pattern = pattern
        self._function: Matcher | None = None

    def fits(self, shapes: Sequence[Shape]) -> bool:
        """Whether operands of these shapes may match."""
        for operand, shape in zip(self._pattern.operands, shapes, strict=False):
            if not _fits(operand, shape):
                return False
        return True

    @property
    def function(self) -> Matcher:
        """``(expression, predicates) -> result or None``."""
        if self._function is None:
            scope: dict[str, Any] = dict(_SCOPE)
            source = _Emitter(self.rule, self._pattern).source("matcher")
            exec(compile(source, f"<rule {self.rule.name}>", "exec"), scope)  # noqa: S102 - ours
            self._function = scope["matcher"]
        return self._function


def shape_of(expr: Any) -> Shape:
    """The class of an operand, and the classes of its own operands if it is binary."""
    kind = type(expr)
    return (kind, type(expr.a), type(expr.b)) if kind in BINARY else kind


def _fits(pattern: Pattern, shape: Shape) -> bool:
    """Whether a value of that shape may match."""
    kind, inner = (shape[0], shape[1:]) if isinstance(shape, tuple) else (shape, ())
    if pattern.kind == "var":
        return True
    if pattern.kind in ("const", "literal", "truth"):
        return kind is IntImm
    if _adds_constant(pattern):  # x + c stands for x - c too
        if kind is not nodes.Add and kind is not nodes.Sub:
            return False
    elif kind is not getattr(nodes, pattern.kind):
        return False
    for operand, operand_kind in zip(pattern.operands, inner, strict=False):
        if not _fits(operand, operand_kind):
            return False
    return True


def _adds_constant(pattern: Pattern) -> bool:
    return pattern.kind == "Add" and pattern.operands[1].kind in ("const", "literal")


def compile_rules(rules: Iterable[Rule]) -> dict[type, list[Compiled]]:
    """Root class -> matchers in the order of the rows."""
    table: dict[type, list[Compiled]] = {}
    for rule, pattern in _expanded(rules):
        compiled = Compiled(rule, pattern)
        table.setdefault(getattr(nodes, pattern.kind), []).append(compiled)
        if _adds_constant(pattern):
            table.setdefault(nodes.Sub, []).append(compiled)
    return table


def _expanded(rules: Iterable[Rule]) -> Iterator[tuple[Rule, Pattern]]:
    for rule in rules:
        seen = set()
        parsed = parse(rule.before)
        for pattern in [parsed] if rule.exact else _variants(parsed):
            names: dict[str, str] = {}
            key = _renamed(pattern, names)
            where = rule.where
            for old in sorted(names, key=len, reverse=True):
                where = where.replace(old, names[old]) if where else where
            if (key, where) not in seen:
                seen.add((key, where))
                yield rule, pattern
