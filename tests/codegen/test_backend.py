"""Which backend compiles for a target, and what the driver asks of it."""

from __future__ import annotations

import numpy as np
import pytest

import weft
from weft import relax, te
from weft.backends.cpu.backend import BACKEND, CPUBackend
from weft.codegen import backend as backends
from weft.codegen.backend import backend_of, has_backend, register_backend
from weft.dlight.apply import ScheduleRule
from weft.ir.transform import Sequential
from weft.script import ir as I
from weft.script import relax as R
from weft.support.errors import CodegenError, IRValueError
from weft.target.kinds import KINDS, TargetKind
from weft.target.machine import machine_of


@I.ir_module
class Graph:
    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        with R.dataflow():
            y = R.nn.relu(R.add(x, R.const(1.0, "float32")))
            R.output(y)
        return y


class Recording(CPUBackend):
    """Compiles as the backend of CPUs does, for a kind of its own, and notes what was asked."""

    def __init__(self):
        self.kind = TargetKind("recording", ("cpu",))
        self.asked = []

    def __getattribute__(self, name):
        if name in ("features", "options", "graph", "lower", "schedules", "emit"):
            self.asked.append(name)
        return super().__getattribute__(name)

    def features(self, target):
        return BACKEND.features(weft.target.Target("llvm -num-cores=3"))

    def options(self, target):
        return BACKEND.options(weft.target.Target("llvm"))

    def graph(self, target):
        return BACKEND.graph(target)[:-1]

    def emit(self, mod, target, *, checks=True):
        return BACKEND.emit(mod, weft.target.Target("llvm"), checks=checks)


@pytest.fixture
def recording(monkeypatch):
    """A registered backend, forgotten after the test."""
    monkeypatch.setattr(backends, "_BACKENDS", dict(backends._BACKENDS))
    for name in ("recording",):
        monkeypatch.setitem(KINDS, name, None)
    made = Recording()
    register_backend(made)
    return made


def test_the_backend_of_llvm_is_that_of_cpus():
    assert backend_of(weft.target.Target("llvm -mcpu=x86-64-v2")) is BACKEND
    assert has_backend(KINDS["llvm"])
    assert all(isinstance(rule, ScheduleRule) for rule in BACKEND.schedules(weft.Target("llvm")))


MISSING = "code generation for the target kind 'cuda' is not available; expected 'llvm'"


@pytest.mark.parametrize(
    "ask",
    [
        lambda: backend_of(weft.target.Target("cuda")),
        lambda: machine_of("cuda"),
        lambda: weft.compile(Graph, target="cuda"),
        lambda: relax.build(Graph, target="cuda"),
        lambda: relax.get_default_pipeline("cuda"),
        lambda: weft.build(te.create_prim_func([te.placeholder((4,), name="x")]), target="cuda"),
    ],
)
def test_a_kind_without_a_backend_is_refused(ask):
    assert not has_backend(KINDS["cuda"])
    with pytest.raises(CodegenError, match=MISSING):
        ask()


def test_a_registered_backend_decides_all_that_the_driver_asks(recording, tmp_path, monkeypatch):
    monkeypatch.setenv("WEFT_CACHE_DIR", str(tmp_path))
    x = np.array([-3, -1, 0, 2], "float32")
    np.testing.assert_array_equal(weft.compile(Graph, target="recording")(x), [0, 0, 1, 3])
    assert {"options", "graph", "lower", "emit"} <= set(recording.asked)
    assert machine_of("recording").cores == 3
    with weft.target.Target("recording"):
        names = [step.info.name for step in relax.get_pipeline("weft").passes]
    assert names == [step.info.name for step in BACKEND.graph(weft.Target("llvm"))[:-1]]


def test_the_pipeline_weft_is_that_of_the_target_in_scope_when_it_runs(recording):
    pipeline = relax.get_pipeline("weft")
    every = len(pipeline.passes)
    with weft.target.Target("recording"):
        assert len(pipeline.passes) == every - 1
        assert weft.ir.structural_equal(pipeline(Graph), Sequential(pipeline.passes)(Graph))


def test_a_kind_has_one_backend(recording):
    assert register_backend(recording) is recording
    with pytest.raises(IRValueError, match="target kind 'recording' is already registered"):
        register_backend(Recording())
    with pytest.raises(IRValueError, match="target kind 'llvm' is already registered"):
        register_backend(CPUBackend())
    other = Recording()
    assert register_backend(other, override=True) is other
    assert backend_of(weft.target.Target("recording")) is other


def test_the_sources_of_code_from_the_cache_are_emitted_again(recording, tmp_path, monkeypatch):
    monkeypatch.setenv("WEFT_CACHE_DIR", str(tmp_path))
    x = te.placeholder((4,), name="x")
    function = te.create_prim_func([x, te.compute((4,), lambda i: x[i] + 1.0)])
    texts = [weft.build(function, "recording").get_source("ll") for _ in range(2)]
    assert texts[0] == texts[1]
    assert recording.asked.count("emit") == 2
