"""The zoo: architectures that people deploy, small, with random weights.

One table serves the test of the zoo (``-m slow``) and the benchmarks. A row makes a model of the
library's own class with fewer layers and narrower ones where its configuration allows, since what
is tested is the architecture: which operators it uses, and how they are put together. Images are as
small as a model takes them. Weights are random everywhere: what a library fills with one number
(a head of zeros, a layer's scale of 1e-6) would hide what comes before it. torchvision, timm and
transformers are asked for at first use.
"""

from __future__ import annotations

import functools
import importlib
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import torch

Inputs = Callable[[], Mapping[str, torch.Tensor] | tuple[torch.Tensor, ...]]


@dataclass(frozen=True)
class Architecture:
    """One model: the library that it comes from, how to make it, what it is called with."""

    name: str
    library: str
    make: Callable[[], torch.nn.Module] = field(compare=False)
    inputs: Inputs = field(compare=False)

    def model(self) -> torch.nn.Module:
        """The model with random weights that are the same every time, ready for inference."""
        torch.manual_seed(0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = stir(self.make()).eval()
            args, kwargs = self.example()
            return settle(model, *args, **kwargs)

    def example(self, seed: int = 1) -> tuple[tuple[torch.Tensor, ...], dict[str, torch.Tensor]]:
        """Positional and keyword arguments of a call, the same every time for a seed."""
        torch.manual_seed(seed)
        found = self.inputs()
        return ((), dict(found)) if isinstance(found, Mapping) else (tuple(found), {})


def stir(model: torch.nn.Module) -> torch.nn.Module:
    """Random numbers in parameters and statistics that are one number all over; the same model.

    Around 0 with a deviation of 0.1, and within a fifth of what is 0.1 or larger. Tensors of one
    element stay, as do other buffers, which may be masks.
    """
    statistics = [
        buffer
        for name, buffer in model.named_buffers()
        if name.rpartition(".")[2] in _STATISTICS and buffer.is_floating_point()
    ]
    with torch.no_grad():
        for tensor in [*model.parameters(), *statistics]:
            if tensor.numel() < 2 or not bool((tensor == tensor.flatten()[0]).all()):
                continue
            start = float(tensor.flatten()[0])
            if abs(start) < _SMALL_START:
                tensor.normal_(start, _SMALL_START)
            else:
                tensor.mul_(torch.empty_like(tensor).uniform_(0.8, 1.2))
    return model


_STATISTICS: Final = ("weight", "bias", "running_mean", "running_var")
_SMALL_START: Final = 0.1


def settle(model: torch.nn.Module, *args: Any, **kwargs: Any) -> torch.nn.Module:
    """Statistics of batch norms near those of this call, layer by layer; the same model.

    With the statistics that they start with, the activations of a deep network vanish or grow, and
    its output no longer depends on its input. Only a tenth of the mean is taken away: with half of
    it DenseNet's output in float32 is 3e-3 off that in float64, with a tenth 3e-6. Half of the
    variance is that of the whole layer, since a channel may have a single value in this call.
    """
    kind = torch.nn.modules.batchnorm._BatchNorm
    norms = [norm for norm in model.modules() if isinstance(norm, kind)]
    hooks = [norm.register_forward_pre_hook(_take_statistics) for norm in norms]
    with torch.no_grad():
        if hooks:
            model(*args, **kwargs)
    for hook in hooks:
        hook.remove()
    return model


def _take_statistics(norm: torch.nn.Module, inputs: tuple[torch.Tensor, ...]) -> None:
    (data,) = inputs
    axes = [axis for axis in range(data.ndim) if axis != 1]
    mean = data.mean(axes) / 10
    around = data - mean.reshape(1, -1, *[1] * (data.ndim - 2))
    variance = around.square().mean(axes)
    variance = (variance + variance.mean()) / 2
    for place, value in ((norm.running_mean, mean), (norm.running_var, variance)):
        if isinstance(place, torch.Tensor):
            place.copy_(value)


def import_torchvision() -> Any:
    """torchvision, also where its operators' C++ part does not fit the torch that is installed.

    Two operators of detection are then only declared, which is enough for everything else.
    """
    try:
        return importlib.import_module("torchvision")
    except RuntimeError:
        _declare_detection()
        return importlib.import_module("torchvision")


@functools.cache
def _declare_detection() -> Any:
    library = torch.library.Library("torchvision", "DEF")
    for name in ("nms", "qnms"):
        library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    return library


def image(size: int = 64, batch: int = 1, channels: int = 3) -> Inputs:
    """Random images."""
    return lambda: (torch.randn(batch, channels, size, size),)


def video(frames: int = 8, size: int = 32) -> Inputs:
    """A random video."""
    return lambda: (torch.randn(1, 3, frames, size, size),)


def tokens(length: int = 12, batch: int = 1, vocabulary: int = 96) -> Inputs:
    """Random token numbers as ``input_ids``."""
    return lambda: {"input_ids": torch.randint(0, vocabulary, (batch, length))}


def _vision(name: str, inputs: Inputs, **options: Any) -> Architecture:
    def make() -> torch.nn.Module:
        import_torchvision()
        models = importlib.import_module("torchvision.models")
        found: torch.nn.Module = models.get_model(name, weights=None, **options)
        return found

    return Architecture(name, "torchvision", make, inputs)


def _maxvit() -> torch.nn.Module:
    """maxvit_t with one layer a block and windows of 2, since those of 7 want images of 224."""
    import_torchvision()
    models = importlib.import_module("torchvision.models")
    found: torch.nn.Module = models.MaxVit(
        input_size=(64, 64), stem_channels=64, partition_size=2, head_dim=32,
        block_channels=[64, 128, 256, 512], block_layers=[1, 1, 1, 1], stochastic_depth_prob=0.2,
    )  # fmt: skip
    return found


def _s3d() -> torch.nn.Module:
    """s3d whose last pool is as large as what videos of 64 leave, where its own wants 224."""
    import_torchvision()
    found: torch.nn.Module = importlib.import_module("torchvision.models.video").s3d(weights=None)
    found.avgpool = torch.nn.AvgPool3d((2, 2, 2), stride=1)
    return found


def _detr() -> torch.nn.Module:
    """Carion et al., "End-to-End Object Detection with Transformers" (2020), on a small ResNet."""
    import_torchvision()
    library = importlib.import_module("transformers")
    backbone = library.ResNetConfig(
        embedding_size=8, hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 1, 1],
        out_features=["stage4"],
    )  # fmt: skip
    sizes = {name: value for name, value in ENCODER_DECODER.items() if name != "vocab_size"}
    configuration = library.DetrConfig(
        use_timm_backbone=False, use_pretrained_backbone=False, backbone=None,
        backbone_config=backbone, num_queries=10, num_labels=5, **sizes,
    )  # fmt: skip
    found: torch.nn.Module = library.DetrForObjectDetection(configuration)
    return found


