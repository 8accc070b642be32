"""Primitives on reductions: the init apart, partial results."""
