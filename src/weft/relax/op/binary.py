"""Binary element-wise operators with numpy's broadcasting, comparisons, logic, bits.

A Python number as one operand becomes a constant of the other's dtype.
"""

from __future__ import annotations

import numpy as np

from weft import topi
from weft.ir.traits import Trait
from weft.relax.expr import Call, Expr
from weft.relax.op.definition import Replacements, match_scalars, operator
from weft.relax.op.infer import VOID, broadcast_infos, common_dtype, param_name
from weft.relax.op.reference import binary as reference
from weft.relax.op.reference.rule import in_float64
from weft.relax.struct_info import PrimStructInfo, StructInfo, TensorStructInfo
from weft.support.dtype import DataType
from weft.support.errors import IRTypeError
from weft.topi import integers
from weft.topi.broadcast import binary, by_operands
from weft.topi.precision import in_wide_float


def operand_infos(call: Call) -> list[TensorStructInfo | PrimStructInfo]:
    """The infos of the operands: tensors or scalars."""
    infos = []
    for index, arg in enumerate(call.args):
        info = arg.struct_info
        if not isinstance(info, TensorStructInfo | PrimStructInfo):
            raise IRTypeError(
                f"{call.op.name}: {param_name(call, index)}: expected a tensor, got {info}"
            )
        infos.append(info)
    if len(infos) < 2:
        raise IRTypeError(f"{call.op.name}: expected 2 operands, got {len(infos)}")
    return infos


def infer_arithmetic(call: Call) -> TensorStructInfo | PrimStructInfo:
    """The broadcast shape; both dtypes must be one."""
    infos = operand_infos(call)
    dtype = common_dtype(call, infos)
    if all(isinstance(info, PrimStructInfo) for info in infos):
        return PrimStructInfo(dtype)
    return broadcast_infos(call, infos, dtype)


def infer_comparison(call: Call) -> StructInfo:
    """The broadcast shape, of booleans; operands of two dtypes are compared in the wider one."""
    infos = operand_infos(call)
    if all(isinstance(info, PrimStructInfo) for info in infos):
        return PrimStructInfo("bool")
    return broadcast_infos(call, infos, "bool")


def infer_bits(call: Call) -> StructInfo:
    """As arithmetic, on integers or booleans."""
    info = infer_arithmetic(call)
    dtype = DataType(info.dtype)
    if dtype != VOID and not dtype.is_integral:
        raise IRTypeError(f"{call.op.name}: expected integers or booleans, got {dtype}")
    return info


def infer_logic(call: Call) -> StructInfo:
    """As arithmetic, of booleans."""
    infos = operand_infos(call)
    dtype = common_dtype(call, infos)
    if dtype not in (VOID, "bool"):
        raise IRTypeError(f"{call.op.name}: expected booleans, got {dtype}")
    return infer_comparison(call)


def operands(x1: Expr, x2: Expr) -> Replacements:
    """Both operands, a Python number as a constant of the other's dtype."""
    lhs, rhs = match_scalars(x1, x2)
    return {"x1": lhs, "x2": rhs}


@operator(
    "relax.add",
    infer_arithmetic,
    te=topi.add,
    numpy=in_float64(np.add),
    traits=Trait.ELEMENTWISE | Trait.COMMUTATIVE | Trait.EXACT,
)
def add(x1: Expr, x2: Expr) -> Replacements:
    """x1 + x2."""
    return operands(x1, x2)


@operator(
    "relax.subtract",
    infer_arithmetic,
    te=topi.subtract,
    numpy=in_float64(np.subtract),
    traits=Trait.ELEMENTWISE | Trait.EXACT,
)
def subtract(x1: Expr, x2: Expr) -> Replacements:
    """x1 - x2."""
    return operands(x1, x2)


@operator(
    "relax.multiply",
    infer_arithmetic,
    te=topi.multiply,
    numpy=in_float64(np.multiply),
    traits=Trait.ELEMENTWISE | Trait.COMMUTATIVE | Trait.EXACT,
)
def multiply(x1: Expr, x2: Expr) -> Replacements:
    """x1 * x2."""
    return operands(x1, x2)


