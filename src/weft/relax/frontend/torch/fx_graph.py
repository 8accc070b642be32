"""``from_fx``: a graph of ``torch.fx``, through torch.export to the one table of converters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import fx

from weft.ir.expr import Extent, PrimExpr, constant_value
from weft.ir.module import IRModule
from weft.ir.node import expect
from weft.relax.frontend.torch.capture import capture
from weft.relax.frontend.torch.dtypes import dtype_name, torch_dtype
from weft.relax.frontend.torch.exported_program import import_exported_program
from weft.relax.frontend.torch.registry import Converter
from weft.support.errors import IRTypeError, IRValueError
from weft.support.public_entry import public_entry
from weft.tir.expr import Var

InputInfo = tuple[Sequence[Extent], torch.dtype | str]
"""The shape and the data type of an input."""
_PRIMES = (5, 7, 11, 13, 17, 19, 23, 29, 31, 37)
"""Example extents of symbolic dimensions: no two are equal by chance, none is 0 or 1."""


@public_entry("from_fx")
def from_fx(
    model: fx.GraphModule,
    input_info: Sequence[InputInfo],
    *,
    keep_params_as_input: bool = False,
    unwrap_unit_return_tuple: bool = False,
    no_bind_return_tuple: bool = False,
    custom_convert_map: Mapping[str, Converter] | None = None,
) -> IRModule:
    """The module of a ``torch.fx`` graph, with one function ``main``.

    Args:
        model: what ``torch.fx.symbolic_trace`` or another tracer made.
        input_info: shape and data type of each input; an extent may be a ``tir.Var``.
        keep_params_as_input: parameters become inputs of ``main``, after the model's own.
        unwrap_unit_return_tuple: a single result in a tuple is returned itself.
        no_bind_return_tuple: each result of a tuple becomes an output of its own.
        custom_convert_map: converters by overload name, as ``from_exported_program`` takes them.

    Raises CaptureError where torch cannot run the graph on tensors of these shapes.

    >>> import torch
    >>> from weft.relax.frontend.torch import from_fx
    >>> graph = torch.fx.symbolic_trace(torch.nn.Linear(3, 2, bias=False))
    >>> mod = from_fx(graph, [((4, 3), "float32")])
    >>> print(mod["main"].ret_struct_info)
    R.Tensor((4, 2), dtype="float32")
    """
    if not isinstance(model, fx.GraphModule):
        raise IRTypeError(
            f"from_fx: expected a torch.fx.GraphModule, got {type(model).__name__}; "
            "torch.fx.symbolic_trace(model) makes one"
        )
    placeholders = [node for node in model.graph.nodes if node.op == "placeholder"]
    _check_inputs(input_info)
    if len(input_info) > len(placeholders):
        raise IRValueError(
            f"from_fx: expected at most {len(placeholders)} inputs, got {len(input_info)}"
        )
    sizes = _Sizes()
    tensors = [_example(shape, dtype, sizes) for shape, dtype in input_info]
    dynamic = [sizes.dynamic(shape) for shape, _ in input_info]
    program = capture(model, tensors, None, tuple(dynamic) if any(dynamic) else None)
    single = not _returns_sequence(model)
    return import_exported_program(
        program,
        keep_params_as_input=keep_params_as_input,
        unwrap_unit_return_tuple=unwrap_unit_return_tuple or single,
        no_bind_return_tuple=no_bind_return_tuple,
        custom_converters=custom_convert_map,
        extents=[shape for shape, _ in input_info],
    ).mod


def _check_inputs(input_info: Sequence[InputInfo]) -> None:
    """Raise IRTypeError or IRValueError for what is no list of (shape, data type)."""
    if isinstance(input_info, str) or not isinstance(input_info, Sequence):
        raise IRTypeError(
            "from_fx: input_info: expected a list of (shape, data type), one for each input, got "
            f"{type(input_info).__name__}"
        )
    for index, item in enumerate(input_info):
        where = f"from_fx: input_info[{index}]"
        if (
            not isinstance(item, tuple | list)
            or len(item) != 2
            or isinstance(item[0], str)
            or (not isinstance(item[0], Sequence))
        ):
            raise IRTypeError(
                f'{where}: expected a shape and a data type, such as ((1, 3), "float32"), got '
                f"{item!r:.60}"
            )
        for extent in item[0]:
            if not isinstance(extent, int | PrimExpr):
                raise IRTypeError(
                    f"{where}: expected ints and tir.Vars as extents, got {extent!r:.60}"
                )
            if isinstance(extent, int) and extent < 0:
                raise IRValueError(f"{where}: expected extents of at least 0, got {extent}")


class _Sizes:
    """Example sizes of symbolic extents, equal for the same variable."""

    def __init__(self) -> None:
        self._dims: dict[Var, tuple[int, torch.export.Dim]] = {}

    def size(self, extent: Extent) -> int:
        """A number for an extent."""
        if not isinstance(extent, Var):
            return expect(constant_value(extent), int)
        return self._known(extent)[0]

    def dynamic(self, shape: Sequence[Extent]) -> dict[int, torch.export.Dim] | None:
        """What torch.export is told of a shape's dynamic dimensions."""
        dims = {i: self._known(dim)[1] for i, dim in enumerate(shape) if isinstance(dim, Var)}
        return dims or None

    def _known(self, var: Var) -> tuple[int, torch.export.Dim]:
        if var not in self._dims:
            number = len(self._dims)
            size = _PRIMES[number % len(_PRIMES)] + 41 * (number // len(_PRIMES))
            self._dims[var] = size, torch.export.Dim(f"{var.name}_{number}")
        return self._dims[var]


def _example(shape: Sequence[Extent], dtype: torch.dtype | str, sizes: _Sizes) -> torch.Tensor:
    for extent in shape:
        if not isinstance(extent, Var) and constant_value(extent) is None:
            raise IRTypeError(
                f"from_fx: expected ints and tir.Vars as extents of an input, got {extent}"
            )
    known = [sizes.size(extent) for extent in shape]
    kind = torch_dtype(dtype_name(dtype))
    try:
        return torch.zeros(known, dtype=kind)
    except RuntimeError as error:
        raise IRValueError(
            f"from_fx: torch cannot make an example of shape {tuple(known)}: "
            f"{str(error).splitlines()[0][:120]}"
        ) from error


def _returns_sequence(model: fx.GraphModule) -> bool:
    output = next(node for node in model.graph.nodes if node.op == "output")
    return isinstance(output.args[0], list | tuple | dict)
