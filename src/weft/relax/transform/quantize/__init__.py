"""Quantisation of layers after training: which layers, with which numbers, and how far they err."""
