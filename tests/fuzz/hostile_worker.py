"""One process that damages and tries: ``python -m tests.fuzz.hostile_worker KIND FIRST COUNT``.

For each seed it writes two lines of JSON: the seed before the try, and what came of it. A process
that ends between them, or says nothing for long, has found something; so has an exception that is
no TVMError, one that is weft's own fault, and one whose message has more than ten lines. Memory is
limited, so that a number in a file does not take the machine's.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import traceback
import warnings

LIMIT = 6 << 30
"""Bytes of address space of a process: what importing and compiling take, and some more."""
LINES = 10


def tried(kind, seed):
    """What came of one try: ``(outcome, what is wrong or nothing)``."""
    import weft
    from tests.fuzz.hostile_corpus import seeded
    from tests.fuzz.hostile_kinds import KINDS

    try:
        return KINDS[kind](seeded(kind, seed)), ""
    except weft.InternalError as error:
        return "fault", _told(error)
    except weft.TVMError as error:
        lines = len(str(error).splitlines())
        return "refused", f"{lines} lines: {error}" if lines > LINES else ""
    except BaseException as error:  # noqa: BLE001 - that is what is looked for
        return "bare", _told(error)


def _told(error):
    return "".join(traceback.format_exception(error))[-3000:]


def main(kind, first, count):
    """Try seeds in order."""
    out = os.fdopen(os.dup(1), "w", encoding="utf-8", errors="replace")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # programs print
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (LIMIT, LIMIT))
    warnings.simplefilter("ignore")
    for seed in range(first, first + count):
        out.write(json.dumps({"seed": seed}) + "\n")
        out.flush()
        outcome, problem = tried(kind, seed)
        out.write(json.dumps({"seed": seed, "outcome": outcome, "problem": problem}) + "\n")
        out.flush()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
