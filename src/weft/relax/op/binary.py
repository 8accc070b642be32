"""Binary element-wise operators with numpy's broadcasting, comparisons, logic, bits.

A Python number as one operand becomes a constant of the other's dtype.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from weft import topi
from weft.ir.traits import Trait
from weft.relax.expr import Call, Expr
from weft.relax.op.definition import Infer, Replacements, match_scalars, operator
from weft.relax.op.infer import VOID, broadcast_infos, check_float, common_dtype, misfit
from weft.relax.op.lowering import TensorExpression
from weft.relax.op.reference import binary as reference
from weft.relax.op.reference.rule import Reference, in_float64, quiet
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
            raise misfit(call, index, "a tensor", info)
        infos.append(info)
    if len(infos) < 2:
        raise IRTypeError(f"{call.op.name}: expected 2 operands, got {len(infos)}")
    return infos


def infer_arithmetic(call: Call) -> TensorStructInfo | PrimStructInfo:
    """The broadcast shape; both dtypes must be equal."""
    infos = operand_infos(call)
    dtype = common_dtype(call, infos)
    if all(isinstance(info, PrimStructInfo) for info in infos):
        return PrimStructInfo(dtype)
    return broadcast_infos(call, infos, dtype)


def infer_floats(call: Call) -> StructInfo:
    """As arithmetic, of floating-point operands."""
    info = infer_arithmetic(call)
    check_float(call, info)
    return info


def infer_comparison(call: Call) -> StructInfo:
    """The broadcast shape, of booleans; operands of two dtypes are compared in the wider one."""
    infos = operand_infos(call)
    if all(isinstance(info, PrimStructInfo) for info in infos):
        return PrimStructInfo("bool")
    return broadcast_infos(call, infos, "bool")


def infer_bits(call: Call) -> StructInfo:
    """As ``infer_arithmetic``; the dtype must be an integer or bool."""
    info = infer_arithmetic(call)
    dtype = DataType(info.dtype)
    if dtype != VOID and not dtype.is_integral:
        raise IRTypeError(f"{call.op.name}: expected integers or booleans, got {dtype}")
    return info


def infer_logic(call: Call) -> StructInfo:
    """As ``infer_arithmetic``; the dtype must be bool."""
    infos = operand_infos(call)
    dtype = common_dtype(call, infos)
    if dtype not in (VOID, "bool"):
        raise IRTypeError(f"{call.op.name}: expected booleans, got {dtype}")
    return infer_comparison(call)


def operands(x1: Expr, x2: Expr) -> Replacements:
    """Both operands; a Python number becomes a constant of the other's dtype."""
    lhs, rhs = match_scalars(x1, x2)
    return {"x1": lhs, "x2": rhs}


def _binary(
    name: str,
    infer: Infer,
    te: TensorExpression,
    numpy: Reference,
    text: str,
    traits: Trait = Trait.NONE,
) -> Callable[..., Call]:
    """The row of ``relax.<name>(x1, x2)``."""

    def body(x1: Expr, x2: Expr) -> Replacements:
        return operands(x1, x2)

    body.__name__, body.__doc__ = name, text
    row = operator(
        f"relax.{name}",
        infer,
        te=te,
        numpy=quiet(numpy) if Trait.EXACT in traits else in_float64(numpy),
        traits=traits | Trait.ELEMENTWISE,
    )
    return row(body)


_COMMUTATIVE, _EXACT, _FOLLOWS = Trait.COMMUTATIVE, Trait.EXACT, Trait.FOLLOWS


