"""PyExprVisitor: walks a graph; one method for each class of expression, with TVM's names."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from weft.ir.expr import GlobalVar, RelaxExpr
from weft.ir.op import Op
from weft.ir.sharing import is_visited_once
from weft.relax.expr import (
    Binding,
    BindingBlock,
    Call,
    Constant,
    DataflowBlock,
    DataflowVar,
    DataTypeImm,
    ExternFunc,
    Function,
    If,
    MatchCast,
    PrimValue,
    SeqExpr,
    ShapeExpr,
    StringImm,
    Tuple,
    TupleGetItem,
    Var,
    VarBinding,
)
from weft.support.errors import IRTypeError, wrong_type
from weft.support.recursion import deep_recursion
from weft.support.span import Span

METHODS: dict[type, str] = {
    Constant: "visit_constant_",
    Tuple: "visit_tuple_",
    DataflowVar: "visit_dataflow_var_",
    Var: "visit_var_",
    ShapeExpr: "visit_shape_expr_",
    ExternFunc: "visit_extern_func_",
    GlobalVar: "visit_global_var_",
    Function: "visit_function_",
    Call: "visit_call_",
    SeqExpr: "visit_seq_expr_",
    If: "visit_if_",
    Op: "visit_op_",
    TupleGetItem: "visit_tuple_getitem_",
    PrimValue: "visit_prim_value_",
    StringImm: "visit_string_imm_",
    DataTypeImm: "visit_data_type_imm_",
}


def _plain(name: str) -> str:
    """A method's name without what is easily mistaken: ``visit_RelaxCall`` -> ``call``."""
    return name.removeprefix("visit").replace("_", "").lower().removeprefix("relax")


class ExprDispatch:
    """Dispatch on the class of an expression; a subclass without a method gets its base's."""

    _dispatch: ClassVar[dict[type, str]] = dict(METHODS)

    def __init_subclass__(cls, **kwargs: object) -> None:
        """Refuse a method that nothing would call, as ``visit_call`` or ``visit_Call`` is."""
        super().__init_subclass__(**kwargs)
        known = {name for base in cls.__mro__[1:] for name in base.__dict__}
        meant = {_plain(name): name for name in known if name.endswith("_")}
        for name in cls.__dict__:
            if name.startswith("visit_") and name not in known and _plain(name) in meant:
                raise IRTypeError(
                    f"{cls.__name__}.{name} would never be called: write {meant[_plain(name)]}"
                )

    def _method(self, expr: RelaxExpr) -> Callable[[RelaxExpr], RelaxExpr]:
        """The method for the class of an expression."""
        name = self._dispatch.get(type(expr))
        if name is None:
            for base in type(expr).__mro__:
                if base in METHODS:
                    name = self._dispatch[type(expr)] = METHODS[base]
                    break
            else:
                raise wrong_type(f"{type(self).__name__}: expected a graph expression", expr)
        method: Callable[[RelaxExpr], RelaxExpr] = getattr(self, name)
        return method


