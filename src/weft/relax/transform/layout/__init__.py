"""Passes that choose layouts and algorithms: blocks of channels, Winograd, products of bytes."""
