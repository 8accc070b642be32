"""VMShapeLower: the values of symbolic extents are stored on a heap while a function runs.

Before::

    def main(x: R.Tensor(("n", "m"), "float32")):
        y = R.vm.alloc_tensor(storage, 0, R.shape([n, m * 2]), "float32")

After, with one slot of ``shape_heap`` for each of ``n``, ``m`` and ``m * 2``::

    shape_heap = R.call_builtin_with_ctx("vm.builtin.alloc_shape_heap", (3,))
    _ = R.call_packed("vm.builtin.check_tensor_info", x, 2, R.dtype("float32"), "ErrorContext(...)")
    _ = R.call_packed("vm.builtin.match_shape", x, shape_heap, 2, STORE, 0, STORE, 1, "...")
    _ = cls.shape_func(shape_heap)          # H[2] = H[1] * 2
    shape = R.call_packed("vm.builtin.make_shape", shape_heap, 2, LOAD, 0, LOAD, 2)
    y = R.vm.alloc_tensor(storage, 0, shape, "float32")

The struct infos of parameters, match_casts and the result become checks at run time, except where
the value's own struct info already proves them. Each check carries a text for its error, which
``emit_err_ctx=False`` leaves empty. An expression such as ``m * 2`` is computed as soon as all its
symbols have values. LambdaLift has to run before. The names of the functions, the slots and the
codes (MakeShapeCode, MatchShapeCode) are TVM's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from weft.ir.expr import GlobalVar, IntImm, PrimExpr, RelaxExpr
from weft.ir.function import BaseFunc
from weft.ir.functor import collect, substitute
from weft.ir.module import IRModule
from weft.ir.node import Node
from weft.ir.op import Op
from weft.ir.transform import define_module_pass
from weft.relax.builder.normalize import LEAVES, merged_blocks
from weft.relax.expr import (
    BindingBlock,
    Call,
    DataTypeImm,
    Expr,
    ExternFunc,
    Function,
    MatchCast,
    PrimValue,
    SeqExpr,
    ShapeExpr,
    StringImm,
    Tuple,
    TupleGetItem,
)
from weft.relax.expr_functor import PyExprMutator
from weft.relax.ir.lattice import struct_info_is_base_of
from weft.relax.struct_info import (
    FuncStructInfo,
    ObjectStructInfo,
    PrimStructInfo,
    ShapeStructInfo,
    StructInfo,
    TensorStructInfo,
    TupleStructInfo,
)
from weft.relax.transform.host.shape_slots import SlotCollector, Slots, extents_of
from weft.runtime.vm.shape_codes import MakeShapeCode, MatchShapeCode
from weft.support.dtype import DataType
from weft.support.errors import IRTypeError
from weft.tir.buffer import BufferLoad, decl_buffer
from weft.tir.expr import Var
from weft.tir.function import PrimFunc
from weft.tir.stmt import BufferStore, seq

INT64: Final = DataType("int64")
NOTHING: Final = TupleStructInfo([])


def _number(value: int) -> PrimValue:
    return PrimValue(IntImm(INT64, value))


def _packed(name: str, arguments: Sequence[RelaxExpr], info: StructInfo) -> Call:
    return Call(ExternFunc(f"vm.builtin.{name}"), arguments, None, [info])


@dataclass(frozen=True)
class _Match:
    """A value and the extents it should have: known ones are compared, new symbols stored."""

    value: RelaxExpr
    pattern: Sequence[PrimExpr]
    context: str


@dataclass(frozen=True)
class _Checked:
    """A value and the struct info that it must have.

    ``always``: check it even if the value's own struct info proves it (a caller may pass anything
    for a parameter). ``dynamic_only``: skip tensors whose extents are all numbers.
    """

    info: StructInfo | None
    value: RelaxExpr
    always: bool = False
    dynamic_only: bool = False

    def proved(self, info: StructInfo) -> bool:
        """Whether ``info`` follows from the value's struct info, so that no check is needed."""
        return not self.always and struct_info_is_base_of(info, self.value.struct_info)


