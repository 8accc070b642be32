"""Passes from graph to graph: clean-up, folding, and fewer or cheaper operators."""
