"""CompiledModel: called like the model, arrays and tensors in and out, threads, memory, timing."""

from __future__ import annotations

import copy
import pickle
import threading

import numpy as np
import pytest
import torch

import weft
from weft.runtime.model.compiled_model import CompiledModel
from weft.runtime.model.signature import Parameter, Signature, State
from weft.runtime.ndarray import NDArray
from weft.runtime.threads import parallel as threads
from weft.script import ir as I
from weft.script import relax as R
from weft.support.errors import ArtifactFormatError, IRTypeError, IRValueError, UnsupportedError


@I.ir_module
class Affine:
    @R.function
    def main(x: R.Tensor(("n", 4), "float32"), w: R.Tensor((4, "m"), "float32")) -> R.Tuple(
        R.Tensor(("n", "m"), "float32"), R.Tensor(("n", 4), "float32")
    ):
        with R.dataflow():
            y = R.matmul(x, w)
            z = R.nn.relu(x)
            R.output(y, z)
        return (y, z)


X = np.arange(8, dtype="float32").reshape(2, 4) - 4
W = np.ones((4, 3), "float32")


@pytest.fixture(scope="module")
def model():
    return weft.compile(Affine)


def with_signature(model, signature, **options):
    return CompiledModel(model, signature, **options)


NESTED = Signature(
    "Net",
    (Parameter("batch", ("dict", ("x", "w"), (("leaf", 0), ("list", (("leaf", 1),))))),),
    ("batch['x']", "batch['w'][0]"),
    ("dict", ("product", "rest"), (("leaf", 0), ("tuple", (("leaf", 1), ("value", None))))),
    unpacked=True,
)


def test_arrays_give_arrays(model):
    y, z = model(X, w=W)
    assert type(y) is np.ndarray
    np.testing.assert_array_equal(y, X @ W)
    np.testing.assert_array_equal(z, np.maximum(X, 0))
    y, _ = model(weft.nd.array(X), weft.nd.array(W))
    assert type(y) is np.ndarray


def test_nested_arguments_and_results(model):
    nested = with_signature(model, NESTED)
    made = nested({"w": [W], "x": X})
    np.testing.assert_array_equal(made["product"], X @ W)
    assert made["rest"][1] is None
    with pytest.raises(
        IRTypeError, match=r"Net: argument batch\['x'\]: expected dtype float32, got float64"
    ):
        nested({"x": X.astype("float64"), "w": [W]})
    with pytest.raises(
        IRValueError,
        match=r"Net: argument batch\['w'\]\[0\]: expected shape \(4, m\), m=3, got \(5, 3\)",
    ):
        nested(batch={"x": X, "w": [np.ones((5, 3), "float32")]})


@pytest.mark.parametrize(
    "given",
    [
        X[:, ::-1].copy()[:, ::-1], np.asfortranarray(X), np.repeat(X, 2, axis=0)[::2],
        np.broadcast_to(X[:1], (2, 4)), X.view(type("Sub", (np.ndarray,), {})),
    ],
)  # fmt: skip
def test_arrays_of_any_layout(model, given):
    np.testing.assert_array_equal(model(given, W)[0], np.asarray(given) @ W)


def test_read_only_arrays(model):
    given = X.copy()
    given.flags.writeable = False
    np.testing.assert_array_equal(model(given, W)[0], X @ W)


def test_inputs_are_not_copied(model):
    given = model._values((X, W), {})
    assert given[0] is X
    assert given[1] is W


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ((X,), r"main: expected the arguments \(x, w\), missing w"),
        ((X, None), "main: argument w: expected a tensor .*, got NoneType"),
        ((X, 3.5), "main: argument w: expected a tensor, got the number 3.5"),
        ((X, "w"), "main: argument w: expected a tensor .*, got str"),
        ((X, W[0]), r"main: argument w: expected shape \(4, m\), got \(3,\)"),
        ((X, W.astype(">f4")), "main: argument w: "),
        ((X, W.astype(complex)), "main: argument w: "),
    ],
)
def test_arguments_that_do_not_fit(model, args, message):
    with pytest.raises((IRTypeError, IRValueError), match=message):
        model(*args)


