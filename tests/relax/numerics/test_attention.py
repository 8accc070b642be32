"""Attention with a bias, masks, a window, shared heads, and sequences laid end to end."""

import math

import numpy as np
import pytest

from tests.lib.operator_cases import SAMPLED, Case, Table, row, t
from weft.relax.op.definition import FUNCTIONS as F

INF = math.inf
N = ({"n": 0}, {"n": 1}, {"n": 3})


def attention(q, k, v, bias=None, allowed=None, scale=None):
    """Of (batch, length, heads, features), pairs by the boolean matrix ``allowed``."""
    group = q.shape[2] // k.shape[2]
    q, k, v = [a.transpose(0, 2, 1, 3) for a in (q, k, v)]
    k, v = np.repeat(k, group, 1), np.repeat(v, group, 1)
    scores = q @ k.swapaxes(-1, -2) * (1 / math.sqrt(q.shape[-1]) if scale is None else scale)
    scores = scores if bias is None else scores + bias
    scores = scores if allowed is None else np.where(allowed, scores, -INF)
    powers = np.exp(scores - np.maximum(scores.max(-1, keepdims=True), -1e300))
    total = powers.sum(-1, keepdims=True)
    return ((powers / np.where(total == 0, 1, total)) @ v).transpose(0, 2, 1, 3)


def triangle(length, keys, shift=0, window=None):
    i, j = np.mgrid[:length, :keys]
    allowed = j <= i + shift
    return allowed if window is None else allowed & (j > i + shift - window)


def masked():
    for length, keys in ((4, 6), (6, 4), (1, 5), (5, 1)):
        given = [t("n", length, 2, 3), t("n", keys, 2, 3), t("n", keys, 2, 5)]
        for mask, shift in (("TopLeft", 0), ("BottomRight", abs(keys - length))):
            allowed = triangle(length, keys, shift)
            yield row(
                "nn.attention", given, lambda q, k, v, a=allowed: attention(q, k, v, None, a),
                sizes=N, note=mask, causal_mask=mask,
            )  # fmt: skip
    yield row(
        "nn.attention", [t(1, 6, 2, 3)] * 3,
        lambda q, k, v: attention(q, k, v, None, triangle(6, 6, 0, 2)),
        note="window", causal_mask="TopLeft", window_size=2,
    )  # fmt: skip
    yield row(
        "nn.attention", [t(1, 6, 2, 3), t(1, 2, 2, 3), t(1, 2, 2, 3)],
        lambda q, k, v: attention(q, k, v, None, triangle(6, 2, 0, 2)),
        note="queries without a key", causal_mask="TopLeft", window_size=2,
    )  # fmt: skip
    yield row(
        "nn.attention", [t(1, "n", 2, 3)] * 3,
        lambda q, k, v: attention(q, k, v, None, triangle(q.shape[1], q.shape[1])),
        sizes=N[1:], note="symbolic length", causal_mask="BottomRight",
    )  # fmt: skip
    yield row(
        "nn.attention", [t(1, 4, 2, "n"), t(1, 5, 2, "n"), t(1, 5, 2, 3)], attention, sizes=N[1:],
        note="symbolic features",
    )  # fmt: skip
    yield row(
        "nn.attention", [t(2, 4, 2, 3)] * 3, lambda q, k, v: attention(q, k, v, scale=0.3),
        note="scale", scale=0.3,
    )  # fmt: skip


def shared_heads():
    yield row("nn.attention", [t("n", 4, 6, 3), t("n", 5, 2, 3), t("n", 5, 2, 3)], attention,
              sizes=N, note="grouped")  # fmt: skip
    yield row("nn.attention", [t(2, 3, "n", 3), t(2, 3, 1, 3), t(2, 3, 1, 3)], attention,
              sizes=N[1:], note="one head of keys")  # fmt: skip


