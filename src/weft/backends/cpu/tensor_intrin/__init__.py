"""Tensor intrinsics of CPUs, one file for each family of processors."""
