"""The site: its navigation has every page, and its generated pages have every public name."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys

import pytest

from tests.lib.documents import ROOT
from weft.support.config import VARIABLES

PAGE = re.compile(r"([\w/.-]+\.md)")


@pytest.fixture(scope="module")
def public_names():
    spec = importlib.util.spec_from_file_location("public_names", ROOT / "docs/public_names.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_navigation_has_every_page():
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    listed = PAGE.findall(text.partition("\nnav:")[2])
    docs = ROOT / "docs"
    pages = {str(path.relative_to(docs)) for path in docs.rglob("*.md")}
    assert len(listed) == len(set(listed))
    assert set(listed) == pages | {"reference/names/index.md"}  # docs/public_names.py writes it


SILENT = """
import public_names

for package in public_names.PACKAGES:
    for name, value in public_names.public_names(package).items():
        if not public_names.prose(value).strip():
            print(f"{package}.{name}")
"""


def test_every_public_name_has_a_docstring():
    """In a process of its own: other tests register operators, which are names of R, too."""
    done = subprocess.run(
        [sys.executable, "-c", SILENT],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([*sys.path, str(ROOT / "docs")])},
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert (done.stdout, done.returncode) == ("", 0), done.stderr


def test_a_page_has_signatures_examples_and_methods(public_names):
    text = public_names.page("weft")
    assert "weft.compile(model: Any, example_inputs: Any = None" in text
    assert "- `dynamic_shapes`: which dimensions of the example inputs vary" in text
    assert "```pycon\n>>> import numpy as np, weft" in text
    assert "**`benchmark(self, *args: object, number: int = 1" in text


def test_prose_is_markdown(public_names):
    class Documented:
        """Of ``x`` < y::

            code

        Args:
            x: an a[b](c).
                More.
        """

    assert public_names.prose(Documented).split("\n") == [
        "Of `x` \\< y:", "", "```text", "code", "```", "", "", "**Args**", "",
        "- `x`: an a\\[b](c).", "    More.",
    ]  # fmt: skip


def test_every_variable_is_in_the_table():
    text = (ROOT / "docs/reference/environment.md").read_text(encoding="utf-8")
    table = re.findall(r"^\| `(WEFT_\w+)` \|", text, re.MULTILINE)
    read = {
        name
        for path in (ROOT / "src").rglob("*.py")
        for name in re.findall(r"""["'](WEFT_[A-Z_]+)["']""", path.read_text(encoding="utf-8"))
    }
    assert table == sorted(VARIABLES), "docs/reference/environment.md has a row for each variable"
    assert read == set(VARIABLES), "what weft reads is in weft/support/config.py"
