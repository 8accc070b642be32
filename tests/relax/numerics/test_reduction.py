"""Reductions, scans and index reductions against numpy, through relax.build."""

import math
from functools import partial

import numpy as np
import pytest

from tests.lib.operator_cases import SAMPLED, Case, Table, t
from tests.lib.operator_cases import row as straight
from weft.relax.op.definition import FUNCTIONS as F

INF, NAN = math.inf, math.nan
N = ({"n": 1}, {"n": 4}, {"n": 17})
EMPTY = ({"n": 0}, *N)
FLOATS = {
    "sum": np.sum,
    "mean": np.mean,
    "max": np.max,
    "min": np.min,
    "prod": np.prod,
    "variance": np.var,
    "std": np.std,
}
LOW = {"max": -INF, "min": INF}


def near_one(generator, shape):
    return generator.uniform(0.7, 1.3, shape)


def far(generator, shape):
    return generator.standard_normal(shape) + 1000.0


def farther(generator, shape):
    return generator.standard_normal(shape) + 30000.0


def tenths(generator, shape):
    return np.full(shape, 1000.1)


def near(generator, shape):
    return generator.standard_normal(shape) + 3.0


def reduced(reference, **attrs):
    def run(x):
        with np.errstate(all="ignore"):
            return reference(x, **attrs)

    return run


def row(name, given, reference, sizes=({},), note="", **attrs):
    made = {**attrs, "axis": list(attrs["axis"])} if isinstance(attrs.get("axis"), tuple) else attrs
    return Case(
        name, lambda x: F[name](x, **made), given, reduced(reference, **attrs), sizes, note=note
    )


def float_reductions():
    for name, reference in FLOATS.items():
        fill = near_one if name == "prod" else None
        initial = {"initial": LOW[name]} if name in LOW else {}

        def wide(x, axis=None, keepdims=False, reference=reference, initial=initial):
            return reference(x, axis=axis, keepdims=keepdims, **initial)

        yield row(name, [t(3, "n", 5, fill=fill)], wide, EMPTY[1:], axis=-2)
        yield row(name, [t(3, "n", 5, fill=fill)], wide, N, "keepdims", axis=(0, -1), keepdims=True)
        yield row(name, [t("n", 2, fill=fill)], wide, N, "all")
        yield row(name, [t(dtype="float64", fill=fill)], wide)
        yield row(name, [t(1, 1, 7, fill=fill)], wide, axis=(0, 1))
        yield row(name, [t(4, 9, dtype="float64", fill=fill)], wide, axis=1)
        yield row(
            name,
            [t(2, 3, dtype="float32", fill=[1.0, NAN, 2.0, INF, 1.0, 1.0])],
            wide,
            note="special",
            axis=1,
        )
        yield row(name, [t(0, 3, fill=fill)], wide, axis=1, note="no row")
        if name not in ("mean", "variance", "std"):
            yield row(name, [t(3, "n", fill=fill)], wide, EMPTY, "empty", axis=1)
            yield row(name, [t("n", 3, fill=fill)], wide, EMPTY, "empty", axis=0)
            yield row(
                name,
                [t("n", "m", fill=fill)],
                wide,
                ({"n": 0, "m": 2}, {"n": 2, "m": 0}),
                "empty all",
            )
            yield row(name, [t(2, 0, fill=fill)], wide, axis=1, note="static empty")
        else:
            yield row(name, [t(3, 5, dtype="float32", fill=far)], wide, axis=1, note="far")
            yield row(
                name, [t(2, 1000, dtype="float32", fill=farther)], wide, axis=1, note="farther"
            )
            yield row(name, [t(2, 1000, dtype="float16", fill=near)], wide, axis=1, note="long")
            yield row(name, [t(2, "n", 3, fill=fill)], wide, N, axis=(1, -1), keepdims=True)
    for name in ("max", "min"):
        yield row(name, [t(2, 3, fill=[-INF])], FLOATS[name], axis=1, note="-inf")
        yield row(name, [t(2, 3, fill=[INF])], FLOATS[name], axis=1, note="inf")
        yield row(name, [t(2, 5, dtype="float16")], FLOATS[name], axis=1)
        yield row(name, [t(2, 5, dtype="bfloat16")], FLOATS[name], axis=0)
    for name in ("sum", "mean"):
        yield row(name, [t(100_000, fill=tenths)], FLOATS[name], note="many")
        yield row(name, [t("n", 2, fill=farther)], FLOATS[name], ({"n": 100_000},), "many", axis=0)
        yield row(name, [t(50_000, dtype="float16", fill=near_one)], FLOATS[name], note="many")
    for shape in ((0, 3), (3, 0)):
        yield Case("collapse_sum_to", lambda x, s=shape: F["collapse_sum_to"](x, (s[0], 1)),
                   [t(*shape)], lambda x: x.sum(1, keepdims=True), note="empty")  # fmt: skip
    yield Case("collapse_sum_to", lambda x: F["collapse_sum_to"](x, (1, 2)),
               [t("n", 2, fill=farther)], lambda x: x.sum(0, keepdims=True), ({"n": 100_000},),
               note="many")  # fmt: skip
    yield row("sum", [t(2, 5, dtype="float16")], np.sum, axis=1)
    yield row("mean", [t(2, 4, dtype="float16")], np.mean, axis=1)


