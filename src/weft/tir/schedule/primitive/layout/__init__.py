"""Primitives that change how a buffer, or a block over it, is laid out."""
