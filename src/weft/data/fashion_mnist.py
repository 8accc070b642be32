"""FashionMNIST: the images that weft's main job classifies, and parameters trained on them.

The first 1,000 images of the real test set ship with the package, as do the parameters of the
two models of the Machine Learning Compilation course: its perceptron and its assignment's
convolutional network. The full set of 10,000 is read from a folder of idx files, by default where
Debian's package ``dataset-fashion-mnist`` puts them. The parameters are stored as float16 and
given as float32, so every user of them computes with the same numbers.

Images: Han Xiao, Kashif Rasul, Roland Vollgraf, "Fashion-MNIST: a Novel Image Dataset for
Benchmarking Machine Learning Algorithms", arXiv:1708.07747; MIT licence, beside the data.
The idx format: a big-endian header (two zero bytes, type code, rank, extents), then the elements.
"""

from __future__ import annotations

import gzip
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from weft.support.errors import IRValueError

CLASS_NAMES: Final = (
    "T-shirt/top", "Trouser", "Pullover", "Dress", "Coat",
    "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot",
)  # fmt: skip
DEBIAN_FOLDER: Final = Path("/usr/share/datasets/fashion-mnist")
_HERE: Final = Path(__file__).resolve().parent
_IDX_BYTES: Final = 0x08


@dataclass(frozen=True)
class LabelledImages:
    """Grey images with their classes: ``images`` (n, 28, 28) uint8, ``labels`` (n,) uint8."""

    images: NDArray[np.uint8]
    labels: NDArray[np.uint8]
    source: str

    def __len__(self) -> int:
        """The number of images."""
        return len(self.images)

    def as_float(self) -> NDArray[np.float32]:
        """The images as (n, 1, 28, 28) float32 in [0, 1], as torchvision's ToTensor gives them."""
        scaled = self.images.astype(np.float32) / np.float32(255)
        return scaled.reshape(len(self), 1, 28, 28)

    def first(self, count: int) -> LabelledImages:
        """The first ``count`` images (all, if there are no more)."""
        if count >= len(self):
            return self
        source = f"{count:,} of: {self.source}"
        return LabelledImages(self.images[:count], self.labels[:count], source)


def load_subset() -> LabelledImages:
    """The first 1,000 images of the test set, which ship with weft."""
    with np.load(_HERE / "fashion_mnist_test_1000.npz", allow_pickle=False) as stored:
        return LabelledImages(stored["images"], stored["labels"], "first 1,000 test images")


def find_full(directory: str | Path | None = None, split: str = "t10k") -> Path | None:
    """The folder with the idx files of ``split``: ``directory``, else Debian's; None if absent."""
    for folder in (DEBIAN_FOLDER,) if directory is None else (Path(directory),):
        for candidate in (folder, folder / "raw", folder / "FashionMNIST" / "raw"):
            if _find_idx(candidate, f"{split}-images-idx3-ubyte") is not None:
                return candidate
    return None


def load_full(directory: str | Path | None = None, split: str = "t10k") -> LabelledImages:
    """All images of ``split`` (``t10k``: 10,000, ``train``: 60,000) from a folder of idx files."""
    folder = find_full(directory, split)
    if folder is None:
        where = DEBIAN_FOLDER if directory is None else directory
        raise IRValueError(
            f"expected {split}-images-idx3-ubyte (or .gz) under {where}, found none; install "
            "Debian's dataset-fashion-mnist or give the folder that has the four idx files"
        )
    images = read_idx(_find_idx(folder, f"{split}-images-idx3-ubyte"))
    labels = read_idx(_find_idx(folder, f"{split}-labels-idx1-ubyte"))
    if images.shape != (len(labels), 28, 28):
        raise IRValueError(
            f"{folder}: expected images of shape ({len(labels)}, 28, 28) for {len(labels)} labels, "
            f"found {images.shape}"
        )
    return LabelledImages(images, labels, f"{len(labels):,} {split} images in {folder}")


def load_mlp_parameters() -> dict[str, NDArray[np.float32]]:
    """The perceptron 784-128-10: w0 (128, 784), b0 (128,), w1 (10, 128), b1 (10,), float32."""
    return _load_parameters("fashion_mnist_mlp.npz")


def load_cnn_parameters() -> dict[str, NDArray[np.float32]]:
    """The assignment's network: weights (32, 1, 3, 3), (100, 5408), (10, 100).

    Each has ``<name>_weight`` and ``<name>_bias``, float32.
    """
    return _load_parameters("fashion_mnist_cnn.npz")


def read_idx(path: Path | None) -> NDArray[np.uint8]:
    """The array of unsigned bytes in an idx file, plain or gzip."""
    if path is None:
        raise IRValueError("expected an idx file, found none")
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    if len(data) < 4 or data[:2] != b"\0\0" or data[2] != _IDX_BYTES:
        raise IRValueError(f"{path}: expected an idx file of unsigned bytes, found {data[:4]!r}")
    rank = data[3]
    shape = struct.unpack_from(f">{rank}I", data, 4) if len(data) >= 4 + 4 * rank else ()
    elements = np.frombuffer(data, np.uint8, offset=min(len(data), 4 + 4 * rank))
    if len(shape) != rank or elements.size != int(np.prod(shape, dtype=np.int64)):
        raise IRValueError(f"{path}: header says {shape}, the file holds {elements.size} bytes")
    return elements.reshape(shape)


def idx_bytes(array: NDArray[np.uint8]) -> bytes:
    """The idx file (not compressed) that holds ``array``."""
    header = struct.pack(f">HBB{array.ndim}I", 0, _IDX_BYTES, array.ndim, *array.shape)
    return header + np.ascontiguousarray(array).tobytes()


def _find_idx(folder: Path, stem: str) -> Path | None:
    for name in (stem, f"{stem}.gz"):
        if (folder / name).is_file():
            return folder / name
    return None


def _load_parameters(name: str) -> dict[str, NDArray[np.float32]]:
    with np.load(_HERE / name, allow_pickle=False) as stored:
        return {key: stored[key].astype(np.float32) for key in stored.files}
