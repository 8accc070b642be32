"""Struct infos as scripts write them: ``R.Tensor(("n", 4), "float32")``, ``R.Shape`` ...

A dimension that is a str names a symbolic variable of the function, or is an expression of such.
Outside of functions (in an annotation that Python evaluates) it cannot be resolved yet; the result
is a ``StructInfoProxy``.
"""

from __future__ import annotations

import ast
import functools
import operator
import re
from collections.abc import Callable, Sequence
from typing import Any, Final

from weft.ir.expr import ExprLike, PrimExpr, RelaxExpr, as_prim_expr
from weft.ir.global_info import GlobalInfo, VDevice
from weft.relax.expr import ShapeExpr
from weft.relax.struct_info import (
    FuncStructInfo,
    ObjectStructInfo,
    PrimStructInfo,
    ShapeStructInfo,
    StructInfo,
    TensorStructInfo,
    TupleStructInfo,
)
from weft.script.ir_builder.base import IRBuilder
from weft.script.ir_builder.tir_value import DTypeConstructor, TypeName
from weft.support.errors import IRTypeError, IRValueError
from weft.support.user_line import at_user_line
from weft.tir import expr as tir_nodes
from weft.tir import op as tir_op
from weft.tir.expr import Var

_OPERATORS: Final[dict[type[ast.operator], Callable[[Any, Any], object]]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.Div: operator.truediv,
    ast.LShift: operator.lshift, ast.RShift: operator.rshift,
    ast.BitAnd: operator.and_, ast.BitOr: operator.or_, ast.BitXor: operator.xor,
}  # fmt: skip
_COMPARISONS: Final[dict[type[ast.cmpop], Callable[[Any, Any], object]]] = {
    ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge,
    ast.Eq: operator.eq, ast.NotEq: operator.ne,
}  # fmt: skip
_UNARY: Final[dict[type[ast.unaryop], Callable[[Any], object]]] = {
    ast.USub: operator.neg, ast.Invert: operator.invert, ast.Not: tir_op.logical_not,
}  # fmt: skip
_FUNCTIONS: Final = (
    "min", "max", "ceildiv", "floordiv", "floormod", "truncdiv", "truncmod", "if_then_else", "abs",
    "shift_left", "shift_right", "bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not",
)  # fmt: skip


class StructInfoProxy:
    """A struct info whose symbols are not known yet."""

    def __init__(self, make: Callable[[], StructInfo]) -> None:
        self.make = make

    def as_struct_info(self) -> StructInfo:
        """The struct info, in the function being built."""
        return self.make()


Dim = PrimExpr | int | str
"""An extent: a str names a variable of the function, or is an expression of such."""
Dims = Sequence[Dim] | RelaxExpr
InfoLike = StructInfo | StructInfoProxy | Callable[[], "StructInfo | StructInfoProxy"]
"""Struct info, or an annotation of a script: ``R.Tensor((4,))``, ``R.Tensor``."""
Infos = InfoLike | list[InfoLike] | tuple[InfoLike, ...]
TirVars = Sequence[ExprLike] | ShapeExpr | None
Callee = RelaxExpr | str


def current_symbols() -> dict[str, PrimExpr] | None:
    """The symbolic variables of the function being built, None outside of one."""
    if not IRBuilder.is_in_scope():
        return None
    for frame in reversed(IRBuilder.current().frames):
        symbols: dict[str, PrimExpr] | None = getattr(frame, "symbols", None)
        if symbols is not None:
            return symbols
    return None


def symbolic(text: str) -> PrimExpr:
    """The expression of a str dimension; unknown names become int64 variables."""
    symbols = current_symbols()
    if symbols is None:
        raise IRValueError(f"the symbolic dimension {text!r} belongs inside an R.function")
    try:
        tree = ast.parse(text, mode="eval").body
    except SyntaxError:
        raise IRValueError(f"{text!r} is no dimension: expected a name or an expression") from None
    value = _expression(tree, symbols, text)
    return tir_op.const(value, "int64") if isinstance(value, int) else as_prim_expr(value)


