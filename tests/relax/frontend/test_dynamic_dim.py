"""Dimensions that vary, as several releases of torch.export write them."""

from __future__ import annotations

import enum

import pytest

from weft.relax.frontend.dynamic_dim import hint_of, is_named_dim


class _DimHint(enum.Enum):  # as torch 2.6 has it
    AUTO = enum.auto()
    DYNAMIC = enum.auto()


class _Dim(type):  # the class of a named dimension, which is a class itself in torch 2.6
    pass


class _DerivedDim(_Dim):
    pass


def test_dimensions_of_torch_2_6():
    batch = _Dim("batch", (int,), {"min": 1, "max": 8})
    assert is_named_dim(batch)
    assert is_named_dim(_DerivedDim("2*batch", (int,), {"root": batch}))
    assert [hint_of(item) for item in (_DimHint.AUTO, _DimHint.DYNAMIC)] == ["AUTO", "DYNAMIC"]
    assert not is_named_dim(_DimHint.AUTO)
    assert not hint_of(batch)


def test_dimensions_of_the_installed_torch():
    dim = pytest.importorskip("torch").export.Dim
    assert is_named_dim(dim("batch"))
    assert is_named_dim(2 * dim("batch"))
    assert [hint_of(item) for item in (dim.AUTO, dim.STATIC)] == ["AUTO", "STATIC"]
    assert not is_named_dim(dim.DYNAMIC)


@pytest.mark.parametrize("value", [None, 3, "batch", int, len, ()])
def test_what_is_no_such_dimension(value):
    assert not is_named_dim(value)
    assert not hint_of(value)
