"""Expressions of the graph, bindings, blocks and functions.

``struct_info`` is a derived field. The constructor computes it where it follows from the operands
alone; for calls, the block builder's ``normalize`` infers it. Structural equality ignores it,
except for variables, where it is their annotation.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from weft.ir.attrs import Attrs
from weft.ir.expr import GlobalVar, PrimExpr, RelaxExpr, as_prim_expr
from weft.ir.function import BaseFunc
from weft.ir.node import Array, Node, field, node, with_slots
from weft.ir.node_code import register_conversion
from weft.ir.op import Op
from weft.relax.ir.constant_data import constant_data
from weft.relax.struct_info import (
    FuncStructInfo,
    ObjectStructInfo,
    PrimStructInfo,
    ShapeStructInfo,
    StructInfo,
    TensorStructInfo,
    TupleStructInfo,
    as_dimension,
    field_info,
)
from weft.runtime.ndarray import NDArray, array
from weft.support import slots
from weft.support.dtype import DataType
from weft.support.errors import IRTypeError, IRValueError, wrong_type
from weft.support.operator_methods import operator, operators
from weft.support.span import Span
from weft.tir import array_json  # noqa: F401 - registers how JSON stores an NDArray
from weft.tir.expr import Var as TirVar

Callee = Any
"""The callee of a call: an Op, a GlobalVar, an ExternFunc or a variable that holds a closure."""
AttrsLike = Attrs | Mapping[str, object] | None
"""Attributes of a call or a function; None means no attributes."""


def _operator(name: str, *args: RelaxLike) -> Expr:
    result: Expr = getattr(slots.relax_operators.get(), name)(*args)
    return result


@with_slots
class Expr(RelaxExpr):
    """The base of graph expressions; Python's operators build operator calls."""

    _extra_slots_: ClassVar[tuple[str, ...]] = ()

    __add__, __radd__ = operators(_operator, "add")
    __sub__, __rsub__ = operators(_operator, "subtract")
    __mul__, __rmul__ = operators(_operator, "multiply")
    __truediv__, __rtruediv__ = operators(_operator, "divide")
    __floordiv__ = operator(_operator, "floor_divide")
    __pow__ = operator(_operator, "power")
    __mod__ = operator(_operator, "mod")
    __matmul__ = operator(_operator, "matmul")

    def __neg__(self) -> Expr:
        return _operator("negative", self)

    __lt__ = operator(_operator, "less")
    __le__ = operator(_operator, "less_equal")
    __gt__ = operator(_operator, "greater")
    __ge__ = operator(_operator, "greater_equal")

    def __call__(self, *args: RelaxLike, attrs: AttrsLike = None) -> Call:
        """A call of this value as a function."""
        return Call(self, args, attrs)

    def __getitem__(self, index: int) -> Expr:
        """The field of a tuple."""
        try:
            return TupleGetItem(self, index)
        except IRValueError as error:
            raise IndexError(str(error)) from error

    def __iter__(self) -> Iterator[Expr]:
        """The fields of a tuple. Without this method Python would call __getitem__ endlessly."""
        info = getattr(self, "struct_info", None)
        fields = getattr(info, "fields", None)
        if fields is None:
            raise IRTypeError(
                "expected a tuple of known length to go through, got a "
                f"{type(self).__name__} with struct_info {info}"
            )
        return iter([self[index] for index in range(len(fields))])

    def astype(self, dtype: str) -> Expr:
        """The tensor converted to ``dtype``."""
        return _operator("astype", self, dtype)


RelaxLike = RelaxExpr | PrimExpr | int | float | str | NDArray | np.ndarray | Sequence["RelaxLike"]
"""What ``as_relax_expr`` converts to a graph expression."""


