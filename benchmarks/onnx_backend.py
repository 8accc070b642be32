"""The score of ONNX's backend suite on weft: each case that does not pass, with its reason.

    python benchmarks/onnx_backend.py                     # in two processes
    python benchmarks/onnx_backend.py --light             # nine whole networks too: minutes each
    python benchmarks/onnx_backend.py --filter attention  # those whose name matches

A worker that dies or hangs costs the case it was at; the others go on in a new worker. The exit
code is 1 if a case fails that the table of tests/relax/frontend/onnx does not name.
"""

from __future__ import annotations

import argparse
import json
import queue
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.lib.onnx_suite import LIGHT, slices, suite_cases, why_it_fails

TABLE = Path(__file__).parents[1] / "tests" / "relax" / "frontend" / "onnx" / "not_passing.txt"


def work(names: list[str]) -> None:
    """Run cases and write a line of JSON before and after each."""
    cases = suite_cases()
    for name in names:
        print(json.dumps({"start": name}), flush=True)
        start = time.perf_counter()
        reason = why_it_fails(cases[name])
        seconds = round(time.perf_counter() - start, 2)
        print(json.dumps({"case": name, "reason": reason, "seconds": seconds}), flush=True)


def run_slice(names: list[str], seconds: int) -> dict[str, tuple[str, float]]:
    """The reasons (nothing for those that pass) and times of cases, by worker processes."""
    results: dict[str, tuple[str, float]] = {}
    left = list(names)
    while left:
        worker = subprocess.Popen(
            [sys.executable, __file__, "--worker"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip
        lines: queue.Queue[str | None] = queue.Queue()
        threading.Thread(target=read_lines, args=(worker, lines), daemon=True).start()
        worker.stdin.write(json.dumps(left))
        worker.stdin.close()
        at, how = left[0], ""
        while not how:
            try:
                line = lines.get(timeout=seconds)
            except queue.Empty:
                how = f"no result within {seconds} seconds"
                worker.kill()
                break
            if line is None:
                how = f"the process died with code {worker.wait()}"
            elif "start" in (told := json.loads(line)):
                at = told["start"]
            else:
                results[told["case"]] = (told["reason"], told["seconds"])
        if at not in results:
            results[at] = (how, float(seconds))
        left = [name for name in left if name not in results]
    return results


def read_lines(worker: subprocess.Popen[str], lines: queue.Queue[str | None]) -> None:
    """Hand over what a worker writes, None at its end."""
    for line in worker.stdout:
        if line.startswith("{"):
            lines.put(line)
    lines.put(None)


def read_table(path: Path) -> dict[str, str]:
    """Case -> why it does not pass, of a table with a tab between both."""
    rows = [line.split("\t") for line in path.read_text().splitlines() if "\t" in line]
    return {row[0]: row[1] for row in rows}


def main() -> int:
    """Run the suite and print the score."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--filter", default="", help="a regular expression on names of cases")
    parser.add_argument("--jobs", type=int, default=2, help="processes at a time")
    parser.add_argument("--slices", type=int, default=8, help="parts that the suite is cut into")
    parser.add_argument("--timeout", type=int, default=180, help="seconds for each case")
    parser.add_argument("--light", action="store_true", help="the nine whole networks too")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        work(json.load(sys.stdin))
        return 0
    names = [name for name in suite_cases(options.filter) if options.light or not LIGHT.match(name)]
    parts = [list(slices(names, i, options.slices)) for i in range(options.slices)]
    with ThreadPoolExecutor(options.jobs) as pool:
        made = list(pool.map(lambda part: run_slice(part, options.timeout), parts))
    results = {name: result for part in made for name, result in part.items()}
    known = read_table(TABLE) if TABLE.exists() else {}
    failing = {name: reason for name, (reason, _) in sorted(results.items()) if reason}
    for name, reason in failing.items():
        print(f"{'  known' if name in known else 'UNKNOWN'}  {name}: {reason}")
    surprising = [name for name in known if name in results and not results[name][0]]
    if surprising:
        print(f"pass though the table names them: {', '.join(surprising)}")
    print(f"{len(results) - len(failing)} of {len(results)} cases pass")
    slow = sorted(results.items(), key=lambda item: -item[1][1])[:5]
    print("slowest:", ", ".join(f"{name} {spent:.1f} s" for name, (_, spent) in slow))
    return 1 if surprising or set(failing) - set(known) else 0


if __name__ == "__main__":
    raise SystemExit(main())
