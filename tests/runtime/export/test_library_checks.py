"""Exported libraries and wrong arguments: an error code and a message, never a signal.

Every row is called through ctypes in a process of its own, whose end by a signal is a failure.
"""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest

import weft
from weft.runtime.export import library
from weft.runtime.model.compiled_model import CompiledModel
from weft.runtime.model.signature import Parameter, Signature
from weft.script import ir as I
from weft.script import relax as R

pytestmark = pytest.mark.skipif(library.find_compiler() is None, reason="there is no C compiler")
CALLER = '''
"""Calls a library with the arguments of each row; prints [code, message or results] for each."""
import ctypes, json, sys

class Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("ndim", ctypes.c_int32), ("dtype", ctypes.c_int32)]

library = ctypes.CDLL(sys.argv[1])
library.net_create.restype = ctypes.c_void_p
library.net_error.restype = ctypes.c_char_p
model = ctypes.c_void_p(library.net_create())
KINDS = {"f": (ctypes.c_float, 11), "i": (ctypes.c_int64, 4)}
kept = []

def tensor(row):
    """(kind, values, shape, changes): a tensor of memory that this process owns."""
    kind, values, shape, changes = row
    ctype, number = KINDS[kind]
    memory = (ctype * (len(values) + 2))(*values)
    extents = (ctypes.c_int64 * (len(shape) + 1))(*shape)
    kept.append((memory, extents))
    given = Tensor(ctypes.addressof(memory), extents, len(shape), number)
    given.data = given.data + changes.pop("offset", 0)
    if "same" in changes:
        given.data = ctypes.addressof(kept[changes.pop("same")][0])
    for name, value in changes.items():
        setattr(given, name, value)
    return given

def array(rows):
    return None if rows is None else (Tensor * (len(rows) + 1))(*map(tensor, rows))

for call in json.load(sys.stdin):
    kept.clear()
    inputs, outputs = array(call["in"]), array(call["out"])
    if call.get("index") is not None:
        shape = None if call["null_shape"] else (ctypes.c_int64 * 8)()
        code = library.net_output_shape(inputs, call["index"], shape)
        good = list(shape)[:2] if shape else []
    else:
        code = library.net_run(model if call["model"] else None, inputs, outputs)
        good = list(kept[-1][0])[:-2] if kept else []
    print(json.dumps([code, library.net_error().decode() if code else good]), flush=True)
'''


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """The library of ``y = x * x + k`` with 2 to 64 rows."""

    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor(("n", 4), "float32"), k: R.Tensor((), "int64")):
            with R.dataflow():
                y = R.add(R.multiply(x, x), R.astype(k, "float32"))
                R.output(y)
            return y

    parameters = (Parameter("x", ("leaf", 0)), Parameter("k", ("leaf", 1)))
    signature = Signature(
        "net", parameters, ("x", "k"), ("leaf", 0), ranges=(("n", None, 64),)
    )  # fmt: skip
    model = CompiledModel(weft.compile(Module), signature, text=lambda: "")
    folder = tmp_path_factory.mktemp("library")
    model.export_library(folder / "net.so")
    (folder / "caller.py").write_text(CALLER, encoding="utf-8")
    return folder


