"""Decoding of image files, by Pillow, where it is installed.

Programs call ``weft.image.decode`` by name; importing the module registers it, as the virtual
machine does.
"""

from __future__ import annotations

import io
from typing import Any, Final

import numpy as np

from weft.runtime.ndarray import NDArray
from weft.runtime.registry import register_func
from weft.support.errors import RuntimeFault, UnsupportedError

DECODE: Final = "weft.image.decode"
FORMATS: Final = {"RGB": "RGB", "BGR": "RGB", "Grayscale": "L"}
"""Format of pixels -> Pillow's mode in which they are read."""


def pillow() -> Any:
    """The module ``PIL.Image``; UnsupportedError where it is not installed."""
    try:
        from PIL import Image  # noqa: PLC0415 - an optional package, imported where it is used
    except ImportError as error:
        raise UnsupportedError("decoding of images needs Pillow: pip install pillow") from error
    return Image


@register_func(DECODE, override=True)
def decode(content: NDArray, pixel_format: object) -> NDArray:
    """The pixels of an image file (its bytes, uint8) as uint8 (height, width, channels)."""
    try:
        image = pillow().open(io.BytesIO(np.asarray(content).tobytes()))
        pixels = np.asarray(image.convert(FORMATS[str(pixel_format)]))
    except (OSError, ValueError) as error:
        raise RuntimeFault(f"ImageDecoder: expected the bytes of an image file: {error}") from error
    if pixels.ndim == 2:
        pixels = pixels[:, :, None]
    if str(pixel_format) == "BGR":
        pixels = pixels[:, :, ::-1]
    return NDArray(np.array(pixels, order="C"))
