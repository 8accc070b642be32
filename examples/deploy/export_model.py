"""Deployment without Python: a network becomes a library, a header, and a few images to try.

    python examples/deploy/export_model.py build
    cc -O2 -Ibuild examples/deploy/classify.c build/fashion.so -o build/classify
    build/classify build/image_0.pgm

The network is the course's convolutional one with the parameters that ship with weft: convolution,
ReLU, maximum, two dense layers, softmax. ``fashion.weft`` is the same model for
``weft.runtime.load``.
"""

from __future__ import annotations

import sys
from pathlib import Path

import weft
from weft import relax
from weft.data import fashion_mnist


def network() -> weft.IRModule:
    """(1, 1, 28, 28) float32 in [0, 1] -> (1, 10) float32, the probabilities of the classes."""
    w = {name: relax.const(array) for name, array in fashion_mnist.load_cnn_parameters().items()}
    image = relax.Var("image", relax.TensorStructInfo((1, 1, 28, 28), "float32"))
    builder = relax.BlockBuilder()
    op = relax.op
    with builder.function("main", [image]):
        with builder.dataflow():
            x = builder.emit(op.nn.conv2d(image, w["conv2d_weight"]))
            x = builder.emit(op.add(x, op.reshape(w["conv2d_bias"], (1, 32, 1, 1))))
            x = builder.emit(op.nn.relu(x))
            x = builder.emit(op.nn.max_pool2d(x, (2, 2), strides=(2, 2)))
            x = builder.emit(op.reshape(x, (1, 5408)))
            x = builder.emit(op.matmul(x, op.permute_dims(w["linear0_weight"])))
            x = builder.emit(op.nn.relu(op.add(x, w["linear0_bias"])))
            x = builder.emit(op.matmul(x, op.permute_dims(w["linear1_weight"])))
            x = builder.emit(op.add(x, w["linear1_bias"]))
            result = builder.emit_output(op.nn.softmax(x, axis=-1))
        builder.emit_func_output(result)
    return builder.get()


def main(folder: Path, count: int = 8) -> None:
    """Write the model in both forms, and the first images of the test set as PGM files."""
    folder.mkdir(parents=True, exist_ok=True)
    model = weft.compile(network())
    model.export_library(folder / "fashion.so")
    model.save(folder / "fashion.weft")
    data = fashion_mnist.load_subset().first(count)
    for number, image in enumerate(data.images):
        (folder / f"image_{number}.pgm").write_bytes(b"P5\n28 28\n255\n" + image.tobytes())
    names = [fashion_mnist.CLASS_NAMES[label] for label in data.labels]
    print(f"wrote {folder}/fashion.so, fashion.h, fashion.weft and {len(data)} images:")
    print(", ".join(names))


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "build"))
