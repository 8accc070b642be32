"""The twelve networks of ``python -m benchmarks models``, with random weights, as they are known.

torchvision's and transformers' own models where they have one, without heads of zeros, and with
batch norms after which activations neither vanish nor grow (``tests.lib.zoo``). The mask of the
two decoders is given to them as a constant, since PyTorch's exporter to ONNX does not know how they
make it.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, Final

from benchmarks.rows import Input, Row

IMAGE: Final = (Input((1, 3, 224, 224)),)


def _seeded() -> Any:
    torch = importlib.import_module("torch")
    torch.manual_seed(0)
    return torch


def mlp() -> Any:
    """784-128-10 with a ReLU."""
    torch = _seeded()
    return torch.nn.Sequential(torch.nn.Linear(784, 128), torch.nn.ReLU(), torch.nn.Linear(128, 10))


def cnn() -> Any:
    """The convolutional network of the course's assignment (src/weft/cli/demo_cnn.py)."""
    torch = _seeded()
    return torch.nn.Sequential(
        torch.nn.Conv2d(1, 32, 3), torch.nn.ReLU(), torch.nn.MaxPool2d(2), torch.nn.Flatten(),
        torch.nn.Linear(5408, 100), torch.nn.ReLU(), torch.nn.Linear(100, 10),
        torch.nn.Softmax(-1),
    )  # fmt: skip


def _vision(name: str) -> Callable[[], Any]:
    def make() -> Any:
        torch = _seeded()
        zoo = importlib.import_module("tests.lib.zoo")
        zoo.import_torchvision()
        model = importlib.import_module("torchvision.models").get_model(name, weights=None)
        return zoo.settle(zoo.stir(model).eval(), torch.randn(IMAGE[0].shape))

    return make


resnet18, resnet50, mobilenet_v2 = _vision("resnet18"), _vision("resnet50"), _vision("mobilenet_v2")
efficientnet_b0, squeezenet1_1 = _vision("efficientnet_b0"), _vision("squeezenet1_1")
vgg11, vit_b_16 = _vision("vgg11"), _vision("vit_b_16")


def _segmentation(name: str) -> Callable[[], Any]:
    """A network of torchvision that says of each pixel what it is part of."""

    def make() -> Any:
        torch = _seeded()
        zoo = importlib.import_module("tests.lib.zoo")
        zoo.import_torchvision()
        models = importlib.import_module("torchvision.models.segmentation")
        network = getattr(models, name)(weights=None, weights_backbone=None)

        class Scores(torch.nn.Module):  # type: ignore[misc]  # torch is imported by name
            def __init__(self) -> None:
                super().__init__()
                self.network = network

            def forward(self, image: Any) -> Any:
                return self.network(image)["out"]

        return zoo.settle(zoo.stir(Scores()).eval(), torch.randn(IMAGE[0].shape))

    return make


lraspp = _segmentation("lraspp_mobilenet_v3_large")
deeplab = _segmentation("deeplabv3_mobilenet_v3_large")


def _transformers() -> Any:
    _seeded()
    importlib.import_module("tests.lib.zoo").import_torchvision()  # transformers imports it
    return importlib.import_module("transformers")


def bert() -> Any:
    """BERT-base."""
    library = _transformers()
    return _hidden(library.BertModel(library.BertConfig()))


def gpt2() -> Any:
    """GPT-2 with 124 million parameters, without its head."""
    library = _transformers()
    return _hidden(library.GPT2Model(library.GPT2Config(use_cache=False)), 64)


def llama() -> Any:
    """Eight layers of a Llama: hidden size 1024, 16 heads, 4 of keys and values, MLP 2816."""
    library = _transformers()
    configuration = library.LlamaConfig(
        vocab_size=32000, hidden_size=1024, intermediate_size=2816, num_hidden_layers=8,
        num_attention_heads=16, num_key_value_heads=4, use_cache=False,
    )  # fmt: skip
    return _hidden(library.LlamaModel(configuration), 32)


def _hidden(model: Any, tokens: int = 0) -> Any:
    """From token numbers to the last hidden state; ``tokens`` says that it is causal."""
    torch = importlib.import_module("torch")

    class Hidden(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model
            least = torch.finfo(torch.float32).min
            self.register_buffer("mask", torch.full((1, 1, tokens, tokens), least).triu(1))

        def forward(self, numbers: Any) -> Any:
            mask = {"attention_mask": self.mask} if tokens else {}
            return self.model(input_ids=numbers, **mask)[0]

    return Hidden()


def _row(name: str, make: str, inputs: tuple[Input, ...]) -> Row:
    return Row(name, f"benchmarks.networks:{make}", inputs)


NETWORKS: Final = (
    _row("MLP 784-128-10", "mlp", (Input((1, 784)),)),
    _row("CNN batch 4", "cnn", (Input((4, 1, 28, 28)),)),
    _row("ResNet-18", "resnet18", IMAGE),
    _row("ResNet-50", "resnet50", IMAGE),
    _row("MobileNetV2", "mobilenet_v2", IMAGE),
    _row("EfficientNet-B0", "efficientnet_b0", IMAGE),
    _row("SqueezeNet 1.1", "squeezenet1_1", IMAGE),
    _row("VGG-11", "vgg11", IMAGE),
    _row("ViT-B/16", "vit_b_16", IMAGE),
    _row("BERT-base 128 tokens", "bert", (Input((1, 128), below=30522),)),
    _row("GPT-2 64 tokens", "gpt2", (Input((1, 64), below=50257),)),
    _row("Llama-like 32 tokens", "llama", (Input((1, 32), below=32000),)),
)
"""Every network that ``python -m benchmarks models`` measures."""
