"""Every ``python`` block of the documentation runs and prints what the document says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs import document

ROOT = Path(__file__).resolve().parents[2]


def documents() -> list[Path]:
    found = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [path for path in found if "```python\n" in path.read_text(encoding="utf-8")]


def run_document(path: Path, folder: Path) -> tuple[int | None, str]:
    """The status of a process that runs the document, and what it says."""
    if any(re.search(r"\btorch\b", block.code) for block in document.blocks(path)):
        return document.with_torch(path, folder, timeout=300)
    command = [sys.executable, "-m", "tests.docs.document", str(path), str(folder)]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False
    )
    return done.returncode, done.stderr


@pytest.mark.parametrize("path", documents(), ids=lambda path: str(path.relative_to(ROOT)))
def test_blocks_run(path, tmp_path):
    status, said = run_document(path, tmp_path)
    assert status == 0, said[-4000:]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("```python\nprint(1)\n```\n```text\n2\n```\n", "prints something else"),
        ("```python\nraise ValueError(1)\n```\n", "ValueError: 1"),
        ("```python\nimport torch\nprint(1)\n```\n```text\n2\n```\n", "prints something else"),
        ("```python\nimport torch\nraise ValueError(1)\n```\n", "ValueError: 1"),
        ("```python\nimport torch, os\nprint(1, flush=True), os._exit(3)\n```\n", ""),
        ("```python\n# expect-error: no\n1\n```\n", "raises nothing"),
    ],
)
def test_a_document_that_is_wrong_is_found(text, message, tmp_path):
    (tmp_path / "wrong.md").write_text(text, encoding="utf-8")
    status, said = run_document(tmp_path / "wrong.md", tmp_path)
    assert status != 0
    assert message in said


def test_the_files_that_documents_name_exist():
    named = re.compile(r"\b(?:tests|benchmarks|examples)/[A-Za-z0-9_/]+\.(?:py|txt)\b")
    missing = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in (ROOT / "docs").rglob("*.md")
        for name in named.findall(path.read_text(encoding="utf-8"))
        if not (ROOT / name).exists()
    ]
    assert missing == []
