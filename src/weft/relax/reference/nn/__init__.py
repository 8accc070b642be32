"""References of the operators of neural networks."""

from __future__ import annotations

from weft.relax.reference.nn import (
    activation,
    attention,
    convolution,
    dense,
    normalization,
    padding,
    pooling,
    rearrange,
    recurrent,
)

TABLE = {
    **activation.TABLE,
    **attention.TABLE,
    **convolution.TABLE,
    **dense.TABLE,
    **normalization.TABLE,
    **padding.TABLE,
    **pooling.TABLE,
    **rearrange.TABLE,
    **recurrent.TABLE,
}
"""Every row of the folder."""