def _expression(node: ast.expr, symbols: dict[str, PrimExpr], text: str) -> Any:
    if isinstance(node, ast.Name):
        if node.id not in symbols:
            symbols[node.id] = Var(node.id, "int64")
        return symbols[node.id]
    if isinstance(node, ast.Constant) and type(node.value) in (int, str):
        return node.value
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        left = _expression(node.left, symbols, text)
        return _OPERATORS[type(node.op)](left, _expression(node.right, symbols, text))
    if isinstance(node, ast.UnaryOp) and type(node.op) in _UNARY:
        return _UNARY[type(node.op)](_expression(node.operand, symbols, text))
    if isinstance(node, ast.BoolOp):
        join = tir_op.logical_and if isinstance(node.op, ast.And) else tir_op.logical_or
        return functools.reduce(join, [_expression(item, symbols, text) for item in node.values])
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _COMPARISONS:
        left = _expression(node.left, symbols, text)
        right = _expression(node.comparators[0], symbols, text)
        return _COMPARISONS[type(node.ops[0])](left, right)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute | ast.Name):
        name = node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id
        args = [_expression(item, symbols, text) for item in node.args]
        if name in _FUNCTIONS:
            return getattr(tir_op, name)(*args)
        if re.fullmatch(r"bool|(u?int|float)\d+", name) and len(args) == 1:
            return tir_op.cast(name, args[0])
        if name in _NODES:
            return getattr(tir_nodes, name)(*args)
    raise IRValueError(f"{text!r} is no dimension: expected names, integers and arithmetic")


_NODES: Final = frozenset(
    "Add Sub Mul Div Mod FloorDiv FloorMod Min Max Cast Select And Or Not".split()
)
"""Constructors that the text of a dimension may call where an operator would fold constants."""


def _is_open(value: object) -> bool:
    if isinstance(value, list | tuple):
        return any(_is_open(item) for item in value)
    return isinstance(value, str | StructInfoProxy)


def made_or_open(make: Callable[[], StructInfo], *parts: object) -> StructInfo | StructInfoProxy:
    """The struct info if its parts are known, else a proxy."""
    if current_symbols() is None and _is_open(parts):
        return StructInfoProxy(make)
    return make()


def _dimensions(values: Sequence[Dim]) -> list[PrimExpr | int]:
    for item in values:
        if isinstance(item, int) and item < 0:
            raise IRValueError(f"a dimension must not be negative, got {item} in {tuple(values)}")
    return [symbolic(item) if isinstance(item, str) else item for item in values]


def _dtype(dtype: TypeName | None) -> str | None:
    return dtype.dtype if isinstance(dtype, DTypeConstructor) else dtype


@at_user_line
def Tensor(  # noqa: N802 - written R.Tensor
    shape: Dims | str | None = None,
    dtype: TypeName | None = None,
    vdevice: VDevice | str | int | None = None,
    ndim: int = -1,
) -> StructInfo | StructInfoProxy:
    """Describe a tensor: ``R.Tensor((2, "n"), "float32")``, ``R.Tensor("int64", ndim=2)``.

    Args:
        shape: its extents; a str names a variable or is an expression of such (``"n + 1"``).
        dtype: the type of an element; any if left out.
        vdevice: the virtual device it lives on, or its text such as ``"llvm:0"``.
        ndim: the number of dimensions where the shape is not known; -1 for any.

    >>> from weft.script import relax as R
    >>> R.Tensor((2, 3), "float32")
    R.Tensor((2, 3), dtype="float32")
    """
    if isinstance(shape, str) and dtype is None:
        shape, dtype = None, shape
    if isinstance(vdevice, int) and ndim == -1:
        ndim = vdevice
        vdevice = None
    if shape is not None and not isinstance(shape, list | tuple | RelaxExpr):
        raise IRTypeError(f"R.Tensor: the shape must be a tuple or a list, got {shape!r}")

    def make() -> StructInfo:
        dims = _dimensions(shape) if isinstance(shape, list | tuple) else shape
        device = find_vdevice(vdevice) if isinstance(vdevice, str) else vdevice
        return TensorStructInfo(dims, _dtype(dtype), device, ndim)

    return made_or_open(make, shape if isinstance(shape, list | tuple) else ())


