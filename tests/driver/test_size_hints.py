"""``weft.compile(size_hints=)``: cost models know usual sizes, results do not depend on them."""

import numpy as np
import pytest

import weft
from weft.support.errors import IRTypeError, IRValueError
from weft.tir.size_hints import size_hints_of

torch = pytest.importorskip("torch")
TOKENS = torch.export.Dim("tokens")


class Perceptron(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Linear(48, 96), torch.nn.Linear(96, 5)

    def forward(self, x):
        return self.second(torch.relu(self.first(x)))


@pytest.fixture
def model():
    torch.manual_seed(1)
    return Perceptron().eval()


def compiled(model, rows=4, **options):
    shapes = ({0: TOKENS},)
    return weft.compile(model, (torch.ones(rows, 48),), dynamic_shapes=shapes, **options)


def kernel_hints(monkeypatch, model, **options):
    """The hints of the kernels at the time of their schedules."""
    seen = []
    from weft.backends.cpu.schedules import Default

    apply = Default.apply

    def watched(self, func, target, tunable):
        seen.append(size_hints_of(func))
        return apply(self, func, target, tunable)

    monkeypatch.setattr(Default, "apply", watched)
    compiled(model, cache=False, **options)
    return seen


def test_example_inputs_say_what_is_usual(monkeypatch, model):
    hints = kernel_hints(monkeypatch, model, rows=4)
    assert {4} == {size for hint in hints for size in hint.values()}


def test_the_users_word_counts_more(monkeypatch, model):
    hints = kernel_hints(monkeypatch, model, rows=4, size_hints={"tokens": 50})
    assert {50} == {size for hint in hints for size in hint.values()}


@pytest.mark.parametrize("usual", [1, 17, 1000])
def test_results_of_all_sizes_are_those_of_torch(model, usual):
    program = compiled(model, size_hints={"tokens": usual})
    for rows in (0, 1, 2, 17, 130):
        x = torch.randn(rows, 48)
        np.testing.assert_allclose(program(x), model(x).detach(), atol=1e-5)


def test_onnx_models_take_hints_by_the_names_of_their_dimensions():
    onnx = pytest.importorskip("onnx")
    helper = onnx.helper
    x = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["batch", 3])
    y = helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, ["batch", 3])
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "net", [x], [y])
    file = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    program = weft.compile(file, size_hints={"batch": 7})
    data = np.arange(-6, 6, dtype="float32").reshape(4, 3)
    np.testing.assert_array_equal(program(data), np.maximum(data, 0))
    with pytest.raises(IRValueError, match="no dynamic dimension is called 'rows'; .* has batch"):
        weft.compile(file, size_hints={"rows": 7})


@pytest.mark.parametrize(
    ("hints", "error", "words"),
    [
        ({"rows": 7}, IRValueError, "no dynamic dimension is called 'rows'; the model has tokens"),
        ({"tokens": 0}, IRValueError, r"size_hints\['tokens'\] must be an integer from 1 on"),
        ({"tokens": "8"}, IRValueError, "must be an integer from 1 on, got '8'"),
        ([8], IRTypeError, r"expected size_hints=\{'batch': 8\}"),
    ],
)
def test_wrong_hints(model, hints, error, words):
    with pytest.raises(error, match=words):
        compiled(model, size_hints=hints)


def test_a_model_of_fixed_sizes_has_no_dimension_to_hint_at(model):
    with pytest.raises(IRValueError, match="the model has none"):
        weft.compile(model, (torch.ones(2, 48),), size_hints={"tokens": 3})


def test_functions_without_a_graph_take_no_hints():
    from weft.script import tir as T

    @T.prim_func
    def doubled(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
        for i in range(4):
            B[i] = A[i] * T.float32(2)

    with pytest.raises(IRValueError, match="size_hints are for models"):
        weft.compile(doubled, size_hints={"n": 3})
