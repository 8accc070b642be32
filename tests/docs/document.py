"""Runs the ``python`` blocks of one document, in order: ``-m tests.docs.document DOCUMENT FOLDER``.

The blocks share a namespace and are written to files of FOLDER first, so that TVMScript's parser
finds their source. A ``text`` block right after a ``python`` block is what that block prints. A
block whose first line is ``# expect-error: text`` must raise an error whose message contains that
text. ``WEFT_UPDATE_DOCS=1`` writes the printed text into the document instead of comparing it.
A process of its own runs each document, since what a recipe registers stays for the process; its
schedules are checked and replayed. ``with_torch`` forks such a process from one that has imported
PyTorch and its exporter, which takes seconds, and nothing of weft.
"""

from __future__ import annotations

import contextlib
import io
import linecache
import multiprocessing
import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.lib.replay import every_schedule_checked

BLOCK = re.compile(
    r"^```python\n(?P<code>.*?)^```\n(?:\n?^```text\n(?P<printed>.*?)^```\n)?",
    re.DOTALL | re.MULTILINE,
)
EXPECTED = re.compile(r"# expect-error: (.+)")


@dataclass(frozen=True)
class Block:
    """One python block: its line in the document, its code, where and what it should print."""

    line: int
    code: str
    printed: str | None
    span: tuple[int, int]


def blocks(path: Path) -> list[Block]:
    """The python blocks of a document."""
    text = path.read_text(encoding="utf-8")
    return [
        Block(text.count("\n", 0, m.start()) + 1, m["code"], m["printed"], m.span("printed"))
        for m in BLOCK.finditer(text)
    ]


def run(block: Block, name: str, folder: Path, namespace: dict[str, object]) -> str:
    """What the block prints."""
    file = folder / f"{name}_{block.line}.py"
    file.write_text(block.code, encoding="utf-8")
    linecache.checkcache(str(file))
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(block.code, str(file), "exec", dont_inherit=True), namespace)
    return printed.getvalue()


def raises(block: Block, expected: str, name: str, folder: Path, namespace: dict) -> str | None:
    """None where the block raises an error that says ``expected``, else what it does instead."""
    try:
        run(block, name, folder, namespace)
    except Exception as error:  # noqa: BLE001 - a document may show an error of any class
        return None if expected in str(error) else f"raises {type(error).__name__}: {error}"
    return "raises nothing"


def check(path: Path, folder: Path, update: bool) -> list[str]:
    """Runs the document; what does not agree with its text, a line each."""
    namespace: dict[str, object] = {"__name__": f"docs_{path.stem}"}
    wrong, updates = [], []
    for block in blocks(path):
        expected = EXPECTED.match(block.code)
        if expected is not None:
            difference = raises(block, expected[1].strip(), path.stem, folder, namespace)
            if difference:
                wrong.append(f"{path.name}:{block.line} should raise {expected[1]!r}: {difference}")
            continue
        printed = run(block, path.stem, folder, namespace)
        if block.printed is None or printed == block.printed:
            continue
        updates.append((block.span, printed))
        if not update:
            wrong.append(f"{path.name}:{block.line} prints something else:\n{printed}")
    if update:
        text = path.read_text(encoding="utf-8")
        for (start, end), printed in reversed(updates):
            text = text[:start] + printed + text[end:]
        path.write_text(text, encoding="utf-8")
    return wrong


def main(path: Path, folder: Path) -> None:
    """Runs the document in the folder; exits with what does not agree with its text."""
    os.chdir(folder)
    with every_schedule_checked():
        problems = check(path, folder, bool(os.environ.get("WEFT_UPDATE_DOCS")))
    sys.exit("\n".join(problems) or None)


def with_torch(path: Path, folder: Path, timeout: float) -> tuple[int | None, str]:
    """The status of a process that runs the document, None if it takes too long; its words."""
    forks = multiprocessing.get_context("forkserver")
    forks.set_forkserver_preload(["torch._dynamo", "torch.export._trace"])
    log = folder / "log.txt"
    process = forks.Process(target=_logged, args=(path, folder, log))
    process.start()
    process.join(timeout)
    status = process.exitcode
    process.kill()
    return status, log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""


def _logged(path: Path, folder: Path, log: Path) -> None:
    with log.open("wb") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    main(path, folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
