import pytest

from weft import te, topi

torch = pytest.importorskip("torch")


@pytest.mark.parametrize("factor", [1, 2, 3])
def test_pixel_shuffle(check, floats, factor):
    x = floats(2, 2 * factor**2, 2, 3)
    expected = torch.nn.functional.pixel_shuffle(torch.from_numpy(x), factor).numpy()
    check(topi.nn.pixel_shuffle, [x], expected, factor)


def test_pixel_shuffle_when_channels_do_not_divide():
    with pytest.raises(ValueError, match="6 channels do not divide into images of 4"):
        topi.nn.pixel_shuffle(te.placeholder((1, 6, 2, 2)), 2)
    with pytest.raises(ValueError, match="expected at least 3 dimensions and a factor of 1"):
        topi.nn.pixel_shuffle(te.placeholder((4, 2)), 2)