def half():
    """Sums of float16 are taken in float32, also where they leave the range of float16."""
    given = [t(1, 64, 2, 64, dtype="float16")] * 3
    yield row("nn.attention", given, attention)
    large = [t(1, 4, 1, 64, dtype="float16", fill=lambda g, s: g.standard_normal(s) * 60)] * 3
    yield row("nn.attention", large, attention, note="large")


def biased():
    for shape in ((2, 2, 4, 6), (1, 2, 4, 6), (2, 1, 4, 6), (1, 1, 1, 6)):
        given = [t(2, 4, 2, 3), t(2, 6, 2, 3), t(2, 6, 2, 3), t(*shape)]
        yield row("nn.attention_bias", given, attention)
    given = [t("n", 4, 2, 3), t("n", 4, 2, 3), t("n", 4, 2, 3), t("n", 2, 4, 4)]
    yield row(
        "nn.attention_bias", given,
        lambda q, k, v, b: attention(q, k, v, b, triangle(4, 4)),
        sizes=N, note="causal", causal_mask="TopLeft",
    )  # fmt: skip
    yield Case("nn.attention", F["nn.attention"], given, attention, N, note="by its fourth input")


def several(q, k, v, starts_q, starts_k, mask=None, window=None):
    """Attention of each sequence by itself."""
    made = np.zeros((*q.shape[:3], v.shape[3]))
    for number in range(len(starts_q) - 1):
        rows = slice(starts_q[number], starts_q[number + 1])
        keys = slice(starts_k[number], starts_k[number + 1])
        length, count = rows.stop - rows.start, keys.stop - keys.start
        if length == 0:
            continue
        shift = abs(count - length) if mask == "BottomRight" else 0
        allowed = None if mask is None else triangle(length, count, shift, window)
        made[:, rows] = attention(q[:, rows], k[:, keys], v[:, keys], None, allowed)
    return made


def sequences():
    q, kv = t(1, 10, 2, 3), t(1, 8, 2, 3)
    starts = t(4, dtype="int32", fill=[0, 2, 7, 10])
    others = t(4, dtype="int32", fill=[0, 3, 4, 8])
    longest = t(dtype="int32", fill=[5])
    function = F["nn.attention_var_len"]
    yield Case(
        "nn.attention_var_len", function, [q, q, q, starts, longest],
        lambda q, k, v, s, m: several(q, k, v, s, s),  # noqa: ARG005 - the call's arguments
    )  # fmt: skip
    for mask, window in ((None, None), ("TopLeft", None), ("BottomRight", None), ("TopLeft", 2)):
        yield Case(
            "nn.attention_var_len",
            lambda *a, m=mask, w=window: function(*a, causal_mask=m, window_size=w),
            [q, kv, kv, starts, longest, others, longest],
            lambda q, k, v, s, m, o, n, mask=mask, window=window: several(  # noqa: ARG005 - same
                q, k, v, s, o, mask, window
            ),
            note=f"{mask} {window}",
        )  # fmt: skip
    partly = t(3, dtype="int32", fill=[2, 5, 9])
    for mask in (None, "BottomRight"):
        yield Case(
            "nn.attention_var_len", lambda *a, m=mask: function(*a, causal_mask=m),
            [q, q, q, partly, longest],
            lambda q, k, v, s, m, mask=mask: several(  # noqa: ARG005 - the call's arguments
                q, k, v, s, s, mask
            ),
            note=f"queries of no sequence {mask}",
        )  # fmt: skip
    yield Case(
        "nn.attention_var_len", function,
        [t(1, "n", 2, 3)] * 3 + [t(3, dtype="int64", fill=[0, 0, 5]), longest],
        lambda q, k, v, s, m: several(q, k, v, s, s),  # noqa: ARG005 - the call's arguments
        ({"n": 5},), note="an empty sequence",
    )  # fmt: skip


TABLE = Table([*masked(), *shared_heads(), *half(), *biased(), *sequences()])


@SAMPLED
@pytest.mark.parametrize("case", TABLE.cases, ids=str)
def test_attention(case):
    TABLE.check(case)
