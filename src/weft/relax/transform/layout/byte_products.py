"""Which products of unsigned and signed bytes an instruction of the processor computes exactly."""

from __future__ import annotations

import numpy as np

from weft.relax.expr import Call, Constant
from weft.relax.op.nn.convolution import IMAGE_CONVOLUTION
from weft.target.machine import Machine
from weft.tir.byte_pairs import has_exact_pairs


def has_byte_products(machine: Machine) -> bool:
    """Whether the processor adds up four products of bytes, if only for some weights."""
    return machine.multiplies_bytes or machine.multiplies_byte_pairs


def multiplies_exactly(machine: Machine, product: Call, weights: Constant | None) -> bool:
    """Whether it does so exactly for a product or a convolution by ``weights``.

    ``weights`` may have any integer type; None if they are not known.
    """
    if machine.multiplies_bytes:
        return True
    if not machine.multiplies_byte_pairs or weights is None:
        return False
    numbers = weights.data.numpy()
    is_image = product.op is IMAGE_CONVOLUTION
    axis = str(product.attrs["kernel_layout"]).index("I") if is_image else -2
    return numbers.ndim >= 2 and has_exact_pairs(numbers.astype(np.int8), axis)
