"""Scopes: threads and tasks that build, export and compile at the same time."""

from __future__ import annotations

import threading

import numpy as np

import weft
from weft import relax, te
from weft.relax.frontend import nn
from weft.support.scopes import Scopes


def run_in_threads(count, work):
    """What ``work(number)`` returned or raised in each of the threads, which start together."""
    together, found = threading.Barrier(count), [None] * count

    def thread(number):
        together.wait()
        try:
            found[number] = work(number)
        except Exception as error:  # noqa: BLE001 - the test compares it
            found[number] = error

    threads = [threading.Thread(target=thread, args=(number,)) for number in range(count)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    return found


def test_a_thread_starts_with_no_scope_open():
    scopes = Scopes("test")
    scopes.push("outer")
    scopes.push("inner")
    assert run_in_threads(1, lambda _: scopes.innermost) == [None]
    assert scopes.innermost == "inner"
    scopes.pop()
    assert scopes.innermost == "outer"
    scopes.pop()
    assert scopes.innermost is None


def test_everything_current_is_of_one_thread():
    x = relax.Var("x", relax.TensorStructInfo((2,), "float32"))
    builder = relax.BlockBuilder()

    def current(_):
        return (
            relax.BlockBuilder.current(), weft.target.Target.current(),
            weft.transform.PassContext.current().opt_level, te.tag_scope("t").get_current(),
        )  # fmt: skip

    with weft.target.Target("llvm"), weft.transform.PassContext(opt_level=0), te.tag_scope("tag"):
        with builder.function("main", [x]):
            assert current(0)[0] is builder
            assert run_in_threads(1, current) == [(None, None, 2, None)]
            builder.emit_func_output(x)
    assert current(0) == (None, None, 2, None)


def test_threads_export_modules_at_the_same_time():
    class Net(nn.Module):
        def __init__(self, width):
            self.layers = nn.ModuleList([nn.Linear(width, width) for _ in range(8)])

        def forward(self, x):
            for layer in self.layers:
                x = nn.op.relu(layer(x))
            return x

    def export(number):
        width = 4 + number
        spec = {"forward": {"x": nn.spec.Tensor((1, width), "float32")}}
        mod, _ = Net(width).export_tvm(spec)
        return [int(extent) for extent in mod["forward"].params[0].struct_info.shape]

    for _ in range(3):
        assert run_in_threads(4, export) == [[1, 4 + number] for number in range(4)]


def test_threads_compile_models_of_torch_at_the_same_time():
    import pytest

    torch = pytest.importorskip("torch")
    nets = [torch.nn.Sequential(torch.nn.Linear(4, 3 + i), torch.nn.ReLU()) for i in range(4)]
    x = torch.ones(2, 4)

    def compiled(number):
        return weft.compile(nets[number], (x,), cache=False)(x).detach().numpy()

    for net, found in zip(nets, run_in_threads(4, compiled), strict=True):
        np.testing.assert_allclose(found, net(x).detach().numpy(), rtol=1e-5, atol=1e-6)
