"""``torch.compile(model, backend="weft")``: what PyTorch promises of a backend, kept by ours."""

from __future__ import annotations

import copy
import warnings

import pytest
import torch

from tests.lib.python_process import output_of
from weft.dynamo import backend as backend_module
from weft.dynamo.backend import FallbackWarning
from weft.relax.frontend.torch import dynamo_capture_subgraphs, relax_dynamo
from weft.support.errors import IRTypeError, PassError

pytestmark = [
    pytest.mark.torch,
    pytest.mark.filterwarnings("ignore:.*:DeprecationWarning", "ignore:.*:FutureWarning"),
]


@pytest.fixture(autouse=True)
def _fresh_dynamo():
    torch._dynamo.reset()
    torch.manual_seed(0)
    backend_module._told.clear()


@pytest.fixture
def compilations(monkeypatch):
    """The graphs that are compiled, none of which may stay with PyTorch."""
    seen = []
    compile_aten = backend_module.compile_aten

    def counted(graph_module, *args):
        seen.append(graph_module)
        return compile_aten(graph_module, *args)

    monkeypatch.setattr(backend_module, "compile_aten", counted)
    with warnings.catch_warnings():
        warnings.simplefilter("error", FallbackWarning)
        yield seen


def compiled(function, **options):
    return torch.compile(function, backend="weft", **options)


def test_the_backend_is_found_by_its_name():
    assert "weft" in torch._dynamo.list_backends(exclude_tags=())


def test_a_perceptron_equals_torch(compilations):
    layers = torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2)
    model = torch.nn.Sequential(*layers).eval()
    x = torch.randn(5, 3)
    with torch.no_grad():
        torch.testing.assert_close(compiled(model)(x), model(x))
    assert len(compilations) == 1


def test_dynamic_sizes_are_symbols_not_recompilations(compilations):
    model = torch.nn.Linear(3, 4).eval()
    fast = compiled(model, dynamic=True)
    with torch.no_grad():
        for size in (5, 7, 2, 31):
            x = torch.randn(size, 3)
            torch.testing.assert_close(fast(x), model(x))
    assert len(compilations) == 1


def test_constants_of_the_graph_are_read(compilations):
    def grown(x):
        return torch.cat([torch.tensor([]), x]) * torch.tensor([1.5, 2.5])

    x = torch.randn(2)
    torch.testing.assert_close(compiled(grown)(x), grown(x))
    assert len(compilations) == 1


def drawn(x):
    rows = torch.rand(x.shape[0], 3) - torch.rand(x.shape[0], 3)
    noise = torch.randn_like(x) * torch.rand(())
    choice = torch.randperm(5), torch.randint(2, 90, (4,)), torch.bernoulli(torch.full((9,), 0.4))
    places = torch.multinomial(torch.tensor([1.0, 5.0, 2.0]), 2)
    return rows, noise, torch.normal(x, 2.0), places, *choice


def test_random_numbers_are_those_of_torch(compilations):
    """In the order of the program, at every call, whatever the size."""
    fast = compiled(drawn, dynamic=True)
    for count in (5, 5, 40):
        results = []
        for function in (drawn, fast):
            torch.manual_seed(count)
            results.append([*function(torch.ones(count, 3)), *function(torch.ones(count, 3))])
        for mine, its in zip(*results, strict=True):
            assert torch.equal(mine, its)
    assert len(compilations) == 1


def test_dropout_follows_the_seed(compilations):
    fast = compiled(torch.nn.Dropout(0.5))
    results = []
    for seed in (3, 3, 4):
        torch.manual_seed(seed)
        results.append(fast(torch.ones(100)))
    assert torch.equal(results[0], results[1])
    assert not torch.equal(results[0], results[2])
    assert 20 < int((results[0] == 0).sum()) < 80
    assert len(compilations) == 1


