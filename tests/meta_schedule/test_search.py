"""Search strategies, task schedulers, contexts and callbacks, on dummy builders and runners."""

from __future__ import annotations

import numpy as np
import pytest

import weft
from weft import meta_schedule as ms
from weft import te, tir, topi
from weft.meta_schedule.runner.base import RunnerFuture, RunnerResult
from weft.meta_schedule.search_strategy.trials import replayed
from weft.meta_schedule.testing.dummy_object import DummyBuilder, DummyMutator, DummyRunner
from weft.meta_schedule.tune_context import contexts_of, normalized
from weft.support.errors import CodegenError, IRTypeError, IRValueError
from weft.support.facade import MissingPackageError
from weft.target import Target

LLVM = Target("llvm -num-cores=2")


def product(size=64):
    x, w = te.placeholder((size, size), name="x"), te.placeholder((size, size), name="w")
    return te.create_prim_func([x, w, topi.matmul(x, w)])


def tiled(sch):
    i, j, k = sch.get_loops("T_matmul")
    outer, inner = sch.split(j, sch.sample_perfect_tile(j, n=2))
    sch.reorder(i, outer, k, inner)


def context(strategy, space=tiled, **options):
    options = {"rand_state": 7, "target": LLVM, "num_threads": 1, **options}
    if strategy == "evolutionary":
        strategy = ms.search_strategy.EvolutionarySearch(
            population_size=16, init_min_unmeasured=8, genetic_num_iters=2
        )
    return ms.TuneContext(product(), space_generator=space, search_strategy=strategy, **options)


def batches(task, trials, of_batch, database=None):
    """The candidates of a whole search, batch by batch."""
    task.pre_tuning(trials, of_batch, database=database)
    result = []
    while (candidates := task.generate_measure_candidates()) is not None:
        result.append(candidates)
        task.notify_runner_results(candidates, [RunnerResult([1.0], None)] * len(candidates))
    task.post_tuning()
    return result


# Strategies


@pytest.mark.parametrize("strategy", ["replay-trace", "evolutionary"])
def test_the_default_schedule_is_measured_first(strategy):
    [task] = contexts_of([("main", product(), LLVM, "post-order-apply")], strategy, 1, 3)
    if strategy == "evolutionary":
        task.search_strategy.population_size = task.search_strategy.init_min_unmeasured = 8
        task.search_strategy.genetic_num_iters = 1
    first, *others = [item for batch in batches(task, 4, 2) for item in batch]
    space = ms.space_generator.DefaultSchedule(postprocs=[])
    [sch] = ms.TuneContext(product(), target=LLVM, space_generator=space).generate_design_space()
    assert weft.ir.structural_equal(
        sch.mod["main"].body,
        weft.dlight.cpu.Default().apply(product(), LLVM, False).mod["main"].body,
    )
    expected = replayed(task.mod, sch.trace, task.postprocs, 1)
    assert weft.ir.structural_equal(first.sch.mod, expected.mod)
    assert len(others) == 3
    assert not any(weft.ir.structural_equal(item.sch.mod, expected.mod) for item in others)


def test_a_target_without_default_schedules_adds_nothing():
    space = ms.space_generator.DefaultSchedule([], [], {})
    for target in (None, Target("cuda -arch=sm_80")):
        task = ms.TuneContext(product(), target=target, space_generator=space)
        assert task.generate_design_space() == []


@pytest.mark.parametrize("strategy", ["replay-trace", "replay-func"])
def test_random_search_makes_all_its_trials_in_batches(strategy):
    sizes = [len(batch) for batch in batches(context(strategy), 20, 7)]
    assert sizes == [7, 7, 6]


def test_traces_are_replayed_with_other_decisions_and_the_same_seed_gives_the_same():
    def programs(seed):
        found = batches(context("replay-trace", rand_state=seed), 12, 12)
        return [weft.ir.structural_hash(item.sch.mod) for batch in found for item in batch]

    assert len(set(programs(3))) > 3
    assert programs(3) == programs(3)
    assert programs(3) != programs(4)


