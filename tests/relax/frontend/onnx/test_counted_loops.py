"""Loops whose condition counts their steps: native, with rows in a tensor; others as before."""

import numpy as np
import pytest
from onnx import TensorProto, helper

import weft
from tests.lib.onnx_models import info, model, node
from weft import relax
from weft.relax.frontend.onnx import from_onnx

pytestmark = pytest.mark.onnx
STEP = [info("t", "int64", []), info("c", "bool", [])]
SIZES = [0, 1, 2, 9]
CONSTANTS = {"zero": 0, "one": 1, "two": 2, "true": True, "first": [0]}
X = [info("x", "float32", ["n", 3])]


def compiled(nodes, outputs, inputs=X, opset=17):
    constants = {name: np.array(value) for name, value in CONSTANTS.items()}
    made = model(nodes, inputs, outputs, constants=constants, opset=opset)
    executable = weft.compile(from_onnx(made), target="llvm")
    return executable, executable.program.functions["main"].native is not None


def called(executable, *args, mode="native"):
    results = relax.VirtualMachine(executable, exec_mode=mode)["main"](*map(np.asarray, args))
    return [r.numpy() for r in (results if isinstance(results, tuple) else (results,))]


def extent():
    """``n``: the rows of x."""
    return [node("Shape", "x", "dims"), node("Gather", "dims zero", "n")]


def running_sums(condition, following="i one"):
    """A body that adds row i of x to s, and scans out s and twice s."""
    nodes = [
        node("Gather", "x i", "row"), node("Add", "s row", "s2"), node("Add", "s2 s2", "twice"),
        node("Add", following, "i2"), *condition,
    ]  # fmt: skip
    results = [("c2", "bool", []), ("i2", "int64", []), ("s2", "float32", [3]),
               ("s2", "float32", [3]), ("twice", "float32", [3])]  # fmt: skip
    states = [info("i", "int64", []), info("s", "float32", [3])]
    return helper.make_graph(nodes, "body", [*STEP, *states], [info(*item) for item in results])


START = [
    node("ReduceSum", "x first", "zeros_of", keepdims=0),
    node("Sub", "zeros_of zeros_of", "s0"),
]


OUTPUTS = ["i_end", "s_end", "sums", "doubles"]


def looping(body, trips="-", going="begins"):
    loop = node("Loop", f"{trips} {going} zero s0", " ".join(OUTPUTS), body=body)
    return [*extent(), *START, node("Less", "zero n", "begins"), loop]


def data(rows):
    return np.random.default_rng(rows).standard_normal((rows, 3)).astype("float32")


