"""What a worker process does to measure a program: arguments, runs, cores."""

from __future__ import annotations

import contextlib
import functools
import math
import os
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import numpy as np

from weft.meta_schedule.arg_info import ArgInfo, TensorInfo
from weft.meta_schedule.processes.named import Given, function_of
from weft.meta_schedule.processes.worker import wait_for_quiet
from weft.meta_schedule.runner.config import EvaluatorConfig
from weft.runtime.call.abi import THREADED
from weft.runtime.device import Device, device
from weft.runtime.model.load_module import load_module
from weft.runtime.module import Module
from weft.runtime.native.elf import read_object
from weft.runtime.native.object_file import MAGIC
from weft.runtime.ndarray import NDArray, empty
from weft.support.errors import UnsupportedError

_BLOCK: Final = 1 << 18
"""Elements that are drawn at random; larger arrays repeat them."""
_CACHE_BYTES: Final = 64 << 20


def default_alloc_argument(
    device: Device, args_info: Sequence[Any], alloc_repeat: int
) -> list[list[NDArray]]:
    """Arguments of random values, ``alloc_repeat`` times; ``args_info`` is their JSON form.

    Floats are between 0 and 1; integers are 0 or 1, so that they are safe as indices.
    """
    infos = [ArgInfo.from_json(info) for info in args_info]
    return [[_random(info, device) for info in infos] for _ in range(alloc_repeat)]


def _random(info: ArgInfo, device: Device) -> NDArray:
    if not isinstance(info, TensorInfo):
        raise UnsupportedError(f"a runner allocates tensors only, not {info!r}")
    array = empty(info.shape, info.dtype, device)
    count = math.prod(info.shape)
    return array.copyfrom(np.resize(_values(info.dtype.is_float), count).reshape(info.shape))


@functools.cache
def _values(is_float: bool) -> np.ndarray[Any, Any]:
    generator = np.random.default_rng(0)
    if is_float:
        return generator.random(_BLOCK, dtype=np.float32)
    return generator.integers(0, 2, _BLOCK, dtype=np.int8)


def default_run_evaluator(
    rt_mod: Module,
    device: Device,
    evaluator_config: EvaluatorConfig,
    repeated_args: Sequence[Sequence[NDArray]],
) -> list[float]:
    """Seconds of runs of the entry of a module, for each list of arguments."""
    name = rt_mod.entry_name
    if name is None:
        raise UnsupportedError("a runner measures modules of one function, or one named main")
    number, repeat, least, flush = evaluator_config
    if not flush:
        evaluator = rt_mod.time_evaluator(name, device, number, repeat, min_repeat_ms=least)
        return [secs for args in repeated_args for secs in evaluator(*args).results]
    once = rt_mod.time_evaluator(name, device, number=1)
    times: list[float] = []
    for args in repeated_args:
        for _ in range(repeat):
            _cache_filler()[...] += 1
            times += once(*args).results
    return times


@functools.cache
def _cache_filler() -> np.ndarray[Any, Any]:
    return np.zeros(_CACHE_BYTES, np.uint8)


def default_cleanup() -> None:
    """Nothing: the process keeps no state of a program."""


def prepare(
    f_alloc_argument: Given,
    f_run_evaluator: Given,
    f_cleanup: Given,
    config: EvaluatorConfig,
    alloc_repeat: int,
    cooldown_sec: float,
) -> Callable[..., list[float]]:
    """Called in the worker process: the function that measures the program in a file."""
    allocate = function_of(f_alloc_argument, default_alloc_argument)
    evaluate = function_of(f_run_evaluator, default_run_evaluator)
    cleanup = function_of(f_cleanup, default_cleanup)

    def measure(artifact_path: str, device_type: str, args_info: list[object]) -> list[float]:
        try:
            module = load_module(artifact_path)
            place = device(device_type, 0)
            arguments = allocate(place, args_info, alloc_repeat)
            wait_for_quiet()
            with _own_core(artifact_path):
                times = evaluate(module, place, config, arguments)
            return [float(getattr(time, "value", time)) for time in times]
        finally:
            cleanup()
            time.sleep(cooldown_sec)

    return measure


@contextlib.contextmanager
def _own_core(artifact_path: str) -> Iterator[None]:
    """While open, a program without threads stays on one core, the last that it may use.

    One with threads uses all: those of a team do not move as long as nothing else runs.
    """
    if not hasattr(os, "sched_setaffinity") or _may_use_threads(artifact_path):
        yield
        return
    before = os.sched_getaffinity(0)
    with contextlib.suppress(OSError):
        os.sched_setaffinity(0, {max(before)})
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            os.sched_setaffinity(0, before)


def _may_use_threads(artifact_path: str) -> bool:
    with open(artifact_path, "rb") as file:
        content = file.read()
    if not content.startswith(MAGIC):
        return True
    object_file = read_object(content[content.find(b"\x7fELF") :])
    return object_file is None or bool(object_file.symbol_names()[1] & THREADED)
