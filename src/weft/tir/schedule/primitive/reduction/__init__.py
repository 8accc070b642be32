"""Primitives on reductions: decompose_reduction, rfactor."""
