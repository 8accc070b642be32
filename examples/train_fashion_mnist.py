"""Train the two models of the course on FashionMNIST and store what weft ships under src/weft/data.

    python examples/train_fashion_mnist.py [--data DIR] [--out DIR] [--epochs 6]

It reads the real training set (60,000 images; Debian's ``dataset-fashion-mnist``, or ``--data``),
trains on the CPU with fixed seeds, rounds the parameters to float16, prints the accuracy of the
rounded parameters on the 10,000 test images, and writes the subset and both parameter files.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import torch
from torch import nn

from weft.data import fashion_mnist

CNN_KEYS = {
    "0.weight": "conv2d_weight",
    "0.bias": "conv2d_bias",
    "4.weight": "linear0_weight",
    "4.bias": "linear0_bias",
    "6.weight": "linear1_weight",
    "6.bias": "linear1_bias",
}
MLP_KEYS = {"1.weight": "w0", "1.bias": "b0", "3.weight": "w1", "3.bias": "b1"}


def make_mlp() -> nn.Sequential:
    """The perceptron of the course: 784-128-10 with a ReLU, unnormalised scores."""
    return nn.Sequential(nn.Flatten(), nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10))


def make_cnn() -> nn.Sequential:
    """The network of the assignment, without its final softmax (the loss contains it)."""
    return nn.Sequential(
        nn.Conv2d(1, 32, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(5408, 100), nn.ReLU(), nn.Linear(100, 10),
    )  # fmt: skip


def train(model: nn.Sequential, images: torch.Tensor, labels: torch.Tensor, epochs: int) -> None:
    """Fit ``model`` with Adam, a cosine learning rate and batches of 128, from a fixed seed."""
    generator = torch.Generator().manual_seed(0)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=1e-2)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs)
    for epoch in range(epochs):
        total = 0.0
        for chosen in torch.randperm(len(images), generator=generator).split(128):
            loss = nn.functional.cross_entropy(model(images[chosen]), labels[chosen])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += float(loss) * len(chosen)
        schedule.step()
        print(f"  epoch {epoch + 1}: loss {total / len(images):.4f}", flush=True)


def round_parameters(model: nn.Sequential, keys: dict[str, str]) -> dict[str, np.ndarray]:
    """Round the parameters to float16 in place and return them under the names of the course."""
    stored = {}
    for name, parameter in model.named_parameters():
        rounded = parameter.detach().to(torch.float16)
        parameter.data = rounded.to(torch.float32)
        stored[keys[name]] = rounded.numpy()
    return stored


def accuracy(model: nn.Sequential, images: torch.Tensor, labels: torch.Tensor) -> float:
    """The share of images whose highest score is their label."""
    with torch.no_grad():
        right = sum(
            int((model(batch).argmax(1) == wanted).sum())
            for batch, wanted in zip(images.split(500), labels.split(500), strict=True)
        )
    return right / len(images)


def as_tensors(data: fashion_mnist.LabelledImages) -> tuple[torch.Tensor, torch.Tensor]:
    """Images in [0, 1] and labels as torch's training wants them."""
    return torch.from_numpy(data.as_float()), torch.from_numpy(data.labels.astype(np.int64))


def main() -> None:
    """Train both models and write the files."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="folder with the four idx files")
    parser.add_argument("--out", type=Path, default=Path(fashion_mnist.__file__).parent)
    parser.add_argument("--epochs", type=int, default=6)
    args = parser.parse_args()
    test = fashion_mnist.load_full(args.data)
    train_images, train_labels = as_tensors(fashion_mnist.load_full(args.data, "train"))
    test_images, test_labels = as_tensors(test)
    subset = test.first(1000)
    np.savez_compressed(
        args.out / "fashion_mnist_test_1000.npz", images=subset.images, labels=subset.labels
    )
    for name, make, keys in (("mlp", make_mlp, MLP_KEYS), ("cnn", make_cnn, CNN_KEYS)):
        torch.manual_seed(0)
        model = make()
        print(f"{name}: {sum(p.numel() for p in model.parameters()):,} parameters")
        train(model, train_images, train_labels, args.epochs)
        stored = round_parameters(model, keys)
        share = accuracy(model, test_images, test_labels)
        print(f"{name}: {100 * share:.2f} % of {len(test_images):,} test images", flush=True)
        np.savez_compressed(args.out / f"fashion_mnist_{name}.npz", **stored)


if __name__ == "__main__":
    main()
