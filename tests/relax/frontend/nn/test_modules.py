"""Layers against torch's, with the same parameters."""

import numpy as np
import pytest

import weft
from weft import relax, tir
from weft.relax.frontend import nn

torch = pytest.importorskip("torch")
T = torch.nn
pytestmark = pytest.mark.torch


def close(found, wanted):
    wanted = wanted.detach().numpy()
    assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
    scale = max(np.abs(wanted).max(), 1)
    np.testing.assert_allclose(found, wanted, atol=1e-5 * scale, rtol=1e-5)


PAIRS = {
    "ReLU": (nn.ReLU(), T.ReLU(), (3, 4)),
    "SiLU": (nn.SiLU(), T.SiLU(), (3, 4)),
    "GELU": (nn.GELU(), T.GELU(), (3, 4)),
    "Identity": (nn.Identity(), T.Identity(), (3, 4)),
    "Linear": (nn.Linear(4, 3), T.Linear(4, 3), (2, 5, 4)),
    "Linear without bias": (nn.Linear(4, 3, bias=False), T.Linear(4, 3, bias=False), (5, 4)),
    "Conv1D": (nn.Conv1D(4, 6, 3, padding=1), T.Conv1d(4, 6, 3, padding=1), (2, 4, 7)),
    "Conv1D in groups": (
        nn.Conv1D(4, 6, 3, groups=2, bias=False), T.Conv1d(4, 6, 3, groups=2, bias=False),
        (2, 4, 7),
    ),
    "Conv2D": (nn.Conv2D(3, 8, 3, 2, 1), T.Conv2d(3, 8, 3, 2, 1), (2, 3, 9, 8)),
    "Conv2D with a long kernel": (
        nn.Conv2D(4, 4, [3, 1], groups=4, dilation=2), T.Conv2d(4, 4, (3, 1), groups=4, dilation=2),
        (1, 4, 8, 5),
    ),
    "Conv3D": (nn.Conv3D(2, 3, 2, bias=True), T.Conv3d(2, 3, 2), (1, 2, 4, 5, 3)),
    "Conv3D in groups": (
        nn.Conv3D(4, 2, 2, groups=2), T.Conv3d(4, 2, 2, groups=2), (1, 4, 3, 3, 3),
    ),
    "ConvTranspose1D": (
        nn.ConvTranspose1D(4, 3, 3, stride=2, output_padding=1),
        T.ConvTranspose1d(4, 3, 3, stride=2, output_padding=1), (2, 4, 6),
    ),
    "ConvTranspose1D in groups": (
        nn.ConvTranspose1D(4, 6, 3, groups=2), T.ConvTranspose1d(4, 6, 3, groups=2), (2, 4, 6),
    ),
    "LayerNorm": (nn.LayerNorm(8), T.LayerNorm(8), (2, 3, 8)),
    "LayerNorm without weights": (
        nn.LayerNorm(8, eps=1e-3, elementwise_affine=False),
        T.LayerNorm(8, eps=1e-3, elementwise_affine=False), (2, 3, 8),
    ),
    "RMSNorm": (nn.RMSNorm(8, -1, 1e-5, bias=False), T.RMSNorm(8, 1e-5), (2, 3, 8)),
    "GroupNorm": (nn.GroupNorm(2, 6), T.GroupNorm(2, 6), (2, 6, 3, 4)),
    "GroupNorm without weights": (
        nn.GroupNorm(3, 6, affine=False), T.GroupNorm(3, 6, affine=False), (2, 6, 5),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PAIRS)
def test_layers(name, call, random):
    mine, its, shape = PAIRS[name]
    with torch.no_grad():
        for parameter in its.parameters():
            parameter.copy_(torch.from_numpy(np.asarray(random(*parameter.shape))))
    mine.load_state_dict(its.state_dict())
    x = random(*shape)
    close(call(mine, x), its(torch.from_numpy(x)))
    close(call(mine, x, dims=(["n", *shape[1:]],)), its(torch.from_numpy(x)))


@pytest.mark.parametrize("shape", [(5,), (2, 3), ()])
def test_embedding(shape, call, fill):
    layer = nn.Embedding(7, 4)
    table = fill(layer)["weight"]
    rows = np.asarray(np.random.default_rng(0).integers(0, 7, shape), "int64")
    np.testing.assert_array_equal(call(layer, rows), table[rows])


def test_embedding_of_symbolic_extents(call, fill):
    layer = nn.Embedding(7, 4)
    table, rows = fill(layer)["weight"], np.array([[0, 6, 3]], "int32")
    np.testing.assert_array_equal(call(layer, rows, dims=(["b", "s"],)), table[rows])


def test_rms_norm_adds_its_bias(call, fill, random):
    layer, x = nn.RMSNorm(6, axes=[-1]), random(3, 6)
    data = fill(layer)
    normed = x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(
        call(layer, x), normed * data["weight"] + data["bias"], rtol=1e-5, atol=1e-6
    )


def test_linear_of_another_result_type(call, random):
    layer = nn.Linear(4, 3, dtype="float16", out_dtype="float32")
    assert layer.bias.dtype == "float32"
    weight, bias, x = random(3, 4, dtype="float16"), random(3), random(2, 4, dtype="float16")
    layer.load_state_dict({"weight": weight, "bias": bias})
    found = call(layer, x)
    assert found.dtype == np.float32
    wanted = x.astype("float32") @ weight.T.astype("float32") + bias
    np.testing.assert_allclose(found, wanted, rtol=1e-3)


def test_linear_to_leaves_the_bias_of_a_result_type():
    layer = nn.Linear(4, 3, out_dtype="float32")
    layer.to("float16")
    assert (layer.weight.dtype, layer.bias.dtype) == ("float16", "float32")


def test_symbolic_features(random):
    layer, x = nn.Linear("k", "m"), random(2, 4)
    mod, _ = layer.export_tvm({"forward": {"x": nn.spec.Tensor(["n", "k"], "float32")}})
    weight = mod["forward"].params[1].struct_info
    x_info = mod["forward"].params[0].struct_info
    assert weight.shape.values[1] is x_info.shape.values[1]
    vm = relax.VirtualMachine(relax.build(mod), weft.cpu())
    w, b = random(3, 4), random(3)
    np.testing.assert_allclose(vm["forward"](x, w, b).numpy(), x @ w.T + b, rtol=1e-5)


def test_symbolic_channels():
    layer = nn.Conv2D(tir.Var("c", "int64"), 4, 3, groups=2)
    assert str(layer.weight.shape[1]) == "c // T.int64(2)"
    assert layer.kernel_size == [3, 3]


def timestep_reference(its, x):
    return its["l2"](T.functional.silu(its["l1"](x)))


@pytest.mark.parametrize("post_act", [None, "silu"])
def test_timestep_embedding(post_act, call, random):
    mine = nn.TimestepEmbedding(4, 8, out_dim=6, post_act_fn=post_act, cond_proj_dim=3)
    first, second, condition = T.Linear(4, 8), T.Linear(8, 6), T.Linear(3, 4, bias=False)
    parts = {"linear_1": first, "linear_2": second, "cond_proj": condition}
    mine.load_state_dict({
        f"{name}.{key}": value for name, part in parts.items()
        for key, value in part.state_dict().items()
    })  # fmt: skip
    x, extra = random(2, 4), random(2, 3)
    wanted = first(torch.from_numpy(x) + condition(torch.from_numpy(extra)))
    wanted = second(T.functional.silu(wanted))
    close(call(mine, x, extra), wanted if post_act is None else T.functional.silu(wanted))
    close(call(mine, x, forward=lambda x: mine(x)),
          timestep_reference({"l1": first, "l2": second}, torch.from_numpy(x))
          if post_act is None else T.functional.silu(
              timestep_reference({"l1": first, "l2": second}, torch.from_numpy(x))))  # fmt: skip


def test_timesteps(call):
    x = np.array([0, 10, 999], "int64")
    found = call(nn.Timesteps(8, flip_sin_to_cos=True, downscale_freq_shift=0), x)
    angles = x[:, None] * np.exp(-np.log(10000) * np.arange(4) / 4)
    wanted = np.concatenate([np.cos(angles), np.sin(angles)], -1)
    np.testing.assert_allclose(found, wanted, atol=1e-4)


def attention_reference(layer, data, x, source):
    if layer.group_norm is not None:
        x = T.functional.group_norm(
            x.transpose(1, 2), layer.norm_num_groups, data["group_norm.weight"],
            data["group_norm.bias"],
        ).transpose(1, 2)  # fmt: skip
    source = x if source is None else source

    def heads(name, value):
        made = T.functional.linear(value, data[f"{name}.weight"], data.get(f"{name}.bias"))
        return made.unflatten(-1, (layer.heads, layer.dim_head)).transpose(1, 2)

    made = T.functional.scaled_dot_product_attention(
        heads("to_q", x), heads("to_k", source), heads("to_v", source), scale=layer.scale
    )
    made = made.transpose(1, 2).flatten(2)
    return T.functional.linear(made, data["to_out.0.weight"], data.get("to_out.0.bias"))


@pytest.mark.parametrize("options", [
    {}, {"bias": True, "out_bias": False}, {"norm_num_groups": 2}, {"scale_qk": False},
    {"cross_attention_dim": 5},
], ids=str)  # fmt: skip
def test_attention(options, call, fill, random):
    layer = nn.Attention(8, heads=2, dim_head=4, **options)
    data = {name: torch.from_numpy(value) for name, value in fill(layer).items()}
    x = random(2, 6, 8)
    if "cross_attention_dim" in options:
        source = random(2, 3, 5)
        wanted = attention_reference(layer, data, torch.from_numpy(x), torch.from_numpy(source))
        close(call(layer, x, source), wanted)
    else:
        close(call(layer, x), attention_reference(layer, data, torch.from_numpy(x), None))


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: nn.Conv2D(3, 4, 3, groups=2), ValueError, "Conv2D: 3 channels are not a multiple"),
        (lambda: nn.ConvTranspose1D(4, 3, 3, groups=2), ValueError, "3 channels are not a multip"),
        (lambda: nn.TimestepEmbedding(4, 4, act_fn="relu"), NotImplementedError,
         "TimestepEmbedding: act_fn: expected 'silu', the only activation, got 'relu'"),
        (lambda: nn.TimestepEmbedding(4, 4, post_act_fn="gelu"), NotImplementedError, "post_act_f"),
    ],
)  # fmt: skip
def test_wrong_options(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_wrong_calls():
    two = nn.spec.Tensor([2, 4], "float32")
    with pytest.raises(ValueError, match="a condition is given, but cond_proj_dim was not"):
        nn.TimestepEmbedding(4, 4).export_tvm({"forward": {"sample": two, "condition": two}})
    three = nn.spec.Tensor([1, 2, 4], "float32")
    with pytest.raises(NotImplementedError, match="Attention mask not yet supported"):
        nn.Attention(4, heads=1).export_tvm(
            {"forward": {"hidden_states": three, "attention_mask": three}}
        )