def int_reductions():
    for kind in ("int32", "int64", "int8", "uint8"):
        low, high = np.iinfo(kind).min, np.iinfo(kind).max
        for name, reference in {
            "sum": np.sum,
            "max": np.max,
            "min": np.min,
            "prod": np.prod,
        }.items():

            def typed(x, axis=None, reference=reference, name=name, kind=kind):
                extra = {"dtype": kind} if name in ("sum", "prod") else {}
                return reference(x, axis=axis, **extra)

            yield row(name, [t("n", 3, dtype=kind)], typed, N, axis=-1)
            yield row(
                name,
                [t(2, 3, dtype=kind, fill=[low, high, 1, low, low, low])],
                typed,
                note="extreme",
                axis=1,
            )
    yield row("max", [t(4, 3, dtype="bool")], np.max, axis=1)
    yield row("min", [t(4, 3, dtype="bool")], np.min, axis=1)


def indices():
    for name, reference in {"argmax": np.argmax, "argmin": np.argmin}.items():
        for axis in (0, -1, None):
            yield row(name, [t("n", 6)], reference, N, axis=axis, note=f"axis={axis}")
        yield row(name, [t(3, "n", 2)], reference, N, axis=1, keepdims=True)
        yield row(name, [t(2, 4, fill=[-INF])], reference, axis=1, note="-inf")
        yield row(name, [t(2, 4, fill=[INF])], reference, axis=1, note="inf")
        yield row(
            name,
            [t(3, 4, fill=[1.0, NAN, 2.0, NAN, -INF, 3.0, INF, 0.0, NAN])],
            reference,
            axis=1,
            note="nan",
        )
        yield row(name, [t(3, 4, fill=[2.0, 2.0, 1.0, 1.0])], reference, axis=1, note="ties")
        yield row(name, [t(dtype="float32")], reference)
        yield row(name, [t(0, 3)], reference, axis=1)
        for kind in ("int32", "int64", "int8", "uint8"):
            ends = [np.iinfo(kind).min, np.iinfo(kind).max]
            yield row(name, [t(3, 4, dtype=kind)], reference, axis=1)
            for end in ends:
                yield row(name, [t(2, 3, dtype=kind, fill=[end])], reference, axis=1, note=f"{end}")
        yield row(name, [t(3, 4, dtype="float16")], reference, axis=0)
        yield row(name, [t(5, dtype="float64")], reference, axis=0)


