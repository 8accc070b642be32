"""Docs: the Python-like syntax tree that the printer builds and ``doc_printer`` turns into text.

The names are those of ``tvm.script.printer.doc``. Expressions have ``attr``, ``call`` and indexing,
so that code to build a doc, ``IdDoc("T").attr("grid").call(...)``, is similar to what it prints.
``source`` is the IR node that a doc was made from, by which it can be underlined; ``source_paths``
are further keys for that.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, NoReturn

from weft.ir.node import Array


@dataclass(eq=False, repr=False, slots=True)
class Doc:
    """The base of docs."""

    source: object = field(default=None, init=False)
    _paths: Sequence[object] | None = field(default=None, init=False)

    @property
    def source_paths(self) -> Sequence[object]:
        """Keys by which this doc can be underlined."""
        return self._paths or Array()

    @source_paths.setter
    def source_paths(self, value: Iterable[object]) -> None:
        self._paths = Array(value)


class Head:
    """A key by which the line that opens a loop or block is underlined, without its body."""

    __slots__ = ("node",)

    def __init__(self, node: object) -> None:
        self.node = node

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Head) and other.node is self.node

    def __hash__(self) -> int:
        return id(self.node)


class ExprDoc(Doc):
    """An expression."""

    __slots__ = ()

    def attr(self, name: str) -> AttrAccessDoc:
        """``self.name``."""
        return AttrAccessDoc(self, name)

    def call(self, *args: ExprDoc, **kwargs: ExprDoc) -> CallDoc:
        """``self(*args, **kwargs)``."""
        return CallDoc(self, args, tuple(kwargs), tuple(kwargs.values()))

    def __getitem__(
        self, indices: ExprDoc | SliceDoc | slice | tuple[ExprDoc | SliceDoc | slice, ...]
    ) -> IndexDoc:
        if not isinstance(indices, tuple):
            indices = (indices,)
        return IndexDoc(self, [_slice_doc(i) if isinstance(i, slice) else i for i in indices])

    def __iter__(self) -> NoReturn:
        raise TypeError(f"{type(self).__name__} is not iterable")


def _slice_doc(index: slice) -> SliceDoc:
    return SliceDoc(index.start, index.stop, index.step)


@dataclass(eq=False, repr=False, slots=True)
class LiteralDoc(ExprDoc):
    """None, a bool, an int, a float or a str."""

    value: str | float | bool | None


@dataclass(eq=False, repr=False, slots=True)
class IdDoc(ExprDoc):
    """A name."""

    name: str


@dataclass(eq=False, repr=False, slots=True)
class AttrAccessDoc(ExprDoc):
    """``value.name``."""

    value: ExprDoc
    name: str


@dataclass(eq=False, repr=False, slots=True)
class IndexDoc(ExprDoc):
    """``value[indices]``."""

    value: ExprDoc
    indices: Sequence[ExprDoc | SliceDoc]


@dataclass(eq=False, repr=False, slots=True)
class CallDoc(ExprDoc):
    """``callee(args, key=value)``."""

    callee: ExprDoc
    args: Sequence[ExprDoc] = ()
    kwargs_keys: Sequence[str] = ()
    kwargs_values: Sequence[ExprDoc] = ()


@dataclass(eq=False, repr=False, slots=True)
class LambdaDoc(ExprDoc):
    """``lambda args: body``."""

    args: Sequence[IdDoc]
    body: ExprDoc


@dataclass(eq=False, repr=False, slots=True)
class _ElementsDoc(ExprDoc):
    elements: Sequence[ExprDoc] = ()


class TupleDoc(_ElementsDoc):
    """``(a, b)``."""

    __slots__ = ()


class ListDoc(_ElementsDoc):
    """``[a, b]``."""

    __slots__ = ()


class DictDoc(ExprDoc):
    """``{key: value}``; given as a dict, or as two sequences."""

    __slots__ = ("keys", "values")

    def __init__(
        self,
        content: Mapping[ExprDoc, ExprDoc] | Sequence[ExprDoc] = (),
        values: Sequence[ExprDoc] | None = None,
    ) -> None:
        self.source, self._paths = None, None
        if values is None:
            assert isinstance(content, Mapping) or not content
            pairs = dict(content) if isinstance(content, Mapping) else {}
            self.keys, self.values = list(pairs), list(pairs.values())
        else:
            self.keys, self.values = list(content), list(values)


@dataclass(eq=False, repr=False, slots=True)
class SliceDoc(Doc):
    """``start:stop:step`` inside of an index."""

    start: ExprDoc | None = None
    stop: ExprDoc | None = None
    step: ExprDoc | None = None


class OperationKind(IntEnum):
    """The operators of ``OperationDoc``; the numbers are TVM's."""

    _UnaryStart = 0
    USub = 1
    Invert = 2
    Not = 3
    _UnaryEnd = 4
    _BinaryStart = 5
    Add = 6
    Sub = 7
    Mult = 8
    Div = 9
    FloorDiv = 10
    Mod = 11
    Pow = 12
    LShift = 13
    RShift = 14
    BitAnd = 15
    BitOr = 16
    BitXor = 17
    Lt = 18
    LtE = 19
    Eq = 20
    NotEq = 21
    Gt = 22
    GtE = 23
    And = 24
    Or = 25
    _BinaryEnd = 26
    _SpecialStart = 27
    IfThenElse = 28
    _SpecialEnd = 29


