"""``tune_tasks``: tune several tasks with builders, runners and databases given by name."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias, TypedDict

from weft.codegen.backend import backend_of
from weft.meta_schedule import measure_callback
from weft.meta_schedule.builder.base import Builder
from weft.meta_schedule.cost_model.base import CostModel
from weft.meta_schedule.database.base import Database
from weft.meta_schedule.runner.base import Runner
from weft.meta_schedule.task_scheduler.base import MeasureCallback, TaskScheduler
from weft.meta_schedule.tune_context import TuneContext
from weft.support.errors import IRValueError
from weft.support.facade import MissingPackageError

Callbacks: TypeAlias = MeasureCallback | Sequence[MeasureCallback] | str
logger = logging.getLogger("weft.meta_schedule")


class TuneOptions(TypedDict, total=False):
    """The options that ``tune_tir`` and ``tune_relax`` hand on to ``tune_tasks``."""

    num_trials_per_iter: int
    builder: Builder | str
    runner: Runner | str
    database: Database | str
    cost_model: CostModel | str | None
    measure_callbacks: Callbacks
    task_scheduler: TaskScheduler | str
    module_equality: str
    post_optimization: bool


def tune_tasks(  # noqa: PLR0913 - TVM's signature
    *,
    tasks: Sequence[TuneContext],
    task_weights: Sequence[float],
    work_dir: str,
    max_trials_global: int,
    max_trials_per_task: int | None = None,
    num_trials_per_iter: int = 64,
    builder: Builder | str = "local",
    runner: Runner | str = "local",
    database: Database | str = "json",
    cost_model: CostModel | str | None = "xgb",
    measure_callbacks: Callbacks = "default",
    task_scheduler: TaskScheduler | str = "gradient",
    module_equality: str = "structural",
    post_optimization: bool = False,
) -> Database:
    """Tune tasks and return the database with what was measured.

    Args:
        tasks, task_weights: the tasks, and how often the program of each runs.
        work_dir: the folder of the database; it is created if need be.
        max_trials_global: no batch begins after so many trials of all tasks.
        max_trials_per_task: the most trials of one task; by default those of all.
        num_trials_per_iter: the trials of one batch.
        builder, runner, database, cost_model, task_scheduler: objects, or the names that their
            ``create`` knows. Where xgboost is not installed, "xgb" is "mlp", and a warning says
            so.
        measure_callbacks: what hears of each batch; "default" keeps, learns and cleans up.
        module_equality: when two modules are one workload: "structural", "ignore-ndarray" or
            "anchor-block".
        post_optimization: accepted and not used.
    """
    del post_optimization
    if not tasks:
        raise IRValueError("tune_tasks: there is no task to tune")
    if builder == "local":
        for target in {str(task.target): task.target for task in tasks}.values():
            if target is not None:
                backend_of(target)  # raises for a target that this builder cannot compile for
    Path(work_dir).mkdir(parents=True, exist_ok=True)
    if isinstance(database, str):
        options = {"work_dir": str(work_dir)} if database == "json" else {}
        database = Database.create(database, module_equality=module_equality, **options)
    threads = max(task.num_threads for task in tasks)
    scheduler = (
        TaskScheduler.create(task_scheduler) if isinstance(task_scheduler, str) else task_scheduler
    )
    scheduler.tune(
        tasks,
        task_weights,
        max_trials_global,
        max_trials_global if max_trials_per_task is None else max_trials_per_task,
        num_trials_per_iter,
        Builder.create(builder, max_workers=threads) if isinstance(builder, str) else builder,
        Runner.create(runner) if isinstance(runner, str) else runner,
        _callbacks(measure_callbacks),
        database,
        _model(cost_model, threads),
    )
    return database


def _callbacks(given: Callbacks) -> Sequence[MeasureCallback]:
    if isinstance(given, MeasureCallback):
        return [given]
    return measure_callback.create(given) if isinstance(given, str) else given


def _model(given: CostModel | str | None, threads: int) -> CostModel | None:
    if given is None or isinstance(given, CostModel):
        return given
    try:
        return CostModel.create(given, num_tuning_cores=threads)
    except MissingPackageError as error:
        logger.warning("%s; a small neural network ranks candidates instead", error)
        return CostModel.create("mlp")