def _is_static(extents: Sequence[PrimExpr] | None) -> bool:
    """Whether the extents are known and all of them are numbers."""
    return extents is not None and all(isinstance(value, IntImm) for value in extents)


class _ShapeLowerer(PyExprMutator):
    """Lowers the functions of one module, one after the other."""

    def __init__(self, mod: IRModule, emit_err_ctx: bool) -> None:
        super().__init__(mod)
        self.emit_err_ctx = emit_err_ctx
        self.name = ""
        self.slots = Slots()
        self.heap: Any = None

    def function(self, name: str, func: Function) -> Function:
        """The lowered function: heap and checks of the parameters, body, check of the result."""
        self.name, self.slots = name, Slots()
        SlotCollector(self.slots).function(func)
        self.slots.prepare()
        self.builder_.begin_scope(func.params)
        before = self.block(lambda: self.enter(func))
        body: Any = self.visit_with_new_scope(func.body, func.params)
        after = self.block(lambda: self.leave(func, body.body))
        self.builder_.end_scope()
        whole = SeqExpr(merged_blocks([before, *body.blocks, after]), body.body)
        return func.with_(body=self.builder_.normalize(whole))

    def block(self, fill: Callable[[], None]) -> BindingBlock:
        """A block of the bindings that ``fill`` emits."""
        self.builder_.begin_binding_block()
        fill()
        return self.builder_.end_block()

    def enter(self, func: Function) -> None:
        """Emit the heap and the checks of the parameters.

        Parameters after the first ``num_input`` are weights that the compiler itself laid out.
        Those of static shape are not checked.
        """
        self.allocate_heap()
        num_input = int(func.attrs.get("num_input", len(func.params)))
        todo: list[_Match] = []
        for index, param in enumerate(func.params):
            info = param.struct_info
            context = (
                f"ErrorContext(fn={self.name}, loc=param[{index}], param={param.name_hint}, "
                f"annotation={info}) "
            )
            self.check(_Checked(info, param, True, index >= num_input), context, todo)
        self.run(todo)

    def leave(self, func: Function, result: Expr) -> None:
        """Emit the check of the result."""
        info = func.ret_struct_info
        context = f"ErrorContext(fn={self.name}, loc=return, annotation={info}) "
        todo: list[_Match] = []
        self.check(_Checked(info, result), context, todo)
        self.run(todo)

    def allocate_heap(self) -> None:
        """Emit ``shape_heap``: memory for all slots, or a null value if there are none."""
        count = len(self.slots.all)
        if count:
            info: StructInfo = TensorStructInfo(None, "int64", ndim=1)
            callee = ExternFunc("vm.builtin.alloc_shape_heap")
            operator = Op.get("relax.call_builtin_with_ctx")
            call = Call(operator, [callee, Tuple([_number(count)])], None, [info])
        else:
            info = ObjectStructInfo()
            call = Call(Op.get("relax.null_value"), [])
        call.struct_info = info
        self.heap = self.builder_.emit(call, "shape_heap")

    def check(self, item: _Checked, context: str, todo: list[_Match]) -> None:
        """Emit the check of a value's kind, dtype and rank; add its extents to ``todo``."""
        info, value = item.info, item.value
        if info is None or item.proved(info):
            return
        if isinstance(info, TupleStructInfo):
            self.check_tuple(info, item, context, todo)
            return
        rule = _CHECKS.get(type(info))
        if rule is None:
            if isinstance(info, FuncStructInfo):
                self.emit("check_func_info", [value], context)
            return
        extents = extents_of(info)
        if item.dynamic_only and isinstance(info, TensorStructInfo) and _is_static(extents):
            return
        value = self.bound(value)
        name, weaker, arguments = rule
        if not item.proved(weaker(info)):
            self.emit(name, [value, *arguments(info)], context)
        if extents is not None:
            todo.append(_Match(value, extents, context))
        elif getattr(info, "shape", None) is not None:
            raise IRTypeError(
                f"VMShapeLower: {self.name}: expected a shape of known rank in {info}, where the "
                "extents can be bound"
            )

    def bound(self, value: RelaxExpr) -> RelaxExpr:
        """The value if it may be used twice (a variable, a constant), else a variable of it."""
        return value if isinstance(value, (*LEAVES, Tuple)) else self.builder_.emit(value)

    def check_tuple(
        self, info: TupleStructInfo, item: _Checked, context: str, todo: list[_Match]
    ) -> None:
        """Emit the check of the number of fields, then those of each field."""
        value, known = self.bound(item.value), item.value.struct_info
        is_tuple = isinstance(known, TupleStructInfo)
        if isinstance(known, TupleStructInfo) and len(known.fields) != len(info.fields):
            raise IRTypeError(
                f"VMShapeLower: {self.name}: expected {len(info.fields)} fields, got "
                f"{len(known.fields)}: {context.strip()}"
            )
        if item.always or not is_tuple:
            self.emit("check_tuple_info", [value, _number(len(info.fields))], context)
        for index, field in enumerate(info.fields):
            if isinstance(value, Tuple):
                part: RelaxExpr = value.fields[index]
            elif is_tuple:
                part = self.builder_.normalize(TupleGetItem(value, index))
            else:
                part = _packed("tuple_getitem", [value, _number(index)], ObjectStructInfo())
                part = self.builder_.normalize(part)
            self.check(_Checked(field, part, item.always, item.dynamic_only), context, todo)

    def emit(self, name: str, arguments: Sequence[RelaxExpr], context: str) -> None:
        """Emit a call of ``vm.builtin.<name>`` that returns nothing and may raise ``context``."""
        text = StringImm(context if self.emit_err_ctx else "")
        self.builder_.emit(_packed(name, [*arguments, text], NOTHING), "_")

    def run(self, todo: list[_Match]) -> None:
        """Emit the matches: store new symbols, compute what follows from them, compare the rest.

        The order matters. For a tensor of shape ``(n * 2, n)``, the first extent can be compared
        only when ``n`` was stored from the second and ``n * 2`` was computed from it.
        """
        left = [item for item in todo if self.match(item, False)]
        self.compute()
        for item in left:
            self.match(item, True)

    def match(self, item: _Match, all_known: bool) -> bool:
        """Emit one match; return whether it skipped extents that must be compared later.

        With ``all_known`` every symbol must have a value by now, so nothing is skipped.
        """
        arguments: list[RelaxExpr] = [item.value, self.heap]
        is_number = isinstance(item.value.struct_info, PrimStructInfo)
        if not is_number:
            arguments.append(_number(len(item.pattern)))
        codes = [self.action(expr, all_known) for expr in item.pattern]
        for code, value in codes:
            arguments += [_number(code), _number(value)]
        if any(code != MatchShapeCode.NO_OP for code, _ in codes) or not codes:
            name = "match_prim_value" if is_number else "match_shape"
            self.emit(name, arguments, item.context)
        return any(code == MatchShapeCode.NO_OP for code, _ in codes)

    def action(self, expr: PrimExpr, all_known: bool) -> tuple[int, int]:
        """The MatchShapeCode for one extent and its operand: a number or the index of a slot."""
        if isinstance(expr, IntImm):
            return MatchShapeCode.ASSERT_EQUAL_TO_IMM, expr.value
        slot = self.slots.at(expr, self.name) if all_known else self.slots.find(expr)
        assert slot is not None
        if slot.computed:
            return MatchShapeCode.ASSERT_EQUAL_TO_LOAD, slot.index
        if isinstance(expr, Var):
            self.slots.learn(slot)
            return MatchShapeCode.STORE_TO_HEAP, slot.index
        return MatchShapeCode.NO_OP, 0

    def compute(self) -> None:
        """Emit a kernel that computes all expressions that have become ready, and its call."""
        ready = self.slots.take_ready()
        if not ready:
            return
        buffer = decl_buffer([IntImm(INT64, len(self.slots.all))], "int64", "H")
        stores = []
        for slot in ready:
            slot.computed = True
            known: dict[Node, Node] = {
                var: _load_as(BufferLoad(buffer, [IntImm(INT64, place)]), var)
                for var, place in self.slots.places(slot)
            }
            value = substitute(slot.expr, known)
            stores.append(BufferStore(buffer, _as_int64(value), [IntImm(INT64, slot.index)]))
        param = Var("heap", "handle")
        attrs = {"tir.is_host_func": 1}
        kernel = PrimFunc([param], seq(*stores), buffer_map={param: buffer}, attrs=attrs)
        self.builder_.emit(Call(self.builder_.add_func(kernel, "shape_func"), [self.heap]), "_")

    # Expressions of the graph that contain symbols

    def visit_shape_expr_(self, op: ShapeExpr) -> RelaxExpr:
        if all(isinstance(value, IntImm) for value in op.values):
            return op
        arguments: list[Expr] = [self.heap, _number(len(op.values))]
        for value in op.values:
            arguments += self.extent(value)
        return _packed("make_shape", arguments, ShapeStructInfo(None, len(op.values)))

    def visit_prim_value_(self, op: PrimValue) -> RelaxExpr:
        if not op.value.dtype.is_integral or not collect(op.value, Var):
            return op
        return _packed("make_prim_value", [self.heap, *self.extent(op.value)], op.struct_info)

    def extent(self, value: PrimExpr) -> list[Expr]:
        """The MakeShapeCode for one extent and its operand: a number or the index of a slot."""
        if isinstance(value, IntImm):
            return [_number(MakeShapeCode.USE_IMM), _number(value.value)]
        return [_number(MakeShapeCode.LOAD_SHAPE), _number(self.slots.at(value, self.name).index)]

    def visit_match_cast_(self, binding: MatchCast) -> None:
        value = self.builder_.normalize(self.visit_expr(binding.value))
        context = f"ErrorContext(match_cast, struct_info={binding.struct_info}) "
        todo: list[_Match] = []
        self.check(_Checked(binding.struct_info, value), context, todo)
        self.run(todo)
        super().visit_match_cast_(binding)

    def visit_function_(self, op: Function) -> Function:
        raise IRTypeError(
            f"VMShapeLower: {self.name} holds a local function; run relax.transform.LambdaLift "
            "before"
        )