def _timm(name: str, inputs: Inputs, **options: Any) -> Architecture:
    def make() -> torch.nn.Module:
        import_torchvision()
        timm = importlib.import_module("timm")
        found: torch.nn.Module = timm.create_model(name, pretrained=False, **options)
        return found

    return Architecture(f"timm-{name}", "timm", make, inputs)


def _transformer(
    name: str, model: str, config: str, inputs: Inputs, **options: Any
) -> Architecture:
    def make() -> torch.nn.Module:
        import_torchvision()
        library = importlib.import_module("transformers")
        configuration = getattr(library, config)(**options)
        found: torch.nn.Module = getattr(library, model)(configuration)
        return found

    return Architecture(name, "transformers", make, inputs)


SMALL: Final = {
    "vocab_size": 96, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
    "intermediate_size": 64, "max_position_embeddings": 64, "attn_implementation": "sdpa",
}  # fmt: skip
"""Options that most encoders and decoders of transformers have."""
DECODER: Final = {**SMALL, "num_key_value_heads": 2, "use_cache": False}
ENCODER_DECODER: Final = {
    "vocab_size": 96, "d_model": 32, "encoder_layers": 2, "decoder_layers": 2,
    "encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 64,
    "decoder_ffn_dim": 64, "use_cache": False,
}  # fmt: skip
SMALL_VISION: Final = {
    "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64,
    "image_size": 32, "patch_size": 8,
}  # fmt: skip


def _both_sides() -> Mapping[str, torch.Tensor]:
    return {
        "input_ids": torch.randint(3, 96, (1, 9)),
        "decoder_input_ids": torch.randint(3, 96, (1, 7)),
    }


def _speech() -> Mapping[str, torch.Tensor]:
    return {
        "input_features": torch.randn(1, 16, 64),
        "decoder_input_ids": torch.randint(3, 96, (1, 7)),
    }


def _text_and_image() -> Mapping[str, torch.Tensor]:
    return {
        "input_ids": torch.randint(3, 90, (2, 9)),
        "pixel_values": torch.randn(2, 3, 32, 32),
        "attention_mask": torch.ones(2, 9, dtype=torch.int64),
    }


