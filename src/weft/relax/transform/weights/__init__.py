"""Passes over weights: computing with them ahead of time, bundling them, loading them lazily."""
