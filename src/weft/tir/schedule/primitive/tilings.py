"""Lists of factors with a given product: how many there are, and one of them at random."""

from __future__ import annotations

import functools
import math

from weft.tir.schedule.session import Session

SMALL = 1 << 20
"""Up to this many choices one random number is enough; for more, three are combined."""


@functools.lru_cache(maxsize=4096)
def prime_factors(number: int) -> tuple[tuple[int, int], ...]:
    """The primes of a number with their exponents, smallest first."""
    factors = []
    prime = 2
    while prime * prime <= number:
        power = 0
        while number % prime == 0:
            number //= prime
            power += 1
        if power:
            factors.append((prime, power))
        prime += 1 if prime == 2 else 2
    if number > 1:
        factors.append((number, 1))
    return tuple(factors)


@functools.lru_cache(maxsize=1024)
def divisors(number: int) -> tuple[int, ...]:
    """The divisors of a number, in order."""
    products = [1]
    for prime, power in prime_factors(number):
        products = [item * prime**exponent for item in products for exponent in range(power + 1)]
    return tuple(sorted(products))


def ways(extent: int, n: int) -> int:
    """How many lists of ``n`` factors have the product ``extent``."""
    if n == 0:
        return int(extent == 1)
    return math.prod([math.comb(power + n - 1, n - 1) for _, power in prime_factors(extent)])


def tiling(session: Session, extent: int, n: int) -> list[int]:
    """One of the lists of ``n`` factors of ``extent``, each as likely as any other."""
    tiles = [1] * n
    for prime, power in prime_factors(extent):
        # Walls between the n tiles, placed among the ``power`` equal factors.
        walls = sorted(_subset(session, power + n - 1, n - 1))
        for tile, (low, high) in enumerate(zip([-1, *walls], [*walls, power + n - 1], strict=True)):
            tiles[tile] *= prime ** (high - low - 1)
    return tiles


def _subset(session: Session, count: int, size: int) -> set[int]:
    """``size`` different numbers below ``count`` (Floyd's algorithm)."""
    chosen: set[int] = set()
    for top in range(count - size, count):
        item = below(session, top + 1)
        chosen.add(top if item in chosen else item)
    return chosen


def divisor_by_weight(session: Session, weights: dict[int, int]) -> int:
    """One of the keys, each as likely as its weight says."""
    point = below(session, sum(weights.values()))
    for divisor, weight in weights.items():
        if point < weight:
            return divisor
        point -= weight
    raise AssertionError("a random number is not below its bound")


def below(session: Session, count: int) -> int:
    """A random number from 0 to ``count`` - 1."""
    if count <= 1:
        return 0
    drawn = session._next_random()
    if count >= SMALL:
        for _ in range(2):
            drawn = (drawn << 31) | session._next_random()
    return drawn % count
