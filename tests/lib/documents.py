"""What tests read from the documents: their links and their headings."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
_LINK = re.compile(r"(?<!`)\[[^\]\n]*(?:\n[^\]\n]*)?\]\(([^)\s]+)\)")
_FENCE = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
_CODE = re.compile(r"`[^`\n]*`")


def _prose(path: Path) -> str:
    """The text without its blocks of code; lines keep their numbers."""
    text = path.read_text(encoding="utf-8")
    return _FENCE.sub(lambda block: "\n" * block[0].count("\n"), text)


def links(path: Path) -> Iterator[tuple[int, str]]:
    """``(line, target)`` of each link that stays within the repository."""
    text = _CODE.sub(lambda code: "x" * len(code[0]), _prose(path))
    for link in _LINK.finditer(text):
        if "://" not in link[1]:
            yield text.count("\n", 0, link.start()) + 1, link[1]


def anchors(path: Path) -> set[str]:
    """The anchors of a document's headings."""
    headings = re.findall(r"^#+ (.+)$", _prose(path), re.MULTILINE)
    return {_anchor(heading) for heading in headings}


def _anchor(heading: str) -> str:
    words = re.sub(r"[^\w\s-]", "", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower())
    return re.sub(r"[\s-]+", "-", words.strip())
