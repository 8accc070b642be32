"""Random operators for default schedules: every kind that a CPU's schedules have a program for.

Each kind draws its sizes so that tiles, vectors, bands and parts divide them or not; a size is 1
now and then, 0 rarely, and symbolic in some products, rows and chains. The machine is drawn too:
width of vectors, cores, and caches so small that what is cut for them is cut here.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from weft import te, topi
from weft.backends.cpu.schedules import Default, Winograd
from weft.dlight.apply import scheduled
from weft.target.target import Target
from weft.te.primfunc import LAYOUT_FREE_BUFFERS
from weft.testing.schedules import assert_same_in_place, assert_same_meaning
from weft.tir.function import PrimFunc
from weft.topi.nn.attention import masked_attention
from weft.topi.nn.convolution_blocked import conv_blocked
from weft.topi.nn.winograd import winograd_function
from weft.topi.nn.winograd_form import BATCH, HEIGHT, WIDTH, Form
from weft.topi.scan import running_extreme

SIZES: Final = (1, 2, 3, 4, 5, 7, 8, 9, 12, 13, 16, 17, 19, 23)
SMALL: Final = (1, 2, 3, 4, 5)


@dataclass(frozen=True)
class Operator:
    """A function, the processor to schedule it for, and what its symbolic sizes are."""

    func: PrimFunc
    target: Target
    sizes: dict[str, int]


class _Draw:
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.sizes: dict[str, int] = {}

    def one_of(self, items: Sequence[Any]) -> Any:
        return self.random.choice(items)

    def size(self) -> int:
        return 0 if self.random.random() < 0.01 else self.random.choice(SIZES)

    def any_size(self) -> Any:
        """A constant, or now and then a symbol."""
        if len(self.sizes) > 1 or self.random.random() < 0.85:
            return self.size()
        name = f"n{len(self.sizes)}"
        self.sizes[name] = self.size()
        return te.var(name, "int64")

    def input(self, name: str, *shape: Any, dtype: str = "float32") -> Any:
        return te.placeholder(shape, dtype, name)

    def followed(self, tensors: list[Any]) -> list[Any]:
        """The same, with what an epilogue may be computed of the result."""
        *given, result = tensors
        if self.random.random() < 0.4:
            result = topi.nn.relu(result)
        if self.random.random() < 0.3:
            other = self.input("other", *result.shape, dtype=str(result.dtype))
            given, result = [*given, other], topi.add(result, other)
        return [*given, result]


def _product(d: _Draw) -> list[Any]:
    m, n, k = d.any_size(), d.any_size(), d.size()
    batch = d.one_of([(), (), (2,), (3, 2)])
    turned = d.random.random() < 0.5, d.random.random() < 0.5
    a = d.input("A", *batch, *((k, m) if turned[0] else (m, k)))
    b = d.input("B", *batch, *((n, k) if turned[1] else (k, n)))
    return d.followed([a, b, topi.nn.matmul(a, b, None, None, *turned)])


def _product_of_bytes(d: _Draw) -> list[Any]:
    m, n, k = d.size(), d.size(), d.size()
    kinds = d.one_of([("uint8", "int8"), ("int8", "int8"), ("int16", "int16")])
    a, b = d.input("A", m, k, dtype=kinds[0]), d.input("B", k, n, dtype=kinds[1])
    r = te.reduce_axis((0, k), "k")
    return [a, b, te.compute(
        (m, n),
        lambda i, j: te.sum(a[i, r].astype("int32") * b[r, j].astype("int32"), axis=r), name="C",
    )]  # fmt: skip


def _matrix_by_vector(d: _Draw) -> list[Any]:
    n, k, turned = d.any_size(), d.size() * d.one_of([1, 1, 30]), d.random.random() < 0.3
    a, b = d.input("A", *((k, n) if turned else (n, k))), d.input("B", k)
    return d.followed([a, b, topi.matmul(topi.transpose(a) if turned else a, b)])


def _window(d: _Draw) -> tuple[int, tuple[Any, Any, Any]]:
    """A kernel's side; strides, padding, dilation, which leave a window to the smallest image."""
    side = d.one_of([1, 2, 3, 3])
    spread = 1 if side > 2 else d.one_of([1, 1, 2])
    return side, (d.one_of([1, 1, 2, (2, 1)]), d.one_of([0, 1, 1, (0, 1, 1, 0)]), spread)


def _image(d: _Draw) -> tuple[int, int]:
    return d.one_of((3, 4, 5, 7)), d.one_of((3, 5, 6, 8, 13))


