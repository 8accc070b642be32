import numpy as np
import pytest

from weft import te, topi
from weft.tir.interp import run

torch = pytest.importorskip("torch")
nn = torch.nn.functional


@pytest.mark.parametrize("method", ["nearest", "bilinear", "bicubic"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
def test_grid_sample(check, floats, method, padding):
    x, grid = floats(1, 2, 4, 3), floats(1, 2, 2, 3) * 1.4
    expected = nn.grid_sample(
        torch.from_numpy(x), torch.from_numpy(np.moveaxis(grid, 1, -1).copy()), mode=method,
        padding_mode=padding, align_corners=True,
    ).numpy()  # fmt: skip
    check(topi.image.grid_sample, [x, grid], expected, method, "NCHW", padding, tol=1e-4)


@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
def test_coordinates_that_are_no_numbers_read_inside(padding, floats):
    """The interpreter checks every index."""
    tensors = [te.placeholder((1, 1, 3, 3)), te.placeholder((1, 2, 1, 3))]
    made = topi.image.grid_sample(*tensors, padding_mode=padding)
    grid = np.array([[[[np.nan, np.inf, -np.inf]], [[1e30, -1e30, 0.0]]]], "float32")
    result = np.zeros((1, 1, 1, 3), "float32")
    run(te.create_prim_func([*tensors, made]), floats(1, 1, 3, 3), grid, result)


@pytest.mark.parametrize("corners", [False, True])
def test_affine_grid(check, floats, corners):
    theta = floats(2, 2, 3)
    expected = nn.affine_grid(torch.from_numpy(theta), (2, 1, 3, 4), align_corners=corners)
    wanted = np.moveaxis(expected.numpy(), -1, 1)
    check(topi.image.affine_grid, [theta], wanted, (3, 4), corners)


def test_grids_that_do_not_fit():
    x, grid = te.placeholder((1, 1, 3, 3)), te.placeholder((1, 2, 3, 3))
    with pytest.raises(ValueError, match="expected 2 coordinates along axis 1 of the grid"):
        topi.image.grid_sample(x, te.placeholder((1, 3, 3, 2)))
    with pytest.raises(ValueError, match="expected a method of nearest, bilinear, bicubic"):
        topi.image.grid_sample(x, grid, "cubic")
    with pytest.raises(ValueError, match="expected 4 or 5 dimensions of data and grid, got 3"):
        topi.image.grid_sample(te.placeholder((1, 3, 3)), grid)
    with pytest.raises(ValueError, match=r"affine_grid: expected data \(n, 2, 3\)"):
        topi.image.affine_grid(te.placeholder((1, 3, 4)), (2, 2))
