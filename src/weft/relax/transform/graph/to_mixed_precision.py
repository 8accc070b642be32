"""ToMixedPrecision: products of float32 read float16 or bfloat16, and what lies between them is so.

Before::

    y = matmul(x, w)
    z = relu(y)
    r = matmul(z, w)

After::

    y = matmul(astype(x, "float16"), astype(w, "float16"), out_dtype="float32")
    z = relu(astype(y, "float16"))
    r = matmul(z, astype(w, "float16"), out_dtype="float32")

The traits of an operator say what becomes of its calls on float32 (Micikevicius et al., "Mixed
Precision Training", 2018; the pass is that of TVM):

- ``NARROW`` (products and convolutions): operands are converted, and ``out_dtype`` is the type of
  their sums and of the result. If a constant would become infinite, the call stays.
- ``FOLLOWS`` and ``MOVES``: if nothing but narrow operators reads the result, it is computed from
  narrow operands; else the call stays.
- all others (softmax, norms, exponentials, reductions, losses) stay.

Results of dataflow blocks and of functions keep their types. Operators are narrowed inside of
dataflow blocks alone.
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.ir.expr import RelaxExpr
from weft.ir.functor import collect
from weft.ir.traits import Trait, has
from weft.ir.transform import FunctionPass
from weft.relax import op
from weft.relax.expr import (
    Binding,
    BindingBlock,
    Call,
    Constant,
    DataflowBlock,
    DataflowVar,
    Function,
    Tuple,
    Var,
    VarBinding,
)
from weft.relax.expr_functor import PyExprMutator
from weft.relax.struct_info import TensorStructInfo, dtype_of
from weft.relax.transform.passes import define_function_pass
from weft.relax.transform.weights.narrow_weights import checked_type, narrowed
from weft.support.dtype import DataType
from weft.support.errors import IRValueError

_FOLLOWING = Trait.FOLLOWS | Trait.MOVES
_WIDE = DataType("float32")


def _operands(call: Call) -> list[RelaxExpr]:
    """The arguments, with those of a tuple one by one."""
    items: list[RelaxExpr] = []
    for arg in call.args:
        items.extend(arg.fields if isinstance(arg, Tuple) else [arg])
    return items


class _Mixer(PyExprMutator):
    def __init__(self, dtype: str, out_dtype: str) -> None:
        super().__init__()
        self.dtype, self.out_dtype = DataType(dtype), DataType(out_dtype)
        self.is_inside = False
        """Whether a dataflow block is being rewritten."""
        self.wanted: set[Var] = set()
        """Its variables of float32 that only operators which run in the narrow type read."""
        self.narrow: dict[Var, RelaxExpr] = {}
        self.wide: dict[Var, RelaxExpr] = {}
        """Old variables -> their narrow and their float32 values, in the current block."""
        self.params: dict[Var, Var] = {}
        """Parameters that become narrow -> what they become."""
        self.constants: dict[int, tuple[Constant, Constant | None]] = {}
        """``id`` of a constant -> the constant, kept alive, and what it becomes."""

    # What is narrow

    def is_product(self, call: RelaxExpr) -> bool:
        """Whether a call is a product of float32 whose operands may be narrow."""
        if not isinstance(call, Call) or not has(call.op, Trait.NARROW):
            return False
        return dtype_of(call) == _WIDE and self.may_narrow(call, {_WIDE, self.dtype})

    def is_followed(self, call: RelaxExpr) -> bool:
        """Whether a call between products may run in the narrow type."""
        if not isinstance(call, Call) or not has(call.op, _FOLLOWING):
            return False
        return dtype_of(call) == _WIDE and self.may_narrow(call, {_WIDE})

    def may_narrow(self, call: Call, dtypes: set[DataType]) -> bool:
        """Whether all floats among the operands are of these types, and constants stay finite."""
        operands = _operands(call)
        floats = [item for item in operands if DataType(dtype_of(item) or "void").is_float]
        return (
            any(dtype_of(item) == _WIDE for item in floats)
            and all(dtype_of(item) in dtypes for item in floats)
            and all(self.constant(item) for item in floats if isinstance(item, Constant))
        )

    def constant(self, value: Constant) -> Constant | None:
        """A constant in the narrow type; None if a finite number of it would become infinite."""
        if value.data.dtype == self.dtype:
            return value
        if id(value) not in self.constants:
            self.constants[id(value)] = value, narrowed(value, self.dtype)
        return self.constants[id(value)][1]

    def find_wanted(self, bindings: Sequence[Binding]) -> set[Var]:
        """The local variables of float32 that only operators which run narrow read."""
        wide: set[Var] = set()
        read: set[Var] = set()
        for binding in reversed(bindings):
            value, var = getattr(binding, "value", None), binding.var
            used = set(collect([value], Var))
            is_local = isinstance(var, DataflowVar) and var in read and var not in wide
            read |= used
            if isinstance(value, Call) and (
                self.is_product(value) or (is_local and self.is_followed(value))
            ):
                used -= {item for item in _operands(value) if isinstance(item, Var)}
            wide |= used
        local = {binding.var for binding in bindings if isinstance(binding.var, DataflowVar)}
        return {var for var in (local & read) - wide if dtype_of(var) == _WIDE}

    # Blocks and bindings

    def visit_dataflow_block_(self, block: DataflowBlock) -> BindingBlock:
        self.wanted, self.is_inside = self.find_wanted(block.bindings), True
        self.narrow, self.wide = {}, {}
        try:
            return super().visit_dataflow_block_(block)
        finally:
            self.wanted, self.is_inside = set(), False
            self.narrow, self.wide = {}, {}

    def visit_binding_block_(self, block: BindingBlock) -> BindingBlock:
        self.narrow, self.wide = {}, {}
        return super().visit_binding_block_(block)

    def visit_var_binding_(self, binding: VarBinding) -> None:
        var, value = binding.var, binding.value
        if var not in self.wanted or not isinstance(value, Call):
            super().visit_var_binding_(binding)
        elif self.is_followed(value):
            self.narrow[var] = self.builder_.emit(self.with_narrow(value), var.name_hint)
        elif self.is_product(value) and self.out_dtype == self.dtype:
            self.narrow[var] = self.builder_.emit(self.product(value), var.name_hint)
        else:
            super().visit_var_binding_(binding)

    def visit_call_(self, call: Call) -> RelaxExpr:
        if not self.is_inside or not self.is_product(call):
            return super().visit_call_(call)
        product = self.product(call)
        if self.out_dtype == _WIDE:
            return product
        return op.astype(self.builder_.emit(product), _WIDE)

    def product(self, call: Call) -> Call:
        """A product of narrow operands."""
        narrow = self.with_narrow(call)
        return Call(call.op, narrow.args, call.attrs.updated(out_dtype=self.out_dtype))

    # Values in either type

    def with_narrow(self, call: Call) -> Call:
        """A call with its operands of float32 in the narrow type."""
        args = [
            Tuple([self.in_narrow(item) for item in arg.fields])
            if isinstance(arg, Tuple)
            else self.in_narrow(arg)
            for arg in call.args
        ]
        return Call(call.op, args, call.attrs)

    def in_narrow(self, arg: RelaxExpr) -> RelaxExpr:
        """An operand in the narrow type; one that is not of float32 as it is."""
        if dtype_of(arg) != _WIDE:
            return self.visit_expr(arg)
        if isinstance(arg, Constant):
            constant = self.constant(arg)
            assert constant is not None
            return constant
        if not isinstance(arg, Var):
            return self.builder_.emit(op.astype(self.visit_expr(arg), self.dtype))
        known = self.narrow.get(arg) or self.params.get(arg)
        if known is None:
            known = self.builder_.emit(op.astype(self.visit_expr(arg), self.dtype))
            self.narrow[arg] = known
        return known

    def visit_var_(self, var: Var) -> RelaxExpr:
        """A variable in its own type."""
        if var not in self.params:
            return super().visit_var_(var)
        if var not in self.wide:
            self.wide[var] = self.builder_.emit(op.astype(self.params[var], _WIDE))
        return self.wide[var]

    def visit_var_def_(self, var: Var) -> Var:
        """A variable where it is defined; parameters may become narrow there."""
        return self.params.get(var, var)

    def with_params(self, func: Function, names: frozenset[str]) -> Function:
        """The function rewritten, with the parameters of these names in the narrow type."""
        for param in func.params:
            info = param.struct_info
            if param.name_hint in names and dtype_of(param) == _WIDE:
                assert isinstance(info, TensorStructInfo)
                self.params[param] = Var(param.name_hint, info.with_(dtype=self.dtype))
        return self.visit_expr(func)


def ToMixedPrecision(  # noqa: N802 - TVM's name
    out_dtype: str = "float32",
    fp16_input_names: Sequence[str] | None = None,
    *,
    dtype: str = "float16",
) -> FunctionPass:
    """Run products of float32, and what only they read, in a type of 16 bits.

    Args:
        out_dtype: the type in which products are summed, and of their results: ``"float32"`` or
            the narrow type.
        fp16_input_names: the names of parameters that become narrow.
        dtype: the narrow type, ``"float16"`` or ``"bfloat16"``.
    """
    name, names = checked_type(dtype), frozenset(fp16_input_names or ())
    if out_dtype not in (_WIDE, name):
        raise IRValueError(f"out_dtype: expected 'float32' or {name!r}, got {out_dtype!r}")

    def run(func: Function) -> Function:
        if func.attrs.get("Primitive"):  # a group of FuseOps: its operators are chosen already
            return func
        return _Mixer(name, out_dtype).with_params(func, names)

    return define_function_pass("ToMixedPrecision", run)()
