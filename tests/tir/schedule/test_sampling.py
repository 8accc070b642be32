"""Sampling: uniform, reproducible, recorded, checked."""

import math
from collections import Counter
from itertools import product

import numpy as np
import pytest

import weft
from tests.lib.programs import elementwise_chain, matmul, symbolic_fill
from weft import tir
from weft.script import tir as T
from weft.testing.schedules import assert_same_meaning
from weft.tir.schedule import Trace
from weft.tir.schedule.primitive import sampling, tilings


@T.prim_func
def fill(a: T.handle) -> None:
    A = T.match_buffer(a, (24, 257, 1470, 1))
    for i, j, k, u in T.grid(24, 257, 1470, 1):
        with T.block("A"):
            vi, vj, vk, vu = T.axis.remap("SSSS", [i, j, k, u])
            A[vi, vj, vk, vu] = T.float32(1)


def numbers(sch, variables):
    return [sch.get(variable) for variable in variables]


def deviation(counts, expected, drawn):
    """How many standard deviations the worst count is off."""
    assert set(counts) <= set(expected)
    worst = 0.0
    for item, chance in expected.items():
        spread = math.sqrt(drawn * chance * (1 - chance))
        worst = max(worst, abs(counts[item] - drawn * chance) / spread)
    return worst


def test_categorical_follows_the_probabilities():
    sch = tir.Schedule(matmul, seed=42)
    expected = {5: 0.15, 2: 0.55, 7: 0.05, 1: 0.25}
    drawn = [
        sch.get(sch.sample_categorical(list(expected), list(expected.values()))) for _ in range(600)
    ]
    assert deviation(Counter(drawn), expected, 600) < 4


def test_a_probability_of_zero_is_never_drawn():
    sch = tir.Schedule(matmul, seed=3)
    drawn = {sch.get(sch.sample_categorical([1, 2, 3], [0, 2.0, 0])) for _ in range(50)}
    assert drawn == {2}


def test_categorical_decision():
    sch = tir.Schedule(matmul)
    assert sch.get(sch.sample_categorical([4, 8], [0.5, 0.5], decision=1)) == 8
    assert "decision=1" in sch.trace.as_python()[0]
    assert sch.trace.decisions[sch.trace.insts[0]] == 1


@pytest.mark.parametrize(("extent", "n", "limit"), [(12, 3, -1), (8, 2, 4), (24, 3, 4), (1, 4, -1)])
def test_tilings_are_uniform(extent, n, limit):
    @T.prim_func
    def func(A: T.Buffer((extent,), "float32")):
        for i in range(extent):
            with T.block("A"):
                vi = T.axis.spatial(extent, i)
                A[vi] = T.float32(1)

    every = [
        item
        for item in product(range(1, extent + 1), repeat=n)
        if math.prod(item) == extent and (limit == -1 or item[-1] <= limit)
    ]
    sch = tir.Schedule(func, seed=7)
    loop = sch.get_loops("A")[0]
    drawn = 40 * len(every)
    found = Counter(
        tuple(numbers(sch, sch.sample_perfect_tile(loop, n, limit))) for _ in range(drawn)
    )
    sch.trace.insts.clear()  # thousands of draws need no replay
    if len(every) == 1:
        assert set(found) == set(every)
    else:
        assert deviation(found, dict.fromkeys(every, 1 / len(every)), drawn) < 4.5


@pytest.mark.parametrize("place", [0, 1, 2, 3])
def test_partitioned_tiles_are_uniform(place):
    sch = tir.Schedule(fill, seed=11)
    loop = sch.get_loops("A")[0]
    every = [
        item for item in product(range(1, 25), repeat=3)
        if math.prod(item) == 24 and (place == 3 or math.prod(item[place:]) % 6 == 0)
    ]  # fmt: skip
    factor = 1 if place == 3 else 6
    drawn = 30 * len(every)
    found = Counter(
        tuple(numbers(sch, sch.sample_partitioned_tile(loop, 3, place, factor)))
        for _ in range(drawn)
    )
    sch.trace.insts.clear()
    assert deviation(found, dict.fromkeys(every, 1 / len(every)), drawn) < 4.5


@pytest.mark.parametrize("which", [0, 1, 2, 3])
def test_tiles_split_their_loop(which):
    sch = tir.Schedule(fill)
    loop = sch.get_loops("A")[which]
    tiles = sch.sample_perfect_tile(loop, 4, 64)
    assert math.prod(numbers(sch, tiles)) == sch.get(loop).extent.value
    sch.split(loop, tiles)
    assert "T.where" not in sch.mod.script()


