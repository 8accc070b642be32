"""Passes over weights: lifted out of the function, bundled, read one at a time."""