def test_ranges_of_symbols(model):
    signature = Signature(
        "Net", NESTED.parameters, NESTED.inputs, ("leaf", 0), ranges=(("n", 2, 3), ("k", 1, 2)),
    )  # fmt: skip
    limited = with_signature(model, signature)
    limited({"x": X, "w": [W]})
    with pytest.raises(
        IRValueError,
        match=(
            r"Net: argument batch\['x'\]: the extent of axis 0 \(n\) is 1, and the model was "
            "compiled for 2 to 3"
        ),
    ):
        limited({"x": X[:1], "w": [W]})


def test_states_are_changed_by_calls(model):
    signature = Signature(
        "Net", (Parameter("x", ("leaf", 0)),), ("x", "weight"), ("leaf", 0), unpacked=True,
        states=(State("weight", 1, 0),),
    )  # fmt: skip
    weight = weft.nd.array(np.ones((4, 4), "float32"))
    stateful = with_signature(model, signature, states=[weight])
    one = np.eye(4, dtype="float32") * 2
    np.testing.assert_array_equal(stateful(one), 2)
    np.testing.assert_array_equal(stateful(one), 4)
    np.testing.assert_array_equal(weight.numpy(), 4)


def test_states_are_saved_with_their_values(model, tmp_path):
    signature = Signature(
        "Net", (Parameter("x", ("leaf", 0)),), ("x", "weight"), ("leaf", 0), unpacked=True,
        states=(State("weight", 1, 0),),
    )  # fmt: skip
    stateful = with_signature(
        model, signature, states=[weft.nd.array(np.ones((4, 4), "float32"))], text=lambda: ""
    )
    one = np.eye(4, dtype="float32") * 2
    stateful(one)
    stateful.save(tmp_path / "state.weft")
    np.testing.assert_array_equal(weft.load(tmp_path / "state.weft")(one), 4)


@pytest.mark.parametrize(
    "repeated", [copy.copy, copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))]
)
def test_a_copy_has_its_own_states(model, repeated):
    signature = Signature(
        "Net", (Parameter("x", ("leaf", 0)),), ("x", "weight"), ("leaf", 0), unpacked=True,
        states=(State("weight", 1, 0),),
    )  # fmt: skip
    stateful = with_signature(
        model, signature, states=[weft.nd.array(np.ones((4, 4), "float32"))], text=lambda: "",
        num_threads=1,
    )  # fmt: skip
    one = np.eye(4, dtype="float32") * 2
    stateful(one)
    other = repeated(stateful)
    assert other.num_threads == 1
    np.testing.assert_array_equal(other(one), 4)
    np.testing.assert_array_equal(other(one), 8)
    np.testing.assert_array_equal(stateful(one), 4)


def test_a_pickle_with_damaged_bytes_says_so(model):
    function, (data, *rest) = model.__reduce__()
    with pytest.raises(ArtifactFormatError, match="main: .*damaged or cut off"):
        function(data[:100], *rest)


def test_inputs_that_a_call_changes(model):
    signature = Signature(
        "Net", NESTED.parameters, NESTED.inputs, ("leaf", 0), unpacked=True, written=((0, 1),)
    )
    given = X.copy()
    with_signature(model, signature)({"x": given, "w": [W]})
    np.testing.assert_array_equal(given, np.maximum(X, 0))


def test_threads_may_call_at_once(model):
    wrong = []

    def work(seed):
        rng = np.random.default_rng(seed)
        for _ in range(50):
            x = rng.random((int(rng.integers(1, 9)), 4), "float32")
            y, _ = model(x, W)
            if not np.allclose(y, x @ W):
                wrong.append(seed)

    workers = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong


