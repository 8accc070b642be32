"""Every ``python`` block of the documentation runs, in order, and prints what the document says.

The blocks of one file share a namespace and are written to a real file first, so that TVMScript's
parser finds their source. A ``text`` block right after a ``python`` block is what that block
prints. A block whose first line is ``# expect-error: text`` must raise an error whose message
contains that text. ``WEFT_UPDATE_DOCS=1`` writes the printed text into the documents instead.
"""

from __future__ import annotations

import contextlib
import io
import linecache
import os
import re
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
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


def documents() -> list[Path]:
    found = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [path for path in found if blocks(path)]


def run(block: Block, name: str, folder: Path, namespace: dict[str, object]) -> str:
    """What the block prints."""
    file = folder / f"{name}_{block.line}.py"
    file.write_text(block.code, encoding="utf-8")
    linecache.checkcache(str(file))
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(block.code, str(file), "exec"), namespace)
    return printed.getvalue()


@pytest.mark.parametrize("path", documents(), ids=lambda path: str(path.relative_to(ROOT)))
def test_blocks_run(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {"__name__": f"docs_{path.stem}"}
    updates = []
    for block in blocks(path):
        expected = EXPECTED.match(block.code)
        if expected is not None:
            with pytest.raises(Exception, match=re.escape(expected[1].strip())):
                run(block, path.stem, tmp_path, namespace)
            continue
        printed = run(block, path.stem, tmp_path, namespace)
        if block.printed is not None and os.environ.get("WEFT_UPDATE_DOCS"):
            updates.append((block.span, printed))
        elif block.printed is not None:
            assert printed == block.printed, f"{path.name}:{block.line} prints something else"
    text = path.read_text(encoding="utf-8")
    for (start, end), printed in reversed(updates):
        text = text[:start] + printed + text[end:]
    if updates:
        path.write_text(text, encoding="utf-8")
