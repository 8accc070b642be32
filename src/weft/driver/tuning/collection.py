"""The file of measured forms with features of their programs: what cost models learn from.

A line of JSON is a form: the features of its scheduled program (``weft.tir.store_features``), its
time and that of the default schedule. Unlike the journal it says what a form is in numbers, so it
tells something of kernels that nobody has measured. Lines of several machines and versions of weft
may be put together: a model learns how a form relates to the default beside which it was measured.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

from weft.driver.tuning.journal import append_line
from weft.support.errors import IRValueError
from weft.tir.store_features.rows import USUAL_LAYOUT

_FORMAT: Final = 1
Rows = Sequence[Sequence[float]]


@dataclass(frozen=True)
class Sample:
    """A form of a kernel that was measured.

    Attributes:
        kernel: the digest of its structure.
        name: what its model calls it.
        taken: the answers to its choices; none are those of the default schedule.
        ranks: for each answer the place that the cost model of the schedule gave it, from 0, and
            the number of answers that there were.
        microseconds: of a call; None: it failed.
        default: microseconds of the default schedule, measured in turn if the form seemed faster.
        features: a row for each buffer that the scheduled program computes.
    """

    kernel: str
    name: str
    taken: Mapping[str, str]
    ranks: Sequence[tuple[int, int]]
    microseconds: float | None
    default: float
    features: Rows


class Described(NamedTuple):
    """A form as a model is told of it: its features, and the ranks of its answers."""

    features: Rows
    ranks: Sequence[tuple[int, int]]


class Collection:
    """The samples in a file, which is written a line at a time: a kill loses its last one."""

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)

    def add(self, sample: Sample) -> None:
        """Append a sample. Raises IRValueError if the file cannot be written."""
        rows = [[round(number, 4) for number in row] for row in sample.features]
        row = {"format": _FORMAT, **asdict(sample), "features": rows}
        try:
            append_line(self._path, json.dumps(row).encode() + b"\n")
        except OSError as error:
            raise IRValueError(
                f"tune: the sample cannot be written to {self._path}: {error.strerror}; give "
                "another file as collect="
            ) from error


def samples_of(path: str | Path) -> list[Sample]:
    """What a file has; damaged lines, as a kill leaves, are skipped.

    Raises IRValueError if there is no such file, or nothing in it that was collected.
    """
    wanted = "a file that weft tune --collect wrote"
    try:
        lines = Path(path).read_text(errors="replace").splitlines()
    except OSError as error:
        raise IRValueError(f"expected {wanted}, but {path}: {error.strerror}") from error
    samples = [sample for line in lines if (sample := _sample(line)) is not None]
    if not samples:
        raise IRValueError(f"expected {wanted}, found no measured form in {path}")
    return samples


def _sample(line: str) -> Sample | None:
    """The sample of a line; None if the line is damaged, or of another layout of features."""
    try:
        fields: dict[str, Any] = json.loads(line)
        time = fields["microseconds"]
        rows = [[float(number) for number in row] for row in fields["features"]]
        if fields["format"] != _FORMAT or {len(row) for row in rows} - {USUAL_LAYOUT.length}:
            return None
        return Sample(
            str(fields["kernel"]),
            str(fields["name"]),
            {str(name): str(answer) for name, answer in fields["taken"].items()},
            [(int(rank), int(count)) for rank, count in fields["ranks"]],
            None if time is None else float(time),
            float(fields["default"]),
            rows,
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