def test_the_number_of_threads_is_the_models_own():
    seen = []
    weft.register_func("test.model.threads", lambda x, y: seen.append(threads.num_threads()))

    @I.ir_module
    class Calls:
        @R.function
        def main(x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
            y = R.call_dps_packed("test.model.threads", x, out_sinfo=R.Tensor((2,), "float32"))
            return y

    before = threads.num_threads()
    x = np.zeros(2, "float32")
    weft.compile(Calls, num_threads=before + 3)(x)
    weft.compile(Calls)(x)
    assert seen == [before + 3, before]
    with pytest.raises(IRValueError, match="expected a number of threads from 1 to 4096, got 0"):
        weft.compile(Calls, num_threads=0)


def test_memory(model):
    report = model.memory()
    assert (report.constants, report.outputs, report.total) == (0, None, None)
    assert "outputs   depends on the inputs" in str(report)
    assert model.memory(X, W).outputs == 4 * (2 * 3 + 2 * 4)


def test_memory_of_fixed_shapes_and_constants():
    weight = weft.relax.const(np.ones((4, 256), "float32"))

    @I.ir_module
    class Fixed:
        @R.function
        def main(x: R.Tensor((256, 4), "float32")) -> R.Tensor((256, 256), "float32"):
            with R.dataflow():
                y = R.matmul(x, weight)
                z = R.nn.softmax(y, axis=-1)
                R.output(z)
            return z

    report = weft.compile(Fixed).memory()
    assert report.constants == 4 * 256 * 4
    assert report.outputs == 256 * 256 * 4
    assert report.arena >= 256 * 4
    assert report.total == report.arena + report.constants + report.outputs
    assert str(report).splitlines()[1] == "constants 4,096 bytes"


def test_benchmark_and_profile(model):
    result = model.benchmark(X, W, repeat=3, min_repeat_ms=1)
    assert 0 < result.min <= result.median <= result.max
    assert any("matmul" in call["Name"] for call in model.profile(X, W).calls)


def test_what_is_shown(model, capsys):
    model.show()
    shown = capsys.readouterr().out
    assert "R.matmul(x, w" in shown
    assert model.mod is Affine
    assert repr(model) == "CompiledModel(main(x, w))"


def test_a_model_without_its_module_says_so(model):
    with pytest.raises(UnsupportedError, match=r"cannot be had back; show\(\) prints its text"):
        with_signature(model, NESTED).mod


def test_results_are_the_callers_own(model):
    first, _ = model(X, W)
    first[...] = 7
    np.testing.assert_array_equal(model(X, W)[0], X @ W)
    assert isinstance(weft.relax.VirtualMachine(model, weft.cpu())["main"](X, W)[0], NDArray)


@pytest.mark.torch
def test_tensors_give_tensors_on_the_same_memory(model):
    torch = pytest.importorskip("torch")
    x, w = torch.from_numpy(X.copy()), torch.from_numpy(W)
    y, _ = model(x.requires_grad_(), w)
    assert isinstance(y, torch.Tensor)
    assert not y.requires_grad
    torch.testing.assert_close(y, (x @ w).detach())
    y, _ = model(x.detach().t().contiguous().t(), W)
    assert isinstance(y, torch.Tensor)


@pytest.mark.torch
def test_a_torch_models_results_are_tensors_but_for_arrays(model):
    torch = pytest.importorskip("torch")
    signature = Signature(
        "Net", NESTED.parameters, NESTED.inputs, ("leaf", 0), unpacked=True, source="torch"
    )
    made = with_signature(model, signature)
    assert type(made({"x": X, "w": [W]})) is np.ndarray
    assert isinstance(made({"x": torch.from_numpy(X), "w": [W]}), torch.Tensor)


@I.ir_module
class PassesOn:
    """Returns its argument, alone and in a tuple, and a weight."""

    @R.function
    def main(x: R.Tensor((2, 4), "float32")):
        with R.dataflow():
            y = R.add(x, R.const(np.ones((2, 4), "float32")))
            R.output(y)
        return (x, y, (x, R.const(np.ones(3, "float32"))))


@pytest.mark.parametrize("instrumented", [False, True])
@pytest.mark.parametrize("convert", [np.array, weft.nd.array, lambda x: torch.from_numpy(x.copy())])
def test_results_that_a_graph_passes_on_are_the_callers_own(convert, instrumented):
    model = weft.compile(PassesOn)
    if instrumented:
        model.machine.set_instrument(lambda *_: None)  # runs as bytecode
    given = convert(X)
    x, _, (again, weight) = model(given)
    for result in (x, again, weight):
        result[...] = 7
    np.testing.assert_array_equal(np.from_dlpack(given), X)
    x, y, (again, weight) = model(given)
    for result, expected in ((x, X), (y, X + 1), (again, X), (weight, np.ones(3))):
        np.testing.assert_array_equal(np.asarray(result), expected)
