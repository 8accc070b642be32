"""Reads, writes and searches at places that data give, against numpy, through relax.build."""

import math

import numpy as np
import pytest

import weft
from tests.lib.operator_cases import SAMPLED, Case, Table, t
from weft import relax
from weft.relax import op
from weft.relax.op.definition import FUNCTIONS as F
from weft.relax.op.selection import masked_fill
from weft.support.errors import TVMError

INF, NAN = math.inf, math.nan
N = ({"n": 0}, {"n": 1}, {"n": 5})
I64, I32 = {"dtype": "int64"}, {"dtype": "int32"}


def row(name, given, reference, *args, sizes=({},), note="", **attrs):
    return Case(name, lambda *x: F[name](*x, *args, **attrs), given, reference, sizes, note=note)


def put(accumulate):
    def run(data, *rest):
        *indices, values = rest
        made = data.copy()
        if accumulate:
            np.add.at(made, tuple(indices), values)
        else:
            made[tuple(indices)] = values
        return made

    return run


def _with_places_filled(x, mask, source):
    filled = x.copy()
    np.place(filled, mask, source)
    return filled


def index_cases():
    def index(given, note=""):
        return Case(
            "index_tensor", lambda x, *i: op.index_tensor(x, list(i)), given,
            lambda x, *i: x[tuple(i)], N, note=note,
        )  # fmt: skip

    yield index([t(4, 3), t("n", fill=[3, -1, 0], **I64)])
    yield index([t(4, 3), t("n", 1, fill=[3, -4], **I64), t(2, fill=[-1, 2], **I32)], "both")
    yield index([t(4, 3, 2), t(fill=[1], **I64), t("n", fill=[2, 0], **I32)], "scalar")
    yield index([t(1, "n"), t(2, 2, fill=[0], **I64)], "size 1")
    yield index([t(5, dtype="int8"), t(4, fill=[250, 1], dtype="int32")][:1] + [
        t(4, fill=[4, 1], dtype="uint8")], "uint8")  # fmt: skip
    for accumulate in (False, True):

        def made(x, *rest, a=accumulate):
            return op.index_put(x, list(rest[:-1]), rest[-1], a)

        def case(given, note, made=made, accumulate=accumulate):
            name = f"{note},{accumulate}"
            return Case("index_put", made, given, put(accumulate), N, note=name)

        yield case([t(4, 3), t("n", fill=[3, -1, 0, 3], **I64), t("n", 3)], "rows")
        both = [t(2, 1, fill=[1, -2], **I32), t(3, fill=[0, 1, 2], **I64)]
        yield case([t(4, 3), *both, t(1)], "all")
        yield case([t("n", 2), t(0, **I64), t(0, 2)], "none")
        yield case([t(3), t(3, fill=[1, 1, 1], **I64), t(3)], "one place")


