"""Interpolation in every type of image: the pixels, weights and roundings of torch."""

import numpy as np
import pytest

import weft
from weft.relax.frontend.torch.interpolation import fixed_point, nearest_places

pytestmark = pytest.mark.sampled(3)

torch = pytest.importorskip("torch")
F = torch.nn.functional


class Resized(torch.nn.Module):
    """Resizes images, each in its own way: one way for each."""

    def __init__(self, *ways):
        super().__init__()
        self.ways = ways

    def forward(self, *images):
        resized = [F.interpolate(x, **way) for x, way in zip(images, self.ways, strict=True)]
        return tuple(resized)


def resized(images, *ways):
    """(weft's, torch's) for each image; one model resizes them all."""
    model = Resized(*ways)
    ours = weft.compile(model, tuple(images), cache=False)(*images)
    return [(torch.as_tensor(got), want) for got, want in zip(ours, model(*images), strict=True)]


def ran(x, **options):
    return resized([x], options)[0]


WAYS = [
    {"mode": mode, "antialias": antialias, "align_corners": corners}
    for mode in ("bilinear", "bicubic") for antialias in (False, True) for corners in (False, True)
]  # fmt: skip
SIZES = [{"size": (13, 5)}, {"size": (9, 17)}, {"scale_factor": (1.7, 0.6)}]


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_uint8_is_rounded_as_in_torch(way):
    torch.manual_seed(0)
    images, ways = [], []
    for size in SIZES:
        x = torch.randint(0, 256, (1, 3, 9, 11), dtype=torch.uint8)
        images += [x, torch.where(x < 128, 0, 255).to(torch.uint8)]
        ways += [{**way, **size}] * 2
    for got, want in resized(images, *ways):
        torch.testing.assert_close(got, want, rtol=0, atol=0)


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_float64_is_computed_in_float64(way):
    torch.manual_seed(0)
    small = [torch.randn(1, 2, 9, 11, dtype=torch.float64) for _ in SIZES]
    ways = [{**way, **size} for size in SIZES]
    results = resized([*small, *[x * 1e300 for x in small]], *ways, *ways)
    for got, want in results[: len(small)]:
        torch.testing.assert_close(got, want, rtol=1e-13, atol=1e-14)
    for got, want in results[len(small) :]:
        torch.testing.assert_close(got, want, rtol=1e-12, atol=1e287)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("way", [WAYS[0], WAYS[4]], ids=str)
def test_16_bit_floats_are_rounded_once(way, dtype):
    torch.manual_seed(0)
    ways = [{**way, **size} for size in (*SIZES, {"scale_factor": 2.0})]
    images = [torch.randn(1, 2, 9, 11).to(dtype) for _ in ways]
    for (got, _), x, options in zip(resized(images, *ways), images, ways, strict=True):
        exact = F.interpolate(x.double(), **options)
        assert got.dtype == dtype
        torch.testing.assert_close(
            got.double(), exact, rtol=0.51 * torch.finfo(dtype).eps, atol=1e-6
        )


def test_infinity_reaches_its_neighbours_alone():
    x = torch.ones(1, 1, 9, 11)
    x[0, 0, 4, 5] = torch.inf
    for way in WAYS[:6:4]:
        got, want = ran(x, scale_factor=(1.7, 0.6), **way)
        torch.testing.assert_close(got, want, equal_nan=True)


KEPT = [("linear", (5,)), ("bilinear", (5, 6)), ("bilinear", (5, 20)), ("trilinear", (3, 4, 5))]


@pytest.mark.parametrize(("mode", "extents"), KEPT, ids=str)
def test_an_axis_that_keeps_its_extent_is_copied(mode, extents):
    """Also by a factor of 1.1, whose positions would leave it: 5 * 1.1 -> 5. Cubic moves."""
    torch.manual_seed(0)
    x = torch.randn(1, 2, *extents)
    got, want = ran(x, scale_factor=1.1, mode=mode)
    torch.testing.assert_close(got, want)
    if want.shape == x.shape:
        got, _ = ran(torch.where(x > 1, torch.inf, x), scale_factor=1.1, mode=mode)
        assert torch.equal(got, torch.where(x > 1, torch.inf, x))