@operator(
    "relax.divide",
    infer_arithmetic,
    te=topi.divide,
    numpy=reference.division(np.divide, reference.truncated),
    traits=Trait.ELEMENTWISE | Trait.EXACT,
)
def divide(x1: Expr, x2: Expr) -> Replacements:
    """x1 / x2."""
    return operands(x1, x2)


@operator(
    "relax.floor_divide",
    infer_arithmetic,
    te=topi.floor_divide,
    numpy=reference.division(reference.floor, np.floor_divide),
    traits=Trait.ELEMENTWISE,
)
def floor_divide(x1: Expr, x2: Expr) -> Replacements:
    """The quotient rounded down."""
    return operands(x1, x2)


@operator(
    "relax.power",
    infer_arithmetic,
    te=topi.power,
    numpy=in_float64(reference.power),
    traits=Trait.ELEMENTWISE,
)
def power(x1: Expr, x2: Expr) -> Replacements:
    """x1 to the power of x2: of integers modulo the type, 1 / x1**-x2 truncated for x2 below 0."""
    return operands(x1, x2)


@operator(
    "relax.mod",
    infer_arithmetic,
    te=topi.mod,
    numpy=reference.division(np.fmod, np.fmod),
    traits=Trait.ELEMENTWISE,
)
def mod(x1: Expr, x2: Expr) -> Replacements:
    """The remainder of truncated division."""
    return operands(x1, x2)


@operator(
    "relax.floor_mod",
    infer_arithmetic,
    te=topi.floor_mod,
    numpy=reference.division(reference.floor_mod, np.mod),
    traits=Trait.ELEMENTWISE,
)
def floor_mod(x1: Expr, x2: Expr) -> Replacements:
    """The remainder of floor division."""
    return operands(x1, x2)


@operator(
    "relax.maximum",
    infer_arithmetic,
    te=topi.maximum,
    numpy=in_float64(np.maximum),
    traits=Trait.ELEMENTWISE,
)
def maximum(x1: Expr, x2: Expr) -> Replacements:
    """The larger of both."""
    return operands(x1, x2)


@operator(
    "relax.minimum",
    infer_arithmetic,
    te=topi.minimum,
    numpy=in_float64(np.minimum),
    traits=Trait.ELEMENTWISE,
)
def minimum(x1: Expr, x2: Expr) -> Replacements:
    """The smaller of both."""
    return operands(x1, x2)


@operator(
    "relax.log_add_exp",
    infer_arithmetic,
    te=by_operands(
        lambda x, y: binary("log_add_exp", x, y, in_wide_float(topi.log_add_exp))
    ),
    numpy=in_float64(np.logaddexp),
    traits=Trait.ELEMENTWISE,
)
def log_add_exp(x1: Expr, x2: Expr) -> Replacements:
    """log(exp(x1) + exp(x2)), stable."""
    return operands(x1, x2)


@operator(
    "relax.equal",
    infer_comparison,
    te=topi.equal,
    numpy=in_float64(np.equal),
    traits=Trait.ELEMENTWISE | Trait.COMMUTATIVE,
)
def equal(x1: Expr, x2: Expr) -> Replacements:
    """x1 == x2."""
    return operands(x1, x2)


@operator(
    "relax.not_equal",
    infer_comparison,
    te=topi.not_equal,
    numpy=in_float64(np.not_equal),
    traits=Trait.ELEMENTWISE | Trait.COMMUTATIVE,
)
def not_equal(x1: Expr, x2: Expr) -> Replacements:
    """x1 != x2."""
    return operands(x1, x2)


@operator(
    "relax.less",
    infer_comparison,
    te=topi.less,
    numpy=in_float64(np.less),
    traits=Trait.ELEMENTWISE,
)
def less(x1: Expr, x2: Expr) -> Replacements:
    """x1 < x2."""
    return operands(x1, x2)


@operator(
    "relax.less_equal",
    infer_comparison,
    te=topi.less_equal,
    numpy=in_float64(np.less_equal),
    traits=Trait.ELEMENTWISE,
)
def less_equal(x1: Expr, x2: Expr) -> Replacements:
    """x1 <= x2."""
    return operands(x1, x2)


