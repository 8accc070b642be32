"""UseWinograd: computes 3x3 convolutions by Winograd's algorithm where that is fast and accurate.

Before: ``y = convolution(x, w)`` of stride and dilation one over blocks of channels (``NCHW16c``),
with constant weights. After: ``y = call_tir(conv2d_winograd, (x, u))``. Here ``u`` are the
transformed weights, computed when the model is built, or the kernel itself, which the function then
transforms. Element-wise operators that follow are fused with it, as with the convolution.

A convolution is replaced if

- ``winograd_cost`` counts fewer cycles for it;
- there is memory for its transformed weights, which are larger than the kernel. Convolutions and
  larger tiles compete for that memory, and those that save the most cycles per byte come first. A
  function that transforms the kernel itself needs no such memory;
- its error, measured with the real weights on random data, is at most ``TOLERANCE`` of each
  filter's largest result. Larger tiles are less accurate, so smaller ones are tried next.

The batch, the height and the width may be symbolic. Costs are then estimated for common sizes.

Which form a convolution has is a choice that a search may answer (``weft.dlight.decisions``):
``algorithm of convolution 1x64x56x56 by 64``. Its answers are ``direct`` and the best form of each
tile. Memory and accuracy are heeded in any case.

The option ``PassContext(config={"relax.winograd": False})`` switches the pass off.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import numpy.typing as npt

from weft.dlight.decisions import as_tuned_graph, decide
from weft.ir.expr import GlobalVar, RelaxExpr
from weft.ir.module import IRModule
from weft.ir.transform import PassContext, define_module_pass
from weft.relax.expr import Call, Constant, Tuple
from weft.relax.op.base import CALL_TIR
from weft.relax.op.nn.convolution import IMAGE_CONVOLUTION
from weft.relax.op.nn.geometry import geometry_of
from weft.relax.transform.layout.winograd_choice import (
    Offers,
    affordable,
    form_of_sizes,
    growth_limit,
    offers_of,
    other_offers,
)
from weft.relax.transform.layout.winograd_cost import best_form
from weft.relax.transform.layout.winograd_error import error_of
from weft.relax.transform.passes import (
    UnfusedFunctions,
    bound_constant,
    mutate_module,
)
from weft.runtime.weight_names import inherit_name
from weft.target.machine import Machine, machine_of
from weft.target.target import Target
from weft.tir.size_hints import size_hints_of
from weft.topi.nn.winograd import in_panels, transformed_weights, winograd_function
from weft.topi.nn.winograd_form import BATCH, HEIGHT, WIDTH, Form
from weft.topi.nn.winograd_matrices import TILES

TOLERANCE: Final = 5e-5
"""The largest error that is allowed, relative to the largest result of a filter."""
OPTION: Final = "relax.winograd"
_Key = tuple[int, Form]
_AXES: Final = {BATCH: "batch", HEIGHT: "height", WIDTH: "width"}
_FUSABLE: Final = 4
"""The ``op_pattern`` of functions with which element-wise functions that follow are fused."""


def use_winograd(mod: IRModule, tolerance: float = TOLERANCE) -> IRModule:
    """The module with the 3x3 convolutions replaced for which Winograd's algorithm is faster.

    The target is the current one, else this machine. An algorithm whose error exceeds
    ``tolerance`` is not used.
    """
    target = Target.current(allow_none=True) or Target("llvm")
    if not PassContext.current().config.get(OPTION, True) or "cpu" not in target.keys:
        return mod
    machine = machine_of(target)
    finder = _Finder(mod, machine)
    with as_tuned_graph():
        mutate_module(mod, finder)
    return mutate_module(mod, _Replacer(mod, machine, tolerance, finder.affordable()))


UseWinograd = define_module_pass("UseWinograd", use_winograd)


class _Finder(UnfusedFunctions):
    """Changes nothing; collects the convolutions, with the best form of each for every tile."""

    def __init__(self, mod: IRModule, machine: Machine) -> None:
        super().__init__(mod)
        self.machine, self.hints = machine, size_hints_of(mod)
        self.offers: dict[_Key, Offers] = {}
        self.sizes: dict[int, int] = {}
        self.held: list[Constant] = []
        """Keeps the constants alive whose ``id`` is in the keys."""

    def affordable(self) -> dict[_Key, Form]:
        """The convolutions to replace, and their forms, as far as memory for weights allows."""
        limit = growth_limit(sum(self.sizes.values()), self.offers.values())
        return affordable(self.offers, limit)

    def visit_constant_(self, op: Constant) -> RelaxExpr:
        """Count the size of a constant."""
        self.held.append(op)
        self.sizes[id(op)] = op.data._array.nbytes
        return op

    def visit_call_(self, op: Call) -> RelaxExpr:
        call = self.visit_expr_post_order(op)
        form = form_of(call, self.hints)
        weights = None if form is None else bound_constant(self, call.args[1])
        return call if form is None or weights is None else self.computed(call, form, weights)

    def computed(self, call: Call, form: Form, weights: Constant) -> Call:
        """Handle a convolution that Winograd's algorithm can compute; here, remember its forms."""
        kinds = [form] if form.symbols else [form, replace(form, takes_kernel=True)]
        self.offers[id(weights), form] = decide(
            f"algorithm of {described(form)}",
            offers_of(kinds, self.machine),
            lambda: other_offers(kinds, self.machine),
        )
        return call


