"""Models from torch through weft.compile: structure, names, states, dynamic dimensions, errors."""

from __future__ import annotations

import dataclasses
import warnings
from collections import OrderedDict, namedtuple

import numpy as np
import pytest

import weft
from weft.support.errors import IRTypeError, IRValueError

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

Pair = namedtuple("Pair", "first second")  # noqa: PYI024 - what users have


@dataclasses.dataclass
class Result:
    logits: object
    hidden: object


torch.export.register_dataclass(Result, serialized_type_name="test_torch_models.Result")


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 3)

    def forward(self, x, batch, *, scale=2, mask=None):
        y = self.linear(x) + batch["a"][0] * scale
        y = y if mask is None else y * mask
        return {"y": y, "rest": (x, [torch.relu(y)], None)}


def example():
    torch.manual_seed(0)
    return torch.randn(2, 4), {"a": [torch.randn(2, 3)]}


@pytest.fixture(scope="module")
def net():
    torch.manual_seed(1)
    return Net().eval()


@pytest.fixture(scope="module")
def compiled(net):
    return weft.compile(net, example())


def close(found, expected):
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)


def test_it_is_called_like_the_model(net, compiled):
    x, batch = example()
    with torch.no_grad():
        expected = net(x, batch)
    for found in (compiled(x, batch), compiled(x, batch=batch), compiled(batch=batch, x=x),
                  compiled(x, batch, scale=2, mask=None)):  # fmt: skip
        close(found["y"], expected["y"])
        assert found["rest"][2] is None
        assert type(found["rest"][1]) is list
        close(found["rest"][1][0], expected["rest"][1][0])


class SaysMore(torch.nn.Module):
    """Results that are the same in each call."""

    def forward(self, x):
        return {"y": x + 1, "scale": 2.5, "kind": "sum", "is_scaled": True, "rank": 2, "no": None}


def test_results_that_are_fixed(tmp_path):
    x = torch.randn(2, 3)
    compiled = weft.compile(SaysMore(), (x,), cache=False)
    compiled.save(tmp_path / "model.weft")
    for model in (compiled, weft.runtime.load(tmp_path / "model.weft")):
        found = dict(model(x))
        torch.testing.assert_close(torch.as_tensor(found.pop("y")), x + 1)
        assert found == {"scale": 2.5, "kind": "sum", "is_scaled": True, "rank": 2, "no": None}


def test_arrays_in_arrays_out(net, compiled):
    x, batch = example()
    found = compiled(x.numpy(), {"a": [batch["a"][0].numpy()]})
    assert type(found["y"]) is np.ndarray
    close(torch.from_numpy(found["y"]), net(x, batch)["y"].detach())


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda f, x, b: f(x), IRTypeError,
         r"Net: expected the arguments \(x, batch, scale, mask\), missing batch"),
        (lambda f, x, b: f(x, b, 2), IRTypeError, "got 3 by position"),
        (lambda f, x, b: f(x, b, scale=3), IRValueError,
         "argument scale: the model was compiled with 2 there, got 3"),
        (lambda f, x, b: f(x, b, mask=x), IRValueError,
         "argument mask: the model was compiled with it left out, got Tensor"),
        (lambda f, x, b: f(x, {"a": [x]}), IRValueError,
         r"Net: argument batch\['a'\]\[0\]: expected shape \(2, 3\), got \(2, 4\)"),
        (lambda f, x, b: f(x.double(), b), IRTypeError,
         "Net: argument x: expected dtype float32, got float64"),
        (lambda f, x, b: f(x.to("meta"), b), (IRTypeError, IRValueError), "Net: argument x: "),
        (lambda f, x, b: f(x, {"b": b}), IRTypeError,
         "argument batch: expected the keys a, got b"),
    ],
)  # fmt: skip
def test_calls_that_do_not_fit(compiled, call, error, message):
    with pytest.raises(error, match=message):
        call(compiled, *example())


class Structured(torch.nn.Module):
    def forward(self, pair, **extra):
        return Pair(pair.first + 1, OrderedDict(z=pair.second, a=extra["w"] * 2))


def test_named_tuples_ordered_dicts_and_keywords():
    x = torch.arange(3.0)
    program = torch.export.export(Structured(), (Pair(x, x + 1),), {"w": x})
    made = weft.compile(program)
    found = made(Pair(x, x + 1), w=x)
    assert type(found) is Pair
    assert type(found.second) is OrderedDict
    assert list(found.second) == ["z", "a"]
    close(found.second["a"], x * 2)


class Dataclass(torch.nn.Module):
    def forward(self, x):
        return Result(x + 1, (x, x * 2))


def test_data_classes(tmp_path):
    x = torch.arange(3.0)
    made = weft.compile(Dataclass(), (x,))
    assert type(made(x)) is Result
    close(made(x).hidden[1], x * 2)
    made.save(tmp_path / "result.weft")
    assert type(weft.load(tmp_path / "result.weft")(x)) is Result


class Counter(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros(()))
        self.register_buffer("last", torch.zeros(3), persistent=False)

    def forward(self, x):
        self.count.add_(1)
        self.last.copy_(x)
        return x * self.count


