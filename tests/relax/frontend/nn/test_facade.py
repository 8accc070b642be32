"""Names of the package, and those that are to come."""

import pytest

import weft
from weft.relax.frontend import nn
from weft.support.facade import PlannedNameError


def test_names_are_found():
    assert nn.Module is nn.core.Module
    assert nn.modules.Linear is nn.Linear
    assert nn.core.Effect is nn.Effect
    assert {"Linear", "add", "spec", "Mutator"} <= set(dir(nn))


@pytest.mark.parametrize("name", ["SourceModule", "ObjectModule", "ExternModule", "add_extern"])
def test_external_modules_are_planned(name):
    with pytest.raises(PlannedNameError, match=f"nn.{name} is a name of TVM 0.20 that weft does n"):
        getattr(nn, name)


def test_paged_caches_are_planned():
    from weft.relax.frontend.nn.llm import kv_cache

    with pytest.raises(PlannedNameError, match="PagedKVCache .*a later issue; nn.KVCache is a cac"):
        kv_cache.PagedKVCache
    with pytest.raises(PlannedNameError, match="large language models"):
        nn.llm.tree_attn


def test_a_near_miss_is_named():
    with pytest.raises(weft.TVMError, match="did you mean Linear"):
        nn.Liner
