"""Einstein summation: ``einsum("ij,jk->ik", a, b)``."""

from __future__ import annotations

from collections.abc import Sequence

from weft.ir.expr import PrimExpr
from weft.support.errors import IRValueError
from weft.te import reduction as te_reduction
from weft.te.operation import reduce_axis
from weft.te.tensor import Tensor
from weft.tir import op
from weft.topi.extents import compute_ax, is_const, may_be_equal


class _Subscripts:
    """The letters of operands and result; the axes of an ellipsis are digits, from the right."""

    def __init__(self, text: str, operands: tuple[Tensor, ...]) -> None:
        left, arrow, right = text.replace(" ", "").partition("->")
        terms = left.split(",")
        if len(terms) != len(operands):
            raise IRValueError(
                f"einsum: {text!r} has {len(terms)} terms for {len(operands)} tensors"
            )
        self.terms = [
            self._expand(term, tensor, text) for term, tensor in zip(terms, operands, strict=True)
        ]
        broadcast = sorted({c for term in self.terms for c in term if c.isdigit()}, reverse=True)
        if arrow:
            self.result = [*(right.replace("...", "".join(broadcast)))]
        else:
            letters = [c for term in self.terms for c in term if not c.isdigit()]
            self.result = [*broadcast, *sorted(c for c in set(letters) if letters.count(c) == 1)]
        self.extents: dict[str, PrimExpr] = {}
        for term, tensor in zip(self.terms, operands, strict=True):
            for letter, extent in zip(term, tensor.shape, strict=True):
                self._meet(letter, extent, text)
        unknown = [c for c in self.result if c not in self.extents]
        if unknown or len(set(self.result)) != len(self.result):
            raise IRValueError(f"einsum: the result of {text!r} has an unknown or repeated letter")

    def _expand(self, term: str, tensor: Tensor, text: str) -> str:
        count = tensor.ndim - len(term.replace("...", ""))
        if count < 0 or (count and "..." not in term):
            raise IRValueError(
                f"einsum: {term!r} of {text!r} does not fit a {tensor.ndim}-dimensional tensor"
            )
        return term.replace("...", "".join([str(i) for i in range(count - 1, -1, -1)]))

    def _meet(self, letter: str, extent: PrimExpr, text: str) -> None:
        known = self.extents.get(letter)
        if known is None or is_const(known, 1):
            self.extents[letter] = extent
        elif not may_be_equal(known, extent) and not is_const(extent, 1):
            raise IRValueError(
                f"einsum: {letter!r} of {text!r} has the extents {known} and {extent}"
            )

    def is_broadcast(self, letter: str, extent: PrimExpr) -> bool:
        """Whether a tensor has extent 1 along the letter and is broadcast."""
        return is_const(extent, 1) and (letter.isdigit() or not is_const(self.extents[letter], 1))


def einsum(subscripts: str, *operand: Tensor | Sequence[Tensor]) -> Tensor:
    """The sum of products over the letters that the result lacks (numpy.einsum)."""
    tensors: list[Tensor] = []
    for item in operand:
        tensors += [item] if isinstance(item, Tensor) else item
    plan = _Subscripts(subscripts, tuple(tensors))
    summed = [c for c in plan.extents if c not in plan.result]
    axes = {c: reduce_axis((0, plan.extents[c]), name=c) for c in summed}

    def element(*indices: PrimExpr) -> PrimExpr:
        at = dict(zip(plan.result, indices, strict=True))
        at.update({c: axis.var for c, axis in axes.items()})
        value: PrimExpr | None = None
        for term, tensor in zip(plan.terms, tensors, strict=True):
            source = [
                op.const(0, "int32") if plan.is_broadcast(c, extent) else at[c]
                for c, extent in zip(term, tensor.shape, strict=True)
            ]
            factor = tensor(*source)
            value = factor if value is None else value * factor
        assert value is not None  # there is at least one operand
        return te_reduction.sum(value, axis=list(axes.values())) if axes else value

    shape = [plan.extents[c] for c in plan.result]
    return compute_ax(shape, element, "T_einsum", tag="einsum")
