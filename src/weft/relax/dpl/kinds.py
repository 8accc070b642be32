"""The classes of patterns of ``relax.dpl``, and how each one matches an expression.

Patterns are compared by identity: the same pattern object at two places of a pattern means that the
same expression stands at both. ``dup`` makes an independent copy. Where ``var2val`` is given (or in
a dataflow block), a pattern is matched against the value that a variable is bound to (TVM's
"autojump"); patterns of variables are matched against the variable itself.

The semantics are TVM 0.20's, except that every match is found (TVM commits to the first alternative
of ``|`` and of a commutative call); that attributes are compared by value, so ``strides=[3, 3]``
matches; that ``(a * b) / c`` does not match ``a * (b / c)``, whose result differs in floating point
and in integers; and that dimensions must be proved equal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from weft.ir.attrs import Attrs
from weft.ir.expr import PrimExpr, RelaxExpr
from weft.ir.op import Op
from weft.ir.structural import structural_equal
from weft.ir.traits import Trait, has
from weft.relax.analysis.bindings import all_bindings
from weft.relax.dpl.edge import Edge, PatternSeq, SameShapeConstraint, record, sequence
from weft.relax.dpl.matcher import Alternative, Matcher, Pattern, Site
from weft.relax.expr import (
    Call,
    Expr,
    Function,
    Var,
)
from weft.relax.ir.lattice import get_static_type, tensor_dims
from weft.relax.ir.shape_arith import same_dims
from weft.relax.struct_info import StructInfo, TensorStructInfo, as_dimension
from weft.support.dtype import DataType
from weft.support.errors import IRTypeError, IRValueError

Dim = PrimExpr | int
InfoLike = StructInfo | Callable[..., object]
"""Struct info, or an annotation of TVMScript: ``R.Tensor``, ``R.Tensor((2, 3))``."""

HOLDS: tuple[Alternative, ...] = ((),)
"""The pattern holds without further goals."""
FAILS: tuple[Alternative, ...] = ()


class DFPattern(Pattern):
    """The base of patterns, with the operators that combine them."""

    __slots__ = ("children",)
    children: tuple[DFPattern, ...]

    def __init__(self, *children: DFPattern) -> None:
        for child in children:
            if not isinstance(child, DFPattern):
                raise IRTypeError(
                    f"{type(self).__name__}: expected a pattern such as wildcard(), got "
                    f"{type(child).__name__}: {child!r:.80}"
                )
        self.children = children

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(repr, self.children))})"

    def __call__(
        self, *args: DFPattern, varg_default_wildcard: bool = False, add_constraint: bool = True
    ) -> CallPattern:
        """The pattern of a call of what this pattern matches."""
        return CallPattern(self, args, varg_default_wildcard, add_constraint)

    def __or__(self, other: DFPattern) -> OrPattern:
        return OrPattern(self, other)

    def __and__(self, other: DFPattern) -> AndPattern:
        return AndPattern(self, other)

    def __invert__(self) -> NotPattern:
        return NotPattern(self)

    def optional(self, option_constructor: Callable[[DFPattern], DFPattern]) -> OrPattern:
        """This pattern, or ``option_constructor(this)``, which is tried first.

        ``is_op("relax.add")(x, y).optional(is_op("relax.nn.relu"))`` matches an addition with or
        without a relu behind it (as in relay.dataflow_pattern).
        """
        return OrPattern(option_constructor(self), self)

    def has_attr(self, attrs: Mapping[str, Any]) -> AttrPattern:
        """This pattern, restricted to expressions that have these attributes."""
        return AttrPattern(self, attrs)

    def has_struct_info(self, struct_info: InfoLike) -> StructInfoPattern:
        """This pattern, restricted to a struct info; a symbolic variable matches any dimension."""
        return StructInfoPattern(self, struct_info)

    def has_type(self, ttype: StructInfo) -> TypePattern:
        """This pattern, restricted to a static type: rank and data type."""
        return TypePattern(self, ttype)

    def has_dtype(self, dtype: str) -> DataTypePattern:
        """This pattern, restricted to tensors of a data type."""
        return DataTypePattern(self, dtype)

    def has_shape(self, shape: Sequence[Dim]) -> ShapePattern:
        """This pattern, restricted to tensors whose dimensions are proved equal to ``shape``."""
        return ShapePattern(self, shape)

    def match(self, expr: RelaxExpr, var2val: Mapping[Var, Expr] | None = None) -> bool:
        """Whether an expression matches; ``var2val`` says what variables are bound to."""
        return Matcher(var2val).first(self, expr)

    def extract_matched_expr(
        self, expr: RelaxExpr, var2val: Mapping[Var, Expr] | None = None
    ) -> dict[Pattern, RelaxExpr] | None:
        """Pattern -> the expression that it matched, in the first match; None without a match."""
        matcher = Matcher(var2val)
        return dict(matcher.bound) if matcher.first(self, expr) else None

    def explain(self, expr: RelaxExpr, var2val: Mapping[Var, Expr] | None = None) -> str | None:
        """Why an expression does not match: the pattern at which the longest attempt ended."""
        matcher = Matcher(var2val)
        if matcher.first(self, expr) or matcher.failure is None:
            return None
        pattern, expr = matcher.failure
        if isinstance(expr, Var):
            place = "a parameter, which has no value to look into"
            if var2val is None:
                place = "a variable; give var2val=relax.analysis.get_var2val(function) to look at "
                place += "its value"
            return f"expected {pattern!r}, found {expr}: {place}"
        return f"expected {pattern!r}, found {expr}"

    def used_by(self, other: DFPattern | PatternSeq, index: int = -1) -> PatternSeq:
        """In a PatternContext: this is used by ``other``, as its argument ``index`` (-1: any)."""
        return sequence(self).used_by(other, index)

    def only_used_by(self, other: DFPattern | PatternSeq, index: int = -1) -> PatternSeq:
        """In a PatternContext: this is used by ``other`` and by nothing else of the block."""
        return sequence(self).only_used_by(other, index)

    def __xor__(self, other: DFPattern | PatternSeq) -> PatternSeq:
        return self.used_by(other)

    def __rshift__(self, other: DFPattern | PatternSeq) -> PatternSeq:
        return self.only_used_by(other)

    def fork_to(self, *args: DFPattern) -> None:
        """In a PatternContext: this is used by each of the given patterns."""
        for other in args:
            self.used_by(other)

    def same_shape_as(self, *args: DFPattern) -> SameShapeConstraint:
        """In a PatternContext: this and the others match tensors of the same shape."""
        return SameShapeConstraint(self, *args)

    def walk(self) -> Iterator[DFPattern]:
        """This pattern and those below, each once."""
        seen: set[DFPattern] = set()
        todo: list[DFPattern] = [self]
        while todo:
            pattern = todo.pop()
            if pattern not in seen:
                seen.add(pattern)
                yield pattern
                todo.extend(reversed(pattern.children))


class CallPattern(DFPattern):
    """A call: callee and arguments; ``varg_default_wildcard`` lets further arguments be anything.

    The arguments of commutative operators, as ``relax.add``, match in either order. In a
    PatternContext the arguments are recorded as used by the call, unless ``add_constraint=False``.
    """

    __slots__ = ("args", "op", "varg_default_wildcard")

    def __init__(
        self,
        op: DFPattern,
        args: Iterable[DFPattern],
        varg_default_wildcard: bool = False,
        add_constraint: bool = True,
    ) -> None:
        self.op, self.args = op, tuple(args)
        super().__init__(op, *self.args)
        self.varg_default_wildcard = varg_default_wildcard
        if add_constraint:
            for index, arg in enumerate(self.args):
                record(Edge(arg, self, index))

    def __repr__(self) -> str:
        more = ["..."] if self.varg_default_wildcard else []
        return f"{self.op!r}({', '.join([*map(repr, self.args), *more])})"

    def expand(self, at: Site) -> tuple[Alternative, ...]:
        if not isinstance(at.value, Call):
            return FAILS
        given, wanted = len(at.value.args), len(self.args)
        if given < wanted or (given > wanted and not self.varg_default_wildcard):
            return FAILS
        callee = (self.op, at.value.op)
        straight = (callee, *zip(self.args, at.value.args, strict=False))
        if has(at.value.op, Trait.COMMUTATIVE) and given == wanted == 2:
            return straight, (callee, *zip(self.args, reversed(at.value.args), strict=True))
        return (straight,)


class FunctionPattern(DFPattern):
    """A function by its parameters and its body; variables in it stand for their values."""

    __slots__ = ("body", "params")

    def __init__(self, params: Sequence[DFPattern], body: DFPattern) -> None:
        super().__init__(*params, body)
        self.params, self.body = tuple(params), body

    def expand(self, at: Site) -> tuple[Alternative, ...]:
        if not isinstance(at.value, Function) or len(at.value.params) != len(self.params):
            return FAILS
        at.matcher.inner.update((b.var, b.value) for b in all_bindings(at.value.body))
        params = zip(self.params, at.value.params, strict=True)
        return ((*params, (self.body, at.value.body.body)),)


class OrPattern(DFPattern):
    """Either of two patterns, the left one first."""

    __slots__ = ("left", "right")

    def __init__(self, left: DFPattern, right: DFPattern) -> None:
        super().__init__(left, right)
        self.left, self.right = left, right

    def __repr__(self) -> str:
        return f"({self.left!r} | {self.right!r})"

    def expand(self, at: Site) -> tuple[Alternative, ...]:
        return ((self.left, at.expr),), ((self.right, at.expr),)


class AndPattern(DFPattern):
    """Both of two patterns."""

    __slots__ = ("left", "right")

    def __init__(self, left: DFPattern, right: DFPattern) -> None:
        super().__init__(left, right)
        self.left, self.right = left, right

    def __repr__(self) -> str:
        return f"({self.left!r} & {self.right!r})"

    def expand(self, at: Site) -> tuple[Alternative, ...]:
        return (((self.left, at.expr), (self.right, at.expr)),)


class NotPattern(DFPattern):
    """An expression that a pattern does not match, with the bindings so far; binds nothing."""

    __slots__ = ("reject",)

    def __init__(self, to_reject: DFPattern) -> None:
        super().__init__(to_reject)
        self.reject = to_reject

    def __repr__(self) -> str:
        return f"~{self.reject!r}"

    def expand(self, at: Site) -> tuple[Alternative, ...]:
        return HOLDS if at.matcher.refutes(self.reject, at.expr) else FAILS


class Restriction(DFPattern):
    """A pattern with a condition on the expression, which is checked before the pattern."""

    __slots__ = ("pattern",)

    def __init__(self, pattern: DFPattern) -> None:
        super().__init__(pattern)
        self.pattern = pattern

    def subject(self, at: Site) -> RelaxExpr | None:
        """The expression that the restricted pattern is bound to."""
        return self.pattern.subject(at)

    def admits(self, at: Site) -> bool:
        """Whether the condition holds."""
        raise NotImplementedError(f"{type(self).__name__} is not a complete pattern")

    def expand(self, at: Site) -> tuple[Alternative, ...]:
        return (((self.pattern, at.expr),),) if self.admits(at) else FAILS


class AttrPattern(Restriction):
    """A pattern whose attributes have the given values."""

    __slots__ = ("attrs",)

    def __init__(self, pattern: DFPattern, attrs: Mapping[str, Any]) -> None:
        super().__init__(pattern)
        self.attrs = attrs if isinstance(attrs, Attrs) else Attrs(attrs)

    def __repr__(self) -> str:
        return f"{self.pattern!r}.has_attr({dict(self.attrs.items())})"

    def admits(self, at: Site) -> bool:
        if isinstance(at.value, Op):
            return all(
                at.value.has_attr(name) and _same_attr(wanted, at.value.get_attr(name))
                for name, wanted in self.attrs.items()
            )
        if not isinstance(at.value, Call | Function):
            return False
        return all(
            name in at.value.attrs and _same_attr(wanted, at.value.attrs[name])
            for name, wanted in self.attrs.items()
        )


def _same_attr(wanted: object, actual: object) -> bool:
    """Whether two attributes are equal; numbers are compared by value, whatever their type."""
    mine, its = getattr(wanted, "value", wanted), getattr(actual, "value", actual)
    if isinstance(mine, Sequence) and not isinstance(mine, str):
        if not isinstance(its, Sequence) or isinstance(its, str) or len(mine) != len(its):
            return False
        return all(map(_same_attr, mine, its))
    if isinstance(mine, bool | int | float | str | DataType):
        return bool(mine == its)
    return structural_equal(wanted, actual)


class StructInfoPattern(Restriction):
    """A pattern restricted to expressions of a struct info."""

    __slots__ = ("struct_info",)

    def __init__(self, pattern: DFPattern, struct_info: InfoLike) -> None:
        super().__init__(pattern)
        self.struct_info = _as_struct_info(struct_info)

    def __repr__(self) -> str:
        return f"{self.pattern!r}.has_struct_info({self.struct_info})"

    def admits(self, at: Site) -> bool:
        info = _info(at)
        return info is not None and at.matcher.unify(self.struct_info, info)


def _as_struct_info(given: InfoLike) -> StructInfo:
    """A struct info from one, or from an annotation such as ``R.Tensor``."""
    if isinstance(given, StructInfo):
        return given
    annotation = given() if callable(given) else given
    convert = getattr(annotation, "as_struct_info", None)
    info = convert() if convert is not None else annotation
    if not isinstance(info, StructInfo):
        raise IRTypeError(f"has_struct_info: expected struct info such as R.Tensor, got {given!r}")
    return info


def _info(at: Site) -> StructInfo | None:
    """The struct info of the expression, or of its value: one of them may have none yet."""
    info: StructInfo | None = at.expr.struct_info or at.value.struct_info
    return info


class TypePattern(Restriction):
    """A pattern restricted to a static type: rank and data type."""

    __slots__ = ("type",)

    def __init__(self, pattern: DFPattern, ttype: StructInfo) -> None:
        super().__init__(pattern)
        self.type = ttype

    def admits(self, at: Site) -> bool:
        info = _info(at)
        return info is not None and get_static_type(info) == get_static_type(self.type)


class DataTypePattern(Restriction):
    """A pattern restricted to tensors of a data type."""

    __slots__ = ("dtype",)

    def __init__(self, pattern: DFPattern, dtype: str) -> None:
        super().__init__(pattern)
        self.dtype = DataType(dtype)

    def __repr__(self) -> str:
        return f"{self.pattern!r}.has_dtype({str(self.dtype)!r})"

    def admits(self, at: Site) -> bool:
        info = _info(at)
        return isinstance(info, TensorStructInfo) and bool(info.dtype == self.dtype)


class ShapePattern(Restriction):
    """A pattern restricted to tensors of a shape."""

    __slots__ = ("shape",)

    def __init__(self, pattern: DFPattern, shape: Sequence[Dim]) -> None:
        super().__init__(pattern)
        self.shape = dimensions_of("has_shape", shape)

    def __repr__(self) -> str:
        return f"{self.pattern!r}.has_shape(({', '.join(map(str, self.shape))}))"

    def admits(self, at: Site) -> bool:
        info = _info(at)
        return isinstance(info, TensorStructInfo) and same_dims(self.shape, tensor_dims(info))


def dimensions_of(name: str, shape: Sequence[Dim]) -> tuple[PrimExpr, ...]:
    """The dimensions given to the pattern function ``name``."""
    if isinstance(shape, str) or not isinstance(shape, Sequence):
        raise IRValueError(f"{name}: expected a list of dimensions, got {shape!r:.80}")
    return tuple(as_dimension(dim) for dim in shape)