@operator(
    "relax.greater",
    infer_comparison,
    te=topi.greater,
    numpy=in_float64(np.greater),
    traits=Trait.ELEMENTWISE,
)
def greater(x1: Expr, x2: Expr) -> Replacements:
    """x1 > x2."""
    return operands(x1, x2)


@operator(
    "relax.greater_equal",
    infer_comparison,
    te=topi.greater_equal,
    numpy=in_float64(np.greater_equal),
    traits=Trait.ELEMENTWISE,
)
def greater_equal(x1: Expr, x2: Expr) -> Replacements:
    """x1 >= x2."""
    return operands(x1, x2)


@operator(
    "relax.logical_and",
    infer_logic,
    te=topi.logical_and,
    numpy=in_float64(np.logical_and),
    traits=Trait.ELEMENTWISE | Trait.COMMUTATIVE,
)
def logical_and(x1: Expr, x2: Expr) -> Replacements:
    """x1 and x2."""
    return operands(x1, x2)


@operator(
    "relax.logical_or",
    infer_logic,
    te=topi.logical_or,
    numpy=in_float64(np.logical_or),
    traits=Trait.ELEMENTWISE | Trait.COMMUTATIVE,
)
def logical_or(x1: Expr, x2: Expr) -> Replacements:
    """x1 or x2."""
    return operands(x1, x2)


@operator(
    "relax.logical_xor",
    infer_logic,
    te=topi.logical_xor,
    numpy=in_float64(np.logical_xor),
    traits=Trait.ELEMENTWISE | Trait.COMMUTATIVE,
)
def logical_xor(x1: Expr, x2: Expr) -> Replacements:
    """Either, not both."""
    return operands(x1, x2)


@operator(
    "relax.bitwise_and",
    infer_bits,
    te=topi.bitwise_and,
    numpy=in_float64(np.bitwise_and),
    traits=Trait.ELEMENTWISE | Trait.COMMUTATIVE,
)
def bitwise_and(x1: Expr, x2: Expr) -> Replacements:
    """The bitwise and."""
    return operands(x1, x2)


@operator(
    "relax.bitwise_or",
    infer_bits,
    te=topi.bitwise_or,
    numpy=in_float64(np.bitwise_or),
    traits=Trait.ELEMENTWISE | Trait.COMMUTATIVE,
)
def bitwise_or(x1: Expr, x2: Expr) -> Replacements:
    """The bitwise or."""
    return operands(x1, x2)


@operator(
    "relax.bitwise_xor",
    infer_bits,
    te=topi.bitwise_xor,
    numpy=in_float64(np.bitwise_xor),
    traits=Trait.ELEMENTWISE | Trait.COMMUTATIVE,
)
def bitwise_xor(x1: Expr, x2: Expr) -> Replacements:
    """The bitwise exclusive or."""
    return operands(x1, x2)


def infer_integers(call: Call) -> StructInfo:
    """As arithmetic, on integers."""
    info = infer_bits(call)
    if DataType(getattr(info, "dtype", VOID)).is_bool:
        raise IRTypeError(f"{call.op.name}: expected integers, got bool")
    return info


@operator(
    "relax.gcd",
    infer_integers,
    te=integers.gcd,
    numpy=np.gcd,
    traits=Trait.ELEMENTWISE | Trait.COMMUTATIVE,
)
def gcd(x1: Expr, x2: Expr) -> Replacements:
    """The greatest common divisor; of 0 and n it is abs(n)."""
    return operands(x1, x2)


@operator(
    "relax.left_shift",
    infer_bits,
    te=topi.left_shift,
    numpy=in_float64(np.left_shift),
    traits=Trait.ELEMENTWISE,
)
def left_shift(x1: Expr, x2: Expr) -> Replacements:
    """x1 * 2**x2."""
    return operands(x1, x2)


@operator(
    "relax.right_shift",
    infer_bits,
    te=topi.right_shift,
    numpy=in_float64(np.right_shift),
    traits=Trait.ELEMENTWISE,
)
def right_shift(x1: Expr, x2: Expr) -> Replacements:
    """x1 shifted right by x2 bits, the sign kept."""
    return operands(x1, x2)
