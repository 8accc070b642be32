import numpy as np
import pytest

from weft import te, topi


def test_a_region_of_whole_pixels_of_a_ramp(check):
    """The mean of a linear image over a bin is its value in the bin's middle."""
    rows, columns = np.mgrid[:6, :8].astype("float32")
    image = (10 * rows + columns)[None, None]
    rois = np.array([[0, 1, 1, 5, 5]], "float32")
    expected = np.array([[[[22.0, 24.0], [42.0, 44.0]]]])
    check(topi.vision.roi_align, [image, rois], expected, 2, 1.0, 2)
    check(topi.vision.roi_align, [image, rois], expected - 5.5, 2, 1.0, 2, True)
    check(topi.vision.roi_align, [image, rois], expected, 2, 1.0, -1)


def test_the_largest_sample(check):
    image = np.zeros((1, 1, 4, 4), "float32")
    image[0, 0, 1, 1] = 8
    rois = np.array([[0, 0, 0, 2, 2]], "float32")
    check(topi.vision.roi_align, [image, rois], np.full((1, 1, 1, 1), 8.0), 1, 1.0, 1, mode="max")


def test_arguments_that_do_not_fit():
    image, rois = te.placeholder((1, 1, 4, 4)), te.placeholder((2, 5))
    with pytest.raises(ValueError, match="mode: expected avg, max or max_neighbour, got 'min'"):
        topi.vision.roi_align(image, rois, 2, 1.0, mode="min")
    with pytest.raises(ValueError, match=r"rois: expected the shape \(n, 5\), got \(2, 4\)"):
        topi.vision.roi_align(image, te.placeholder((2, 4)), 2, 1.0)
