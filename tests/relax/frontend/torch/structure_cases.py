"""Tables of calls: overload, arguments and keywords, by family; tensors from short descriptions."""

from __future__ import annotations

import torch

from tests.lib.aten_samples import Call
from weft.relax.frontend.torch.fallback import find_overload

TYPES = {"float32": torch.float32, "float16": torch.float16, "int64": torch.int64,
         "bool": torch.bool}  # fmt: skip


def numbers(shape, dtype="float32"):
    """Some numbers of both signs; the same for the same shape."""
    count = torch.Size(shape).numel()
    values = (torch.arange(count) * 37 % 23 - 11).reshape(shape)
    if dtype == "bool":
        return values > 0
    return (values / 4).to(TYPES[dtype]) if dtype.startswith("float") else values.to(TYPES[dtype])


def call(name, *args, **kwargs):
    """A call of an overload by its name."""
    return Call(find_overload(f"aten.{name}"), args, kwargs)


def places(*values):
    """A tensor of int64."""
    return torch.tensor(list(values) if len(values) != 1 else values[0])


def views(dtype):
    """Calls of views, for tensors of 0 to 4 dimensions, extents of 0 and 1 among them."""
    x, scalar, empty, thin = (numbers(shape, dtype) for shape in ((2, 3, 4), (), (0, 3), (1, 3, 1)))
    return [
        call("view.default", x, [4, -1]), call("view.default", scalar, [1, 1]),
        call("view.default", empty, [3, 0]), call("reshape.default", x.transpose(0, 1), [6, 4]),
        call("flatten.using_ints", x, 1, 2), call("flatten.using_ints", scalar),
        call("unflatten.int", x, 2, [2, 2]), call("_unsafe_view.default", x, [24]),
        call("permute.default", x, [2, 0, -2]), call("permute.default", scalar, []),
        call("transpose.int", x, 0, -1), call("transpose.int", scalar, 0, -1),
        call("t.default", empty), call("t.default", numbers((3,), dtype)),
        call("expand.default", thin, [2, -1, 5]), call("expand.default", scalar, [2, 3]),
        call("expand.default", thin, [0, 3, 1]),
        call("squeeze.default", thin), call("squeeze.dim", thin, 0), call("squeeze.dim", thin, 1),
        call("squeeze.dim", scalar, 0), call("squeeze.dims", thin, [0, 2]),
        call("unsqueeze.default", scalar, 0), call("unsqueeze.default", x, -2),
        call("repeat.default", x, [2, 1, 1, 2]), call("repeat.default", x, [0, 1, 1]),
        call("repeat.default", scalar, []), call("tile.default", x, [2]),
        call("flip.default", x, [0, -1]), call("flip.default", scalar, []),
        call("flip.default", empty, [0]),
        call("roll.default", x, [1, -5], [0, 2]), call("roll.default", x, [7]),
        call("roll.default", scalar, [1]), call("roll.default", empty, [1], [0]),
        call("alias.default", x), call("detach.default", x),
    ]  # fmt: skip


def strided(dtype):
    """Calls of views by strides."""
    x, y = numbers((5, 6), dtype), numbers((2, 3, 4), dtype)
    return [
        call("as_strided.default", x, [3, 3], [1, 2], 2),
        call("as_strided.default", x.t(), [2, 5], [6, 1]),
        call("as_strided.default", numbers((), dtype), [2, 2], [0, 0]),
        call("as_strided_scatter.default", x, numbers((2, 2), dtype), [2, 2], [7, 1], 3),
        call("unfold.default", x, 1, 3, 2), call("unfold.default", y, -3, 2, 1),
        call("unfold.default", numbers((), dtype), 0, 1, 1),
        call("diagonal.default", x), call("diagonal.default", y, -1, 0, 2),
        call("diagonal.default", x, 9), call("diagonal.default", y, 2, 2, 1),
        call("diag_embed.default", x, 1), call("diag_embed.default", y, -2, 0, 2),
        call("diagonal_scatter.default", x, numbers((5,), dtype), 1),
        call("diagonal_scatter.default", x, numbers((3,), dtype), -2),
    ]  # fmt: skip