def _convolution(d: _Draw) -> list[Any]:
    side, options = _window(d)
    groups, last = d.one_of([1, 1, 2, 3]), d.random.random() < 0.3
    depth, filters, (height, width) = d.one_of(SMALL), d.one_of((1, 3, 5, 8)) * groups, _image(d)
    batch, channels = d.one_of([1, 1, 2]), depth * groups
    x = d.input("x", *((batch, height, width, channels) if last
                       else (batch, channels, height, width)))  # fmt: skip
    w = d.input("w", *((side, side, depth, filters) if last else (filters, depth, side, side)))
    layouts = ("NHWC", "HWIO") if last else ("NCHW", "OIHW")
    return d.followed([x, w, topi.nn.conv(x, w, *options, groups, *layouts)])


def _blocked_convolution(d: _Draw) -> list[Any]:
    side, options = _window(d)
    a, b, (height, width) = d.one_of([1, 4, 6]), d.one_of([4, 8, 16, 12]), _image(d)
    blocks, filters = d.one_of([1, 2]), d.one_of([1, 1, 2])
    x = d.input("x", d.one_of([1, 1, 2]), blocks, height, width, a)
    w = d.input("w", filters, blocks, side, side, a, b)
    layouts = (f"NCHW{a}c", f"OIHW{a}i{b}o", f"NCHW{b}c")
    made = conv_blocked(x, w, *options, 1, layouts)
    return d.followed([x, w, made])


def _depthwise(d: _Draw) -> list[Any]:
    side, options = _window(d)
    channels, (height, width) = d.one_of(SMALL), _image(d)
    if d.random.random() < 0.5:
        x, w = d.input("x", 1, channels, height, width), d.input("w", channels, 1, side, side)
        made = topi.nn.conv(x, w, *options, channels)
    else:
        block = d.one_of([4, 8, 6])
        x = d.input("x", 1, channels, height, width, block)
        w = d.input("w", channels, 1, side, side, block)
        layouts = (f"NCHW{block}c", f"OIHW{block}o", f"NCHW{block}c")
        made = conv_blocked(x, w, *options, channels * block, layouts)
    return d.followed([x, w, made])


def _transposed_convolution(d: _Draw) -> list[Any]:
    depth, filters, side = d.one_of(SMALL), d.one_of((1, 3, 8)), d.one_of([2, 3])
    x = d.input("x", 1, depth, d.one_of(SMALL), d.one_of(SIZES[:8]))
    w = d.input("w", depth, filters, side, side)
    return d.followed([x, w, topi.nn.conv_transpose(x, w, d.one_of([1, 2, 3]), d.one_of([0, 1]))])


def _winograd(d: _Draw) -> PrimFunc:
    tile, a, b = d.one_of([2, 4]), d.one_of([4, 4, 8]), d.one_of([4, 8])
    panel = b * d.one_of([1, 2])
    padding = d.one_of([(1, 1, 1, 1), (0, 0, 0, 0), (1, 0, 0, 1), (0, 1, 1, 1)])
    data = (d.one_of([1, 2]), d.one_of([1, 2]), d.one_of([3, 4, 6]), d.one_of([3, 5]), a)
    shape = Form(tile, 1, padding, data, panel * d.one_of([1, 1, 2]), b, panel)
    rows = [n for n in range(1, shape.down + 1) if shape.down % n == 0]
    symbols = _symbols(d, data) if d.random.random() < 0.5 else frozenset()
    if symbols:
        sizes = {"rows": d.one_of([1, 2, 3, 6]), "groups": d.one_of([1, 2, 3])}
        form = replace(shape, symbols=symbols, **sizes)
    else:
        rows.append(data[0] * shape.down)
        form = replace(shape, rows=d.one_of(rows), takes_kernel=d.random.random() < 0.5)
    return winograd_function(form).with_attr("global_symbol", "main")


def _symbols(d: _Draw, data: Sequence[int]) -> frozenset[int]:
    """Axes that become symbolic, with sizes beside those that the form was chosen for."""
    names = {axis: name for axis, name in ((BATCH, "n"), (HEIGHT, "h"), (WIDTH, "w"))
             if d.random.random() < 0.5}  # fmt: skip
    for axis, name in names.items():
        d.sizes[name] = (
            d.one_of([0, 1, 2, 3]) if axis == BATCH else data[axis] + d.one_of([0, 1, 5])
        )
    return frozenset(names)