def test_every_candidate_computes_the_product():
    rng = np.random.default_rng(0)
    x, w = [rng.standard_normal((64, 64)).astype("float32") for _ in range(2)]
    for candidate in batches(context("evolutionary"), 6, 6)[0]:
        y = weft.nd.empty((64, 64))
        weft.build(candidate.sch.mod, LLVM)["main"](weft.nd.array(x), weft.nd.array(w), y)
        np.testing.assert_allclose(y.numpy(), x @ w, atol=1e-4)
        assert [info.as_json() for info in candidate.args_info] == [
            ["TENSOR", "float32", [64, 64]]
        ] * 3


def test_evolution_measures_no_program_twice_and_ends_when_the_space_is_used_up():
    found = batches(context("evolutionary"), 100, 4)
    programs = [weft.ir.structural_hash(item.sch.mod) for batch in found for item in batch]
    assert len(set(programs)) == len(programs)
    assert [len(batch) for batch in found[-4:]] == [0, 0, 0, 0]  # the fifth ends the search
    assert 5 <= len(programs) <= 7  # 64 = 1 * 64 = 2 * 32 = ...


def test_evolution_asks_its_mutators_and_its_database():
    asked = []

    class Counted(DummyMutator):
        def apply(self, trace):
            asked.append(trace)
            return super().apply(trace)

    space = ms.space_generator.ScheduleFn(
        tiled, sch_rules=[], postprocs=[], mutator_probs={Counted(): 1.0}
    )
    database = ms.database.MemoryDatabase()
    first = batches(context("evolutionary", space), 2, 2, database)[0]
    assert asked
    workload = database.commit_workload(normalized(product()))
    best = ms.database.TuningRecord(first[0].sch.trace, workload, [1e-3], LLVM, None)
    database.commit_tuning_record(best)
    assert batches(context("evolutionary", space), 3, 3, database)


def test_what_postprocessors_refuse_is_no_candidate():
    @ms.derived_object
    class Wide(ms.postproc.PyPostproc):
        def apply(self, sch):
            return int(sch.get(sch.get_loops("T_matmul")[-1]).extent) >= 16

    space = ms.space_generator.ScheduleFn(tiled, sch_rules=[], postprocs=[Wide()], mutator_probs={})
    for candidate in batches(context("replay-trace", space), 8, 8)[0]:
        sch = candidate.sch
        assert int(sch.get(sch.get_loops("T_matmul")[-1]).extent) >= 16


def test_a_space_where_nothing_passes_ends_the_search():
    class Never(ms.postproc.PyPostproc):
        def apply(self, sch):
            return False

    space = ms.space_generator.ScheduleFn(
        tiled, sch_rules=[], postprocs=[Never()], mutator_probs={}
    )
    for strategy in ("replay-trace", "replay-func", "evolutionary"):
        assert batches(context(strategy, space), 8, 8) == []


@pytest.mark.parametrize("kind", ["replay-trace", "replay-func", "evolutionary"])
def test_a_search_begins_and_ends_once(kind):
    task = context(kind)
    with pytest.raises(IRValueError, match="pre_tuning was not called"):
        task.generate_measure_candidates()
    with pytest.raises(IRValueError, match="no search has begun"):
        task.post_tuning()
    task.pre_tuning(4, 2)
    with pytest.raises(IRValueError, match="the search has begun already; post_tuning ends it"):
        task.pre_tuning(4, 2)
    task.post_tuning()
    with pytest.raises(IRValueError, match="at least one trial"):
        task.pre_tuning(0, 2)


def test_strategies_have_names_and_options_have_limits():
    with pytest.raises(IRValueError, match="SearchStrategy.create: expected a kind of .*'evol"):
        ms.search_strategy.create("annealing")
    with pytest.raises(IRValueError, match="probabilities from 0 to 1, got .*eps_greedy=1.5"):
        ms.search_strategy.EvolutionarySearch(eps_greedy=1.5)
    with pytest.raises(IRValueError, match="max_fail_count: expected at least 1, got 0"):
        ms.search_strategy.ReplayTrace(max_fail_count=0)


# Contexts


