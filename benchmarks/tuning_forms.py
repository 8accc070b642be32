"""Forms of the operators' kernels, measured: what a cost model of ``weft.tune`` can learn from.

    python -m benchmarks.tuning_forms collect forms.jsonl --minutes 30
    python -m benchmarks.tuning_forms rank forms.jsonl

``collect`` takes the operators of ``python -m benchmarks ops`` in a random order. Each kernel gets
forms with one answer changed: those that the schedules' own cost models like best, then others at
random. A form and the default are timed in turn, in one thread by the clock of its processor time,
so that other work on the machine disturbs both or neither. A line has the form, its time as a share
of the default's, the place that the cost model gave it, and features of the program (Ansor's, for
each store). ``rank`` trains gradient-boosted trees on some operators, orders the forms of others,
and compares that order with the cost models' own.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import torch
import xgboost

from benchmarks.operators import OPERATORS, Operator
from weft.cli.models import find_model
from weft.dlight.decisions import Decisions, deciding
from weft.driver.insertions import SCHEDULING, name_of, with_insertions
from weft.driver.size_hints import with_size_hints
from weft.driver.sources import import_model, request_of
from weft.driver.tuning.kernels import Kernel, kernels_of, stages
from weft.driver.tuning.trial_process import TrialFailedError, TrialProcess
from weft.ir.module import IRModule
from weft.meta_schedule.feature_extractor import PerStoreFeature
from weft.target import Target
from weft.tir.function import PrimFunc

_TARGET: Final = Target("llvm -num-cores=1")
_FORMS: Final = 16
"""Forms of a kernel."""
_LIKED: Final = 3
"""So many answers of each choice are those that its cost model likes best."""
_SECONDS: Final = 120.0
_LEAST: Final = 4
"""Kernels with fewer forms besides the default are left out."""
_FOLDS: Final = 5
_SPLITS: Final = 3
"""So many divisions of the operators into folds are averaged."""
_ORDERS: Final = 100
"""So many random orders are averaged."""
_FIRST: Final = (2, 4, 8)
_PLACES: Final = slice(-3, None)
"""The inputs of a model that are no features of the program (``_inputs``)."""
_SHARES: Final = (0.5, 2.0)
"""Shares beyond these count as these: nobody asks how bad a bad form is."""
_ROUNDS: Final = 200
_TREES: Final = {
    "max_depth": 4,
    "eta": 0.05,
    "subsample": 0.7,
    "colsample_bytree": 0.3,
    "min_child_weight": 4,
    "seed": 1,
    "nthread": 1,
}
"""Options of xgboost."""


def collect(path: Path, minutes: float) -> None:
    """Measure forms for some minutes, and add them to a file; known kernels are left out."""
    deadline = time.monotonic() + 60 * minutes
    known = {row["kernel"] for row in rows_of(path)} if path.exists() else set()
    operators = random.Random(0).sample(OPERATORS, len(OPERATORS))
    process = TrialProcess(_TARGET, 1, _SECONDS)
    try:
        for operator in operators:
            for kernel in _kernels(operator):
                if kernel.digest.hex() in known or time.monotonic() > deadline:
                    continue
                known.add(kernel.digest.hex())
                with path.open("a") as file:
                    for row in _measured(operator, kernel, process):
                        file.write(json.dumps(row) + "\n")
                print(f"{operator.name}: {kernel.name}", flush=True)
    finally:
        process.close()


def rows_of(path: Path) -> list[dict[str, Any]]:
    """What ``collect`` wrote."""
    return [json.loads(line) for line in path.read_text().splitlines()]


def _kernels(operator: Operator) -> list[Kernel]:
    """The kernels of an operator."""
    model = find_model(f"benchmarks.operator_modules:{operator.slug}")
    generator = np.random.default_rng(0)
    examples = [torch.from_numpy(item.array(generator)) for item in operator.inputs]
    request = request_of(model, tuple(examples), None, {})
    with _TARGET:
        return kernels_of(stages(_TARGET).front(with_size_hints(import_model(request), request)))


def _measured(
    operator: Operator, kernel: Kernel, process: TrialProcess
) -> Iterator[dict[str, object]]:
    """The default of a kernel, and some forms of it."""
    try:
        microseconds, offered = process.trial(kernel, {})
        usual = _features(kernel, {})
    except TrialFailedError:
        return
    about = {"operator": operator.name, "kernel": kernel.digest.hex(), "name": kernel.name}
    forms = _forms(offered, random.Random(kernel.digest))
    if forms:
        yield {**about, "taken": {}, "share": 1.0, "us": microseconds, "place": 0, "of": 1,
               "features": usual}  # fmt: skip
    for place, count, taken in forms:
        try:
            default, tuned = process.compare(kernel, taken, 1)
        except TrialFailedError:
            continue
        yield {**about, "taken": taken, "share": tuned / default, "us": default, "place": place,
               "of": count, "features": _features(kernel, taken)}  # fmt: skip


def _forms(
    offered: Mapping[str, Sequence[str]], generator: random.Random
) -> list[tuple[int, int, dict[str, str]]]:
    """Places, numbers of answers, and forms: some that cost models like, some at random."""
    every = [
        (place, len(answers), {name: answer})
        for name, answers in offered.items()
        for place, answer in enumerate(answers)
        if place
    ]
    liked = [form for form in every if form[0] <= _LIKED][:_FORMS]
    others = [form for form in every if form[0] > _LIKED]
    return [*liked, *generator.sample(others, min(len(others), _FORMS - len(liked)))]


def _features(kernel: Kernel, taken: Mapping[str, str]) -> list[list[float]]:
    """A row of features for each store of the program with these answers."""
    passes = with_insertions(_TARGET)
    [scheduling] = [step for step in passes if name_of(step) == SCHEDULING][:1]
    with _TARGET, deciding(Decisions(taken)):
        module = scheduling(kernel.module)
    functions = {var: f for var, f in module.functions.items() if isinstance(f, PrimFunc)}
    rows = PerStoreFeature().rows_of(IRModule(functions))
    return np.round(rows, 4).tolist()


# What is learned


class Forms(NamedTuple):
    """The forms of one kernel.

    Attributes:
        operator: the operator that it belongs to.
        inputs: what a model is told of each form, ``(forms, numbers)`` of float32.
        shares: the time of each, as a share of the default's.
        places: the order in which the search tries them: the place that the cost model of the
            choice gave the answer, then the choice.
    """

    operator: str
    inputs: np.ndarray
    shares: np.ndarray
    places: np.ndarray


def forms_of(rows: Sequence[Mapping[str, Any]]) -> list[Forms]:
    """The kernels of a file, those with at least ``_LEAST`` forms besides the default."""
    kernels: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        kernels.setdefault(row["kernel"], []).append(row)
    forms = []
    for own in kernels.values():
        [default] = [row for row in own if not row["taken"]]
        others = [row for row in own if row["taken"]]
        if len(others) >= _LEAST:
            usual = _summary(default["features"])
            inputs = [_inputs(row, usual) for row in others]
            shares = np.array([row["share"] for row in others])
            places = np.array([row["place"] for row in others], np.float64)
            forms.append(Forms(default["operator"], np.array(inputs, np.float32), shares, places))
    return forms


def _summary(features: Sequence[Sequence[float]]) -> np.ndarray:
    """One vector for a program: the sum and the largest of each feature over its stores."""
    matrix = np.array(features, np.float64)
    return np.concatenate([matrix.sum(0), matrix.max(0)])


def _inputs(row: Mapping[str, Any], usual: np.ndarray) -> np.ndarray:
    """What a model is told of a form: its features, how they differ, what the cost model thinks."""
    own = _summary(row["features"])
    place = row["place"]
    return np.concatenate([own, own - usual, [place, place / row["of"], np.log(row["us"])]])


def trained(kernels: Sequence[Forms], columns: slice) -> xgboost.Booster:
    """Trees that give the logarithm of a form's share of the default's time."""
    label = np.concatenate([np.log(np.clip(item.shares, *_SHARES)) for item in kernels])
    inputs = np.concatenate([item.inputs[:, columns] for item in kernels])
    matrix = xgboost.DMatrix(inputs, label, nthread=1)
    return xgboost.train(_TREES, matrix, num_boost_round=_ROUNDS)


def predicted(kernels: Sequence[Forms], columns: slice, seed: int) -> list[np.ndarray]:
    """What trees say of the forms of each kernel that learned from other operators only."""
    operators = sorted({item.operator for item in kernels})
    random.Random(seed).shuffle(operators)
    scores: list[np.ndarray] = [np.zeros(0)] * len(kernels)
    for fold in range(_FOLDS):
        held = set(operators[fold::_FOLDS])
        booster = trained([item for item in kernels if item.operator not in held], columns)
        for number, item in enumerate(kernels):
            if item.operator in held:
                matrix = xgboost.DMatrix(item.inputs[:, columns], nthread=1)
                scores[number] = np.asarray(booster.predict(matrix))
    return scores


def rank(path: Path) -> None:
    """Print how well forms of operators that were not learned from are ordered."""
    kernels = forms_of(rows_of(path))
    count = sum([len(item.shares) for item in kernels])
    print(f"{len(kernels)} kernels, {count} forms, {_FOLDS} folds of operators")
    heads = [f"best of {k}" for k in _FIRST]
    print(f"{'order of forms':32} {'Spearman':>15} " + " ".join([f"{head:>9}" for head in heads]))
    generator = np.random.default_rng(0)
    for name, orders in (
        ("at random", [[generator.random(len(item.shares)) for item in kernels]
                       for _ in range(_ORDERS)]),
        ("cost models of the schedules", [[item.places for item in kernels]]),
        ("trees, told only these", [predicted(kernels, _PLACES, seed) for seed in range(_SPLITS)]),
        ("trees, told features as well",
         [predicted(kernels, slice(None), seed) for seed in range(_SPLITS)]),
        ("as measured", [[item.shares for item in kernels]]),
    ):  # fmt: skip
        print(f"{name:32} {_judged(kernels, orders)}")


def agreement(path: Path, again: Path) -> None:
    """Print how well two measurements of the same forms agree on their order."""
    shares: list[dict[str, dict[str, float]]] = []
    for file in (path, again):
        kernels: dict[str, dict[str, float]] = {}
        for row in rows_of(file):
            if row["taken"]:
                kernels.setdefault(row["kernel"], {})[str(row["taken"])] = row["share"]
        shares.append(kernels)
    first, second = shares
    ranks = []
    for kernel in first.keys() & second.keys():
        both = sorted(first[kernel].keys() & second[kernel].keys())
        if len(both) >= _LEAST:
            columns = [np.array([own[kernel][form] for form in both]) for own in shares]
            ranks.append(_spearman(*columns))
    print(f"{'measured twice':32} {np.mean(ranks):8.3f}, {len(ranks)} kernels of both files")


def _judged(kernels: Sequence[Forms], orders: Sequence[Sequence[np.ndarray]]) -> str:
    """The columns of a row: the mean over orders, and the error of the mean over kernels."""
    spearman = np.array([
        [_spearman(score, item.shares) for item, score in zip(kernels, scores, strict=True)]
        for scores in orders
    ])  # fmt: skip
    error = spearman.mean(0).std() / np.sqrt(len(kernels))
    first = [np.mean([_best_of(k, kernels, scores) for scores in orders]) for k in _FIRST]
    columns = [f"{share:9.4f}" for share in first]
    return " ".join([f"{spearman.mean():8.3f} ± {error:.3f}", *columns])


def _spearman(score: np.ndarray, shares: np.ndarray) -> float:
    """The correlation of ranks; 0 where all are equal."""
    ranks = [_ranks(score), _ranks(shares)]
    if min(item.std() for item in ranks) == 0:
        return 0.0
    return float(np.corrcoef(*ranks)[0, 1])


def _ranks(values: np.ndarray) -> np.ndarray:
    """Ranks from 0; equal values have the mean of theirs."""
    _, groups, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    return (ends - (counts + 1) / 2)[groups]


def _best_of(count: int, kernels: Sequence[Forms], scores: Sequence[np.ndarray]) -> float:
    """The geometric mean of the shortest share among the first forms, the default's among them."""
    best = [
        min(1.0, float(item.shares[np.argsort(score, kind="stable")[:count]].min()))
        for item, score in zip(kernels, scores, strict=True)
    ]
    return float(np.exp(np.mean(np.log(best))))


def main() -> None:
    """Run a subcommand."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    collecting = commands.add_parser("collect")
    collecting.add_argument("file", type=Path)
    collecting.add_argument("--minutes", type=float, default=30.0)
    ranking = commands.add_parser("rank")
    ranking.add_argument("file", type=Path)
    ranking.add_argument("--again", type=Path, help="another measurement of the same forms")
    options = parser.parse_args()
    if options.command == "collect":
        collect(options.file, options.minutes)
    else:
        rank(options.file)
        if options.again:
            agreement(options.file, options.again)


if __name__ == "__main__":
    main()
