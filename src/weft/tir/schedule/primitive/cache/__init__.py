"""Primitives that put a copy of a buffer between blocks."""
