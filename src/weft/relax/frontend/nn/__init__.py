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
        GELU,
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
        ReLU,
        RMSNorm,
        SiLU,
        TimestepEmbedding,
        Timesteps,
    )
    from weft.relax.frontend.nn.op import (
        add,
        argsort,
        astype,
        broadcast_to,
        ccl_allgather,
        ccl_allreduce,
        ccl_broadcast_from_worker0,
        chunk,
        concat,
        conv1d,
        conv1d_transpose,
        conv2d,
        conv3d,
        cumsum,
        debug_func,
        divide,
        empty,
        equal,
        exp,
        extern,
        full,
        gelu,
        get_timestep_embedding,
        greater,
        greater_equal,
        group_norm,
        interpolate,
        layer_norm,
        less,
        less_equal,
        matmul,
        max,  # noqa: A004 - TVM's name
        maximum,
        min,  # noqa: A004 - TVM's name
        minimum,
        multinomial_from_uniform,
        multiply,
        negative,
        not_equal,
        ones,
        pad,
        permute,
        permute_dims,
        print_,
        relu,
        renormalize_top_p_top_k_prob,
        repeat,
        reshape,
        rms_norm,
        sample_top_p_top_k_from_sorted_prob,
        scaled_dot_product_attention,
        sigmoid,
        silu,
        softmax,
        softplus,
        sort,
        split,
        sqrt,
        square,
        squeeze,
        subtract,
        sum,  # noqa: A004 - TVM's name
        take,
        tanh,
        tensor_expr_op,
        tensor_ir_inplace_op,
        tensor_ir_op,
        topk,
        triu,
        unsqueeze,
        where,
        zeros,
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
    "Attention Conv1D Conv2D Conv3D ConvTranspose1D Embedding GELU GroupNorm Identity LayerNorm "
    "Linear RMSNorm ReLU SiLU TimestepEmbedding Timesteps"
)
_OP = (
    "add argsort astype broadcast_to ccl_allgather ccl_allreduce ccl_broadcast_from_worker0 chunk "
    "concat conv1d conv1d_transpose conv2d conv3d cumsum debug_func divide empty equal exp full "
    "gelu get_timestep_embedding greater greater_equal group_norm interpolate layer_norm less "
    "less_equal matmul max maximum min minimum multinomial_from_uniform multiply negative "
    "not_equal ones pad permute permute_dims print_ relu renormalize_top_p_top_k_prob repeat "
    "reshape rms_norm sample_top_p_top_k_from_sorted_prob scaled_dot_product_attention sigmoid "
    "silu softmax softplus sort split sqrt square squeeze subtract sum take tanh tensor_expr_op "
    "tensor_ir_inplace_op tensor_ir_op topk triu unsqueeze where zeros extern"
)
_HOME = "weft.relax.frontend.nn"
_NAMES = {
    **dict.fromkeys(_TENSOR.split(), f"{_HOME}.tensor"),
    **dict.fromkeys(_CORE.split(), f"{_HOME}.core"),
    **dict.fromkeys("Effect IOEffect KVCache".split(), f"{_HOME}.effect"),
    **dict.fromkeys(_MODULES.split(), f"{_HOME}.modules"),
    **dict.fromkeys(_OP.split(), f"{_HOME}.op"),
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
        "core", "effect", "exporter", "llm", "modules", "op", "spec", "subroutine", "tensor",
        "torch", "visitor",
    ),
    _PLANNED,
)  # fmt: skip
