"""Images: resizing by all methods and coordinate rules, and sampling grids."""

import itertools

import numpy as np
import pytest

from tests.lib.operator_cases import SAMPLED, Table, by_torch, row, t

torch = pytest.importorskip("torch")
nn = torch.nn.functional
N = ({"n": 0}, {"n": 1}, {"n": 3})
SHAPES = {1: (7,), 2: (6, 5), 3: (4, 5, 3)}
SIZES = {1: (11,), 2: (4, 9), 3: (7, 3, 3)}
LINEAR = {1: "linear", 2: "bilinear", 3: "trilinear"}


def by_interpolation(**options):
    return by_torch(nn.interpolate, **options)


def like_pytorch():
    for rank, shape in SHAPES.items():
        name, given, size = f"image.resize{rank}d", [t("n", 2, *shape)], SIZES[rank]
        for corners in (False, True):
            mode = "align_corners" if corners else "half_pixel"
            yield row(
                name, given, by_interpolation(size=size, mode=LINEAR[rank], align_corners=corners),
                size, coordinate_transformation_mode=mode, sizes=N[1:], note=f"linear {mode}",
            )  # fmt: skip
        yield row(
            name, given, by_interpolation(size=size, mode="nearest"), size,
            method="nearest_neighbor", coordinate_transformation_mode="asymmetric",
            rounding_method="floor", sizes=N[1:], note="nearest",
        )  # fmt: skip
        yield row(
            name, given, by_interpolation(size=size, mode="nearest-exact"), size,
            method="nearest_neighbor", coordinate_transformation_mode="tf_half_pixel_for_nn",
            rounding_method="floor", sizes=N[1:], note="nearest of centres",
        )  # fmt: skip
    for corners in (False, True):
        mode = "align_corners" if corners else "half_pixel"
        yield row(
            "image.resize2d", [t("n", 2, 6, 5)],
            by_interpolation(size=(4, 9), mode="bicubic", align_corners=corners), (4, 9),
            method="cubic", cubic_alpha=-0.75, coordinate_transformation_mode=mode, sizes=N[1:],
            note=f"cubic {mode}",
        )  # fmt: skip


def tables_of_taps():
    """Rows of indices and weights: few and many taps, infinities that have no weight."""

    def summed(axis, skip=False):
        def by_numpy(x, indices, weights):
            with np.errstate(invalid="ignore"):  # infinity, weighted by 0
                terms = np.moveaxis(x, axis, -1)[..., indices] * weights
            terms = np.where(weights == 0, 0, terms) if skip else terms
            return np.moveaxis(terms.sum(-1), -1, axis)

        return by_numpy

    for taps in (1, 3, 7):
        places = t(4, taps, dtype="int64", fill=[0, 2, 1, 0, 1])
        for axis in (0, -1):
            given = [t(3, "n", 3), places, t(4, taps)]
            yield row("image.weighted_taps", given, summed(axis), axis, sizes=N, note=f"{axis}")
    table = t("n", 2, dtype="int32", fill=[0, 2, 1])
    whole = [t(3, 2, dtype="int32"), table, t("n", 2, dtype="int32")]
    yield row("image.weighted_taps", whole, summed(0), 0, sizes=N)
    many = t(4, "n", dtype="int64", fill=[0, 2, 1, 0, 1])
    yield row("image.weighted_taps", [t(3, 2), many, t(4, "n")], summed(0), 0, sizes=N)
    odd = [t(3, fill=[1.0, np.inf, np.nan]), t(2, 2, dtype="int64", fill=[0, 1, 2, 0]),
           t(2, 2, fill=[0.5, 0.0, 0.0, 0.25])]  # fmt: skip
    with np.errstate(invalid="ignore"):
        yield row("image.weighted_taps", odd, summed(0, True), 0, True, note="no weight")


