"""What is worth knowing of a compilation, in sentences: one row for each topic and kernel."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from weft.driver.recording import Recording
from weft.viz.schedules import attempts_of

Row = dict[str, object]


def report_rows(
    record: Recording,
    memory: Mapping[str, object],
    kernels: Sequence[Mapping[str, Any]],
    profile: Mapping[str, Any] | None,
) -> list[Row]:
    """The rows of all topics.

    Args:
        record: what was recorded.
        memory: the part ``memory`` of the page.
        kernels: its part ``kernels``.
        profile: its part ``profile``; None where nothing was measured.
    """
    rows = [*_times(profile), *_spills(kernels)]
    for topic in TOPICS:
        rows += topic(record, memory)
    return rows + _threads(profile)


def _row(topic: str, text: str, kernel: str | None = None) -> Row:
    return {"topic": topic, "text": text, "kernel": kernel}


def _weights(_record: Recording, memory: Mapping[str, object]) -> Iterable[Row]:
    weights = memory["weights"]
    assert isinstance(weights, list)
    for kind, what in _KINDS.items():
        chosen = [row for row in weights if row["kind"] == kind]
        if chosen:
            size = sum(row["bytes"] for row in chosen)
            constants = "1 constant" if len(chosen) == 1 else f"{len(chosen)} constants"
            yield _row("weights", f"{constants} ({size:,} bytes): {what}")


_KINDS: Final = {
    "as given": "used as the model has them",
    "packed": "copied into the layout of their kernels' tiles",
    "transformed": "computed of the model's weights: transposed, folded or converted",
}

_ALGORITHMS: Final = {
    "winograd": ("Winograd's algorithm", "winograd"),
    "Winograd": ("Winograd's algorithm", "winograd"),
    "dots": ("the processor's dot products of small integers", "int8"),
    "tiled": ("tiles of a product in registers", "product"),
    "windows": ("windows over an image, vectors along channels or rows", "windows"),
    "pixels": ("windows over an image, several pixels at once", "windows"),
    "attention": ("attention without the matrix of scores", "attention"),
}  # fmt: skip
"""What a rule or a program of one stands for."""


def _algorithms(record: Recording, _memory: Mapping[str, object]) -> Iterable[Row]:
    for kernel in record.kernels():
        attempts = attempts_of(kernel, record.attempts)
        names = [name for at in attempts for name in (at.rule, *at.fitted) if name is not None]
        for name in dict.fromkeys(names):
            if name in _ALGORITHMS:
                yield _row("algorithm", f"{kernel} computes by {_ALGORITHMS[name][0]}", kernel)


def _unscheduled(record: Recording, _memory: Mapping[str, object]) -> Iterable[Row]:
    for attempt in record.attempts:
        if attempt.rule is None:
            yield _row(
                "looked for and not found",
                f"no rule schedules {attempt.kernel}: its loops run as they are defined",
                attempt.kernel,
            )
        elif not attempt.fitted and attempt.rule == "Default":
            yield _row(
                "looked for and not found",
                f"no program of the default schedule fits {attempt.kernel}: its blocks stay as "
                "they are defined",
                attempt.kernel,
            )


def _absent(record: Recording, _memory: Mapping[str, object]) -> Iterable[Row]:
    """Passes that look for something and left the module as it was."""
    for run in record.passes:
        sought = _SOUGHT.get(run.name)
        if sought is not None and run.before == run.after:
            yield _row("looked for and not found", f"{run.name} looked for {sought}: there is none")


_SOUGHT: Final = {
    "UseWinograd": "convolutions for which Winograd's algorithm is faster",
    "BlockChannels": "convolutions that are faster with channels in blocks",
    "DispatchToLibraries": "operators that a library computes faster",
    "FoldBatchnormToConv2D": "batch norms behind convolutions with known statistics",
    "MergeParallelKernels": "neighbouring kernels with the same partition",
    "ConcatenateInPlace": "concatenations whose parts can be written in their places",
    "ReuseDyingArguments": "arguments whose memory a result may take",
    "NarrowWeights": "weights to store in a smaller type (dtype=)",
}


def _host(record: Recording, _memory: Mapping[str, object]) -> Iterable[Row]:
    lowered = record.lowered
    if lowered is None:
        return
    for name, function in lowered.program.functions.items():
        if function.why_not_native:
            yield _row("bytecode", f"{name} runs as bytecode: {function.why_not_native}")
        elif name in lowered.hosts:
            yield _row("native", f"{name} is one native function that calls its kernels")


def _threads(profile: Mapping[str, Any] | None) -> list[Row]:
    calls = [] if profile is None else profile["calls"]
    threads = {call["kernel"]: call["threads"] for call in calls}
    return [
        _row("one thread", f"{kernel} runs on one thread: its work is too short to share", kernel)
        for kernel, count in threads.items()
        if count == 1
    ]


def _times(profile: Mapping[str, Any] | None) -> list[Row]:
    """The kernel that takes longest, and the one that wastes most, over all of its calls."""
    if profile is None or not profile["calls"]:
        return []
    took, wasted = (_totals(profile["calls"], key) for key in ("us", "wasted_us"))
    longest, worst = max(took, key=took.__getitem__), max(wasted, key=wasted.__getitem__)
    share = 100 * took[longest] / sum(took.values())
    text = f"{longest} takes longest: {took[longest]:,.1f} us, {share:.0f} % of all kernels"
    rows = [_row("time", text, longest)]
    if wasted[worst]:
        text = (
            f"{worst} wastes most: {wasted[worst]:,.1f} us more than its "
            "operations take at the peak, or its bytes in a copy"
        )
        rows.append(_row("time", text, worst))
    return rows


def _totals(calls: Iterable[Mapping[str, Any]], key: str) -> dict[str, float]:
    """A number of each call, added up by kernel."""
    sums: dict[str, float] = {}
    for call in calls:
        sums[call["kernel"]] = sums.get(call["kernel"], 0.0) + (call[key] or 0.0)
    return sums


def _spills(kernels: Sequence[Mapping[str, Any]]) -> list[Row]:
    return [
        _row(
            "spills",
            f"{kernel['name']} stores vectors in its stack frame at {kernel['spills']} places",
            kernel["name"],
        )
        for kernel in kernels
        if kernel["spills"]
    ]


Topic = Callable[[Recording, Mapping[str, object]], Iterable[Row]]
TOPICS: Final[Sequence[Topic]] = (_weights, _algorithms, _unscheduled, _absent, _host)
