"""The score of ONNX's backend suite on weft: each case that does not pass, with its reason.

    python benchmarks/onnx_backend.py                     # all cases, in two processes
    python benchmarks/onnx_backend.py --filter attention  # those whose name matches

A worker that dies or hangs costs the case it was at; the others go on in a new worker. The exit
code is 1 if a case fails that the table of tests/relax/frontend/onnx does not name.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from weft.testing.onnx_suite import slices, suite_cases, why_it_fails

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
        command = [sys.executable, __file__, "--worker"]
        try:
            done = subprocess.run(
                command, input=json.dumps(left), capture_output=True, text=True, timeout=seconds,
                check=False,
            )  # fmt: skip
            output, how = done.stdout, f"the process died with code {done.returncode}"
        except subprocess.TimeoutExpired as expired:
            output = (expired.stdout or b"").decode()
            how = f"no result within {seconds} seconds"
        lines = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
        for line in lines:
            if "case" in line:
                results[line["case"]] = (line["reason"], line["seconds"])
        left = [name for name in left if name not in results]
        if left:
            at = lines[-1].get("start", left[0]) if lines else left[0]
            results[at] = (how, float(seconds))
            left = [name for name in left if name != at]
    return results


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
    parser.add_argument("--timeout", type=int, default=540, help="seconds for each part")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        work(json.load(sys.stdin))
        return 0
    names = list(suite_cases(options.filter))
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
    return 1 if surprising or set(failing) - set(known) else 0


if __name__ == "__main__":
    raise SystemExit(main())