def positions(extent, size, mode, part=(0.0, 0.0)):
    """Where in the input each output element lies, by the definitions of ONNX."""
    place = np.arange(size, dtype=np.float64)
    if mode == "align_corners":
        return place * (extent - 1) / max(size - 1, 1)
    if mode == "asymmetric":
        return place * extent / size
    if mode == "tf_crop_and_resize":
        if size == 1:
            return np.array([0.5 * (part[0] + part[1]) * (extent - 1)])
        return part[0] * (extent - 1) + place * (part[1] - part[0]) * (extent - 1) / (size - 1)
    if mode == "pytorch_half_pixel" and size == 1:
        return np.zeros(1)
    return (place + 0.5) * extent / size - 0.5


def cubic(x, size, mode, alpha, exclude):
    """Cubic along the last axis."""
    extent, made = x.shape[-1], []
    for position in positions(extent, size, mode):
        base, total, weights = int(np.floor(position)), 0.0, 0.0
        for tap in range(base - 1, base + 3):
            d = abs(position - tap)
            weight = (
                (alpha + 2) * d**3 - (alpha + 3) * d**2 + 1
                if d <= 1
                else alpha * (d**3 - 5 * d**2 + 8 * d - 4)
            )
            if exclude and not 0 <= tap < extent:
                continue
            weights += weight
            total = total + weight * x[..., min(max(tap, 0), extent - 1)]
        made.append(total / weights if exclude else total)
    return np.stack(made, -1)


def linear(x, size, mode, part=(0.0, 0.0), extrapolation=0.0):
    """Linear along the last axis."""
    extent, made = x.shape[-1], []
    for position in positions(extent, size, mode, part):
        base = int(np.floor(position))
        low, high = [min(max(tap, 0), extent - 1) for tap in (base, base + 1)]
        value = x[..., low] + (x[..., high] - x[..., low]) * (position - base)
        outside = mode == "tf_crop_and_resize" and not 0 <= position <= extent - 1
        made.append(np.full_like(value, extrapolation) if outside else value)
    return np.stack(made, -1)


def by_definition():
    for mode in ("half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel"):
        for size in (1, 5):
            yield row(
                "image.resize1d", [t(1, 2, 7)], lambda x, m=mode, s=size: linear(x, s, m), (size,),
                coordinate_transformation_mode=mode, note=f"linear {mode} {size}",
            )  # fmt: skip
        for exclude in (0, 1):
            yield row(
                "image.resize1d", [t(1, 2, 7)],
                lambda x, m=mode, e=exclude: cubic(x, 11, m, -0.5, e), (11,),
                method="cubic", coordinate_transformation_mode=mode, cubic_exclude=exclude,
                note=f"cubic {mode} {exclude}",
            )  # fmt: skip
    for size in (1, 6):
        yield row(
            "image.resize1d", [t(1, 2, 7)],
            lambda x, s=size: linear(x, s, "tf_crop_and_resize", (0.25, 1.5), 9.0), (size,),
            roi=[0.25, 1.5], coordinate_transformation_mode="tf_crop_and_resize",
            extrapolation_value=9.0, note=f"crop {size}",
        )  # fmt: skip
    for rounding, whole in (
        ("floor", np.floor), ("ceil", np.ceil), ("round", np.round),
        ("round_prefer_floor", lambda p: np.ceil(p - 0.5)),
        ("round_prefer_ceil", lambda p: np.floor(p + 0.5)),
    ):  # fmt: skip
        yield row(
            "image.resize1d", [t(1, 2, 9)],
            lambda x, w=whole: x[..., np.clip(w(positions(9, 6, "asymmetric")), 0, 8).astype(int)],
            (6,), method="nearest_neighbor", coordinate_transformation_mode="asymmetric",
            rounding_method=rounding, note=rounding,
        )  # fmt: skip


