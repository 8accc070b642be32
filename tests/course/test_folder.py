"""The working folder has what the texts open, in the form in which they open it."""

from __future__ import annotations

import pickle
from pathlib import Path


def test_parameters_are_pickled_dicts_of_arrays(course_folder):
    perceptron = pickle.loads(Path("fasionmnist_mlp_params.pkl").read_bytes())
    assert [p.shape for p in perceptron.values()] == [(128, 784), (128,), (10, 128), (10,)]
    network = pickle.loads(Path("fasionmnist_mlp_assignment_params.pkl").read_bytes())
    assert network["conv2d_weight"].shape == (32, 1, 3, 3)


def test_torchvision_reads_the_images_without_a_download(course_folder):
    import torchvision

    data = torchvision.datasets.FashionMNIST(
        root="data", train=False, download=True, transform=torchvision.transforms.ToTensor()
    )
    image, label = data[0]
    assert image.shape == (1, 28, 28)
    assert data.classes[label] == "Ankle boot"
