"""ConvertLayout: chosen operators work in the layouts asked for, and other operators follow.

Before: ``y = conv2d(x, w); z = relu(y)``, all in ``NCHW``. After, for ``{"relax.nn.conv2d":
["NHWC", "OHWI"]}``: ``a = permute_dims(x, [0, 2, 3, 1]); b = permute_dims(w, [0, 2, 3, 1]);
c = conv2d(a, b, data_layout="NHWC", kernel_layout="OHWI"); d = relu(c);
z = permute_dims(d, [0, 3, 1, 2])``. Layouts may be blocked (``NCHW4c``) where the extents are
multiples of the blocks.

The pass walks once over the bindings of each dataflow block, and remembers for each variable the
order in which its tensor is stored (``layouts/order.py``). The rule of an operator then says in
which orders it takes its arguments, and how its attributes change. An operator without a rule gets
the order that the program names, and so does every output of the block. A tensor that several
calls of a block need in the same order is converted once. (Liu et al., "Optimizing CNN Model
Inference on CPUs", USENIX ATC 2019, section 3.2, describe the transformation.)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from weft.ir.attrs import Attrs
from weft.ir.expr import RelaxExpr
from weft.ir.node import Node
from weft.ir.transform import FunctionPass
from weft.relax import op
from weft.relax.expr import (
    BindingBlock,
    Call,
    Constant,
    DataflowBlock,
    DataflowVar,
    Function,
    MatchCast,
    Tuple,
    TupleGetItem,
    Var,
    VarBinding,
)
from weft.relax.expr_functor import PyExprMutator
from weft.relax.ir.lattice import tensor_dims
from weft.relax.struct_info import ShapeStructInfo, StructInfo, TensorStructInfo, TupleStructInfo
from weft.relax.transform.layout.layouts import LAYOUTS
from weft.relax.transform.layout.layouts.order import (
    AxisOrder,
    Order,
    identity,
    index_map,
    permutation,
)
from weft.relax.transform.layout.layouts.rule import Answer, Request
from weft.relax.transform.layout.layouts.values import broadcasting, of_equal_ranks
from weft.relax.transform.layout.layouts.windows import DESIRABLE
from weft.relax.transform.passes import define_function_pass
from weft.support.errors import PassError


def ConvertLayout(  # noqa: N802 - as TVM
    desired_layouts: Mapping[str, Sequence[str]],
) -> FunctionPass:
    """Convert operators to the layouts given for them.

    ``desired_layouts`` maps the name of an operator to the layouts of its data, its kernel and, if
    it differs from the data's, its result. The operators can be ``relax.nn.conv1d`` to ``conv3d``
    and ``relax.image.resize1d`` to ``resize3d``.
    """
    for name in desired_layouts:
        if name not in DESIRABLE:
            raise PassError(
                f"ConvertLayout: no layout can be asked for {name}; others follow. Expected one of "
                f"{', '.join(sorted(DESIRABLE))}"
            )
    desired = {name: [str(item) for item in items] for name, items in desired_layouts.items()}
    convert = define_function_pass("ConvertLayout", with_layouts)
    return convert(lambda call: desired.get(call.op.name))


def with_layouts(func: Function, desired: Callable[[Call], Sequence[str] | None]) -> Function:
    """The function with each call in the layouts that ``desired`` returns for it."""
    return _Converter(desired).visit_expr(func)


class _Converter(PyExprMutator):
    def __init__(self, desired: Callable[[Call], Sequence[str] | None]) -> None:
        super().__init__()
        self.desired = desired
        self.orders: dict[Var, Order] = {}
        self.in_dataflow = False
        self.conversions: dict[tuple[RelaxExpr, AxisOrder], RelaxExpr] = {}  # of the current block

    # Orders

    def order(self, expr: RelaxExpr) -> Order:
        """The order in which the value of an old expression is stored in the new program."""
        if isinstance(expr, Tuple):
            return tuple(self.order(field) for field in expr.fields)
        if isinstance(expr, Var) and expr in self.orders:
            return self.orders[expr]
        return _plain(expr.struct_info) if isinstance(expr, Var | Constant) else None

    def converted(self, expr: RelaxExpr, want: Order) -> RelaxExpr:
        """The new expression for an old one, stored in the order ``want``."""
        have = self.order(expr)
        if isinstance(expr, Tuple) and isinstance(want, tuple):
            fields = [self.converted(f, w) for f, w in zip(expr.fields, want, strict=True)]
            same = all(new is old for new, old in zip(fields, expr.fields, strict=True))
            return expr if same else Tuple(fields)
        current = self.get_var_remap(expr.vid) if isinstance(expr, Var) else self.visit_expr(expr)
        if have == want or not isinstance(have, AxisOrder) or not isinstance(want, AxisOrder):
            return self.moved(current, have, want)
        known = self.conversions.get((expr, want))
        if known is None:
            known = self.moved(current, have, want)
            if self.in_dataflow:
                known = self.conversions[expr, want] = self.builder_.emit(known)
        return known

    def moved(self, value: RelaxExpr, have: Order, want: Order) -> RelaxExpr:
        """A new value, which is stored in the order ``have``, in the order ``want``."""
        if have == want or have is None or want is None:
            return value
        if isinstance(have, tuple) and isinstance(want, tuple):
            fields = [TupleGetItem(value, index) for index in range(len(have))]
            moves = zip(fields, have, want, strict=True)
            return self.builder_.normalize(Tuple([self.moved(*move) for move in moves]))
        assert isinstance(have, AxisOrder)
        assert isinstance(want, AxisOrder)
        axes = permutation(have, want)
        if axes is not None:
            return op.permute_dims(value, axes)
        return op.layout_transform(value, index_map(have, want))

    # The walk

    def visit_dataflow_block_(self, block: DataflowBlock) -> BindingBlock:
        outer, self.in_dataflow = self.in_dataflow, True
        known, self.conversions = self.conversions, {}
        rewritten = super().visit_dataflow_block_(block)
        self.in_dataflow, self.conversions = outer, known
        return rewritten

    def visit_var_(self, op: Var) -> RelaxExpr:
        return self.converted(op, _plain(op.struct_info))

    def visit_var_binding_(self, binding: VarBinding) -> None:
        value = binding.value
        if self.in_dataflow and isinstance(value, Call):
            self.convert_call(binding, value)
        elif self.in_dataflow and isinstance(value, Tuple | TupleGetItem | Var):
            self.convert_passing(binding, value)
        else:
            super().visit_var_binding_(binding)

    def convert_passing(self, binding: VarBinding, value: RelaxExpr) -> None:
        """Convert a binding that only passes values on: they keep their order within the block."""
        if isinstance(value, TupleGetItem):
            whole = self.order(value.tuple_value)
            have = whole[value.index] if isinstance(whole, tuple) else None
            passed = self.converted(value.tuple_value, whole)
            same = passed is value.tuple_value
            passed = value if same else TupleGetItem(passed, value.index)
        else:
            have = self.order(value)
            passed = self.converted(value, have)
        self.finish(binding, passed, have)

    def convert_call(self, binding: VarBinding, call: Call) -> None:
        """Convert a call to the orders that its operator's rule chooses."""
        call = self.of_equal_ranks(call)
        answer = self.answer(call)
        if answer is None:
            orders = [_plain(arg.struct_info) if _has_order(arg) else None for arg in call.args]
            answer = Answer(orders, _plain(binding.var.struct_info))
        orders = [*answer.inputs, *[None] * (len(call.args) - len(answer.inputs))]
        args = [
            answer.args.get(index)
            or (self.converted(arg, want) if _has_order(arg) else self.visit_expr(arg))
            for index, (arg, want) in enumerate(zip(call.args, orders, strict=True))
        ]
        callee = self.visit_expr(call.op)
        attrs = call.attrs
        if any(attrs[name] != value for name, value in answer.attrs.items()):
            attrs = Attrs(dict(attrs)).updated(**answer.attrs)
        same = attrs is call.attrs and callee is call.op and _same(args, call.args)
        converted = call if same else Call(callee, args, attrs, call.sinfo_args, call.span)
        self.finish(binding, converted, answer.output)

    def of_equal_ranks(self, call: Call) -> Call:
        """The call with its constants reshaped to the rank of the other operands, if that helps."""
        if LAYOUTS.get(call.op) is not broadcasting:
            return call
        args = of_equal_ranks(call.args, [self.order(arg) for arg in call.args])
        same = _same(args, call.args)
        return call if same else Call(call.op, args, call.attrs, call.sinfo_args, call.span)

    def answer(self, call: Call) -> Answer | None:
        """The answer of the operator's rule; None if it has no rule, or a rank is unknown."""
        rule = LAYOUTS.get(call.op)
        if rule is None or any(_is_unknown(arg.struct_info) for arg in call.args):
            return None
        have = [self.order(arg) if _has_order(arg) else None for arg in call.args]
        return rule(Request(call, have, self.desired(call)))

    def finish(self, binding: VarBinding, value: RelaxExpr, have: Order) -> None:
        """Emit a value that is stored in the order ``have``; outputs are converted back."""
        want = _plain(binding.var.struct_info)
        if isinstance(binding.var, DataflowVar):
            self.orders[binding.var] = have
        elif have is not None and have != want:
            value = self.moved(self.builder_.emit(value), have, want)
        if value is binding.value and value.struct_info is not None:
            self.builder_.emit_normalized(binding)
        else:
            self.reemit(binding, binding.var, self.builder_.normalize(value))

    def visit_match_cast_(self, binding: MatchCast) -> None:
        have, info = self.order(binding.value), binding.struct_info
        is_tensor = isinstance(have, AxisOrder) and isinstance(info, TensorStructInfo)
        if not self.in_dataflow or not is_tensor or not isinstance(binding.var, DataflowVar):
            super().visit_match_cast_(binding)
            return
        assert isinstance(have, AxisOrder)
        dims = tensor_dims(info)
        if have.is_identity or have.is_blocked or dims is None or len(dims) != have.ndim:
            super().visit_match_cast_(binding)
            return
        shape = [dims[axis] for axis, _ in have.axes]
        assert isinstance(info, TensorStructInfo)
        cast = TensorStructInfo(shape, info.dtype, info.vdevice)
        var = type(binding.var)(binding.var.name_hint, cast)
        self.orders[binding.var] = have
        self.set_var_remap(binding.var.vid, var)
        value = self.converted(binding.value, have)
        self.builder_.emit_normalized(MatchCast(var, value, cast))


def _plain(info: StructInfo) -> Order:
    """The order in which the program names the axes."""
    if isinstance(info, TupleStructInfo):
        return tuple(_plain(item) for item in info.fields)
    if isinstance(info, TensorStructInfo) and info.ndim != -1:
        return identity(info.ndim)
    return None


def _has_order(arg: RelaxExpr) -> bool:
    """Whether an argument holds tensors, not shapes or scalars."""
    if isinstance(arg, Tuple):
        return all(_has_order(field) for field in arg.fields)
    return isinstance(arg, Var | Constant) and not isinstance(arg.struct_info, ShapeStructInfo)


def _is_unknown(info: StructInfo) -> bool:
    """Whether an argument is, or contains, a tensor of unknown rank."""
    if isinstance(info, TupleStructInfo):
        return any(_is_unknown(item) for item in info.fields)
    return isinstance(info, TensorStructInfo) and info.ndim == -1


def _same(new: Sequence[Node], old: Sequence[Node]) -> bool:
    return all(a is b for a, b in zip(new, old, strict=True))
