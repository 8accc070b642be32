"""What the house tests read: every Python file of the repository, parsed once a session."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("src", "tests", "examples", "benchmarks", "docs")
USERS_PROGRAMS = {  # in users' style: no modules, but programs and notebooks' cells
    Path("tests/compat/tutorials"),
    Path("tests/course/programs"),
    Path("src/weft/data/course"),
}


@dataclass(frozen=True)
class Source:
    """One Python file: ``path`` relative to the repository, its text and its syntax tree."""

    path: Path
    text: str
    tree: ast.Module

    @property
    def module(self) -> str:
        """The dotted name under which Python imports the file."""
        parts = self.path.with_suffix("").parts
        if parts[0] == "src":
            parts = parts[1:]
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    @property
    def is_package(self) -> bool:
        """Whether the file is the ``__init__`` of a package."""
        return self.path.name == "__init__.py"


@pytest.fixture(scope="session")
def root() -> Path:
    return ROOT


@pytest.fixture(scope="session")
def sources() -> tuple[Source, ...]:
    """Every Python file of ours, users' programs left out."""
    found = []
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.py")):
            relative = path.relative_to(ROOT)
            if USERS_PROGRAMS & set(relative.parents) or "__pycache__" in relative.parts:
                continue
            text = path.read_text(encoding="utf-8")
            found.append(Source(relative, text, ast.parse(text, str(relative))))
    return tuple(found)


@pytest.fixture(scope="session")
def weft_sources(sources: tuple[Source, ...]) -> tuple[Source, ...]:
    """The files of the package itself."""
    return tuple(source for source in sources if source.path.parts[0] == "src")
