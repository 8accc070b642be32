"""The operators of well-known networks, as a table: float32, batch 1.

Shapes are those of the published networks: ResNet-50 (He et al., 2015), MobileNetV2 (Sandler et
al., 2018), EfficientNet-B0 (Tan and Le, 2019) on images of 224; BERT-base (Devlin et al., 2018) on
128 tokens, GPT-2 (Radford et al., 2019) on 64, ViT-B/16 (Dosovitskiy et al., 2020), and a small
Llama (Touvron et al., 2023) of hidden size 1024, 16 heads and 4 heads of keys on 32 tokens. Layers
over sequences are those of wav2vec 2.0 (Baevski et al., 2020) on a second of sound, Whisper
(Radford et al., 2022), EnCodec (Defossez et al., 2022), NSNet2 (Braun and Tashev, 2020), and a
spectrum that speech recognisers write as a convolution.
``benchmarks/operator_modules.py`` makes a module of PyTorch of each.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Final

from benchmarks.rows import Input, Row


@dataclass(frozen=True)
class Operator:
    """One row: the network, the kind (a key of ``operator_modules.BUILDERS``), its sizes."""

    network: str
    kind: str
    label: str
    sizes: tuple[int | str, ...]
    inputs: tuple[Input, ...]

    @property
    def name(self) -> str:
        """What the tables call it."""
        return f"{self.network}: {self.label}"

    @property
    def slug(self) -> str:
        """The same as a name of Python."""
        return re.sub(r"\W+", "_", self.name)

    @property
    def alone(self) -> Operator:
        """The convolution or dense layer without its activation, which is the last of the sizes."""
        return replace(self, sizes=(*self.sizes[:-1], ""))

    @property
    def row(self) -> Row:
        """The row of the benchmark."""
        return Row(self.name, f"benchmarks.operator_modules:{self.slug}", self.inputs)


CONVOLUTIONS: Final = (
    # network, channels, filters, size of the image, window, stride, groups, activation
    ("ResNet-50", 3, 64, 224, 7, 2, 1, "relu"),
    ("ResNet-50", 64, 64, 56, 1, 1, 1, "relu"),
    ("ResNet-50", 64, 64, 56, 3, 1, 1, "relu"),
    ("ResNet-50", 64, 256, 56, 1, 1, 1, ""),
    ("ResNet-50", 256, 64, 56, 1, 1, 1, "relu"),
    ("ResNet-50", 256, 512, 56, 1, 2, 1, ""),
    ("ResNet-50", 128, 128, 56, 3, 2, 1, "relu"),
    ("ResNet-50", 128, 128, 28, 3, 1, 1, "relu"),
    ("ResNet-50", 512, 128, 28, 1, 1, 1, "relu"),
    ("ResNet-50", 256, 256, 14, 3, 1, 1, "relu"),
    ("ResNet-50", 1024, 256, 14, 1, 1, 1, "relu"),
    ("ResNet-50", 256, 1024, 14, 1, 1, 1, ""),
    ("ResNet-50", 512, 512, 7, 3, 1, 1, "relu"),
    ("ResNet-50", 2048, 512, 7, 1, 1, 1, "relu"),
    ("MobileNetV2", 3, 32, 224, 3, 2, 1, "relu6"),
    ("MobileNetV2", 32, 32, 112, 3, 1, 32, "relu6"),
    ("MobileNetV2", 96, 96, 112, 3, 2, 96, "relu6"),
    ("MobileNetV2", 16, 96, 112, 1, 1, 1, "relu6"),
    ("MobileNetV2", 144, 24, 56, 1, 1, 1, ""),
    ("MobileNetV2", 144, 144, 56, 3, 1, 144, "relu6"),
    ("MobileNetV2", 384, 384, 14, 3, 1, 384, "relu6"),
    ("MobileNetV2", 384, 64, 14, 1, 1, 1, ""),
    ("MobileNetV2", 960, 960, 7, 3, 1, 960, "relu6"),
    ("MobileNetV2", 320, 1280, 7, 1, 1, 1, "relu6"),
    ("EfficientNet-B0", 32, 32, 112, 3, 1, 32, "silu"),
    ("EfficientNet-B0", 144, 144, 56, 5, 2, 144, "silu"),
    ("EfficientNet-B0", 480, 480, 14, 5, 1, 480, "silu"),
    ("EfficientNet-B0", 40, 240, 28, 1, 1, 1, "silu"),
    ("EfficientNet-B0", 1152, 192, 7, 1, 1, 1, ""),
    ("ViT-B/16", 3, 768, 224, 16, 16, 1, ""),
)  # fmt: skip

PRODUCTS: Final = (
    # network, what, rows, inputs, outputs, activation
    ("ResNet-50", "classifier", 1, 2048, 1000, ""),
    ("MobileNetV2", "classifier", 1, 1280, 1000, ""),
    ("BERT", "projection", 128, 768, 768, ""),
    ("BERT", "first of the feed-forward", 128, 768, 3072, "gelu"),
    ("BERT", "second of the feed-forward", 128, 3072, 768, ""),
    ("GPT-2", "queries, keys, values", 64, 768, 2304, ""),
    ("GPT-2", "first of the feed-forward", 64, 768, 3072, "gelu tanh"),
    ("GPT-2", "one token", 1, 768, 3072, "gelu tanh"),
    ("GPT-2", "words of one token", 1, 768, 50257, ""),
    ("Llama", "queries", 32, 1024, 1024, ""),
    ("Llama", "keys", 32, 1024, 256, ""),
    ("Llama", "gate", 32, 1024, 2816, "silu"),
    ("Llama", "down", 32, 2816, 1024, ""),
    ("Llama", "down, one token", 1, 2816, 1024, ""),
    ("ViT-B/16", "projection", 197, 768, 768, ""),
    ("ViT-B/16", "first of the feed-forward", 197, 768, 3072, "gelu"),
)

ONE_ARRAY: Final = (
    # network, what, kind, sizes, shape of the input
    ("ResNet-50", "max pool", "max_pool", (3, 2, 1), (1, 64, 112, 112)),
    ("ResNet-50", "mean of the image", "mean_pool", (), (1, 2048, 7, 7)),
    ("ResNet-50", "relu", "relu", (), (1, 256, 56, 56)),
    ("EfficientNet-B0", "silu", "silu", (), (1, 96, 112, 112)),
    ("EfficientNet-B0", "squeeze and excite", "squeeze_excite", (96, 4), (1, 96, 56, 56)),
    ("BERT", "layer norm", "layer_norm", (768,), (1, 128, 768)),
    ("BERT", "softmax", "softmax", (), (1, 12, 128, 128)),
    ("BERT", "gelu", "gelu", (), (1, 128, 3072)),
    ("BERT", "heads apart", "split_heads", (12,), (1, 128, 768)),
    ("BERT", "heads together", "join_heads", (), (1, 12, 128, 64)),
    ("GPT-2", "gelu by tanh", "gelu tanh", (), (1, 64, 3072)),
    ("GPT-2", "softmax over words", "softmax", (), (1, 50257)),
    ("Llama", "RMS norm", "rms_norm", (1024,), (1, 32, 1024)),
    ("ViT-B/16", "layer norm", "layer_norm", (768,), (1, 197, 768)),
    ("ViT-B/16", "softmax", "softmax", (), (1, 12, 197, 197)),
    ("ViT-B/16", "patches to rows", "patches_to_rows", (), (1, 768, 14, 14)),
)

SEVERAL_ARRAYS: Final = (
    # network, what, kind, sizes, inputs
    ("ResNet-50", "sum and relu", "add_relu", (), (Input((1, 256, 56, 56)),) * 2),
    ("MobileNetV2", "sum", "add", (), (Input((1, 24, 56, 56)),) * 2),
    ("BERT", "sum and layer norm", "add_layer_norm", (768,), (Input((1, 128, 768)),) * 2),
    ("BERT", "attention", "attention", (), (Input((1, 12, 128, 64)),) * 3),
    ("BERT", "scores", "scores", (), (Input((12, 128, 64)),) * 2),
    ("BERT", "words", "embedding", (30522, 768), (Input((1, 128), below=30522),)),
    ("GPT-2", "causal attention", "causal_attention", (), (Input((1, 12, 64, 64)),) * 3),
    ("Llama", "gate times up", "silu_product", (), (Input((1, 32, 2816)),) * 2),
    ("Llama", "rotary positions", "rotary", (),
     (Input((1, 16, 32, 64)), Input((32, 64)), Input((32, 64)))),
    ("Llama", "grouped attention", "grouped_attention", (4,),
     (Input((1, 16, 32, 64)), Input((1, 4, 32, 64)), Input((1, 4, 32, 64)))),
    ("ViT-B/16", "attention", "attention", (), (Input((1, 12, 197, 64)),) * 3),
)  # fmt: skip

SEQUENCES: Final = (
    # network, what, kind, sizes, shape of the input
    ("wav2vec 2.0", "conv 10 by 5, 1 to 512", "sequence_conv", (1, 512, 10, 5), (1, 1, 16000)),
    ("wav2vec 2.0", "conv 3 by 2, 512 to 512", "sequence_conv", (512, 512, 3, 2), (1, 512, 799)),
    ("Whisper", "conv 3 by 2, 384 to 384", "sequence_conv", (384, 384, 3, 2), (1, 384, 500)),
    ("EnCodec", "conv 8 by 4, 64 to 128", "sequence_conv", (64, 128, 8, 4), (1, 64, 2000)),
    ("spectrum", "conv 400 by 160, 1 to 402", "sequence_conv", (1, 402, 400, 160), (1, 1, 16000)),
    ("NSNet2", "GRU of 400", "recurrent", ("GRU", 400, 400), (20, 1, 400)),
    ("LSTM", "128, 50 steps", "recurrent", ("LSTM", 128, 128), (50, 1, 128)),
    ("LSTM", "512, 50 steps", "recurrent", ("LSTM", 512, 512), (50, 1, 512)),
)


def _convolution(
    network: str, channels: int, filters: int, size: int, *more: int | str
) -> Operator:
    window, stride, groups, activation = more
    kind = "depthwise" if groups == channels else "conv"
    label = f"{kind} {window}x{window} {channels} to {filters}, {size}"
    label += f" by {stride}" * (stride != 1) + f", {activation}" * bool(activation)
    inputs = (Input((1, channels, size, size)),)
    return Operator(network, "conv", label, (channels, filters, *more), inputs)


def _product(
    network: str, what: str, rows: int, inputs: int, outputs: int, activation: str
) -> Operator:
    label = f"dense {rows} x {inputs} to {outputs}, {what}" + f", {activation}" * bool(activation)
    sizes = (inputs, outputs, activation)
    return Operator(network, "dense", label, sizes, (Input((rows, inputs)),))


def _times(shape: tuple[int, ...]) -> str:
    return " x ".join([str(extent) for extent in shape if extent != 1])


OPERATORS: Final = (
    *[_convolution(*row) for row in CONVOLUTIONS],
    *[_product(*row) for row in PRODUCTS],
    *[Operator(network, kind, f"{what} {_times(shape)}", sizes, (Input(shape),))
      for network, what, kind, sizes, shape in (*ONE_ARRAY, *SEQUENCES)],
    *[Operator(network, kind, f"{what} {_times(inputs[0].shape)}", sizes, inputs)
      for network, what, kind, sizes, inputs in SEVERAL_ARRAYS],
)  # fmt: skip
"""Every operator that ``python -m benchmarks ops`` measures."""