class _Replacer(_Finder):
    """Replaces the chosen convolutions by calls of Winograd's algorithm."""

    def __init__(
        self, mod: IRModule, machine: Machine, tolerance: float, affordable: dict[_Key, Form]
    ) -> None:
        super().__init__(mod, machine)
        self.tolerance, self.fastest = tolerance, affordable
        self.functions: dict[Form, GlobalVar] = {}
        self.known: dict[_Key, tuple[Form, Constant] | None] = {}

    def computed(self, call: Call, form: Form, weights: Constant) -> Call:
        """The call of Winograd's algorithm; the convolution itself if it is not chosen."""
        chosen = self.chosen(form, weights)
        if chosen is None:
            return call
        best, transformed = chosen
        if best not in self.functions:
            func = winograd_function(best).with_attr("op_pattern", _FUSABLE)
            func.provenance = "te"
            self.functions[best] = self.builder_.add_func(func, "conv2d_winograd")
        arguments = Tuple([call.args[0], transformed])
        return Call(CALL_TIR, [self.functions[best], arguments], None, [call.struct_info])

    def chosen(self, form: Form, weights: Constant) -> tuple[Form, Constant] | None:
        """The form to use and its weights; None if the convolution stays direct."""
        key = id(weights), form
        if key not in self.known:
            self.known[key] = self.tried(self.fastest.get(key), weights)
        return self.known[key]

    def tried(self, best: Form | None, weights: Constant) -> tuple[Form, Constant] | None:
        """The fastest form whose error is small enough: ``best`` or one with smaller tiles."""
        while best is not None:
            plain = _in_order(weights.data.numpy())
            within = "float32" if best.takes_kernel else "float64"
            spread = transformed_weights(plain, best.tile, within)
            if error_of(plain, spread) <= self.tolerance:
                if best.takes_kernel:
                    return best, weights
                panels = Constant(in_panels(spread, best.panel))
                inherit_name(panels.data, [weights.data])
                return best, panels
            smaller = tuple([tile for tile in TILES if tile < best.tile])
            best = best_form(best, self.machine, smaller) if smaller else None
        return None


def form_of(call: RelaxExpr, hints: Mapping[str, int]) -> Form | None:
    """The sizes of a convolution that Winograd's algorithms can compute; None for other calls.

    Tile, band and panel of the form are placeholders (2, one row, one block) until
    ``winograd_cost`` chooses them.
    """
    if not isinstance(call, Call) or call.op is not IMAGE_CONVOLUTION:
        return None
    sizes = geometry_of(call)
    dtypes = {str(item.struct_info.dtype) for item in (*call.args, call)}
    if sizes is None or dtypes != {"float32"} or sizes.blocks is None:
        return None
    return form_of_sizes(sizes, sizes.blocks, hints)


def described(form: Form) -> str:
    """The convolution that a form computes, such as ``convolution 1x64x56x56 by 64``."""
    batch, channels, height, width, block = form.data
    pads = "" if set(form.padding) == {1} else f" padded by {form.padding}"
    symbols = "".join([f" any {_AXES[axis]}" for axis in sorted(form.symbols)])
    image = f"{batch}x{channels * block}x{height}x{width}"
    return (
        f"convolution {image} by {form.filters} in blocks of {block}, {form.block}{pads}{symbols}"
    )


def _in_order(weights: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Reorder a kernel in blocks to the plain layout (filters, channels, 3, 3)."""
    outer, blocks, high, wide, block, filters = weights.shape
    moved = weights.transpose(0, 5, 1, 4, 2, 3)
    return moved.reshape(outer * filters, blocks * block, high, wide)
