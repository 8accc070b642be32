"""Programs for single sizes: compiled by another process, found in the cache, equal in results."""

from __future__ import annotations

import logging
import subprocess
import sys
import time

import numpy as np
import pytest

import weft
from weft import relax
from weft.driver import specialization
from weft.driver.model_source import ModelSource
from weft.driver.sources import Imported
from weft.support.errors import CodegenError, IRTypeError, IRValueError, UnsupportedError
from weft.target.target import Target

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """One cache for all tests here, which compile the same network."""
    return tmp_path_factory.mktemp("kept")


@pytest.fixture(autouse=True)
def folder(kept, monkeypatch):
    monkeypatch.setenv("WEFT_CACHE_DIR", str(kept))
    monkeypatch.delenv("WEFT_NO_CACHE", raising=False)
    return kept / "models"


def net():
    torch.manual_seed(0)
    layers = torch.nn.Linear(12, 7), torch.nn.ReLU(), torch.nn.Linear(7, 5)
    return torch.nn.Sequential(*layers).eval()


def compiled(model, **options):
    rows = torch.export.Dim("rows", max=50)
    return weft.compile(model, torch.randn(4, 12), dynamic_shapes=({0: rows},), **options)


@pytest.fixture
def no_process(monkeypatch):
    def run(*_):
        raise AssertionError("a process was started")

    monkeypatch.setattr(specialization, "_run", run)


def test_a_program_for_one_size_and_again_from_the_cache(folder, monkeypatch):
    model, module = compiled(net()), net()
    x, other = torch.randn(3, 12), torch.randn(8, 12)
    before = model(x)
    model.specialize(x)
    assert model.hot_shapes.symbols == ("rows",)
    assert model.hot_shapes.extents == ((3,),)
    torch.testing.assert_close(model(x), before)
    torch.testing.assert_close(model(other), module(other).detach())
    (program,) = model.hot_shapes._programs.values()
    assert program.program.functions["main"].params[0][1][2] == (3, 12)
    assert model.benchmark(x, number=1, repeat=1).mean > 0
    assert model.profile(x) is not None

    monkeypatch.setattr(specialization, "_run", None)  # no process is needed any more
    again = compiled(net(), num_threads=1)
    again.specialize(x)
    assert [item.num_threads for item in again.hot_shapes._programs.values()] == [1]
    torch.testing.assert_close(again(x), before)


def test_what_calls_spend_their_time_on_is_compiled_in_the_background(monkeypatch):
    monkeypatch.setenv("WEFT_HOT_SECONDS", "0")
    model = compiled(net())
    x = torch.randn(9, 12)
    before = model(x)
    for _ in range(6000):
        if model.hot_shapes.extents:
            break
        time.sleep(0.1)
    assert model.hot_shapes.extents == ((9,),)
    torch.testing.assert_close(model(x), before)


def test_errors_name_the_symbol_with_a_program_and_without(no_process):
    model = compiled(net())
    wrong = [torch.randn(3, 11), torch.randn(51, 12), torch.randn(3, 12, dtype=torch.float64)]

    def messages():
        texts = []
        for x in wrong:
            with pytest.raises((IRValueError, IRTypeError)) as caught:
                model(x)
            texts.append(str(caught.value))
        return texts

    before = messages()
    assert "expected shape (rows, 12)" in before[0]
    special = weft.compile(net(), torch.randn(3, 12))
    model.hot_shapes._programs[(3,)] = special
    assert messages() == before


@pytest.mark.parametrize("options", [{"hot_shapes": 0}, {"cache": False}])
def test_models_that_have_none(options):
    model = compiled(net(), **options)
    assert model.hot_shapes is None
    with pytest.raises(UnsupportedError, match="with a cache and with hot_shapes above 0"):
        model.specialize(torch.randn(3, 12))


