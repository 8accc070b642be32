"""Operators of images."""

from weft.topi.image.grid_sample import affine_grid, grid_sample
from weft.topi.image.resize import resize1d, resize2d, resize3d
from weft.topi.image.taps import weighted_taps
