"""Wrong arguments of layers: short errors of weft that name the layer and the argument."""

from __future__ import annotations

import numpy as np
import pytest

from weft import tir
from weft.relax.frontend import nn
from weft.support.errors import TVMError

N = tir.Var("n", "int64")

CASES = {
    "too few": (lambda: nn.Conv2D("a"), r"Conv2D: expected the arguments \(in_channels, .*missing"),
    "too many": (lambda: nn.Linear(1, 2, True, None, None, 6), "Linear: .*got 6 by position"),
    "unknown": (lambda: nn.Linear(1, 2, biased=1), "Linear: .* got the keyword biased"),
    "twice": (lambda: nn.Linear(1, 2, in_features=1), "Linear: .*in_features twice"),
    "channels": (lambda: nn.Conv2D("a", 3, 3), "Conv2D: in_channels: expected .* got 'a'"),
    "out channels": (lambda: nn.Conv1D(3, 2.5, 3), "Conv1D: out_channels: expected .* got 2.5"),
    "a bool": (lambda: nn.Conv1D(True, 2, 3), "Conv1D: in_channels: expected .* got True"),
    "kernel": (lambda: nn.Conv3D(3, 3, "3"), "Conv3D: kernel_size: expected .* got '3'"),
    "no kernel": (lambda: nn.Conv2D(3, 3, 0), "Conv2D: kernel_size: expected .*1 or more.* got 0"),
    "short kernel": (lambda: nn.Conv2D(3, 3, (3,)), r"kernel_size: .* 2 .*, got \(3,\)"),
    "long kernel": (lambda: nn.Conv2D(3, 3, [3, 3, 3]), r"kernel_size: .*got \[3, 3, 3\]"),
    "stride": (lambda: nn.Conv2D(3, 3, 3, stride=0), "Conv2D: stride: expected .* got 0"),
    "padding": (lambda: nn.Conv2D(3, 3, 3, padding="a"), "Conv2D: padding: expected .* got 'a'"),
    "3 paddings": (lambda: nn.Conv2D(3, 3, 3, padding=(1, 1, 1)), "Conv2D: padding: expected"),
    "dilation": (lambda: nn.Conv1D(3, 3, 3, dilation=None), "dilation: expected .* got None"),
    "groups": (lambda: nn.Conv2D(4, 4, 3, groups=0), "Conv2D: groups: expected .* got 0"),
    "no groups": (lambda: nn.Conv2D(4, 4, 3, groups="x"), "Conv2D: groups: expected .* got 'x'"),
    "in groups": (lambda: nn.Conv2D(3, 4, 3, groups=2), "3 channels .* of groups=2"),
    "out groups": (lambda: nn.Conv2D(4, 3, 3, groups=2), "3 channels are not a multiple"),
    "transposed": (lambda: nn.ConvTranspose1D(3, 4, 3, groups=2), "3 channels are not a multiple"),
    "output padding": (lambda: nn.ConvTranspose1D(3, 4, 3, output_padding=-1), "output_padding: "),
    "layout": (lambda: nn.Conv2D(3, 3, 3, data_layout="zz"), "Conv2D: data_layout: .* got 'zz'"),
    "layout's type": (lambda: nn.Conv3D(3, 3, 3, data_layout=5), "Conv3D: data_layout: .* got 5"),
    "bias": (lambda: nn.Conv2D(3, 3, 3, bias="yes"), "Conv2D: bias: expected True or False, got"),
    "features": (lambda: nn.Linear(-1, 4), "Linear: in_features: expected .*0 or more.* got -1"),
    "an array": (lambda: nn.Linear(np.ones(3), 4), "Linear: in_features: expected .* got"),
    "a type": (lambda: nn.Linear(int, 4), "Linear: in_features: expected .* got <class 'int'>"),
    "no symbol": (lambda: nn.Linear("", 4), "Linear: in_features: expected .* got ''"),
    "int32": (lambda: nn.Linear(tir.Var("i", "int32"), 4), "in_features: .*int64.* got i of int32"),
    "dtype": (lambda: nn.Linear(1, 4, dtype="foo"), "Linear: dtype: expected a data type .*'foo'"),
    "dtype 5": (lambda: nn.Conv1D(1, 4, 3, dtype=5), "Conv1D: dtype: expected a data .* got 5"),
    "lanes": (lambda: nn.Linear(1, 4, dtype="float32x4"), "Linear: dtype: .* got 'float32x4'"),
    "handle": (lambda: nn.Linear(1, 4, dtype="handle"), "Linear: dtype: .* got 'handle'"),
    "out dtype": (lambda: nn.Linear(1, 4, out_dtype="foo"), "Linear: out_dtype: expected a data"),
    "many extents": (lambda: nn.LayerNorm((3, 4)), "LayerNorm: normalized_shape: .*(3, 4)"),
    "normalized": (lambda: nn.LayerNorm("a"), "LayerNorm: normalized_shape: expected .* got 'a'"),
    "eps": (lambda: nn.LayerNorm(4, eps="a"), "LayerNorm: eps: expected a number, got 'a'"),
    "nan": (lambda: nn.GroupNorm(2, 4, eps=float("nan")), "GroupNorm: eps: .* number, got nan"),
    "affine": (lambda: nn.LayerNorm(4, elementwise_affine=3), "elementwise_affine: expected True"),
    "hidden size": (lambda: nn.RMSNorm("a", -1), "RMSNorm: hidden_size: expected .* got 'a'"),
    "axes": (lambda: nn.RMSNorm(4, axes="a"), "RMSNorm: axes: expected .* got 'a'"),
    "half axes": (lambda: nn.RMSNorm(4, axes=[1.5]), r"RMSNorm: axes: expected .* got \[1.5\]"),
    "epsilon": (lambda: nn.RMSNorm(4, -1, None), "RMSNorm: epsilon: expected a number, got None"),
    "norm groups": (lambda: nn.GroupNorm(3, 4), "GroupNorm: 4 channels .* of num_groups=3"),
    "no norm groups": (lambda: nn.GroupNorm(0, 4), "GroupNorm: num_groups: expected .* got 0"),
    "norm channels": (lambda: nn.GroupNorm(1, -4), "GroupNorm: num_channels: expected .* got -4"),
    "rows": (lambda: nn.Embedding("n", -2), "Embedding: dim: expected .* got -2"),
    "time channels": (lambda: nn.TimestepEmbedding("a", 3), "TimestepEmbedding: in_channels: "),
    "time's": (lambda: nn.TimestepEmbedding(3, 3, out_dim=-1), "TimestepEmbedding: out_dim: "),
    "steps": (lambda: nn.Timesteps("a"), "Timesteps: num_channels: expected .* got 'a'"),
    "shift": (lambda: nn.Timesteps(4, False, "a"), "Timesteps: downscale_freq_shift: .* got 'a'"),
    "query": (lambda: nn.Attention("a"), "Attention: query_dim: expected .* got 'a'"),
    "cross": (lambda: nn.Attention(4, -4), "Attention: cross_attention_dim: expected .* got -4"),
    "heads": (lambda: nn.Attention(4, heads=0), "Attention: heads: expected .* got 0"),
    "head": (lambda: nn.Attention(4, dim_head=0), "Attention: dim_head: expected .* got 0"),
    "attention's groups": (lambda: nn.Attention(4, norm_num_groups=3), "4 channels are not"),
    "a number as shape": (lambda: nn.Parameter(5), r"Parameter: shape: expected .* got 5"),
    "a text as shape": (lambda: nn.Parameter("ab"), r"Parameter: shape: expected .* got 'ab'"),
    "parameter's dtype": (lambda: nn.Parameter((2,), "foo"), "Parameter: dtype: .* got 'foo'"),
    "to": (lambda: nn.Linear(1, 2).to("foo"), "expected a data type .* got 'foo'"),
    "modules": (lambda: nn.ModuleDict(5), "ModuleDict: expected .* got int"),
    "cache": (lambda: nn.KVCache(2, (3,), "foo"), "KVCache: dtype: expected a data .* got 'foo'"),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_wrong_arguments(case):
    action, match = CASES[case]
    with pytest.raises(TVMError, match=match) as caught:
        action()
    assert len(str(caught.value)) < 300


def test_what_is_taken():
    assert nn.Linear("n", np.int64(4)).weight.shape[0] == 4
    assert nn.Conv2D(N, 4, [3, 1], np.int32(2), (1, 2, 1, 2), groups=2).weight.shape[2:] == [3, 1]
    assert nn.Conv1D(4, 6, [3]).weight.shape == [6, 4, 3]
    assert nn.Linear(0, 2, bias=0, dtype=np.float16).weight.dtype == "float16"
    assert nn.GroupNorm(2, N).weight.shape[0] is N
    assert nn.RMSNorm(4, (1, -1), 0).weight.shape == [4]
    assert nn.Conv2D(4, 4, 3, data_layout="NHWC").data_layout == "NHWC"


def test_layers_of_users_keep_their_own_arguments():
    class Wide(nn.Linear):
        def __init__(self, width):
            super().__init__(width, 2 * width)

    assert Wide(3).weight.shape == [6, 3]
    with pytest.raises(TVMError, match="Wide: in_features: expected .* got -3"):
        Wide(-3)