def test_symbolic_floats_and_conversions(compilations):
    def scaled(x, factor):
        return x.half().float() * factor + x.shape[0] * 0.5

    fast = compiled(scaled, dynamic=True)
    for size, factor in ((5, 0.3), (6, 0.7), (7, 1.25)):
        x = torch.randn(size, 3)
        torch.testing.assert_close(fast(x, factor), scaled(x, factor))
    assert len(compilations) <= 2  # the first float may be taken for a constant


def test_gradients_equal_torch(compilations):
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 2))
    twin = copy.deepcopy(model)
    x = torch.randn(5, 3)
    compiled(model)(x).square().sum().backward()
    twin(x).square().sum().backward()
    for mine, its in zip(model.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(mine.grad, its.grad)
    assert len(compilations) == 2


def test_mutated_inputs_and_buffers_are_mutated(compilations):
    class Counter(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("total", torch.zeros(3))

        def forward(self, x):
            x.mul_(2.0)
            self.total.add_(x.sum(0))
            return x + self.total

    model, twin = Counter(), Counter()
    fast = compiled(model)
    for _ in range(2):
        x = torch.randn(4, 3)
        y = x.clone()
        torch.testing.assert_close(fast(x), twin(y))
        torch.testing.assert_close(x, y)
    torch.testing.assert_close(model.total, twin.total)
    assert compilations


def test_results_that_alias_inputs_do_so_again(compilations):
    def function(x):
        y = x.view(-1)
        return y, x + 1.0

    x = torch.randn(2, 3)
    view, other = compiled(function)(x)
    assert view.data_ptr() == x.data_ptr()
    view[0] = 7.0
    assert x[0, 0] == 7.0
    assert other.data_ptr() != x.data_ptr()


def test_graph_breaks_split_the_model(compilations):
    def function(x):
        y = x * 2.0
        if y.sum() > 0:
            return y + 1.0
        return y - 1.0

    fast = compiled(function)
    for x in (torch.ones(3), -torch.ones(3)):
        torch.testing.assert_close(fast(x), function(x))
    assert len(compilations) == 3


def test_strided_inputs_and_results(compilations):
    def function(x):
        return (x + 1.0).permute(0, 2, 1)

    x = torch.randn(2, 3, 4).transpose(0, 1)
    found, expected = compiled(function)(x), function(x)
    torch.testing.assert_close(found, expected)
    assert found.stride() == expected.stride()


def test_results_may_be_none_numbers_and_nested(compilations):
    def function(x, *, scale=2.0):
        return {"a": (x * scale, None), "n": x.shape[0]}

    x = torch.randn(4)
    found, expected = compiled(function)(x, scale=3.0), function(x, scale=3.0)
    torch.testing.assert_close(found["a"][0], expected["a"][0])
    assert found["a"][1] is None
    assert found["n"] == 4
    assert compilations


@pytest.mark.parametrize("dtype", [torch.bool, torch.int64, torch.float16, torch.bfloat16])
def test_data_types(compilations, dtype):
    x = torch.tensor([[0, 1, 2], [3, 0, 1]]).to(dtype)
    torch.testing.assert_close(compiled(lambda t: t.clone())(x), x)


def test_a_graph_that_weft_cannot_take_runs_in_torch_and_says_so_once():
    def function(x):
        return torch.special.airy_ai(x) + torch.special.airy_ai(x + 1.0)

    x = torch.randn(4)
    told = r"aten\.special_airy_ai\.default, 2 times"

    def twice():
        compiled(function)(x)
        torch._dynamo.reset()
        return compiled(function)(x)

    with pytest.warns(FallbackWarning, match=told) as record:
        found = twice()
    assert sum(issubclass(w.category, FallbackWarning) for w in record) == 1
    torch.testing.assert_close(found, function(x))


class BoundedLinear(torch.nn.Linear):
    """A layer whose weights get other memory in each call."""

    def forward(self, x):
        self.weight.data = torch.renorm(self.weight.data, p=2, dim=0, maxnorm=0.5)
        return super().forward(x)


def test_a_graph_that_assigns_the_data_of_a_parameter_runs_in_torch():
    torch.manual_seed(0)
    model, x = BoundedLinear(4, 3), torch.randn(2, 4)
    mine = copy.deepcopy(model)
    with pytest.warns(FallbackWarning, match="other memory"):
        found = compiled(mine)(x)
    torch.testing.assert_close(found, model(x))
    torch.testing.assert_close(mine.weight, model.weight)


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128])
def test_graphs_take_and_give_complex_numbers(compilations, dtype):
    def turned(x, by, missing):
        y = x * by
        torch._dynamo.graph_break()
        return y.conj(), y.abs(), missing, (y * y).transpose(0, 1)

    for rows in (3, 4, 1):
        given = torch.randn(rows, 5, dtype=dtype).conj(), torch.randn(5, dtype=dtype), None
        found, wanted = compiled(turned)(*given), turned(*given)
        for got, want in zip(found, wanted, strict=True):
            torch.testing.assert_close(got, want)
        assert rows != 3 or found[3].stride() == wanted[3].stride()
    assert compilations


