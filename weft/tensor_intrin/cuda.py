"""Fragments of tensor cores."""
