"""Primitives that move a block to where its results are used, or inline it there."""
