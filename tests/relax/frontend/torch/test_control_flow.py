"""Branches, loops, scans and the wrappers that torch leaves in graphs."""

from __future__ import annotations

import pytest
import torch
from torch._higher_order_ops.map import map as map_rows
from torch._higher_order_ops.scan import scan
from torch._higher_order_ops.while_loop import while_loop

import weft
from tests.lib.aten import check_model
from weft import relax
from weft.relax.frontend.torch import from_exported_program
from weft.relax.frontend.torch.capture import capture

pytestmark = pytest.mark.torch


class Branches(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 4)

    def forward(self, x):
        def positive(x):
            return self.layer(x), x.sum(1)

        def negative(x):
            return x * 2, x.flip(0).sum(1)

        return torch.cond(x.sum() > 0, positive, negative, (x,))


def test_branches_of_symbolic_extents():
    n = torch.export.Dim("n", min=2, max=64)
    check_model(
        Branches(), torch.ones(3, 4), dynamic_shapes=({0: n},),
        others=[(-torch.ones(5, 4),), (torch.ones(2, 4),)],
    )  # fmt: skip


def test_a_branch_is_one_private_function_beside_a_dataflow_block():
    mod = from_exported_program(capture(Branches(), (torch.ones(3, 4),)))
    assert {"branch", "then_branch", "else_branch"} <= {g.name_hint for g in mod.functions}
    assert len(mod["main"].body.blocks) == 1
    assert relax.analysis.well_formed(mod)


class Nested(torch.nn.Module):
    def forward(self, x):
        def inner(x):
            return torch.cond(x.max() > 2, lambda x: x - 1, lambda x: x + 1, (x,))

        return torch.cond(x.sum() > 0, inner, lambda x: x * 0.5, (x,)) + 1


def test_branches_inside_of_branches():
    inputs = [(-torch.ones(4),), (torch.ones(4),), (3 * torch.ones(4),)]
    check_model(Nested(), torch.ones(4), others=inputs)


class Doubled(torch.nn.Module):
    """Doubles until the sum is large; the step also reads what is not carried."""

    def forward(self, count, x, limit):
        def again(count, x):
            return x.sum() < limit

        def step(count, x):
            return count + 1, x * 2 + limit / 100

        return while_loop(again, step, (count, x))


def test_a_loop_runs_as_often_as_the_data_say():
    check_model(
        Doubled(), torch.tensor(0), torch.ones(2, 3), torch.tensor(50.0),
        others=[(torch.tensor(3), torch.ones(2, 3), torch.tensor(value)) for value in (1.0, 9e4)],
    )  # fmt: skip


class Running(torch.nn.Module):
    def forward(self, start, rows):
        return scan(lambda carry, row: (carry * 0.5 + row, carry + row), start, rows)


def test_a_scan_is_unrolled():
    check_model(Running(), torch.randn(4), torch.randn(5, 4))


class Rows(torch.nn.Module):
    def forward(self, rows, y):
        return map_rows(lambda row, y: (row + y, row.sum()), rows, y)


def test_a_map_over_rows():
    check_model(Rows(), torch.randn(5, 4), torch.randn(4))


class Wrapped(torch.nn.Module):
    def forward(self, x):
        with torch.no_grad():
            y = x * 2
        with torch.autocast("cpu", dtype=torch.bfloat16):
            z = x @ x.T
        return y + 1, z, torch.utils.checkpoint.checkpoint(torch.sin, x, use_reentrant=False)


def test_wrappers_are_inlined():
    check_model(Wrapped(), torch.randn(3, 4))


def test_a_scan_over_a_symbolic_number_of_steps_is_refused():
    n = torch.export.Dim("n", min=2, max=64)
    program = capture(Running(), (torch.randn(4), torch.randn(5, 4)), None, (None, {0: n}))
    with pytest.raises(weft.TVMError, match="expected a constant number of steps"):
        from_exported_program(program)


def test_a_while_loop_of_a_million_steps():
    class Halves(torch.nn.Module):
        def forward(self, n, x):
            return while_loop(
                lambda i, _: i < n, lambda i, s: (i + 1, s * 0.5 + 1), (torch.tensor(0), x)
            )

    exported = torch.export.export(Halves(), (torch.tensor(5), torch.ones(4)))
    count, halves = weft.compile(exported, target="llvm")(torch.tensor(1_000_000), torch.ones(4))
    assert count == 1_000_000
    assert halves.tolist() == [2] * 4