def test_a_context_has_a_module_with_one_function():
    assert context("replay-trace").mod["main"].attrs["tir.noalias"]
    with pytest.raises(IRValueError, match="expected a module with one function, got 2"):
        ms.TuneContext(weft.IRModule({"a": product(), "b": product()}))
    with pytest.raises(IRTypeError, match="expected an IRModule or a PrimFunc to tune, got int"):
        ms.TuneContext(3)
    with pytest.raises(IRValueError, match='num_threads: .*"physical" or "logical", got 0'):
        ms.TuneContext(product(), num_threads=0)
    with pytest.raises(IRValueError, match="needs a space_generator"):
        ms.TuneContext(product()).generate_design_space()
    with pytest.raises(IRValueError, match="needs a search_strategy"):
        ms.TuneContext(product()).post_tuning()


def test_a_clone_shares_no_part():
    task = context("replay-trace")
    twin = task.clone()
    assert twin.space_generator is not task.space_generator
    assert twin.search_strategy is not task.search_strategy
    twin.pre_tuning(2, 2)
    task.pre_tuning(2, 2)  # has its own search


# Task schedulers


class Times(DummyRunner):
    """Times by the order of the runs."""

    def __init__(self, seconds):
        self.seconds = iter(seconds)

    def run(self, runner_inputs):
        results = [RunnerResult([next(self.seconds)], None) for _ in runner_inputs]
        return [RunnerFuture(lambda: True, lambda r=result: r) for result in results]


def tuned(scheduler, tasks, runner=None, builder=None, callbacks=None, trials=12, each=6):
    database = ms.database.MemoryDatabase()
    callbacks = [ms.measure_callback.AddToDatabase()] if callbacks is None else callbacks
    scheduler.tune(
        tasks, [1.0] * len(tasks), trials, each, 2, builder or DummyBuilder(),
        runner or DummyRunner(), callbacks, database,
    )  # fmt: skip
    return database


@pytest.mark.parametrize("kind", ["round-robin", "gradient"])
def test_all_trials_are_in_the_database(kind):
    scheduler = ms.task_scheduler.create(kind)
    tasks = [context("replay-trace", task_name=name) for name in ("first", "second")]
    assert len(tuned(scheduler, tasks)) == 12
    assert [len(task.latency_ms) for task in scheduler.tasks_] == [6, 6]
    assert all(task.is_terminated for task in scheduler.tasks_)
    assert "first" in scheduler.statistics()


def test_gradients_prefer_the_slow_task_and_weights_count():
    tasks = [context("replay-trace", task_name=name) for name in ("slow", "fast")]
    scheduler = ms.task_scheduler.GradientBased(alpha=0.0, seed=1)
    runner = Times([1.0, 1.0, 1e-6, 1e-6, *[1.0] * 100])
    tuned(scheduler, tasks, runner, trials=12, each=100)
    slow, fast = [len(task.latency_ms) for task in scheduler.tasks_]
    assert (slow, fast) == (10, 2)


def test_failures_to_build_and_to_run_are_counted():
    class Half(DummyBuilder):
        def build(self, build_inputs):
            good, *rest = super().build(build_inputs)
            return [good, *[type(good)(None, "no such instruction") for _ in rest]]

    class Fails(DummyRunner):
        def run(self, runner_inputs):
            result = RunnerResult(None, "killed")
            return [RunnerFuture(lambda: True, lambda: result) for _ in runner_inputs]

    scheduler = ms.task_scheduler.RoundRobin()
    database = tuned(scheduler, [context("replay-trace")], Fails(), Half(), trials=4)
    [task] = scheduler.tasks_
    assert (task.build_error_count, task.run_error_count) == (2, 2)
    assert len(database) == 4
    assert scheduler.statistics().splitlines()[1].split()[-1] == "done"


def test_a_scheduler_of_the_users_chooses_tasks():
    order = []

    @ms.derived_object
    class Backwards(ms.task_scheduler.PyTaskScheduler):
        def next_task_id(self):
            for number in reversed(range(len(self.tasks_))):
                self.touch_task(number)
                if not self.tasks_[number].is_terminated:
                    order.append(number)
                    return number
            return -1

    tuned(Backwards(), [context("replay-trace"), context("replay-trace")])
    assert order[0] == 1
    assert 0 in order