def other_types():
    yield row(
        "image.resize2d", [t(1, 6, 5, 2)],
        lambda x: by_interpolation(size=(3, 7), mode="bilinear")(
            x.transpose(0, 3, 1, 2)
        ).transpose(0, 2, 3, 1),
        (3, 7), layout="NHWC",
    )  # fmt: skip
    yield row("image.resize2d", [t(1, 1, 4, 4, dtype="float16")],
              by_interpolation(size=(8, 8), mode="bilinear"), 8)  # fmt: skip
    yield row("image.resize2d", [t(1, 1, 4, 4)], by_interpolation(size=(8, 8), mode="bilinear"), 8,
              out_dtype="float64", tolerance=1e-6)  # fmt: skip
    yield row("image.resize2d", [t(1, 2, "n", 4)],
              lambda x: by_interpolation(size=(5, 5), mode="bilinear")(x), (5, 5), sizes=N[1:],
              note="symbolic")  # fmt: skip
    yield row("image.resize2d", [t(2, 3, 1, 1)], lambda x: np.broadcast_to(x, (2, 3, 2, 3)),
              (2, 3), note="size 1")  # fmt: skip


def around(generator, shape):
    return generator.uniform(-1.4, 1.4, shape)


def sampled(**options):
    def reference(x, grid):
        order = (0, *range(2, grid.ndim), 1)
        return by_torch(nn.grid_sample, **options)(x, grid.transpose(order))

    return reference


def grids():
    pairs = itertools.product(("nearest", "bilinear", "bicubic"), ("zeros", "border", "reflection"))
    for number, (method, padding) in enumerate(pairs):
        corners = number % 2 == 1
        yield row(
            "image.grid_sample", [t("n", 2, 5, 4), t("n", 2, 3, 6, fill=around)],
            sampled(mode=method, padding_mode=padding, align_corners=corners), method=method,
            padding_mode=padding, align_corners=corners, sizes=N[1:],
            note=f"{method} {padding} {corners}",
        )  # fmt: skip
    for method, padding in itertools.product(("nearest", "bilinear"), ("zeros", "reflection")):
        yield row(
            "image.grid_sample", [t(2, 2, 3, 5, 4), t(2, 3, 2, 3, 6, fill=around)],
            sampled(mode=method, padding_mode=padding, align_corners=False), method=method,
            padding_mode=padding, layout="NCDHW", note=f"volume {method} {padding}",
        )  # fmt: skip
    yield row(
        "image.grid_sample", [t(1, 5, 4, 2), t(1, 2, 3, 3, fill=around)],
        lambda x, g: sampled(align_corners=False)(x.transpose(0, 3, 1, 2), g).transpose(0, 2, 3, 1),
        layout="NHWC", note="NHWC",
    )  # fmt: skip
    yield row(
        "image.grid_sample", [t(1, 2, 1, 1), t(1, 2, 2, 2, fill=around)],
        sampled(align_corners=True, padding_mode="reflection"), align_corners=True,
        padding_mode="reflection", note="one pixel",
    )  # fmt: skip


def affine(theta, *size, corners):
    made = nn.affine_grid(
        torch.from_numpy(np.ascontiguousarray(theta)), (len(theta), 1, *size), align_corners=corners
    )
    return np.moveaxis(made.numpy(), -1, 1)


def affine_grids():
    for corners in (False, True):
        for size in ((4, 5), (2, 3, 4)):
            rank = len(size)
            yield row(
                "image.affine_grid", [t("n", rank, rank + 1)],
                lambda x, s=size, c=corners: affine(x, *s, corners=c), size,
                align_corners=corners, sizes=N[1:], note=f"{size} {corners}",
            )  # fmt: skip


TABLE = Table([*like_pytorch(), *by_definition(), *other_types()])
GRIDS = Table([*grids(), *affine_grids()])
TAPS = Table([*tables_of_taps()])


@SAMPLED
@pytest.mark.parametrize("case", TABLE.cases, ids=str)
def test_resize(case):
    TABLE.check(case)


@SAMPLED
@pytest.mark.parametrize("case", GRIDS.cases, ids=str)
def test_grid(case):
    GRIDS.check(case)


@SAMPLED
@pytest.mark.parametrize("case", TAPS.cases, ids=str)
def test_taps(case):
    TAPS.check(case)
