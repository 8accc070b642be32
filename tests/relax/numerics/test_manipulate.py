"""Operators that create, move and index elements against numpy, through relax.build."""

import math

import numpy as np
import pytest

from tests.lib.operator_cases import SAMPLED, Case, Table, t
from weft import relax
from weft.relax.op.definition import FUNCTIONS as F

N = ({"n": 0}, {"n": 1}, {"n": 5})
KINDS = ("int8", "int64", "bool", "float16", "bfloat16", "float64")


def row(name, given, reference, *args, sizes=({},), note="", **attrs):
    return Case(name, lambda *x: F[name](*x, *args, **attrs), given, reference, sizes, note=note)


def listed(name, given, reference, sizes=({},), note="", **attrs):
    return Case(name, lambda *x: F[name](list(x), **attrs), given, reference, sizes, note=note)


def size_of(x, axis):
    return x.struct_info.shape[axis]


def symbolic_slices():
    """Bounds that are sizes (here of a second tensor), and beyond the axis."""

    def upto(x, y):
        return F["strided_slice"](x, [0], [size_of(y, 0)], [6])

    yield Case("strided_slice", upto, [t(6, 2), t("n")], lambda x, y: x[len(y) :], N, note="begin")
    for end in (3, -1, 99):
        yield row("strided_slice", [t("n", 2)], lambda x, e=end: x[1:e], [0], [1], [end], sizes=N,
                  note=f"1:{end}")  # fmt: skip
    for begin, end, step in ((-1, -9, -2), (3, 0, -1), (9, -9, -3)):
        yield row("strided_slice", [t("n", 2)], lambda x, b=begin, e=end, s=step: x[b:e:s], [0],
                  [begin], [end], [step], sizes=N, note=f"{begin}:{end}:{step}")  # fmt: skip


def odd_cuts():
    """Cuts past the end, from the end, out of order, of nothing; no and many repeats."""
    for cuts in ([4, 5], [-1], [3, 1], [0, 0], [-9, 2]):

        def parts(x, cuts=cuts):
            ends = [min(c, len(x)) if c >= 0 else max(c + len(x), 0) for c in cuts]
            pairs = zip([0, *ends], [*ends, len(x)], strict=True)
            return [x[a : max(a, b)] for a, b in pairs]

        for first in (0, 1, 3, "n"):
            sizes = N if first == "n" else ({},)
            yield row("split", [t(first, 2)], parts, cuts, sizes=sizes, note=f"{cuts}")
    yield row("split", [t(3, 2)], lambda x: x, 1, note="one part")
    for shape, axis in (((3, 0), 0), ((3, 0), None), ((), None), (("n", 2), 0), (("n", 2), None)):
        for count in (0, 3):
            sizes = N if "n" in shape else ({},)

            def repeated(x, axis=axis, count=count):
                return np.repeat(x, count, axis)

            note = f"{count},{axis}"
            yield row("repeat", [t(*shape)], repeated, count, axis, sizes=sizes, note=note)
    yield row("tile", [t(2, 3)], lambda x: np.tile(x, (0, 2)), [0, 2], note="none")


