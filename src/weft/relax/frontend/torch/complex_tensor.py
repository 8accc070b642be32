"""Complex numbers of a torch graph: two real tensors each, and names of their own for operators.

A node that takes or gives complex numbers is looked up as ``aten.mul.Tensor (complex)``; its
converter gets ``ComplexTensor``s where torch has complex tensors. They live inside of a graph only:
inputs and results of a model are real.
"""

from __future__ import annotations

from typing import Final

import torch
from torch import fx
from torch.utils import _pytree as pytree

from weft.relax.expr import const
from weft.relax.frontend.torch.constants import as_ndarray
from weft.relax.frontend.torch.float8_tensors import FLOAT8, FLOAT8_TYPES, is_float8
from weft.relax.frontend.torch.registry import overload_name
from weft.relax.frontend.torch.values import ComplexTensor

COMPLEX: Final = " (complex)"
"""What follows the name of an overload where it is called on complex numbers."""
WITH_EFFECTS: Final = "with_effects"
"""torch's wrapper of operators that print or check."""
PLANE_TYPES: Final = {
    torch.complex32: torch.float16,
    torch.complex64: torch.float32,
    torch.complex128: torch.float64,
}
"""The type of the real and imaginary parts."""
HELD_AS: Final = {**PLANE_TYPES, **dict.fromkeys(FLOAT8_TYPES, torch.uint8)}
"""The types of weft's tensors where torch's are others."""


def is_complex(value: object) -> bool:
    """Whether a fake tensor, a data type or a number is complex."""
    if isinstance(value, torch.Tensor):
        return value.dtype in PLANE_TYPES
    return isinstance(value, complex) or (isinstance(value, torch.dtype) and value in PLANE_TYPES)


def operator_name(node: fx.Node) -> str:
    """The name under which the table has a node's converter.

    ``with_effects(token, operator, ...)`` is a call of that operator, in order with others.
    """
    name = overload_name(node.target)
    if name == WITH_EFFECTS:
        return overload_name(node.args[1])
    met = [node.meta.get("val"), *(item.meta.get("val") for item in node.all_input_nodes)]
    values = pytree.tree_leaves([met, node.args, node.kwargs])
    if any(map(is_float8, values)):
        return name + FLOAT8
    return name + COMPLEX if any(map(is_complex, values)) else name


def complex_constant(tensor: torch.Tensor) -> ComplexTensor:
    """A complex tensor that the model holds, as a constant."""
    plain = tensor.detach().resolve_conj()
    return ComplexTensor(const(as_ndarray(plain.real)), const(as_ndarray(plain.imag)))
