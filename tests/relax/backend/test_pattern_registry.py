"""The registry of backends' patterns, and the patterns that backends share."""

import pytest

from weft import relax
from weft.relax.backend import pattern_registry as registry
from weft.relax.backend import patterns
from weft.relax.dpl import is_op, wildcard
from weft.relax.transform import FusionPattern
from weft.support.errors import IRValueError

ADD = is_op("relax.add")(wildcard(), wildcard())
MULTIPLY = is_op("relax.multiply")(wildcard(), wildcard())


@pytest.fixture
def registered():
    registry.register_patterns(
        [("here.add", ADD), FusionPattern("here.multiply", MULTIPLY), ("there.add", ADD)]
    )
    yield
    registry.remove_patterns(["here.add", "here.multiply", "there.add"])


@pytest.mark.usefixtures("registered")
def test_patterns_are_found_by_prefix_the_last_one_first():
    found = [item.name for item in registry.get_patterns_with_prefix("here.")]
    assert found == ["here.multiply", "here.add"]
    assert registry.get_pattern("there.add").pattern is ADD


def test_removed_patterns_are_gone():
    assert registry.get_patterns_with_prefix("here.") == []
    assert registry.get_pattern("here.add") is None


def test_what_is_no_pattern_is_refused():
    with pytest.raises(IRValueError, match="expected a FusionPattern, or a tuple"):
        registry.register_patterns([ADD])


def tensor(*shape):
    return relax.Var("x", relax.TensorStructInfo(shape, "float32"))


X, Y = tensor(2, 2), tensor(2, 2)
PRODUCT = relax.op.matmul(X, Y)
TRANSPOSED = relax.op.matmul(X, relax.op.permute_dims(Y))
CASES = {
    "matmul": (patterns.make_matmul_pattern(), PRODUCT),
    "bias": (
        patterns.make_matmul_pattern(True, "relax.nn.relu"),
        relax.op.nn.relu(relax.op.add(PRODUCT, Y)),
    ),
    "transposed": (patterns.make_matmul_pattern(transposed_rhs=True), TRANSPOSED),
    "fused": (patterns.make_fused_bias_activation_pattern("relax.matmul"), PRODUCT),
    "conv2d": (
        patterns.make_conv2d_pattern(),
        relax.op.nn.conv2d(tensor(1, 2, 4, 4), tensor(2, 2, 3, 3)),
    ),
    "residual": (
        patterns.make_residual_block_pattern(patterns.make_matmul_pattern()),
        relax.op.add(X, PRODUCT),
    ),
    "attention": (
        patterns.make_attention_pattern(),
        relax.op.nn.attention(*[tensor(1, 2, 3, 4)] * 3),
    ),
    "layer_norm": (
        patterns.make_layer_norm_pattern(),
        relax.op.nn.layer_norm(X, tensor(2), tensor(2), axes=[-1]),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_shared_pattern_matches_its_operator_and_names_its_parts(case):
    (pattern, parts), expr = CASES[case]
    found = pattern.extract_matched_expr(expr)
    assert found is not None
    assert all(part in found for part in parts.values())
    assert not pattern.match(relax.op.exp(expr))
