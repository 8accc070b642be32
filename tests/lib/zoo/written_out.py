"""Networks of the zoo that no library here has, written out as their papers give them."""

from __future__ import annotations

from typing import Final

import torch
from torch.nn.functional import leaky_relu, max_pool2d, silu, softmax

from tests.lib.zoo.architecture import Architecture, image


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
        scores: torch.Tensor = self.dense(hidden)
        return scores


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
            x = max_pool2d(x, 2)
        x = self.bottom(x)
        for grow, block in zip(self.up, self.join, strict=True):
            x = block(torch.cat([kept.pop(), grow(x)], 1))
        scores: torch.Tensor = self.head(x)
        return scores


def _twice(before: int, after: int) -> torch.nn.Sequential:
    return torch.nn.Sequential(
        torch.nn.Conv2d(before, after, 3, padding=1), torch.nn.BatchNorm2d(after),
        torch.nn.ReLU(inplace=True), torch.nn.Conv2d(after, after, 3, padding=1),
        torch.nn.BatchNorm2d(after), torch.nn.ReLU(inplace=True),
    )  # fmt: skip


class DenoisingUNet(torch.nn.Module):
    """Ho, Jain, Abbeel, "Denoising Diffusion Probabilistic Models" (2020), one level deep.

    Residual blocks that the time of the diffusion shifts, group norms, attention over pixels.
    """

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.width = width
        self.time = torch.nn.Sequential(
            torch.nn.Linear(width, 4 * width), torch.nn.SiLU(), torch.nn.Linear(4 * width, width)
        )
        self.first = torch.nn.Conv2d(3, width, 3, padding=1)
        self.down = TimedBlock(width, width)
        self.shrink = torch.nn.Conv2d(width, width, 3, stride=2, padding=1)
        self.middle = TimedBlock(width, 2 * width)
        self.attention = PixelAttention(2 * width)
        self.grow = torch.nn.Conv2d(2 * width, width, 3, padding=1)
        self.up = TimedBlock(2 * width, width)
        self.last = torch.nn.Sequential(
            torch.nn.GroupNorm(4, width), torch.nn.SiLU(),
            torch.nn.Conv2d(width, 3, 3, padding=1),
        )  # fmt: skip

    def forward(self, x: torch.Tensor, step: torch.Tensor) -> torch.Tensor:
        """The noise in each image, which is ``step`` steps of diffusion old."""
        rates = torch.exp(torch.arange(self.width // 2) * (-9.0 / (self.width // 2)))
        angles = step[:, None].float() * rates
        time = self.time(torch.cat([angles.sin(), angles.cos()], 1))
        kept = self.down(self.first(x), time)
        x = self.attention(self.middle(self.shrink(kept), time))
        x = self.grow(torch.nn.functional.interpolate(x, scale_factor=2.0, mode="nearest"))
        noise: torch.Tensor = self.last(self.up(torch.cat([x, kept], 1), time))
        return noise


class TimedBlock(torch.nn.Module):
    """A residual block of two convolutions; the embedded time is added in between."""

    def __init__(self, before: int, after: int, width: int = 16) -> None:
        super().__init__()
        self.norms = torch.nn.ModuleList([torch.nn.GroupNorm(4, n) for n in (before, after)])
        self.convolutions = torch.nn.ModuleList([
            torch.nn.Conv2d(before, after, 3, padding=1),
            torch.nn.Conv2d(after, after, 3, padding=1),
        ])  # fmt: skip
        self.time = torch.nn.Linear(width, after)
        self.skip = torch.nn.Conv2d(before, after, 1)

    def forward(self, x: torch.Tensor, time: torch.Tensor) -> torch.Tensor:
        """Images of the same size."""
        y = self.convolutions[0](silu(self.norms[0](x))) + self.time(silu(time))[:, :, None, None]
        return self.convolutions[1](silu(self.norms[1](y))) + self.skip(x)


class PixelAttention(torch.nn.Module):
    """Attention of all pixels to all pixels, with a residual."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = torch.nn.GroupNorm(4, width)
        self.project = torch.nn.Conv2d(width, 3 * width, 1)
        self.out = torch.nn.Conv2d(width, width, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Images of the same size."""
        shape = x.shape
        parts = self.project(self.norm(x)).flatten(2).transpose(1, 2).chunk(3, 2)
        y = torch.nn.functional.scaled_dot_product_attention(*parts)
        return x + self.out(y.transpose(1, 2).reshape(shape))


class DLRM(torch.nn.Module):
    """Naumov et al., "Deep Learning Recommendation Model for Personalization and Recommendation
    Systems" (2019): bags of embeddings, products of all pairs of features.
    """

    def __init__(self, tables: tuple[int, ...] = (50, 30, 20), width: int = 8) -> None:
        super().__init__()
        self.tables = torch.nn.ModuleList([
            torch.nn.EmbeddingBag(rows, width, mode="sum") for rows in tables
        ])  # fmt: skip
        self.bottom = torch.nn.Sequential(
            torch.nn.Linear(13, 32), torch.nn.ReLU(), torch.nn.Linear(32, width), torch.nn.ReLU()
        )
        pairs = (len(tables) + 1) * len(tables) // 2
        self.top = torch.nn.Sequential(
            torch.nn.Linear(width + pairs, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1)
        )

    def forward(self, dense: torch.Tensor, sparse: torch.Tensor) -> torch.Tensor:
        """The chance of a click; ``sparse`` is (batch, tables, entries)."""
        first = self.bottom(dense)
        bags = [table(sparse[:, index]) for index, table in enumerate(self.tables)]
        features = torch.stack([first, *bags], 1)
        products = features @ features.transpose(1, 2)
        rows, columns = torch.tril_indices(features.shape[1], features.shape[1], -1)
        pairs = products[:, rows, columns]
        chance: torch.Tensor = torch.sigmoid(self.top(torch.cat([first, pairs], 1)))
        return chance


class DeepFM(torch.nn.Module):
    """Guo et al., "DeepFM: A Factorization-Machine based Neural Network for CTR Prediction"
    (2017).
    """

    def __init__(self, fields: tuple[int, ...] = (20, 30, 10, 5), width: int = 8) -> None:
        super().__init__()
        starts = torch.tensor([0, *fields[:-1]]).cumsum(0)
        self.register_buffer("starts", starts)
        self.linear = torch.nn.Embedding(sum(fields), 1)
        self.factors = torch.nn.Embedding(sum(fields), width)
        self.deep = torch.nn.Sequential(
            torch.nn.Linear(len(fields) * width, 32), torch.nn.BatchNorm1d(32), torch.nn.ReLU(),
            torch.nn.Dropout(0.2), torch.nn.Linear(32, 1),
        )  # fmt: skip

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        """The chance of a click for a value of each field."""
        at = values + self.starts
        factors = self.factors(at)
        pairs = (factors.sum(1).square() - factors.square().sum(1)).sum(1) / 2
        score = self.linear(at).sum((1, 2)) + pairs + self.deep(factors.flatten(1))[:, 0]
        return torch.sigmoid(score)


class GCN(torch.nn.Module):
    """Kipf, Welling, "Semi-Supervised Classification with Graph Convolutional Networks" (2017)."""

    def __init__(self, width: int = 16, classes: int = 5) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList(
            [torch.nn.Linear(8, width), torch.nn.Linear(width, classes)]
        )

    def forward(self, x: torch.Tensor, edges: torch.Tensor) -> torch.Tensor:
        """Scores of the classes of each node; ``edges`` holds sources and targets."""
        nodes = torch.arange(x.shape[0])
        source, target = torch.cat([edges, torch.stack([nodes, nodes])], 1)
        degree = torch.zeros(x.shape[0]).index_add(0, target, torch.ones(target.shape[0]))
        weight = (degree[source] * degree[target]).rsqrt()[:, None]
        for index, layer in enumerate(self.layers):
            x = layer(torch.relu(x) if index else x)
            x = torch.zeros_like(x).index_add(0, target, weight * x[source])
        return x


class GraphSAGE(torch.nn.Module):
    """Hamilton, Ying, Leskovec, "Inductive Representation Learning on Large Graphs" (2017), with
    the mean of neighbours and the largest of each feature.
    """

    def __init__(self, width: int = 16, classes: int = 5) -> None:
        super().__init__()
        self.own = torch.nn.ModuleList([torch.nn.Linear(8, width), torch.nn.Linear(width, classes)])
        self.near = torch.nn.ModuleList(
            [torch.nn.Linear(8, width), torch.nn.Linear(width, classes)]
        )

    def forward(self, x: torch.Tensor, edges: torch.Tensor) -> torch.Tensor:
        """Scores of the classes of each node."""
        source, target = edges
        places = target[:, None].expand(-1, x.shape[1])
        mean = torch.zeros_like(x).scatter_reduce(0, places, x[source], "mean", include_self=False)
        x = torch.relu(self.own[0](x) + self.near[0](mean))
        places = target[:, None].expand(-1, x.shape[1])
        most = torch.zeros_like(x).scatter_reduce(0, places, x[source], "amax", include_self=False)
        scores: torch.Tensor = self.own[1](x) + self.near[1](most)
        return scores


class GAT(torch.nn.Module):
    """Veličković et al., "Graph Attention Networks" (2018), one layer of several heads."""

    def __init__(self, heads: int = 4, width: int = 8) -> None:
        super().__init__()
        self.heads, self.width = heads, width
        self.project = torch.nn.Linear(8, heads * width, bias=False)
        self.source = torch.nn.Parameter(torch.randn(heads, width) / 3)
        self.target = torch.nn.Parameter(torch.randn(heads, width) / 3)

    def forward(self, x: torch.Tensor, edges: torch.Tensor) -> torch.Tensor:
        """New features of each node: those of its neighbours, weighted by attention."""
        source, target = edges
        x = self.project(x).view(-1, self.heads, self.width)
        score = (x * self.source).sum(-1)[source] + (x * self.target).sum(-1)[target]
        score = leaky_relu(score, 0.2)
        places = target[:, None].expand(-1, self.heads)
        most = torch.full((x.shape[0], self.heads), -1e9).scatter_reduce(0, places, score, "amax")
        weight = torch.exp(score - most[target])
        total = torch.zeros(x.shape[0], self.heads).scatter_add(0, places, weight)
        weight = weight / (total[target] + 1e-16)
        out = torch.zeros_like(x).index_add(0, target, weight[:, :, None] * x[source])
        return torch.nn.functional.elu(out.flatten(1))


class GraphIsomorphism(torch.nn.Module):
    """Xu et al., "How Powerful are Graph Neural Networks?" (2019); a graph's class by a sum."""

    def __init__(self, width: int = 16, classes: int = 3) -> None:
        super().__init__()
        self.share = torch.nn.Parameter(torch.tensor([0.1]))
        self.dense = torch.nn.Sequential(
            torch.nn.Linear(8, width), torch.nn.ReLU(), torch.nn.Linear(width, width),
            torch.nn.ReLU(),
        )  # fmt: skip
        self.head = torch.nn.Linear(width, classes)

    def forward(self, x: torch.Tensor, edges: torch.Tensor, graph: torch.Tensor) -> torch.Tensor:
        """Chances of the classes of two graphs; ``graph`` says of which one a node is."""
        source, target = edges
        x = (1 + self.share) * x + torch.zeros_like(x).index_add(0, target, x[source])
        x = self.dense(x)
        sums = torch.zeros(2, x.shape[1]).index_add(0, graph, x)
        return softmax(self.head(sums), -1)


def _graph() -> tuple[torch.Tensor, ...]:
    return torch.randn(11, 8), torch.randint(0, 11, (2, 30))


def _graphs() -> tuple[torch.Tensor, ...]:
    return *_graph(), torch.tensor([0] * 5 + [1] * 6)


class EEGNet(torch.nn.Module):
    """Lawhern et al., "EEGNet: A Compact Convolutional Neural Network for EEG-based
    Brain-Computer Interfaces" (2018): filters of time and of electrodes, of bounded norms.
    """

    def __init__(self, electrodes: int = 8, filters: int = 4, classes: int = 3) -> None:
        super().__init__()
        self.time = torch.nn.Conv2d(1, filters, (1, 32), padding="same", bias=False)
        self.space = torch.nn.Conv2d(
            filters, 2 * filters, (electrodes, 1), groups=filters, bias=False
        )
        self.apart = torch.nn.Conv2d(
            2 * filters, 2 * filters, (1, 16), padding="same", groups=2 * filters, bias=False
        )
        self.mix = torch.nn.Conv2d(2 * filters, 2 * filters, 1, bias=False)
        self.norms = torch.nn.ModuleList([
            torch.nn.BatchNorm2d(count) for count in (filters, 2 * filters, 2 * filters)
        ])  # fmt: skip
        self.dropout = torch.nn.Dropout2d(0.25)
        self.head = torch.nn.Linear(2 * filters * 4, classes)  # of 128 steps of time

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Scores of the classes of recordings of (electrodes, time)."""
        self.space.weight.data = torch.renorm(self.space.weight.data, p=2, dim=0, maxnorm=1.0)
        x = self.norms[1](self.space(self.norms[0](self.time(x[:, None]))))
        x = self.dropout(torch.nn.functional.avg_pool2d(torch.nn.functional.elu(x), (1, 4)))
        x = self.norms[2](self.mix(self.apart(x)))
        x = self.dropout(torch.nn.functional.avg_pool2d(torch.nn.functional.elu(x), (1, 8)))
        scores: torch.Tensor = self.head(x.flatten(1))
        return scores


class SubPixel(torch.nn.Module):
    """Shi et al., "Real-Time Single Image and Video Super-Resolution Using an Efficient Sub-Pixel
    Convolutional Neural Network" (2016).
    """

    def __init__(self, factor: int = 3, width: int = 16) -> None:
        super().__init__()
        self.factor = factor
        self.layers = torch.nn.Sequential(
            torch.nn.Conv2d(3, width, 5, padding=2), torch.nn.Tanh(),
            torch.nn.Conv2d(width, width // 2, 3, padding=1), torch.nn.Tanh(),
            torch.nn.Conv2d(width // 2, 3 * factor**2, 3, padding=1),
        )  # fmt: skip

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Images of ``factor`` times the height and the width."""
        return torch.nn.functional.pixel_shuffle(self.layers(x), self.factor)


WRITTEN_OUT: Final = (
    Architecture("unet", "torch", UNet, image(32)),
    Architecture("lstm-language-model", "torch", LanguageModel,
                 lambda: (torch.randint(0, 96, (2, 9)),)),
    Architecture("denoising-unet", "torch", DenoisingUNet,
                 lambda: (torch.randn(2, 3, 16, 16), torch.tensor([3, 700]))),
    Architecture("dlrm", "torch", DLRM,
                 lambda: (torch.randn(5, 13), torch.randint(0, 20, (5, 3, 4)))),
    Architecture("deepfm", "torch", DeepFM, lambda: (torch.randint(0, 5, (7, 4)),)),
    Architecture("gcn", "torch", GCN, _graph),
    Architecture("graphsage", "torch", GraphSAGE, _graph),
    Architecture("gat", "torch", GAT, _graph),
    Architecture("gin", "torch", GraphIsomorphism, _graphs),
    Architecture("eegnet", "torch", EEGNet, lambda: (torch.randn(2, 8, 128),)),
    Architecture("sub-pixel", "torch", SubPixel, image(24)),
)  # fmt: skip
"""Segmentation, diffusion, recommendation, graphs, brain waves, larger images."""
