"""Random small programs, random moves and inlinings: each is refused or keeps the result.

The programs have what workloads of operators do not: loops over parts of domains, conditions,
instances that run twice, stores through maps.
"""

import random

import numpy as np
import pytest

from weft import script, tir
from weft.testing.schedules import assert_same_meaning, random_arguments
from weft.tir.interp import run
from weft.tir.schedule import tree
from weft.tir.schedule.errors import ScheduleFailure
from weft.tir.stmt import Block

pytestmark = pytest.mark.sampled(3)

PROGRAMS = 40


class Stage:
    """One block: what it loads of a source, its axes, and where it stores."""

    def __init__(self, rng, source, shape):
        rest = [f"v{k}" for k in range(1, len(shape))]
        self.rng, self.shape, self.terms, self.store = rng, list(shape), [], None
        self.value = self.load(source, "v0", *rest)
        first = shape[0]
        kind = rng.choice(
            ["plain", "halo", "window", "turn", "part", "pad", "wider", "sum", "flat"]
        )
        if kind == "halo" and first > 2:
            self.shape[0] -= 2
            self.value += " - " + self.load(source, "v0 + 2", *rest)
        elif kind == "window" and first > 2:
            self.shape[0], self.terms = first - 2, [3]
            self.value = self.load(source, f"v0 + v{len(shape)}", *rest)
        elif kind == "turn":
            self.value = self.load(source, f"{first - 1} - v0", *rest)
        elif kind == "part" and first > 2:
            self.shape[0] -= 1
            self.value = self.load(source, f"v0 + {rng.randint(0, 1)}", *rest)
        elif kind == "pad":
            self.shape[0] += 2
            inside = f"1 <= v0 and v0 < {first + 1}"
            self.value = f"T.if_then_else({inside}, {self.load(source, 'v0 - 1', *rest)}, 3)"
        elif kind == "wider":
            self.shape[0] *= 2
            self.value = self.load(source, "v0 // 2", *rest)
        elif kind == "sum" and len(shape) == 2:
            self.shape, self.terms = [first], [shape[1]]
        elif kind == "flat" and len(shape) == 2:
            self.store, self.axes = f"v0 * {shape[1]} + v1", list(shape)
            self.shape = [first * shape[1]]
        self.axes = self.axes if self.store else [*self.shape, *self.terms]
        self.store = self.store or ", ".join([f"v{k}" for k in range(len(self.shape))])

    def load(self, source, *indices):
        return f"{source}[{', '.join(indices)}]"

    def lines(self, name, target):
        """The block below its loops, as text."""
        loops, extents, values, conditions = [], [], [], []
        for axis, extent in enumerate(self.axes):
            odd = self.rng.random()
            value = f"i{axis}"
            if odd < 0.2 and extent > 1:
                factor = self.rng.randint(2, 3)
                loops += [f"i{axis}", f"j{axis}"]
                extents += [-(-extent // factor), factor]
                value = f"i{axis} * {factor} + j{axis}"
                conditions.append(f"{value} < {extent}")
            else:
                if odd < 0.24:
                    conditions.append(f"i{axis} {self.rng.choice(['>= 1', '% 2 == 0'])}")
                if odd > 0.97:
                    loops.append(f"again{axis}")
                    extents.append(2)
                loops.append(f"i{axis}")
                extents.append(extent - (0.24 < odd < 0.27))
            values.append(value)
        kinds = ["spatial"] * (len(self.axes) - len(self.terms)) + ["reduce"] * len(self.terms)
        made = [f"    for {', '.join(loops)} in T.grid({', '.join(map(str, extents))}):"]
        made.append(f"        with T.block({name!r}):")
        for axis, (kind, extent, value) in enumerate(zip(kinds, self.axes, values, strict=True)):
            made.append(f"            v{axis} = T.axis.{kind}({extent}, {value})")
        if conditions:
            made.append(f"            T.where({' and '.join(conditions)})")
        place = f"{target}[{self.store}]"
        if self.terms:
            made += ["            with T.init():", f"                {place} = 0"]
            return [*made, f"            {place} = {place} + {self.value}"]
        return [*made, f"            {place} = {self.value} * 2 + 1"]


def program(rng):
    """A chain of two to four blocks."""
    shape = [rng.randint(2, 6) for _ in range(rng.randint(1, 2))]
    given, source, body, head = shape, "A", [], []
    count = rng.randint(2, 4)
    for number in range(count):
        target = "Z" if number == count - 1 else f"B{number}"
        stage = Stage(rng, source, shape)
        body += stage.lines(f"S{number}", target)
        shape, source = stage.shape, target
        if target != "Z":
            head.append(f"    {target} = T.alloc_buffer({shape}, 'int32')")
    buffers = f"A: T.Buffer({given}, 'int32'), Z: T.Buffer({shape}, 'int32')"
    return script.from_source(
        "\n".join(["@T.prim_func", f"def main({buffers}):", *head, *body]), {"T": script.tir}
    )


def move(rng, sch):
    """One random call; a refusal raises ScheduleFailure."""
    found = [item for item in tree.all_references(sch.mod["main"].body) if isinstance(item, Block)]
    names = [block.name_hint for block in found[1:]]
    name, other = rng.choice(names), rng.choice(names)
    kind = rng.choice(
        ["compute_at", "reverse_compute_at", "compute_inline", "reverse_compute_inline"] * 2
        + ["split", "fuse", "reorder"]
    )
    loops = sch.get_loops(name)
    if kind.endswith("_at"):
        targets = sch.get_loops(other)
        if targets:
            options = {"preserve_unit_loops": rng.random() < 0.5, "index": rng.choice([-1, -2])}
            getattr(sch, kind)(name, rng.choice(targets), **options)
    elif kind.endswith("inline"):
        getattr(sch, kind)(name)
    elif kind == "split" and loops:
        sch.split(rng.choice(loops), [None, rng.randint(2, 4)])
    elif len(loops) > 1:
        first = rng.randrange(len(loops) - 1)
        pair = loops[first : first + 2]
        getattr(sch, kind)(*(pair if kind == "fuse" else reversed(pair)))


def result(func, given):
    copies = [np.array(item) for item in given]
    run(func, *copies)
    return copies[1]


@pytest.mark.parametrize("seed", range(4))
def test_each_move_keeps_the_result(seed):
    made = longest = 0
    for number in range(PROGRAMS):
        rng = random.Random(seed * 1000 + number)
        func = program(rng)
        given = random_arguments(func, seed=number)
        expected = result(func, given)
        sch = tir.Schedule(func)
        for _ in range(8):
            before = sch.mod
            try:
                move(rng, sch)
            except ScheduleFailure as refusal:
                longest = max(longest, len(str(refusal).splitlines()))
            if sch.mod is not before:
                made += 1
                np.testing.assert_array_equal(
                    result(sch.mod["main"], given), expected, err_msg=f"{number}: {sch.trace}"
                )
        if number % 20 == 0 and ".where" not in func.script():
            assert_same_meaning(func, sch.mod)
    assert made > PROGRAMS
    assert longest <= 10
