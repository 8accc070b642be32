"""The file of a page: self-contained, safe, and built from the sources that are committed."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
import tomllib
from pathlib import Path

import pytest

import weft
from tests.lib import viz_records
from weft.support.errors import IRValueError
from weft.viz.html import page

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "src/weft/viz/page"
REBUILD = "run `npm ci --ignore-scripts && npm run build` in src/weft/viz/page"


def parts(text: str) -> dict[str, str]:
    """The pieces of a page: its policy, style, data and script."""
    match = re.fullmatch(
        r'<!doctype html>\n.*?http-equiv="Content-Security-Policy" content="(?P<policy>[^"]*)">\n'
        r".*?<title>(?P<title>.*?)</title>\n<style>(?P<style>.*?)</style>\n.*?"
        r'<script type="text/plain" id="data">(?P<data>[A-Za-z0-9+/=]*)</script>\n'
        r"<script>(?P<script>.*?)</script>\n</body>\n</html>\n",
        text,
        re.DOTALL,
    )
    assert match is not None
    return match.groupdict()


def data_of(text: str) -> dict[str, object]:
    """The record that a page holds."""
    return json.loads(gzip.decompress(base64.b64decode(parts(text)["data"])))


@pytest.mark.parametrize("name", ["cnn", "empty"])
def test_a_page_holds_its_record(name):
    record = getattr(viz_records, name)()
    assert data_of(page(record)) == record


def test_the_policy_allows_the_pages_own_script_and_style_alone():
    found = parts(page(viz_records.cnn()))
    for kind in ("script", "style"):
        digest = base64.b64encode(hashlib.sha256(found[kind].encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in found["policy"]
    assert found["policy"].startswith("default-src 'none'; base-uri 'none'; form-action 'none'; ")
    assert "unsafe-inline" not in found["policy"]
    assert "'unsafe-eval'" not in found["policy"]


def test_the_markup_is_ours_alone():
    """What a record says stands in the title, escaped, and in the data, packed."""
    plain, hostile = (parts(page(record)) for record in ({}, viz_records.hostile()))
    assert plain["script"] == hostile["script"]
    assert hostile["title"] == (
        "&lt;/script&gt;&lt;script&gt;document.title=&#x27;taken&#x27;&lt;/script&gt; · weft viz"
    )
    assert "</script" not in plain["script"].lower()
    assert "<!--" not in plain["script"]  # would hide what follows from the parser of HTML
    assert "</style" not in plain["style"].lower()
    assert not re.search(r"url\(|@import|https?:", plain["style"])


def test_halves_of_letters_are_replaced():
    text = page({"title": "a\udc80b"})
    text.encode()
    assert data_of(text)["title"] == "a?b"


def test_the_same_record_gives_the_same_page():
    assert page(viz_records.cnn()) == page(viz_records.cnn())


def test_a_number_that_json_lacks_is_refused():
    with pytest.raises(IRValueError, match="finite numbers.*\nPut None where a number was not"):
        page({"profile": {"peak_gflops": float("nan")}})


def test_the_bundle_is_built_from_the_sources():
    hashes = json.loads((FOLDER / "bundle.sha256.json").read_text())
    for name, digest in hashes.items():
        assert hashlib.sha256((FOLDER / name).read_bytes()).hexdigest() == digest, (
            f"{name} is not what the bundle was built from: {REBUILD}"
        )
    sources = {f"source/{path.name}" for path in (FOLDER / "source").iterdir()}
    assert sources <= set(hashes), f"sources that the bundle lacks: {REBUILD}"


def test_the_bundle_is_small():
    assert sum((FOLDER / f"bundle.{kind}").stat().st_size for kind in ("js", "css")) <= 1_000_000


def test_the_bundle_names_the_licences_of_what_it_holds():
    text = (FOLDER / "bundle.licences.txt").read_text(encoding="utf-8")
    versions = json.loads((FOLDER / "package.json").read_text())["devDependencies"]
    shipped = {name: version for name, version in versions.items() if name != "esbuild"}
    for name, version in shipped.items():
        assert f"{name} {version} (" in text
    for name in ("Graphviz", "Expat", "fzstd"):
        assert re.search(rf"^{name} .*\(", text, re.MULTILINE)
    dependencies = (ROOT / "docs/design/dependencies.md").read_text(encoding="utf-8")
    assert all(name.split("/")[-1].split("-")[0] in dependencies for name in shipped)
    assert all(re.fullmatch(r"[\d.]+", version) for version in versions.values())  # exact


def test_the_wheel_ships_the_bundle():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    patterns = settings["tool"]["setuptools"]["package-data"]["weft"]
    package = Path(weft.__file__).parent
    shipped = {path for pattern in patterns for path in package.glob(pattern)}
    assert {FOLDER / f"bundle.{kind}" for kind in ("js", "css", "licences.txt")} <= shipped
    assert "src/weft/viz/page/bundle.licences.txt" in settings["project"]["license-files"]


def test_sources_have_lines_that_one_can_read():
    long = [
        f"{path.name}:{number}"
        for path in [*(FOLDER / "source").iterdir(), FOLDER / "build.mjs"]
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if len(line) > 100
    ]
    assert long == []
    assert all(
        path.read_text(encoding="utf-8").count("\n") <= 500 for path in FOLDER.glob("source/*")
    )