def shapes():
    for kind in KINDS:
        yield row("reshape", [t(2, 3, dtype=kind)], lambda x: x.reshape(3, 2), (3, 2))
        yield row("permute_dims", [t(2, 3, dtype=kind)], lambda x: x.T)
        yield listed(
            "concat",
            [t(2, 3, dtype=kind), t(1, 3, dtype=kind)],
            lambda x, y: np.concatenate([x, y]),
            axis=0,
        )
    yield row("reshape", [t()], lambda x: x.reshape(1, 1), (1, 1))
    yield row("reshape", [t(1)], lambda x: x.reshape(()), ())
    yield Case(
        "reshape",
        lambda x: F["reshape"](x, (size_of(x, 0), 2, 3)),
        [t("n", 6)],
        lambda x: x.reshape(len(x), 2, 3),
        N,
    )
    yield Case(
        "reshape",
        lambda x: F["reshape"](x, (size_of(x, 0) * 6,)),
        [t("n", 6)],
        lambda x: x.reshape(-1),
        N,
    )
    yield row("reshape", [t(0, 4)], lambda x: x.reshape(2, 0), (2, 0))
    yield row("reshape", [t(4, 6)], lambda x: x.reshape(2, 3, 4), (2, -1, 4), note="-1")
    yield row("flatten", [t("n", 3, 2)], lambda x: x.reshape(-1), sizes=N)
    yield row("flatten", [t()], lambda x: x.reshape(-1))
    yield row("expand_dims", [t("n", 3)], lambda x: np.expand_dims(x, (0, 2)), axis=[0, 2], sizes=N)
    yield row("expand_dims", [t("n", 3)], lambda x: np.expand_dims(x, -1), axis=-1, sizes=N)
    yield row("expand_dims", [t()], lambda x: np.expand_dims(x, 0), axis=0)
    yield row("squeeze", [t(1, "n", 1)], lambda x: x[0, :, 0], axis=[0, -1], sizes=N)
    yield row("squeeze", [t(1, 3, 1)], lambda x: x[0, :, 0])
    yield row("squeeze", [t(1, 1)], lambda x: x[0, 0])
    yield row(
        "permute_dims", [t("n", 2, 3)], lambda x: x.transpose(2, 0, 1), axes=[-1, 0, 1], sizes=N
    )
    yield row("permute_dims", [t()], lambda x: x)
    yield row("broadcast_to", [t(3, 1)], lambda x: np.broadcast_to(x, (2, 3, 4)), (2, 3, 4))
    yield row("broadcast_to", [t()], lambda x: np.broadcast_to(x, (2, 0)), (2, 0))
    yield Case(
        "broadcast_to",
        lambda x, y: F["broadcast_to"](x, (size_of(y, 0), 3)),
        [t(1, 3), t("n")],
        lambda x, y: np.broadcast_to(x, (len(y), 3)),
        N,
    )
    yield row("collapse_sum_to", [t(4, 2, 3)], lambda x: x.sum(axis=(0, 2))[:, None], (2, 1))
    yield row("collapse_sum_to", [t("n", 3)], lambda x: x.sum(0), (3,), sizes=N)
    yield row("collapse_sum_to", [t(2, 3)], lambda x: x, (2, 3))
    yield row("collapse_sum_like", [t(4, 2, 3), t(1, 3)], lambda x, y: x.sum(axis=(0, 1))[None])
    yield row("flip", [t(2, 3)], lambda x: x[:, ::-1], axis=1)
    yield row("flip", [t("n", 3, dtype="int32")], lambda x: x[::-1], axis=0, sizes=N)
    yield row("flip", [t("n", 3)], lambda x: x[:, ::-1], axis=-1, sizes=N)


def joined():
    yield listed(
        "concat",
        [t("n", 3), t("m", 3)],
        lambda x, y: np.concatenate([x, y]),
        ({"n": 0, "m": 2}, {"n": 3, "m": 1}, {"n": 2, "m": 0}),
        axis=0,
    )
    yield listed(
        "concat",
        [t("n", 3), t("n", 1), t("n", 0)],
        lambda *x: np.concatenate(x, axis=-1),
        N,
        axis=-1,
    )
    yield listed("concat", [t(3)], lambda x: x, axis=0)
    yield listed("concat", [t(3), t(2)], lambda *x: np.concatenate(x), axis=None)
    for axis in (0, 1, -1):
        yield listed(
            "stack",
            [t("n", 3)] * 3,
            lambda *x, a=axis: np.stack(x, a),
            N,
            axis=axis,
            note=f"{axis}",
        )
    yield listed("stack", [t(), t()], lambda *x: np.stack(x), axis=0)
    yield row("split", [t(6, "n")], lambda x: np.split(x, 3), 3, axis=0, sizes=N)
    yield row("split", [t("n", 7)], lambda x: np.split(x, [2, 5], axis=1), [2, 5], axis=-1, sizes=N)
    yield row("split", [t(7)], lambda x: [x[:3], x[3:6], x[6:]], 3, axis=0, note="uneven")
    yield row("split", [t(4)], lambda x: np.split(x, [0, 4]), [0, 4], axis=0, note="empty parts")
    yield row("repeat", [t("n", 3)], lambda x: np.repeat(x, 2, 0), 2, axis=0, sizes=N)
    yield row("repeat", [t("n", 3)], lambda x: np.repeat(x, 3, 1), 3, axis=-1, sizes=N)
    yield row("repeat", [t("n", 3)], lambda x: np.repeat(x, 2), 2, sizes=N)
    yield row("tile", [t("n", 3)], lambda x: np.tile(x, (2, 2)), (2, 2), sizes=N)
    yield row("tile", [t(2, 3)], lambda x: np.tile(x, 2), 2)
    yield row("tile", [t(3)], lambda x: np.tile(x, (2, 1, 2)), (2, 1, 2))
    for k in (-1, 0, 2):
        yield row("tril", [t("n", 4)], lambda x, k=k: np.tril(x, k), k, sizes=N, note=f"{k}")
        yield row("triu", [t(2, 3, 4, dtype="int32")], lambda x, k=k: np.triu(x, k), k, note=f"{k}")


