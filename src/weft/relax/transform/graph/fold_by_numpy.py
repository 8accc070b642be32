"""Folds calls on constants by numpy, where that gives the same bits as compiled code would.

The numpy reference in an operator's row is used if the row says that it is exact, or if the
operator only moves elements; views of constants share their memory. A model has hundreds of such
calls on its weights (424 for the norms of a ResNet-50), and compiling a kernel for each would take
seconds.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from weft.ir.module import IRModule
from weft.ir.node import expect
from weft.ir.op import Op
from weft.ir.traits import Trait, has
from weft.relax.expr import Call, Constant
from weft.relax.ir.lattice import tensor_dims
from weft.relax.ir.shape_arith import constant_value
from weft.relax.reference.frame import Frame
from weft.relax.reference.interpreter import Interpreter
from weft.relax.reference.operators import reference_of
from weft.relax.struct_info import TensorStructInfo
from weft.runtime.ndarray import NDArray
from weft.runtime.weight_names import inherit_name
from weft.support.arrays import in_order
from weft.support.dtype import DataType
from weft.support.errors import TVMError

_INTEGERS: Final = tuple(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))
_ASTYPE: Final = Op.get("relax.astype")


def is_exact(call: Call) -> bool:
    """Whether numpy computes the operator of a call exactly as compiled code does."""
    return call.op is _ASTYPE or has(call.op, Trait.MOVES | Trait.EXACT)


def fold_by_numpy(call: Call) -> Constant | None:
    """The result of a call on constants that numpy computes exactly; None for other calls."""
    info = call.struct_info
    if not isinstance(info, TensorStructInfo) or info.dtype == "void":
        return None
    dims = tensor_dims(info)
    if dims is None or any(constant_value(dim) is None for dim in dims):
        return None
    kind = DataType(info.dtype)
    if call.op is _ASTYPE:
        return _cast(expect(call.args[0], Constant), kind)
    if not is_exact(call) or not (has(call.op, Trait.MOVES) or _counts(kind)):
        return None
    array = _computed(call, kind)
    if array is None:
        return None
    sources = [arg.data for arg in call.args if isinstance(arg, Constant)]
    return Constant(inherit_name(NDArray(array, kind), sources))


def _counts(kind: DataType) -> bool:
    """Whether numpy has numbers of this type."""
    return not kind.is_bool and kind.bits >= 8


def _computed(call: Call, kind: DataType) -> np.ndarray | None:
    """The result of the numpy reference; None if that raises, as the program would."""
    reference = reference_of(call.op) if isinstance(call.op, Op) else None
    if reference is None:
        return None
    interpreter, frame = Interpreter(IRModule({})), Frame(call.op.name)
    try:
        values = [
            arg.data._array if isinstance(arg, Constant) else interpreter.evaluate(arg, frame)
            for arg in call.args
        ]
        with np.errstate(all="ignore"):
            result = reference(*values, **interpreter.attributes(call, frame))
            return _own(np.asarray(result), kind)
    except TVMError:
        return None


def _own(result: np.ndarray, kind: DataType) -> np.ndarray:
    """The array in a type, in order and writable (broadcast arrays are not)."""
    if result.dtype == kind.numpy and not result.flags.c_contiguous:
        return in_order(result)
    return np.require(result, kind.numpy, ["C", "W"])


def _cast(constant: Constant, kind: DataType) -> Constant | None:
    """Integers cast to other integers or to float32; None for other casts."""
    if str(constant.data.dtype) not in _INTEGERS or str(kind) not in (*_INTEGERS, "float32"):
        return None
    cast = NDArray(constant.data._array.astype(str(kind)), kind)
    return Constant(inherit_name(cast, [constant.data]))
