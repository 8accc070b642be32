"""Bad uses of models from torch: what cannot be captured or imported, and wrong options."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import torch

import weft
from weft.relax.frontend.torch import from_exported_program, from_fx

X = torch.ones(2, 3)


class Of(torch.nn.Module):
    """A module whose forward is a function."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


class Two(torch.nn.Module):
    def forward(self, x, y):
        return x + y


class InDict(torch.nn.Module):
    def forward(self, batch):
        return batch["x"] + batch["y"]


class Unhashable(torch.nn.Module):
    __hash__: ClassVar[None] = None

    def forward(self, x):
        return x + 1


def branch(x):
    return x + 1 if x.sum() > 0 else x - 1


def numpy_inside(x):
    return torch.from_numpy(np.sin(x.numpy()))


def raising(x):
    raise ValueError("the model's own words")


def exported(function=torch.relu, x=X):
    return torch.export.export(Of(function), (x,))


def traced(function=torch.relu):
    return torch.fx.symbolic_trace(Of(function))


def compiled(function, x=X, **options):
    return weft.compile(Of(function), (x,), **options)


def dynamic(shapes, x=X, function=torch.relu):
    return weft.compile(Of(function), (x,), dynamic_shapes=shapes)


def airy(x):
    return torch.special.airy_ai(x)


def nine(x):
    x = x + torch.special.airy_ai(x)
    for kind in "tuvw":
        x = x + getattr(torch.special, f"shifted_chebyshev_polynomial_{kind}")(x, 2)
        if kind != "w":
            x = x + getattr(torch.special, f"chebyshev_polynomial_{kind}")(x, x)
    return x + torch._foreach_norm([x])[0]


def convert(function):
    return lambda: compiled(torch.relu, custom_converters={"aten.relu.default": function})


BATCH = torch.export.Dim("batch", min=2, max=8)

MODELS = {
    "no example": lambda: weft.compile(Two()),
    "too few inputs": lambda: weft.compile(Two(), (X,)),
    "too many inputs": lambda: weft.compile(Two(), (X, X, X)),
    "wrong names": lambda: weft.compile(Two(), {"x": X, "z": X}),
    "unhashable": lambda: weft.compile(Unhashable(), (X,)),
    "a dict for a dict": lambda: weft.compile(InDict(), {"x": X, "y": X}),
    "a key missing": lambda: weft.compile(InDict(), ({"x": X},)),
    "an array for a tensor": lambda: weft.compile(Two(), (X, np.ones((2, 3), "float32"))),
    "a text for a tensor": lambda: compiled(torch.relu, "text"),
    "no tensor at all": lambda: compiled(torch.relu, None),
    "shapes": lambda: weft.compile(Two(), (X, torch.ones(4, 5))),
    "sparse": lambda: compiled(torch.relu, torch.eye(3).to_sparse()),
    "sparse entries": lambda: compiled(lambda x: x.to_sparse().values()),
    "quantized": lambda: compiled(torch.relu, torch.quantize_per_tensor(
        torch.zeros(4), 0.1, 0, torch.qint8)),
    "complex": lambda: compiled(lambda x: x + 1, torch.ones(3, dtype=torch.complex64)),
    "meta weights": lambda: weft.compile(torch.nn.Linear(3, 3, device="meta"), (X,)),
    "no CUDA here": lambda: compiled(lambda x: x.to("cuda")),
    "nested": lambda: compiled(torch.relu, torch.nested.nested_tensor([X, X])),
    "a branch on data": lambda: compiled(branch),
    "a loop on data": lambda: compiled(lambda x: [x for _ in range(int(x.sum()))]),
    "numpy inside": lambda: compiled(numpy_inside),
    "its own error": lambda: compiled(raising),
    "gives an object": lambda: compiled(lambda x: object()),
    "gives a set": lambda: compiled(lambda x: {1, 2}),
    "gives a type": lambda: compiled(lambda x: (x, x.dtype)),
    "unknown operator": lambda: compiled(airy),
    "nine unknown operators": lambda: compiled(nine),
    "a lambda": lambda: weft.compile(lambda x: x + 1, (X,)),
    "a class": lambda: weft.compile(torch.nn.ReLU, (X,)),
    "a tensor": lambda: weft.compile(X),
    "a state dict": lambda: weft.compile(dict(torch.nn.Linear(2, 2).state_dict())),
    "a script": lambda: weft.compile(torch.jit.script(torch.nn.ReLU()), (X,)),
    "a saved state": lambda f: (torch.save({"w": X}, f / "s.pt"), weft.compile(f / "s.pt"))[1],
    "a saved state .pt2": (
        lambda f: (torch.save({"w": X}, f / "s.pt2"), weft.compile(f / "s.pt2"))[1]),
    "a cut .pt2": lambda f: cut_program(f),
    "a text .pt2": lambda f: ((f / "s.pt2").write_text("hello"), weft.compile(f / "s.pt2"))[1],
    "a text path": lambda: weft.compile("nothing/model"),
    "an empty path": lambda: weft.compile(""),
    "None": lambda: weft.compile(None),
}  # fmt: skip


