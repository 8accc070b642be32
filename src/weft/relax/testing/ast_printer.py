"""``dump_ast``: prints a graph as nested constructor calls, to show the tree of nodes.

::

    Call(
        op=Op(name="relax.add"),
        args=[
            Var(name_hint="x"),
            Var(name_hint="y")
        ]
    )
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from weft.ir.expr import PrimExpr, RelaxExpr
from weft.ir.node import Node
from weft.ir.op import Op
from weft.relax.expr import ExternFunc
from weft.relax.ir.lattice import get_static_type
from weft.relax.struct_info import (
    FuncStructInfo,
    ObjectStructInfo,
    PrimStructInfo,
    ShapeStructInfo,
    StructInfo,
    TensorStructInfo,
    TupleStructInfo,
)
from weft.runtime.ndarray import NDArray
from weft.support.dtype import DataType
from weft.support.errors import wrong_type
from weft.support.recursion import deep_recursion

_TYPES: dict[type, tuple[str, tuple[tuple[str, str], ...]]] = {
    ObjectStructInfo: ("ObjectType", ()),
    PrimStructInfo: ("PrimType", (("dtype", "dtype"),)),
    ShapeStructInfo: ("ShapeType", (("ndim", "ndim"),)),
    TensorStructInfo: ("TensorType", (("ndim", "ndim"), ("dtype", "dtype"))),
    TupleStructInfo: ("TupleType", (("fields", "fields"),)),
    FuncStructInfo: ("FuncType", (("arg_types", "params"), ("ret_type", "ret"))),
}
"""Struct info -> the type that TVM has for it, and the type's fields with those of the info."""


class ASTPrinter:
    """Prints nodes; the options are those of ``dump_ast``."""

    def __init__(
        self,
        indent_str: str = "    ",
        include_struct_info_annotations: bool = True,
        include_type_annotations: bool = False,
        include_call_attrs: bool = True,
    ) -> None:
        self.indent_str = indent_str
        self.include_struct_info_annotations = include_struct_info_annotations
        self.include_type_annotations = include_type_annotations
        self.include_call_attrs = include_call_attrs

    def visit_expr(self, expr: Node) -> str:
        """The text of an expression, a binding or a block."""
        if isinstance(expr, Op):
            return self.call("Op", {"name": expr.name})
        if isinstance(expr, PrimExpr):
            return self.call("PrimExpr", {"value": _Plain(f"`{expr}`")})
        if isinstance(expr, StructInfo):
            return self.visit_struct_info_(expr)
        if not isinstance(expr, Node):
            raise wrong_type("dump_ast: expected a node of a graph", expr)
        given = {name: getattr(expr, name) for name in expr.INIT_FIELDS}
        fields = {name: value for name, value in given.items() if value is not None}
        for name in ("attrs", "sinfo_args"):
            if not fields.get(name, True) or (name == "attrs" and not self.include_call_attrs):
                fields.pop(name, None)
        if isinstance(expr, RelaxExpr):
            fields.pop("struct_info", None)
            if expr.struct_info is not None and not isinstance(expr, ExternFunc):
                fields.update(self.annotations(expr.struct_info))
        return self.call(type(expr).__name__, fields)

    def annotations(self, info: StructInfo) -> dict[str, StructInfo | _Plain]:
        """The struct info and the type of an expression, as far as the options ask for them."""
        annotations: dict[str, StructInfo | _Plain] = {}
        if self.include_struct_info_annotations:
            annotations["struct_info"] = info
        if self.include_type_annotations:
            annotations["checked_type_"] = _Plain(self.visit_type_(info))
        return annotations

    def visit_struct_info_(self, struct_info_node: StructInfo) -> str:
        """The text of a struct info, with its known fields only."""
        info = struct_info_node
        known: tuple[str, ...]
        if isinstance(info, TensorStructInfo):
            known = ("dtype", "ndim") if info.shape is None else ("dtype", "shape")
        elif isinstance(info, ShapeStructInfo):
            known = ("ndim",) if info.values is None else ("ndim", "values")
        elif isinstance(info, PrimStructInfo):
            known = ("dtype",)
        elif isinstance(info, FuncStructInfo):
            known = ("ret", "purity") if info.params is None else ("params", "ret", "purity")
        else:
            known = info.INIT_FIELDS
        return self.call(type(info).__name__, {name: getattr(info, name) for name in known})

    def visit_type_(self, type_node: StructInfo) -> str:
        """The text of TVM's type of a struct info: rank and data type without dimensions."""
        info = get_static_type(type_node)
        if isinstance(info, FuncStructInfo) and info.params is None:
            return self.call("PackedFuncType", {})
        name, fields = _TYPES.get(type(info), _TYPES[ObjectStructInfo])
        texts = {}
        for field, source in fields:
            value = getattr(info, source)
            if isinstance(value, tuple):
                value = [_Plain(self.visit_type_(item)) for item in value]
            texts[field] = _Plain(self.visit_type_(value)) if field == "ret_type" else value
        return self.call(name, texts)

    def call(self, name: str, fields: Mapping[str, object]) -> str:
        """``name(field=..., ...)``."""
        texts = [f"{field}={self.value(value)}" for field, value in fields.items()]
        data = fields.get("data")
        is_tensor = isinstance(data, NDArray) and data.shape != ()
        return self.listed(texts, f"{name}(", ")", is_long=is_tensor)

    def value(self, value: object) -> str:
        """The text of a field."""
        if isinstance(value, Node):
            return self.visit_expr(value)
        if isinstance(value, Mapping):
            pairs = [f'"{key}": {self.value(item)}' for key, item in value.items()]
            return self.listed(pairs, "{", "}")
        if isinstance(value, list | tuple):
            return self.listed([self.value(item) for item in value], "[", "]")
        is_text = isinstance(value, str) and not isinstance(value, DataType | _Plain)
        return f'"{value}"' if is_text else str(value)

    def listed(self, items: Iterable[str], start: str, end: str, is_long: bool = False) -> str:
        """Items between brackets: a single short item on the same line, else one item a line."""
        lines = list(items)
        if len(lines) < 2 and not is_long and not any("\n" in line for line in lines):
            return f"{start}{''.join(lines)}{end}"
        inside = ",\n".join(lines).replace("\n", f"\n{self.indent_str}")
        return f"{start}\n{self.indent_str}{inside}\n{end}"


class _Plain(str):
    """A text that is printed without quotes."""

    __slots__ = ()


@deep_recursion
def dump_ast(
    exp: Node,
    indent_str: str = "    ",
    include_struct_info_annotations: bool = True,
    include_type_annotations: bool = False,
    include_call_attrs: bool = True,
) -> str:
    """The text of a graph expression, a binding or a block as constructors of nodes.

    >>> from weft import relax
    >>> print(dump_ast(relax.TupleGetItem(relax.Var("pair"), 0)))
    TupleGetItem(
        tuple_value=Var(name_hint="pair"),
        index=0
    )
    """
    return ASTPrinter(
        indent_str, include_struct_info_annotations, include_type_annotations, include_call_attrs
    ).visit_expr(exp)
