"""Every ``python`` block of the documentation runs, in order, file by file.

The blocks of one file share a namespace and are written to a real file first, so that TVMScript's
parser finds their source. A block whose first line is ``# expect-error: text`` must raise an error
whose message contains that text.
"""

from __future__ import annotations

import linecache
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
EXPECTED = re.compile(r"# expect-error: (.+)")


def blocks(path: Path) -> list[tuple[int, str]]:
    """(line of the fence, code) of every python block."""
    text = path.read_text(encoding="utf-8")
    return [(text.count("\n", 0, m.start()) + 1, m.group(1)) for m in BLOCK.finditer(text)]


def documents() -> list[Path]:
    found = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [path for path in found if blocks(path)]


@pytest.mark.parametrize("path", documents(), ids=lambda path: str(path.relative_to(ROOT)))
def test_blocks_run(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    namespace = {"__name__": f"docs_{path.stem}"}
    for line, code in blocks(path):
        file = tmp_path / f"{path.stem}_{line}.py"
        file.write_text(code, encoding="utf-8")
        linecache.checkcache(str(file))
        program = compile(code, str(file), "exec")
        expected = EXPECTED.match(code)
        if expected is None:
            exec(program, namespace)
            continue
        with pytest.raises(Exception, match=re.escape(expected.group(1).strip())):
            exec(program, namespace)
