"""``recurrent_layer``: a recurrent layer with every option of ONNX (an operator of weft's own)."""

from __future__ import annotations

from collections.abc import Sequence

from weft.ir.expr import Extent
from weft.ir.node import expect
from weft.relax.expr import Call, Expr
from weft.relax.ir.shape_arith import differ, simplified
from weft.relax.op.definition import Exprs, Replacements, operator
from weft.relax.op.infer import (
    check_float,
    check_rank,
    common_dtype,
    dims_of,
    fail,
    integral,
    result,
    show_dims,
)
from weft.relax.op.lowering import dims
from weft.relax.op.nn.recurrent import operand_shapes
from weft.relax.op.reference.nn import recurrent_layer as reference
from weft.relax.op.requirements import Required
from weft.relax.struct_info import StructInfo, TensorStructInfo, TupleStructInfo
from weft.topi.nn.recurrent_layer import ACTIVATIONS, DEFAULTS, GATES
from weft.topi.nn.recurrent_layer import recurrent_layer as recurrent_layer_te


def _states(call: Call) -> list[TensorStructInfo]:
    """The infos of the hidden state, for an lstm of the cell state and the peepholes, and of the
    factors of int8 weights.
    """
    fields = expect(call.args[5].struct_info, TupleStructInfo).fields
    ranks = [2, 2, 1] if call.attrs["kind"] == "lstm" else [2]
    ranks += [1] * _has_factors(call)
    infos = [info for info in fields if isinstance(info, TensorStructInfo)]
    if [info.ndim for info in infos] != ranks or len(infos) != len(fields):
        given = [info.ndim for info in infos]
        fail(call, f"states: expected tensors of {ranks} dimensions, got {given}")
    return infos


def _has_factors(call: Call) -> bool:
    """Whether the weights of the state are small integers, whose rows have factors."""
    info = call.args[2].struct_info
    return isinstance(info, TensorStructInfo) and info.dtype == "int8"


def _check_activations(call: Call) -> None:
    attrs = call.attrs
    names, wanted = list(attrs["activations"]), len(DEFAULTS[attrs["kind"]])
    unknown = [name for name in names if name not in ACTIVATIONS]
    if unknown:
        known = ", ".join(ACTIVATIONS)
        fail(call, f"activations: expected some of {known}, got {unknown[0]!r}")
    for name in ("activations", "alphas", "betas"):
        if len(attrs[name]) != wanted:
            fail(call, f"{name}: expected {wanted} for {attrs['kind']}, got {len(attrs[name])}")


def infer_recurrent_layer(call: Call) -> StructInfo:
    """(outputs of all steps, last hidden state), and for an lstm the last cell state."""
    kind = call.attrs["kind"]
    if kind not in GATES:
        fail(call, f"kind: expected {', '.join(GATES)}, got {kind!r}")
    _check_activations(call)
    for name in ("quantize_state", "projected"):
        if kind == "gru" and call.attrs[name]:
            fail(call, f"{name}: expected False for a gru, whose reset gate scales the state")
    infos = [check_rank(call, index, rank) for index, rank in enumerate((3, 2, 2, 1, 1))]
    states = _states(call)
    floats = [info for index, info in enumerate(infos) if index != 2 or not _has_factors(call)]
    dtype = common_dtype(call, [*floats, *states])
    check_float(call, infos[0])
    if len(call.args) == 7:
        integral(call, 6)
        check_rank(call, 6, 1)
    data, recurrent = dims_of(infos[0]), dims_of(infos[2])
    count = 2 if kind == "lstm" else 1
    if data is None or recurrent is None:
        return TupleStructInfo([result(None, dtype, 3), *[result(None, dtype, 2)] * count])
    state = result([data[1], recurrent[1]], dtype)
    if call.attrs["projected"] and differ(data[2], rows := simplified(recurrent[1] * GATES[kind])):
        fail(call, f"data: expected {show_dims([*data[:2], rows])}, got {show_dims(data)}")
    for index, (info, wanted) in enumerate(
        zip([*infos[1:], *states], _shapes(call, data, recurrent).values(), strict=True), 1
    ):
        given = dims_of(info)
        if given is not None and any(map(differ, given, wanted)):
            name = call.op.attributes["params"][min(index, 5)]
            fail(call, f"{name}: expected {show_dims(wanted)}, got {show_dims(given)}")
    return TupleStructInfo([result([*data[:2], recurrent[1]], dtype), *[state] * count])


