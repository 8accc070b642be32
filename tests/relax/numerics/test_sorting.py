"""Sorting and scattering against numpy, through relax.build."""

import math

import numpy as np
import pytest

from tests.lib.operator_cases import SAMPLED, Case, Table, t
from weft.relax.op.definition import FUNCTIONS as F

N = ({"n": 0}, {"n": 1}, {"n": 5})
INF, NAN = math.inf, math.nan


def row(name, given, reference, *args, sizes=({},), note="", **attrs):
    return Case(name, lambda *x: F[name](*x, *args, **attrs), given, reference, sizes, note=note)


def scattered(data, indices, updates, axis):
    made = data.copy()
    np.put_along_axis(made, indices, updates, axis)
    return made


def cases():
    for axis in (0, -1):
        yield row(
            "sort", [t("n", 7)], lambda x, a=axis: np.sort(x, a), axis=axis, sizes=N, note=f"{axis}"
        )
        yield row(
            "argsort",
            [t("n", 7)],
            lambda x, a=axis: np.argsort(x, a, kind="stable"),
            axis=axis,
            sizes=N,
            note=f"{axis}",
        )
    yield row("sort", [t(3, 6, dtype="int8")], lambda x: -np.sort(-x, 1), axis=1, descending=True)
    yield row("sort", [t(6, fill=[NAN, INF, 1.0, -INF, 0.0, NAN])], np.sort, note="special")
    yield row(
        "argsort",
        [t(8, dtype="int32", fill=[2, 1, 2, 1])],
        lambda x: np.argsort(-x, kind="stable"),
        descending=True,
        dtype="int64",
        note="ties",
    )
    yield row(
        "topk",
        [t("n", 6)],
        lambda x: [-np.sort(-x, 1)[:, :2], np.argsort(-x, 1)[:, :2]],
        2,
        axis=1,
        sizes=N,
    )
    yield row(
        "topk", [t(4, 3)], lambda x: np.sort(x, 0)[:2], 2, axis=0, ret_type="values", largest=False
    )
    i64 = {"dtype": "int64"}
    for name, sizes in (("n", N),):
        yield row(
            "scatter_elements",
            [t(name, 3), t(name, 2, fill=[2, 0], **i64), t(name, 2)],
            lambda d, i, u: scattered(d, i, u, 1),
            axis=1,
            sizes=sizes,
        )
    yield row(
        "scatter_elements",
        [t(4), t(3, fill=[1, 1, -1], **i64), t(3)],
        lambda d, i, u: d + np.array([0, u[0] + u[1], 0, u[2]]),
        axis=0,
        reduction="add",
        note="add",
    )

    def at_pairs(d, i, u):
        made = d.copy()
        made[i[:, 0], i[:, 1]] = u
        return made

    yield row("scatter_nd", [t(4, 3), t(2, 2, fill=[0, 2, 3, 1], **i64), t(2)], at_pairs)


def more_than_there_are():
    for size in (2, 9):
        yield row("topk", [t("n", 4)], lambda x, k=size: -np.sort(-x, 0)[:k], size, axis=0,
                  ret_type="values", sizes=N, note=f"k={size}")  # fmt: skip
    yield row("topk", [t("n", 4)], lambda x: -np.sort(-x, 0)[:40], 40, axis=0, ret_type="values",
              sizes=[{"n": size} for size in (0, 1, 39, 40, 41, 170)], note="k=40")  # fmt: skip
    yield row("topk", [t(2, 3)], lambda x: -np.sort(-x, 1), 5, ret_type="values", note="more")


def searches():
    def in_rows(side):
        return lambda rows, values: np.stack([
            np.searchsorted(row, value, side) for row, value in zip(rows, values, strict=True)
        ]).reshape(values.shape)  # fmt: skip

    edges = [-1.0, 0.0, 0.0, 2.0, INF]
    for right, side in ((False, "left"), (True, "right")):

        def places(line, values, side=side):
            return np.searchsorted(line, values, side)

        how = {"right": right, "note": side}
        yield row("searchsorted", [t(5, fill=edges), t("n", 3)], places, sizes=N, **how)
        lines = t("n", 5, fill=edges)
        yield row("searchsorted", [lines, t("n", 2)], in_rows(side), sizes=N[1:], **how)
        yield row("searchsorted", [t(5, fill=edges), t(fill=0.0)], places, **how)
        yield row("searchsorted", [t(0), t(4)], places, **how)
    small = t(1, dtype="int32", fill=[0])
    yield row("searchsorted", [small, t(2, 3, dtype="int32")],
              lambda line, x: np.searchsorted(line, x).astype("int32"), out_int32=True)  # fmt: skip


def counts():
    def counted(bins):
        return lambda x, low, high: np.histogram(x, bins, (low, high))[0].astype("float64")

    for dtype in ("float32", "float64"):
        ends = [t(dtype=dtype, fill=-2.0), t(dtype=dtype, fill=2.0)]
        data = t("n", dtype=dtype)
        yield row("histogram", [data, *ends], counted(4), bins=4, sizes=N)
    inside = t(6, fill=[-2.0, 2.0, 2.5, 0.0, -2.5, NAN])
    yield row("histogram", [inside, t(fill=-2.0), t(fill=2.0)], lambda *_: np.ones(3), bins=3,
              note="ends")  # fmt: skip
    same = [t(3, fill=1.0), t(fill=1.0), t(fill=1.0)]
    yield row("histogram", same, counted(2), bins=2, note="equal ends")


TABLE = Table([*cases(), *more_than_there_are(), *searches(), *counts()])


@SAMPLED
@pytest.mark.parametrize("case", TABLE.cases, ids=str)
def test_sorting(case):
    TABLE.check(case)