def slices_first():
    cut = F["strided_slice"]
    for begin, end, step in (
        (1, 4, 1),
        (0, 5, 2),
        (-3, -1, 1),
        (4, 0, -1),
        (-1, -6, -2),
        (2, 100, 1),
        (3, 1, 1),
    ):
        yield Case(
            "strided_slice",
            lambda x, b=begin, e=end, s=step: cut(x, [1], [b], [e], [s]),
            [t("n", 5)],
            lambda x, b=begin, e=end, s=step: x[:, slice(b, e if e > -6 else None, s)],
            N,
            note=f"{begin},{end},{step}",
        )
    for begin, end, step in ((1, 4, 1), (0, 100, 2), (-2, 100, 1), (1, -1, 1)):
        yield Case(
            "strided_slice",
            lambda x, b=begin, e=end, s=step: cut(x, [0], [b], [e], [s]),
            [t("n", 2)],
            lambda x, b=begin, e=end, s=step: x[b:e:s],
            N,
            note=f"symbolic {begin},{end},{step}",
        )
    yield Case(
        "strided_slice",
        lambda x: cut(x, [0, -1], [1, 0], [3, 2]),
        [t(4, 3, 3, dtype="int8")],
        lambda x: x[1:3, :, 0:2],
    )


def slices_second():
    i32, i64 = {"dtype": "int32"}, {"dtype": "int64"}
    for kind in (i32, i64):
        yield row(
            "take",
            [t("n", 5), t(2, 3, fill=[0, 4, 2], **kind)],
            lambda x, i: x[:, i],
            axis=1,
            sizes=N,
        )
        yield row("take", [t(5, "n"), t(fill=[3], **kind)], lambda x, i: x[i], axis=0, sizes=N)
        yield row(
            "gather_elements",
            [t(4, 3), t(2, 3, fill=[0, 3, 1], **kind)],
            lambda x, i: np.take_along_axis(x, i, 0),
            axis=0,
        )
        yield row(
            "gather_nd",
            [t(4, 3, 2), t(5, 2, fill=[0, 2, 3, 1], **kind)],
            lambda x, i: x[i[:, 0], i[:, 1]],
        )
    yield row("take", [t(5), t(0, **i64)], lambda x, i: x[i], axis=0)
    yield row("take", [t(5), t(3, fill=[1, 4, 0], **i64)], lambda x, i: x[i])
    yield row(
        "take",
        [t(5, 2), t(4, fill=[-3, 9, 2, 0], **i64)],
        lambda x, i: x[np.clip(i, 0, 4)],
        axis=0,
        mode="clip",
    )
    yield row(
        "take",
        [t(5, 2), t(4, fill=[-3, 9, 2, 0], **i64)],
        lambda x, i: x[i % 5],
        axis=0,
        mode="wrap",
    )


