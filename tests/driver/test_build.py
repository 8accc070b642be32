"""Builds: targets, pass contexts, pipelines, what is in the cache's key, and memory over time."""

from __future__ import annotations

import gc
import threading
from pathlib import Path

import numpy as np
import pytest

import weft
from weft import relax, te
from weft.backends.cpu.isa import host_system
from weft.driver.pipeline import lower_tir
from weft.ir.transform import PassContext, Sequential, module_pass
from weft.script import ir as I
from weft.script import relax as R
from weft.script import tir as T
from weft.support.errors import ArtifactTargetError, PassError, UnsupportedError
from weft.tir.op import add
from weft.tir.stmt_functor import ir_transform


def increment(n=4):
    x = te.placeholder((n,), name="x")
    return te.create_prim_func([x, te.compute((n,), lambda i: x[i] + 1.0, name="y")])


def run(built, n=4):
    y = weft.nd.empty((n,))
    built(weft.nd.array(np.zeros(n, "float32")), y)
    return y.numpy()


@module_pass(opt_level=0, name="test.AddToStores")
def add_to_stores(mod, ctx):
    """Every value stored grows by 10."""

    def grown(store):
        return store.with_(value=add(store.value, 10.0))

    return weft.IRModule(
        {
            var: func.with_(body=ir_transform(func.body, None, grown, ["tir.BufferStore"]))
            for var, func in mod.functions.items()
        }
    )


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("WEFT_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("WEFT_NO_CACHE", raising=False)
    return tmp_path / "objects"


def entries(folder):
    return len(list(folder.iterdir()))


def test_two_pipelines_of_one_name_do_not_share_code(folder):
    plain, changed = Sequential([lower_tir()]), Sequential([lower_tir(), add_to_stores])
    assert plain.info.name == changed.info.name
    for pipeline, expected in ((plain, 1.0), (changed, 11.0), (plain, 1.0), (None, 1.0)):
        np.testing.assert_array_equal(run(weft.build(increment(), pipeline=pipeline)), expected)


@pytest.mark.parametrize("pipeline", [None, "default"])
def test_the_default_pipeline_by_its_names(pipeline):
    np.testing.assert_array_equal(run(weft.build(increment(), pipeline=pipeline)), 1.0)


def test_a_pipeline_that_is_none_is_refused():
    with pytest.raises(PassError, match="expected a pass, 'default' or None, got 'fastest'"):
        weft.build(increment(), pipeline="fastest")
    with pytest.raises(PassError, match="expected a pass, a name or None, got 3"):
        relax.build(Model, relax_pipeline=3)


def test_compile_takes_a_pipeline_for_prim_funcs():
    changed = Sequential([lower_tir(), add_to_stores])
    np.testing.assert_array_equal(run(weft.compile(increment(), tir_pipeline=changed)), 11.0)


@pytest.mark.parametrize(
    "context",
    [
        {"opt_level": 0}, {"disabled_pass": ["tir.Simplify"]}, {"required_pass": ["tir.Simplify"]},
        {"config": {"tir.UnrollLoop": {"auto_max_step": 16}}},
        {"config": {"tir.disable_vectorize": True}},
    ],
)  # fmt: skip
def test_the_pass_context_is_in_the_key(folder, context):
    weft.build(increment())
    with PassContext(**context):
        weft.build(increment())
        weft.build(increment())
    assert entries(folder) == 2


def test_the_source_of_cached_code_is_that_of_the_context_it_was_built_in(folder):
    texts = []
    for _ in range(2):
        with PassContext(config={"tir.UnrollLoop": {"auto_max_step": 16}}):
            built = weft.build(increment())
        texts.append(built.get_source("ll"))
    assert entries(folder) == 1
    assert texts[0] == texts[1]
    assert texts[0] != weft.build(increment()).get_source("ll")


def test_instruments_see_the_passes_of_every_build(folder):
    class Names:
        def __init__(self):
            self.seen = []

        def run_before_pass(self, mod, info):
            self.seen.append(info.name)

    for _ in range(2):
        names = Names()
        with PassContext(instruments=[names]):
            weft.build(increment())
        assert "tir.Simplify" in names.seen


def test_accesses_proved_outside_are_refused_by_both_builds():
    @I.ir_module
    class Outside:
        @T.prim_func
        def kernel(x: T.Buffer((4,), "float32"), y: T.Buffer((4,), "float32")):
            for i in range(4):
                y[i] = x[i + 1]

        @R.function
        def main(x: R.Tensor((4,), "float32")):
            cls = Outside
            y = R.call_tir(cls.kernel, (x,), out_sinfo=R.Tensor((4,), "float32"))
            return y

    with pytest.raises(IndexError, match="out of bounds for buffer x"):
        relax.build(Outside)
    with pytest.raises(IndexError, match="out of bounds for buffer x"):
        weft.build(Outside["kernel"])


@I.ir_module
class Model:
    @R.function
    def main(x: R.Tensor((64, 256), "float32")):
        with R.dataflow():
            a = R.exp(R.negative(x))
            b = R.nn.relu(R.subtract(a, R.const(0.5, "float32")))
            c = R.add(b, x)
            R.output(c)
        return c


def expected(x):
    return np.maximum(np.exp(-x) - np.float32(0.5), 0) + x


@I.ir_module
class WithCallback:
    @R.function
    def main(x: R.Tensor((64, 256), "float32")):
        with R.dataflow():
            a = R.exp(R.negative(x))
            b = R.call_dps_packed("test.driver.copy", a, out_sinfo=R.Tensor((64, 256), "float32"))
            c = R.nn.relu(R.subtract(b, R.const(0.5, "float32")))
            d = R.add(c, x)
            R.output(d)
        return d


@pytest.fixture
def callback():
    @weft.register_func("test.driver.copy", override=True)
    def run(x, out):
        out.copyfrom(x.numpy())


def resident_kib():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="no /proc")
@pytest.mark.parametrize(
    ("module", "mode", "calls"),
    [(Model, "native", 10_000), (Model, "bytecode", 500), (WithCallback, "native", 2_000)],
)
def test_memory_does_not_grow_over_calls(module, mode, calls, callback):
    main = relax.VirtualMachine(relax.build(module), weft.cpu(), exec_mode=mode)["main"]
    x = weft.nd.array(np.zeros((64, 256), "float32"))
    for _ in range(50):
        main(x)
    gc.collect()
    before = resident_kib()
    for _ in range(calls):
        main(x)
    gc.collect()
    assert resident_kib() - before < 4096  # a leaked arena a call would be 64 KiB times calls


