"""Calls on PyTorch's own tensors in one native function, and those that go through Python."""

from __future__ import annotations

import gc
import sys
import threading

import pytest

import weft
from tests.lib.python_process import output_of
from tests.lib.tensor_calls import Two, counted, perceptron
from weft.runtime.call.plan import plan_of_entry
from weft.runtime.call.spec import FunctionSpec, ParamSpec
from weft.runtime.call.tensor_call import _is_direct
from weft.runtime.threads import parallel as threads
from weft.runtime.vm.bytecode import NativeEntry
from weft.support.errors import IRIndexError, IRTypeError, IRValueError, RuntimeFault

torch = pytest.importorskip("torch")


@pytest.fixture(scope="module")
def net():
    return perceptron()


@pytest.fixture(scope="module")
def compiled(net):
    return weft.compile(net, (torch.zeros(3, 24),), num_threads=2)


@pytest.fixture
def watched(compiled):
    compiled(torch.zeros(3, 24))
    yield counted(compiled)
    del compiled._outputs


def test_tensors_need_no_python(watched, net):
    model, through_python = watched
    x = torch.randn(3, 24)
    result = model(x)
    assert not through_python
    assert type(result) is torch.Tensor
    assert result.is_contiguous()
    assert not result.requires_grad
    torch.testing.assert_close(result, net(x).detach())


def test_results_are_fresh_and_are_given_back(watched):
    model, through_python = watched
    x = torch.randn(3, 24)
    first, second = model(x), model(x)
    assert first.data_ptr() != second.data_ptr()
    kept = first.clone()
    second.fill_(0)
    assert torch.equal(first, kept)
    before = sys.getrefcount(x), sys.getrefcount(NotImplemented), sys.getrefcount(False)
    for _ in range(1000):
        model(x)
    after = sys.getrefcount(x), sys.getrefcount(NotImplemented), sys.getrefcount(False)
    assert all(abs(a - b) < 20 for a, b in zip(after, before, strict=True))
    assert not through_python


def test_memory_of_results_does_not_grow():
    resource = pytest.importorskip("resource")
    x = torch.zeros(1 << 20)
    model = weft.compile(torch.nn.ReLU(), (x,))
    model(x)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(100):  # 400 MB, if they stayed
        model(x)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000


def test_the_structure_of_results():
    x, y = torch.randn(2, 5), torch.randn(2, 5)
    model = weft.compile(Two(), (x, y))
    model(x, y)
    model, through_python = counted(model)
    found = model(x, y)
    assert not through_python
    torch.testing.assert_close(found["sum"], x + y)
    torch.testing.assert_close(found["rest"][0], (x * y).sum(1))


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int64, torch.float64, torch.bool])
def test_data_types(dtype):
    x = torch.tensor([[1, 0], [1, 1]], dtype=dtype)
    model = weft.compile(Transposed(), (x,))
    model(x)
    model, through_python = counted(model)
    found = model(x)
    assert not through_python
    assert found.dtype == dtype
    assert torch.equal(found, x.T)


class Transposed(torch.nn.Module):
    """A copy of another order."""

    def forward(self, x):
        return x.transpose(0, 1).contiguous()


def test_a_tensor_of_no_axes():
    model = weft.compile(torch.nn.Sigmoid(), (torch.tensor(0.0),))
    assert model(torch.tensor(0.0)).item() == 0.5
    assert model(torch.tensor(0.0)).shape == ()


UNUSUAL = {
    "strided": lambda: torch.randn(24, 3).T,
    "strided along an axis of one more": lambda: torch.randn(3, 48)[:, ::2],
    "negated where it is read": lambda: torch._neg_view(torch.randn(3, 24)),
    "a parameter": lambda: torch.nn.Parameter(torch.randn(3, 24)),
    "an array": lambda: torch.randn(3, 24).numpy(),
    "expanded": lambda: torch.randn(1, 24).expand(3, 24),
}


@pytest.mark.parametrize("make", UNUSUAL.values(), ids=UNUSUAL)
def test_unusual_inputs_go_the_way_through_python(watched, net, make):
    model, through_python = watched
    x = make()
    found = torch.as_tensor(model(x))
    assert through_python
    torch.testing.assert_close(found, net(torch.as_tensor(x)).detach())


WRONG = {
    "shape": (lambda: (torch.zeros(4, 24),), IRValueError, r"expected shape \(3, 24\)"),
    "axes": (lambda: (torch.zeros(72),), IRValueError, "shape"),
    "type": (lambda: (torch.zeros(3, 24).double(),), IRTypeError, "expected dtype float32"),
    "device": (lambda: (torch.zeros(3, 24, device="meta"),), IRTypeError, "on the CPU"),
    "sparse": (lambda: (torch.zeros(3, 24).to_sparse(),), IRTypeError, "torch.strided"),
    "too few": (tuple, TypeError, "argument"),
    "too many": (lambda: (torch.zeros(3, 24),) * 2, TypeError, "argument"),
    "no tensor": (lambda: (None,), IRTypeError, "expected a tensor"),
}


@pytest.mark.parametrize(("make", "error", "message"), WRONG.values(), ids=WRONG)
def test_what_does_not_fit_is_explained(watched, make, error, message):
    with pytest.raises(error, match=message):
        watched[0](*make())
    assert not torch.isnan(watched[0](torch.zeros(3, 24))).any()