def cut_program(folder):
    path = folder / "p.pt2"
    torch.export.save(exported(), str(path))
    path.write_bytes(path.read_bytes()[:-300])
    return weft.compile(path)


OPTIONS = {
    "dims of another rank": lambda: dynamic(({5: BATCH},)),
    "dims of nobody": lambda: dynamic({"z": {0: BATCH}}),
    "too many dims": lambda: dynamic(({0: BATCH}, {0: BATCH})),
    "dims of numbers": lambda: dynamic(({0: "n"},)),
    "dims 5": lambda: dynamic(5),
    "example outside of range": lambda: dynamic(({0: BATCH},), torch.ones(20, 3)),
    "one symbol of two sizes": (
        lambda: dynamic(({0: BATCH, 1: BATCH},), torch.ones(3, 4))),
    "a specialised dim": (
        lambda: dynamic(({0: BATCH},), torch.ones(4, 3), lambda x: x.reshape(2, 2, 3))),
    "dims of a program": (
        lambda: weft.compile(exported(), dynamic_shapes=({0: BATCH},))),
    "threads 0": lambda: compiled(torch.relu, num_threads=0),
    "threads text": lambda: compiled(torch.relu, num_threads="two"),
    "target": lambda: compiled(torch.relu, target="cuda"),
    "target text": lambda: compiled(torch.relu, target="nonsense"),
    "target 5": lambda: compiled(torch.relu, target=5),
    "target cpu": lambda: compiled(torch.relu, target="llvm -mcpu=nonsense"),
    "pipeline": lambda: compiled(torch.relu, relax_pipeline="nonsense"),
    "pipeline 5": lambda: compiled(torch.relu, relax_pipeline=5),
    "option": lambda: compiled(torch.relu, optimise=True),
    "fallback": lambda: compiled(torch.relu, fallback="tensorflow"),
    "converters": lambda: compiled(torch.relu, custom_converters=5),
    "a converter": convert(5),
    "a converter's name": (
        lambda: compiled(torch.relu, custom_converters={5: lambda c, x: x})),
    "a converter's text": convert(lambda context, x: "text"),
    "a converter's None": convert(lambda context, x: None),
    "a converter's parameters": convert(lambda: None),
    "a converter's shape": convert(lambda context, x: weft.relax.op.sum(x)),
    "a converter's type": convert(lambda context, x: weft.relax.op.astype(x, "int32")),
    "a converter's list": convert(lambda context, x: [x, x]),
    "a converter's foreign": convert(lambda context, x: weft.relax.Var("z", x.struct_info)),
    "a converter's torch": convert(lambda context, x: torch.ones(2, 3)),
    "no program": lambda: from_exported_program(5),
    "a module as program": lambda: from_exported_program(torch.nn.ReLU()),
    "fx of a module": lambda: from_fx(torch.nn.ReLU(), [((2, 3), "float32")]),
    "fx inputs": lambda: from_fx(traced(), [((2, 3), "float32")] * 2),
    "fx too few": lambda: from_fx(traced(), []),
    "fx no list": lambda: from_fx(traced(), 5),
    "fx no pair": lambda: from_fx(traced(), [(2, 3)]),
    "fx shape only": lambda: from_fx(traced(), [(2, 3, 4)]),
    "fx type": lambda: from_fx(traced(), [((2, 3), "float99")]),
    "fx negative": lambda: from_fx(traced(), [((-2, 3), "float32")]),
    "fx huge": lambda: from_fx(traced(), [((2**40, 2**40), "float32")]),
    "fx large": lambda: from_fx(traced(), [((2**45,), "float32")]),
    "fx text": lambda: from_fx(traced(), [(("n", 3), "float32")]),
    "fx wrong shape": (
        lambda: from_fx(torch.fx.symbolic_trace(torch.nn.Linear(3, 2)), [((2, 4), "float32")])),
}  # fmt: skip
