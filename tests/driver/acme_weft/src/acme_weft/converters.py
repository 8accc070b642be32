"""A converter of an operator that PyTorch does not have: ``torch.ops.acme.soft_sign``."""

from acme_weft.operators import soft_sign
from weft.relax.frontend.torch.registry import converter


@converter("acme.soft_sign.default")
def _soft_sign(context, x):
    return soft_sign(x)
