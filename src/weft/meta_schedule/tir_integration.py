"""Tune functions of TensorIR: ``tune_tir`` and ``compile_tir``."""

from __future__ import annotations

import logging
import random
from collections.abc import Mapping

from weft.ir.module import IRModule
from weft.meta_schedule.builder.base import Builder
from weft.meta_schedule.cost_model.base import CostModel
from weft.meta_schedule.database.base import Database
from weft.meta_schedule.runner.base import Runner
from weft.meta_schedule.search_strategy.base import SearchStrategy
from weft.meta_schedule.task_scheduler.base import TaskScheduler
from weft.meta_schedule.tune import Callbacks, tune_tasks
from weft.meta_schedule.tune_context import Space, TuneContext, normalized
from weft.support.errors import IRValueError
from weft.target import Target
from weft.tir.function import PrimFunc
from weft.tir.schedule.schedule import Schedule


def tune_tir(  # noqa: PLR0913 - TVM's signature
    mod: IRModule | PrimFunc,
    target: Target | str,
    work_dir: str,
    max_trials_global: int,
    *,
    max_trials_per_task: int | None = None,
    num_trials_per_iter: int = 64,
    builder: Builder | str = "local",
    runner: Runner | str = "local",
    database: Database | str = "json",
    cost_model: CostModel | str | None = "xgb",
    measure_callbacks: Callbacks = "default",
    task_scheduler: TaskScheduler | str = "gradient",
    space: Space = "post-order-apply",
    strategy: SearchStrategy | str = "evolutionary",
    num_tuning_cores: int | str = "physical",
    seed: int | None = None,
    module_equality: str = "structural",
    special_space: Mapping[str, Space | None] | None = None,
    post_optimization: bool = False,
) -> Database:
    """Search for a fast schedule of a PrimFunc, or of each PrimFunc of a module.

    Args:
        mod: the function, or the module with functions.
        target: what to compile for, with the number of cores: "llvm -num-cores=4".
        work_dir: the folder of the database, which later calls go on with.
        max_trials_global: how many programs are measured, about.
        space: the design space: a function that schedules and samples, ``ScheduleFn`` of it, or
            "post-order-apply" for the rules of the target.
        special_space: spaces of single functions, by name; a function with None is left out.
        seed: where random numbers start.

    The other arguments are those of ``tune_tasks``. Returns the database; ``compile_tir`` takes
    the fastest schedule from it.
    """
    spaces = special_space or {}
    generator = random.Random(seed)
    tasks = [
        TuneContext(
            func,
            target=target,
            space_generator=spaces.get(name, space),
            search_strategy=strategy,
            task_name=name,
            rand_state=generator.randrange(1, 2**31 - 1),
            num_threads=num_tuning_cores,
            logger=logging.getLogger(f"weft.meta_schedule.{name}"),
        ).clone()
        for name, func in sorted(_functions(mod).items())
        if spaces.get(name, space) is not None
    ]
    return tune_tasks(
        tasks=tasks,
        task_weights=[1.0] * len(tasks),
        work_dir=work_dir,
        max_trials_global=max_trials_global,
        max_trials_per_task=max_trials_per_task,
        num_trials_per_iter=num_trials_per_iter,
        builder=builder,
        runner=runner,
        database=database,
        cost_model=cost_model,
        measure_callbacks=measure_callbacks,
        task_scheduler=task_scheduler,
        module_equality=module_equality,
        post_optimization=post_optimization,
    )


def compile_tir(
    database: Database, mod: IRModule | PrimFunc, target: Target | str
) -> Schedule | None:
    """The fastest schedule of a function that a database has; None if it has none."""
    given = Target(target) if isinstance(target, str) else target
    return database.query_schedule(normalized(mod), given, workload_name="main")


def _functions(mod: IRModule | PrimFunc) -> dict[str, PrimFunc]:
    if isinstance(mod, PrimFunc):
        return {"main": mod}
    functions = {
        var.name_hint: func for var, func in mod.functions.items() if isinstance(func, PrimFunc)
    }
    if not functions:
        raise IRValueError(
            "tune_tir: the module has no PrimFunc; a Relax model is tuned by tune_relax"
        )
    return functions
