"""Pictures of the page beside stored ones, by mean colours of blocks: fonts may differ.

WEFT_UPDATE_PICTURES=1 writes them anew; look at them before you commit them.
"""

from __future__ import annotations

import io
import os
from pathlib import Path

import numpy as np
import pytest

STORED = Path(__file__).parent / "pictures"
SHRINK = 4  # stored pictures have a quarter of the page's width and height
BLOCK = 5  # pixels of a stored picture that are compared as one
# Mean difference of blocks, of 255. Other families of fonts were up to 1.6 away, letters a pixel
# smaller or larger up to 2.7 (4.0 where tables move); a view without its drawing, 3.8 to 5.9.
TOLERANCE = 3.0

VIEWS = {
    "graph": ("light", "#graph=after%20fusion&group=1"),
    "graph-dark": ("dark", "#graph=after%20fusion&group=1"),
    "passes": ("light", "#pass=6&view=graph&function=main"),
    "kernels": ("light", "#kernel=fused_conv2d_add_relu&line=scheduled:22"),
    "memory": ("light", "#memory&buffer=1"),
    "time": ("light", "#time"),
}


def shrunk(picture: np.ndarray, factor: int) -> np.ndarray:
    """The mean colours of squares of ``factor`` pixels."""
    height, width = (size // factor * factor for size in picture.shape[:2])
    squares = picture[:height, :width].reshape(height // factor, factor, width // factor, factor, 3)
    return squares.mean(axis=(1, 3))


def taken(show, view: str, style: str = "") -> np.ndarray:
    """A small picture of a view, with a rule of style added."""
    image = pytest.importorskip("PIL.Image", reason="needs pip install pillow")
    theme, address = VIEWS[view]
    shown = show("cnn", address, color_scheme=theme, bypass_csp=bool(style))
    if style:
        shown.tab.add_style_tag(content=style)
    shown.tab.mouse.move(0, 0)
    shot = shown.tab.screenshot(animations="disabled")
    pixels = np.asarray(image.open(io.BytesIO(shot)).convert("RGB"), dtype="float64")
    return shrunk(pixels, SHRINK)


def stored(view: str) -> np.ndarray:
    """The stored picture of a view."""
    image = pytest.importorskip("PIL.Image", reason="needs pip install pillow")
    return np.asarray(image.open(STORED / f"{view}.png").convert("RGB"), dtype="float64")


def difference(first: np.ndarray, second: np.ndarray) -> float:
    """How far blocks of two pictures are apart in the mean, of 255."""
    return float(np.abs(shrunk(first, BLOCK) - shrunk(second, BLOCK)).mean())


@pytest.mark.parametrize("view", VIEWS)
def test_a_view_looks_as_it_did(show, view):
    picture = taken(show, view)
    if os.environ.get("WEFT_UPDATE_PICTURES"):
        image = pytest.importorskip("PIL.Image")
        image.fromarray(picture.round().astype("uint8")).save(STORED / f"{view}.png", optimize=True)
    far = difference(picture, stored(view))
    assert far <= TOLERANCE, f"{view}: {far:.1f} of 255 from tests/viz/page/pictures/{view}.png"


@pytest.mark.parametrize(
    ("view", "style"),
    [
        ("graph", ".cluster, .edge, .node { display: none }"),
        ("memory", ".buffer { display: none }"),
        ("passes", ".edge, .node { display: none }"),
    ],
)
def test_a_missing_drawing_is_seen(show, view, style):
    assert difference(taken(show, view, style), stored(view)) > TOLERANCE


def test_the_themes_and_views_differ():
    pictures = {view: stored(view) for view in VIEWS}
    for first in pictures:
        for second in pictures:
            assert first == second or difference(pictures[first], pictures[second]) > TOLERANCE


def test_stored_pictures_are_small():
    assert {path.stem for path in STORED.glob("*.png")} == set(VIEWS)
    assert all(path.stat().st_size < 100_000 for path in STORED.glob("*.png"))
