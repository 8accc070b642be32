"""Files of packages with trained weights, what they are given, and how far weft is from others.

The packages stand in ``tests/zoo/weights.txt``; their files are read, no code of theirs runs.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import weft

Inputs = Mapping[str, np.ndarray]
InputsOf = Callable[..., Inputs]


def file_of(package: str, *path: str) -> Path:
    """A file of an installed package, which is not imported."""
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        pytest.skip(f"{package} is not installed (see weights.txt)")
    return Path(spec.submodule_search_locations[0]).joinpath(*path)


def normal(*shape: int, scale: float = 1.0, seed: int = 0) -> np.ndarray:
    """Normally distributed float32: the same for a shape and seed whenever they are asked for."""
    drawn = np.random.default_rng((seed, *shape)).standard_normal(shape).astype("float32")
    return drawn * np.float32(scale)


def uniform(*shape: int) -> np.ndarray:
    """float32 in [0, 1), as images have them: the same for a shape whenever it is asked for."""
    return np.random.default_rng(shape).random(shape, "float32")


def integers(low: int, high: int, *shape: int) -> np.ndarray:
    """int64 in [low, high): the same for a shape whenever they are asked for."""
    return np.random.default_rng(shape).integers(low, high, shape)


def image_of_words(words: str, width: int, height: int) -> np.ndarray:
    """An image of dark words on white, (height, width, 3) float32 in [0, 1]."""
    image_module = pytest.importorskip("PIL.Image")
    draw = pytest.importorskip("PIL.ImageDraw")
    font = pytest.importorskip("PIL.ImageFont")
    image = image_module.new("RGB", (width, height), "white")
    draw.Draw(image).text((10, 4), words, fill="black", font=font.load_default(size=34))
    return np.asarray(image, "float32") / np.float32(255)


def channels_first(image: np.ndarray, mean: Any = 0.5, spread: Any = 0.5) -> np.ndarray:
    """An image (height, width, channels) as a batch of one, (1, channels, height, width)."""
    return np.ascontiguousarray(
        ((image - mean) / spread).astype("float32").transpose(2, 0, 1)[None]
    )


def largest_difference(
    path: Path,
    inputs_of: InputsOf,
    sizes: Sequence[Sequence[int]],
    judge: Path | None = None,
    **help: Any,
) -> float:
    """From ONNX Runtime, of all outputs at all sizes, in parts of the largest magnitude of each.

    weft compiles the file once, without ``help`` (options of ``weft.compile``) unless it is given;
    a test that calls this is skipped where there is no ONNX Runtime. That runs ``judge``, a file of
    the same function, if one is given.
    """
    onnxruntime = pytest.importorskip("onnxruntime", reason="its results are compared with")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1  # with more, a quantized LSTM has a range for each one's rows
    session = onnxruntime.InferenceSession(
        str(judge or path), options, providers=["CPUExecutionProvider"]
    )
    compiled = weft.compile(path, cache=False, **help)
    names = [item.name for item in session.get_inputs()]
    apart = 0.0
    for size in sizes:
        inputs = inputs_of(*size)
        results = compiled(*[inputs[name] for name in names])
        results = results if isinstance(results, tuple | list) else [results]
        for result, wanted in zip(results, session.run(None, dict(inputs)), strict=True):
            mine = np.asarray(result)
            assert (mine.shape, mine.dtype) == (wanted.shape, wanted.dtype)
            assert not np.isnan(wanted.astype("float64")).any(), "inputs that mean something"
            scale = max(float(np.abs(wanted).max()), 1e-30)
            apart = max(apart, float(np.abs(mine.astype("float64") - wanted).max()) / scale)
    return apart