def as_relax_expr(value: RelaxLike) -> RelaxExpr:
    """Convert a tuple, a number (to a PrimValue), a str or an array to a graph expression."""
    if isinstance(value, RelaxExpr):
        return value
    if isinstance(value, tuple | list):
        return Tuple([as_relax_expr(item) for item in value])
    if isinstance(value, float):
        return PrimValue(slots.operators.get().const(value, "float64"))
    if isinstance(value, PrimExpr | int):
        return PrimValue(value)
    if isinstance(value, str):
        return StringImm(value)
    if isinstance(value, NDArray | np.ndarray):
        return const(value)
    hint = "; give its .expr" if hasattr(type(value), "expr") else ""  # what converters of ONNX get
    raise IRTypeError(f"expected a graph expression, got {type(value).__name__}: {value!r}{hint}")


register_conversion("Expr", RelaxExpr, as_relax_expr)


@node
class Var(Expr):
    """A variable. ``struct_info`` is its annotation; None until it is bound."""

    KIND = "RelaxVar"
    name_hint: str
    struct_info: Any = field(default=None, visit=False, compare=False, stored="StructInfo | None")

    def _check_(self) -> None:
        if not isinstance(self.name_hint, str):
            raise wrong_type("Var: expected a name", self.name_hint)
        is_old = isinstance(self.span, StructInfo)  # Var(name, None, type), as in 2022
        if is_old or not isinstance(self.struct_info, StructInfo | None):
            given = (self.name_hint, self.struct_info, self.span)
            adapted = slots.legacy.get().adapt("relax.Var", given, {})
            if adapted is None:
                raise IRTypeError(
                    f"Var {self.name_hint}: expected struct info such as "
                    f"TensorStructInfo((2, 3), 'float32'), got {self.struct_info!r}"
                )
            (_, self.struct_info), self.span = adapted[0], None

    @property
    def vid(self) -> Var:
        """The identity of the variable (0.20's ``Id``): the variable itself."""
        return self


@node
class DataflowVar(Var):
    """A variable that only its dataflow block sees."""

    KIND = "DataflowVar"


@node
class Call(Expr):
    """A call of an operator, a GlobalVar, an ExternFunc or a closure.

    ``sinfo_args`` holds the result's struct info where no rule infers it: in ``call_tir`` and in
    calls of packed functions.
    """

    KIND = "RelaxCall"
    op: Callee = field(stored="RelaxExpr")
    args: Array[Expr]
    attrs: Attrs = field(default=None)
    sinfo_args: Array[StructInfo] = field(default=())

    def __init__(
        self,
        op: RelaxExpr | str,
        args: Any,
        attrs: Any = None,
        sinfo_args: Any = None,
        span: Span | None = None,
    ) -> None:
        self.op = Op.get(op) if isinstance(op, str) else op
        if not isinstance(args, Iterable):
            raise wrong_type("Call: expected a list of arguments", args)
        operands: list[Any] = [a if isinstance(a, RelaxExpr) else as_relax_expr(a) for a in args]
        self.args = Array(operands)
        self.attrs = attrs if isinstance(attrs, Attrs) else Attrs(attrs or {})
        self.sinfo_args = Array(sinfo_args or ())
        self.struct_info, self.span, self._cache, self._summary = None, span, None, 0


@node
class Tuple(Expr):
    """A tuple of values."""

    fields: Array[Expr]

    def _check_(self) -> None:
        infos = [item.struct_info for item in self.fields]
        complete = all(info is not None for info in infos)
        self.struct_info = TupleStructInfo(infos) if complete else None

    def __getitem__(self, index: int) -> Expr:
        return self.fields[index]

    def __iter__(self) -> Iterator[Expr]:
        return iter(self.fields)

    def __len__(self) -> int:
        return len(self.fields)


@node
class TupleGetItem(Expr):
    """Field ``index`` of a tuple."""

    tuple_value: Expr
    index: int

    def _check_(self) -> None:
        if not isinstance(self.index, int | np.integer):
            raise IRTypeError(f"expected the number of a field, got {self.index!r}")
        self.struct_info = field_info(self.tuple_value.struct_info, self.index)


@node
class ShapeExpr(Expr):
    """A shape: int64 dimensions."""

    values: Array[PrimExpr]

    def _check_(self) -> None:
        self.values = Array([as_dimension(value) for value in self.values])
        self.struct_info = ShapeStructInfo(self.values)

    def __getitem__(self, index: Any) -> Any:
        return self.values[index]

    def __len__(self) -> int:
        return len(self.values)

    def __iter__(self) -> Any:
        return iter(self.values)


