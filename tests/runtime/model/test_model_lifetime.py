"""Models that go: at once when nobody has them any more, and when they are closed."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
import weakref
from contextlib import suppress

import numpy as np
import pytest

import weft
from tests.lib.python_process import output_of
from weft import relax
from weft.runtime.call.native_entry import ArenaPool

ONES = np.ones((2, 8), "float32")


@pytest.fixture
def no_collector():
    with suppress(ImportError):  # errors of its import keep the frame in which that happens
        import torch  # noqa: F401
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    x = relax.Var("x", relax.TensorStructInfo((2, 8), "float32"))
    weight = relax.const(np.eye(8, dtype="float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        y = builder.emit(relax.op.matmul(x, weight))
        builder.emit_func_output(builder.emit(relax.op.matmul(relax.op.nn.relu(y), weight)))
    file = tmp_path_factory.mktemp("models") / "model.weft"
    weft.compile(builder.get(), target="llvm -num-cores=1", cache=False).save(file)
    return file


def parts_of(model):
    """Weak references to a model, its machine and its loaded code."""
    libraries = [host.library for host in model.hosts.values()]
    return [weakref.ref(part) for part in (model, model.machine, *libraries)]


def use_no(model):
    pass


def use_numpy(model):
    np.testing.assert_array_equal(model(ONES), ONES)


def use_torch(model):
    torch = pytest.importorskip("torch")
    assert model(torch.ones(2, 8)).sum() == 16


def use_bytecode(model):
    model.profile(ONES)
    model.machine.save_function("main", "saved", ONES)
    model.machine["saved"]()
    model.machine.set_instrument(lambda *_: None)
    model(ONES)


@pytest.mark.parametrize("use", [use_no, use_numpy, use_torch, use_bytecode])
def test_a_model_goes_with_its_last_name(path, use, no_collector):
    model = weft.load(path)
    use(model)
    parts = parts_of(model)
    assert len(parts) > 2
    del model
    assert [part() for part in parts] == [None] * len(parts)


def test_a_compiled_model_of_torch_goes_with_its_last_name(no_collector):
    torch = pytest.importorskip("torch")
    model = weft.compile(torch.nn.Linear(8, 8).eval(), (torch.ones(2, 8),), cache=False)
    model(torch.ones(2, 8))
    parts = parts_of(model)
    del model
    assert [part() for part in parts] == [None] * len(parts)


def test_a_closed_model_lets_go_and_says_so(path, no_collector):
    model = weft.load(path)
    use_numpy(model)
    parts = parts_of(model)[1:]
    model.close()
    model.close()
    assert [part() for part in parts] == [None] * len(parts)
    for use in (
        lambda: model(ONES), lambda: model.profile(ONES), lambda: model["main"],
        lambda: model.to_bytes(), model.memory, model.script,
    ):  # fmt: skip
        with pytest.raises(weft.TVMError, match="the model is closed; compile or load it again"):
            use()


def test_working_memory_of_threads_that_ended_is_given_back():
    pool, both = ArenaPool(), threading.Barrier(4)

    def call():
        block = pool.take(64)
        both.wait()
        pool.give(block)
        both.wait()

    threads = [threading.Thread(target=call) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert pool._free == []
    pool.give(pool.take(64))
    assert len(pool._free) == 1


def reload(path, count):
    """The model is loaded anew while four threads call it; references to all parts there were."""
    current, runs, wrong = [weft.load(path)], [True], []

    def call():
        while runs:
            if not np.array_equal(current[0](ONES), ONES):
                wrong.append("another result")

    threads = [threading.Thread(target=call) for _ in range(4)]
    for thread in threads:
        thread.start()
    parts = []
    for _ in range(count):
        parts += parts_of(current[0])
        current[0] = weft.load(path)
    runs.clear()
    for thread in threads:
        thread.join()
    parts += parts_of(current[0])
    current.clear()
    assert not wrong
    return parts


@pytest.mark.parametrize("count", [10, pytest.param(200, marks=pytest.mark.slow)])
def test_reloads_under_calling_threads_leave_nothing(path, count, no_collector):
    parts = reload(path, count)
    assert len(parts) >= 3 * (count + 1)
    assert sum(part() is not None for part in parts) == 0


RELOADS = """
import sys, threading, time
import numpy as np
import weft

path, count = sys.argv[1], int(sys.argv[2])
ones = np.ones((2, 512), "float32")

def load():
    model = weft.load(path)
    model(ones)
    return model

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1])

load()
without = resident()
current, calls, runs = [load()], [0] * 4, [True]

def call(number):
    while runs:
        current[0](ones)
        calls[number] += 1

threads = [threading.Thread(target=call, args=(number,)) for number in range(4)]
for thread in threads:
    thread.start()

def pages():  # once no thread has the model before any more
    for number in range(4):
        before = calls[number]
        while calls[number] < before + 2:
            time.sleep(0.001)
    return resident() - without

one, most = pages(), 0
for _ in range(count):
    current[0] = load()
    most = max(most, pages())
runs.clear()
print(most / one)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc/self/statm")
@pytest.mark.parametrize("count", [3, pytest.param(200, marks=pytest.mark.slow)])
def test_reloads_under_calling_threads_take_the_memory_of_one_model(tmp_path, count):
    x = relax.Var("x", relax.TensorStructInfo((2, 512), "float32"))
    builder, value = relax.BlockBuilder(), x
    with builder.function("main", [x]):
        for number in range(16):
            weight = np.full((512, 1024), number, "float32")
            value = builder.emit(relax.op.matmul(value, relax.const(weight)))
            value = builder.emit(relax.op.strided_slice(value, [1], [0], [512]))
        builder.emit_func_output(value)
    weft.compile(builder.get(), target="llvm -num-cores=1", cache=False).save(tmp_path / "m.weft")
    printed = output_of(RELOADS, str(tmp_path / "m.weft"), str(count), timeout=3000)
    assert float(printed) < 1.3


def test_a_model_with_operators_of_torch_runs_in_a_new_process(tmp_path):
    torch = pytest.importorskip("torch")

    class Airy(torch.nn.Module):
        def forward(self, x):
            return torch.special.airy_ai(x) + 1

    x = torch.ones(2, 8)
    weft.compile(Airy(), (x,), fallback="torch", cache=False).save(tmp_path / "m.weft")
    program = (
        "import sys, numpy, weft\n"
        "if sys.argv[2:]: sys.modules['torch'] = None\n"
        "print(weft.load(sys.argv[1])(numpy.ones((2, 8), 'float32')).tolist())"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "m.weft")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == str(Airy()(x).numpy().tolist())
    done = subprocess.run([*command, "none"], capture_output=True, text=True, check=False)
    assert "UnsupportedError: the model needs PyTorch for aten.special_airy_ai" in done.stderr


_KEPT_TO_THE_END = """
import ctypes, sys, types
keeper = sys.modules["keeper"] = types.ModuleType("keeper")  # its names go after those of weft
import numpy
import weft
keeper.model = weft.runtime.load(sys.argv[1])
keeper.model(numpy.ones((2, 8), "float32"))
for name, module in list(sys.modules.items()):  # as a library does that never gives them back
    if name == "keeper" or name.startswith("weft"):
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(module))
"""


def test_an_interpreter_ends_quietly_with_a_model_that_was_called(path):
    done = subprocess.run(
        [sys.executable, "-c", _KEPT_TO_THE_END, str(path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