def slices_third():
    _i32, i64 = {"dtype": "int32"}, {"dtype": "int64"}
    on, off = relax.const(2.5, "float32"), relax.const(-1.0, "float32")
    yield row(
        "take",
        [t(5, 2), t(3, fill=[9, 2, 5], **i64)],
        lambda x, i: np.where((i < 5)[:, None], x[np.minimum(i, 4)], math.nan),
        axis=0,
        mode="nan",
    )
    yield row(
        "gather_elements",
        [t("n", 3), t("n", 2, fill=[2, 0], **i64)],
        lambda x, i: np.take_along_axis(x, i, 1),
        axis=-1,
        sizes=N,
    )
    yield row(
        "gather_nd",
        [t(2, 4, 3), t(2, 1, fill=[3, 0], **i64)],
        lambda x, i: np.stack([x[0, i[0, 0]], x[1, i[1, 0]]]),
        batch_dims=1,
    )
    yield row(
        "layout_transform",
        [t(5, 6)],
        lambda x: np.pad(x, ((0, 3), (0, 0)), constant_values=2.5).reshape(2, 4, 6),
        index_map=lambda i, j: [i // 4, i % 4, j],
        pad_value=2.5,
    )
    yield row(
        "layout_transform",
        [t(5, 6, dtype="int32")],
        lambda x: np.pad(x.T, ((0, 0), (1, 2))).reshape(6, 2, 4),
        index_map=lambda i, j: [j, (i + 1) // 4, (i + 1) % 4],
    )
    for axis in (-1, 0):
        yield Case(
            "one_hot",
            lambda x, a=axis: F["one_hot"](x, on, off, 4, axis=a),
            [t("n", dtype="int64", fill=[0, 3, 2, 7])],
            lambda i, a=axis: np.moveaxis(np.where(i[:, None] == np.arange(4), 2.5, -1.0), -1, a),
            N,
            note=f"{axis}",
        )


def created_first():
    ten = relax.const(7, "float32")
    yield Case(
        "full",
        lambda x: F["full"]((size_of(x, 0), 2), ten, "float16"),
        [t("n")],
        lambda x: np.full((len(x), 2), 7.0),
        N,
    )
    yield Case(
        "full",
        lambda x: F["full"]((2, 3), x, "int32"),
        [t(fill=[2.75])],
        lambda x: np.full((2, 3), 2, "int32"),
    )
    yield Case(
        "full_like",
        lambda x, v: F["full_like"](x, v),
        [t("n", 2), t(fill=[1.5])],
        lambda x, v: np.full(x.shape, v),
        N,
    )


def created_second():
    for name, value in (("ones", 1), ("zeros", 0)):
        for kind in ("float32", "bool", "int8", "bfloat16"):
            yield Case(
                name,
                lambda x, m=name, k=kind: F[m]((size_of(x, 0), 3), k),
                [t("n")],
                lambda x, v=value, k=kind: np.full(
                    (len(x), 3), v, bool if k == "bool" else "float64"
                ),
                N,
                note=kind,
            )
        yield row(
            f"{name}_like",
            [t("n", 2, dtype="int64")],
            lambda x, v=value: np.full(x.shape, v),
            sizes=N,
        )
        yield row(
            f"{name}_like",
            [t(dtype="float32")],
            lambda x, v=value: np.full((), v, "int32"),
            "int32",
        )
    yield Case(
        "arange",
        lambda x: F["arange"](1, 8, 2, "int32"),
        [t()],
        lambda x: np.arange(1, 8, 2, dtype="int32"),
    )
    yield Case(
        "arange", lambda x: F["arange"](size_of(x, 0)), [t("n")], lambda x: np.arange(len(x)), N
    )


def spaced():
    """Numbers at equal distances: none, one, many, downwards, of integers."""

    def by_numpy(start, end, steps, dtype="float64"):
        return lambda x: np.linspace(start, end, steps).astype(dtype)

    for steps in (0, 1, 2, 5, 33):
        for dtype in ("float32", "float16"):
            yield Case(
                "linspace", lambda x, s=steps, d=dtype: F["linspace"](0.1, -2, s, d), [t(1)],
                by_numpy(0.1, -2, steps), note=f"{steps},{dtype}",
            )  # fmt: skip
    yield Case(
        "linspace", lambda x: F["linspace"](-8, 8, 5, "int32"), [t(1)],
        by_numpy(-8, 8, 5, "int32"), note="integers",
    )  # fmt: skip
    yield Case(
        "linspace", lambda x: F["linspace"](0, 1, size_of(x, 0), "float64"), [t("n")],
        lambda x: np.linspace(0, 1, len(x)), N, note="symbolic",
    )  # fmt: skip


def created_third():
    yield Case(
        "arange",
        lambda x: F["arange"](0, size_of(x, 0), 2, "float32"),
        [t("n")],
        lambda x: np.arange(0, len(x), 2, dtype="float64"),
        N,
        note="step",
    )
    for k in (-1, 0, 2):
        yield Case(
            "eye",
            lambda x, k=k: F["eye"](3, 4, k, "int32"),
            [t()],
            lambda x, k=k: np.eye(3, 4, k, dtype="int32"),
            note=f"{k}",
        )
        yield row(
            "eye_like", [t("n", 4)], lambda x, k=k: np.eye(len(x), 4, k), k, sizes=N, note=f"{k}"
        )
    yield Case("eye", lambda x: F["eye"](size_of(x, 0)), [t("n")], lambda x: np.eye(len(x)), N)


SHAPES, JOINED = Table(list(shapes())), Table([*joined(), *odd_cuts()])
SLICES, CREATED = (
    Table([*slices_first(), *slices_second(), *slices_third(), *symbolic_slices()]),
    Table([*created_first(), *created_second(), *created_third(), *spaced()]),
)


@SAMPLED
@pytest.mark.parametrize("case", SHAPES.cases, ids=str)
def test_shape(case):
    SHAPES.check(case)


@SAMPLED
@pytest.mark.parametrize("case", JOINED.cases, ids=str)
def test_join_and_split(case):
    JOINED.check(case)


@SAMPLED
@pytest.mark.parametrize("case", SLICES.cases, ids=str)
def test_slice_and_index(case):
    SLICES.check(case)


@SAMPLED
@pytest.mark.parametrize("case", CREATED.cases, ids=str)
def test_creation(case):
    CREATED.check(case)
