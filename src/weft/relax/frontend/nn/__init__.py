"""``relax.frontend.nn``: models as Python classes, in the manner of ``torch.nn``.

::

    class Model(nn.Module):
        def __init__(self):
            self.layer = nn.Linear(784, 10)

        def forward(self, x: nn.Tensor):
            return nn.softmax(self.layer(x))

    mod, params = Model().export_tvm({"forward": {"x": nn.spec.Tensor(["n", 784], "float32")}})
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from weft.support.facade import module_getattr

if TYPE_CHECKING:
    from weft.relax.frontend.nn import spec
    from weft.relax.frontend.nn.activations import (
        GELU,
        ReLU,
        SiLU,
    )
    from weft.relax.frontend.nn.core import (
        Module,
        ModuleDict,
        ModuleList,
    )
    from weft.relax.frontend.nn.effect import (
        Effect,
        IOEffect,
        KVCache,
    )
    from weft.relax.frontend.nn.modules import (
        Attention,
        Conv1D,
        Conv2D,
        Conv3D,
        ConvTranspose1D,
        Embedding,
        GroupNorm,
        Identity,
        LayerNorm,
        Linear,
        RMSNorm,
        TimestepEmbedding,
        Timesteps,
    )
    from weft.relax.frontend.nn.subroutine import (
        SubroutineMixin,
    )
    from weft.relax.frontend.nn.tensor import (
        Object,
        Parameter,
        Tensor,
        get_default_dtype,
        set_default_dtype,
        wrap_nested,
    )
    from weft.relax.frontend.nn.visitor import (
        Mutator,
    )

_TENSOR = "Object Parameter Tensor get_default_dtype set_default_dtype wrap_nested"
_CORE = "Module ModuleDict ModuleList"
_MODULES = (
    "Attention Conv1D Conv2D Conv3D ConvTranspose1D Embedding GroupNorm Identity LayerNorm "
    "Linear RMSNorm TimestepEmbedding Timesteps"
)
_HOME = "weft.relax.frontend.nn"
_NAMES = {
    **dict.fromkeys(_TENSOR.split(), f"{_HOME}.tensor"),
    **dict.fromkeys(_CORE.split(), f"{_HOME}.core"),
    **dict.fromkeys("Effect IOEffect KVCache".split(), f"{_HOME}.effect"),
    **dict.fromkeys(_MODULES.split(), f"{_HOME}.modules"),
    **dict.fromkeys("GELU ReLU SiLU".split(), f"{_HOME}.activations"),
    "Exporter": f"{_HOME}.exporter",
    "Mutator": f"{_HOME}.visitor",
    "SubroutineMixin": f"{_HOME}.subroutine",
    "TorchModule": f"{_HOME}.torch",
}
_PLANNED = dict.fromkeys(
    ("ExternModule", "ObjectModule", "SourceModule", "add_extern"),
    "C++ sources linked into models; nn.extern calls functions that weft.register_func names",
)
__getattr__, __dir__ = module_getattr(
    __name__,
    _NAMES,
    (
        "activations", "core", "effect", "exporter", "llm", "modules", "op", "spec", "subroutine",
        "tensor", "torch", "visitor",
    ),
    _PLANNED,
    functions=f"{_HOME}.op",
)  # fmt: skip