def scan(reference, axis=None, exclusive=False, dtype=None):
    start = 0 if reference is np.cumsum else 1

    def run(x):
        data, along = (x.reshape(-1), 0) if axis is None else (x, axis)
        made = reference(data, axis=along, dtype=dtype or x.dtype)
        if exclusive and data.shape[along]:
            made = np.roll(made, 1, along)
            np.moveaxis(made, along, 0)[0] = start
        return made

    return run


def scans():
    for name, reference in {"cumsum": np.cumsum, "cumprod": np.cumprod}.items():
        make = F[name]
        for axis in (0, -1, None):
            for exclusive in (False, True):
                yield Case(
                    name,
                    lambda x, m=make, a=axis, e=exclusive: m(x, axis=a, exclusive=e),
                    [t("n", 5, fill=near_one)],
                    scan(reference, axis, exclusive),
                    EMPTY,
                    note=f"{axis},{exclusive}",
                )
        yield Case(
            name, lambda x, m=make: m(x, axis=1), [t(2, 3, dtype="int32")], scan(reference, 1)
        )
        yield Case(
            name,
            lambda x, m=make: m(x, axis=0, dtype="int64"),
            [t(6, dtype="int32", fill=[100000])],
            scan(reference, 0, False, "int64"),
            note="int64",
        )
        yield Case(
            name, lambda x, m=make: m(x, axis=0), [t(1, dtype="float64")], scan(reference, 0)
        )
        yield Case(
            name,
            lambda x, m=make: m(x, axis=0),
            [t(6, fill=[1.0, INF, 2.0, NAN, 1.0, 0.0])],
            reduced(scan(reference, 0)),
            note="special",
        )


def running():
    """logcumsumexp, cummax and cummin: equal elements, NaN, nothing."""
    sizes = ({"n": 0}, *N)
    for axis in (0, -1):

        def summed(x, axis=axis):
            return np.logaddexp.accumulate(x, axis)

        given = [t("n", 3)]
        yield straight("logcumsumexp", given, summed, sizes=sizes, note=f"{axis}", axis=axis)
    for dtype in ("float64", "float16"):
        yield straight("logcumsumexp", [t(2, 5, dtype=dtype)], partial(summed, axis=1))
    far = t(4, fill=[-INF, 1000.0, 1000.0, -1000.0])
    yield straight("logcumsumexp", [far], np.logaddexp.accumulate, note="far apart")
    for name, function in (("cummax", np.maximum), ("cummin", np.minimum)):

        def extremes(x, axis, function=function):
            values = function.accumulate(x, axis)
            index = np.indices(x.shape)[axis]
            here = (x == values) | (np.isnan(x) & np.isnan(values))
            return values, np.maximum.accumulate(np.where(here, index, 0), axis)

        for dtype in ("float32", "int32", "uint8"):
            ties = t("n", 3, dtype=dtype, fill=[2, 1, 2, 3, 1])
            for axis in (0, 1):
                both = partial(extremes, axis=axis)
                yield straight(name, [ties], both, sizes=sizes, note=f"{axis}", axis=axis)
        odd = t(6, fill=[0.0, INF, NAN, 1.0, NAN, -INF])
        yield straight(name, [odd], partial(extremes, axis=0), note="special")


FLOAT, INT = Table(list(float_reductions())), Table(list(int_reductions()))
INDEX, SCAN = Table(list(indices())), Table([*scans(), *running()])


@SAMPLED
@pytest.mark.parametrize("case", FLOAT.cases, ids=str)
def test_float_reduction(case):
    FLOAT.check(case)


@SAMPLED
@pytest.mark.parametrize("case", INT.cases, ids=str)
def test_integer_reduction(case):
    INT.check(case)


@SAMPLED
@pytest.mark.parametrize("case", INDEX.cases, ids=str)
def test_index_reduction(case):
    INDEX.check(case)


@SAMPLED
@pytest.mark.parametrize("case", SCAN.cases, ids=str)
def test_scan(case):
    SCAN.check(case)
