"""Links between documents: each file and each heading that a document names is there.

Nothing here needs mkdocs. Headings become anchors by mkdocs' rule, which for our headings is
GitHub's too: lower case, punctuation left out, a hyphen for each run of spaces.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lib.documents import ROOT, anchors, links

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def broken(path: Path) -> list[str]:
    """The links of a document that lead nowhere, a line each."""
    problems = []
    for line, target in links(path):
        name, _, anchor = target.partition("#")
        file = (path.parent / name).resolve() if name else path
        if not file.exists():
            problems.append(f"{path.name}:{line}: no file {name}")
        elif anchor and file.suffix == ".md" and anchor not in anchors(file):
            problems.append(f"{path.name}:{line}: {file.name} has no heading #{anchor}")
    return problems


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(path):
    assert broken(path) == []


def test_a_broken_link_is_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# A b, c\n[x](gone.md) [y](#a-b-c) [z](#d)\n```\n[w](no.md)\n```\n")
    assert broken(page) == ["page.md:2: no file gone.md", "page.md:2: page.md has no heading #d"]