def find_vdevice(text: str) -> VDevice:
    """The module's virtual device named ``kind:index``, ``kind:index:scope`` or ``kind``."""
    kind, _, rest = text.partition(":")
    index_text, _, scope = rest.partition(":")
    infos: Sequence[GlobalInfo] = ()
    if IRBuilder.is_in_scope():
        infos = IRBuilder.current().global_infos.get("vdevice", ())
    index = int(index_text or 0)
    same_kind = [
        info for info in infos if isinstance(info, VDevice) and info.target.kind.name == kind
    ]
    if index >= len(same_kind) or scope not in ("", same_kind[index].memory_scope):
        raise IRValueError(f"the module has no virtual device {text!r}")
    return same_kind[index]


def Shape(  # noqa: N802 - written R.Shape
    values: Sequence[Dim] | None = None, ndim: int = -1
) -> StructInfo | StructInfoProxy:
    """Describe a shape as a value: ``R.Shape(("n", 4))``, or if unknown ``R.Shape(ndim=2)``."""

    def make() -> StructInfo:
        return ShapeStructInfo(None if values is None else _dimensions(values), ndim)

    return made_or_open(make, values)


def Prim(  # noqa: N802 - written R.Prim
    dtype: TypeName | None = None, value: Dim | None = None
) -> StructInfo | StructInfoProxy:
    """Describe a scalar: its type, ``R.Prim("int64")``, or its value, ``R.Prim(value="n")``."""

    def make() -> StructInfo:
        known = symbolic(value) if isinstance(value, str) else value
        if type(known) is int:
            known = tir_op.const(known, "int64")
        return PrimStructInfo(_dtype(dtype), known)

    return made_or_open(make, value)


def Object() -> ObjectStructInfo:  # noqa: N802 - written R.Object
    """Describe a value of which nothing is known."""
    return ObjectStructInfo()


def Tuple(  # noqa: N802 - written R.Tuple
    *fields: InfoLike | list[InfoLike] | tuple[InfoLike, ...],
) -> StructInfo | StructInfoProxy:
    """Describe a tuple by its fields: ``R.Tuple(R.Tensor((4,), "float32"), R.Object)``."""
    first = fields[0] if len(fields) == 1 else fields
    items: Sequence[Any] = first if isinstance(first, list | tuple) else [first]
    return made_or_open(lambda: TupleStructInfo([as_struct_info(item) for item in items]), items)


def Callable_(
    params: InfoLike | list[InfoLike] | tuple[InfoLike, ...] | None = None,
    ret: InfoLike | None = None,
    purity: bool | None = None,
    derive_func: object = None,
) -> StructInfo | StructInfoProxy:
    """Describe a function: ``R.Callable((R.Tensor((4,), "float32"),), R.Tensor((4,),
    "float32"))``.

    Args:
        params: what it takes; of unknown parameters if left out.
        ret: what it returns; anything if left out.
        purity: it has no effect but its result.
        derive_func: computes what it returns from a call, where ``params`` is left out.
    """
    if params is not None and not isinstance(params, list | tuple):
        params = [params]

    def make() -> StructInfo:
        result = ObjectStructInfo() if ret is None else as_struct_info(ret)
        if params is None:
            return FuncStructInfo.opaque_func(
                ret=result, derive_func=derive_func, purity=bool(purity)
            )
        infos = [as_struct_info(item) for item in params]
        return FuncStructInfo(infos, result, True if purity is None else purity)

    return made_or_open(make, params or (), ret)


def as_struct_info(value: InfoLike | None) -> StructInfo:
    """A struct info from one, from a proxy, or from ``R.Tensor`` and the like without a call."""
    if callable(value) and not isinstance(value, StructInfo):
        value = value()
    if isinstance(value, StructInfoProxy):
        value = value.as_struct_info()
    if value is None:
        return TupleStructInfo([])
    if not isinstance(value, StructInfo):
        raise IRTypeError(
            f"expected struct info such as R.Tensor((2, 3), 'float32'), got "
            f"{type(value).__name__}: {value!r}"
        )
    return value
