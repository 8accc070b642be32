"""UseWinograd: 3x3 convolutions by Winograd's algorithm where it takes less time and is exact.

Before: ``y = convolution(x, w)`` of stride and dilation one over blocks of channels (``NCHW16c``),
with constant weights. After: ``y = call_tir(conv2d_winograd, (x, u))``, where ``u`` are the
transformed weights, computed here, or the kernel, which the function transforms itself. What
follows element by element is fused behind it as behind the operator.

Which convolutions: those where ``winograd_cost`` counts fewer cycles, as many and in as large tiles
as the memory for larger weights allows, what gains most for a byte of it first (a function that
transforms the kernel itself needs none), and where the error of the real weights on random data is
at most ``TOLERANCE`` of each filter's largest result; larger tiles are less exact, so smaller ones
are tried next. The option ``PassContext(config={"relax.winograd": False})`` leaves all
convolutions direct.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

import numpy.typing as npt

from weft.ir.expr import RelaxExpr
from weft.ir.module import IRModule
from weft.ir.transform import ModulePass, PassContext
from weft.relax.expr import Call, Constant, Tuple, Var
from weft.relax.ir.shape_arith import constant_value
from weft.relax.op.base import CALL_TIR
from weft.relax.op.nn.convolution import IMAGE_CONVOLUTION
from weft.relax.op.nn.geometry import geometry_of
from weft.relax.transform.layout.winograd_cost import best_form, gain, growth, has_form
from weft.relax.transform.layout.winograd_error import error_of
from weft.relax.transform.passes import UnfusedFunctions, make_module_pass, mutate_module
from weft.target.machine import Machine, machine_of
from weft.target.target import Target
from weft.topi.nn.winograd import Form, in_panels, transformed_weights, winograd_function
from weft.topi.nn.winograd_matrices import TILES

TOLERANCE: Final = 5e-5
"""The error that is allowed, relative to the largest result of a filter."""
OPTION: Final = "relax.winograd"
_Key = tuple[int, Form]
_SHARE_OF_WEIGHTS: Final = 0.15
"""Weights may grow by this part of the size of all constants."""
_FREE_GROWTH: Final = 6 << 20
"""Bytes by which they may grow anyhow."""
_FUSABLE: Final = 4
"""The pattern of functions behind which element-wise ones are fused."""


def UseWinograd(tolerance: float = TOLERANCE) -> ModulePass:  # noqa: N802 - a pass
    """Replace the 3x3 convolutions for which Winograd's algorithm is faster on the target.

    The target is the current one, else this machine. An algorithm whose error exceeds
    ``tolerance`` is not used.
    """

    def run(mod: IRModule, ctx: PassContext) -> IRModule:
        target = Target.current(allow_none=True) or Target("llvm")
        if not ctx.config.get(OPTION, True) or target.kind.name != "llvm":
            return mod
        machine = machine_of(target)
        finder = _Finder(mod, machine)
        mutate_module(mod, finder)
        return mutate_module(mod, _Replacer(mod, machine, tolerance, finder.affordable()))

    return make_module_pass("UseWinograd", run)


class _Finder(UnfusedFunctions):
    """Changes nothing; finds the convolutions, and how they are computed best in each tile."""

    def __init__(self, mod: IRModule, machine: Machine) -> None:
        super().__init__(mod)
        self.machine = machine
        self.forms: dict[_Key, list[Form]] = {}
        self.sizes: dict[int, int] = {}
        self.held: list[Constant] = []
        """What keys have the identity of."""

    def affordable(self) -> dict[_Key, Form]:
        """The convolutions whose weights may grow, within a share of the size of all constants.

        Each with the form in which it is computed: step by step, what saves most cycles for a byte
        more, be it one more convolution or larger tiles of one that is chosen.
        """
        limit = max(int(sum(self.sizes.values()) * _SHARE_OF_WEIGHTS), _FREE_GROWTH)
        worth = {form: (gain(form, self.machine), growth(form))
                 for forms in self.forms.values() for form in forms}  # fmt: skip
        chosen: dict[_Key, Form] = {}
        while steps := [*self._steps(chosen, limit, worth)]:
            _, more, key, form = max(steps, key=lambda step: step[0])
            limit -= more
            chosen[key] = form
        return chosen

    def _steps(
        self, chosen: dict[_Key, Form], limit: int, worth: dict[Form, tuple[float, int]]
    ) -> Iterator[tuple[float, int, _Key, Form]]:
        """What would be faster for at most so many bytes: cycles for a byte, bytes, and which."""
        for key, forms in self.forms.items():
            now, held = worth[chosen[key]] if key in chosen else (0.0, 0)
            for form in forms:
                saved, more = worth[form][0] - now, worth[form][1] - held
                if saved > 0 and more <= limit:
                    yield saved / max(more, 1), more, key, form

    def visit_constant_(self, op: Constant) -> RelaxExpr:
        """Constants are counted."""
        self.held.append(op)
        self.sizes[id(op)] = op.data._array.nbytes
        return op

    def visit_call_(self, op: Call) -> RelaxExpr:
        call = self.visit_expr_post_order(op)
        form = form_of(call)
        weights = None if form is None else self.constant(call.args[1])
        return call if form is None or weights is None else self.computed(call, form, weights)

    def computed(self, call: Call, form: Form, weights: Constant) -> Call:
        """What a convolution becomes."""
        kinds = [form, replace(form, takes_kernel=True)]
        best = [best_form(kind, self.machine, (tile,)) for kind in kinds for tile in TILES]
        self.forms[id(weights), form] = [choice for choice in best if choice is not None]
        return call

    def constant(self, arg: RelaxExpr) -> Constant | None:
        """The constant that an argument is."""
        value = self.lookup_binding(arg) if isinstance(arg, Var) else arg
        return value if isinstance(value, Constant) else None


class _Replacer(_Finder):
    """Has the convolutions that are affordable computed by Winograd's algorithm."""

    def __init__(
        self, mod: IRModule, machine: Machine, tolerance: float, affordable: dict[_Key, Form]
    ) -> None:
        super().__init__(mod, machine)
        self.tolerance, self.fastest = tolerance, affordable
        self.known: dict[_Key, tuple[Form, Constant] | None] = {}

    def computed(self, call: Call, form: Form, weights: Constant) -> Call:
        """The call of stages that take transformed weights, or the convolution."""
        chosen = self.chosen(form, weights)
        if chosen is None:
            return call
        best, transformed = chosen
        func = winograd_function(best).with_attr("op_pattern", _FUSABLE)
        func.provenance = "te"
        gvar = self.builder_.add_func(func, "conv2d_winograd")
        arguments = Tuple([call.args[0], transformed])
        return Call(CALL_TIR, [gvar, arguments], None, [call.struct_info])

    def chosen(self, form: Form, weights: Constant) -> tuple[Form, Constant] | None:
        """The form to use and its weights; None where the direct algorithm is to be used."""
        key = id(weights), form
        if key not in self.known:
            self.known[key] = self.tried(self.fastest.get(key), weights)
        return self.known[key]

    def tried(self, best: Form | None, weights: Constant) -> tuple[Form, Constant] | None:
        """The fastest form whose error is small enough: ``best``, or one of smaller tiles."""
        while best is not None:
            plain = _in_order(weights.data.numpy())
            within = "float32" if best.takes_kernel else "float64"
            spread = transformed_weights(plain, best.tile, within)
            if error_of(plain, spread) <= self.tolerance:
                panels = weights if best.takes_kernel else Constant(in_panels(spread, best.panel))
                return best, panels
            smaller = tuple([tile for tile in TILES if tile < best.tile])
            best = best_form(best, self.machine, smaller) if smaller else None
        return None


