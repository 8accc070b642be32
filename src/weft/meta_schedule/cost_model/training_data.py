"""What learned cost models learn from: features of candidates and their times, by task."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Final, TypeAlias
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray as NumpyArray

from weft.driver.tuning.collection import Sample, samples_of
from weft.ir.structural import structural_digest
from weft.meta_schedule.protocols import Context
from weft.meta_schedule.runner.base import RunnerResult
from weft.support.errors import IRValueError
from weft.tir.store_features.rows import USUAL_LAYOUT

Matrix: TypeAlias = NumpyArray[np.floating[Any]]
FAILED: Final = 1e10
"""Seconds of a program that could not be measured."""

_LEAST: Final = 1e-10
"""Seconds that any program takes; a runner of the user may say 0."""


class FeatureGroup:
    """The measured candidates of one task.

    Args:
        group_hash: a name of the task.
        features: a matrix for each candidate, a row for each of its stores.
        costs: seconds of each candidate.
    """

    def __init__(self, group_hash: str, features: Sequence[Matrix], costs: Matrix) -> None:
        self.group_hash = group_hash
        self.features = list(features)
        self.costs = np.asarray(costs, np.float64)

    @property
    def min_cost(self) -> float:
        """Seconds of the fastest candidate."""
        return float(self.costs.min())

    @property
    def scores(self) -> Matrix:
        """How near each candidate comes to the fastest: from 0 to 1."""
        return self.min_cost / self.costs

    def append(self, features: Sequence[Matrix], costs: Matrix) -> None:
        """Add candidates of the same task."""
        self.features += features
        self.costs = np.concatenate([self.costs, costs])


class TrainingData(dict[str, FeatureGroup]):
    """Groups by the name of their task."""

    @property
    def size(self) -> int:
        """The number of measured candidates."""
        return sum([len(group.costs) for group in self.values()])

    def add(self, name: str, features: Sequence[Matrix], costs: Matrix) -> None:
        """Add measured candidates of a task."""
        if name in self:
            self[name].append(features, costs)
        else:
            self[name] = FeatureGroup(name, features, costs)

    def all(self) -> tuple[list[Matrix], Matrix]:
        """The matrices of all candidates, and their scores."""
        features = [matrix for group in self.values() for matrix in group.features]
        return features, np.concatenate([group.scores for group in self.values()])


def task_of(context: Context) -> str:
    """A name of the task of a context: a digest of its module."""
    return "" if context.mod is None else structural_digest(context.mod).hex()


def costs_of(results: Sequence[RunnerResult]) -> Matrix:
    """The median seconds of each result; ``FAILED`` for failures."""
    costs = [
        float(np.median([float(getattr(secs, "value", secs)) for secs in result.run_secs]))
        if result.run_secs
        else FAILED
        for result in results
    ]
    return np.maximum(np.array(costs, np.float64), _LEAST)


def collected(path: str | Path) -> Iterator[tuple[str, list[Matrix], Matrix]]:
    """Each kernel that ``weft tune --collect`` wrote: its digest, matrices and seconds.

    Each time is scaled by that of the default that was measured beside it, so what was measured in
    a busy moment counts as it would have in a quiet one.
    """
    kernels: dict[str, list[Sample]] = {}
    for sample in samples_of(path):
        kernels.setdefault(sample.kernel, []).append(sample)
    for name, samples in kernels.items():
        usual = float(np.mean([sample.default for sample in samples])) * 1e-6
        costs = [
            FAILED if item.microseconds is None else usual * item.microseconds / item.default
            for item in samples
        ]
        matrices = [
            np.array(sample.features, np.float32).reshape(-1, USUAL_LAYOUT.length)
            for sample in samples
        ]
        yield name, matrices, np.maximum(np.array(costs), _LEAST)


def write_data(file: BinaryIO, data: TrainingData, **arrays: NumpyArray[Any]) -> None:
    """Write groups, and other arrays, as an ``npz`` file without pickles."""
    matrices = [matrix for group in data.values() for matrix in group.features]
    content: dict[str, NumpyArray[Any]] = {
        "names": np.frombuffer(json.dumps(list(data)).encode(), np.uint8),
        "sizes": np.array([len(group.costs) for group in data.values()], np.int64),
        "rows": np.array([len(matrix) for matrix in matrices], np.int64),
        "features": np.concatenate(matrices) if matrices else np.zeros((0, 1)),
        "costs": np.concatenate([group.costs for group in data.values()] or [np.zeros(0)]),
    }
    content |= arrays
    np.savez(file, allow_pickle=False, **content)


def read_data(path: str, kind: str) -> tuple[TrainingData, dict[str, NumpyArray[Any]]]:
    """The groups and the other arrays that ``write_data`` wrote; ``kind`` is for messages."""
    try:
        with np.load(io.BytesIO(Path(path).read_bytes()), allow_pickle=False) as file:
            arrays = dict(file)
        data = _groups(arrays)
    except (OSError, ValueError, KeyError, TypeError, EOFError, BadZipFile) as error:
        raise IRValueError(
            f"{kind}.load: {path}: expected a file that {kind}.save wrote: {error}"
        ) from error
    return data, arrays


def _groups(arrays: dict[str, NumpyArray[Any]]) -> TrainingData:
    names = json.loads(arrays.pop("names").tobytes())
    sizes, rows = arrays.pop("sizes"), arrays.pop("rows")
    matrices = np.split(arrays.pop("features"), np.cumsum(rows)[:-1]) if len(rows) else []
    costs = arrays.pop("costs")
    data, begin = TrainingData(), 0
    for name, size in zip(names, sizes.tolist(), strict=True):
        data[name] = FeatureGroup(name, matrices[begin : begin + size], costs[begin : begin + size])
        begin += size
    return data
