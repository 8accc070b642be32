"""One contract, three printers: a function behind its wrapper, a model, and an exported C library.

All three are called with the same arguments. They accept the same ones, and refuse the others for
the same reason, each in its own words.
"""

from __future__ import annotations

import ctypes
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import weft
from weft.runtime.export import library
from weft.script import ir as I
from weft.script import relax as R
from weft.script import tir as T

WRAPPER, MODEL, C = "wrapper", "model", "C"


@T.prim_func
def squares(
    x_handle: T.handle, y_handle: T.handle, k: T.int64, z_handle: T.handle, u_handle: T.handle,
    out_handle: T.handle,
):  # fmt: skip
    T.func_attr({"tir.noalias": True})
    n = T.int64()
    x = T.match_buffer(x_handle, (n, 4))
    y = T.match_buffer(y_handle, (n * 2,))  # noqa: F841
    z = T.match_buffer(z_handle, (n // k,))  # noqa: F841
    u = T.match_buffer(u_handle, (n,))  # noqa: F841
    out = T.match_buffer(out_handle, (n, 4))
    for i, j in T.grid(n, 4):
        out[i, j] = x[i, j] * x[i, j]


@I.ir_module
class Squares:
    @R.function
    def main(
        x: R.Tensor(("n", 4), "float32"), y: R.Tensor(("n * 2",), "float32"), k: R.Prim(value="k"),
        z: R.Tensor(("n // k",), "float32"), u: R.Tensor(("rows",), "float32"),
    ):  # fmt: skip
        R.func_attr({"tir_var_upper_bound": {"n": 8}})
        n = T.int64()
        with R.dataflow():
            v = R.match_cast(u, R.Tensor((n,), "float32"))
            out = R.multiply(x, x)
            R.output(v, out)
        return out


class Tensor(ctypes.Structure):
    """A tensor of the C library."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("ndim", ctypes.c_int32),
        ("dtype", ctypes.c_int32),
    ]

    @staticmethod
    def of(array):
        shape = (ctypes.c_int64 * max(array.ndim, 1))(*array.shape)
        dtype = {"float32": 11, "float64": 12, "int64": 4}[str(array.dtype)]
        return Tensor(array.ctypes.data, shape, array.ndim, dtype)


@pytest.fixture(scope="module")
def callers(tmp_path_factory):
    """For each printer what calls the function: inputs and an output; the results, or an error."""
    built = weft.build(squares)["squares"]
    machine = weft.relax.VirtualMachine(weft.relax.build(Squares), weft.cpu())

    def wrapper(inputs, out):
        built(*inputs, out)
        return out

    callers = {WRAPPER: wrapper, MODEL: lambda inputs, out: machine["main"](*inputs).numpy()}
    if library.find_compiler() is not None:
        folder = tmp_path_factory.mktemp("contract")
        weft.compile(Squares).export_library(folder / "net.so")
        callers[C] = c_caller(ctypes.CDLL(str(folder / "net.so")))
    return callers


def c_caller(net):
    net.net_create.restype = ctypes.c_void_p
    net.net_error.restype = ctypes.c_char_p
    model = ctypes.c_void_p(net.net_create())

    def call(inputs, out):
        arrays = [np.asarray(value) for value in inputs]
        tensors = (Tensor * len(arrays))(*map(Tensor.of, arrays))
        if net.net_run(model, tensors, (Tensor * 1)(Tensor.of(out))):
            raise weft.TVMError(net.net_error().decode())
        return out

    return call


def floats(*shape):
    return np.arange(int(np.prod(shape)), dtype="float32").reshape(shape)


def inputs(rows=3, k=2, **changed):
    """Arguments that fit, but for those that are changed."""
    fitting = {
        "x": floats(rows, 4),
        "y": floats(rows * 2),
        "k": k,
        "z": floats(rows // k if k else 0),
        "u": floats(rows),
    }
    return list({**fitting, **changed}.values())


def misaligned(*shape):
    return np.zeros(int(np.prod(shape)) * 4 + 1, "uint8")[1:].view("float32").reshape(shape)


GOOD = {
    "three rows": inputs(),
    "as many as there may be": inputs(8),
    "no rows": inputs(0),
    "k of 1": inputs(k=1),
}

SHAPE = r"expected shape .*, got \("
# reason: the words of the wrapper, of the model, of the C library; None where it has no such check
REASONS = {
    "dtype": ("expected dtype float32, got float64",) * 3,
    "rank": (SHAPE, SHAPE, r"expected \d dimensions, got \d"),
    "extent": (SHAPE, SHAPE, r"expected an extent of \d+.* at axis \d, got \d"),
    "alignment": ("expected memory aligned to 4 bytes, the size of float32",) * 3,
    "cast": (SHAPE, r"expected shape \(n,\).* got", r"expected 3, got 2 \(shape\)"),
    "limit": (None, *["is 9, (but|and) memory was planned for at most 8"] * 2),
    "division": (
        *["divides by 0 for these arguments"] * 2,
        r"its extent \(+n // k\)+ at axis 0 divides by 0 for these inputs",
    ),
}
BAD = {
    "x is of doubles": (0, "dtype", inputs(x=floats(3, 4).astype("float64"))),
    "u is of doubles": (4, "dtype", inputs(u=floats(3).astype("float64"))),
    "x has one axis": (0, "rank", inputs(x=floats(12))),
    "y has two axes": (1, "rank", inputs(y=floats(6, 1))),
    "x has no axes": (0, "rank", inputs(x=np.zeros((), "float32"))),
    "x has rows of 5": (0, "extent", inputs(x=floats(3, 5))),
    "y is too short": (1, "extent", inputs(y=floats(5))),
    "z is too long": (3, "extent", inputs(z=floats(2))),
    "z is empty": (3, "extent", inputs(z=floats(0))),
    "x is misaligned": (0, "alignment", inputs(x=misaligned(3, 4))),
    "u is misaligned": (4, "alignment", inputs(u=misaligned(3))),
    "u has other rows": (4, "cast", inputs(u=floats(2))),
    "nine rows": (0, "limit", inputs(9)),
    "k is 0": (3, "division", inputs(k=0)),
    "k is 0, z is too long": (3, "division", inputs(k=0, z=floats(1))),
    "x is of doubles, y is too short": (
        0, "dtype", inputs(x=floats(3, 4).astype("float64"), y=floats(1)),
    ),
    "x has rows of 5, z is too long": (0, "extent", inputs(x=floats(3, 5), z=floats(2))),
    "u is of doubles, x has rows of 5": (
        4, "dtype", inputs(x=floats(3, 5), u=floats(3).astype("float64")),
    ),
}  # fmt: skip
printers = pytest.mark.parametrize("printer", [WRAPPER, MODEL, C])


def caller_of(callers, printer):
    if printer not in callers:
        pytest.skip("there is no C compiler")
    return callers[printer]


@printers
@pytest.mark.parametrize("case", GOOD)
def test_all_accept(callers, printer, case):
    values = GOOD[case]
    out = np.full(values[0].shape, np.nan, "float32")
    result = caller_of(callers, printer)(values, out)
    np.testing.assert_array_equal(result, values[0] ** 2)


@printers
@pytest.mark.parametrize("case", BAD)
def test_all_refuse_for_the_same_reason(callers, printer, case):
    call = caller_of(callers, printer)
    argument, reason, values = BAD[case]
    words = dict(zip((WRAPPER, MODEL, C), REASONS[reason], strict=True))[printer]
    out = np.zeros((len(values[4]), 4), "float32")
    if words is None:
        call(values, out)
        return
    with pytest.raises(weft.TVMError, match=words) as error:
        call(values, out)
    named = re.search(r"(?:argument|input) (\d)", str(error.value))
    if named is not None:
        assert int(named[1]) == argument


@settings(max_examples=150, deadline=None)
@given(
    st.integers(0, 8), st.integers(-2, 4), st.sampled_from("xyzu"),
    st.lists(st.integers(0, 9), max_size=3),
)  # fmt: skip
def test_any_shapes_are_accepted_by_all_or_refused_by_all(callers, rows, k, name, shape):
    changed = {} if len(shape) == 3 else {name: floats(*shape)}
    values = inputs(rows, k, **{"z": floats(max(rows // k, 0) if k else 0), **changed})
    refused = {}
    for printer, call in callers.items():
        out = np.zeros((len(values[4]) if values[4].ndim else 1, 4), "float32")
        try:
            call(values, out)
        except weft.TVMError as error:
            refused[printer] = str(error)
    assert len(refused) in (0, len(callers)), refused


@pytest.mark.parametrize("printer", [WRAPPER, C])
def test_an_output_shares_no_memory(callers, printer):
    """A model's outputs are fresh; who gives the output himself may not give an input's memory."""
    values = inputs()
    words = {WRAPPER: r"argument 5 \(out\): expected an output that shares no memory .* 0 \(x\)",
             C: r"expected memory of its own, got memory that input 0 \(x\) has, too"}  # fmt: skip
    with pytest.raises(weft.TVMError, match=words[printer]):
        caller_of(callers, printer)(values, values[0])
