"""Primitives on blocks: finding them, dividing them, computing them with a tensor intrinsic."""
