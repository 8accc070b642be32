"""Data that ships with weft: a real test set and trained parameters for the demo and the tests.

It stands beside the compiler, not in its flow: numpy only, and no room of the compiler imports it.
``fashion_mnist`` holds the loaders; ``examples/train_fashion_mnist.py`` made the ``.npz`` files.
"""