def test_a_symbolic_loop_has_one_tiling():
    sch = tir.Schedule(symbolic_fill)
    loop = sch.get_loops("A")[0]
    tiles = sch.sample_perfect_tile(loop, 3)
    assert tiles[0] is None
    assert numbers(sch, tiles[1:]) == [1, 1]
    sch.split(loop, tiles)
    assert_same_meaning(symbolic_fill, sch.mod, {"n": 5})


def test_decisions_are_made_to_fit():
    sch = tir.Schedule(fill)
    loop = sch.get_loops("A")[0]
    assert numbers(sch, sch.sample_perfect_tile(loop, 3, decision=[9, 2, 4])) == [3, 2, 4]
    assert numbers(sch, sch.sample_perfect_tile(loop, 3, decision=[1, 1, 5])) == [1, 1, 24]
    given = [12, 2, 1]
    assert numbers(sch, sch.sample_partitioned_tile(loop, 3, 1, 4, decision=given)) == [6, 4, 1]
    given = [2, 3, 4]
    assert numbers(sch, sch.sample_partitioned_tile(loop, 3, 1, 4, decision=given)) == given


def test_a_decision_that_is_not_drawn_keeps_the_inner_product():
    """The outer factor follows from the others, so the product of the inner ones is looked at."""
    sch = tir.Schedule(fill)
    loop = sch.get_loops("A")[0]
    tiles = numbers(sch, sch.sample_partitioned_tile(loop, 2, 0, 8, decision=[1, 5]))
    assert math.prod(tiles) == 24


def test_seeds_repeat_and_forks_differ():
    def draws(sch):
        loop = sch.get_loops("A")[2]
        return [tuple(numbers(sch, sch.sample_perfect_tile(loop, 4))) for _ in range(8)]

    first, second = tir.Schedule(fill, seed=5), tir.Schedule(fill, seed=5)
    assert draws(first) == draws(second)
    copy = first.copy()
    assert draws(copy) != draws(first)
    second.seed(first.fork_seed())
    assert draws(second) != draws(first)


def test_numbers_are_valid_in_copies():
    sch = tir.Schedule(fill, seed=1)
    loop = sch.get_loops("A")[0]
    tiles = sch.sample_perfect_tile(loop, 3)
    copy = sch.copy()
    assert numbers(copy, tiles) == numbers(sch, tiles)
    copy.split(loop, tiles)
    assert len(sch.get_loops("A")) == 4


def test_locations_of_a_producer():
    sch = tir.Schedule(elementwise_chain, seed=1)
    seen = set()
    for _ in range(40):
        sch.sample_compute_location("B")
        seen.add(sch.trace.decisions[sch.trace.insts[-1]])
    assert seen == {-2, -1, 0, 1}
    assert sch.mod is not None
    weft.ir.assert_structural_equal(sch.mod["main"].body, elementwise_chain.body)


@pytest.mark.parametrize(
    ("decision", "made"), [(-2, -2), (-1, -1), (0, 0), (1, 1), (7, 1), (-9, -1)]
)
def test_locations_are_taken(decision, made):
    sch = tir.Schedule(elementwise_chain)
    block = sch.get_block("B")
    place = sch.sample_compute_location(block, decision)
    assert sch.trace.decisions[sch.trace.insts[-1]] == made
    sch.compute_at(block, place)
    names = [inst.kind.name for inst in sch.trace.insts]
    assert names[-1] == "ComputeAt"
    assert_same_meaning(elementwise_chain, sch.mod)


def test_an_output_stays_where_it_is():
    sch = tir.Schedule(elementwise_chain)
    for _ in range(5):
        sch.sample_compute_location("D")
    assert set(sch.trace.decisions.values()) == {-1}


def test_a_place_that_is_no_loop_is_refused_elsewhere():
    sch = tir.Schedule(elementwise_chain)
    place = sch.sample_compute_location("B", -1)
    with pytest.raises(weft.TVMError, match="sch.split: loop: sample_compute_location chose no"):
        sch.split(place, [None, 2])


