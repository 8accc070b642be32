"""Native calls of a model of symbolic sizes on PyTorch's tensors: a table for sizes that repeat."""

from __future__ import annotations

import threading

import pytest

import weft
from tests.lib.tensor_calls import Two, counted, perceptron
from weft.runtime.call import tensor_call
from weft.runtime.call.tensor_call import CallsBySize
from weft.support.errors import IRTypeError, IRValueError

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

ROWS = torch.export.Dim("rows", max=40)


@pytest.fixture(scope="module")
def net():
    return perceptron()


@pytest.fixture(scope="module")
def compiled(net):
    return weft.compile(net, (torch.zeros(3, 24),), dynamic_shapes=({0: ROWS},), hot_shapes=0)


@pytest.fixture
def watched(compiled):
    compiled._tensor_call = None
    yield counted(compiled)
    del compiled._outputs


def test_sizes_that_repeat_need_no_python(watched, net):
    model, through_python = watched
    for rows in (3, 5, 1, 40):
        x = torch.randn(rows, 24)
        for _ in range(20):
            torch.testing.assert_close(model(x), net(x).detach())
    before = len(through_python)
    assert before < 4 * 12
    for rows in (40, 1, 3, 5):
        x = torch.randn(rows, 24)
        torch.testing.assert_close(model(x), net(x).detach())
    assert len(through_python) == before


def test_a_size_of_zero_goes_through_python(watched):
    for _ in range(20):
        assert watched[0](torch.zeros(0, 24)).shape == (0, 10)
    assert len(watched[1]) == 20


def test_errors_do_not_change_with_the_number_of_calls(watched):
    model, _ = watched
    wrong = [
        torch.zeros(3, 23), torch.zeros(41, 24), torch.zeros(3, 24, dtype=torch.float64),
        torch.zeros(24), torch.zeros(()), "text", 3.0,
    ]  # fmt: skip

    def messages():
        texts = []
        for value in wrong:
            with pytest.raises((IRValueError, IRTypeError)) as caught:
                model(value)
            texts.append(str(caught.value))
        return texts

    first = messages()
    assert "is 41, and the model was compiled for 0 to 40" in first[1]
    for _ in range(20):
        model(torch.zeros(3, 24))
        assert messages() == first


def test_views_are_copied_as_before(watched, net):
    model, _ = watched
    x = torch.randn(24, 6)
    for _ in range(20):
        torch.testing.assert_close(model(x.t()), net(x.t()).detach())


def test_several_symbols_and_results():
    rows, columns = torch.export.Dim("rows", max=50), torch.export.Dim("columns", max=50)
    shape = {0: rows, 1: columns}
    x, y = torch.randn(4, 5), torch.randn(4, 5)
    model = weft.compile(Two(), (x, y), dynamic_shapes=(shape, shape), hot_shapes=0)
    for size in ((4, 5), (5, 4), (1, 1), (2, 50)):
        x, y = torch.randn(size), torch.randn(size)
        for _ in range(12):
            result = model(x, y)
            torch.testing.assert_close(result["sum"], x + y)
            torch.testing.assert_close(result["rest"][0], (x * y).sum(1))
    model, through_python = counted(model)
    model(x, y)
    assert not through_python
    with pytest.raises(IRValueError, match="expected shape"):
        model(x, y[:1])


def test_many_sizes_keep_few_tables(watched, net, monkeypatch):
    monkeypatch.setattr(tensor_call, "_KEPT", 4)
    monkeypatch.setattr(tensor_call, "_COUNTED", 8)
    model, _ = watched
    model(torch.zeros(1, 24))
    for rows in [*range(1, 30), *range(1, 30)]:
        x = torch.randn(rows, 24)
        for _ in range(10):
            torch.testing.assert_close(model(x), net(x).detach())
        assert len(model._tensor_call._calls) <= 4
        assert len(model._tensor_call._counts) <= 8


def test_much_working_memory_goes_through_python(watched, monkeypatch):
    monkeypatch.setattr(tensor_call, "_MOST_WORKING_MEMORY", 100)
    model, through_python = watched
    for _ in range(20):
        model(torch.zeros(8, 24))
    assert len(through_python) == 20


def test_threads_that_call_with_several_sizes(compiled, net):
    compiled._tensor_call = None
    wrong = []

    def call(seed):
        generator = torch.Generator().manual_seed(seed)
        for turn in range(200):
            x = torch.randn(1 + (turn // 20 + seed) % 9, 24, generator=generator)
            with torch.no_grad():
                if not torch.allclose(compiled(x), net(x), atol=1e-5):
                    wrong.append((seed, turn))

    callers = [threading.Thread(target=call, args=(seed,)) for seed in range(4)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert not wrong


def test_ranges_and_what_has_no_shape():
    calls = CallsBySize([("n", 0, 0)], {"n": (2, 5)}, lambda values: lambda x: values["n"])
    inside, outside = torch.zeros(3), torch.zeros(7)
    answers = [[calls(x) for _ in range(20)][-1] for x in (inside, outside)]
    assert answers == [3, NotImplemented]
    assert [calls(*args) for args in ((), (1,), (torch.zeros(()),))] == [NotImplemented] * 3
