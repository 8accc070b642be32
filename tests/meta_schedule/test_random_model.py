"""RandomModel, and kinds of cost models."""

from __future__ import annotations

import numpy as np
import pytest

from weft.meta_schedule.cost_model import CostModel, PyCostModel, RandomModel
from weft.support.errors import IRValueError, UnsupportedError


def scores(model, count=50):
    return model.predict(None, [None] * count)


def test_scores_lie_in_the_range_and_follow_the_seed():
    values = scores(RandomModel(seed=3, max_range=7), 1000)
    assert values.shape == (1000,)
    assert values.dtype == np.float64
    assert 0 <= values.min() < 1 < 6 < values.max() <= 7
    np.testing.assert_array_equal(values, scores(RandomModel(seed=3, max_range=7), 1000))
    assert (values != scores(RandomModel(seed=4, max_range=7), 1000)).any()


def test_a_file_continues_the_random_numbers(tmp_path):
    model = RandomModel(seed=5)
    scores(model)
    model.save(str(tmp_path / "model"))
    following = scores(model)
    np.testing.assert_array_equal(scores(RandomModel(path=str(tmp_path / "model"))), following)
    model.load(str(tmp_path / "model"))
    np.testing.assert_array_equal(scores(model), following)


@pytest.mark.parametrize("content", ["", "{}", '{"state": {"key": [1]}}'])
def test_another_file_is_refused(tmp_path, content):
    (tmp_path / "model").write_text(content)
    with pytest.raises(IRValueError, match="expected a file that RandomModel.save wrote"):
        RandomModel(path=str(tmp_path / "model"))


def test_kinds():
    assert isinstance(CostModel.create("random", seed=1, tree_method="hist"), RandomModel)
    assert CostModel.create("none") is None
    with pytest.raises(IRValueError, match="expected a kind of 'xgb', 'mlp', 'random', 'none'"):
        CostModel.create("oracle")


def test_a_class_of_the_user_has_to_say_how():
    class Half(PyCostModel):
        def predict(self, context, candidates):
            return np.ones(len(candidates))

    np.testing.assert_array_equal(Half().predict(None, [None] * 3), np.ones(3))
    with pytest.raises(UnsupportedError, match=r"Half\.update: override it"):
        Half().update(None, [], [])
