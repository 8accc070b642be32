"""What a release says of itself: one version, changes, citation, bill of materials."""

from __future__ import annotations

import importlib.metadata
import re
import tomllib
from pathlib import Path

import pytest

import weft
from tests.packaging import bill_of_materials

ROOT = Path(__file__).resolve().parents[2]


def text_of(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def test_the_version_stands_in_one_place():
    project = tomllib.loads(text_of("pyproject.toml"))
    assert project["project"]["dynamic"] == ["version"]
    assert project["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "weft.__version__"}
    assert re.fullmatch(r"\d+\.\d+\.\d+((a|b|rc)\d+)?", weft.__version__)


def test_the_citation_names_this_version():
    assert f"\nversion: {weft.__version__}\n" in text_of("CITATION.cff")


def test_the_changelog_has_this_version_below_what_is_coming():
    heads = re.findall(r"^## \[(.+?)\]", text_of("CHANGELOG.md"), re.MULTILINE)
    assert heads[:2] == ["Unreleased", weft.__version__]


@pytest.mark.parametrize(
    "name", ["CHANGELOG.md", "SECURITY.md", "CITATION.cff", "CODE_OF_CONDUCT.md"]
)
def test_readers_are_led_to_it(name):
    assert f"]({name})" in text_of("README.md") + text_of("CONTRIBUTING.md")


def test_extras_that_messages_name_exist():
    extras = tomllib.loads(text_of("pyproject.toml"))["project"]["optional-dependencies"]
    files = [*(ROOT / "src").rglob("*.py"), *(ROOT / "docs").rglob("*.md"), ROOT / "README.md"]
    named = {
        extra
        for path in files
        for extra in re.findall(r"weft-compiler\[([\w,]+)\]", path.read_text(encoding="utf-8"))
    }
    assert "onnx" in named
    assert {part for extra in named for part in extra.split(",")} <= set(extras)


def test_no_text_installs_the_other_distribution():
    files = [*(ROOT / "src").rglob("*.py"), *(ROOT / "docs").rglob("*.md"), ROOT / "README.md"]
    wrong = re.compile(r"pip install\s+['\"]?weft(?!-compiler|\w)")
    assert [str(path) for path in files if wrong.search(path.read_text(encoding="utf-8"))] == []


def test_the_bill_of_materials(monkeypatch):
    licences = text_of("src/weft/viz/page/bundle.licences.txt")
    monkeypatch.setattr(bill_of_materials, "DISTRIBUTION", "llvmlite")
    bill = bill_of_materials.bill(licences)
    root = bill["metadata"]["component"]
    version = importlib.metadata.version("llvmlite")
    assert (root["name"], root["version"]) == ("llvmlite", version)
    assert root["purl"] == f"pkg:pypi/llvmlite@{version}"
    carried = {item["name"]: item for item in root["components"]}
    graphviz = carried["@hpcc-js/wasm-graphviz"]
    assert graphviz["purl"].startswith("pkg:npm/%40hpcc-js/wasm-graphviz@")
    assert graphviz["licenses"] == [{"expression": "Apache-2.0"}]
    assert carried["Graphviz"]["purl"] == f"pkg:generic/graphviz@{carried['Graphviz']['version']}"
    assert len(carried) == licences.count("\n-----") > 10


def test_the_bill_follows_requirements():
    names = [item["name"] for item in bill_of_materials.installed("ml_dtypes")]
    assert names == ["ml_dtypes", "numpy"]
    [_, numpy] = bill_of_materials.installed("ml_dtypes")
    assert numpy["licenses"]