def test_what_a_scheduler_needs():
    with pytest.raises(IRValueError, match="expected a weight for each of 1 tasks, got 0"):
        ms.task_scheduler.RoundRobin().tune(
            [context("replay-trace")], [], 1, 1, 1, DummyBuilder(), DummyRunner()
        )
    with pytest.raises(IRValueError, match="needs a mod, a space_generator and a search_strategy"):
        tuned(ms.task_scheduler.RoundRobin(), [ms.TuneContext(product())])
    with pytest.raises(IRValueError, match="Nothing: next_task_id is not defined, which a task"):
        tuned(
            type("Nothing", (ms.task_scheduler.PyTaskScheduler,), {})(), [context("replay-trace")]
        )
    with pytest.raises(IRValueError, match="alpha from 0 to 1"):
        ms.task_scheduler.GradientBased(alpha=2)


def test_callbacks_hear_of_each_batch():
    heard = []

    @ms.derived_object
    class Listens(ms.measure_callback.PyMeasureCallback):
        def apply(self, task_scheduler, task_id, candidates, built, results):
            heard.append((task_id, len(candidates), len(built), len(results)))

    tuned(ms.task_scheduler.RoundRobin(), [context("replay-trace")], callbacks=[Listens()])
    assert heard == [(0, 2, 2, 2)] * 3
    assert [type(item).__name__ for item in ms.measure_callback.create()] == [
        "AddToDatabase", "UpdateCostModel", "RemoveBuildArtifact",
    ]  # fmt: skip


# Functions and models


def test_tune_tir_finds_a_schedule_that_computes_the_same(tmp_path):
    database = ms.tune_tir(
        product(), LLVM, str(tmp_path), 8, num_trials_per_iter=4, space=tiled,
        strategy="replay-trace", cost_model="random", num_tuning_cores=1, seed=1,
    )  # fmt: skip
    assert len(database) == 8
    sch = ms.tir_integration.compile_tir(database, product(), LLVM)
    assert "sample_perfect_tile" in str(sch.trace)
    again = ms.database.JSONDatabase(work_dir=str(tmp_path))
    assert weft.ir.structural_equal(
        again.query_schedule(normalized(product()), LLVM, "main").mod, sch.mod
    )
    assert ms.tir_integration.compile_tir(database, product(32), LLVM) is None
    with pytest.raises(IRValueError, match="the module has no PrimFunc"):
        ms.tune_tir(weft.IRModule({}), LLVM, str(tmp_path), 1)


def test_without_xgboost_another_model_ranks_candidates(tmp_path, monkeypatch, caplog):
    create = ms.CostModel.create

    def lacking(kind, *args, **kwargs):
        if kind == "xgb":
            raise MissingPackageError("xgboost is not installed")
        return create(kind, *args, **kwargs)

    monkeypatch.setattr(ms.CostModel, "create", staticmethod(lacking))
    database = ms.tune_tir(
        product(), LLVM, str(tmp_path), 2, num_trials_per_iter=2, space=tiled,
        strategy="replay-trace", builder=DummyBuilder(), runner=DummyRunner(), num_tuning_cores=1,
    )  # fmt: skip
    assert len(database) == 2
    assert "a small neural network ranks candidates instead" in caplog.text


def test_functions_with_a_space_of_their_own_or_none(tmp_path):
    names = []

    def named(sch):
        names.append(1)
        return tiled(sch)

    module = weft.IRModule({"a": product(), "b": product(32)})
    ms.tune_tir(
        module, LLVM, str(tmp_path), 2, space=tiled, special_space={"a": named, "b": None},
        builder=DummyBuilder(), runner=DummyRunner(), database="memory", cost_model=None,
        strategy="replay-trace",
    )  # fmt: skip
    assert names


