"""Docs of TensorIR's expressions, types and constants.

Parsing the text must give exactly the same node. So an operator or function is printed only if
calling it with these operands gives this node again (without folding or promotion); otherwise the
constructor is printed, ``T.Add(a, b)`` or ``T.Call("float32", "tir.exp", [x])``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from weft.ir.expr import FloatImm, GlobalVar, IntImm, PrimExpr, Range, StringImm
from weft.ir.node import Node
from weft.ir.op import Op
from weft.ir.type import FuncType, PointerType, PrimType, TupleType
from weft.script.printer.doc import (
    AssignDoc,
    AttrAccessDoc,
    CallDoc,
    DictDoc,
    Doc,
    ExprDoc,
    IdDoc,
    IndexDoc,
    LambdaDoc,
    ListDoc,
    LiteralDoc,
    OperationDoc,
    OperationKind,
    SliceDoc,
    TupleDoc,
)
from weft.script.printer.docsifier import Docsifier, Frame, prints
from weft.support.errors import TVMError
from weft.tir import expr as nodes
from weft.tir import op as operators
from weft.tir.buffer import BufferLoad
from weft.tir.device_intrinsic import CONSTRUCTORS
from weft.tir.expr import BinaryExpr, IterType, Ramp, SizeVar, Var
from weft.tir.index_map import IndexMap

Binary = Callable[[PrimExpr, PrimExpr], PrimExpr]
"""An operator of two expressions."""


def same(lhs: object, rhs: object) -> bool:
    """Whether two arguments are the same object or constants of one type and value."""
    if lhs is rhs:
        return True
    constant = IntImm | FloatImm | StringImm
    if type(lhs) is not type(rhs) or not (isinstance(lhs, constant) and isinstance(rhs, constant)):
        return False
    return lhs.dtype is rhs.dtype and lhs.value == rhs.value


# ---- constants


@prints("IntImm")
def _int_imm(node: IntImm, d: Docsifier) -> Doc:
    dtype = node.dtype
    if dtype == d.config.int_dtype and not d.relax_mode:
        return LiteralDoc(node.value)
    if dtype.is_bool:
        return CallDoc(d.tir("bool"), (LiteralDoc(bool(node.value)),))
    return CallDoc(d.tir(dtype), (LiteralDoc(node.value),))


@prints("FloatImm")
def _float_imm(node: FloatImm, d: Docsifier) -> Doc:
    if node.dtype == d.config.float_dtype:
        return LiteralDoc(node.value)
    return CallDoc(d.tir(node.dtype), (LiteralDoc(node.value),))


@prints("StringImm")
def _string_imm(node: StringImm, _d: Docsifier) -> Doc:
    return LiteralDoc(node.value)


# ---- variables


@prints("Var")
def _var(node: Var, d: Docsifier) -> Doc:
    doc = d.reference(node)
    if doc is not None:
        return doc
    if d.relax_mode:
        return _relax_symbol(node, d)
    frame = d.function_frame("tir")
    declare_var(node, d, frame)
    doc = d.reference(node)
    assert doc is not None  # declare_var has just named it
    return doc


def declare_var(node: Var, d: Docsifier, frame: Frame) -> IdDoc:
    """Add ``name = T.int32()`` to a frame and name the variable there."""
    from_type = var_creation(node, d)
    lhs = d.define(node, node.name or "v", frame)
    frame.stmts.append(AssignDoc(lhs, from_type))
    return lhs


def var_creation(node: Var, d: Docsifier) -> ExprDoc:
    """``T.int32()``, ``T.int32(is_size_var=True)`` or ``T.handle("float32", "global")``."""
    annotation = node.type_annotation
    if isinstance(annotation, PointerType):
        return pointer_doc(annotation, d)
    callee = d.tir(node.dtype)
    if isinstance(node, SizeVar):
        return CallDoc(callee, (), ("is_size_var",), (LiteralDoc(True),))
    return CallDoc(callee)


def pointer_doc(annotation: PointerType, d: Docsifier) -> ExprDoc:
    """``T.handle("float32", "global")``; the scope is left out if it is empty."""
    element = annotation.element_type
    name = str(element.dtype) if isinstance(element, PrimType) else "void"
    args: list[ExprDoc] = [LiteralDoc(name)]
    if annotation.storage_scope:
        args.append(LiteralDoc(annotation.storage_scope))
    return CallDoc(d.tir("handle"), args)


def _relax_symbol(node: Var, d: Docsifier) -> ExprDoc:
    """A symbolic dimension at its first use: declared at the head of the function."""
    frame = next((f for f in d.frames if f.kind == "relax" and f.is_func), None)
    if frame is None:
        frame = next((f for f in d.frames if f.kind == "relax"), d.frames[0])
    if frame.func_vars is not None:
        frame.func_vars.add(id(node))
    return declare_var(node, d, frame)


@prints("IterVar")
def _iter_var(node: nodes.IterVar, d: Docsifier) -> Doc:
    var = d.doc(node.var)
    dom = LiteralDoc(None) if node.dom is None else d.doc(node.dom)
    kind = LiteralDoc(IterType(node.iter_type).name)
    return CallDoc(d.tir("iter_var"), (var, dom, kind, LiteralDoc(node.thread_tag)))


@prints("Range")
def _range(node: Range, d: Docsifier) -> Doc:
    if d.frames and d.frames[-1].kind == "ir":
        prefix: ExprDoc = d.ir("Range")
    else:
        prefix = d.relax("Range") if d.relax_mode else d.tir("Range")
    end = range_end(node)
    if end is None:
        callee = AttrAccessDoc(prefix, "from_min_extent")
        return CallDoc(callee, (d.doc(node.min), d.doc(node.extent)))
    return CallDoc(prefix, (d.doc(node.min), d.doc(end)))


def range_end(node: Range) -> PrimExpr | None:
    """``min + extent`` if ``Range(min, end)`` gives this range again, else None."""
    try:
        end = operators.add(node.min, node.extent)
        extent = operators.subtract(end, node.min)
    except TVMError:
        return None
    return end if same(extent, node.extent) else None


# ---- types


@prints("PrimType")
def _prim_type(node: PrimType, d: Docsifier) -> Doc:
    return LiteralDoc(None) if node.dtype == "void" else d.tir(node.dtype)


@prints("PointerType")
def _pointer_type(node: PointerType, d: Docsifier) -> Doc:
    return pointer_doc(node, d)


@prints("TupleType")
def _tuple_type(node: TupleType, d: Docsifier) -> Doc:
    if not node.fields:
        return LiteralDoc(None)
    return CallDoc(d.tir("Tuple"), [d.doc(item) for item in node.fields])


@prints("FuncType")
def _func_type(node: FuncType, d: Docsifier) -> Doc:
    args = [d.doc(item) for item in node.arg_types]
    return CallDoc(d.tir("FuncType"), (ListDoc(args), d.doc(node.ret_type)))


# ---- operators

K = OperationKind
_SUGAR: Final[dict[str, tuple[OperationKind, Binary]]] = {
    "Add": (K.Add, operators.add), "Sub": (K.Sub, operators.subtract),
    "Mul": (K.Mult, operators.multiply), "FloorDiv": (K.FloorDiv, operators.floordiv),
    "FloorMod": (K.Mod, operators.floormod), "LT": (K.Lt, operators.less),
    "LE": (K.LtE, operators.less_equal), "EQ": (K.Eq, operators.equal),
    "NE": (K.NotEq, operators.not_equal), "GT": (K.Gt, operators.greater),
    "GE": (K.GtE, operators.greater_equal), "And": (K.And, operators.logical_and),
    "Or": (K.Or, operators.logical_or), "Div": (K.Div, operators.divide),
}  # fmt: skip
_FUNCTIONS: Final[dict[str, tuple[str, Binary]]] = {
    "Mod": ("truncmod", operators.truncmod), "Min": ("min", operators.minimum),
    "Max": ("max", operators.maximum),
}  # fmt: skip


def rebuilds(function: Binary, node: BinaryExpr) -> bool:
    """Whether ``function(node.a, node.b)`` gives a node like this one."""
    try:
        folded = function(node.a, node.b)
    except TVMError:
        return False
    return type(folded) is type(node) and folded.a is node.a and folded.b is node.b


@prints(*_SUGAR)
def _binary(node: BinaryExpr, d: Docsifier) -> Doc:
    kind, function = _SUGAR[node.KIND]
    # On vectors the functions of ``and`` and ``or`` are bitwise.
    is_lanewise = node.KIND in ("And", "Or") and node.dtype.lanes > 1
    if not is_lanewise and rebuilds(function, node):
        return OperationDoc(kind, (operand(node.a, d), operand(node.b, d)))
    return CallDoc(d.tir(node.KIND), (d.doc(node.a), d.doc(node.b)))


def operand(node: PrimExpr, d: Docsifier) -> ExprDoc:
    """An operand of an operator; in graph functions an int64 constant is a plain int."""
    if d.relax_mode and type(node) is IntImm and node.dtype == "int64":
        return LiteralDoc(node.value)
    return d.expr(node)


@prints(*_FUNCTIONS)
def _named_binary(node: BinaryExpr, d: Docsifier) -> Doc:
    name, function = _FUNCTIONS[node.KIND]
    if rebuilds(function, node):
        return CallDoc(d.tir(name), (operand(node.a, d), operand(node.b, d)))
    return CallDoc(d.tir(node.KIND), (d.doc(node.a), d.doc(node.b)))


@prints("Not")
def _not(node: nodes.Not, d: Docsifier) -> Doc:
    if isinstance(node.a, IntImm):
        return CallDoc(d.tir("Not"), (d.doc(node.a),))
    return OperationDoc(K.Not, (d.doc(node.a),))


@prints("Select")
def _select(node: nodes.Select, d: Docsifier) -> Doc:
    parts = (d.doc(node.condition), d.doc(node.true_value), d.doc(node.false_value))
    return CallDoc(d.tir("Select"), parts)


@prints("Cast")
def _cast(node: nodes.Cast, d: Docsifier) -> Doc:
    return CallDoc(d.tir("Cast"), (LiteralDoc(str(node.dtype)), d.doc(node.value)))


@prints("Ramp")
def _ramp(node: Ramp, d: Docsifier) -> Doc:
    return CallDoc(d.tir("Ramp"), (d.doc(node.base), d.doc(node.stride), d.doc(node.lanes)))


@prints("Broadcast")
def _broadcast(node: nodes.Broadcast, d: Docsifier) -> Doc:
    return CallDoc(d.tir("Broadcast"), (d.doc(node.value), d.doc(node.lanes)))


@prints("Shuffle")
def _shuffle(node: nodes.Shuffle, d: Docsifier) -> Doc:
    return CallDoc(d.tir("Shuffle"), (list_doc(node.vectors, d), list_doc(node.indices, d)))


def list_doc(items: Sequence[Node], d: Docsifier) -> ListDoc:
    """``[...]`` of nodes."""
    return ListDoc([d.doc(item) for item in items])


@prints("Let")
def _let(node: nodes.Let, d: Docsifier) -> Doc:
    body = d.doc(node.body)
    where = DictDoc([d.doc(node.var)], [d.doc(node.value)])
    return CallDoc(d.tir("Let"), (body,), ("where",), (where,))


@prints("CommReducer")
def _comm_reducer(node: nodes.CommReducer, d: Docsifier) -> Doc:
    d.push("tir")
    names = [d.define(var, var.name) for var in (*node.lhs, *node.rhs)]
    results = [d.doc(item) for item in node.result]
    d.pop()
    body = results[0] if len(results) == 1 else TupleDoc(results)
    identity = list_doc(node.identity_element, d)
    return CallDoc(d.tir("comm_reducer"), (LambdaDoc(names, body), identity))


@prints("IndexMap")
def _index_map(node: IndexMap, d: Docsifier) -> Doc:
    keys: list[str] = []
    values: list[ExprDoc] = []
    inverse = node.inverse_index_map
    if inverse is not None:
        keys.append("inverse_index_map")
        plain = _index_dtype(inverse) == "int64"
        values.append(_lambda_of(inverse, d) if plain else d.doc(inverse))
    if _index_dtype(node) != "int64":
        keys.append("index_dtype")
        values.append(LiteralDoc(_index_dtype(node)))
    return CallDoc(d.tir("index_map"), (_lambda_of(node, d),), keys, values)


def _index_dtype(node: IndexMap) -> str:
    return str(node.initial_indices[0].dtype) if node.initial_indices else "int64"


def _lambda_of(node: IndexMap, d: Docsifier) -> ExprDoc:
    d.push("tir")
    names = [d.define(var, var.name) for var in node.initial_indices]
    indices = [d.doc(index) for index in node.final_indices]
    d.pop()
    return LambdaDoc(names, TupleDoc(indices))


@prints("Reduce")
def _reduce(node: nodes.Reduce, d: Docsifier) -> Doc:
    keys = ("source", "init", "axis", "condition", "value_index")
    combiner = d.doc(node.combiner)
    values = (
        list_doc(node.source, d),
        list_doc(node.init, d),
        list_doc(node.axis, d),
        d.doc(node.condition),
        LiteralDoc(int(node.value_index)),
    )
    return CallDoc(d.tir("reduce"), (combiner,), keys, values)


@prints("ProducerLoad")
def _producer_load(node: nodes.ProducerLoad, d: Docsifier) -> Doc:
    producer = node.producer
    name = getattr(producer, "name", None) or getattr(getattr(producer, "op", None), "name", "T")
    return IndexDoc(IdDoc(str(name)), [d.doc(index) for index in node.indices])


# ---- loads


@prints("BufferLoad")
def _buffer_load(node: BufferLoad, d: Docsifier) -> Doc:
    buffer = d.doc(node.buffer)
    if node.predicate is None:
        return IndexDoc(buffer, index_docs(node.indices, d))
    indices = list_doc(node.indices, d)
    callee = AttrAccessDoc(buffer, "vload")
    return CallDoc(callee, (indices,), ("predicate",), (d.doc(node.predicate),))


def index_docs(indices: Sequence[PrimExpr], d: Docsifier) -> list[ExprDoc | SliceDoc]:
    """Indices of a load or store; a ramp is printed as a slice if that gives it again."""
    return [ramp_slice(i, d) if type(i) is Ramp else d.expr(i) for i in indices]


def ramp_slice(ramp: Ramp, d: Docsifier) -> ExprDoc | SliceDoc:
    """``base:base + lanes * stride:stride``, or ``T.Ramp(...)``."""
    stride, lanes = ramp.stride, ramp.lanes
    if isinstance(stride, IntImm) and isinstance(lanes, IntImm) and lanes.dtype == "int32":
        width = IntImm(stride.dtype, lanes.value * stride.value)
        stop = slice_end(ramp.base, width)
        if stride.value >= 1 and width.value > 1 and stop is not None:
            step = None if stride.value == 1 else LiteralDoc(stride.value)
            return SliceDoc(d.doc(ramp.base), d.doc(stop), step)
    return d.expr(ramp)


def slice_end(begin: PrimExpr, extent: PrimExpr) -> PrimExpr | None:
    """``begin + extent`` if a slice or loop ``begin:end`` gives the extent again, else None."""
    try:
        end = operators.add(begin, extent)
        derived = operators.extent_between(begin, end)
    except TVMError:
        return None
    return end if derived is extent or same(derived, extent) else None


# ---- calls

_SCRIPT_NAMES: Final = {
    "tvm_call_packed": "call_packed", "tvm_call_cpacked": "call_cpacked", "fabs": "abs",
}  # fmt: skip


@prints("Call")
def _call(node: nodes.Call, d: Docsifier) -> Doc:
    callee = node.op
    if not isinstance(callee, Op):
        args = [_argument(arg, d) for arg in node.args]
        target = d.doc(callee)
        if isinstance(callee, GlobalVar) and d.call_type(callee) == node.dtype:
            return CallDoc(target, args)
        return CallDoc(d.tir("Call"), (LiteralDoc(str(node.dtype)), target, ListDoc(args)))
    short = callee.name.removeprefix("tir.")
    name = _SCRIPT_NAMES.get(short, short)
    args = [_argument(arg, d) for arg in node.args]
    style = call_style(node, name)
    dtype = LiteralDoc(str(node.dtype))
    if style == "plain":
        return CallDoc(d.tir(name), args)
    if style == "dtype":
        return CallDoc(d.tir(name), (dtype, *args))
    return CallDoc(d.tir("Call"), (dtype, LiteralDoc(callee.name), ListDoc(args)))


def _argument(arg: object, d: Docsifier) -> ExprDoc:
    return d.expr(arg)


def call_style(node: nodes.Call, name: str) -> str:
    """How calling ``T.name`` gives the call: plain, with the dtype first, or not at all."""
    function = getattr(operators, name, None) or CONSTRUCTORS.get(name)
    if function is None or name in ("min", "max", "sum", "all", "any"):
        return "explicit"
    args = [arg.value if isinstance(arg, StringImm) else arg for arg in node.args]
    if _gives(function, args, node):
        return "plain"
    return "dtype" if _gives(function, [str(node.dtype), *args], node) else "explicit"


def _gives(function: Callable[..., object], args: Sequence[object], node: nodes.Call) -> bool:
    try:
        call = function(*args)
    except (TVMError, TypeError, AttributeError):
        return False
    if not isinstance(call, nodes.Call) or call.op is not node.op or call.dtype is not node.dtype:
        return False
    if len(call.args) != len(node.args):
        return False
    for mine, its in zip(call.args, node.args, strict=True):
        if not same(mine, its):
            return False
    return True


def is_true(expr: object) -> bool:
    """Whether an expression is the constant True."""
    return isinstance(expr, IntImm) and expr.value == 1 and expr.dtype.is_bool
