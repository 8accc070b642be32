"""Models whose forward differentiates."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

import weft
from weft.relax.frontend.torch.capture import CaptureError

pytestmark = pytest.mark.torch


class Energy(nn.Module):
    """An energy of points (n, 3), and what is derived from it."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(3, 8), nn.SiLU(), nn.Linear(8, 1))

    def energy(self, x):
        squares = (x[:, None] - x).square().sum(-1)
        return self.layers(x).sum() + torch.exp(-squares).sum()


class Forces(Energy):
    def forward(self, x):
        with torch.enable_grad():
            points = x.detach().requires_grad_()
            energy = self.energy(points)
            (gradient,) = torch.autograd.grad(energy, points)
        return energy, -gradient


class ForcesOfCopies(Energy):
    def forward(self, x):
        with torch.enable_grad():
            points = (x * 1.0).requires_grad_()
            gradient = torch.autograd.grad(self.energy(points), points, create_graph=True)
        return gradient[0].norm(dim=-1)


class Gradient(Energy):
    def forward(self, x):
        return torch.func.grad(self.energy)(x)


class Jacobian(Energy):
    def forward(self, x):
        return torch.func.vmap(torch.func.jacrev(self.layers))(x)


@pytest.mark.parametrize("kind", [Forces, ForcesOfCopies, Gradient, Jacobian])
def test_derivatives_of_any_number_of_points(kind):
    torch.manual_seed(0)
    model = kind().eval()
    count = torch.export.Dim("count", min=2)
    compiled = weft.compile(model, (torch.randn(4, 3),), dynamic_shapes=({0: count},), cache=False)
    assert all(parameter.requires_grad for parameter in model.parameters())
    for points in (torch.randn(4, 3), torch.randn(7, 3)):
        expected = model(points)
        torch.testing.assert_close(compiled(points), expected, rtol=1e-4, atol=1e-4)


def test_a_derivative_along_a_direction():
    class Along(Energy):
        def forward(self, x, direction):
            return torch.func.jvp(self.layers, (x,), (direction,))

    model, args = Along().eval(), (torch.randn(4, 3), torch.randn(4, 3))
    compiled = weft.compile(model, args, cache=False)
    torch.testing.assert_close(compiled(*args), model(*args), rtol=1e-4, atol=1e-5)


def test_distances_of_any_number_of_points():
    class Distances(nn.Module):
        def forward(self, x, y):
            return torch.cdist(x, y)

    sizes = tuple({0: torch.export.Dim(name, min=2)} for name in "nm")
    args = torch.randn(4, 3), torch.randn(5, 3)
    compiled = weft.compile(Distances(), args, dynamic_shapes=sizes, cache=False)
    for rows in (4, 40):
        x, y = torch.randn(rows, 3), torch.randn(5, 3)
        expected = torch.cdist(x.double(), y.double()).float()
        torch.testing.assert_close(compiled(x, y), expected)


@pytest.mark.parametrize(
    "mode",
    [
        "use_mm_for_euclid_dist_if_necessary",
        "use_mm_for_euclid_dist",
        "donot_use_mm_for_euclid_dist",
    ],
)
@pytest.mark.parametrize(("p", "rows"), [(2.0, 7), (2.0, 33), (1.0, 33)])
def test_distances_in_a_program_that_assigns_elements(p, rows, mode):
    class Near(nn.Module):
        def forward(self, x, y):
            distances = torch.cdist(x, y, p, mode)
            numbers = torch.arange(y.shape[-2]).expand(distances.shape).clone()
            numbers[distances > 1.5] = -1
            return distances, numbers

    x, y = torch.randn(2, 1, rows, 3), torch.randn(3, 5, 3)
    compiled = weft.compile(Near(), (x, y), cache=False)
    torch.testing.assert_close(compiled(x, y), Near()(x, y))


@pytest.mark.parametrize("p", [0.5, 1.0, 2.0, 3.0, math.inf])
def test_derivatives_of_distances(p):
    class Pull(nn.Module):
        def forward(self, x, y):
            with torch.enable_grad():
                points = x.detach().requires_grad_()
                distances = torch.cdist(points, y, p=p).square().sum()
                return torch.autograd.grad(distances, points)[0]

    x, y = torch.randn(2, 4, 3), torch.randn(1, 5, 3)
    y[0, 0] = x[0, 0]
    compiled = weft.compile(Pull(), (x, y), cache=False)
    torch.testing.assert_close(compiled(x, y), Pull()(x, y), rtol=1e-4, atol=1e-5)


class Fails(nn.Module):
    def forward(self, x):
        return torch.func.grad(lambda y: torch.from_numpy(y.numpy()).sum())(x)


def test_the_first_error_is_told():
    with pytest.raises(CaptureError, match="cannot capture Fails"):
        weft.compile(Fails(), (torch.randn(3),), cache=False)
