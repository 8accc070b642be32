"""Parameters of the graph function: names, shapes with symbols, data types.

A dimension that the model names (``dim_param``) is one symbol wherever the name stands; names such
as ``n+1`` or ``2*n`` are expressions of symbols, if ``n`` is the size of an axis itself. A
dimension of which the model says nothing is a symbol of its own.
"""

from __future__ import annotations

import ast
import itertools
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from weft.ir.expr import PrimExpr
from weft.relax.frontend.onnx.element_types import STORAGE, STRING, element_of, type_name
from weft.relax.frontend.onnx.errors import OnnxModelError
from weft.relax.frontend.onnx.protos import TensorTypeProto, ValueInfoProto
from weft.relax.frontend.onnx.value import Dim, as_prim
from weft.support.free_name import free_name
from weft.tir import op as tir
from weft.tir.expr import SizeVar

GivenShape = Sequence[Dim | str]
"""A shape as the caller gives it: numbers, expressions and names of symbols."""
_OPERATORS: Final[dict[type, Callable[[PrimExpr, PrimExpr], PrimExpr]]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
    ast.FloorDiv: tir.floordiv, ast.Div: tir.floordiv,
}  # fmt: skip


class Symbols:
    """The symbols of a model's dimensions by name.

    ``alone`` are the names that are an extent by themselves somewhere (``alone_in``). What is
    written as an expression is one only if its names are among them: nothing else would tell their
    values, and ``batch-size`` is the name of one size.
    """

    def __init__(self, alone: Iterable[str] = ()) -> None:
        self.by_name: dict[str, SizeVar] = {}
        self.alone = frozenset(alone)
        self._taken: set[str] = set()

    def named(self, name: str) -> Dim:
        """The symbol of a name; expressions of names are computed."""
        text = name.strip()
        tree = _parsed(text)
        size = None if tree is None else self._expression(tree)
        return self._symbol(text) if size is None else size

    def _symbol(self, name: str) -> SizeVar:
        if name not in self.by_name:
            hint = re.sub(r"\W", "_", name)
            hint = free = hint if hint.isidentifier() else f"size_{hint}"
            for count in itertools.count(1):
                if free not in self._taken:
                    break
                free = f"{hint}_{count}"
            self._taken.add(free)
            self.by_name[name] = SizeVar(free, "int64")
        return self.by_name[name]

    def _expression(self, tree: ast.expr) -> Dim | None:
        if isinstance(tree, ast.Name):
            return self._symbol(tree.id) if tree.id in self.alone else None
        if isinstance(tree, ast.Constant) and type(tree.value) is int:
            return tree.value
        if isinstance(tree, ast.BinOp) and type(tree.op) in _OPERATORS:
            lhs, rhs = self._expression(tree.left), self._expression(tree.right)
            if lhs is None or rhs is None:
                return None
            return _OPERATORS[type(tree.op)](as_prim(lhs), as_prim(rhs))
        return None


def _parsed(text: str) -> ast.expr | None:
    try:
        return ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError):
        return None


def alone_in(infos: Iterable[ValueInfoProto], shapes: Mapping[str, GivenShape]) -> frozenset[str]:
    """The names that are extents of inputs by themselves, in the model's or the caller's shapes."""
    names: set[str] = set()
    for info in infos:
        dims = [dim.dim_param for dim in tensor_type(info).shape.dim]
        names.update(dim.strip() for dim in shapes.get(info.name, dims) if isinstance(dim, str))
    return frozenset(name for name in names if name.isidentifier())


class Names:
    """Names of parameters: each is used once, and starts as an identifier does, as in TVM."""

    def __init__(self, sanitize: bool) -> None:
        self.sanitize, self.taken = sanitize, set[str]()

    def fresh(self, name: str) -> str:
        """The name itself where it may stay, else one near it that is free."""
        if not self.sanitize:
            return name
        hint = name.replace(".", "_") or "empty_"
        if not hint[0].isalpha() and hint[0] != "_":
            hint = f"input_{hint}"
        return free_name(hint, self.taken)


def is_optional_tensor(info: ValueInfoProto) -> bool:
    """Whether an input is a tensor or absent."""
    optional = info.type.optional_type
    return info.type.HasField("optional_type") and optional.elem_type.HasField("tensor_type")