def perceptron():
    from weft import relax

    x = relax.Var("x", relax.TensorStructInfo((4, 16), "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        with builder.dataflow():
            value = x
            for _ in range(2):
                weights = relax.const(np.eye(16, dtype="float32"))
                value = builder.emit(relax.op.nn.relu(relax.op.matmul(value, weights)))
            result = builder.emit_output(value)
        builder.emit_func_output(result)
    return weft.relax.transform.LegalizeOps()(builder.get())


def test_kernels_of_a_model_are_tasks_with_their_calls():
    tasks = ms.extract_tasks(perceptron(), LLVM)
    assert sorted(task.weight for task in tasks) == [2, 2]
    assert all(list(task.mod.functions)[0].name_hint == "main" for task in tasks)


def columns(sch):
    loop = sch.get_loops("matmul")[1]
    sch.split(loop, sch.sample_perfect_tile(loop, n=2))


def test_a_model_is_built_with_the_schedules_of_a_database(tmp_path):
    module = perceptron()
    database = ms.tune_relax(
        module, {}, LLVM, str(tmp_path), 4, num_trials_per_iter=2, op_names=["matmul"],
        strategy="replay-trace", cost_model="random", seed=1,
        space=columns,
    )  # fmt: skip
    executable = ms.compile_relax(database, module, LLVM, None)
    x = np.random.default_rng(0).standard_normal((4, 16)).astype("float32")
    result = weft.relax.VirtualMachine(executable, weft.cpu())["main"](weft.nd.array(x))
    np.testing.assert_allclose(result.numpy(), np.maximum(x, 0), atol=1e-6)
    with LLVM, database:
        applied = weft.relax.transform.MetaScheduleApplyDatabase()(module)
    marked = [f for f in applied.functions.values() if "tir.is_scheduled" in f.attrs]
    assert len(marked) == 1
    with LLVM, pytest.raises(IRValueError, match="there is no database: use the pass inside"):
        weft.relax.transform.MetaScheduleApplyDatabase()(module)


def test_a_target_that_weft_does_not_compile_for_is_not_tuned(tmp_path):
    with pytest.raises(CodegenError, match="target kind 'cuda' is not available"):
        ms.tune_tir(product(), "nvidia/tesla-p100", str(tmp_path), 4)


def quick_tuning(params, work_dir, trials, per_task):
    """A pass that tunes two programs of a small space."""

    @weft.transform.module_pass(opt_level=0)
    def tune(mod, ctx):
        ms.tune_relax(
            mod, params, LLVM, work_dir, trials, per_task, num_trials_per_iter=2,
            strategy="replay-trace", cost_model="random", seed=1, space=columns,
        )  # fmt: skip
        return mod

    return tune


@pytest.mark.parametrize("prepack", [pytest.param(False, marks=pytest.mark.slow), True])
def test_a_model_is_tuned_by_one_pipeline(tmp_path, monkeypatch, prepack):
    place = "weft.meta_schedule.tuning_pipeline.MetaScheduleTuneIRMod"
    monkeypatch.setattr(place, quick_tuning)
    module, folder = perceptron(), str(tmp_path)
    tuned = weft.relax.get_pipeline(
        "static_shape_tuning", target=LLVM, total_trials=2, work_dir=folder,
        cpu_weight_prepack=prepack,
    )(module)  # fmt: skip
    assert any("tir.is_scheduled" in function.attrs for function in tuned.functions.values())
    x = np.random.default_rng(0).standard_normal((4, 16)).astype("float32")
    machine = weft.relax.VirtualMachine(weft.relax.build(tuned, LLVM), weft.cpu())
    result = machine["main"](weft.nd.array(x)).numpy()
    np.testing.assert_allclose(result, np.maximum(x, 0), atol=1e-6)
    make = weft.relax.pipeline.static_shape_tuning_pipeline
    again = make(0, LLVM, folder, prepack)(module)  # what the folder has
    weft.ir.assert_structural_equal(again, tuned)
    with pytest.raises(IRValueError, match="expected total_trials of at least 0, got -1"):
        make(-1, LLVM)


def test_a_trace_of_an_anchor_schedules_what_follows_it():
    x, w = te.placeholder((64, 64), name="x"), te.placeholder((64, 64), name="w")
    with_relu = te.create_prim_func([x, w, topi.nn.relu(topi.matmul(x, w))])
    sch = tir.Schedule(product())
    tiled(sch)
    other = tir.Schedule(normalized(with_relu))
    ms.trace_apply.schedule_using_anchor_trace(other, sch.trace, LLVM)
    rng = np.random.default_rng(0)
    a, b = [rng.standard_normal((64, 64)).astype("float32") for _ in range(2)]
    y = weft.nd.empty((64, 64))
    weft.build(other.mod, LLVM)["main"](weft.nd.array(a), weft.nd.array(b), y)
    np.testing.assert_allclose(y.numpy(), np.maximum(a @ b, 0), atol=1e-4)
    assert len(other.get_loops("T_matmul")) == 4