def _element_wise(d: _Draw) -> list[Any]:
    shape = [d.any_size() for _ in range(d.one_of([0, 1, 2, 3]))]
    x = d.input("x", *shape)
    part = [1 if d.random.random() < 0.4 else size for size in shape]
    y = d.input("y", *part[d.random.randrange(len(part) + 1) :])
    made = topi.add(d.one_of([topi.tanh, topi.exp, topi.nn.relu, topi.nn.gelu])(x), y)
    return d.followed([x, y, made])


def _reduction(d: _Draw) -> list[Any]:
    shape = [d.any_size() for _ in range(d.one_of([1, 2, 3]))]
    if d.random.random() < 0.2:
        shape[-1] = d.one_of([133, 530, 1030])
    x = d.input("x", *shape)
    axes = d.one_of([None, 0, len(shape) - 1, [0, len(shape) - 1]])
    if isinstance(axes, list):
        axes = sorted(set(axes))
    compute = d.one_of([_sum_of_sizes, topi.max, _sum_of_sizes, topi.min])
    return [x, compute(x, axes, d.random.random() < 0.3)]


def _sum_of_sizes(x: Any, axes: Any, keepdims: bool) -> Any:
    """A sum that is not near 0: there two orders of additions differ by much of what is left."""
    return topi.sum(topi.abs(x), axes, keepdims)


def _place_of_the_largest(d: _Draw) -> list[Any]:
    x = d.input("x", max(d.size(), 1), max(d.size(), 1) * d.one_of([1, 1, 50]), dtype="int32")
    return [x, d.one_of([topi.argmax, topi.argmin])(x, d.one_of([0, 1]))]


def _softmax(d: _Draw) -> list[Any]:
    x = d.input("x", *[d.any_size() for _ in range(d.one_of([1, 2, 3]))])
    return [x, d.one_of([topi.nn.softmax, topi.nn.log_softmax])(x, d.one_of([-1, -1, 0]))]


def _norm(d: _Draw) -> list[Any]:
    n, m, c = d.size(), d.size(), 2 * d.one_of(SMALL)
    kind = d.one_of(["layer", "rms", "group", "instance"])
    if kind in ("layer", "rms"):
        x, gamma, beta = d.input("x", n, m), d.input("gamma", m), d.input("beta", m)
        if kind == "rms":
            return [x, gamma, topi.nn.rms_norm(x, gamma, [1])]
        return [x, gamma, beta, topi.nn.layer_norm(x, gamma, beta, [1])]
    x, gamma, beta = d.input("x", 2, c, n, m), d.input("gamma", c), d.input("beta", c)
    if kind == "group":
        return [x, gamma, beta, topi.nn.group_norm(x, gamma, beta, 2, 1, [2, 3])]
    return [x, gamma, beta, topi.nn.instance_norm(x, gamma, beta, 1, [2, 3])]


def _movement(d: _Draw) -> list[Any]:
    shape = [d.size() for _ in range(d.one_of([2, 3, 4]))]
    x = d.input("x", *shape, dtype=d.one_of(["float32", "int8", "int64"]))
    axes = list(range(len(shape)))
    d.random.shuffle(axes)
    turned = topi.transpose(x, axes)
    kind = d.one_of(["plain", "pad", "concatenate", "reshape", "repeat"])
    if kind == "pad":
        return [x, topi.nn.pad(turned, [d.one_of([0, 1, 2]) for _ in shape])]
    if kind == "concatenate":
        return [x, topi.concatenate([turned, turned], d.random.randrange(len(shape)))]
    if kind == "reshape":
        return [x, topi.reshape(turned, [-1])]
    return [x, topi.repeat(turned, 3, len(shape) - 1) if kind == "repeat" else turned]


def _pool(d: _Draw) -> list[Any]:
    (height, width), layout = _image(d), d.one_of(["NCHW", "NHWC", "NCHWc"])
    shape = {
        "NCHW": (2, 3, height, width), "NHWC": (1, height, width, 5),
        "NCHWc": (1, 2, height, width, 4),
    }[layout]  # fmt: skip
    x = d.input("x", *shape)
    if d.random.random() < 0.2:
        return [x, topi.nn.adaptive_pool(x, (1, 1), d.one_of(["avg", "max"]), layout)]
    window, stride = d.one_of([(3, 3), (2, 2), (2, 3)]), d.one_of([(1, 1), (2, 2), (3, 2)])
    padding, kind = d.one_of([(0,) * 4, (1,) * 4, (0, 1, 1, 0)]), d.one_of(["max", "avg"])
    return d.followed([x, topi.nn.pool2d(x, window, stride, (1, 1), padding, kind, False, layout)])


