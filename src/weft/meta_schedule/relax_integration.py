"""Tune the kernels of a Relax model: ``extract_tasks``, ``tune_relax`` and ``compile_relax``."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Unpack

from weft.driver.build import relax_build
from weft.ir.expr import GlobalVar
from weft.ir.functor import collect
from weft.ir.module import IRModule
from weft.meta_schedule.apply_database import MetaScheduleApplyDatabase
from weft.meta_schedule.database.base import Database
from weft.meta_schedule.database.module_equality import EQUALITIES
from weft.meta_schedule.extracted_task import ExtractedTask
from weft.meta_schedule.search_strategy.base import SearchStrategy
from weft.meta_schedule.tune import TuneOptions, tune_tasks
from weft.meta_schedule.tune_context import Space, TuneContext, contexts_of, normalized
from weft.relax.expr import Call, Function
from weft.relax.op.base import CALL_TIR
from weft.relax.transform import BindParams
from weft.runtime.ndarray import NDArray
from weft.runtime.vm.executable import Executable
from weft.support.errors import IRValueError
from weft.target import Target
from weft.tir.function import PrimFunc
from weft.tir.scheduled import is_scheduled
from weft.tir.stmt import Block

logger = logging.getLogger("weft.meta_schedule")


def extract_tasks(
    mod: IRModule | Function,
    target: Target | str,
    params: Mapping[str, NDArray] | None = None,
    module_equality: str = "structural",
) -> list[ExtractedTask]:
    """The kernels that a model calls, each once, with how often it is called.

    Args:
        mod: the model after LegalizeOps, with or without fusion; or its main function.
        target: what it is tuned for.
        params: weights to bind first.
        module_equality: when two kernels are one task: "structural", "ignore-ndarray" or
            "anchor-block". Of those that are one, the one with the fewest blocks is tuned.
    """
    module = IRModule({"main": mod}) if isinstance(mod, Function) else mod
    module = BindParams("main", params)(module) if params else module
    given = Target(target) if isinstance(target, str) else target
    tasks: dict[bytes, ExtractedTask] = {}
    for function in module.functions.values():
        calls = collect(function, Call) if isinstance(function, Function) else []
        for call in calls:
            variable = call.args[0] if call.op is CALL_TIR else None
            callee = module[variable] if isinstance(variable, GlobalVar) else None
            if isinstance(variable, GlobalVar) and isinstance(callee, PrimFunc):
                _count(tasks, variable.name_hint, callee, given, module_equality)
    return list(tasks.values())


def _count(
    tasks: dict[bytes, ExtractedTask], name: str, kernel: PrimFunc, target: Target, equality: str
) -> None:
    """Add one call of a kernel to the tasks."""
    module = normalized(kernel)
    key = EQUALITIES[equality].digest(module)
    known = tasks.get(key)
    if known is None:
        tasks[key] = ExtractedTask(name, module, target, [module], 1)
        return
    is_smaller = len(collect(kernel, Block)) < len(collect(known.mod, Block))
    name, module = (name, module) if is_smaller else (known.task_name, known.mod)
    tasks[key] = ExtractedTask(name, module, target, [module], known.weight + 1)


def extracted_tasks_to_tune_contexts(
    extracted_tasks: Sequence[ExtractedTask],
    work_dir: str,
    space: Space = "post-order-apply",
    strategy: SearchStrategy | str = "evolutionary",
    num_threads: int | str = "physical",
    seed: int | None = None,
) -> tuple[list[TuneContext], list[float]]:
    """Contexts and weights of tasks; those that are scheduled already are left out."""
    del work_dir
    open_tasks = []
    for task in extracted_tasks:
        if is_scheduled(task.mod["main"]):
            logger.warning("%s is scheduled already and is not tuned", task.task_name)
        else:
            open_tasks.append(task)
    contexts = contexts_of(
        [(task.task_name, task.dispatched[0], task.target, space) for task in open_tasks],
        strategy,
        num_threads,
        seed,
    )
    return contexts, [float(task.weight) for task in open_tasks]


def tune_relax(
    mod: IRModule | Function,
    params: Mapping[str, NDArray],
    target: Target | str,
    work_dir: str,
    max_trials_global: int,
    max_trials_per_task: int | None = None,
    op_names: Sequence[str] | None = None,
    *,
    space: Space = "post-order-apply",
    strategy: SearchStrategy | str = "evolutionary",
    seed: int | None = None,
    **options: Unpack[TuneOptions],
) -> Database:
    """Search for fast schedules of the kernels of a model (after LegalizeOps).

    Args:
        mod, params, target: the model, weights to bind, and what to compile for.
        work_dir: the folder of the database.
        max_trials_global, max_trials_per_task: how many programs are measured.
        op_names: tune only kernels with one of these texts in their name.

    The other arguments are those of ``tune_tir``; options (``TuneOptions``) those of
    ``tune_tasks``. Returns the database, for ``compile_relax``.
    """
    tasks = extract_tasks(mod, target, params, options.get("module_equality", "structural"))
    if op_names:
        tasks = [task for task in tasks if any(name in task.task_name for name in op_names)]
    contexts, weights = extracted_tasks_to_tune_contexts(
        tasks, work_dir, space, strategy, seed=seed
    )
    if not contexts:
        raise IRValueError(
            "tune_relax: the model calls no kernel that could be tuned; run LegalizeOps first"
        )
    return tune_tasks(
        tasks=contexts,
        task_weights=weights,
        work_dir=work_dir,
        max_trials_global=max_trials_global,
        max_trials_per_task=max_trials_per_task,
        **options,
    )


def compile_relax(
    database: Database,
    mod: IRModule,
    target: Target | str,
    params: Mapping[str, NDArray] | None,
    enable_warning: bool = False,
) -> Executable:
    """Build a model with the fastest schedules of a database; other kernels get weft's own.

    Args:
        database: what tuning measured.
        mod, target, params: the model (as it was tuned), what to build for, weights to bind.
        enable_warning: name the kernels that the database does not have.
    """
    given = Target(target) if isinstance(target, str) else target
    module = BindParams("main", params)(mod) if params else mod
    with given, database:
        module = MetaScheduleApplyDatabase(enable_warning=enable_warning)(module)
        return relax_build(module, given)