def form_of(call: RelaxExpr) -> Form | None:
    """The sizes of a convolution that Winograd's algorithms can compute; None for others.

    The tile is 2, a band one row, a panel one block: to be chosen.
    """
    if not isinstance(call, Call) or call.op is not IMAGE_CONVOLUTION:
        return None
    sizes = geometry_of(call)
    dtypes = {str(item.struct_info.dtype) for item in (*call.args, call)}
    if sizes is None or dtypes != {"float32"} or sizes.blocks is None or not has_form(sizes):
        return None
    into, out = sizes.blocks
    extents = [constant_value(item) for item in (sizes.batch, sizes.channels, sizes.filters)]
    known = [size for size in (*extents, *sizes.image, *sizes.padding) if size is not None]
    if len(known) != 9 or min(known) < 0 or min(known[:5]) < 1:
        return None
    batch, channels, filters, height, width, top, left, bottom, right = known
    data = (batch, channels // into, height, width, into)
    form = Form(2, 1, (top, left, bottom, right), data, filters, out, out)
    return form if min(form.size) >= 1 else None


def _in_order(weights: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """A kernel in blocks as (filters, channels, 3, 3)."""
    outer, blocks, high, wide, block, filters = weights.shape
    moved = weights.transpose(0, 5, 1, 4, 2, 3)
    return moved.reshape(outer * filters, blocks * block, high, wide)
