"""One trial: compile a kernel with some answers, run it, compare its result, take its time."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from weft.dlight.decisions import Decisions, deciding
from weft.driver.compile import compile as compile_model
from weft.driver.insertions import SCHEDULING
from weft.driver.tuning.kernels import MAIN, stages
from weft.ir.json_text import load_json
from weft.ir.module import IRModule
from weft.relax.ir.lattice import tensor_dims
from weft.relax.struct_info import StructInfo, TensorStructInfo
from weft.relax.transform import BindParams
from weft.runtime.ndarray import array
from weft.support.dtype import DataType
from weft.support.errors import IRValueError
from weft.target.target import Target
from weft.tir.function import PrimFunc
from weft.tir.size_hints import likely_size, size_hints_of
from weft.tir.store_features.rows import store_features

_BATCH: Final = 0.004
"""Seconds of the calls that are timed together."""
_BATCHES: Final = 9
"""The shortest of so many batches counts: other work on the machine only makes a batch longer."""
_SIZE: Final = 32
"""The size of a symbolic dimension of which nothing is known."""
_TOLERANCE: Final = 1e-3
"""How far results may differ, as a share of the largest: sums may be added in another order."""

_SEEDS: Final = (1, 2)
"""Random arguments for which the results of a form that may win are compared as well."""

Arrays = Sequence[np.ndarray]
Form = Callable[..., object]
"""A compiled kernel."""
Clock = Callable[[], float]


class Timing(NamedTuple):
    """What a trial took, and which choices the kernel has."""

    microseconds: float
    offered: Mapping[str, Sequence[str]]


class Bench:
    """A kernel with random arguments, which times its forms.

    Args:
        module: the JSON of a kernel's module (``Kernel.module``).
        weights: which parameters are constants.
        target: what to compile for, as ``Target`` takes it.
        num_threads: threads of a call; None: the process's number.
        step: the pass whose choices are answered (``Kernel.step``).
    """

    def __init__(
        self,
        module: str,
        weights: Sequence[bool],
        target: Any,
        num_threads: int | None,
        step: str = SCHEDULING,
    ) -> None:
        self._target, self._threads = Target(target), num_threads
        self._step = step
        self._clock = clock_of(num_threads)
        loaded: IRModule = load_json(module)
        for function in loaded.functions.values():
            if isinstance(function, PrimFunc):
                function.provenance = "te"  # which JSON does not keep
        parameters = loaded[MAIN].params
        infos = [item.struct_info for item in parameters]
        sizes = size_hints_of(loaded)
        arrays = random_arguments(infos, sizes)
        self._infos = [
            info for info, is_weight in zip(infos, weights, strict=True) if not is_weight
        ]
        self._sizes = sizes
        bound = {
            parameter.name_hint: array(value)
            for parameter, value, is_weight in zip(parameters, arrays, weights, strict=True)
            if is_weight
        }
        self._module = BindParams(MAIN, bound)(loaded) if bound else loaded
        self._arrays = [a for a, is_weight in zip(arrays, weights, strict=True) if not is_weight]
        self._forms: dict[tuple[tuple[str, str], ...], Form] = {}

    def trial(self, taken: Mapping[str, str]) -> Timing:
        """The time of the kernel with these answers, whose results are those of the default.

        Raises IRValueError if they are not.
        """
        usual = self._default() if taken else None
        decisions = Decisions(taken)
        with deciding(decisions):
            decided = self._decided()
        model = self._compiled(decided)
        if usual is not None:
            _check(model, usual, [self._arrays], taken)
        self._forms = {key: form for key, form in self._forms.items() if not key}
        self._forms[_key(taken)] = model
        return Timing(shortest(model, self._arrays, self._clock), decisions.offered)

    def compare(self, taken: Mapping[str, str], rounds: int) -> tuple[float, float]:
        """The shortest times of the default and of the form with these answers, taken in turn.

        The form may win, so its results are compared with those of the default for other arguments,
        too. Raises IRValueError if they differ.
        """
        default = self._default()
        if _key(taken) not in self._forms:
            self.trial(taken)
        tuned = self._forms[_key(taken)]
        _check(tuned, default, [self._random(seed) for seed in _SEEDS], taken)
        times = [
            [shortest(form, self._arrays, self._clock) for form in (default, tuned)]
            for _ in range(rounds)
        ]
        first, second = (min(column) for column in zip(*times, strict=True))
        return first, second

    def describe(self, taken: Mapping[str, str]) -> list[list[float]]:
        """The features of the kernel's program with these answers (``weft.tir.store_features``)."""
        with deciding(Decisions(taken)):
            decided = self._decided()
        functions = {v: f for v, f in decided.functions.items() if isinstance(f, PrimFunc)}
        return store_features(IRModule(functions))

    def _default(self) -> Form:
        """The form without answers, compiled if this process did not do so before."""
        if () not in self._forms:
            self.trial({})
        return self._forms[()]

    def _random(self, seed: int) -> Arrays:
        return random_arguments(self._infos, self._sizes, seed)

    def _decided(self) -> IRModule:
        """The module after the pass that makes the choices."""
        with self._target:
            return stages(self._target, self._step).step(self._module)

    def _compiled(self, decided: IRModule) -> Form:
        model: Form = compile_model(
            decided,
            target=self._target,
            num_threads=self._threads,
            cache=False,
            hot_shapes=0,
            relax_pipeline=stages(self._target, self._step).back,
        )
        return model


