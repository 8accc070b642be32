"""Layout rules of operators that compute: element-wise operators, reductions, norms."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from weft.ir.expr import RelaxExpr
from weft.ir.traits import Trait
from weft.relax.expr import Constant, const
from weft.relax.transform.layout.layouts.order import AxisOrder, Order, identity
from weft.relax.transform.layout.layouts.rule import LAYOUTS, Answer, Request


@LAYOUTS.of(Trait.ELEMENTWISE)
def broadcasting(request: Request) -> Answer:
    """All operands get one order.

    It is chosen among the operands of the lowest rank, since the axes that those lack come before
    all others. An operand of unknown shape wins, since it may be impossible to split; then the
    order that most operands have; then the one with the most stored dimensions; then the first.
    Scalars have no say. An axis can only be split in all operands, so it is not split if one of
    them has the extent 1 there.
    """
    operands = [
        (order, request.dims(index))
        for index, order in enumerate(request.have)
        if isinstance(order, AxisOrder) and order.ndim
    ]
    if not operands:
        return Answer(list(request.have), identity(0))
    if len(operands) == 1:
        return Answer(list(request.have), operands[0][0])
    ndims = [order.ndim for order, _ in operands]
    lowest, highest = min(ndims), max(ndims)
    deciding = [(order, dims) for order, dims in operands if order.ndim == lowest]
    votes = Counter(order for order, _ in deciding)
    chosen, _ = max(deciding, key=lambda o: (o[1] is None, votes[o[0]], len(o[0].axes)))
    if lowest != highest and chosen.is_blocked:
        chosen = identity(lowest)
    if not all(chosen.divides(dims) for _, dims in operands):
        unsplit = (order for order, _ in deciding if not order.is_blocked)
        chosen = next(unsplit, identity(lowest))
    inputs: list[Order] = [
        chosen.below(order.ndim) if isinstance(order, AxisOrder) and order.ndim else order
        for order in request.have
    ]
    return Answer(inputs, chosen.below(highest))


def of_equal_ranks(args: Sequence[RelaxExpr], orders: Sequence[Order]) -> list[RelaxExpr]:
    """The operands of ``broadcasting``, with constants reshaped to the highest rank.

    A bias of shape ``(64,)`` beside channels last becomes ``(1, 1, 1, 64)``; with fewer axes it
    would keep its operator from working on blocks of channels. A constant of one element becomes a
    scalar. Nothing changes if all operands are stored in the program's order.
    """
    known = [order for order in orders if isinstance(order, AxisOrder)]
    if all(order.is_identity for order in known):
        return list(args)
    highest = max(order.ndim for order in known)
    return [_of_rank(arg, highest) if isinstance(arg, Constant) else arg for arg in args]


def _of_rank(constant: Constant, rank: int) -> Constant:
    data = constant.data.numpy()
    if not 0 < data.ndim < rank:
        return constant
    ones = (1,) * (rank - data.ndim)
    return const(data.reshape(() if data.size == 1 else (*ones, *data.shape)))


@LAYOUTS.of(Trait.REDUCTION)
def reduction(request: Request) -> Answer | None:
    """The axes that are left, in the order in which they are stored."""
    axis, keepdims, order = request.attrs["axis"], request.attrs["keepdims"], request.data
    axes = [a % order.ndim for a in (range(order.ndim) if axis is None else axis)]
    if keepdims and any(a in axes for a, _ in order.blocks()):
        order = request.unsplit
    stored = [place for place, (a, _) in enumerate(order.axes) if a in axes]
    output = order if keepdims else order.without(axes)
    return Answer([order], output, {"axis": stored})


@LAYOUTS.of("argmax", "argmin")
def arg_reduction(request: Request) -> Answer | None:
    """A reduction of one axis; without an axis the result is an index into the flat tensor, which
    needs the program's order.
    """
    axis, order = request.attrs["axis"], request.unsplit
    if axis is None:
        return None
    output = order if request.attrs["keepdims"] else order.without([axis % order.ndim])
    return Answer([order], output, {"axis": order.position(axis)})


@LAYOUTS.of(Trait.ALONG_AXIS)
def along_axis(request: Request) -> Answer | None:
    """The order of the data stays; the axis becomes a stored position."""
    if request.attrs["axis"] is None:
        return None
    order = request.unsplit
    return Answer([order], order, {"axis": order.position(request.attrs["axis"])})


@LAYOUTS.of("nn.prelu")
def prelu(request: Request) -> Answer:
    """The order of the data stays; the slopes belong to one axis."""
    order = request.unsplit
    axis = order.position(request.attrs["axis"])
    return Answer([order, request.have[1]], order, {"axis": axis})


@LAYOUTS.of("nn.batch_norm")
def batch_norm(request: Request) -> Answer:
    """The order of the data stays; scale, shift and statistics belong to one axis."""
    order, stats = request.unsplit, [identity(1)] * 4
    attrs = {"axis": order.position(request.attrs["axis"])}
    return Answer([order, *stats], (order, identity(1), identity(1)), attrs)


@LAYOUTS.of("nn.layer_norm", "nn.rms_norm")
def axes_norm(request: Request) -> Answer | None:
    """The order of the data stays if the normalised axes, which scale and shift have too, are
    stored in the program's order.
    """
    normalised = [axis % request.data.ndim for axis in request.attrs["axes"]]
    is_cut = any(axis in normalised for axis, _ in request.data.blocks())
    order = request.unsplit if is_cut else request.data
    axes = [order.position(axis) for axis in normalised]
    if axes != sorted(axes):
        return None
    params = [_plain(other) for other in request.have[1:]]
    return Answer([order, *params], order, {"axes": axes})


@LAYOUTS.of("nn.group_norm", "nn.instance_norm")
def channel_norm(request: Request) -> Answer:
    """The order of the data stays; scale and shift belong to the axis of channels."""
    order = request.unsplit
    attrs = {
        "channel_axis": order.position(request.attrs["channel_axis"]),
        "axes": [order.position(axis) for axis in request.attrs["axes"]],
    }
    return Answer([order, *[_plain(other) for other in request.have[1:]]], order, attrs)


def _plain(order: Order) -> Order:
    return identity(order.ndim) if isinstance(order, AxisOrder) else order
