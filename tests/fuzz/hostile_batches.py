"""Batches of damaged things in processes of their own: a signal is a finding with a seed."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[2]
WORKER = ("-m", "tests.fuzz.hostile_worker")
PATIENCE = 300
"""Seconds that one try may take before it counts as hanging."""


@dataclass
class Found:
    """What came of a batch: how often each outcome, and what is wrong by seed."""

    outcomes: Counter = field(default_factory=Counter)
    problems: dict[int, str] = field(default_factory=dict)

    def __str__(self):
        counts = ", ".join(f"{number} {name}" for name, number in sorted(self.outcomes.items()))
        lines = [f"{counts}; {len(self.problems)} problems"]
        for seed, problem in list(self.problems.items())[:20]:
            lines.append(f"--- seed {seed}\n{problem}")
        return "\n".join(lines)


def run_batch(kind, first, count, tell=None):
    """Try seeds; a new process goes on after the seed at which one died or hung."""
    found, seed, end = Found(), first, first + count
    while seed < end:
        seed = _run_process(kind, seed, end - seed, found)
        if tell is not None:
            tell(kind, seed - first, found)
    return found


def _run_process(kind, first, count, found):
    """Run one process until it ends; the seed after the last that was tried."""
    command = [sys.executable, *WORKER, kind, str(first), str(count)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, errors="replace",
    )  # fmt: skip
    lines: queue.Queue = queue.Queue()
    errors: list[str] = []
    readers = [
        threading.Thread(target=_read, args=(process.stdout, lines.put), daemon=True),
        threading.Thread(target=_read, args=(process.stderr, errors.append), daemon=True),
    ]
    for reader in readers:
        reader.start()
    started, last = first - 1, first - 1
    try:
        while True:
            line = lines.get(timeout=PATIENCE)
            if line is None:
                break
            told = json.loads(line)
            started = told["seed"]
            if "outcome" in told:
                last = started
                found.outcomes[told["outcome"]] += 1
                if told["problem"]:
                    found.problems[last] = told["problem"]
    except queue.Empty:
        process.kill()
        found.outcomes["hung"] += 1
        found.problems[started] = f"no answer within {PATIENCE} s"
        last = started
    code = process.wait()
    readers[1].join(timeout=PATIENCE)
    if last != started or (code != 0 and started < first):
        found.outcomes["died"] += 1
        text = "".join(item for item in errors if item)[-2000:]
        found.problems[max(started, first)] = f"the process ended with {code}\n{text}"
    process.stdout.close()
    process.stderr.close()
    return max(started, first) + 1


def _read(stream, put):
    for line in stream:
        put(line)
    put(None)


if __name__ == "__main__":
    print(run_batch(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))  # noqa: T201