def test_the_first_call_may_be_the_wrong_one(net):
    model = weft.compile(net, (torch.zeros(3, 24),))
    with pytest.raises(IRValueError, match=r"expected shape \(3, 24\)"):
        model(torch.zeros(1, 24))
    torch.testing.assert_close(model(torch.ones(3, 24)), net(torch.ones(3, 24)).detach())


def test_a_fault_is_raised_and_its_outputs_are_given_back():
    table = torch.nn.Embedding(10, 4)
    index = torch.tensor([1, 9])
    model = weft.compile(table, (index,))
    torch.testing.assert_close(model(index), table(index).detach())
    for _ in range(3):
        with pytest.raises((IRIndexError, RuntimeFault), match="10"):
            model(torch.tensor([1, 10]))
    torch.testing.assert_close(model(index), table(index).detach())


def test_threads_may_call_at_once(net):
    model = weft.compile(perceptron(2048), (torch.zeros(3, 24),), num_threads=2)
    reference = perceptron(2048)
    wrong = []

    def work(seed):
        generator = torch.Generator().manual_seed(seed)
        for _ in range(50):
            x = torch.randn(3, 24, generator=generator)
            if not torch.allclose(model(x), reference(x), atol=1e-5):
                wrong.append(seed)

    workers = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong


def test_the_number_of_threads_is_the_models_own(watched):
    with threads.own_num_threads(3):
        watched[0](torch.zeros(3, 24))
        assert threads.num_threads() == 3


def test_the_number_of_threads_may_change():
    class Threads(torch.nn.Module):
        """What takes a while, in many rows."""

        def forward(self, x):
            return torch.exp(x) * 2

    x = torch.randn(256, 1024)
    model = weft.compile(Threads(), (x,), num_threads=2)
    first, call = model(x), model._tensor_call
    model.num_threads = 1
    assert torch.equal(model(x), first)
    assert model._tensor_call is not call
    model.num_threads = None
    assert torch.equal(model(x), first)
    assert model.num_threads is None


def test_tensors_that_require_gradients_and_inference(watched, net):
    x = torch.randn(3, 24)
    expected = net(x).detach()
    found = watched[0](x.clone().requires_grad_())
    assert not found.requires_grad
    torch.testing.assert_close(found, expected)
    with torch.inference_mode():
        torch.testing.assert_close(watched[0](torch.tensor(x.numpy())), expected)


def test_an_instrument_sees_the_calls(net):
    model = weft.compile(net, (torch.zeros(3, 24),))
    model(torch.zeros(3, 24))
    seen = []
    model.machine.set_instrument(lambda func, name, before, ret, *args: seen.append(name))
    model(torch.zeros(3, 24))
    assert seen


def test_a_model_outlives_its_last_name():
    x = torch.randn(3, 24)
    call = weft.compile(perceptron(), (x,)).__call__
    expected = call(x)
    gc.collect()
    assert torch.equal(call(x), expected)


def test_a_dispatch_mode_and_a_transform(watched, net):
    from torch.utils.flop_counter import FlopCounterMode

    x = torch.randn(3, 24)
    with FlopCounterMode(display=False):
        torch.testing.assert_close(watched[0](x), net(x).detach())
    with pytest.raises(IRTypeError, match="expected an array on the CPU"):
        torch.func.vmap(watched[0])(torch.zeros(2, 3, 24))


def test_a_loaded_model_imports_no_llvm(compiled, tmp_path):
    path = tmp_path / "m.weft"
    compiled.save(path)
    program = f"""
import sys, torch, weft.runtime
model = weft.runtime.load({str(path)!r})
x = torch.zeros(3, 24)
model(x)
model._outputs = None
print(tuple(model(x).shape), [name for name in sys.modules if name.startswith("llvmlite")])
"""
    printed = output_of(program)
    assert printed == "(3, 10) []\n"


def entry_of(x=(), **fields):
    """``main(x) -> y`` of fixed shapes, as the table says it, but for what is given."""
    params = (
        ParamSpec("buffer", "x", "float32", (3,), **dict(x)),
        ParamSpec("buffer", "y", "float32", (3,)),
    )
    whole = {"outputs": (("float32", (3,)),), "result": ("output", 0), **fields}
    return NativeEntry(FunctionSpec("main", params), **whole)


@pytest.mark.parametrize(
    "entry",
    [
        entry_of({"noalias": True}, outputs=(), result=("tuple", ())),
        entry_of({"strides": (1,)}),
        entry_of(checks=(("shape", "x", (3,), (3,), (4,), ()),)),
        entry_of(layout=(("tuple", (("leaf", 0),)),)),
        entry_of(outputs=(("float32", (0,)),)),
        entry_of(outputs=(("float16x4", (3,)),)),
        entry_of(result=("input", 0)),
        entry_of(result=("tuple", (("output", 0), ("output", 0)))),
    ],
)
def test_plans_that_the_table_cannot_say_go_the_way_through_python(entry):
    assert _is_direct(plan_of_entry(entry_of()))
    assert not _is_direct(plan_of_entry(entry))