def other_cases():
    for start, end, step, axis in ((0, 4, 2, 1), (-3, 99, 1, 1), (1, 1, 1, 0), (0, 3, 3, -2)):
        chosen = [slice(None)] * 2
        chosen[axis] = slice(start, end, step)

        def sliced(x, src, chosen=tuple(chosen)):
            made = x.copy()
            made[chosen] = src
            return made

        shape = np.empty((3, 4))[tuple(chosen)].shape
        yield row(
            "slice_scatter", [t(3, 4), t(*shape)], sliced, start, end, step, axis,
            note=f"{start}:{end}:{step}@{axis}",
        )  # fmt: skip
    yield row(
        "slice_scatter", [t("n", 3), t("n", 1)], lambda x, s: np.concatenate([s, x[:, 1:]], 1),
        0, 1, 1, 1, sizes=N, note="symbolic",
    )  # fmt: skip
    yield row(
        "masked_scatter", [t("n", 3), t("n", 3, dtype="bool"), t("n", 5)],
        _with_places_filled, sizes=N, note="symbolic",
    )  # fmt: skip
    yield row(
        "masked_scatter", [t(2, 4, dtype="int8"), t(2, 4, dtype="bool"), t(8, dtype="int8")],
        _with_places_filled,
    )  # fmt: skip
    for right in (False, True):
        for kind, fill in (("float32", [NAN, 1.0, -INF, INF, 2.0, 1.5]), ("int32", [3, -9, 1, 2])):
            yield row(
                "bucketize",
                [t("n", 6, dtype=kind, fill=fill), t(3, dtype=kind, fill=[1, 2, 3])],
                lambda x, b, right=right: np.searchsorted(b, x, "right" if right else "left"),
                right=right, out_int32=right, sizes=N, note=f"{kind},{right}",
            )  # fmt: skip
    yield row("bucketize", [t(dtype="float32"), t(0)], lambda x, b: np.searchsorted(b, x))
    for indexing in ("ij", "xy"):
        yield Case(
            "meshgrid", lambda *x, how=indexing: op.meshgrid(list(x), how), [t("n"), t(3), t(1)],
            lambda *x, how=indexing: list(np.meshgrid(*x, indexing=how)), N, note=indexing,
        )  # fmt: skip
    yield Case("meshgrid", lambda x, y: op.meshgrid([x, y]), [t(), t(2)],
               lambda x, y: np.meshgrid(x, y, indexing="ij"), note="0-d")  # fmt: skip

    def slices(x, begin, end, strides):
        axes = zip(begin, end, strides, strict=True)
        return x[tuple(slice(*[int(item) for item in axis]) for axis in axes)]

    for begin, end, strides in (
        ([0, 1], [2, 99], [1, 2]), ([-2, 5], [9, -9], [1, -2]), ([3, 2], [3, 0], [1, 1]),
    ):  # fmt: skip
        vectors = [t(2, fill=item, **I64) for item in (begin, end, strides)]
        note = f"{begin},{end},{strides}"
        yield row("dynamic_strided_slice", [t("n", 4), *vectors], slices, sizes=N, note=note)
    yield row(
        "multinomial_from_uniform",
        [t(2, 3, fill=[0.25, 0.25, 0.5, 0.0, 1.0, 0.0]), t(5, 1, fill=[0.0, 0.25, 0.5, 0.999, 0.3]),
         t(5, 1, fill=[0, 0, 0, 0, 1], **I64)],
        lambda p, u, r: np.array([[0], [1], [2], [2], [1]]),
    )  # fmt: skip


def distinct(x, by_value, axis=None):
    values, index, inverse, counts = np.unique(x, True, True, True, axis)
    if not by_value:
        order = np.argsort(index)
        place = np.argsort(order)
        values = np.take(values, order, 0 if axis is None else axis)
        index, inverse, counts = index[order], place[inverse], counts[order]
    return [values, index, inverse.reshape(-1), counts]


def sets():
    yield row("nonzero", [t("n", 3, fill=[0, 1, 0, 2], **I32)], lambda x: np.stack(x.nonzero()),
              sizes=N)  # fmt: skip
    yield row("nonzero", [t(4, dtype="bool")], lambda x: np.stack(x.nonzero()), note="bool")
    yield row("nonzero", [t(fill=[2.0])], lambda x: np.zeros((1, 1), "int64"), note="0-d")
    for by_value in (True, False):
        yield row("unique", [t("n", 3, **I32)], lambda x, v=by_value: distinct(x, v)[0], by_value,
                  sizes=N, note=f"{by_value}")  # fmt: skip
        yield row("unique", [t(4, 3, fill=[2, 1, 1, 0], **I32)],
                  lambda x, v=by_value: distinct(x, v), by_value, True, True, True,
                  note=f"all,{by_value}")  # fmt: skip
        yield row("unique", [t(3, 4, fill=[2, 1, 2, 1], **I32)],
                  lambda x, v=by_value: distinct(x, v, 1), by_value, True, True, True, 1,
                  note=f"axis,{by_value}")  # fmt: skip
    yield row("unique", [t(5, fill=[NAN, 1.0, NAN, -INF, 1.0])], np.unique, note="special")


