"""How a model is called: arguments to inputs, results back, errors in the caller's own words."""

from __future__ import annotations

import collections
import dataclasses
import json

import pytest

from weft.runtime.model.signature import (
    Parameter,
    Record,
    Signature,
    check_range,
    places,
    rebuild,
    tree_of,
)
from weft.support.errors import IRTypeError, IRValueError

BATCH = ("dict", ("ids", "mask"), (("leaf", 1), ("tuple", (("leaf", 2), ("value", None)))))
MODEL = Signature(
    "Net",
    (
        Parameter("x", ("leaf", 0)),
        Parameter("batch", BATCH),
        Parameter("scale", ("value", 2), default=("value", 2)),
        Parameter("past", ("absent",), "keyword", ("value", None)),
    ),
    ("x", "batch['ids']", "batch['mask'][0]"),
    ("leaf", 0),
)
GOOD = {"ids": "i", "mask": ("m", None)}


@pytest.mark.parametrize(
    ("args", "kwargs"),
    [
        (("x", GOOD), {}),
        (("x",), {"batch": GOOD}),
        ((), {"batch": {"mask": ["m", None], "ids": "i"}, "x": "x"}),
        (("x", GOOD, 2), {"past": None}),
        (("x", GOOD), {"scale": 2}),
    ],
)
def test_arguments_become_inputs(args, kwargs):
    assert MODEL.flatten(args, kwargs) == ["x", "i", "m"]


@pytest.mark.parametrize(
    ("args", "kwargs", "error", "message"),
    [
        (("x",), {}, IRTypeError,
         r"Net: expected the arguments \(x, batch, scale, past\), missing batch"),
        (("x", GOOD, 2, 3), {}, IRTypeError, "got 4 by position"),
        (("x", GOOD), {"size": 1}, IRTypeError, "got the keyword size"),
        (("x", GOOD), {"x": 1}, IRTypeError, "argument x is given twice"),
        (("x", GOOD, 3), {}, IRValueError,
         "argument scale: the model was compiled with 2 there, got 3; compile it again"),
        (("x", GOOD), {"past": "cache"}, IRValueError,
         "argument past: the model was compiled with it left out, got 'cache'"),
        (("x", {"ids": "i"}), {}, IRTypeError,
         "argument batch: expected the keys ids, mask, got ids"),
        (("x", "text"), {}, IRTypeError, "argument batch: expected a dict of ids, mask, got str"),
        (("x", {"ids": "i", "mask": ("m",)}), {}, IRTypeError,
         r"argument batch\['mask'\]: expected a tuple of 2, got one of 1"),
        (("x", {"ids": None, "mask": ("m", None)}), {}, IRTypeError,
         r"argument batch\['ids'\]: expected a tensor, got None"),
        (("x", {"ids": "i", "mask": ("m", 4)}), {}, IRValueError,
         r"argument batch\['mask'\]\[1\]: the model was compiled with it left out, got 4"),
    ],
)  # fmt: skip
def test_arguments_that_do_not_fit(args, kwargs, error, message):
    with pytest.raises(error, match=message):
        MODEL.flatten(args, kwargs)


def test_json_both_ways():
    assert Signature.from_json(json.loads(json.dumps(MODEL.to_json()))) == MODEL


Point = collections.namedtuple("Point", "x y")  # noqa: PYI024 - what users have


@dataclasses.dataclass
class Output:
    logits: object
    hidden: object = None


class Mapped(collections.OrderedDict):
    pass


@pytest.mark.parametrize(
    "value",
    [
        (1, [2, {"a": 3}], ()), {"b": {"c": 1}}, Point(1, (2,)), Output(1, [2]),
        Mapped([("z", 1), ("a", 2)]),
    ],
)  # fmt: skip
def test_trees_of_containers_both_ways(value):
    leaves = []

    def leaf(item):
        leaves.append(item)
        return ("leaf", len(leaves) - 1)

    made = rebuild(tree_of(value, leaf), leaves)
    assert made == value
    assert type(made) is type(value)


def test_an_object_of_a_class_that_is_not_loaded_is_a_record():
    tree = ("object", "elsewhere.models:Output", ("logits", "loss"), (("leaf", 0), ("value", None)))
    made = rebuild(tree, [5])
    assert isinstance(made, Record)
    assert made.logits == made["logits"] == 5
    with pytest.raises(AttributeError, match="this record has logits, loss, no 'hidden'"):
        made.hidden


def test_nothing_is_imported_or_called_for_an_object():
    tree = ("object", "subprocess:Popen", ("args",), (("value", "true"),))
    assert isinstance(rebuild(tree, []), Record)


def test_places_are_written_as_the_caller_writes_them():
    assert dict(places(BATCH, "batch")) == {1: "batch['ids']", 2: "batch['mask'][0]"}


def test_ranges():
    check_range("Net: n", 4, 2, 4)
    check_range("Net: n", 4, None, None)
    with pytest.raises(IRValueError, match="Net: n is 5, and the model was compiled for 2 to 4"):
        check_range("Net: n", 5, 2, 4)
    with pytest.raises(IRValueError, match="compiled for at least 2"):
        check_range("Net: n", 1, 2, None)