def test_a_module_with_complex_buffers(compilations):
    """What turns queries and keys by their places, as Llama's first code does."""

    class Turned(torch.nn.Module):
        def __init__(self):
            super().__init__()
            angles = torch.outer(torch.arange(16.0), torch.rand(4))
            self.register_buffer("turns", torch.polar(torch.ones(16, 4), angles))

        def forward(self, x):
            pairs = torch.view_as_complex(x.unflatten(-1, (4, 2)))
            return torch.view_as_real(pairs * self.turns[: x.shape[1]]).flatten(2)

    model, x = Turned(), torch.randn(2, 9, 8)
    torch.testing.assert_close(compiled(model)(x), model(x))
    assert len(compilations) == 1


def test_relax_dynamo_takes_a_pipeline(compilations):
    model = torch.nn.Linear(3, 4).eval()
    x = torch.randn(5, 3)
    with torch.no_grad():
        found = torch.compile(model, backend=relax_dynamo("zero"))(x)
        torch.testing.assert_close(found, model(x))
    assert len(compilations) == 1


def test_capturing_subgraphs_keeps_weights_inside_or_as_inputs():
    def model_of():
        torch.manual_seed(1)
        return torch.nn.Linear(3, 4).eval()

    x = torch.randn(5, 3)
    inside = dynamo_capture_subgraphs(model_of(), x)
    assert [var.name_hint for var in inside.get_global_vars()] == ["subgraph_0"]
    assert len(inside["subgraph_0"].params) == 1
    outside = dynamo_capture_subgraphs(model_of(), x, keep_params_as_input=True)
    assert len(outside["subgraph_0"].params) == 3
    assert len(outside["subgraph_0"].attrs["params"]) == 2


def test_options_are_the_backends_own():
    x = torch.ones(3)
    fast = torch.compile(lambda x: x + 1, backend="weft", options={"target": "llvm"})
    assert fast(x).tolist() == [2.0] * 3


REFUSED = """
import pytest, torch

for options, told in (
    ({"nonsense": 1}, "there is no option 'nonsense'; there are the options relax_pipeline"),
    ({"target": "nonsense"}, "target kind 'nonsense' is not known"),
):
    torch._dynamo.reset()
    with pytest.raises(Exception, match=told):
        torch.compile(lambda x: x + 1, backend="weft", options=options)(torch.ones(3))
"""


def test_options_that_the_backend_has_not():
    """In a process of its own: torch's evaluator of frames stays where a backend raised."""
    output_of(REFUSED)


@pytest.mark.parametrize("pipeline", [5, "nope"])
def test_what_is_no_pipeline_is_refused_before_a_graph_falls_back(pipeline):
    with pytest.raises(PassError, match="pipeline"):
        relax_dynamo(pipeline)


def test_only_what_is_called_has_subgraphs():
    with pytest.raises(IRTypeError, match=r"expected a torch\.nn\.Module or a function, got int"):
        dynamo_capture_subgraphs(3)