def _shapes(
    call: Call, data: Sequence[Extent], recurrent: Sequence[Extent]
) -> dict[int | tuple[int, int], Sequence[Extent]]:
    """The shapes that weights, biases and states must have."""
    kind, size = call.attrs["kind"], recurrent[1]
    features = 0 if call.attrs["projected"] else data[2]
    sizes = (*data[:2], features)
    shapes = operand_shapes(GATES[kind], 2 if kind == "lstm" else 1, sizes, size)
    required: dict[int | tuple[int, int], Sequence[Extent]] = {
        (index if index < 5 else (5, index - 5)): shape for index, shape in shapes.items()
    }
    if kind == "lstm":
        required[5, 2] = [simplified(size * 3)]
    if _has_factors(call):
        required[5, 3 if kind == "lstm" else 1] = [simplified(size * GATES[kind])]
    return required


def _agreeing(call: Call) -> Required:
    data, recurrent = (dims(call.args[index]) for index in (0, 2))
    required = _shapes(call, data, recurrent)
    if len(call.args) == 7:
        required[6] = [data[1]]
    return required


def _activations(kind: str, names: object, alphas: object, betas: object) -> dict[str, object]:
    """The activations with an alpha and a beta each; where none is given, the layer's defaults."""
    known = list(names) if isinstance(names, list | tuple) else list(DEFAULTS.get(kind, ()))
    numbers = {}
    for place, (attribute, given) in enumerate((("alphas", alphas), ("betas", betas))):
        defaults = [ACTIVATIONS.get(name, ((), None))[0] for name in known]
        own = [default[place] if len(default) > place else 0.0 for default in defaults]
        numbers[attribute] = list(given) if isinstance(given, list | tuple) else own
    return {"activations": known, **numbers}


@operator(
    "relax.nn.recurrent_layer",
    infer_recurrent_layer,
    te=recurrent_layer_te,
    requires=_agreeing,
    numpy=reference.recurrent_layer,
)
def recurrent_layer(  # noqa: PLR0913 - the options of ONNX's layers
    data: Expr,
    weight_ih: Expr,
    weight_hh: Expr,
    bias_ih: Expr,
    bias_hh: Expr,
    states: Exprs,
    lengths: Expr | None = None,
    kind: str = "rnn",
    reverse: bool = False,
    activations: object = None,
    alphas: object = None,
    betas: object = None,
    clip: float = 0.0,
    reset_after: bool = False,
    input_forget: bool = False,
    quantize_state: bool = False,
    projected: bool = False,
) -> Replacements:
    """(outputs, last hidden[, last cell]) of an rnn, a gru or an lstm, as ONNX defines them.

    Data is (steps, batch, features). ``states`` are the initial hidden state (batch, hidden) and,
    for an lstm, the initial cell state and the peepholes (3 * hidden: input, output, forget), and,
    where ``weight_hh`` is int8, a factor for each of its rows (gates * hidden). The order of the
    gates in the weights is update, reset, new (gru) or input, output, forget, cell (lstm).
    ``lengths`` (batch,) ends sequences early: outputs after their end are 0.
    ``activations`` are names, with an alpha and a beta each; ``clip``, if it is not 0, limits their
    inputs to [-clip, clip]. ``reset_after``: the reset gate of a gru scales the product of the
    recurrent weights with the hidden state, not the hidden state itself. ``input_forget``: the
    forget gate of an lstm is 1 minus the input gate. ``quantize_state``: the hidden state of an rnn
    or an lstm is rounded to 256 steps of its range in all sequences before it is multiplied.
    ``projected``: the data of an rnn or an lstm are products with the weights already (steps,
    batch, gates * hidden), and ``weight_ih`` has no columns.
    """
    return _activations(kind, activations, alphas, betas)
