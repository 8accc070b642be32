"""The process that makes trials: it reads jobs as lines of JSON and answers each with a line.

A job ``{"kernel": ..., "module": ..., ...}`` brings what ``Bench`` needs for a kernel,
``{"kernel": ..., "taken": {...}}`` asks for a trial of it, one with ``"rounds"`` for a comparison
with the default, ``{"kernel": ..., "describe": {...}}`` for the features of a form. Whatever goes
wrong in a trial ends at most this process.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Mapping
from typing import Any

from weft.codegen.llvm.worker import end_with_the_parent
from weft.driver.tuning.trial import Bench


def work() -> None:
    """Answer jobs until standard input closes."""
    threading.Thread(target=end_with_the_parent, args=(0,), daemon=True).start()
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what anything prints must not be taken for an answer
    benches: dict[str, Bench] = {}
    for line in sys.stdin:
        job = json.loads(line)
        try:
            answer = _answer(job, benches)
        except Exception as error:  # noqa: BLE001 - the trial has failed, whatever it was
            answer = {"error": f"{type(error).__name__}: {error}".splitlines()[0]}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


def _answer(job: Mapping[str, Any], benches: dict[str, Bench]) -> dict[str, object]:
    if "module" in job:
        benches[job["kernel"]] = Bench(
            job["module"], job["weights"], job["target"], job["num_threads"], job["step"]
        )
        return {}
    bench = benches[job["kernel"]]
    if "rounds" in job:
        default, tuned = bench.compare(job["taken"], job["rounds"])
        return {"default": default, "tuned": tuned}
    if "describe" in job:
        return {"features": bench.describe(job["describe"])}
    timing = bench.trial(job["taken"])
    return {"microseconds": timing.microseconds, "offered": timing.offered}
