"""Numpy references of the operators of neural networks."""
