"""Tune functions of TensorIR: ``tune_tir`` and ``compile_tir``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Unpack

from weft.ir.module import IRModule
from weft.meta_schedule.database.base import Database
from weft.meta_schedule.search_strategy.base import SearchStrategy
from weft.meta_schedule.tune import TuneOptions, tune_tasks
from weft.meta_schedule.tune_context import Space, contexts_of, normalized
from weft.support.errors import IRValueError
from weft.target import Target
from weft.tir.function import PrimFunc
from weft.tir.schedule.schedule import Schedule


def tune_tir(
    mod: IRModule | PrimFunc,
    target: Target | str,
    work_dir: str,
    max_trials_global: int,
    *,
    max_trials_per_task: int | None = None,
    space: Space = "post-order-apply",
    strategy: SearchStrategy | str = "evolutionary",
    num_tuning_cores: int | str = "physical",
    seed: int | None = None,
    special_space: Mapping[str, Space | None] | None = None,
    **options: Unpack[TuneOptions],
) -> Database:
    """Search for a fast schedule of a PrimFunc, or of each PrimFunc of a module.

    Args:
        mod: the function, or the module with functions.
        target: what to compile for, with the number of cores: "llvm -num-cores=4".
        work_dir: the folder of the database, which later calls go on with.
        max_trials_global: how many programs are measured, about.
        space: the design space: a function that schedules and samples, ``ScheduleFn`` of it, or
            "post-order-apply" for the rules of the target and its default schedule, which is
            measured first.
        special_space: spaces of single functions, by name; a function with None is left out.
        seed: where random numbers start.

    The other options (``TuneOptions``) are those of ``tune_tasks``. Returns the database;
    ``compile_tir`` takes the fastest schedule from it.
    """
    spaces = special_space or {}
    given = [
        (name, func, spaces.get(name, space)) for name, func in sorted(_functions(mod).items())
    ]
    tasks = contexts_of(
        [(name, func, target, chosen) for name, func, chosen in given if chosen is not None],
        strategy,
        num_tuning_cores,
        seed,
    )
    return tune_tasks(
        tasks=tasks,
        task_weights=[1.0] * len(tasks),
        work_dir=work_dir,
        max_trials_global=max_trials_global,
        max_trials_per_task=max_trials_per_task,
        **options,
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