COUNTS = [(8, 376), (8, 436), (2, 110), (10, 4), (3, 12), (5, 10), (6, 6)]


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.uint8])
def test_nearest_takes_the_pixel_of_torch(mode, dtype):
    images, ways = [], []
    for extent, count in COUNTS:
        x = torch.arange(extent).to(dtype)
        images += [x.reshape(1, 1, -1), x.reshape(1, 1, 1, -1)]
        ways += [{"size": count, "mode": mode}, {"size": (1, count), "mode": mode}]
    for got, want in resized(images, *ways):
        torch.testing.assert_close(got, want, rtol=0, atol=0)


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact"])
@pytest.mark.parametrize("factor", [2.0, 47.0, 1.1, 0.3])
def test_nearest_by_a_factor_takes_the_pixel_of_torch(mode, factor):
    for rank in (1, 2):
        x = torch.arange(9.0).reshape(*[1] * (rank + 1), 9)
        factors = (1.0,) * (rank - 1) + (factor,)
        got, want = ran(x, scale_factor=factors, mode=mode)
        torch.testing.assert_close(got, want, rtol=0, atol=0)


@pytest.mark.parametrize("factor", [2.0, 47.0])
@pytest.mark.parametrize("mode", ["nearest", "nearest-exact"])
def test_nearest_of_symbolic_extents_takes_the_pixel_of_torch(mode, factor):
    model = Resized({"scale_factor": factor, "mode": mode})
    n = torch.export.Dim("n", min=2, max=64)
    compiled = weft.compile(
        model, (torch.arange(8.0).reshape(1, 1, 8),), dynamic_shapes=(({2: n},),), cache=False
    )
    for extent in (8, 13, 31):
        x = torch.arange(float(extent)).reshape(1, 1, -1)
        torch.testing.assert_close(torch.as_tensor(compiled(x)[0]), model(x)[0], rtol=0, atol=0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_nearest_of_symbolic_images_takes_the_pixel_of_torch(dtype):
    """Images up to 128 (height and width together) have another rounding than larger ones."""
    modes = ("nearest", "nearest-exact")
    ways = [{"size": (1, 110), "mode": mode} for mode in modes]
    ways += [{"size": (1, 436), "mode": mode} for mode in modes]
    ways += [{"scale_factor": (1, 27.5), "mode": mode} for mode in modes]
    model, width = Resized(*ways), torch.export.Dim("width", min=2, max=64)
    images = [torch.arange(8, dtype=dtype).reshape(1, 1, 1, 8)] * len(ways)
    dims = ({3: width},) * len(ways)
    compiled = weft.compile(model, tuple(images), dynamic_shapes=(dims,), cache=False)
    for extent in (2, 3, 8, 13):
        images = [torch.arange(extent, dtype=dtype).reshape(1, 1, 1, extent)] * len(ways)
        for got, want in zip(compiled(*images), model(*images), strict=True):
            torch.testing.assert_close(torch.as_tensor(got), want, rtol=0, atol=0)


@pytest.mark.parametrize("kind", ["nearest", "exact"])
@pytest.mark.parametrize(
    ("dtype", "rank"),
    [("float32", 1), ("float32", 2), ("float32", 3), ("uint8", 2), ("float64", 1), ("float64", 2),
     ("float64", 3)],
)  # fmt: skip
def test_table_of_nearest_places(kind, dtype, rank):
    rng = np.random.default_rng(0)
    mode = "nearest" if kind == "nearest" else "nearest-exact"
    for extent, count in rng.integers(1, [30, 600], (300, 2)).tolist():
        x = torch.arange(extent).to(getattr(torch, dtype)).reshape(*[1] * (rank + 1), extent)
        want = F.interpolate(x, size=(1,) * (rank - 1) + (count,), mode=mode).reshape(-1).int()
        image = count + 1 if rank == 2 else None
        got = nearest_places((extent, count, None), kind, dtype, image)
        assert want.tolist() == got.tolist(), (extent, count)


def test_tables():
    assert nearest_places((8, 376, None), "nearest", "float32", 377)[47] == 0
    assert nearest_places((8, 376, None), "nearest", "float64")[47] == 1
    weights, bits = fixed_point(np.array([[-0.1, 1.1]]))
    assert bits == 14
    assert weights.tolist() == [[-1638, 18022]]


BY_FACTOR = [
    {"scale_factor": 1.7, "mode": "bicubic"},
    {"scale_factor": (0.6, 2.3), "mode": "nearest-exact"},
    {"scale_factor": 0.75, "mode": "bilinear", "recompute_scale_factor": True},
]
FURTHER = [
    {"size": (7, 9), "mode": "bicubic", "antialias": True},
    {"scale_factor": (0.6, 2.3), "mode": "nearest"},
    {"scale_factor": (0.7, 1.3), "mode": "nearest", "recompute_scale_factor": True},
    {"scale_factor": 1.1, "mode": "bilinear"},
    {"scale_factor": 1.1, "mode": "nearest"},
    {"scale_factor": 1.7, "mode": "bilinear", "align_corners": True},
    {"size": (7, 9), "mode": "bilinear", "antialias": True, "align_corners": True},
    {"scale_factor": (0.6, 1.7), "mode": "bilinear", "antialias": True},
]


def check_symbolic_extents(dtype, ways, tolerance):
    """Batch, height and width are symbols."""
    torch.manual_seed(0)
    dims = {0: torch.export.Dim("batch"), 2: torch.export.Dim("height", min=5, max=512)}
    dims[3] = torch.export.Dim("width", min=5, max=512)
    model = Resized(*ways)

    def images(*shape):
        return [(torch.rand(shape) * 255).to(dtype) for _ in ways]

    compiled = weft.compile(
        model,
        tuple(images(2, 3, 12, 14)),
        dynamic_shapes=((dims,) * len(ways),),
        relax_pipeline="unscheduled",
        cache=False,
    )
    for shape in [(1, 3, 5, 8), (3, 3, 37, 20), (2, 3, 9, 100)]:
        drawn = images(*shape)
        for got, want, way in zip(compiled(*drawn), model(*drawn), ways, strict=True):
            allowed = 0 if "nearest" in way["mode"] else tolerance
            text = f"{way} of {shape}: {{}}"
            torch.testing.assert_close(
                torch.as_tensor(got), want, rtol=allowed, atol=allowed * 255, msg=text.format
            )


def test_symbolic_batch_height_and_width():
    """Extents are ``int(size * factor)`` in float64: 100 * 2.3 is 229.999..."""
    check_symbolic_extents(torch.float32, BY_FACTOR, 1e-4)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("dtype", "ways", "tolerance"),
    [
        (torch.float32, FURTHER, 1e-4),
        (torch.float64, [*BY_FACTOR[::2], *FURTHER], 1e-12),
        (torch.uint8, [*BY_FACTOR[::2], *FURTHER], 0),
    ],
    ids=["float32", "float64", "uint8"],
)
def test_symbolic_extents_of_images(dtype, ways, tolerance):
    check_symbolic_extents(dtype, ways, tolerance)


class Branching(torch.nn.Module):
    """Branches over a tensor of ``int(n * 1.7)`` elements, and branches that make one."""

    def forward(self, x):
        longer = F.interpolate(x, scale_factor=1.7, mode="linear")

        def summed(y):
            return F.interpolate(y, scale_factor=1.7, mode="nearest").sum(2)

        first = torch.cond(x.sum() > 0, lambda y: y.sum(2), lambda y: -y.sum(2), (longer,))
        second = torch.cond(x.sum() > 0, summed, lambda y: summed(y) * 2, (x,))
        return first, second, longer


def test_extents_by_a_factor_in_branches():
    model, length = Branching(), torch.export.Dim("length", min=5)
    compiled = weft.compile(
        model,
        (torch.ones(1, 2, 8),),
        dynamic_shapes=({2: length},),
        relax_pipeline="unscheduled",
        cache=False,
    )
    for x in (torch.arange(20.0).reshape(1, 2, 10), -torch.ones(1, 2, 100)):
        for got, want in zip(compiled(x), model(x), strict=True):
            torch.testing.assert_close(torch.as_tensor(got), want, rtol=1e-4, atol=1e-4)
