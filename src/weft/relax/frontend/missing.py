"""What an importer says of the operators that it has no converter for: all of them, at once."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from weft.support.errors import UnsupportedError

SHOWN: Final = 6
"""So many operators are listed; the error's ``operators`` has the rest too."""


@dataclass(frozen=True)
class MissingOperator:
    """One operator without a converter: how often it stands in the model, and where first."""

    name: str
    count: int
    where: str = ""
    nearest: str = ""

    def __str__(self) -> str:
        """One line: ``aten.foo.default, 3 times, first at model.py:12; nearest: aten.bar``."""
        times = "once" if self.count == 1 else f"{self.count} times"
        where = f", first at {self.where}" if self.where else ""
        nearest = f"; nearest: {self.nearest}" if self.nearest else ""
        return f"{self.name}, {times}{where}{nearest}"


@dataclass(frozen=True)
class Coverage:
    """One operator of a model: ``status`` is ``converter``, ``decomposed`` or ``missing``."""

    name: str
    count: int
    status: str
    nearest: str = ""


class UnsupportedOperatorsError(UnsupportedError):
    """A model has operators that the importer cannot convert; ``operators`` lists all of them."""

    def __init__(self, source: str, operators: Iterable[MissingOperator], hint: str) -> None:
        self.operators = tuple(operators)
        shown = [f"  {item}" for item in self.operators[:SHOWN]]
        if len(self.operators) > SHOWN:
            shown.append(f"  and {len(self.operators) - SHOWN} more (see the error's `operators`)")
        head = f"{source}: no converter for {len(self.operators)} operator(s) of this model:"
        super().__init__("\n".join([head, *shown, hint]))


def find_missing(
    unknown: Iterable[tuple[str, str]], known: Iterable[str]
) -> tuple[MissingOperator, ...]:
    """The rows of an error from every use of an unknown operator: (name, place) in order."""
    names = list(known)
    uses: dict[str, list[str]] = {}
    for name, where in unknown:
        uses.setdefault(name, []).append(where)
    return tuple(
        MissingOperator(
            name,
            len(places),
            next((place for place in places if place), ""),
            nearest_name(name, names),
        )
        for name, places in uses.items()
    )


def nearest_name(name: str, known: Iterable[str] | Mapping[str, object]) -> str:
    """The supported operator whose name is nearest, or nothing.

    Of ``aten.foo.default`` only ``foo`` counts: what all names share would make any two near. A
    remark behind a blank, such as ``(complex)``, must be the same.
    """
    remark = name.partition(" ")[2]
    by_operator: dict[str, str] = {}
    for item in known:
        if item.partition(" ")[2] == remark:
            by_operator.setdefault(_operator(item), item)
    near = difflib.get_close_matches(_operator(name), list(by_operator), n=1, cutoff=0.7)
    return by_operator[near[0]] if near else ""


def _operator(name: str) -> str:
    parts = name.partition(" ")[0].split(".")
    return parts[1] if len(parts) == 3 else name
