"""annotate and unannotate."""

import pytest

import weft
from tests.lib.programs import matmul
from weft import tir
from weft.tir.schedule.primitive.loop.annotation import AnnotationError

VALUES = [1, True, 2.5, "text", [1, 2], ["a", [1, "b"]], {"x": 1, "y": [2, 3]}]


@pytest.mark.parametrize("value", VALUES, ids=repr)
@pytest.mark.parametrize("place", ["block", "loop"])
def test_values(place, value):
    sch = tir.Schedule(matmul)
    block = sch.get_block("C")
    target = block if place == "block" else sch.get_loops(block)[0]
    sch.annotate(target, "key", value)
    found = sch.get(target).annotations["key"]
    assert (dict(found) if isinstance(value, dict) else found) == value
    sch.unannotate(target, "key")
    assert "key" not in sch.get(target).annotations


def test_unrolling_hint_is_kept_by_parallel():
    sch = tir.Schedule(matmul)
    i, _, _ = sch.get_loops("C")
    sch.annotate(i, "pragma_auto_unroll_max_step", 16)
    sch.parallel(i)
    assert sch.get(i).annotations["pragma_auto_unroll_max_step"] == 16


def test_refusals():
    sch = tir.Schedule(matmul)
    block = sch.get_block("C")
    sch.annotate(block, "key", 1)
    with pytest.raises(AnnotationError, match="block C has 'key' = 1 already"):
        sch.annotate(block, "key", 2)
    with pytest.raises(AnnotationError, match="no annotation 'other'; it has key"):
        sch.unannotate(block, "other")
    with pytest.raises(weft.TVMError, match="ann_key: expected a str, got int 3"):
        sch.annotate(block, 3, 4)
    with pytest.raises(weft.TVMError, match="ann_val: expected .* got object"):
        sch.annotate(block, "thing", object())