def _rows_of_a_table(d: _Draw) -> list[Any]:
    x, count = d.input("x", max(d.size(), 1), max(d.size(), 1)), d.any_size()
    places = d.input("places", count, dtype="int64")
    return [x, places, topi.take(x, places, d.one_of([0, 0, 1]) if d.size() else 0)]


def _scan(d: _Draw) -> list[Any]:
    dtype = d.one_of(["int32", "int8", "int64"])
    x = d.input("x", *[d.size() for _ in range(d.one_of([1, 2, 3]))], dtype=dtype)
    axis = d.random.randrange(x.ndim)
    if d.random.random() < 0.3:
        return [x, *running_extreme(x, axis, d.one_of([True, False]))]
    return [x, topi.cumsum(x, axis, exclusive=d.one_of([True, False]))]


def _resize(d: _Draw) -> list[Any]:
    layout = d.one_of(["NCHW", "NHWC"])
    x = d.input("x", *((1, d.one_of(SMALL), *_image(d)) if layout == "NCHW"
                       else (1, *_image(d), d.one_of(SMALL))))  # fmt: skip
    mode = d.one_of(["half_pixel", "align_corners", "asymmetric"])
    method = d.one_of(["linear", "nearest_neighbor", "cubic"])
    return [x, topi.image.resize2d(
        x, None, (d.one_of(SIZES), d.one_of(SIZES)), layout, method, mode)]  # fmt: skip


def _attention(d: _Draw) -> list[Any]:
    owners, features = d.one_of([1, 2]), d.one_of([4, 5, 8])
    heads, length, keys = owners * d.one_of([1, 3]), d.size() or 1, d.size() or 1
    q = d.input("q", d.one_of([1, 2]), length, heads, features)
    k, v = [d.input(name, q.shape[0], keys, owners, features) for name in "kv"]
    if d.random.random() < 0.3:
        bias = d.input("bias", 1, 1, length, keys)
        return [q, k, v, bias, masked_attention(q, k, v, bias, None, None)]
    allowed = d.one_of([None, lambda i, j: j <= i])
    return [q, k, v, masked_attention(q, k, v, None, None, allowed)]


KINDS: Final[dict[str, Callable[[_Draw], Any]]] = {
    "product": _product, "product of bytes": _product_of_bytes,
    "matrix by vector": _matrix_by_vector, "convolution": _convolution,
    "blocked convolution": _blocked_convolution, "depthwise convolution": _depthwise,
    "transposed convolution": _transposed_convolution, "winograd": _winograd,
    "element-wise": _element_wise, "reduction": _reduction,
    "place of the largest": _place_of_the_largest, "softmax": _softmax, "norm": _norm,
    "movement": _movement, "pool": _pool, "rows of a table": _rows_of_a_table, "scan": _scan,
    "resize": _resize, "attention": _attention,
}  # fmt: skip


def random_operator(kind: str, seed: int) -> Operator:
    """The operator of a seed; the same one every time."""
    draw = _Draw(seed)
    made = KINDS[kind](draw)
    func = made if isinstance(made, PrimFunc) else te.create_prim_func(made)
    if len(func.params) > 2 and draw.random.random() < 0.3:
        func = func.with_attr(LAYOUT_FREE_BUFFERS, [1])
    bits, cores = draw.one_of([128, 128, 256, 512]), draw.one_of([1, 2, 3])
    caches = draw.one_of(["", " -l1d-cache-bytes=1024 -l2-cache-bytes=4096"])
    target = Target(f"llvm -vector-width={bits} -num-cores={cores}{caches}")
    return Operator(func, target, draw.sizes)


def problem_of(kind: str, seed: int) -> str | None:
    """What is wrong with the default schedule of an operator, and the operator; None if nothing.

    Its result is also written over the arguments that allow it.
    """
    made = random_operator(kind, seed)
    try:
        with made.target, warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)  # of a program that failed
            func = scheduled(made.func, (Winograd(), Default()))
        assert_same_meaning(made.func, func or made.func, made.sizes, seed=seed)
        assert_same_in_place(func or made.func, made.sizes, seed=seed)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is the finding
        what = f"{kind!r}, seed {seed}, for {made.target}, sizes {made.sizes}"
        return f"{what}: {type(error).__name__}: {error}\n{made.func.script()}"
    return None
