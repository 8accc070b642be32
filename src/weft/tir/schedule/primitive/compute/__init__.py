"""Primitives that move a block to where its results are used, or dissolve it there."""
