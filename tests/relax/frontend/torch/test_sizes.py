"""Symbols of extents are known not to be negative: sizes of what counts up to them stay short."""

from __future__ import annotations

import torch
from torch.export import Dim

from weft import relax
from weft.ir.functor import collect
from weft.relax.frontend.torch import from_exported_program
from weft.tir.buffer import Buffer
from weft.tir.expr import Max, SizeVar, Var


class Positions(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.places = torch.nn.Embedding(20, 8), torch.nn.Embedding(64, 8)

    def forward(self, x):
        y = self.words(x) + self.places(torch.arange(x.shape[1]))
        return torch.nn.functional.layer_norm(y, [8]) + y


def imported(model, args, shapes):
    return from_exported_program(torch.export.export(model, args, dynamic_shapes=shapes))


def test_extents_of_inputs_are_sizes():
    shapes = ({0: Dim("batch"), 1: Dim("length", max=64)},)
    module = imported(Positions(), (torch.ones(2, 9, dtype=torch.int64),), shapes)
    [x, *_] = module["main"].params
    assert [type(extent) for extent in x.struct_info.shape.values] == [SizeVar, SizeVar]


def test_numbers_among_inputs_may_be_negative():
    class Add(torch.nn.Module):
        def forward(self, x, n):
            return x + n

    shapes = ({0: Dim("rows")}, Dim.DYNAMIC)
    module = imported(Add(), (torch.ones(3, 2), 5), shapes)
    variables = {type(var) for var in collect(module["main"].params[1], Var)}
    assert SizeVar not in variables


def test_counting_up_to_an_extent_makes_no_larger_of_it_and_zero():
    shapes = ({1: Dim("length", max=64)},)
    module = imported(Positions(), (torch.ones(2, 9, dtype=torch.int64),), shapes)
    legal = relax.transform.LegalizeOps()(module)
    buffers = [buffer for func in legal.functions.values() for buffer in collect(func, Buffer)]
    assert buffers
    assert not [buffer for buffer in buffers if collect(buffer.shape, Max)]