def called(folder, *calls):
    """What each call answers; the process ends by itself."""
    done = subprocess.run(
        [sys.executable, "caller.py", str(folder / "net.so")], cwd=folder, text=True,
        input=json.dumps(calls), capture_output=True, timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr or f"ended by signal {-done.returncode}"
    return [json.loads(line) for line in done.stdout.splitlines()]


def X(extents=(2, 4), count=8, **changes):
    return ("f", list(range(count)), extents, changes)


def K(**changes):
    return ("i", [3], (), changes)


Y = X
GOOD = (X(), K())
ROOM = (Y(),)


def call(inputs=GOOD, outputs=ROOM, model=True, index=None, null_shape=False):
    return {
        "in": inputs, "out": outputs, "model": model, "index": index, "null_shape": null_shape
    }  # fmt: skip


WRONG = {
    "no model": (call(model=False), "expected a model, got NULL"),
    "no inputs": (call(None), "expected an array of 2 inputs, got NULL"),
    "no outputs": (call(outputs=None), "expected an array of 1 outputs, got NULL"),
    "data": (
        call((X(data=None), K())),
        "input 0 (x): expected data, got NULL; only a tensor without elements may have none",
    ),
    "a number": (call((X(), K(data=None))), "input 1 (k): expected data, got NULL"),
    "output": (call(outputs=(Y(data=None),)), "output 0 (output): expected data, got NULL"),
    "shape": (
        call((X(shape=None), K())), "input 0 (x): expected a shape of 2 extents, got NULL",
    ),
    "output's shape": (
        call(outputs=(Y(shape=None),)), "output 0 (output): expected a shape of 2 extents, got NULL"
    ),
    "ndim": (call((X((8,)), K())), "input 0 (x): expected 2 dimensions, got 1"),
    "ndim below 0": (call((X(ndim=-1), K())), "input 0 (x): expected 2 dimensions, got -1"),
    "output's ndim": (
        call(outputs=(Y((2, 4, 1)),)), "output 0 (output): expected 2 dimensions, got 3"
    ),
    "dtype": (call((X(dtype=12), K())), "input 0 (x): expected dtype float32, got float64"),
    "no dtype": (
        call((X(dtype=99), K())),
        "input 0 (x): expected dtype float32 (number 11), got the number 99, which no dtype has",
    ),
    "negative dtype": (call((X(dtype=-1), K())), "got the number -1, which no dtype has"),
    "output's dtype": (
        call(outputs=(Y(dtype=4),)), "output 0 (output): expected dtype float32, got int64"
    ),
    "extent": (
        call((X((4, 2)), K())), "input 0 (x): expected an extent of 4 at axis 1, got 2"
    ),
    "output's extent": (
        call(outputs=(Y((1, 4)),)), "output 0 (output): expected an extent of 2 at axis 0, got 1"
    ),
    "below 0": (
        call((X((-2, 4)), K())), "input 0 (x): expected an extent of 0 or more at axis 0, got -2"
    ),
    "output below 0": (
        call(outputs=(Y((2, -4)),)),
        "output 0 (output): expected an extent of 0 or more at axis 1, got -4",
    ),
    "huge": (
        call((X((2**62, 4)), K())),
        "input 0 (x): expected a tensor that memory can hold, got extents of more than 2^63 bytes",
    ),
    "range": (
        call((X((65, 4)), K())),
        "input 0 (x): the extent of axis 0 (n) is 65, and the model was compiled for at most 64; "
        "compile it again with another range",
    ),
    "misaligned": (
        call((X(offset=1), K())),
        "input 0 (x): expected memory aligned to 4 bytes, the size of float32, got address",
    ),
    "misaligned output": (
        call(outputs=(Y(offset=2),)), "output 0 (output): expected memory aligned to 4 bytes"
    ),
    "overlap": (
        call(outputs=(Y(same=0),)),
        "output 0 (output): expected memory of its own, got memory that input 0 (x) has, too",
    ),
    "output_shape: no inputs": (call(None, index=0), "expected an array of 2 inputs, got NULL"),
    "output_shape: no number": (
        call((X(), K(data=None)), index=0), "input 1 (k): expected data, got NULL"
    ),
    "output_shape: no shape": (
        call(index=0, null_shape=True), "expected memory for 2 extents of the shape, got NULL"
    ),
    "output_shape: index": (call(index=1), "expected an output below 1, got 1"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_argument_is_a_code_and_a_message(exported, name):
    wrong, message = WRONG[name]
    (code, text), (later, result) = called(exported, wrong, call())
    assert code == -1
    assert message in text
    assert later == 0, "the next call works"
    assert result == [float(v * v + 3) for v in range(8)]


def test_what_is_legal_stays_legal(exported):
    empty = call((X((0, 4), 0, data=None), K()), (Y((0, 4), 0, data=None),))
    no_data = call((X(data=None), K()), None, index=0)
    offset = call((X((1, 4), offset=4), K()), (Y((1, 4)),))
    scalar = call((X(), K(shape=None)))
    answers = called(exported, empty, no_data, offset, scalar)
    assert [code for code, _ in answers] == [0, 0, 0, 0], answers
    assert answers[1][1] == [2, 4]
    assert answers[2][1][:4] == [4.0, 7.0, 12.0, 19.0]


def test_the_range_is_told_as_python_tells_it(exported):
    loaded = weft.load(exported / "net.so")
    with pytest.raises(weft.TVMError, match="is 65, and the model was compiled for at most 64; "):
        loaded(np.zeros((65, 4), "float32"), np.array(3))


def test_working_memory_that_64_bits_do_not_hold(tmp_path_factory):
    """Sizes follow from the extents of an input of no elements: nothing else bounds them."""

    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor(("n", 0), "float32"), k: R.Tensor(("m", 0), "float32")):
            with R.dataflow():
                e = R.exp(R.matmul(x, R.permute_dims(k)))
                y = R.add(R.sum(e), R.sum(R.matmul(R.permute_dims(e), e)))
                R.output(y)
            return y

    folder = tmp_path_factory.mktemp("sizes")
    weft.compile(Module).export_library(folder / "net.so")
    (folder / "caller.py").write_text(CALLER, encoding="utf-8")
    inputs = [(X((2**40, 0), 0), X((2**40, 0), 0)), (X((2, 0), 0), X((3, 0), 0))]
    answers = called(folder, *[call(given, (Y((), 1),)) for given in inputs])
    assert answers[0][0] == -1
    assert "does not fit in 64 bits" in answers[0][1]
    assert answers[1] == [0, [6.0 + 18.0]]
