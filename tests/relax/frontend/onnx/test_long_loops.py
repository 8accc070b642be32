"""Loops of many steps: natively and as bytecode, in memory that does not grow with them."""

import tracemalloc

import numpy as np
import pytest
from onnx import helper

import weft
from tests.lib.onnx_models import info, model, node
from weft import relax
from weft.relax.frontend.onnx import from_onnx

pytestmark = pytest.mark.onnx
MILLION = 1_000_000
STEP = [info("i", "int64", []), info("c", "bool", [])]


def compiled(nodes, inputs, outputs, constants=None):
    """The executable of a model, and whether its main function is native."""
    constants = {name: np.array(value) for name, value in (constants or {}).items()}
    executable = weft.compile(
        from_onnx(model(nodes, inputs, outputs, constants=constants)), target="llvm"
    )
    return executable, executable.program.functions["main"].native is not None


def called(executable, *args, mode="native"):
    """The results as arrays."""
    results = relax.VirtualMachine(executable, exec_mode=mode)["main"](*map(np.asarray, args))
    return [r.numpy() for r in (results if isinstance(results, tuple) else (results,))]


def counting():
    """Counts to m, or until the sum of x reaches the limit, and adds up the numbers."""
    nodes = [
        node("Add", "s i", "s2"),
        node("Less", "s2 limit", "c2"),
    ]
    state = [info("s", "int64", [])]
    body = helper.make_graph(
        nodes, "body", [*STEP, *state], [info("c2", "bool", []), info("s2", "int64", [])]
    )
    inputs = [info("m", "int64", []), info("limit", "int64", []), info("x", "int64", [])]
    return compiled([node("Loop", "m - x", "y", body=body)], inputs, ["y"])


def test_a_million_steps_of_a_number():
    executable, is_native = counting()
    assert is_native
    limit = 2**62
    assert called(executable, MILLION, limit, 5) == [5 + MILLION * (MILLION - 1) // 2]
    assert called(executable, MILLION, 100, 0) == [105]
    assert called(executable, 0, limit, 5) == [5]
    assert called(executable, 60_000, limit, 5, mode="bytecode") == [5 + 60_000 * 59_999 // 2]


def growing():
    nodes = [node("Concat", "s x", "s2", axis=0), node("Identity", "c", "c2")]
    body = helper.make_graph(
        nodes, "body", [*STEP, info("s", "int64", ["k"])],
        [info("c2", "bool", []), info("s2", "int64", ["k2"])],
    )  # fmt: skip
    inputs = [info("m", "int64", []), info("x", "int64", ["n"])]
    return compiled([node("Loop", "m - x", "y", body=body)], inputs, ["y"])[0]


def test_a_state_that_grows_keeps_no_older_ones():
    executable = growing()
    x = np.arange(64)
    np.testing.assert_array_equal(called(executable, 3, x)[0], np.tile(x, 4))
    called(executable, 10, x)
    tracemalloc.start()
    called(executable, 1500, x)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * 64 * 8 * 1500  # all of the states would take 750 times the last one


def scanning():
    """Each step scans out the sum so far, times a vector."""
    nodes = [node("Add", "s i", "s2"), node("Mul", "s2 x", "row"), node("Identity", "c", "c2")]
    body = helper.make_graph(
        nodes, "body", [*STEP, info("s", "int64", [])],
        [info("c2", "bool", []), info("s2", "int64", []), info("row", "int64", ["k"])],
    )  # fmt: skip
    inputs = [info("m", "int64", []), info("t", "int64", []), info("x", "int64", ["n"])]
    return compiled([node("Loop", "m - t", "s rows", body=body)], inputs, ["s", "rows"])[0]


@pytest.mark.parametrize("steps", [0, 1, 40])
def test_what_is_scanned_out(steps):
    x = np.array([1, -2, 3])
    total, rows = called(scanning(), steps, 7, x)
    sums = 7 + np.cumsum(np.arange(steps))
    assert total == (sums[-1] if steps else 7)
    np.testing.assert_array_equal(rows, sums[:, None] * x)


def test_scanning_out_writes_each_row_once():
    executable = scanning()
    called(executable, 10, 0, np.arange(1000))
    tracemalloc.start()
    called(executable, 1000, 0, np.arange(1000))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 5 * 8 * 1000 * 1000  # memory that has doubled, and the result