def medians():
    def lower(x, axes, keepdims=False):
        moved = np.moveaxis(x, axes, range(-len(axes), 0))
        flat = moved.reshape(*moved.shape[: -len(axes)], math.prod(x.shape[a] for a in axes))
        made = np.sort(flat, -1)[..., (flat.shape[-1] - 1) // 2]
        made = np.where(np.isnan(flat).any(-1), NAN, made)
        return np.expand_dims(made, axes) if keepdims else made

    yield row("median", [t("n", 4)], lambda x: lower(x, (0, 1)), sizes=N[1:])
    yield row("median", [t(3, "n", 2)], lambda x: lower(x, (0, 2), True), axis=[2, 0],
              keepdims=True, sizes=N)  # fmt: skip
    yield row("median", [t()], lambda x: x, note="0-d")
    yield row("median", [t(2, 3, fill=[NAN, 1.0, 2.0, INF, -INF, 0.0])], lambda x: lower(x, (0, 1)),
              note="nan")  # fmt: skip
    yield row("median", [t(3, 4, fill=[1.0, NAN, 2.0, NAN, 5.0, 3.0, 4.0, INF])],
              lambda x: [np.array([NAN, 4.0, NAN]), np.array([1, 2, 1])], axis=1,
              note="nan")  # fmt: skip
    for axis in (0, -1):

        def both(x, axis=axis):
            order = np.argsort(x, axis, kind="stable")
            place = np.take(order, [(x.shape[axis] - 1) // 2], axis)
            return [np.take_along_axis(x, place, axis).squeeze(axis), place.squeeze(axis)]

        yield row("median", [t("n", 5)], both, axis=axis, sizes=N[2:], note=f"{axis}")
        yield row("median", [t(5, 4, dtype="float16", fill=[2, 1, 2, 0])], both, axis=axis,
                  note=f"ties,{axis}")  # fmt: skip


def windows():
    for size in (1, 2, 9):
        for periodic in (False, True):

            def window(x, size=size, periodic=periodic):
                count = size if periodic else max(size - 1, 1)
                made = 0.54 - 0.46 * np.cos(2 * np.pi * np.arange(size) / count)
                return made if size > 1 else np.ones(1)

            yield Case(
                "hamming_window",
                lambda x, s=size, p=periodic: op.hamming_window(s, p, 0.54, 0.46, "float32"),
                [t(1)], window, note=f"{size},{periodic}",
            )  # fmt: skip


INDEX, OTHER, SETS = Table(list(index_cases())), Table(list(other_cases())), Table(list(sets()))
MEDIAN, WINDOW = Table(list(medians())), Table(list(windows()))


@SAMPLED
@pytest.mark.parametrize("case", INDEX.cases, ids=str)
def test_index(case):
    INDEX.check(case)


@SAMPLED
@pytest.mark.parametrize("case", OTHER.cases, ids=str)
def test_other(case):
    OTHER.check(case)


@SAMPLED
@pytest.mark.parametrize("case", SETS.cases, ids=str)
def test_sets(case):
    SETS.check(case)


@SAMPLED
@pytest.mark.parametrize("case", MEDIAN.cases, ids=str)
def test_median(case):
    MEDIAN.check(case)


@SAMPLED
@pytest.mark.parametrize("case", WINDOW.cases, ids=str)
def test_window(case):
    WINDOW.check(case)


def machine(make, *arrays):
    builder = relax.BlockBuilder()
    params = [
        relax.Var(f"x{i}", relax.TensorStructInfo(a.shape, str(a.dtype)))
        for i, a in enumerate(arrays)
    ]
    with builder.function("main", params):
        builder.emit_func_output(builder.emit(make(*params)))
    vm = relax.VirtualMachine(relax.build(builder.get(), target="llvm"), weft.cpu())
    return lambda: vm["main"](*[weft.nd.array(a) for a in arrays])


X = np.zeros((3, 4), "float32")


@pytest.mark.parametrize(
    ("make", "arrays"),
    [
        (lambda x, i: op.take(x, i, 0), [X, np.array([0, 3])]),
        (lambda x, i: op.take(x, i, 0), [X, np.array([-1])]),
        (lambda x, i: op.gather_elements(x, i, 1), [X, np.full((3, 1), 4)]),
        (op.gather_nd, [X, np.array([[0, 4]])]),
        (op.scatter_elements, [X, np.full((1, 4), 3), X[:1]]),
        (op.scatter_nd, [X, np.array([[-4, 0]]), X[0, :1]]),
        (lambda x, i: op.index_tensor(x, [i]), [X, np.array([-4])]),
        (lambda x, i, v: op.index_put(x, [i], v), [X, np.array([3]), X[:1]]),
        (op.multinomial_from_uniform, [X + 0.25, X[:1, :1], np.array([[3]])]),
    ],
)
def test_indices_out_of_range_are_errors(make, arrays):
    with pytest.raises(TVMError, match=r"out of|outside|index"):
        machine(make, *arrays)()


def test_masked_fill():
    x = np.arange(6, dtype="float32").reshape(2, 3)
    made = machine(lambda a, m: masked_fill(a, m, relax.const(-1.0)), x, x > 3)()
    assert np.array_equal(made.numpy(), np.where(x > 3, -1, x))
