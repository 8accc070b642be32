"""Many random networks in processes of their own, and the table of what became of them.

A process that dies or hangs is known by its seed, the one after the last that it spoke of; another
process goes on after it.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from tests.lib.float64_rules import RULES
from tests.lib.network_runs import FAILURES

BATCH: Final = 50
"""Seeds of one process: memory that a compiler leaves behind goes with it."""
SECONDS: Final = 900.0
"""After so long without a line a process hangs."""
WORKER: Final = ("-W", "ignore", "-m", "tests.lib.network_runs")
OUTCOME: Final = '{"seed":'
"""How the line of an outcome begins; libraries print other ones."""
REFUSALS: Final[Mapping[str, str]] = {}
"""What weft may refuse, as a part of the message, with the reason."""


def outcomes(
    first: int,
    count: int,
    *,
    end: float = float("inf"),
    worker: Sequence[str] = WORKER,
    seconds: float = SECONDS,
) -> Iterator[dict[str, Any]]:
    """The outcomes of the seeds, in order, until ``end`` of ``time.monotonic()``.

    A seed whose process dies or says nothing for ``seconds`` has one way, "process", that crashed.
    """
    seed, last = first, first + count
    while seed < last and time.monotonic() < end:
        for outcome in _batch(seed, min(BATCH, last - seed), worker, seconds):
            yield outcome
            seed = outcome["seed"] + 1
            if time.monotonic() >= end:
                break


def _batch(
    first: int, count: int, worker: Sequence[str], seconds: float
) -> Iterator[dict[str, Any]]:
    command = [sys.executable, *worker, str(first), str(count)]
    environment = {**os.environ, "PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "1"}
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
        encoding="utf-8",
        start_new_session=True,
    ) as process:
        try:
            yield from _read(process, first, count, seconds)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # its forks too


def _read(
    process: subprocess.Popen[str], first: int, count: int, seconds: float
) -> Iterator[dict[str, Any]]:
    lines: queue.Queue[str | None] = queue.Queue()
    threading.Thread(target=_into, args=(process, lines), daemon=True).start()
    seed = first
    while seed < first + count:
        try:
            line = lines.get(timeout=seconds)
        except queue.Empty:
            yield _crash(seed, f"nothing for {seconds:.0f} seconds")
            return
        if line is None:
            yield _crash(seed, f"the process ended with status {process.wait()}")
            return
        if line.startswith(OUTCOME):
            said = json.loads(line)
            yield said
            seed = said["seed"] + 1


def _into(process: subprocess.Popen[str], lines: queue.Queue[str | None]) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        lines.put(line)
    lines.put(None)


def _crash(seed: int, message: str) -> dict[str, Any]:
    ways = {"process": {"status": "crashed", "message": message}}
    return {"seed": seed, "operators": {}, "dtypes": [], "ways": ways}


def failures(found: Sequence[Mapping[str, Any]]) -> list[str]:
    """A text for each network that is wrong, crashes, or is refused for no known reason."""
    texts = []
    for outcome in found:
        for way, status in outcome["ways"].items():
            if status["status"] in FAILURES or _unknown_refusal(status):
                head = f"seed {outcome['seed']}, {way}: {status['status']}: {status['message']}"
                texts.append("\n  ".join([head, *status.get("nodes", ())]))
    return texts


def _unknown_refusal(status: Mapping[str, Any]) -> bool:
    return status["status"] == "refused" and not any(part in status["message"] for part in REFUSALS)


def table(found: Sequence[Mapping[str, Any]]) -> str:
    """How many networks there were, how each way ended, and what explained the differences."""
    operators = Counter[str]()
    for outcome in found:
        operators.update(outcome["operators"])
    dtypes = sorted({dtype for outcome in found for dtype in outcome["dtypes"]})
    judged = sum(_judged(outcome) for outcome in found)
    lines = [
        f"{len(found)} networks, {judged} judged; {len(operators)} operators, "
        f"{operators.total()} nodes; {', '.join(dtypes)}"
    ]
    for way in ("torch", "onnx", "onnxruntime", "process"):
        ended = [outcome["ways"][way] for outcome in found if way in outcome["ways"]]
        statuses = Counter(status["status"] for status in ended)
        if statuses:
            lines.append(f"{way}: " + ", ".join(f"{n} {kind}" for kind, n in statuses.items()))
        for rule in RULES:
            if number := sum(rule in status.get("rules", {}) for status in ended):
                lines.append(f"  {number:5} {rule}")
        said = Counter(
            f"{status['status']}: {status['message'].splitlines()[0][:150]}"
            for status in ended
            if status["status"] in ("none", "refused")
        )
        lines += [f"  {number:5} {message}" for message, number in said.most_common()]
    return "\n".join(lines)


def _judged(outcome: Mapping[str, Any]) -> bool:
    """Whether PyTorch's answer was there to compare with at least one of weft's."""
    return any(status["status"] in ("right", "wrong") for status in outcome["ways"].values())
