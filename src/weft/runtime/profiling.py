"""``runtime.profiling``: what each operator of a run took, as a table, CSV or JSON, in TVM's form.

``VirtualMachine.profile`` makes a ``Report``: one mapping a call, from the name of a column to a
text or a metric (``Duration`` in microseconds, ``Count``, ``Percent``, ``Ratio``).
"""

from __future__ import annotations

import csv
import io
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar, Final

from weft.runtime.model.flops import FlopCount, flops_of
from weft.runtime.ndarray import NDArray
from weft.runtime.threads.parallel import num_threads
from weft.support.errors import IRValueError

NAME, TIME, SHARE = "Name", "Duration (us)", "Percent"
COUNT, DEVICE, SHAPES = "Count", "Device", "Argument Shapes"
SPEED, BYTES = "GFLOP/s", "Bytes"
COLUMNS: Final = (NAME, TIME, SHARE, COUNT, SPEED, BYTES, DEVICE, SHAPES)


@dataclass(frozen=True)
class Duration:
    """A time in microseconds."""

    microseconds: float
    FIELD: ClassVar[str] = "microseconds"

    @property
    def value(self) -> float:
        """The number."""
        return self.microseconds

    def __str__(self) -> str:
        return f"{self.microseconds:,.2f}"


@dataclass(frozen=True)
class Count:
    """How many."""

    value: int
    FIELD: ClassVar[str] = "count"

    def __str__(self) -> str:
        return f"{self.value:,}"


@dataclass(frozen=True)
class Percent:
    """A share of the whole, in percent."""

    percent: float
    FIELD: ClassVar[str] = "percent"

    @property
    def value(self) -> float:
        """The number."""
        return self.percent

    def __str__(self) -> str:
        return f"{self.percent:.2f}"


@dataclass(frozen=True)
class Ratio:
    """A ratio of two metrics."""

    ratio: float
    FIELD: ClassVar[str] = "ratio"

    @property
    def value(self) -> float:
        """The number."""
        return self.ratio

    def __str__(self) -> str:
        return f"{self.ratio:.3g}"


METRICS: Final[dict[str, Callable[[Any], object]]] = {
    "microseconds": Duration, "count": Count, "percent": Percent, "ratio": Ratio, "string": str,
}  # fmt: skip

Row = Mapping[str, Any]


class Report:
    """Metrics of every call in the order of the run, of each device, and the configuration."""

    def __init__(
        self, calls: Sequence[Row], device_metrics: Mapping[str, Row], configuration: Row
    ) -> None:
        self.calls = [dict(call) for call in calls]
        self.device_metrics = {name: dict(row) for name, row in device_metrics.items()}
        self.configuration = dict(configuration)

    def csv(self) -> str:
        """The calls as comma-separated values, under a line with the columns."""
        columns = self._columns(self.calls)
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(columns)
        for call in self.calls:
            cells = [call.get(column, "") for column in columns]
            writer.writerow([getattr(cell, "value", cell) for cell in cells])
        return text.getvalue()

    def json(self) -> str:
        """Everything as JSON; ``from_json`` reads it."""
        devices = {name: _plain(row) for name, row in self.device_metrics.items()}
        calls = [_plain(call) for call in self.calls]
        configuration = _plain(self.configuration)
        return json.dumps(
            {"calls": calls, "device_metrics": devices, "configuration": configuration}
        )

    @classmethod
    def from_json(cls, s: str) -> Report:
        """The report that ``json`` wrote."""
        try:
            content = json.loads(s)
            calls = [_metrics(row) for row in content["calls"]]
            devices = {name: _metrics(row) for name, row in content["device_metrics"].items()}
            return cls(calls, devices, _metrics(content.get("configuration", {})))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise IRValueError(f"Report.from_json: expected what json() writes: {error}") from error

    def table(self, sort: bool = True, aggregate: bool = True, col_sums: bool = True) -> str:
        """A table to read.

        ``aggregate`` joins the calls of one name; ``sort`` puts the longest first; ``col_sums``
        adds the sums and the times of the devices.
        """
        rows = _aggregated(self.calls) if aggregate else list(self.calls)
        if sort:
            rows.sort(key=lambda row: -getattr(row.get(TIME), "value", 0))
        columns = self._columns(rows)
        cells = [[str(row.get(column, "")) for column in columns] for row in rows]
        if col_sums:
            cells.append(["-" * 10] * len(columns))
            total = {**_summed(self.calls, columns), NAME: "Sum"}
            cells.append([str(total.get(column, "")) for column in columns])
            for name, row in self.device_metrics.items():
                shown = {**row, NAME: "Total", DEVICE: name}
                cells.append([str(shown.get(column, "")) for column in columns])
        return _aligned([columns, *cells], [column in (NAME, SHAPES) for column in columns])

    def _columns(self, rows: Sequence[Row]) -> list[str]:
        present = {column: None for row in rows for column in row}
        known = [column for column in COLUMNS if column in present]
        return [*known, *[column for column in present if column not in known]]

    def __str__(self) -> str:
        settings = "".join([f"{key}: {value}\n" for key, value in self.configuration.items()])
        return f"{self.table()}\n\nConfiguration\n-------------\n{settings}".rstrip()

    __repr__ = __str__