def test_a_fixed_model_and_a_loaded_one_have_none(tmp_path, monkeypatch):
    monkeypatch.setenv("WEFT_CACHE_DIR", str(tmp_path / "own"))
    fixed = weft.compile(net(), torch.randn(4, 12))
    assert fixed.hot_shapes is None
    assert not list((tmp_path / "own" / "models").glob("*-source"))
    compiled(net()).save(tmp_path / "net.weft")
    assert weft.load(tmp_path / "net.weft").hot_shapes is None


def test_a_model_that_changes_its_buffers_has_none():
    class Counter(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("count", torch.zeros(()))

        def forward(self, x):
            self.count.add_(1)
            return x + self.count

    assert compiled(Counter()).hot_shapes is None


def test_a_source_that_is_gone_or_damaged_is_told(tmp_path, monkeypatch):
    monkeypatch.setenv("WEFT_CACHE_DIR", str(tmp_path))
    model = compiled(net())
    (source,) = (tmp_path / "models").glob("*-source")
    source.write_bytes(b"nothing that was written")
    with pytest.raises(CodegenError, match="the process that compiles for"):
        model.specialize(torch.randn(3, 12))
    source.unlink()
    with pytest.raises(CodegenError, match="no longer in the cache"):
        model.specialize(torch.randn(3, 12))
    assert model(torch.randn(3, 12)).shape == (3, 5)


def test_wrong_inputs_are_refused_before_anything_is_compiled(no_process):
    model = compiled(net())
    with pytest.raises(IRValueError, match="expected shape"):
        model.specialize(torch.randn(3, 11))
    with pytest.raises(IRTypeError, match="missing input"):
        model.specialize()


def test_a_source_in_bytes_compiles_to_the_same():
    x = relax.Var("x", relax.TensorStructInfo((weft.tir.Var("n", "int64"), 4), "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        weights = relax.const(np.arange(8, dtype="float32").reshape(4, 2))
        builder.emit_func_output(builder.emit(relax.op.matmul(x, weights)))
    model = weft.compile(builder.get())
    source = ModelSource.of(
        Imported(model.mod, model.signature, entry=model.entry), Target("llvm"), ("weft", None)
    )
    again = ModelSource.from_bytes(source.to_bytes())
    assert weft.ir.structural_equal(again.imported.module, source.imported.module)
    assert again.pipelines == ("weft", None)
    assert again.context == source.context
    assert again.imported.signature == source.imported.signature
    bound = again.bound({"n": 3}).imported.module["main"]
    assert [int(extent) for extent in bound.params[0].struct_info.shape] == [3, 4]


HANGING = """
import sys, torch, weft
from tests.driver.test_specialization import compiled, net
from weft.driver import specialization
model = compiled(net())
specialization._PROGRAM = "import sys, time, json, threading\\n" \\
    "job = json.loads(sys.argv[1]); sys.path[:] = job['sys_path']\\n" \\
    "from weft.codegen.llvm.worker import end_with_the_parent\\n" \\
    "threading.Thread(target=end_with_the_parent, args=(0,), daemon=True).start()\\n" \\
    "time.sleep(600)"
import os, time
os.environ["WEFT_HOT_SECONDS"] = "0"
model = compiled(net())
model(torch.randn(3, 12))
time.sleep(1)
print("done")
"""


def test_a_process_at_work_does_not_keep_the_program_from_ending():
    ended = subprocess.run(
        [sys.executable, "-c", HANGING], capture_output=True, text=True, timeout=600, check=False
    )
    assert ended.stdout.strip() == "done", ended.stderr
    assert ended.returncode == 0


def test_warnings_of_the_background_are_logged(monkeypatch, caplog):
    monkeypatch.setenv("WEFT_HOT_SECONDS", "0")
    model = compiled(net())

    def run(*_):
        raise CodegenError("it did not work")

    monkeypatch.setattr(specialization, "_run", run)
    with caplog.at_level(logging.WARNING):
        model(torch.randn(13, 12))
        for _ in range(6000):
            if "no program for the sizes (13,): it did not work" in caplog.text:
                return
            time.sleep(0.1)
    raise AssertionError(caplog.text)