add = _binary(
    "add", infer_arithmetic, topi.add, np.add, "x1 + x2.", _COMMUTATIVE | _EXACT | _FOLLOWS
)
subtract = _binary(
    "subtract", infer_arithmetic, topi.subtract, np.subtract, "x1 - x2.", _EXACT | _FOLLOWS
)
multiply = _binary(
    "multiply",
    infer_arithmetic,
    topi.multiply,
    np.multiply,
    "x1 * x2.",
    _COMMUTATIVE | _EXACT | _FOLLOWS,
)
divide = _binary(
    "divide",
    infer_arithmetic,
    topi.divide,
    reference.division(np.divide, reference.truncated),
    "x1 / x2.",
    _EXACT | _FOLLOWS,
)
floor_divide = _binary(
    "floor_divide",
    infer_arithmetic,
    topi.floor_divide,
    reference.division(reference.floor, np.floor_divide),
    "The quotient rounded down.",
)
power = _binary(
    "power",
    infer_arithmetic,
    topi.power,
    reference.power,
    "x1 ** x2; integers wrap, and a negative exponent gives 1 / x1**-x2 truncated.",
)
mod = _binary(
    "mod",
    infer_arithmetic,
    topi.mod,
    reference.division(np.fmod, np.fmod),
    "The remainder of truncated division.",
)
floor_mod = _binary(
    "floor_mod",
    infer_arithmetic,
    topi.floor_mod,
    reference.division(reference.floor_mod, np.mod),
    "The remainder of floor division.",
)
maximum = _binary(
    "maximum", infer_arithmetic, topi.maximum, np.maximum, "The larger of both.", _FOLLOWS
)
minimum = _binary(
    "minimum", infer_arithmetic, topi.minimum, np.minimum, "The smaller of both.", _FOLLOWS
)
log_add_exp = _binary(
    "log_add_exp",
    infer_floats,
    by_operands(lambda x, y: binary("log_add_exp", x, y, in_wide_float(topi.log_add_exp))),
    np.logaddexp,
    "log(exp(x1) + exp(x2)), without overflow of exp.",
)
equal = _binary("equal", infer_comparison, topi.equal, np.equal, "x1 == x2.", _COMMUTATIVE)
not_equal = _binary(
    "not_equal", infer_comparison, topi.not_equal, np.not_equal, "x1 != x2.", _COMMUTATIVE
)
less = _binary("less", infer_comparison, topi.less, np.less, "x1 < x2.")
less_equal = _binary("less_equal", infer_comparison, topi.less_equal, np.less_equal, "x1 <= x2.")
greater = _binary("greater", infer_comparison, topi.greater, np.greater, "x1 > x2.")
greater_equal = _binary(
    "greater_equal", infer_comparison, topi.greater_equal, np.greater_equal, "x1 >= x2."
)
logical_and = _binary(
    "logical_and", infer_logic, topi.logical_and, np.logical_and, "x1 and x2.", _COMMUTATIVE
)
logical_or = _binary(
    "logical_or", infer_logic, topi.logical_or, np.logical_or, "x1 or x2.", _COMMUTATIVE
)
logical_xor = _binary(
    "logical_xor",
    infer_logic,
    topi.logical_xor,
    np.logical_xor,
    "Whether exactly one of x1 and x2 is true.",
    _COMMUTATIVE,
)
bitwise_and = _binary(
    "bitwise_and", infer_bits, topi.bitwise_and, np.bitwise_and, "The bitwise and.", _COMMUTATIVE
)
bitwise_or = _binary(
    "bitwise_or", infer_bits, topi.bitwise_or, np.bitwise_or, "The bitwise or.", _COMMUTATIVE
)
bitwise_xor = _binary(
    "bitwise_xor",
    infer_bits,
    topi.bitwise_xor,
    np.bitwise_xor,
    "The bitwise exclusive or.",
    _COMMUTATIVE,
)


def infer_integers(call: Call) -> StructInfo:
    """As ``infer_arithmetic``; the dtype must be an integer."""
    info = infer_bits(call)
    if DataType(getattr(info, "dtype", VOID)).is_bool:
        raise IRTypeError(f"{call.op.name}: expected integers, got bool")
    return info


gcd = _binary(
    "gcd",
    infer_integers,
    integers.gcd,
    np.gcd,
    "The greatest common divisor; of 0 and n it is abs(n).",
    _COMMUTATIVE,
)
left_shift = _binary("left_shift", infer_bits, topi.left_shift, np.left_shift, "x1 * 2**x2.")
right_shift = _binary(
    "right_shift",
    infer_bits,
    topi.right_shift,
    np.right_shift,
    "x1 shifted right by x2 bits, the sign kept.",
)