@node
class Constant(Expr):
    """A constant tensor; ``data`` is an NDArray.

    ``struct_info`` follows from it, unless it is given: a distributed constant has a
    DTensorStructInfo.
    """

    data: NDArray = field(visit=False, stored="NDArray")
    struct_info: Any = field(default=None, visit=False, stored="StructInfo")

    def __init__(
        self, data: object, struct_info: StructInfo | None = None, span: Span | None = None
    ) -> None:
        self.data = data if isinstance(data, NDArray) else array(data)
        shape, dtype = tuple(self.data.shape), self.data.dtype
        self.struct_info = struct_info or TensorStructInfo(shape, dtype)
        self.span, self._cache, self._summary = span, None, 0


@node
class PrimValue(Expr):
    """A scalar as a graph value; Python ints are int64, floats float32.

    (A Python float among an operator's arguments becomes float64 instead, as in TVM 0.20.)
    """

    value: PrimExpr

    def __init__(self, value: Any, span: Span | None = None) -> None:
        if isinstance(value, int) and not isinstance(value, bool):
            value = slots.operators.get().const(value, "int64")
        elif isinstance(value, float):
            value = slots.operators.get().const(value, "float32")
        self.value = as_prim_expr(value)
        self.struct_info = PrimStructInfo(value=self.value)
        self.span, self._cache, self._summary = span, None, 0


@node
class StringImm(Expr):
    """A string as a graph value."""

    KIND = "RelaxStringImm"
    value: str

    def _check_(self) -> None:
        self.struct_info = ObjectStructInfo()


@node
class DataTypeImm(Expr):
    """A data type as a graph value."""

    value: DataType

    def _check_(self) -> None:
        self.value = DataType(self.value)
        self.struct_info = ObjectStructInfo()


@node
class ExternFunc(BaseFunc, Expr):
    """A function registered at run time under ``global_symbol``."""

    global_symbol: str

    def __init__(
        self, global_symbol: str, struct_info: StructInfo | None = None, span: Span | None = None
    ) -> None:
        self.global_symbol = str(global_symbol)
        if not self.global_symbol or "\0" in self.global_symbol:
            raise IRValueError(
                "ExternFunc: expected the name of a registered function, not empty and without "
                f"NUL characters, got {self.global_symbol!r:.80}"
            )
        self.attrs, self.provenance = Attrs(), None
        self.struct_info = struct_info or FuncStructInfo.opaque_func()
        self.span, self._cache, self._summary = span, None, 0


@with_slots
class Binding(Node):
    """The base of bindings: ``var`` gets a value."""

    if TYPE_CHECKING:
        var: Var
        value: Any


@node
class VarBinding(Binding):
    """``var = value``."""

    var: Var = field(defines=True)
    value: Expr

    @property
    def STRUCTURE(  # type: ignore[override]  # noqa: N802 - as the tables of other nodes,
        self,  # but it depends on the value
    ) -> tuple[tuple[str, bool], ...]:
        """Value before variable; but a local function may call itself: its variable is first."""
        if isinstance(self.value, Function):
            return (("var", True), ("value", False))
        return (("value", False), ("var", True))


@node
class MatchCast(Binding):
    """``var = value`` after checking that it matches ``struct_info``, whose symbols it defines."""

    var: Var = field(defines=True)
    value: Expr
    struct_info: StructInfo = field(defines=True)
    STRUCTURE = (("value", False), ("struct_info", True), ("var", True))


@node
class BindingBlock(Node):
    """Bindings in order."""

    bindings: Array[Binding]


@node
class DataflowBlock(BindingBlock):
    """Bindings without side effects."""


@node
class SeqExpr(Expr):
    """Blocks of bindings, then the value ``body``."""

    blocks: Array[BindingBlock]
    body: Expr

    def _check_(self) -> None:
        self.struct_info = getattr(self.body, "struct_info", None)