class PyExprVisitor(ExprDispatch):
    """Walks expressions, bindings and blocks for effect; override ``visit_call_`` and so on.

    A call that occurs in many places of an expression is visited once.
    """

    _met: dict[int, RelaxExpr] | None = None
    """The calls visited so far in the outermost expression; None outside of any."""

    @deep_recursion
    def visit_expr(self, expr: RelaxExpr) -> None:
        """Visit an expression."""
        kind, met = type(expr), self._met
        if met is not None and id(expr) in met:
            return
        if kind is not SeqExpr and (met is not None or not is_visited_once(expr)):
            self._method(expr)(expr)
            if met is not None and is_visited_once(expr):
                met[id(expr)] = expr
            return
        self._met = None if kind is SeqExpr else {}  # statements are expressions of their own
        try:
            self._method(expr)(expr)
        finally:
            self._met = met

    def visit_binding(self, binding: Binding) -> None:
        """Visit a binding."""
        if isinstance(binding, MatchCast):
            self.visit_match_cast_(binding)
        elif isinstance(binding, VarBinding):
            self.visit_var_binding_(binding)

    def visit_binding_block(self, block: BindingBlock) -> None:
        """Visit a block."""
        if isinstance(block, DataflowBlock):
            self.visit_dataflow_block_(block)
        else:
            self.visit_binding_block_(block)

    def visit_var_def(self, var: Var) -> None:
        """Visit the variable that a binding or a parameter list defines."""
        if isinstance(var, DataflowVar):
            self.visit_dataflow_var_def_(var)
        else:
            self.visit_var_def_(var)

    def visit_constant_(self, op: Constant) -> None:
        """A constant."""

    def visit_tuple_(self, op: Tuple) -> None:
        """A tuple: its fields."""
        for item in op.fields:
            self.visit_expr(item)

    def visit_var_(self, op: Var) -> None:
        """A use of a variable."""

    def visit_dataflow_var_(self, op: DataflowVar) -> None:
        """A use of a dataflow variable: as any variable."""
        self.visit_var_(op)

    def visit_shape_expr_(self, op: ShapeExpr) -> None:
        """A shape."""

    def visit_extern_func_(self, op: ExternFunc) -> None:
        """A function registered at run time."""

    def visit_global_var_(self, op: GlobalVar) -> None:
        """A reference to a function of the module."""

    def visit_function_(self, op: Function) -> None:
        """A function: parameters, body."""
        for param in op.params:
            self.visit_var_def(param)
        self.visit_expr(op.body)

    def visit_call_(self, op: Call) -> None:
        """A call: callee, arguments."""
        self.visit_expr(op.op)
        for arg in op.args:
            self.visit_expr(arg)

    def visit_seq_expr_(self, op: SeqExpr) -> None:
        """A sequence: blocks, body."""
        for block in op.blocks:
            self.visit_binding_block(block)
        self.visit_expr(op.body)

    def visit_if_(self, op: If) -> None:
        """A conditional: condition, both branches."""
        self.visit_expr(op.cond)
        self.visit_expr(op.true_branch)
        self.visit_expr(op.false_branch)

    def visit_op_(self, op: Op) -> None:
        """An operator."""

    def visit_tuple_getitem_(self, op: TupleGetItem) -> None:
        """A field of a tuple: the tuple."""
        self.visit_expr(op.tuple_value)

    def visit_prim_value_(self, op: PrimValue) -> None:
        """A scalar."""

    def visit_string_imm_(self, op: StringImm) -> None:
        """A string."""

    def visit_data_type_imm_(self, op: DataTypeImm) -> None:
        """A data type."""

    def visit_var_binding_(self, binding: VarBinding) -> None:
        """A binding: value, variable."""
        self.visit_expr(binding.value)
        self.visit_var_def(binding.var)

    def visit_match_cast_(self, binding: MatchCast) -> None:
        """A match_cast: value, variable."""
        self.visit_expr(binding.value)
        self.visit_var_def(binding.var)

    def visit_binding_block_(self, block: BindingBlock) -> None:
        """A block: its bindings."""
        for binding in block.bindings:
            self.visit_binding(binding)

    def visit_dataflow_block_(self, block: DataflowBlock) -> None:
        """A dataflow block: its bindings."""
        for binding in block.bindings:
            self.visit_binding(binding)

    def visit_var_def_(self, var: Var) -> None:
        """The definition of a variable."""

    def visit_dataflow_var_def_(self, var: DataflowVar) -> None:
        """The definition of a dataflow variable: as of any variable."""
        self.visit_var_def_(var)

    def visit_span(self, span: Span | None) -> None:
        """A source position."""


class _PostOrder(PyExprVisitor):
    def __init__(self, function: Callable[[RelaxExpr], object]) -> None:
        self.function = function

    def visit_expr(self, expr: RelaxExpr) -> None:
        super().visit_expr(expr)
        self.function(expr)


def post_order_visit(expr: RelaxExpr, fvisit: Callable[[RelaxExpr], object]) -> None:
    """Call ``fvisit`` on every expression below ``expr``, operands first."""
    _PostOrder(fvisit).visit_expr(expr)