def is_tensor_sequence(info: ValueInfoProto) -> bool:
    """Whether an input is a sequence of tensors."""
    sequence = info.type.sequence_type
    return info.type.HasField("sequence_type") and sequence.elem_type.HasField("tensor_type")


def item_type(info: ValueInfoProto) -> TensorTypeProto:
    """The type of the items of an input that is a sequence of tensors."""
    return info.type.sequence_type.elem_type.tensor_type


def item_shape(info: ValueInfoProto, shape: GivenShape | None) -> list[int | None]:
    """The shape of the items of a sequence: the caller's where given, else the model's.

    None stands for an extent in which they may differ: names say nothing of single items.
    """
    declared = item_type(info)
    if shape is not None:
        return [dim if isinstance(dim, int) else None for dim in shape]
    if not declared.HasField("shape"):
        raise OnnxModelError(
            f"input {info.name!r}: the model does not say how many dimensions the items of the "
            f"sequence have; give an example of one item, weft.compile(model, {{{info.name!r}: "
            f"[array]}}), or their shape in shape_dict={{{info.name!r}: [...]}}"
        )
    dims = declared.shape.dim
    return [dim.dim_value if dim.HasField("dim_value") else None for dim in dims]


def tensor_type(info: ValueInfoProto) -> TensorTypeProto:
    """The type of an input's tensor, and of one that may be absent."""
    kind = info.type.optional_type.elem_type if is_optional_tensor(info) else info.type
    return kind.tensor_type


def declared_shape(info: ValueInfoProto, symbols: Symbols) -> list[Dim] | None:
    """The shape that the model gives an input; None where it gives no rank."""
    tensor = tensor_type(info)
    if not tensor.HasField("shape"):
        return None
    dims: list[Dim] = []
    for axis, dim in enumerate(tensor.shape.dim):
        kind = dim.WhichOneof("value")
        if kind == "dim_value" and dim.dim_value >= 0:
            dims.append(dim.dim_value)
        elif kind == "dim_param" and dim.dim_param not in ("", "?"):
            dims.append(symbols.named(dim.dim_param))
        else:
            dims.append(SizeVar(f"{info.name}_{axis}", "int64"))
    return dims


def input_shape(info: ValueInfoProto, shape: GivenShape | None, symbols: Symbols) -> list[Dim]:
    """The shape of an input: the caller's where given, else the model's.

    Raises OnnxModelError if both are there and contradict, or none is.
    """
    declared = declared_shape(info, symbols)
    if shape is None:
        if declared is None:
            raise OnnxModelError(
                f"input {info.name!r}: the model does not say how many dimensions it has; give its "
                f"shape in shape_dict={{{info.name!r}: [...]}}"
            )
        return declared
    dims = [symbols.named(dim) if isinstance(dim, str) else dim for dim in shape]
    if declared is not None and (
        len(dims) != len(declared)
        or any(
            isinstance(a, int) and isinstance(b, int) and a != b
            for a, b in zip(dims, declared, strict=True)
        )
    ):
        raise OnnxModelError(
            f"input {info.name!r}: shape_dict says {_text(dims)}, the model {_text(declared)}"
        )
    return dims


def _text(dims: Sequence[Dim]) -> str:
    return f"({', '.join(str(dim) for dim in dims)})"


def input_dtype(info: ValueInfoProto, dtype_dict: str | Mapping[str, str]) -> tuple[str, int]:
    """Data type and element type of an input; ``dtype_dict`` overrides the model by name.

    The data type of text is "": no tensor holds it.
    """
    kind = item_type(info) if is_tensor_sequence(info) else tensor_type(info)
    elem = kind.elem_type
    if isinstance(dtype_dict, Mapping):
        if info.name in dtype_dict:
            dtype = str(dtype_dict[info.name])
            return dtype, element_of(dtype)
    elif not elem:
        return dtype_dict, element_of(dtype_dict)
    if elem not in STORAGE and elem != STRING:
        raise OnnxModelError(
            f"input {info.name!r}: expected a tensor of numbers, booleans or text, got one of "
            f"{type_name(elem)}"
        )
    return STORAGE.get(elem, ""), elem
