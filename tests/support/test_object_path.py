"""Paths: their text, equality, prefixes, and following them through objects."""

from types import SimpleNamespace

import pytest

from weft.runtime import ObjectPath
from weft.support import object_path
from weft.support.errors import TVMError

root = ObjectPath.root()


def test_text_of_every_step():
    path = root.attr("body").array_index(3).map_value("key").map_value(7)
    assert str(path) == '<root>.body[3]["key"][7]'
    assert str(root.attr(None)) == "<root>.<unknown attribute>"
    assert str(root.missing_array_element(1)) == "<root>[<missing element #1>]"
    assert str(root.missing_map_entry()) == "<root>[<missing entry>]"
    assert repr(ObjectPath.root("mod").attr("x")) == "mod.x"


def test_classes_and_keys():
    assert isinstance(root, object_path.RootPath)
    assert root.name is None
    assert root.attr("a").attr_key == "a"
    assert root.array_index(2).index == root.missing_array_element(2).index == 2
    key = object()
    assert root.map_value(key).key is key
    with pytest.raises(TVMError, match=r"start with ObjectPath.root\(\)"):
        ObjectPath(None)


def test_equality_and_hash():
    assert root.attr("a").array_index(1) == ObjectPath.root().attr("a").array_index(1)
    assert root.attr("a") != root.attr("b")
    assert root.attr("a") != root.map_value("a")
    assert root != ObjectPath.root("named")
    assert root != root.attr("a")
    assert {root.attr("a"): 1}[ObjectPath.root().attr("a")] == 1


def test_prefixes():
    path = root.attr("a").array_index(1)
    assert len(path) == 3
    assert path.parent == root.attr("a")
    assert root.parent is None
    assert path.get_prefix(2) == root.attr("a")
    assert root.is_prefix_of(path)
    assert path.is_prefix_of(path)
    assert not path.is_prefix_of(root)
    with pytest.raises(IndexError, match="at least 1, got 0"):
        path.get_prefix(0)
    with pytest.raises(IndexError, match="4 steps of a path of 3"):
        path.get_prefix(4)


def test_resolve_stops_where_nothing_is():
    value = SimpleNamespace(items=[1, {"k": "found"}])
    path = root.attr("items").array_index(1).map_value("k")
    assert path.resolve(value) == [value, value.items, value.items[1], "found"]
    assert root.attr("items").array_index(9).resolve(value) == [value, value.items]
    assert root.attr("other").attr("x").resolve(value) == [value]
    assert root.attr("items").missing_array_element(2).resolve(value) == [value, value.items]