def joins(dtype):
    """Calls that put tensors together and take them apart."""
    x, scalar, empty = (numbers(shape, dtype) for shape in ((5, 3), (), (0,)))
    return [
        call("cat.default", [x, empty, x], 1), call("cat.default", [empty, empty]),
        call("cat.default", [x, numbers((5, 3), "int64")], -1), call("cat.default", [x]),
        call("stack.default", [x, x], -1), call("stack.default", [x, x, x], 1),
        call("stack.default", [scalar, scalar]), call("stack.default", [empty, empty]),
        call("split.Tensor", x, 2), call("split.Tensor", x, 9, 1),
        call("split_with_sizes.default", x, [0, 2, 3]),
        call("split_with_sizes.default", x, [1, 2], -1),
        call("chunk.default", x, 2), call("unbind.int", x), call("unbind.int", x, -1),
        call("tensor_split.sections", x, 3),
    ]  # fmt: skip


def gathering(dtype):
    """Calls that choose slices and elements."""
    x, y, scalar = (numbers(shape, dtype) for shape in ((5, 6), (5, 6, 7), ()))
    table = places([[0, 4, 2], [1, 1, 3]])
    mask = torch.tensor([True, False, True, True, False])
    return [
        call("slice.Tensor", x, 0, 1, 4, 2), call("slice.Tensor", x, -1, -3),
        call("slice.Tensor", x, 0, 3, 2), call("slice.Tensor", x),
        call("narrow.default", x, 1, -4, 3), call("select.int", x, 0, -1),
        call("select.int", y, -1, 3), call("index_select.default", x, 1, places(2, 0, 2)),
        call("index_select.default", scalar, 0, places(0)),
        call("index_select.default", x, 0, torch.zeros(0, dtype=torch.int64)),
        call("embedding.default", x, table),
        call("gather.default", x, 0, table), call("gather.default", x, -1, table),
        call("gather.default", scalar, 0, torch.tensor(0)),
        call("gather.default", x, 0, torch.zeros(0, dtype=torch.int64)),
        call("take.default", x, places([[-1, 3], [2, 29]])),
        call("index.Tensor", x, [places(0, -1), places(1, 2)]),
        call("index.Tensor", y, [None, table.clamp(max=5)]),
        call("index.Tensor", y, [places([0, -1]), None, places([[1], [2]])]),
        call("index.Tensor", y, [None, places([0, -1]), places([[1], [2]])]),
        call("index.Tensor", x, [torch.tensor(2)]), call("index.Tensor", x, [mask]),
        call("index.Tensor", y, [None, None, mask[[0, 1, 2, 3, 4, 0, 1]]]),
        call("index.Tensor", x, [x > 0] if dtype != "bool" else [x]),
        call("index.Tensor", x, [torch.zeros(5, dtype=torch.bool)]),
        call("nonzero.default", x), call("nonzero.default", scalar),
        call("nonzero.default", numbers((0, 3), dtype)),
        call("masked_select.default", x, torch.tensor([True, False] * 3)),
        call("masked_select.default", x, torch.tensor(False)),
    ]  # fmt: skip