def assert_sums(executable, rows, steps, mode):
    x = data(rows)
    end, total, sums, doubles = called(executable, x, mode=mode)
    wanted = np.cumsum(x[:steps], 0, dtype="float32")
    assert end == steps
    np.testing.assert_allclose(total, wanted[-1] if steps else np.zeros(3), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(sums, wanted.reshape(steps, 3), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(doubles, 2 * wanted.reshape(steps, 3), rtol=1e-5, atol=1e-6)


BELOW = [node("Less", "i2 n", "c2")]
BOTH = [node("Less", "t n", "still"), node("Less", "i2 n", "more"), node("And", "still more", "c2")]
AS_FLOATS = [
    node("Cast", "i2", "i2_float", to=TensorProto.FLOAT),
    node("Cast", "n", "n_float", to=TensorProto.FLOAT), node("Less", "i2_float n_float", "c2"),
]  # fmt: skip
GREATER = [node("Greater", "n i2", "c2")]
COUNTED = {
    "while": looping(running_sums(BELOW)),
    "greater": looping(running_sums(GREATER)),
    "with a limit": looping(running_sums(BOTH), "n"),
    "of floats": looping(running_sums(AS_FLOATS)),
    "the condition passed on": looping(
        running_sums([node("Identity", "c", "c2")]), "n", going="true"
    ),
}


@pytest.mark.parametrize("mode", ["native", "bytecode"])
@pytest.mark.parametrize("name", COUNTED)
def test_a_loop_that_counts_to_an_extent_is_native(name, mode):
    executable, is_native = compiled(COUNTED[name], OUTPUTS)
    assert is_native
    for rows in SIZES:
        assert_sums(executable, rows, rows, mode)


def test_calls_do_not_share_their_rows():
    executable, _ = compiled(COUNTED["while"], OUTPUTS)
    first = called(executable, data(9))[2]
    kept = first.copy()
    called(executable, data(9) + 1)
    np.testing.assert_array_equal(first, kept)


FEWER = [node("Add", "i2 two", "later"), node("Less", "later n", "c2")]


@pytest.mark.parametrize("mode", ["native", "bytecode"])
def test_a_condition_that_ends_a_loop_before_its_limit(mode):
    executable, _ = compiled(looping(running_sums(FEWER), "n"), OUTPUTS)
    for rows in SIZES:
        assert_sums(executable, rows, max(rows - 2, min(rows, 1)), mode)


@pytest.mark.parametrize("mode", ["native", "bytecode"])
def test_a_loop_that_runs_at_least_once(mode):
    executable, _ = compiled(looping(running_sums(BELOW), going="true"), OUTPUTS)
    for rows in (1, 2, 9):
        assert_sums(executable, rows, rows, mode)


@pytest.mark.parametrize("mode", ["native", "bytecode"])
def test_a_counter_by_twos(mode):
    executable, _ = compiled(looping(running_sums(BELOW, "i two")), OUTPUTS)
    for rows in SIZES:
        x = data(rows)
        end, _, sums, _ = called(executable, x, mode=mode)
        assert end == (rows + 1) // 2 * 2
        wanted = np.cumsum(x[::2], 0, dtype="float32")
        np.testing.assert_allclose(sums, wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("rows", SIZES)
def test_a_loop_in_a_loop_has_rows_of_its_own(rows):
    inner = running_sums(BELOW)
    outer = helper.make_graph(
        [node("Loop", "- begins zero s0", "ie se in_rows twice_rows", body=inner),
         node("Add", "z se", "z2"), node("Identity", "c", "c3"),
         node("Mul", "in_rows z2", "scaled")],
        "outer", [*STEP[:1], info("c", "bool", []), info("z", "float32", [3])],
        [info("c3", "bool", []), info("z2", "float32", [3]), info("scaled", "float32", ["n", 3])],
    )  # fmt: skip
    nodes = [*extent(), *START, node("Less", "zero n", "begins"),
             node("Loop", "n - s0", "z_end all", body=outer)]  # fmt: skip
    executable, is_native = compiled(nodes, ["z_end", "all"])
    assert is_native
    x = data(rows)
    z, found = called(executable, x)
    sums = np.cumsum(x, 0, dtype="float32")
    total = sums[-1] if rows else np.zeros(3, "float32")
    wanted = [sums * (step + 1) * total for step in range(rows)]
    np.testing.assert_allclose(z, rows * total, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(found, np.reshape(wanted, (rows, rows, 3)), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("mode", ["native", "bytecode"])
def test_a_scan_of_an_extent_is_native(mode):
    body = helper.make_graph(
        [node("Add", "s row", "s2"), node("Mul", "s2 row", "out")], "body",
        [info("s", "float32", [3]), info("row", "float32", [3])],
        [info("s2", "float32", [3]), info("out", "float32", [3])],
    )  # fmt: skip
    scan = node("Scan", "s0 x", "s_end outs", body=body, num_scan_inputs=1,
                scan_output_directions=[1])  # fmt: skip
    executable, is_native = compiled([*START, scan], ["s_end", "outs"])
    assert is_native
    for rows in SIZES:
        x = data(rows)
        total, found = called(executable, x, mode=mode)
        sums = np.cumsum(x, 0, dtype="float32")
        np.testing.assert_allclose(total, sums[-1] if rows else np.zeros(3), rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(found, (sums * x)[::-1], rtol=1e-4, atol=1e-5)
