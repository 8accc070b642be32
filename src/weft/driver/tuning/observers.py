"""What looks on at a search: a collector keeps what was measured, a draft orders forms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final, Protocol

from weft.driver.insertions import SCHEDULING
from weft.driver.tuning.collection import Collection, Described, Rows, Sample
from weft.driver.tuning.kernels import Kernel
from weft.driver.tuning.search import Search, Taken
from weft.driver.tuning.trial_process import TrialFailedError

_DRAFTED: Final = 24
"""So many forms of a kernel are described, those that its cost models like best: each costs a
schedule, a tenth of a trial."""


class Describes(Protocol):
    """What gives the features of a form."""

    def describe(self, kernel: Kernel, taken: Mapping[str, str]) -> Rows:
        """The features of a kernel with these answers. Raises TrialFailedError."""
        ...


class Predicts(Protocol):
    """What tells how long forms of a kernel take (``weft.driver.learned``)."""

    def predict(self, forms: Sequence[Described], usual: Rows, default: float) -> Sequence[float]:
        """A number for each form, the less the faster."""
        ...


class Observer(Protocol):
    """What is told of each trial after the search has learned from it."""

    def see(self, search: Search, taken: Taken, microseconds: float | None) -> None:
        """Look at a trial; None: it failed."""
        ...


class Collector:
    """Adds each trial of a kernel's schedules, with features, to a file."""

    def __init__(self, collection: Collection, describes: Describes) -> None:
        self._collection, self._describes = collection, describes

    def see(self, search: Search, taken: Taken, microseconds: float | None) -> None:
        default = _default(search)
        if default is None:
            return
        with suppress(TrialFailedError):  # a form that cannot be scheduled has no features
            features = self._describes.describe(search.kernel, taken)
            kernel, name = search.kernel.digest.hex(), search.kernel.name
            ranks = search.ranks(taken)
            self._collection.add(
                Sample(kernel, name, taken, ranks, microseconds, default, features)
            )


class Draft:
    """Orders the forms of each kernel, once its default is known, by what a model predicts."""

    def __init__(self, model: Predicts, describes: Describes) -> None:
        self._model, self._describes = model, describes

    def see(self, search: Search, taken: Taken, microseconds: float | None) -> None:
        default = _default(search)
        if taken or default is None:
            return
        forms: dict[tuple[str, str], Described] = {}
        for name, answer in search.changes()[:_DRAFTED]:
            form = {name: answer}
            with suppress(TrialFailedError):  # its trial will say so
                features = self._describes.describe(search.kernel, form)
                forms[name, answer] = Described(features, search.ranks(form))
        forms = {change: form for change, form in forms.items() if form.features}
        if forms:
            usual = self._describes.describe(search.kernel, {})
            times = self._model.predict([*forms.values()], usual, default)
            search.expected = dict(zip(forms, times, strict=True))


def _default(search: Search) -> float | None:
    """Microseconds of the default; None if it failed, or if the search is not for a schedule."""
    if search.kernel.step != SCHEDULING or search.default == float("inf"):
        return None
    return search.default
