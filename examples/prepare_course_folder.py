"""Put what the course's programs open into a folder, so that they run there without a download.

    python examples/prepare_course_folder.py FOLDER [--data DIR]

It writes the two pickled parameter files under the names of the course (with its spelling) and
``data/FashionMNIST/raw`` as torchvision reads it: all test images where Debian's package or
``--data`` has them, else the 1,000 that ship with weft; and a few images as a training set.
"""

from __future__ import annotations

import argparse
import importlib
import pickle
import sys
import types
from pathlib import Path

from weft.data import fashion_mnist


def prepare(folder: Path, test: fashion_mnist.LabelledImages) -> None:
    """Write the parameters and ``test``, and as torchvision wants one too, a training set."""
    for name, parameters in (
        ("fasionmnist_mlp_params.pkl", fashion_mnist.load_mlp_parameters()),
        ("fasionmnist_mlp_assignment_params.pkl", fashion_mnist.load_cnn_parameters()),
    ):
        (folder / name).write_bytes(pickle.dumps(parameters))
    raw = folder / "data" / "FashionMNIST" / "raw"
    raw.mkdir(parents=True, exist_ok=True)
    for split, part in (("t10k", test), ("train", test.first(20))):
        (raw / f"{split}-images-idx3-ubyte").write_bytes(fashion_mnist.idx_bytes(part.images))
        (raw / f"{split}-labels-idx1-ubyte").write_bytes(fashion_mnist.idx_bytes(part.labels))


def import_torchvision() -> types.ModuleType:
    """Import torchvision; where its C++ part does not load, with empty schemas of two operators.

    torchvision's wheel may be built for another torch than the one installed. Its datasets and
    transforms work all the same, once ``torchvision::nms`` and ``torchvision::qnms`` are declared.
    """
    torch = importlib.import_module("torch")
    try:
        return importlib.import_module("torchvision")
    except RuntimeError as error:
        if "torchvision::nms" not in str(error):
            raise
    for name in [name for name in sys.modules if name.split(".")[0] == "torchvision"]:
        del sys.modules[name]
    library = torch.library.Library("torchvision", "DEF")
    for operator in ("nms", "qnms"):
        library.define(f"{operator}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    module = importlib.import_module("torchvision")
    module.__dict__["_schemas"] = library  # a Library that dies takes its operators along
    return module


def main() -> None:
    """Prepare the folder named on the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--data", type=Path, help="folder with the idx files of the test set")
    options = parser.parse_args()
    found = fashion_mnist.find_full(options.data) is not None or options.data is not None
    test = fashion_mnist.load_full(options.data) if found else fashion_mnist.load_subset()
    options.folder.mkdir(parents=True, exist_ok=True)
    prepare(options.folder, test)
    print(f"{options.folder}: {test.source}, and the parameters of both models")


if __name__ == "__main__":
    main()