def test_buffers_that_calls_change(tmp_path):
    model = Counter()
    made = weft.compile(model, (torch.ones(3),))
    assert model.count.item() == 0
    close(made(torch.ones(3)), torch.ones(3))
    close(made(torch.ones(3) * 2), torch.ones(3) * 4)
    assert model.count.item() == 2
    close(model.last, torch.ones(3) * 2)
    made.save(tmp_path / "counter.weft")
    loaded = weft.load(tmp_path / "counter.weft")
    close(loaded(torch.ones(3)), torch.ones(3) * 3)
    assert model.count.item() == 2


class InPlace(torch.nn.Module):
    def forward(self, x):
        x.mul_(2)
        return x + 1


def test_inputs_that_calls_change():
    made = weft.compile(InPlace(), (torch.ones(3),))
    x = torch.ones(3)
    close(made(x), torch.ones(3) * 3)
    close(x, torch.ones(3) * 2)


def test_inputs_that_calls_change_need_not_be_contiguous():
    made = weft.compile(InPlace(), (torch.ones(2, 3),))
    for x in torch.ones(3, 2).t(), np.ones((3, 2), "float32").T:
        made(x)
        assert x.tolist() == [[2.0] * 3] * 2


def test_a_buffer_that_is_not_contiguous():
    model = Counter()
    model.last = torch.zeros(3, 2).t()
    made = weft.compile(model, (torch.ones(2, 3),))
    close(made(torch.ones(2, 3) * 4), torch.ones(2, 3) * 4)
    close(model.last, torch.ones(2, 3) * 4)


@pytest.mark.parametrize("size", [torch.export.Dim.AUTO, torch.export.Dim("size", min=2)], ids=str)
def test_sizes_of_0_and_1_where_torch_assumes_2(size):
    layers = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.Softmax(0)).eval()
    made = weft.compile(layers, (torch.ones(5, 4),), dynamic_shapes=({0: size},))
    for count in (0, 1, 2, 7):
        given = torch.randn(count, 4)
        close(made(given), layers(given).detach())


def test_dynamic_dimensions(net):
    x, batch = example()
    size = torch.export.Dim("size", max=8)
    made = weft.compile(
        net, (x, batch), dynamic_shapes={"x": {0: size}, "batch": {"a": [{0: size}]}}
    )
    for count in (1, 2, 5, 8):
        given = torch.randn(count, 4), {"a": [torch.randn(count, 3)]}
        close(made(*given)["y"], net(*given)["y"].detach())
    with pytest.raises(
        IRValueError, match=r"Net: argument x: the extent of axis 0 \(.*\) is 9, .* for 0 to 8"
    ):
        made(torch.randn(9, 4), {"a": [torch.randn(9, 3)]})
    with pytest.raises(IRValueError, match=r"argument batch\['a'\]\[0\]: expected shape \(s"):
        made(torch.randn(3, 4), {"a": [torch.randn(4, 3)]})
    report = made.memory()
    assert report.bound
    assert report.outputs == 4 * 8 * (3 + 3)


def test_an_exported_program_and_its_file(net, tmp_path):
    x, batch = example()
    program = torch.export.export(net, (x, batch))
    path = tmp_path / "net.pt2"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.export.save(program, path)
    expected = net(x, batch)["y"].detach()
    for source in (program, path, str(path)):
        made = weft.compile(source)
        close(made(x, batch)["y"], expected)
        close(made(x, batch=batch)["y"], expected)


def test_a_graph_module(net):
    class Plain(torch.nn.Module):
        def forward(self, x, y=None):
            return torch.relu(x) + 1

    graph = torch.fx.symbolic_trace(Plain(), concrete_args={"y": None})
    x = torch.randn(3)
    close(weft.compile(graph, x)(x), torch.relu(x) + 1)


def test_weights_are_not_copied():
    model = torch.nn.Linear(64, 64).eval()
    made = weft.compile(model, torch.ones(1, 64), cache=False)
    addresses = [constant._address for constant in made.program.constants]
    assert model.bias.data_ptr() in addresses


def test_results_are_on_the_memory_that_code_wrote(compiled):
    x, batch = example()
    y = compiled(x, batch)["y"]
    assert y.data_ptr() % 64 == 0
    assert y.untyped_storage().data_ptr()


@pytest.mark.parametrize(
    ("model", "examples", "options", "error", "message"),
    [
        (torch.nn.ReLU(), None, {}, IRValueError, "a ReLU needs example_inputs"),
        (torch.nn.ReLU, None, {}, IRTypeError, "got the class ReLU; make an object of it"),
        (torch.relu, None, {}, IRTypeError, "wrap a function in a torch.nn.Module"),
        (torch.nn.ReLU(), torch.ones(1), {"optset": 3}, IRTypeError,
         "a model from torch takes no option 'optset'; there are custom_converters, fallback"),
        (torch.export.export(torch.nn.ReLU(), (torch.ones(2),)), None, {"dynamic_shapes": {}},
         IRValueError, "an exported program has its dynamic dimensions already"),
    ],
)  # fmt: skip
def test_what_cannot_be_compiled(model, examples, options, error, message):
    with pytest.raises(error, match=message):
        weft.compile(model, examples, **options)


def test_files_that_are_no_programs(tmp_path):
    (tmp_path / "text.pt2").write_text("hello", encoding="utf-8")
    with pytest.raises(IRValueError, match=r"text\.pt2 is no program that torch\.export\.save"):
        weft.compile(tmp_path / "text.pt2")
    (tmp_path / "folder.pt2").mkdir()
    with pytest.raises(IRValueError, match="found a folder"):
        weft.compile(tmp_path / "folder.pt2")
