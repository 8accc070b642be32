"""Scalar expressions of TensorIR.

The constructors check types and raise errors; they neither fold constants nor promote types. The
functions of ``weft.tir.op``, which Python's operators call, do both.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeGuard

from weft.ir.expr import ExprOp, FloatImm, IntImm, PrimExpr, Range, as_prim_expr
from weft.ir.node import Array, Node, derived, field, node, with_slots
from weft.ir.node_code import register_conversion
from weft.ir.op import Op
from weft.ir.type import PrimType, Type
from weft.support.dtype import DataType
from weft.support.errors import IRTypeError
from weft.support.facade import module_getattr
from weft.support.span import Span


@node
class Var(PrimExpr):
    """A variable. ``dtype`` may be given as a name or as a Type (pointers)."""

    IS_IDENTIFIED: ClassVar[bool] = True

    name: str
    dtype: DataType
    type_annotation: Type = derived()

    def __init__(self, name: str, dtype: object = "int32", span: Span | None = None) -> None:
        if not isinstance(name, str):
            raise IRTypeError(f"{type(self).__name__}: expected a name, got {name!r}")
        self.name = name
        if isinstance(dtype, Type):
            self.type_annotation = dtype
            self.dtype = dtype.dtype if isinstance(dtype, PrimType) else DataType("handle")
        else:
            self.dtype = DataType(dtype)
            self.type_annotation = PrimType(self.dtype)
        self.span, self._cache, self._summary = span, None, 0

    def with_(self, **changes: Any) -> Var:
        """A new variable; renaming or retyping always makes another variable."""
        if all(getattr(self, name) is value for name, value in changes.items()):
            return self
        dtype = changes.get("dtype", changes.get("type_annotation", self.type_annotation))
        return type(self)(changes.get("name", self.name), dtype, self.span)

    @property
    def name_hint(self) -> str:
        """The name (TVM's other spelling)."""
        return self.name

    def copy_with_suffix(self, suffix: str) -> Var:
        """A new variable of that name and type."""
        return type(self)(self.name + suffix, self.type_annotation)


@node
class SizeVar(Var):
    """A variable known to be >= 0: an extent or a stride."""

    __init__ = Var.__init__


@with_slots
class BinaryExpr(PrimExpr):
    """An operation on two operands of the same type; the result has this type, too."""

    a: PrimExpr
    b: PrimExpr

    def _check_(self) -> None:
        if self.a.dtype is not self.b.dtype:
            raise IRTypeError(
                f"{type(self).__name__}: mismatched types, {self.a.dtype} and {self.b.dtype}"
            )
        self.dtype = self.a.dtype


@node
class Add(BinaryExpr):
    """a + b."""


@node
class Sub(BinaryExpr):
    """a - b."""


@node
class Mul(BinaryExpr):
    """a * b."""


@node
class Div(BinaryExpr):
    """a / b; integers truncate towards zero."""


@node
class Mod(BinaryExpr):
    """The remainder of truncated division."""


@node
class FloorDiv(BinaryExpr):
    """Division rounded towards minus infinity, as Python's ``//``."""


@node
class FloorMod(BinaryExpr):
    """The remainder of floor division, as Python's ``%``."""


@node
class Min(BinaryExpr):
    """The smaller; NaN if either is NaN."""


@node
class Max(BinaryExpr):
    """The larger; NaN if either is NaN."""


@with_slots
class CompareExpr(BinaryExpr):
    """A comparison; the result is bool with the operands' lanes."""

    def _check_(self) -> None:
        BinaryExpr._check_(self)
        self.dtype = _bool_like(self.a.dtype)

    def asobject(self) -> CompareExpr:
        """The node itself (TVM's spelling for its deferred ``==``)."""
        return self


def _bool_like(dtype: DataType) -> DataType:
    if dtype.lanes == 1 and not dtype.is_scalable:
        return DataType("bool")
    return DataType("bool").with_lanes(dtype.lanes, dtype.is_scalable)


@node
class EQ(CompareExpr):
    """a == b; as a Python truth value: equal constants or the same object."""

    def __bool__(self) -> bool:
        return is_same(self.a, self.b)


@node
class NE(CompareExpr):
    """a != b; as a Python truth value: not (a == b)."""

    def __bool__(self) -> bool:
        return not is_same(self.a, self.b)


def is_same(lhs: PrimExpr, rhs: PrimExpr) -> bool:
    """Whether both are the same object or equal constants."""
    if lhs is rhs:
        return True
    if isinstance(lhs, (IntImm, FloatImm)) and isinstance(rhs, (IntImm, FloatImm)):
        return lhs.value == rhs.value
    return False


@node
class LT(CompareExpr):
    """a < b."""


@node
class LE(CompareExpr):
    """a <= b."""


@node
class GT(CompareExpr):
    """a > b."""


@node
class GE(CompareExpr):
    """a >= b."""


OPPOSITE: Final[dict[type[PrimExpr], type[CompareExpr]]] = {
    LT: GE, GE: LT, LE: GT, GT: LE, EQ: NE, NE: EQ,
}  # fmt: skip
"""The comparison that holds exactly where another does not."""
SWAPPED: Final[dict[type[PrimExpr], type[CompareExpr]]] = {
    LT: GT, GT: LT, LE: GE, GE: LE, EQ: EQ, NE: NE,
}  # fmt: skip
"""The comparison that says the same of the operands in the other order."""


@with_slots
class LogicalExpr(BinaryExpr):
    """``and`` or ``or`` of booleans; the right side is evaluated only where needed."""

    def _check_(self) -> None:
        if not (self.a.dtype.is_bool and self.b.dtype.is_bool):
            raise IRTypeError(
                f"{type(self).__name__}: expected bool operands, got {self.a.dtype} and "
                f"{self.b.dtype}"
            )
        BinaryExpr._check_(self)


@node
class And(LogicalExpr):
    """a and b."""


@node
class Or(LogicalExpr):
    """a or b."""


@node
class Not(PrimExpr):
    """not a."""

    a: PrimExpr

    def _check_(self) -> None:
        if not self.a.dtype.is_bool:
            raise IRTypeError(f"Not: expected a bool operand, got {self.a.dtype}")
        self.dtype = self.a.dtype


def check_chooses(name: str, condition: PrimExpr, value: PrimExpr) -> None:
    """Raise IRTypeError if a vector condition has another number of lanes than the values."""
    lanes, wanted = condition.dtype, value.dtype
    if lanes.is_scalable or wanted.is_scalable or lanes.lanes in (1, wanted.lanes):
        return
    raise IRTypeError(
        f"{name}: expected one condition, or one for each of the {wanted.lanes} lanes of "
        f"{wanted} values, got {lanes}; broadcast the values, as T.Broadcast(x, {lanes.lanes})"
    )


@node
class Select(PrimExpr):
    """``true_value`` where ``condition``, else ``false_value``; both may be evaluated."""

    condition: PrimExpr
    true_value: PrimExpr
    false_value: PrimExpr

    def _check_(self) -> None:
        if not self.condition.dtype.is_bool:
            raise IRTypeError(f"Select: expected a bool condition, got {self.condition.dtype}")
        if self.true_value.dtype is not self.false_value.dtype:
            raise IRTypeError(
                f"Select: mismatched types, {self.true_value.dtype} and {self.false_value.dtype}"
            )
        check_chooses("Select", self.condition, self.true_value)
        self.dtype = self.true_value.dtype


@node
class Cast(PrimExpr):
    """``value`` converted to ``dtype`` (float to int saturates, NaN becomes 0)."""

    dtype: DataType
    value: PrimExpr

    def _check_(self) -> None:
        self.dtype = DataType(self.dtype)
        if self.dtype.lanes != self.value.dtype.lanes:
            raise IRTypeError(
                f"Cast: the lanes of {self.value.dtype} and {self.dtype} must be the same"
            )


@node
class Ramp(PrimExpr):
    """The vector base, base + stride, ... of ``lanes`` elements."""

    base: PrimExpr
    stride: PrimExpr
    lanes: PrimExpr

    def _check_(self) -> None:
        if isinstance(self.stride, IntImm) and self.base.dtype.is_integral:
            if self.stride.dtype is not self.base.dtype:
                self.stride = IntImm(self.base.dtype, self.stride.value)
        if self.base.dtype is not self.stride.dtype or self.base.dtype.lanes != 1:
            raise IRTypeError(
                f"Ramp: base and stride must be scalars of one type, got {self.base.dtype} and "
                f"{self.stride.dtype}"
            )
        self.dtype = _vector_type(self.base.dtype, self.lanes)


@node
class Broadcast(PrimExpr):
    """The vector of ``lanes`` copies of ``value``."""

    value: PrimExpr
    lanes: PrimExpr

    def _check_(self) -> None:
        if self.value.dtype.lanes != 1:
            raise IRTypeError(f"Broadcast: expected a scalar, got {self.value.dtype}")
        self.dtype = _vector_type(self.value.dtype, self.lanes)


def _vector_type(element: DataType, lanes: PrimExpr) -> DataType:
    if isinstance(lanes, IntImm):
        if lanes.value < 1:
            raise IRTypeError(f"the number of lanes must be at least 1, got {lanes.value}")
        return element.with_lanes(lanes.value)
    if isinstance(lanes, Mul):
        for factor, other in ((lanes.a, lanes.b), (lanes.b, lanes.a)):
            if isinstance(factor, IntImm) and is_vscale(other):
                return element.with_lanes(factor.value, scalable=True)
    raise IRTypeError("the number of lanes must be a constant or a constant times T.vscale()")


def is_call(expr: object, *names: str) -> TypeGuard[Call]:
    """Whether ``expr`` calls one of the intrinsics ``T.<name>``."""
    if not isinstance(expr, Call) or not isinstance(expr.op, Op):
        return False
    return expr.op.name.removeprefix("tir.") in names


def is_vscale(expr: PrimExpr) -> bool:
    """Whether ``expr`` is a call of ``T.vscale()``."""
    return is_call(expr, "vscale")


@node
class Shuffle(PrimExpr):
    """Lanes picked by constant ``indices`` from the concatenation of ``vectors``."""

    vectors: Array[PrimExpr]
    indices: Array[PrimExpr]

    def _check_(self) -> None:
        if not self.vectors or not self.indices:
            raise IRTypeError("Shuffle: expected at least one vector and one index")
        element = self.vectors[0].dtype.element
        self.dtype = element if len(self.indices) == 1 else element.with_lanes(len(self.indices))


@node
class Let(PrimExpr):
    """``body`` with ``var`` bound to ``value``."""

    var: Var = field(defines=True)
    value: PrimExpr
    body: PrimExpr
    STRUCTURE = (("value", False), ("var", True), ("body", False))

    def _check_(self) -> None:
        self.dtype = self.body.dtype


@node
class Call(PrimExpr):
    """A call of an intrinsic (``Op``) or of a function of the module (``GlobalVar``)."""

    dtype: DataType
    op: Any = field(stored="RelaxExpr")
    args: Array[PrimExpr] = field(stored="Array[PrimExpr | Node]")

    def __init__(
        self, dtype: str, op: Any, args: Iterable[object], span: Span | None = None
    ) -> None:
        if isinstance(op, str):
            op = Op.get(op if op.startswith("tir.") else f"tir.{op}")
        self.dtype, self.op = DataType(dtype), op
        self.args = Array([_as_argument(arg) for arg in args])
        self.span, self._cache, self._summary = span, None, 0


def _as_argument(value: Any) -> Any:
    """An argument of a call: an expression, a whole Buffer, or what converts to an expression."""
    if isinstance(value, PrimExpr):
        return value
    if isinstance(value, Node) and not hasattr(value, "as_prim_expr"):
        return value
    return as_prim_expr(value)


@node
class ProducerLoad(PrimExpr):
    """The element of a te.Tensor at ``indices``; only in tensor expressions."""

    producer: Any = field(visit=False, stored="Node")
    indices: Array[PrimExpr]

    def _check_(self) -> None:
        self.dtype = DataType(self.producer.dtype)


class IterType(IntEnum):
    """How an iteration variable runs; the numbers are TVM's."""

    DataPar = 0
    ThreadIndex = 1
    CommReduce = 2
    Ordered = 3
    Opaque = 4
    Unrolled = 5
    Vectorized = 6
    Parallelized = 7
    Tensorized = 8


@node
class IterVar(ExprOp, Node):
    """A variable with its range and the way it is iterated; in an expression it is its ``var``."""

    dom: Range | None
    var: Var = field(defines=True)
    iter_type: IterType
    thread_tag: str = ""

    DataPar = IterType.DataPar
    ThreadIndex = IterType.ThreadIndex
    CommReduce = IterType.CommReduce
    Ordered = IterType.Ordered
    Opaque = IterType.Opaque
    Unrolled = IterType.Unrolled
    Vectorized = IterType.Vectorized
    Parallelized = IterType.Parallelized
    Tensorized = IterType.Tensorized

    def _check_(self) -> None:
        if isinstance(self.var, str):
            dtype = self.dom.extent.dtype if self.dom is not None else "int32"
            self.var = Var(self.var, dtype)
        self.iter_type = IterType(self.iter_type)

    @property
    def dtype(self) -> DataType:
        """The type of the variable."""
        return self.var.dtype

    @property
    def accumulates(self) -> bool:
        """Whether the iterations along this axis accumulate a result that ``init`` starts.

        Those of a reduction axis may run in any order, those of an ordered axis only in sequence.
        """
        return self.iter_type in (IterType.CommReduce, IterType.Ordered)

    def as_prim_expr(self) -> PrimExpr:
        """The variable."""
        return self.var


@node
class CommReducer(Node):
    """A commutative reduction: ``result`` over ``lhs`` and ``rhs``, and its identities."""

    lhs: Array[Var] = field(defines=True)
    rhs: Array[Var] = field(defines=True)
    result: Array[PrimExpr]
    identity_element: Array[PrimExpr]


@node
class Reduce(PrimExpr):
    """Component ``value_index`` of a reduction of ``source`` over ``axis``; only in TE."""

    combiner: CommReducer
    source: Array[PrimExpr]
    axis: Array[IterVar]
    condition: PrimExpr
    value_index: int
    init: Array[PrimExpr] = field(default=())

    def _check_(self) -> None:
        self.dtype = self.source[self.value_index].dtype


register_conversion("Var", Var, lambda value: getattr(value, "var", value))


if not TYPE_CHECKING:  # TVM has BufferLoad in this module; here it is beside Buffer
    __getattr__, _ = module_getattr(__name__, {"BufferLoad": "weft.tir.buffer"})