@node
class If(Expr):
    """``true_branch`` if the bool scalar ``cond`` holds, else ``false_branch``."""

    cond: Expr
    true_branch: Expr
    false_branch: Expr

    def _check_(self) -> None:
        self.struct_info = None


@node
class Function(BaseFunc, Expr):
    """A graph function.

    Where ``ret_struct_info`` is None, the struct info of the body is taken; it is also taken where
    it is more precise, for example where it knows the shape and ``ret_struct_info`` only the rank.
    """

    params: Array[Var] = field(defines=True)
    body: SeqExpr
    ret_struct_info: StructInfo | None = None
    is_pure: bool = True
    attrs: Attrs = field(default=None)

    STRUCTURE = (
        ("params", True), ("attrs", False), ("is_pure", False), ("body", False),
        ("ret_struct_info", False),
    )  # fmt: skip

    def __init__(
        self,
        params: Sequence[Var],
        body: RelaxExpr,
        ret_struct_info: StructInfo | None = None,
        is_pure: bool = True,
        attrs: AttrsLike = None,
        span: Span | None = None,
    ) -> None:
        if not isinstance(body, SeqExpr):
            body = SeqExpr([], body)
        for param in params if isinstance(params, Iterable) else [params]:
            if not isinstance(param, Var) or not isinstance(params, list | tuple):
                raise IRTypeError(f"Function: expected a list of relax.Var, got {params!r:.80}")
        self.params, self.body, self.is_pure = Array(params), body, bool(is_pure)
        if ret_struct_info is None:
            ret_struct_info = body.struct_info
        elif body.struct_info is not None and body.struct_info is not ret_struct_info:
            infos = [param.struct_info for param in self.params]
            ret_struct_info = slots.relax_operators.get().result_info(
                infos, ret_struct_info, body.struct_info
            )
        self.ret_struct_info = ret_struct_info
        self.attrs = attrs if isinstance(attrs, Attrs) else Attrs(attrs or {})
        self.provenance = None
        self.struct_info = FuncStructInfo(
            [param.struct_info or ObjectStructInfo() for param in self.params],
            ret_struct_info or ObjectStructInfo(),
            self.is_pure,
        )
        self.span, self._cache, self._summary = span, None, 0

    @staticmethod
    def create_empty(
        params: Sequence[Var],
        ret_struct_info: StructInfo,
        is_pure: bool = True,
        attrs: AttrsLike = None,
        span: Span | None = None,
    ) -> Function:
        """A declaration without a body, as the parser needs for functions that call each other."""
        return Function(params, Tuple(()), ret_struct_info, is_pure, attrs, span)

    def bind_params(self, binding_map: Mapping[str | Var, object]) -> Function:
        """The function with parameters (by name or Var) bound to constants."""
        bound: Function = slots.relax_operators.get().bind_params(self, binding_map)
        return bound

    def bind_symbolic_vars(self, binding_map: Mapping[str | TirVar, PrimExpr | int]) -> Function:
        """The function with symbolic variables (by name or Var) bound to expressions."""
        bound: Function = slots.relax_operators.get().bind_symbolic_vars(self, binding_map)
        return bound

    def inline_functions(self, function_map: Mapping[str | GlobalVar, Function]) -> Self:
        """The function with calls of the given functions inlined."""
        inlined: Self = slots.relax_operators.get().inline_functions(self, function_map)
        return inlined


def const(value: object, dtype: str | DataType | StructInfo | None = None) -> Constant:
    """A constant from a number, a list, a numpy array, a torch tensor or an NDArray.

    Python floats are float32, ints int32 and bools bool, unless ``dtype`` (a name or a
    TensorStructInfo) says otherwise.
    """
    return Constant(*constant_data(value, dtype))


def extern(name: str, struct_info: StructInfo | None = None) -> ExternFunc:
    """A reference to a function registered at run time."""
    return ExternFunc(name, struct_info)


def get_shape_of(expr: Expr) -> RelaxExpr:
    """The shape of a tensor: its ShapeExpr where known, else a call of shape_of."""
    info = expr.struct_info
    if isinstance(info, TensorStructInfo) and info.shape is not None:
        return info.shape
    return _operator("shape_of", expr)
