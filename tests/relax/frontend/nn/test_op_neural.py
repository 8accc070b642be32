"""Products, convolutions, normalisations, attention, resizing: against torch."""

import numpy as np
import pytest

from weft.relax.frontend import nn
from weft.relax.frontend.nn import op

torch = pytest.importorskip("torch")
F = torch.nn.functional
pytestmark = [pytest.mark.sampled(3), pytest.mark.torch]


def close(found, wanted, rtol=1e-5):
    wanted = np.asarray(wanted)
    assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
    np.testing.assert_allclose(found, wanted, atol=rtol * max(np.abs(wanted).max(), 1), rtol=rtol)


def tensors(*arrays):
    return [torch.from_numpy(array) for array in arrays]


def test_matmul(apply, random):
    x, w = random(2, 3, 4), random(4, 5)
    close(apply(op.matmul, x, w), x @ w)
    close(apply(op.matmul, x, w, dims=([2, "n", 4],)), x @ w)
    wide = apply(lambda a, b: op.matmul(a, b, out_dtype="float32"), x.astype("float16"),
                 w.astype("float16"))  # fmt: skip
    assert wide.dtype == np.float32


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("options", [
    {}, {"stride": 2, "padding": 1}, {"dilation": 2, "padding": 2}, {"groups": 2},
], ids=str)  # fmt: skip
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_convolutions(rank, options, bias, apply, random):
    mine = [op.conv1d, op.conv2d, op.conv3d][rank - 1]
    its = [F.conv1d, F.conv2d, F.conv3d][rank - 1]
    x = random(2, 4, *[7, 6, 5][:rank])
    w, b = random(6, 4 // options.get("groups", 1), *[3, 2, 2][:rank]), random(6)
    given = [x, w, b][: 2 + bias]
    close(apply(lambda *args: mine(*args, **options), *given), its(*tensors(*given), **options))


def test_convolution_with_symbolic_extents(apply, random):
    x, w, b = random(2, 4, 9, 8), random(5, 4, 3, 3), random(5)
    found = apply(lambda *args: op.conv2d(*args, padding=1), x, w, b, dims=(["n", 4, "h", 8],))
    close(found, F.conv2d(*tensors(x, w, b), padding=1))


def test_convolutions_with_channels_last(apply, random):
    x, w, b = random(2, 6, 5, 4), random(3, 4, 2, 2), random(3)
    wanted = F.conv2d(*tensors(x.transpose(0, 3, 1, 2).copy(), w, b)).permute(0, 2, 3, 1)
    close(apply(lambda *args: op.conv2d(*args, data_layout="NHWC"), x, w, b), wanted)
    x, w = random(2, 4, 5, 6, 3), random(2, 3, 2, 2, 2)
    wanted = F.conv3d(*tensors(x.transpose(0, 4, 1, 2, 3).copy(), w, b[:2])).permute(0, 2, 3, 4, 1)
    close(apply(lambda *args: op.conv3d(*args, data_layout="NDHWC"), x, w, b[:2]), wanted)


def test_a_bias_needs_a_layout_that_is_known(export):
    def blocked(x, w, b):
        return op.conv2d(x, w, b, data_layout="HWNC")

    specs = [nn.spec.Tensor(shape, "float32") for shape in ([8, 8, 1, 3], [4, 3, 2, 2], [4])]
    with pytest.raises(NotImplementedError, match="conv2d: a bias for the layout 'HWNC'; there ar"):
        export(blocked, *specs)


@pytest.mark.parametrize("options", [
    {}, {"stride": 2, "padding": 1, "output_padding": 1}, {"groups": 2}, {"dilation": 2},
], ids=str)  # fmt: skip
def test_conv1d_transpose(options, apply, random):
    x, w = random(2, 4, 7), random(4, 3, 3)
    b = random(3 * options.get("groups", 1))
    found = apply(lambda *args: op.conv1d_transpose(*args, **options), x, w, b)
    close(found, F.conv_transpose1d(*tensors(x, w, b), **options))


def test_layer_norm(apply, random):
    x, w, b = random(2, 3, 4), random(4), random(4)
    close(apply(lambda *a: op.layer_norm(a[0], 4, a[1], a[2]), x, w, b),
          F.layer_norm(torch.from_numpy(x), (4,), *tensors(w, b)))  # fmt: skip
    close(apply(lambda x: op.layer_norm(x, [3, 4], eps=1e-3), x),
          F.layer_norm(torch.from_numpy(x), (3, 4), eps=1e-3))  # fmt: skip


def test_rms_norm(apply, random):
    x, w = random(2, 3, 4), random(4)
    found = apply(lambda x, w: op.rms_norm(x, w, axes=-1, epsilon=1e-4), x, w)
    close(found, F.rms_norm(torch.from_numpy(x), (4,), torch.from_numpy(w), 1e-4))


def test_group_norm(apply, random):
    x, w, b = random(2, 6, 3, 4), random(6), random(6)
    close(apply(lambda x, w, b: op.group_norm(x, 3, w, b), x, w, b),
          F.group_norm(torch.from_numpy(x), 3, *tensors(w, b)))  # fmt: skip
    close(apply(lambda x: op.group_norm(x, 2, None, None, eps=1e-3), x),
          F.group_norm(torch.from_numpy(x), 2, eps=1e-3))  # fmt: skip


def test_group_norm_of_unknown_channels_needs_weights(export):
    with pytest.raises(ValueError, match="without weight and bias the number of channels must be"):
        export(lambda x: op.group_norm(x, 1, None, None), nn.spec.Tensor([1, "c", 3], "float32"))


@pytest.mark.parametrize("options", [{}, {"is_causal": True}, {"scale": 0.5}], ids=str)
def test_attention(options, apply, random):
    query, key, value = random(2, 5, 3, 4), random(2, 6, 3, 4), random(2, 6, 3, 8)
    found = apply(
        lambda *args: op.scaled_dot_product_attention(*args, **options), query, key, value
    )
    turned = [item.transpose(1, 2) for item in tensors(query, key, value)]
    close(found, F.scaled_dot_product_attention(*turned, **options).transpose(1, 2))


def test_attention_with_a_mask_to_add(apply, random):
    query, key, value = random(2, 5, 3, 4), random(2, 6, 3, 4), random(2, 6, 3, 4)
    mask = random(2, 3, 5, 6)
    found = apply(op.scaled_dot_product_attention, query, key, value, mask)
    turned = [item.transpose(1, 2) for item in tensors(query, key, value)]
    wanted = F.scaled_dot_product_attention(*turned, attn_mask=torch.from_numpy(mask))
    close(found, wanted.transpose(1, 2))


RESIZED = [
    {"scale_factor": (2.0, 1.5), "mode": "bilinear"},
    {"size": (7, 9), "mode": "bilinear", "align_corners": True},
]


@pytest.mark.parametrize("options", RESIZED, ids=str)
def test_interpolate(options, apply, random):
    x = random(1, 2, 4, 6)
    its = {**options}
    if isinstance(its.get("scale_factor"), tuple):  # torch resamples by the factor, we by the size
        its = {"size": (8, 9), "mode": "bilinear"}
    found = apply(lambda x: op.interpolate(x, **options), x)
    close(found, F.interpolate(torch.from_numpy(x), **its))


def nearest(x, height, width):
    """The pixels whose positions are nearest to those of the larger image."""
    rows, columns = (
        np.minimum(np.rint(np.arange(new) * old / new), old - 1).astype("int64")
        for old, new in zip(x.shape[2:], (height, width), strict=True)
    )
    return x[:, :, rows][..., columns]


@pytest.mark.parametrize("options", [{"size": (6, 9)}, {"scale_factor": 1.5}, {"scale_factor": 2}])
@pytest.mark.parametrize("dims", [(), ([1, 2, "h", "w"],)], ids=["static", "symbolic"])
def test_interpolate_by_the_nearest_pixel(options, dims, apply, random):
    x = random(1, 2, 4, 6)
    size = (8, 12) if options.get("scale_factor") == 2 else (6, 9)
    close(apply(lambda x: op.interpolate(x, **options), x, dims=dims), nearest(x, *size))


def test_interpolate_says_what_it_lacks(export):
    image = nn.spec.Tensor([1, 2, 4, 4], "float32")
    with pytest.raises(NotImplementedError, match="interpolate: antialias is not supported"):
        export(lambda x: op.interpolate(x, size=(2, 2), antialias=True), image)
    with pytest.raises(TypeError, match="interpolate: expected size or scale_factor, got neither"):
        export(op.interpolate, image)


def timesteps(steps, dim, flip, shift, scale):
    """Embeddings as the diffusers library documents them."""
    half = dim // 2
    frequencies = np.exp(-np.log(10000) * np.arange(half) / (half - shift))
    angles = scale * steps[:, None] * frequencies
    parts = [np.sin(angles), np.cos(angles)]
    made = np.concatenate(parts[::-1] if flip else parts, -1)
    return np.pad(made, [(0, 0), (0, dim % 2)]).astype("float32")


@pytest.mark.parametrize(("dim", "flip", "shift", "scale"), [
    (10, False, 1, 1), (8, True, 0, 1), (9, False, 1, 2),
])  # fmt: skip
def test_timestep_embedding(dim, flip, shift, scale, apply):
    steps = np.array([0, 1, 500], "int64")
    found = apply(
        lambda x: op.get_timestep_embedding(x, dim, flip, shift, scale), steps, dims=(["n"],)
    )
    close(found, timesteps(steps, dim, flip, shift, scale), 1e-4)