def _plain(row: Row) -> dict[str, dict[str, object]]:
    return {
        column: {cell.FIELD: cell.value} if hasattr(cell, "FIELD") else {"string": str(cell)}
        for column, cell in row.items()
    }


def _metrics(row: Mapping[str, Mapping[str, object]]) -> dict[str, object]:
    metrics = {}
    for column, cell in row.items():
        ((kind, value),) = cell.items()
        metrics[column] = METRICS[kind](value)
    return metrics


def _aggregated(calls: Sequence[Row]) -> list[Row]:
    """One row for each name, in order of first appearance."""
    groups: dict[object, list[Row]] = {}
    for call in calls:
        groups.setdefault((call.get(NAME), call.get(DEVICE)), []).append(call)
    rows: list[Row] = []
    for group in groups.values():
        row = dict(group[0])
        row.update(_summed(group, list(row)))
        if len({call.get(SHAPES) for call in group}) > 1:
            row[SHAPES] = ""
        rows.append(row)
    return rows


def _summed(calls: Sequence[Row], columns: Sequence[str]) -> dict[str, object]:
    """The sums of what can be added; of speeds the mean over the time."""
    sums: dict[str, object] = {}
    for column in columns:
        cells = [call[column] for call in calls if hasattr(call.get(column), "FIELD")]
        if not cells:
            continue
        if isinstance(cells[0], Ratio):
            timed = [call for call in calls if column in call]
            total = sum(call[TIME].value for call in timed)
            done = sum(call[column].value * call[TIME].value for call in timed)
            sums[column] = Ratio(done / total if total else 0.0)
        else:
            sums[column] = type(cells[0])(sum(cell.value for cell in cells))
    return sums


def _aligned(lines: Sequence[Sequence[str]], left: Sequence[bool]) -> str:
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    return "\n".join(
        [
            "  ".join(
                [
                    cell.ljust(width) if is_left else cell.rjust(width)
                    for cell, width, is_left in zip(line, widths, left, strict=True)
                ]
            ).rstrip()
            for line in lines
        ]
    )


@dataclass(frozen=True)
class Tensor:
    """What a profile keeps of a tensor: its memory may be needed again."""

    shape: tuple[int, ...]
    dtype: str
    nbytes: int


def _described(value: object) -> object:
    if not isinstance(value, NDArray):
        return value if isinstance(value, int | float) else None
    nbytes = value._array.nbytes  # noqa: SLF001 - the same room
    return Tensor(tuple(value.shape), str(value.dtype), nbytes)


class Recorder:
    """Takes the time of each call of a run; ``report`` says what it saw.

    ``flops`` says how many arithmetic operations each kernel does.
    """

    def __init__(self, flops: Mapping[str, FlopCount] = MappingProxyType({})) -> None:
        self._flops = flops
        self._seen: list[tuple[str, str, float, Sequence[object]]] = []

    def timed(
        self, kind: str, name: str, function: Callable[..., object], arguments: Sequence[object]
    ) -> Any:
        """Call a function; one of the machine's own is its calls, which are seen by themselves."""
        if kind in ("function", "register"):
            return function(*arguments)
        start = time.perf_counter()
        result = function(*arguments)
        took = time.perf_counter() - start
        if name == "identity" and kind == "builtin":
            if not isinstance(result, tuple):
                return result  # a value moves to another register
            name = "make_tuple"
        known = f"vm.builtin.{name}" if kind == "builtin" else name
        described = [_described(argument) for argument in arguments]
        self._seen.append((kind, known, took * 1e6, described))
        return result

    def report(self, total: float) -> Report:
        """The calls, as shares of ``total`` microseconds."""
        calls = [self._row(*seen, total) for seen in self._seen]
        whole = {TIME: Duration(total), SHARE: Percent(100.0), COUNT: Count(1)}
        settings = {"Executor": "VM", "Number of threads": str(num_threads())}
        return Report(calls, {"cpu0": whole}, settings)

    def _row(
        self, kind: str, name: str, took: float, arguments: Sequence[object], total: float
    ) -> Row:
        tensors = [value for value in arguments if isinstance(value, Tensor)]
        row: dict[str, object] = {
            NAME: name,
            TIME: Duration(took),
            SHARE: Percent(100 * took / total if total else 0.0),
            COUNT: Count(1),
            DEVICE: "cpu0",
        }
        if kind in ("kernel", "packed", "operator"):
            row[SHAPES] = ", ".join([f"{t.dtype}[{', '.join(map(str, t.shape))}]" for t in tensors])
            row[BYTES] = Count(sum(tensor.nbytes for tensor in tensors))
        count = flops_of(self._flops, name, arguments) if kind == "kernel" else None
        if count is not None and took:
            row[SPEED] = Ratio(count / took / 1e3)
        return row
