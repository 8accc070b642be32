"""The bill of materials of a release: CycloneDX 1.6 as JSON, of an installed weft.

$ python bill_of_materials.py bundle.licences.txt > weft.cdx.json

Run with the Python of an environment that has the wheel: it lists weft-compiler, all that it
requires, as installed there, and the JavaScript that weft carries in the page of ``weft viz``,
which the file of licences names. It imports nothing of weft.
"""

from __future__ import annotations

import importlib.metadata
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

DISTRIBUTION = "weft-compiler"
Component = dict[str, Any]

_CARRIED = re.compile(
    r"^((?:@[\w-]+/)?[\w.-]+)(?: (\d[\w.]*))? \(([^)]+)\)(, .*)?\n---", re.MULTILINE
)
"""A head in the file of licences: name, version, licence, and where it lies if not in a package."""


def bill(licences: str) -> dict[str, Any]:
    """The whole bill; ``licences`` is the text of the file of licences."""
    weft, *others = installed(DISTRIBUTION)
    carried = [javascript(*groups) for groups in _CARRIED.findall(licences)]
    weft["components"] = carried
    references = [component["bom-ref"] for component in (*others, *carried)]
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": weft},
        "components": others,
        "dependencies": [{"ref": weft["bom-ref"], "dependsOn": references}],
    }


def installed(root: str) -> Iterator[Component]:
    """A distribution, and all that it requires without its extras."""
    names, seen = [root], set()
    for name in names:
        distribution = importlib.metadata.distribution(name)
        if distribution.name.lower() in seen:
            continue
        seen.add(distribution.name.lower())
        names += [
            re.split(r"[^A-Za-z0-9._-]", requirement)[0]
            for requirement in distribution.requires or ()
            if "extra ==" not in requirement
        ]
        yield python(distribution)


def python(distribution: importlib.metadata.Distribution) -> Component:
    """The component of a distribution of Python."""
    metadata, name = distribution.metadata, distribution.name.lower().replace("_", "-")
    expression = metadata.get("License-Expression")
    named = [
        text.rpartition(" :: ")[2]
        for text in metadata.get_all("Classifier") or ()
        if text.startswith("License :: ")
    ] or [(metadata.get("License") or "unknown").splitlines()[0]]
    licences = [{"license": {"name": text}} for text in named]
    return component(
        f"pkg:pypi/{name}@{distribution.version}",
        distribution.name,
        distribution.version,
        [{"expression": expression}] if expression else licences,
    )


def javascript(name: str, version: str, licence: str, within: str) -> Component:
    """The component of a package of npm in the bundle, or of what such a package carries."""
    kind = "generic" if within else "npm"
    url = f"pkg:{kind}/{name.lower().replace('@', '%40')}" + (f"@{version}" if version else "")
    return component(url, name, version, [{"expression": licence}])


def component(url: str, name: str, version: str, licences: list[dict[str, Any]]) -> Component:
    """A library, named by its package URL; no version is an unknown one."""
    known = {"version": version} if version else {}
    return {
        "type": "library", "bom-ref": url, "purl": url, "name": name, "licenses": licences, **known,
    }  # fmt: skip


if __name__ == "__main__":
    print(json.dumps(bill(Path(sys.argv[1]).read_text(encoding="utf-8")), indent=1))