def _load_as(load: Any, var: Var) -> PrimExpr:
    loaded: PrimExpr = load if var.dtype == INT64 else load.astype(var.dtype)
    return loaded


def _as_int64(value: PrimExpr) -> PrimExpr:
    return value if value.dtype == INT64 else value.astype("int64")


_CHECKS: Final[dict[type, tuple[str, Callable[[Any], StructInfo], Callable[[Any], list[Expr]]]]] = {
    TensorStructInfo: (
        "check_tensor_info",
        lambda info: TensorStructInfo(None, info.dtype, ndim=info.ndim),
        lambda info: [_number(info.ndim), DataTypeImm(info.dtype)],
    ),
    ShapeStructInfo: (
        "check_shape_info",
        lambda info: ShapeStructInfo(None, info.ndim),
        lambda info: [_number(info.ndim)],
    ),
    PrimStructInfo: (
        "check_prim_value_info",
        lambda info: PrimStructInfo(info.dtype),
        lambda info: [DataTypeImm(info.dtype)],
    ),
}
"""For each class of struct info: the builtin that checks a value's kind, the part of the struct
info that this builtin covers (all but the extents), and the builtin's arguments."""


def vm_shape_lower(mod: IRModule, *, emit_err_ctx: bool = True) -> IRModule:
    """The module in which each graph function keeps its symbolic extents on a heap."""
    lowerer = _ShapeLowerer(mod, emit_err_ctx)
    functions: list[tuple[GlobalVar, BaseFunc]] = list(mod.functions.items())
    for gvar, func in functions:
        if isinstance(func, Function):
            lowerer.builder_.update_func(gvar, lowerer.function(gvar.name_hint, func))
    return lowerer.builder_.get()


VMShapeLower = define_module_pass("VMShapeLower", vm_shape_lower)
