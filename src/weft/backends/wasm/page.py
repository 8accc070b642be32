"""The page ``index.html`` of a package: it classifies a dropped picture, or says how to call it."""

from __future__ import annotations

import html
from pathlib import Path

from weft.backends.wasm.module_text import ModuleText, Tensor


def page_of(text: ModuleText) -> str:
    """The page of a model; a picture is classified where its input is one."""
    size = image_size(text)
    title = html.escape(text.name)
    if size is None:
        rows = [
            f"<li>{html.escape(f'{kind} {t.name}: {t.dtype} {t.shape}')}</li>"
            for kind, tensors in (("input", text.given), ("output", text.outputs))
            for t in tensors
        ]
        return _PLAIN.replace("@NAME@", title).replace("@ROWS@", "\n".join(rows))
    channels, height, width = size
    page = Path(__file__).with_name("picture.html").read_text(encoding="utf-8")
    for key, value in {"CHANNELS": channels, "HEIGHT": height, "WIDTH": width}.items():
        page = page.replace(f"@{key}@", str(value))
    return page.replace("@NAME@", title)


def image_size(text: ModuleText) -> tuple[int, int, int] | None:
    """Channels, height and width of the one picture that a model classifies; None for others."""
    if len(text.given) != 1 or not text.outputs:
        return None
    picture, classes = text.given[0], text.outputs[0]
    is_batch = len(picture.shape) == 4 and _takes_one(picture)
    extents = [extent for extent in picture.shape[1:] if isinstance(extent, int)]
    is_scores = classes.dtype == "float32" and len(classes.shape) == 2
    if not (is_batch and is_scores and picture.dtype == "float32" and len(extents) == 3):
        return None
    channels, height, width = extents
    return (channels, height, width) if channels in (1, 3) else None


def _takes_one(picture: Tensor) -> bool:
    return picture.shape[0] == 1 or isinstance(picture.shape[0], str)


_PLAIN = """\
<!doctype html>
<html lang="en"><meta charset="utf-8"><title>@NAME@</title>
<h1>@NAME@</h1>
<ul>
@ROWS@
</ul>
<pre>import { load } from "./model.js";
const model = await load();
const results = model.run(...);  // typed arrays, or {data, shape}</pre>
<p id="state">loading …</p>
<script type="module">
const state = document.getElementById("state");
try {
  const { load } = await import("./model.js"), model = await load();
  state.textContent = `${model.module} is loaded: ${(model.memoryBytes / 1e6).toFixed(1)} MB`;
} catch (error) {
  state.textContent = String(error);
}
</script></html>
"""