def scattering(dtype):
    """Calls that write slices and elements."""
    x, y, src, scalar = (numbers(shape, dtype) for shape in ((5, 6), (5, 6, 7), (3, 4), ()))
    table, one = places([[0, 4, 2], [1, 1, 3]]), torch.tensor([[0, 0], [1, 2]])
    mask = torch.tensor([True, False, True, True, False])
    value = True if dtype == "bool" else 3
    return [
        call("scatter.src", x, 0, table, src), call("scatter.src", x, -1, one, src),
        call("scatter.value", x, 1, table, value), call("scatter.value", scalar, 0, places(0),
                                                        value),
        call("scatter.src", x, 0, torch.zeros((0, 4), dtype=torch.int64), src),
        call("scatter_add.default", x, 0, table, src),
        call("index_copy.default", x, 1, places(0, 2, 3), numbers((5, 3), dtype)),
        call("index_add.default", y, 1, places(0, 2, 2), numbers((5, 3, 7), dtype)),
        call("index_fill.int_Scalar", x, 1, places(0, 2), value),
        call("index_fill.int_Scalar", scalar, 0, places([0]), value),
        call("index_fill.int_Tensor", x, 0, places(0, 2), numbers((), dtype)),
        call("index_put.default", x, [places(0, 1), places(1, -2)], numbers((2,), dtype)),
        call("index_put.default", y, [None, places(0, 3)], numbers((5, 2, 7), dtype)),
        call("index_put.default", y, [places(0, 1), None, places(1, 2)], numbers((6,), dtype)),
        call("index_put.default", y, [mask], numbers((7,), dtype)),
        call("index_put.default", y, [mask], numbers((3, 6, 7), dtype)),
        call("index_put.default", x, [torch.ones_like(x, dtype=torch.bool)], scalar),
        call("masked_scatter.default", x, torch.tensor([True, False] * 3), numbers((30,), dtype)),
        call("slice_scatter.default", x, numbers((5, 2), dtype), 1, 1, -1, 2),
        call("slice_scatter.default", x, numbers((0, 6), dtype), 0, 4, 2),
        call("slice_scatter.default", x, x.flip(0)),
        call("select_scatter.default", x, numbers((5,), dtype), 1, -1),
        call("put.default", x, places(1, -2), numbers((2,), dtype)),
    ]  # fmt: skip


def accumulating(dtype):
    """Calls that combine with what stands there."""
    x, src = numbers((5, 6), dtype), numbers((3, 4), dtype)
    table = places([[0, 4, 2], [1, 1, 3]])
    made = [
        call("scatter_reduce.two", x, 0, table, src, how, include_self=itself)
        for how in ("sum", "prod", "amax", "amin", "mean") for itself in (True, False)
    ]  # fmt: skip
    return [
        *made, call("scatter.reduce", x, 0, table, src, reduce="multiply"),
        call("scatter.value_reduce", x, 0, table, 2, reduce="add"),
        call("index_add.default", x, 1, places(0, 2, 2), numbers((5, 3), dtype), alpha=2),
        call("index_put.default", x, [places(1, 1), places(2, 2)], numbers((2,), dtype), True),
        call("put.default", x, places(1, 1), numbers((2,), dtype), True),
        call("index_reduce.default", x, 0, places(1, 1, 3), numbers((3, 6), dtype), "amax"),
    ]  # fmt: skip


def products(dtype):
    """Calls of products of matrices and vectors."""
    x, y, v = (numbers(shape, dtype) for shape in ((2, 4), (4, 3), (4,)))
    batch, other = numbers((5, 2, 4), dtype), numbers((5, 4, 3), dtype)
    return [
        call("mm.default", x, y), call("bmm.default", batch, other), call("mv.default", x, v),
        call("dot.default", v, v), call("mm.default", numbers((0, 4), dtype), y),
        call("mm.default", numbers((2, 0), dtype), numbers((0, 3), dtype)),
        call("matmul.default", batch, y), call("matmul.default", v, y),
        call("addmm.default", numbers((3,), dtype), x, y, beta=2, alpha=3),
        call("addmm.default", numbers((2, 3), dtype), x, y, beta=0),
        call("baddbmm.default", numbers((2, 3), dtype), batch, other, beta=2),
        call("addbmm.default", numbers((2, 3), dtype), batch, other),
        call("addmv.default", numbers((2,), dtype), x, v, alpha=2),
        call("addr.default", numbers((2, 3), dtype), numbers((2,), dtype), numbers((3,), dtype)),
        call("outer.default", v, numbers((3,), dtype)),
        call("einsum.default", "b i j, b j k -> b i k", [batch, other]),
        call("linear.default", x, y.t().contiguous(), numbers((3,), dtype)),
    ]  # fmt: skip
