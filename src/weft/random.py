"""``weft.random``: the seed of the random numbers that programs draw."""

from weft.runtime.random import seed

__all__ = ["seed"]
