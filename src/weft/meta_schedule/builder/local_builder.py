"""The builder that compiles on this machine, in worker processes."""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Final

from weft.driver.build import build as build_module
from weft.ir.module import IRModule
from weft.meta_schedule.builder.base import Builder, BuilderInput, BuilderResult
from weft.meta_schedule.processes.named import MEMORY, Given, failure_text, function_of
from weft.meta_schedule.processes.pool import WorkerPool
from weft.meta_schedule.processes.process import Outcome
from weft.meta_schedule.processes.worker import Limits
from weft.runtime.module import Module
from weft.runtime.ndarray import NDArray
from weft.runtime.registry import register_func
from weft.support.config import usable_processors
from weft.target import Target
from weft.tir.transform.remove_weight_layout_rewrite_block import RemoveWeightLayoutRewriteBlock

_NICE: Final = 5
"""By how much workers give way to other processes."""


@register_func("meta_schedule.builder.default_build")
def default_build(
    mod: IRModule, target: Target, params: Mapping[str, NDArray] | None = None
) -> Module:
    """Compile a module of PrimFuncs; weights are expected as the schedule lays them out."""
    del params
    return build_module(RemoveWeightLayoutRewriteBlock(skip_ndarray_rewrite=True)(mod), target)


@register_func("meta_schedule.builder.default_export")
def default_export(mod: Module) -> str:
    """Write a module into a new temporary folder; returns the path of the file."""
    path = os.path.join(tempfile.mkdtemp(prefix="trial-"), "kernels.bin")
    mod.export_library(path)
    return path


class LocalBuilder(Builder):
    """Compiles in worker processes, which stay alive from batch to batch.

    An exception, a crash, a hang or a lack of memory is the result of the module that caused it.

    Args:
        max_workers: how many processes; as many as this one may use processors by default.
        timeout_sec: seconds after which a build is broken off.
        f_build: ``(mod, target, params) -> Module``, or the name of a registered function.
        f_export: ``(module) -> path of a file``, or such a name.
        initializer: called in each worker process first, to register functions there.
        memory_bytes: what a worker may take; half of the machine's memory by default.

    Functions are sent to the processes as they are; they may be local ones.

    >>> import weft
    >>> from weft import te
    >>> from weft.meta_schedule.builder import BuilderInput, LocalBuilder
    >>> x = te.placeholder((4,), name="x")
    >>> y = te.compute((4,), lambda i: x[i] + 1.0)
    >>> mod = weft.IRModule({"main": te.create_prim_func([x, y])})
    >>> builder = LocalBuilder(max_workers=1)
    >>> [result] = builder.build([BuilderInput(mod, weft.target.Target("llvm"))])
    >>> result.error_msg is None and weft.runtime.load_module(result.artifact_path)
    Executable(type_key='llvm', functions=[main])
    """

    def __init__(
        self,
        *,
        max_workers: int | None = None,
        timeout_sec: float = 30.0,
        f_build: Given = None,
        f_export: Given = None,
        initializer: Callable[[], None] | None = None,
        memory_bytes: int = MEMORY,
    ) -> None:
        self.max_workers = max_workers or usable_processors()
        self.timeout_sec = timeout_sec
        self.initializer = initializer
        self.f_build, self.f_export = f_build, f_export
        self._pool = WorkerPool(
            partial(_prepare, f_build, f_export, trial_folder()),
            max_workers=self.max_workers,
            limits=Limits(timeout_sec, memory_bytes, _NICE),
            initializer=initializer,
        )
        if (f_build, f_export, initializer) != (None, None, None):
            self._pool.check()

    def submit(self, build_input: BuilderInput) -> Future[BuilderResult]:
        """Begin to compile a module, while others are compiled and measured."""
        mod, target, params = build_input
        result: Future[BuilderResult] = Future()
        future = self._pool.submit(mod, target, params)
        future.add_done_callback(lambda done: _pass_on(done, result))
        return result

    def build(self, build_inputs: Sequence[BuilderInput]) -> list[BuilderResult]:
        futures = [self.submit(BuilderInput(*build_input)) for build_input in build_inputs]
        return [future.result() for future in futures]

    def close(self) -> None:
        """End the worker processes; they end by themselves with the builder, too."""
        self._pool.close()


def _pass_on(done: Future[Outcome], result: Future[BuilderResult]) -> None:
    error = done.exception()
    if error is not None:
        result.set_exception(error)
        return
    outcome = done.result()
    if outcome.kind:
        result.set_result(BuilderResult(None, failure_text("LocalBuilder", outcome)))
    else:
        result.set_result(BuilderResult(outcome.value, None))


@functools.cache
def trial_folder() -> str:
    """The folder of this process's temporary files of trials, which goes when the process ends."""
    folder, owner = tempfile.mkdtemp(prefix="weft-trials-"), os.getpid()

    def remove() -> None:
        if os.getpid() == owner:  # a forked child leaves it to its parent
            shutil.rmtree(folder, ignore_errors=True)

    atexit.register(remove)
    return folder


def _prepare(f_build: Given, f_export: Given, folder: str) -> Callable[..., str]:
    """Called in a worker process: the function that compiles a module, and gives its file."""
    tempfile.tempdir = folder
    build, export = function_of(f_build, default_build), function_of(f_export, default_export)

    def build_and_export(
        mod: IRModule, target: Target, params: Mapping[str, NDArray] | None
    ) -> str:
        return str(export(build(mod, target, params)))

    return build_and_export


@register_func("meta_schedule.builder.get_local_builder")
def get_local_builder() -> LocalBuilder:
    """A builder with default settings."""
    return LocalBuilder()
