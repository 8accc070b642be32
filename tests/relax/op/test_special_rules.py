"""What special functions, sorting, quantisation and other rows of importers refuse."""

import re

import pytest

from weft.relax import op
from weft.relax.struct_info import TensorStructInfo
from weft.support.errors import IRIndexError, IRTypeError, IRValueError


def tensor(*dims, dtype="float32"):
    return TensorStructInfo(dims, dtype)


INTEGERS = tensor(2, dtype="int32")
ONE_OF_FLOATS = (
    "deg2rad rad2deg reciprocal exp2 expm1 log2 log10 log1p erfc erfcx erfinv lgamma digamma "
    "trigamma i0 i0e i1 i1e sinc entr ndtr log_ndtr ndtri frac"
).split()
TWO_OF_FLOATS = (
    "atan2 copysign fmax fmin hypot log_add_exp log_add_exp2 xlogy xlog1py zeta nextafter "
    "exact_floor_divide"
).split()


@pytest.mark.parametrize("name", [*ONE_OF_FLOATS, *TWO_OF_FLOATS])
def test_integers_are_refused_by_name(name, build):
    message = f"relax.{name}: expected a floating-point type, got int32"
    with pytest.raises(IRTypeError, match=re.escape(message)):
        build(getattr(op, name), *[INTEGERS] * (1 + (name in TWO_OF_FLOATS)))


@pytest.mark.parametrize("name", TWO_OF_FLOATS)
def test_operands_of_other_types_and_sizes_are_refused(name, build):
    with pytest.raises(IRTypeError, match="data types must be equal, got float32 and float64"):
        build(getattr(op, name), tensor(2), tensor(2, dtype="float64"))
    with pytest.raises(IRValueError, match=rf"relax\.{name}: cannot broadcast the shapes"):
        build(getattr(op, name), tensor(2), tensor(3))


SCALED = [tensor(2, 3, dtype="int8"), tensor(3), tensor(3, dtype="int8")]
ROWS = [tensor(2, 3), tensor(2, dtype="int64")]
REFUSED = [
    (op.gcd, [tensor(2), tensor(2)], IRTypeError, "relax.gcd: expected integers or booleans"),
    (op.gcd, [tensor(2, dtype="bool")] * 2, IRTypeError, "relax.gcd: expected integers, got bool"),
    (lambda x: op.bitcast(x, "float64"), [tensor(2)], IRTypeError,
     "relax.bitcast: expected a type of as many bits as float32, got float64"),
    (lambda x, n: op.reverse_sequence(x, n, 1, 1), ROWS, IRValueError,
     "seq_axis and batch_axis: expected two axes, got 1 twice"),
    (lambda x, n: op.reverse_sequence(x, n, 2), ROWS, IRIndexError, "seq_axis 2 is out of range"),
    (op.reverse_sequence, [ROWS[0], tensor(3, dtype="int64")], IRValueError,
     "lengths: expected 2 of them, got 3"),
    (op.reverse_sequence, [ROWS[0], tensor(2)], IRTypeError,
     "lengths: expected integers, got float32"),
    (lambda x: op.nn.lrn(x, 0), [tensor(2, 3)], IRValueError, "size: expected 1 or more, got 0"),
    (lambda x: op.nn.lrn(x, 3, 5), [tensor(2, 3)], IRIndexError, "axis 5 is out of range"),
    (lambda x: op.nn.lrn(x, 3), [tensor(2, 3, dtype="int32")], IRTypeError,
     "relax.nn.lrn: expected a floating-point type, got int32"),
    (lambda: op.linspace(0.0, 1.0, -1), [], IRValueError, "steps: expected 0 or more, got -1"),
    (lambda x: op.nn.max_pool_indices(x, (3, 3)), [tensor(1, 1, 2, 4)], IRValueError,
     "axis 0: the window reaches over 3 elements, the padded data has 2"),
    (lambda x: op.nn.max_pool_indices(x, (2, 2)), [tensor(1, 1, 4)], IRValueError,
     "data: expected 4 dimensions, got 3"),
    (lambda x: op.nn.adaptive_max_pool_indices(x, (2, 2)), [tensor(1, 1, 4)], IRValueError,
     "output_size: expected 1 extents, got 2"),
    (lambda x: op.cummax(x, None), [tensor(2)], IRValueError, "axis: expected an axis, got None"),
    (lambda *a: op.dequantize(*a, 2), SCALED, IRIndexError, "axis 2 is out of range"),
    (lambda *a: op.dequantize(*a, 1), [SCALED[0], tensor(4), SCALED[2]], IRValueError,
     "scale: expected 3 elements (axis 1), got 4"),
    (lambda *a: op.quantize(*a, 1, "float32"), [tensor(2, 3), *SCALED[1:]], IRTypeError,
     "out_dtype: expected an integer type, got float32"),
    (lambda *a: op.quantize(*a, 1), [tensor(2, 3), tensor(3, 1), SCALED[2]], IRValueError,
     "scale: expected at most 1 dimension, got 2"),
    (lambda x: op.topk(x, 1, 0, "all"), [tensor(2)], IRValueError,
     "relax.topk: ret_type: expected values, indices, both, got 'all'"),
    (lambda x: op.topk(x, 1, 3), [tensor(2)], IRIndexError, "axis 3 is out of range"),
    (lambda x: op.sort(x, 1), [tensor(2)], IRIndexError, "axis 1 is out of range"),
    (lambda x: op.argsort(x, 1), [tensor(2)], IRIndexError, "axis 1 is out of range"),
    (op.bucketize, [tensor(2), tensor(2, 2)], IRValueError,
     "boundaries: expected 1 dimensions, got 2"),
]  # fmt: skip


@pytest.mark.parametrize(("function", "infos", "error", "message"), REFUSED)
def test_refused(function, infos, error, message, build):
    with pytest.raises(error, match=re.escape(message)):
        build(function, *infos)