def _key(taken: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(taken.items()))


def _check(
    form: Form, default: Form, arguments: Sequence[Arrays], taken: Mapping[str, str]
) -> None:
    """Compare the results with those of the default. Raises IRValueError if they differ."""
    for arrays in arguments:
        pairs = zip(_results(form, arrays), _results(default, arrays), strict=True)
        if not all(_are_close(result, expected) for result, expected in pairs):
            raise IRValueError(f"the results with {dict(taken)} differ from the default's")


def _are_close(result: np.ndarray, expected: np.ndarray) -> bool:
    most = float(np.max(np.abs(expected), initial=0.0, where=np.isfinite(expected)))
    tolerance = _TOLERANCE * max(most, 1e-6)
    return bool(np.allclose(result, expected, rtol=0, atol=tolerance, equal_nan=True))


def _results(form: Form, arrays: Arrays) -> list[np.ndarray]:
    return [np.asarray(item) for item in _flat(form(*arrays))]


def _flat(value: object) -> list[Any]:
    return (
        [part for item in value for part in _flat(item)]
        if isinstance(value, tuple | list)
        else [value]
    )


def random_arguments(
    infos: Sequence[StructInfo], sizes: Mapping[str, int], seed: int = 0
) -> list[np.ndarray]:
    """Arrays for parameters with these struct infos; symbols have the sizes of their hints."""
    generator = np.random.default_rng(seed)
    return [_random(info, sizes, generator) for info in infos]


def _random(
    info: StructInfo, sizes: Mapping[str, int], generator: np.random.Generator
) -> np.ndarray:
    """An array for a parameter: floats normally distributed; bytes from 0 to 7; other integers 0,
    which any index may be.
    """
    dims = tensor_dims(info)
    if not isinstance(info, TensorStructInfo) or dims is None:
        raise IRValueError(f"a trial needs parameters that are tensors of known rank, got {info}")
    shape = [likely_size(extent, sizes) or _SIZE for extent in dims]
    kind = DataType(info.dtype)
    if kind.is_float:
        return generator.standard_normal(shape).astype(kind.numpy)
    if kind.bits == 8:
        return generator.integers(0, 8, shape).astype(kind.numpy)
    return np.zeros(shape, kind.numpy)


def clock_of(num_threads: int | None) -> Clock:
    """Seconds as calls with so many threads are timed.

    One thread has a clock that stands still while the system runs something else.
    """
    return time.thread_time if num_threads == 1 else time.perf_counter


def shortest(call: Form, arrays: Arrays, clock: Clock) -> float:
    """Microseconds of a call: the mean of the shortest batch of calls."""
    call(*arrays)
    begin = clock()
    call(*arrays)
    once = clock() - begin
    count = max(1, int(_BATCH / max(once, 1e-7)))
    times = []
    for _ in range(_BATCHES):
        begin = clock()
        for _ in range(count):
            call(*arrays)
        times.append((clock() - begin) / count)
    return min(times) * 1e6
