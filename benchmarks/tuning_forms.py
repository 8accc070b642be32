"""Forms of the operators' kernels, measured: what a cost model of ``weft.tune`` can learn from.

    python -m benchmarks.tuning_forms collect forms.jsonl --minutes 30
    python -m benchmarks.tuning_forms rank forms.jsonl

``collect`` takes the operators of ``python -m benchmarks ops`` in a random order. Each kernel gets
forms with one answer changed: those that the schedules' own cost models like best, then others at
random. A form and the default are timed in turn, in one thread by the clock of its processor time,
so that other work on the machine disturbs both or neither, in several rounds, and each form twice.
The file is one of ``weft tune --collect``, so ``weft tune --learn-from`` takes it.

``rank`` trains the trees of ``weft.driver.learned`` on some operators, orders the forms of others,
and compares that order with the cost models' own. Of the first forms of an order the fastest by the
first measurement is chosen, and judged by the second: a form is not shorter for being chosen.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import torch

from benchmarks.operators import OPERATORS, Operator
from weft.cli.models import find_model
from weft.driver.learned.trees import PLACES, LearnedOrder
from weft.driver.size_hints import with_size_hints
from weft.driver.sources import import_model, request_of
from weft.driver.tuning.collection import Collection, Described, Sample, samples_of
from weft.driver.tuning.kernels import Kernel, kernels_of, stages
from weft.driver.tuning.trial_process import TrialFailedError, TrialProcess
from weft.target import Target

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
_FIRST: Final = (1, 2, 4, 8)
_TWICE: Final = 2


def collect(path: Path, minutes: float, rounds: int) -> None:
    """Measure forms for some minutes, and add them to a file; known kernels are left out."""
    deadline = time.monotonic() + 60 * minutes
    known = {sample.kernel for sample in samples_of(path)} if path.exists() else set()
    operators = random.Random(0).sample(OPERATORS, len(OPERATORS))
    process, collection = TrialProcess(_TARGET, 1, _SECONDS), Collection(path)
    try:
        for operator in operators:
            for kernel in _kernels(operator):
                if kernel.digest.hex() in known or time.monotonic() > deadline:
                    continue
                known.add(kernel.digest.hex())
                for sample in _measured(operator, kernel, process, rounds):
                    collection.add(sample)
                print(f"{operator.name}: {kernel.name}", flush=True)
    finally:
        process.close()


def _kernels(operator: Operator) -> list[Kernel]:
    """The kernels of an operator."""
    model = find_model(f"benchmarks.operator_modules:{operator.slug}")
    generator = np.random.default_rng(0)
    examples = [torch.from_numpy(item.array(generator)) for item in operator.inputs]
    request = request_of(model, tuple(examples), None, {})
    with _TARGET:
        return kernels_of(stages(_TARGET).front(with_size_hints(import_model(request), request)))


def _measured(
    operator: Operator, kernel: Kernel, process: TrialProcess, rounds: int
) -> Iterator[Sample]:
    """The default of a kernel, and some forms of it, each measured twice."""
    name, digest = f"{operator.name}: {kernel.name}", kernel.digest.hex()
    try:
        usual, offered = process.trial(kernel, {})
        features = process.describe(kernel, {})
    except TrialFailedError:
        return
    forms = _forms(offered, random.Random(kernel.digest))
    if forms and features:
        yield Sample(digest, name, {}, [], usual, usual, features)
        for taken in forms:
            try:
                times = [process.compare(kernel, taken, rounds) for _ in range(_TWICE)]
                features = process.describe(kernel, taken)
            except TrialFailedError:
                continue
            ranks = [(offered[key].index(text), len(offered[key])) for key, text in taken.items()]
            for default, tuned in times:
                yield Sample(digest, name, taken, ranks, tuned, default, features)


def _forms(offered: Mapping[str, Sequence[str]], generator: random.Random) -> list[dict[str, str]]:
    """Forms with one answer changed: some that cost models like, some at random."""
    every = [
        (place, {name: answer})
        for name, answers in offered.items()
        for place, answer in enumerate(answers)
        if place
    ]
    liked = [form for place, form in every if place <= _LIKED][:_FORMS]
    others = [form for place, form in every if place > _LIKED]
    return [*liked, *generator.sample(others, min(len(others), _FORMS - len(liked)))]


# What is learned


class Forms(NamedTuple):
    """The forms of one kernel.

    Attributes:
        operator: the operator that it belongs to.
        usual: the sample of the default.
        samples: the first measurement of each form.
        shares: the time of each as a share of the default's, measured twice: ``(2, forms)``.
    """

    operator: str
    usual: Sample
    samples: list[Sample]
    shares: np.ndarray

    @property
    def places(self) -> np.ndarray:
        """The order in which the search tries them without a learned model."""
        return np.array([sum([rank for rank, _ in item.ranks]) for item in self.samples], float)


def forms_of(samples: Sequence[Sample]) -> list[Forms]:
    """The kernels of a file with at least ``_LEAST`` forms that were measured twice."""
    kernels: dict[str, list[Sample]] = {}
    for sample in samples:
        kernels.setdefault(sample.kernel, []).append(sample)
    forms = []
    for own in kernels.values():
        twice: dict[str, list[Sample]] = {}
        for sample in own:
            if sample.taken and sample.microseconds:
                twice.setdefault(str(sample.taken), []).append(sample)
        pairs = [pair[:_TWICE] for pair in twice.values() if len(pair) >= _TWICE]
        if len(pairs) >= _LEAST:
            [usual] = [sample for sample in own if not sample.taken]
            shares = [[item.microseconds / item.default for item in pair] for pair in pairs]
            operator = usual.name.rpartition(": ")[0]
            forms.append(Forms(operator, usual, [pair[0] for pair in pairs], np.array(shares).T))
    return forms


def predicted(kernels: Sequence[Forms], columns: slice, seed: int) -> list[np.ndarray]:
    """What trees say of the forms of each kernel that learned from other operators only."""
    operators = sorted({item.operator for item in kernels})
    random.Random(seed).shuffle(operators)
    scores: list[np.ndarray] = [np.zeros(0)] * len(kernels)
    for fold in range(_FOLDS):
        held = set(operators[fold::_FOLDS])
        others = [item for item in kernels if item.operator not in held]
        model = LearnedOrder([s for item in others for s in (item.usual, *item.samples)], columns)
        for number, item in enumerate(kernels):
            if item.operator in held:
                forms = [Described(sample.features, sample.ranks) for sample in item.samples]
                scores[number] = model.predict(forms, item.usual.features, item.usual.default)
    return scores


def rank(path: Path) -> None:
    """Print how well forms of operators that were not learned from are ordered."""
    samples = samples_of(path)
    kernels = forms_of(samples)
    count = sum([len(item.samples) for item in kernels])
    size = len(LearnedOrder(samples).booster.save_raw("ubj"))
    print(f"{len(kernels)} kernels, {count} forms, {_FOLDS} folds of operators")
    print(f"trees of all of them: {size / 1024:.0f} KiB")
    heads = [f"best of {k}" for k in _FIRST]
    print(f"{'order of forms':32} {'Spearman':>15} " + " ".join([f"{head:>9}" for head in heads]))
    generator = np.random.default_rng(0)
    usual = [[item.places for item in kernels]]
    learned = [predicted(kernels, slice(None), seed) for seed in range(_SPLITS)]
    for name, orders in (
        ("at random", [[generator.random(len(item.samples)) for item in kernels]
                       for _ in range(_ORDERS)]),
        ("cost models of the schedules", usual),
        ("trees, told only these", [predicted(kernels, PLACES, seed) for seed in range(_SPLITS)]),
        ("trees, told features as well", learned),
        ("as measured first", [[item.shares[0] for item in kernels]]),
    ):  # fmt: skip
        print(f"{name:32} {_judged(kernels, orders)}")
    print("trees beside the cost models, mean of the logarithm over kernels ± its error:")
    for count in _FIRST:
        gains = _best_of(count, kernels, learned) - _best_of(count, kernels, usual)
        print(f"best of {count}: {gains.mean():+.4f} ± {gains.std() / np.sqrt(len(gains)):.4f}")


def _judged(kernels: Sequence[Forms], orders: Sequence[Sequence[np.ndarray]]) -> str:
    """The columns of a row: the mean over orders, and the error of the mean over kernels."""
    spearman = np.array([
        [_spearman(score, item.shares[1]) for item, score in zip(kernels, scores, strict=True)]
        for scores in orders
    ])  # fmt: skip
    error = spearman.mean(0).std() / np.sqrt(len(kernels))
    columns = [f"{np.exp(_best_of(k, kernels, orders).mean()):9.4f}" for k in _FIRST]
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


def _best_of(
    count: int, kernels: Sequence[Forms], orders: Sequence[Sequence[np.ndarray]]
) -> np.ndarray:
    """For each kernel the logarithm of the share of the form chosen among the first of an order.

    The fastest by the first measurement is chosen, if it is faster than the default; the second
    says how fast it is. The mean over orders.
    """
    shares = np.ones((len(orders), len(kernels)))
    for row, scores in zip(shares, orders, strict=True):
        for number, (item, score) in enumerate(zip(kernels, scores, strict=True)):
            first = np.argsort(score, kind="stable")[:count]
            chosen = first[np.argmin(item.shares[0][first])]
            if item.shares[0][chosen] < 1:
                row[number] = item.shares[1][chosen]
    return np.log(shares).mean(0)


def main() -> None:
    """Run a subcommand."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    collecting = commands.add_parser("collect")
    collecting.add_argument("file", type=Path)
    collecting.add_argument("--minutes", type=float, default=30.0)
    collecting.add_argument("--rounds", type=int, default=4, help="of each measurement")
    ranking = commands.add_parser("rank")
    ranking.add_argument("file", type=Path)
    options = parser.parse_args()
    if options.command == "collect":
        collect(options.file, options.minutes, options.rounds)
    else:
        rank(options.file)


if __name__ == "__main__":
    main()
