"""The page of ``weft viz``: one HTML file that holds its program, its style and its data.

The page loads nothing. Its content-security policy names the hashes of its one script and its one
style sheet, so nothing that the names in a model smuggle in can run or be fetched; WebAssembly is
allowed for graphviz, which places the nodes of a graph. ``page/build.mjs`` builds the program from
``page/source``.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import html
import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

from weft.support.errors import IRValueError

_FOLDER = Path(__file__).parent / "page"

_PAGE = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<div id="loading">Reading the record.
<noscript>This page draws it by its own script: allow that.</noscript></div>
<script type="text/plain" id="data">{data}</script>
<script>{script}</script>
</body>
</html>
"""


class _Bundle(NamedTuple):
    script: str
    style: str
    policy: str


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


@cache
def _bundle() -> _Bundle:
    """The built program and style, and the policy that allows these two alone."""
    script, style = (
        (_FOLDER / name).read_text(encoding="utf-8") for name in ("bundle.js", "bundle.css")
    )
    policy = (
        "default-src 'none'; base-uri 'none'; form-action 'none'; "
        f"script-src 'sha256-{_digest(script)}' 'wasm-unsafe-eval'; "
        f"style-src 'sha256-{_digest(style)}'"
    )
    return _Bundle(script, style, policy)


def _packed(data: Mapping[str, object]) -> str:
    """The data as base64 of gzip of JSON: letters that HTML gives no meaning.

    A name that was a file's may have halves of letters, which no address can hold: they read "?".
    """
    try:
        text = json.dumps(data, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    except ValueError as problem:
        raise IRValueError(
            "the record of a page holds finite numbers, texts, lists and None only, but JSON "
            f"refuses one of its values ({problem}).\n"
            "Put None where a number was not measured."
        ) from problem
    return base64.b64encode(
        gzip.compress(text.encode(errors="replace"), compresslevel=6, mtime=0)
    ).decode()


def page(data: Mapping[str, object]) -> str:
    """The HTML text of the page that shows ``data``.

    Args:
        data: the record of a compile: ``title``, ``target``, ``passes``, ``graphs``, ``kernels``,
            ``memory``, ``profile``, ``compile``, ``report`` and the ``texts`` they name by hash.
            What is missing or None, the page calls "not recorded".

    Returns:
        One self-contained file, for a browser of 2023 or later; about 1 MB plus the packed data.

    Raises:
        IRValueError: a value has no form in JSON, such as NaN.

    Example:
        >>> from weft.viz.html import page
        >>> text = page({"title": "a <small> model", "kernels": []})
        >>> text.startswith("<!doctype html>"), "a &lt;small&gt; model" in text
        (True, True)
    """
    bundle = _bundle()
    title = str(data.get("title", "model")).encode(errors="replace").decode()
    return _PAGE.format(
        policy=bundle.policy,
        title=html.escape(f"{title} · weft viz"),
        style=bundle.style,
        data=_packed(data),
        script=bundle.script,
    )
