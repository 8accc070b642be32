"""Chains of facts about differences: proved is what shortest paths say, no more and no less."""

from __future__ import annotations

import itertools
import random
from contextlib import ExitStack

from weft.arith.analyzer import Analyzer
from weft.tir.expr import Var

NAMES = [Var(name, "int32") for name in "abcde"]
FAR = 1 << 20


def closure(facts):
    """(x, y) -> the least bound of x - y."""
    best = {pair: (0 if pair[0] is pair[1] else FAR) for pair in itertools.product(NAMES, NAMES)}
    for x, y, width in facts:
        best[x, y] = min(best[x, y], width)
    for middle, x, y in itertools.product(NAMES, NAMES, NAMES):
        best[x, y] = min(best[x, y], best[x, middle] + best[middle, y])
    return best


def test_chains_prove_what_shortest_paths_say():
    rng = random.Random(4)
    tried = 0
    while tried < 40:
        facts = [(*rng.sample(NAMES, 2), rng.randint(-4, 4)) for _ in range(rng.randint(2, 6))]
        best = closure(facts)
        if any(best[name, name] < 0 for name in NAMES):
            continue  # nothing satisfies these
        tried += 1
        analyzer = Analyzer()
        with ExitStack() as scopes:
            for x, y, width in facts:
                scopes.enter_context(analyzer.constraint_scope(x <= y + width))
            for x, y in itertools.permutations(NAMES, 2):
                if best[x, y] < FAR // 2:
                    assert analyzer.can_prove(x <= y + best[x, y]), (facts, x, y)
                    assert not analyzer.can_prove(x < y + best[x, y]), (facts, x, y)
                else:
                    assert not analyzer.can_prove(x < y + 100)


def test_a_chain_of_three_comparisons():
    a, b, c, d, _ = NAMES
    analyzer = Analyzer()
    with (
        analyzer.constraint_scope(a < b),
        analyzer.constraint_scope(b < c),
        analyzer.constraint_scope(c <= d),
    ):
        assert analyzer.can_prove(a + 2 <= d)
        assert not analyzer.can_prove(a + 3 <= d)


def test_what_is_known_is_no_new_fact():
    """A kernel of many arrays says of the same extent once for each that it is not negative.

    Every fact is looked at for each comparison, beside each other one.
    """
    a, b, c, _, _ = NAMES
    analyzer = Analyzer()
    with ExitStack() as scopes:
        for width in (5, 3, 4):
            scopes.enter_context(analyzer.constraint_scope(a * c <= b + width))
            scopes.enter_context(analyzer.constraint_scope(b - a * c >= -width))
        assert len(analyzer._differences.facts) == 1
        with analyzer.constraint_scope(a * c < b):
            assert len(analyzer._differences.facts) == 1
            assert analyzer.can_prove(a * c + 1 <= b)
        assert analyzer.can_prove(a * c - 3 <= b)
        assert not analyzer.can_prove(a * c - 2 <= b)
    assert not analyzer._differences.facts