@dataclass(eq=False, repr=False, slots=True)
class OperationDoc(ExprDoc):
    """A unary, binary or conditional operation."""

    kind: OperationKind
    operands: Sequence[ExprDoc]


@dataclass(eq=False, repr=False, slots=True)
class StmtDoc(Doc):
    """A statement; ``comment`` is printed behind or above it."""

    comment: str | None = field(default=None, init=False)


@dataclass(eq=False, repr=False, slots=True)
class StmtBlockDoc(Doc):
    """Several statements."""

    stmts: Sequence[Doc]


class AssignDoc(StmtDoc):
    """``lhs: annotation = rhs``; without rhs, a parameter or a declaration."""

    __slots__ = ("annotation", "lhs", "rhs")

    def __init__(
        self, lhs: ExprDoc, rhs: ExprDoc | None = None, annotation: ExprDoc | None = None
    ) -> None:
        if rhs is None and annotation is None:
            raise ValueError("AssignDoc: expected rhs or annotation, got neither")
        if annotation is not None and isinstance(lhs, TupleDoc):
            raise ValueError("AssignDoc: a tuple on the left side takes no annotation")
        self.source, self._paths, self.comment = None, None, None
        self.lhs, self.rhs, self.annotation = lhs, rhs, annotation


class IfDoc(StmtDoc):
    """``if predicate: ... else: ...``."""

    __slots__ = ("else_branch", "predicate", "then_branch")

    def __init__(
        self, predicate: ExprDoc, then_branch: Sequence[Doc], else_branch: Sequence[Doc] = ()
    ) -> None:
        if not then_branch and not else_branch:
            raise ValueError("IfDoc: both branches are empty")
        self.source, self._paths, self.comment = None, None, None
        self.predicate, self.then_branch = predicate, list(then_branch)
        self.else_branch = list(else_branch or ())


@dataclass(eq=False, repr=False, slots=True)
class WhileDoc(StmtDoc):
    """``while predicate: ...``."""

    predicate: ExprDoc
    body: Sequence[Doc]


@dataclass(eq=False, repr=False, slots=True)
class ForDoc(StmtDoc):
    """``for lhs in rhs: ...``."""

    lhs: ExprDoc
    rhs: ExprDoc
    body: Sequence[Doc]


class ScopeDoc(StmtDoc):
    """``with rhs as lhs: ...``; ``ScopeDoc(lhs, rhs, body)`` or ``ScopeDoc(rhs, body)``."""

    __slots__ = ("body", "lhs", "rhs")

    def __init__(self, *args: Any) -> None:
        lhs, rhs, body = args if len(args) == 3 else (None, *args)
        self.source, self._paths, self.comment = None, None, None
        self.lhs, self.rhs, self.body = lhs, rhs, body


@dataclass(eq=False, repr=False, slots=True)
class ExprStmtDoc(StmtDoc):
    """An expression as a statement."""

    expr: ExprDoc


@dataclass(eq=False, repr=False, slots=True)
class AssertDoc(StmtDoc):
    """``assert test, msg``."""

    test: ExprDoc
    msg: ExprDoc | None = None


@dataclass(eq=False, repr=False, slots=True)
class ReturnDoc(StmtDoc):
    """``return value``."""

    value: ExprDoc


@dataclass(eq=False, repr=False, slots=True)
class FunctionDoc(StmtDoc):
    """A function definition."""

    name: IdDoc
    args: Sequence[AssignDoc]
    decorators: Sequence[ExprDoc] = ()
    return_type: ExprDoc | None = None
    body: Sequence[Doc] = ()


@dataclass(eq=False, repr=False, slots=True)
class ClassDoc(StmtDoc):
    """A class definition."""

    name: IdDoc
    decorators: Sequence[ExprDoc] = ()
    body: Sequence[Doc] = ()


@dataclass(eq=False, repr=False, slots=True)
class CommentDoc(StmtDoc):
    """Lines of comment; an empty one is an empty line."""

    comment: str


class DocStringDoc(StmtDoc):
    """A docstring."""

    __slots__ = ()

    def __init__(self, docs: str) -> None:
        self.source, self._paths, self.comment = None, None, docs
