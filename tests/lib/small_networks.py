"""Small networks of PyTorch that tests compile for other processors."""

from __future__ import annotations

import torch


class Cnn(torch.nn.Module):
    """Convolutions, a norm, pooling, a residual sum, a product."""

    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.Conv2d(1, 16, 3, padding=1)
        self.norm = torch.nn.BatchNorm2d(16)
        self.second = torch.nn.Conv2d(16, 16, 3, padding=1)
        self.last = torch.nn.Linear(16 * 14 * 14, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.relu(self.norm(self.first(x)))
        x = torch.max_pool2d(x + torch.relu(self.second(x)), 2)
        return torch.softmax(self.last(x.flatten(1)), -1)


class Bert(torch.nn.Module):
    """BERT-base (Devlin et al., 2019) with two layers."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.places = torch.nn.Embedding(1000, 768), torch.nn.Embedding(512, 768)
        self.norm = torch.nn.LayerNorm(768, eps=1e-12)
        layer = torch.nn.TransformerEncoderLayer(
            768, 12, 3072, batch_first=True, activation="gelu", layer_norm_eps=1e-12
        )
        self.layers = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.pooler = torch.nn.Linear(768, 768)

    def forward(self, tokens: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        places = torch.arange(tokens.shape[1], device=tokens.device)
        hidden = self.layers(self.norm(self.words(tokens) + self.places(places)))
        return hidden, torch.tanh(self.pooler(hidden[:, 0]))