def test_locations_leave_out_loops_of_a_reduction():
    @T.prim_func
    def func(A: T.Buffer((8, 8), "float32"), C: T.Buffer((8, 8), "float32")):
        B = T.alloc_buffer((8, 8))
        for i, j in T.grid(8, 8):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] + T.float32(1)
        for i, _u, j, k in T.grid(8, 1, 8, 8):
            with T.block("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C[vi, vj] = T.float32(0)
                C[vi, vj] = C[vi, vj] + B[vi, vk]

    sch = tir.Schedule(func, seed=2)
    for _ in range(40):
        sch.sample_compute_location("B")
    assert set(sch.trace.decisions.values()) == {-2, -1, 0, 2}


def test_traces_keep_decisions():
    sch = tir.Schedule(matmul, seed=9)
    i, j, _ = sch.get_loops("C")
    sch.split(i, sch.sample_perfect_tile(i, 2))
    sch.annotate(j, "unroll", sch.sample_categorical([1, 2, 3], [1.0, 1.0, 1.0]))
    sampled = sch.trace.insts[2]
    other = sch.trace.with_decision(sampled, [16, 2], True)
    made = tir.Schedule(matmul)
    other.apply_to_schedule(made, True)
    assert [made.get(loop).extent.value for loop in made.get_loops("C")][:2] == [16, 2]
    again = tir.Schedule(matmul)
    Trace.apply_json_to_schedule(sch.trace.as_json(), again)
    weft.ir.assert_structural_equal(again.mod, sch.mod)


def test_unused_draws_are_simplified_away():
    sch = tir.Schedule(matmul)
    loops = sch.get_loops("C")
    sch.sample_perfect_tile(loops[0], 3)
    used = sch.sample_perfect_tile(loops[1], 2)
    sch.split(loops[1], used)
    names = [inst.kind.name for inst in sch.trace.simplified(True).insts]
    assert names == ["GetBlock", "GetLoops", "SamplePerfectTile", "Split"]


@pytest.mark.parametrize("number", [1, 2, 97, 1470, 65536, 2**31 - 1, 46337**2, 46337 * 46327])
def test_prime_factors(number):
    factors = tilings.prime_factors(number)
    assert math.prod(prime**power for prime, power in factors) == number
    if number < 70000:
        assert tilings.divisors(number) == tuple(
            item for item in range(1, number + 1) if number % item == 0
        )


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda s, i: s.sample_categorical([1, 2], [1.0]),
            sampling.CandidateError,
            "2 cand.* 1 pr",
        ),
        (lambda s, i: s.sample_categorical([], []), sampling.CandidateError, "0 candidates"),
        (lambda s, i: s.sample_categorical([1, 2], [0, 0]), sampling.CandidateError, "not all 0"),
        (lambda s, i: s.sample_categorical([1], [-1]), sampling.CandidateError, r"got \[-1"),
        (lambda s, i: s.sample_categorical([1], [math.nan]), sampling.CandidateError, "nan"),
        (lambda s, i: s.sample_categorical(["a"], [1]), weft.TVMError, "expected ints, got str"),
        (lambda s, i: s.sample_categorical([1], [1], 1), sampling.DecisionError, "1 .* 1 candid"),
        (lambda s, i: s.sample_categorical([1], [1], -1), sampling.DecisionError, "decision -1"),
        (lambda s, i: s.sample_perfect_tile(i, 0), sampling.TileCountError, "n = 0"),
        (lambda s, i: s.sample_perfect_tile(i, 1), sampling.TileCountError, "two tiles"),
        (lambda s, i: s.sample_perfect_tile(i, 2, 0), sampling.TileCountError, "limit of at"),
        (
            lambda s, i: s.sample_perfect_tile(i, 2, decision=[1, 2, 3]),
            sampling.DecisionError,
            r"2 tiles of at least 1, got \[1, 2, 3\]",
        ),
        (
            lambda s, i: s.sample_perfect_tile(i, 2, decision=[1, 0]),
            sampling.DecisionError,
            r"got \[1, 0\]",
        ),
        (
            lambda s, i: s.sample_partitioned_tile(i, 2, 3),
            sampling.TileCountError,
            "partition_pos 3",
        ),
        (
            lambda s, i: s.sample_partitioned_tile(i, 2, 2, 2),
            sampling.TileCountError,
            "partition_pos 2",
        ),
        (
            lambda s, i: s.sample_partitioned_tile(i, 2, 1, 5),
            sampling.TileCountError,
            "innerpart_factor 5 does not divide 32",
        ),
        (lambda s, i: s.sample_perfect_tile("i", 2), weft.TVMError, "expected a LoopRV, got str"),
        (lambda s, i: s.sample_compute_location("x"), weft.TVMError, "no block 'x'"),
        (
            lambda s, i: s.sample_compute_location("C", "a"),
            weft.TVMError,
            "decision: expected ints",
        ),
    ],
)
def test_refusals(call, error, message):
    sch = tir.Schedule(matmul)
    with pytest.raises(error, match=message) as raised:
        call(sch, sch.get_loops("C")[0])
    assert len(str(raised.value).splitlines()) <= 10


def test_a_symbolic_loop_has_no_partitioned_tiling():
    sch = tir.Schedule(symbolic_fill)
    with pytest.raises(sampling.TileCountError, match="extent n, which is not constant"):
        sch.sample_partitioned_tile(sch.get_loops("A")[0], 2, 1, 4)


def test_numpy_candidates():
    sch = tir.Schedule(matmul)
    drawn = sch.sample_categorical(np.array([4, 4]), np.array([0.5, 0.5]))
    assert sch.get(drawn) == 4