@pytest.mark.parametrize("module", [Model, WithCallback])
def test_eight_threads_share_one_machine(module, callback):
    ex = relax.build(module)
    assert ex.program.functions["main"].native.arena
    main = relax.VirtualMachine(ex, weft.cpu())["main"]
    wrong = []

    def work(seed):
        rng = np.random.default_rng(seed)
        for _ in range(30):
            x = rng.random((64, 256), "float32")
            if not np.allclose(main(x).numpy(), expected(x), rtol=1e-5):
                wrong.append(seed)

    workers = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong


def test_relax_pipelines_by_both_names():
    x = np.ones((64, 256), "float32")
    legalised = relax.transform.LegalizeOps()(Model)
    for options in ({"pipeline": None}, {"relax_pipeline": None}):
        vm = relax.VirtualMachine(relax.build(legalised, **options), weft.cpu())
        np.testing.assert_allclose(vm["main"](x).numpy(), expected(x), rtol=1e-6)
    changed = relax.build(Model, tir_pipeline=Sequential([lower_tir(), add_to_stores]))
    result = relax.VirtualMachine(changed, weft.cpu())["main"](x).numpy()
    assert not np.allclose(result, expected(x))


def test_system_libraries_are_refused():
    with pytest.raises(UnsupportedError, match="system_lib is not available"):
        relax.build(Model, system_lib=True)


def test_num_cores_of_the_target_limits_parallel_loops(folder):
    @T.prim_func
    def main(x: T.Buffer((1 << 16,), "float32")):
        for i in T.parallel(1 << 16):
            x[i] = T.float32(1)

    assert "call i32 @weft_parallel" in weft.build(main).get_source("ll")
    assert "weft_parallel" not in weft.build(main, "llvm -num-cores=1").get_source("ll")
    text = weft.build(main, "llvm -num-cores=3").get_source("ll")
    assert "i32 -3)" in text
    with weft.target.Target("llvm -num-cores=1"):
        assert "weft_parallel" not in weft.build(main).get_source("ll")
    x = weft.nd.array(np.zeros(1 << 16, "float32"))
    weft.build(main, "llvm -num-cores=3")(x)
    np.testing.assert_array_equal(x.numpy(), 1)


def test_a_saved_call_returns_its_result_only_when_asked():
    vm = relax.VirtualMachine(relax.build(Model), weft.cpu())
    x = np.ones((64, 256), "float32")
    vm.save_function("main", "kept", x)
    vm.save_function("main", "dropped", x, include_return=False)
    np.testing.assert_allclose(vm["kept"]().numpy(), expected(x), rtol=1e-6)
    assert vm["dropped"]() is None


def test_time_evaluators_count_calls(callback):
    calls = []
    weft.register_func("test.driver.copy", lambda x, out: calls.append(1), override=True)
    vm = relax.VirtualMachine(relax.build(WithCallback), weft.cpu())
    x = weft.nd.array(np.ones((64, 256), "float32"))
    result = vm.time_evaluator("main", weft.cpu(), number=5, repeat=3)(x)
    assert len(calls) == 1 + 5 * 3
    assert len(result.results) == 3
    assert min(result.results) == result.min <= result.median <= result.max
    with pytest.raises(UnsupportedError, match="f_preproc"):
        vm.time_evaluator("main", weft.cpu(), f_preproc="cache_flush_cpu_non_first_arg")
    with pytest.raises(UnsupportedError, match="expected a CPU device"):
        vm.time_evaluator("main", weft.cuda())


def test_code_for_another_architecture_is_not_loaded():
    """It would end the process at the first call; its text can be read."""
    x = te.placeholder((4,), name="x")
    func = te.create_prim_func([x, te.compute((4,), lambda i: x[i] + 1.0)])
    built = weft.build(func, "llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a72")
    assert "fadd\tv" in built.get_source("asm")
    arrays = [weft.nd.empty((4,)), weft.nd.empty((4,))]
    for call in (built["main"], built.time_evaluator("main", number=1)):
        with pytest.raises(ArtifactTargetError, match="for aarch64-linux-gnu, .* process runs on"):
            call(*arrays)


@pytest.mark.skipif(host_system()[0] != "x86_64", reason="names features of x86-64")
def test_code_for_a_processor_with_more_instructions_is_not_loaded():
    x = te.placeholder((4,), name="x")
    func = te.create_prim_func([x, te.compute((4,), lambda i: x[i] + 1.0)])
    built = weft.build(func, "llvm -mattr=+avx512fp16,+amx-fp16")
    with pytest.raises(ArtifactTargetError, match="lacks: it cannot be called here"):
        built["main"](weft.nd.empty((4,)), weft.nd.empty((4,)))
