"""Operators of images."""

from weft.topi.image.resize import resize1d, resize2d, resize3d
