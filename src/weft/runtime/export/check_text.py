"""The checks of a CallPlan printed as C, for exported models.

What is alike in all models, data types, memory and numbers of axes, stands in library_checks.c,
which the text here calls; ``weft.runtime.export.library_source`` puts both into one file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import assert_never

from weft.runtime.call.plan import (
    Bind,
    CallPlan,
    Cast,
    Check,
    Compare,
    Count,
    Limit,
    Open,
    Overlap,
    Rank,
    Same,
    Take,
)
from weft.runtime.export.c_text import SCALARS, c_expression, in_string
from weft.runtime.model.signature import range_text


class CheckText:
    """Prints the steps of a plan; ``names`` are those of its arguments.

    ``states`` has, by the number of the argument, the shapes of those that the model keeps. The
    others are the inputs that a C program gives, in order.
    """

    def __init__(
        self, plan: CallPlan, names: Sequence[str], states: Mapping[int, Sequence[int]]
    ) -> None:
        self.plan, self.names, self.states = plan, names, states
        given = [take.argument for take in plan.takes if take.argument not in states]
        self.numbers = {argument: number for number, argument in enumerate(given)}

    def bindings(self) -> list[str]:
        """Statements that give every symbol its value, in ``s``."""
        steps = [step for step in self.plan.checks if isinstance(step, Bind)]
        return [f"  s->v_{step.symbol} = {self._bound(step)};" for step in steps]

    def _bound(self, step: Bind) -> str:
        shape = self.states.get(step.argument)
        if step.of == "offset":
            return "0"
        if shape is not None:
            return f"INT64_C({shape[step.axis]})"
        tensor = f"in[{self.numbers[step.argument]}]"
        if step.of == "value":
            dtype = self.plan.takes[step.argument].param.dtype
            return f"(int64_t)*(const {SCALARS[dtype]} *){tensor}.data"
        return f"{tensor}.shape[{step.axis}]"

    def comparisons(self) -> list[str]:
        """Statements that return -1 where a comparison of the plan fails."""
        return [line for step in self.plan.checks for line in self._check(step)]

    def _check(self, step: Check) -> list[str]:
        match step:
            case Count() | Open() | Take() | Rank() | Bind():  # check_tensors, and above
                return []
            case Compare():
                return self._compare(step)
            case Cast():
                return _cast(step)
            case Limit():
                text = f"memory was planned for at most {step.most}"
                text += ", which the function's tir_var_upper_bound says"
                return self._between(step.symbol, None, step.most, text)
            case Overlap() | Same():  # weft.runtime.export.library refuses such a model
                raise AssertionError(f"C has no words for {step}")
        assert_never(step)

    def _compare(self, step: Compare) -> list[str]:
        if step.argument in self.states:
            return self._compare_state(step)
        number = self.numbers[step.argument]
        return [
            f'  if (check_extent("input", {number}, &in[{number}], &in_infos[{number}], {axis}, '
            f'{c_expression(extent)}, "{_in_brackets(extent)}"))\n    return -1;'
            for axis, extent in enumerate(step.shape)
        ]

    def _compare_state(self, step: Compare) -> list[str]:
        """A state is as large as it was when the model was exported."""
        number = list(self.states).index(step.argument)
        place = f"state {number} ({in_string(self.names[step.argument])})"
        lines = []
        for axis, extent in enumerate(step.shape):
            wanted, actual = c_expression(extent), self.states[step.argument][axis]
            lines += [
                f"  if ({wanted} != INT64_C({actual}))",
                f'    return fail("{place}: expected an extent of %lld{_in_brackets(extent)} at '
                f'axis {axis}, got {actual}", (long long){wanted});',
            ]
        return lines

    def in_range(self, symbol: str, low: int | None, high: int | None) -> list[str]:
        """Statements that refuse a value that the model was not compiled for."""
        text = f"the model was compiled for {range_text(low, high)}; compile it again with another"
        return self._between(symbol, low, high, f"{text} range")

    def _between(self, symbol: str, low: int | None, high: int | None, text: str) -> list[str]:
        """A check that a symbol is within bounds; its message names the input that says it."""
        tests = [f"v_{symbol} < INT64_C({low})"] if low is not None else []
        tests += [f"v_{symbol} > INT64_C({high})"] if high is not None else []
        where = self._place(symbol)
        if where is None or not tests:
            return []
        return [
            f"  if ({' || '.join(tests)})",
            f'    return fail("{where} is %lld, and {text}", (long long)v_{symbol});',
        ]

    def _place(self, symbol: str) -> str | None:
        """Where a caller gives the value of a symbol; None if no input does."""
        for step in self.plan.checks:
            if isinstance(step, Bind) and step.symbol == symbol and step.argument in self.numbers:
                name = in_string(self.names[step.argument])
                where = f"input {self.numbers[step.argument]} ({name})"
                is_number = step.of == "value"
                return where if is_number else f"{where}: the extent of axis {step.axis} ({symbol})"
        return None


def _cast(step: Cast) -> list[str]:
    lines = []
    for wanted, given in zip(step.resolved, step.actual, strict=True):
        a, b = c_expression(wanted), c_expression(given)
        lines += [
            f"  if ({a} != {b})",
            f'    return fail("{in_string(step.what)}: expected %lld, got %lld ({step.kind})", '
            f"(long long){a}, (long long){b});",
        ]
    return lines


def _in_brackets(extent: int | str) -> str:
    return f" ({in_string(extent)})" if isinstance(extent, str) else ""