class LanguageModel(torch.nn.Module):
    """Embedding, two LSTM layers, a dense layer: the language model of PyTorch's tutorials."""

    def __init__(self, words: int = 96, width: int = 32) -> None:
        super().__init__()
        self.embedding = torch.nn.Embedding(words, width)
        self.recurrent = torch.nn.LSTM(width, width, num_layers=2, batch_first=True)
        self.dense = torch.nn.Linear(width, words)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        """Scores of the next word at every place."""
        hidden, _ = self.recurrent(self.embedding(words))
        found: torch.Tensor = self.dense(hidden)
        return found


class UNet(torch.nn.Module):
    """Ronneberger, Fischer, Brox, "U-Net: Convolutional Networks for Biomedical Image
    Segmentation" (2015), two levels deep.
    """

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.down = torch.nn.ModuleList([_twice(3, width), _twice(width, 2 * width)])
        self.bottom = _twice(2 * width, 4 * width)
        self.up = torch.nn.ModuleList([
            torch.nn.ConvTranspose2d(4 * width, 2 * width, 2, stride=2),
            torch.nn.ConvTranspose2d(2 * width, width, 2, stride=2),
        ])  # fmt: skip
        self.join = torch.nn.ModuleList([_twice(4 * width, 2 * width), _twice(2 * width, width)])
        self.head = torch.nn.Conv2d(width, 2, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Scores of two classes for each pixel."""
        kept = []
        for block in self.down:
            x = block(x)
            kept.append(x)
            x = torch.nn.functional.max_pool2d(x, 2)
        x = self.bottom(x)
        for grow, block in zip(self.up, self.join, strict=True):
            x = block(torch.cat([kept.pop(), grow(x)], 1))
        found: torch.Tensor = self.head(x)
        return found


def _twice(before: int, after: int) -> torch.nn.Sequential:
    return torch.nn.Sequential(
        torch.nn.Conv2d(before, after, 3, padding=1), torch.nn.BatchNorm2d(after),
        torch.nn.ReLU(inplace=True), torch.nn.Conv2d(after, after, 3, padding=1),
        torch.nn.BatchNorm2d(after), torch.nn.ReLU(inplace=True),
    )  # fmt: skip


ZOO: Final = (
    # Classification, of torchvision
    _vision("alexnet", image(64)),
    _vision("vgg11", image(32)),
    _vision("vgg16_bn", image(32)),
    _vision("resnet18", image()),
    _vision("resnet50", image()),
    _vision("wide_resnet50_2", image(32)),
    _vision("resnext50_32x4d", image(32)),
    _vision("densenet121", image(32)),
    _vision("inception_v3", image(96), init_weights=False, aux_logits=True),
    _vision("googlenet", image(64), init_weights=False, aux_logits=True),
    _vision("mobilenet_v2", image()),
    _vision("mobilenet_v3_small", image()),
    _vision("efficientnet_b0", image()),
    _vision("efficientnet_v2_s", image()),  # with 32 pixels rounding grows to a thousandth
    _vision("shufflenet_v2_x0_5", image()),
    _vision("squeezenet1_1", image()),
    _vision("convnext_tiny", image(32)),
    _vision("regnet_y_400mf", image()),
    _vision("mnasnet0_5", image()),
    _vision("swin_t", image()),
    _vision("swin_v2_t", image()),
    _vision("vit_b_16", image(32), image_size=32),
    Architecture("maxvit_t", "torchvision", _maxvit, image(64)),
    # Segmentation and video, of torchvision
    _vision("fcn_resnet50", image(32), weights_backbone=None),
    _vision("deeplabv3_resnet50", image(32), weights_backbone=None),
    _vision("lraspp_mobilenet_v3_large", image(32), weights_backbone=None),
    _vision("r3d_18", video()),
    _vision("mc3_18", video()),
    _vision("r2plus1d_18", video()),
    Architecture("s3d", "torchvision", _s3d, video(16, 64)),
    # Classification, of timm
    _timm("mixer_s32_224", image(64), img_size=64),
    _timm("deit_tiny_patch16_224", image(32), img_size=32, depth=3),
    _timm("cait_xxs24_224", image(32), img_size=32, depth=3),
    _timm("beit_base_patch16_224", image(32), img_size=32, depth=2,
          head_init_scale=1.0),
    _timm("poolformer_s12", image(64)),
    _timm("pvt_v2_b0", image(64), depths=(1, 1, 1, 1)),
    _timm("levit_128s", image(224), depth=(1, 1, 1)),
    _timm("mobilevit_xxs", image(64)),
    _timm("edgenext_xx_small", image(64)),
    _timm("ghostnet_100", image(64)),
    _timm("repvgg_a0", image(64)),
    _timm("res2net50_26w_4s", image(32)),
    _timm("hrnet_w18_small", image(64)),
    _timm("dla34", image(64)),
    _timm("xception41", image(64)),
    _timm("convmixer_768_32", image(32)),
    _timm("coatnet_nano_rw_224", image(64), img_size=64),
    _timm("twins_pcpvt_small", image(64), img_size=64, depths=(1, 1, 1, 1)),
    # Encoders of language
    _transformer("bert", "BertModel", "BertConfig", tokens(), **SMALL),
    _transformer("distilbert", "DistilBertModel", "DistilBertConfig", tokens(), vocab_size=96,
                 dim=32, n_layers=2, n_heads=4, hidden_dim=64),
    _transformer("roberta", "RobertaModel", "RobertaConfig", tokens(), **SMALL),
    _transformer("albert", "AlbertModel", "AlbertConfig", tokens(), **SMALL, embedding_size=16),
    _transformer("electra", "ElectraModel", "ElectraConfig", tokens(), **SMALL, embedding_size=16),
    # Decoders of language
    _transformer("gpt2", "GPT2LMHeadModel", "GPT2Config", tokens(), vocab_size=96, n_embd=32,
                 n_layer=2, n_head=4, n_positions=64, use_cache=False),
    _transformer("gpt-neo", "GPTNeoForCausalLM", "GPTNeoConfig", tokens(), vocab_size=96,
                 hidden_size=32, num_layers=2, num_heads=4, max_position_embeddings=64,
                 use_cache=False, attention_types=[[["global", "local"], 1]]),
    _transformer("opt", "OPTForCausalLM", "OPTConfig", tokens(), vocab_size=96, hidden_size=32,
                 num_hidden_layers=2, num_attention_heads=4, ffn_dim=64, word_embed_proj_dim=32,
                 max_position_embeddings=64, use_cache=False),
    _transformer("llama", "LlamaForCausalLM", "LlamaConfig", tokens(), **DECODER),
    _transformer("mistral", "MistralForCausalLM", "MistralConfig", tokens(), **DECODER),
    _transformer("qwen2", "Qwen2ForCausalLM", "Qwen2Config", tokens(), **DECODER),
    _transformer("gemma", "GemmaForCausalLM", "GemmaConfig", tokens(), **DECODER, head_dim=8),
    _transformer("phi", "PhiForCausalLM", "PhiConfig", tokens(), **DECODER),
    # Mixtures of experts
    _transformer("mixtral", "MixtralForCausalLM", "MixtralConfig", tokens(), **DECODER,
                 num_local_experts=4),
    # Both; speech; images; text and images
    _transformer("t5", "T5Model", "T5Config", _both_sides, vocab_size=96, d_model=32, d_kv=8,
                 d_ff=64, num_layers=2, num_heads=4, use_cache=False),
    _transformer("bart", "BartModel", "BartConfig", _both_sides, **ENCODER_DECODER),
    _transformer("whisper", "WhisperModel", "WhisperConfig", _speech, **ENCODER_DECODER,
                 num_mel_bins=16, max_source_positions=32, max_target_positions=32,
                 pad_token_id=1, bos_token_id=1, eos_token_id=1, decoder_start_token_id=1),
    _transformer("wav2vec2", "Wav2Vec2Model", "Wav2Vec2Config", lambda: (torch.randn(1, 800),),
                 hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
                 conv_dim=(16, 16, 16), conv_stride=(5, 2, 2), conv_kernel=(10, 3, 3),
                 num_conv_pos_embeddings=16, num_conv_pos_embedding_groups=4),
    _transformer("clip", "CLIPModel", "CLIPConfig", _text_and_image, projection_dim=16,
                 text_config={**SMALL, "attn_implementation": None},
                 vision_config=SMALL_VISION),
    _transformer("hf-vit", "ViTModel", "ViTConfig", image(32), **SMALL_VISION),
    _transformer("hf-deit", "DeiTModel", "DeiTConfig", image(32), **SMALL_VISION),
    _transformer("segformer", "SegformerModel", "SegformerConfig", image(64),
                 hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 1, 1]),
    Architecture("detr", "transformers", _detr, image(64)),
    # Of our own
    Architecture("unet", "torch", UNet, image(32)),
    Architecture("lstm-language-model", "torch", LanguageModel,
                 lambda: (torch.randint(0, 96, (2, 9)),)),
)  # fmt: skip
"""All architectures, by library."""


def find(name: str) -> Architecture:
    """The architecture of a name; KeyError if there is none."""
    return {item.name: item for item in ZOO}[name]
