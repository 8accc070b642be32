"""Numerical tests of graph operators through the whole stack, as tables of cases.

A table is built once, every row that the session runs a function of one module, natively with
default schedules and as bytecode without any; ``check`` runs one row on both and compares with
numpy (or PyTorch) in float64, and with the interpreter of graphs. Accuracy (design.md 3.14):
max|difference| <= tolerance * max|reference|; NaN and infinities must be in the same places.
"""

from __future__ import annotations

import functools
import importlib
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pytest

from weft.driver.build import relax_build as build
from weft.ir.module import IRModule
from weft.ir.op import Op
from weft.relax.block_builder import BlockBuilder
from weft.relax.expr import Tuple, Var
from weft.relax.op.definition import FUNCTIONS
from weft.relax.reference import reference_of, run
from weft.relax.struct_info import TensorStructInfo
from weft.runtime.device import cpu
from weft.runtime.ndarray import NDArray, array
from weft.runtime.vm.virtual_machine import VirtualMachine
from weft.support.dtype import DataType
from weft.tir.expr import Var as SizeVar

TOLERANCE: Final = {"float64": 1e-12, "float32": 1e-5, "float16": 2e-3, "bfloat16": 1.6e-2}
"""By the dtype of the result: relative to the largest element of the reference."""

PIPELINES: Final = {"compiled": "weft", "bytecode": "default"}
"""How a table is built in each mode: with default schedules natively, as written as bytecode."""


@dataclass(frozen=True)
class Input:
    """A tensor argument: dimensions are ints or names of sizes."""

    shape: tuple[int | str, ...]
    dtype: str = "float32"
    fill: Any = None
    """Values: a function of (generator, shape), a list that is repeated, or None: normal floats,
    integers from -5 to 5 (unsigned: 0 to 9), random booleans."""

    def values(self, generator: np.random.Generator, sizes: Mapping[str, int]) -> np.ndarray:
        """An array of the shape under ``sizes``."""
        shape = tuple(sizes[d] if isinstance(d, str) else d for d in self.shape)
        kind = DataType(self.dtype)
        if callable(self.fill):
            made = self.fill(generator, shape)
        elif self.fill is not None:
            made = np.resize(np.array(self.fill), shape)
        elif kind.is_bool:
            made = generator.integers(0, 2, shape)
        elif kind.is_float:
            made = generator.standard_normal(shape)
        else:
            made = generator.integers(*((0, 10) if kind.is_uint else (-5, 6)), shape)
        return np.asarray(made).astype(kind.numpy)


@dataclass(frozen=True)
class Case:
    """One row: an operator expression, its arguments and what numpy makes of them."""

    op: str
    call: Callable[..., Any]
    inputs: Sequence[Input]
    reference: Callable[..., Any]
    sizes: Sequence[Mapping[str, int]] = field(default=({},))
    """One run for each; the artefact is the same."""
    tolerance: float | None = None
    note: str = ""

    def __str__(self) -> str:
        shapes = "-".join(["x".join([str(d) for d in i.shape]) or "0d" for i in self.inputs])
        types = "-".join(dict.fromkeys([i.dtype for i in self.inputs]))
        return ":".join([part for part in (self.op, shapes, types, self.note) if part])


def t(*shape: int | str, dtype: str = "float32", fill: Any = None) -> Input:
    """An input, written short."""
    return Input(shape, dtype, fill)


def row(
    name: str, given: Sequence[Input], reference: Callable[..., Any], *args: Any,
    sizes: Sequence[Mapping[str, int]] = ({},), note: str = "", tolerance: float | None = None,
    **attrs: Any,
) -> Case:  # fmt: skip
    """The case of one operator: its tensors, then ``args`` and ``attrs`` as they are."""
    function = FUNCTIONS[name]
    return Case(
        name, lambda *x: function(*x, *args, **attrs), given, reference, sizes, tolerance, note
    )


def by_torch(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """A reference that calls a function of PyTorch on numpy arrays."""

    def run(*arrays: np.ndarray) -> Any:
        torch = importlib.import_module("torch")
        given = [torch.from_numpy(np.ascontiguousarray(a).reshape(a.shape)) for a in arrays]
        made = function(*given, **options)
        return [m.numpy() for m in made] if isinstance(made, tuple | list) else made.numpy()

    return run


SAMPLED: Final = pytest.mark.sampled(3, by=lambda parameters: parameters["case"].op)
"""The mark of the tests of a table: `make test` runs a third of the rows of each operator."""


class Table:
    """The rows of a family, built once when the first of them is checked."""

    def __init__(self, cases: Sequence[Case]) -> None:
        self.cases = list(cases)
        self.unused: set[int] = set()
        """Numbers of rows that no test of the session checks: they are not built."""
        self.broken: Exception | None = None
        self.module = IRModule()

    @functools.cached_property
    def machines(self) -> dict[str, Any]:
        """A virtual machine for each way to execute."""
        if self.broken is not None:
            raise self.broken
        builder = BlockBuilder()
        for number, case in self._used():
            try:
                self._add(builder, number, case)
            except Exception as error:
                error.add_note(f"in the row {case}")
                self.broken = error
                raise
        self.module = builder.get()
        return {mode: self._machine(self.module, mode) for mode in ("compiled", "bytecode")}

    def build_only(self, cases: Iterable[Case]) -> None:
        """Leave out all other rows when the table is built."""
        used = {id(case) for case in cases}
        self.unused = {number for number, case in enumerate(self.cases) if id(case) not in used}

    def _used(self) -> list[tuple[int, Case]]:
        return [(n, case) for n, case in enumerate(self.cases) if n not in self.unused]

    def _add(self, builder: BlockBuilder, number: int, case: Case) -> None:
        symbols: dict[str, SizeVar] = {}
        params = []
        for position, given in enumerate(case.inputs):
            shape = [
                symbols.setdefault(d, SizeVar(d, "int64")) if isinstance(d, str) else d
                for d in given.shape
            ]
            params.append(Var(f"x{position}", TensorStructInfo(shape, given.dtype)))
        with builder.function(f"case{number}", params):
            made = case.call(*params)
            made = Tuple(made) if isinstance(made, list) else made
            builder.emit_func_output(builder.emit(made))

    def _machine(self, mod: IRModule, mode: str) -> Any:
        try:
            built = build(mod, "llvm", pipeline=PIPELINES[mode], exec_mode=mode)
            return VirtualMachine(built, cpu())
        except Exception as error:
            error.add_note(self._culprit(mode))
            self.broken = error
            raise

    def _culprit(self, mode: str) -> str:
        """The first row that does not build by itself."""
        for number, case in self._used():
            builder = BlockBuilder()
            self._add(builder, number, case)
            try:
                build(builder.get(), "llvm", pipeline=PIPELINES[mode], exec_mode=mode)
            except Exception as error:  # noqa: BLE001 - the table's own error is the one raised
                return f"in the row {case}: {type(error).__name__}"
        return "in no single row"

    def check(self, case: Case) -> None:
        """Run the row on all its sizes: compiled, bytecode, from strided sources, interpreted."""
        number = self.cases.index(case)
        generator = np.random.default_rng(zlib.crc32(str(case).encode()))
        for sizes in case.sizes:
            values = [item.values(generator, sizes) for item in case.inputs]
            expected = _as_list(case.reference(*[_exact(v) for v in values]))
            results = {
                mode: _as_list(machine[f"case{number}"](*[array(v) for v in values]))
                for mode, machine in self.machines.items()
            }
            strided = [array(_strided(v)) for v in values]
            results["strided"] = _as_list(self.machines["compiled"][f"case{number}"](*strided))
            for mode in PIPELINES:
                for got, wanted in zip(results[mode], expected, strict=True):
                    compare(got, wanted, case.tolerance)
            if reference_of(Op.get(f"relax.{case.op}")):  # test_completeness lists the others
                interpreted = _as_list(run(self.module, f"case{number}", *values))
                for got, wanted in zip(results["compiled"], interpreted, strict=True):
                    compare(got, wanted, case.tolerance)
            for got, other in zip(results["compiled"], results["strided"], strict=True):
                np.testing.assert_array_equal(got, other, err_msg="strided")


def _exact(values: np.ndarray) -> np.ndarray:
    """Floating-point values as float64; others as they are."""
    kind = DataType(str(values.dtype))
    return values.astype(np.float64) if kind.is_float else values


def _as_list(result: Any) -> list[Any]:
    items = result if isinstance(result, list | tuple) else [result]
    return [item.numpy() if isinstance(item, NDArray) else np.asarray(item) for item in items]


def _strided(values: np.ndarray) -> np.ndarray:
    """The same values in memory that is neither dense nor in order."""
    if values.ndim == 0:
        return values
    spread = np.zeros([extent * 2 for extent in values.shape[::-1]], values.dtype)
    view = spread[tuple([slice(None, None, 2)] * values.ndim)].T
    view[...] = values
    return view


def compare(got: np.ndarray, wanted: np.ndarray, tolerance: float | None = None) -> None:
    """The shapes agree, and the values by the norm of the module's docstring."""
    assert got.shape == wanted.shape, f"shape {got.shape}, expected {wanted.shape}"
    kind = DataType(str(got.dtype))
    if not kind.is_float:
        np.testing.assert_array_equal(got, wanted)
        assert (wanted.dtype == bool) == kind.is_bool, f"{got.dtype}, expected {wanted.dtype}"
        return
    values, reference = got.astype(np.float64), np.asarray(wanted, np.float64)
    with np.errstate(over="ignore"):
        reference = np.where(
            np.isinf(reference.astype(got.dtype).astype(np.float64)),
            reference.astype(got.dtype).astype(np.float64), reference,
        )  # fmt: skip
    odd = ~np.isfinite(reference)
    np.testing.assert_array_equal(values[odd], reference[odd])
    if odd.all():
        return
    allowed = TOLERANCE[str(got.dtype)] if tolerance is None else tolerance
    difference = np.abs(values[~odd] - reference[~odd]).max()
    largest = np.abs(reference[~odd]).max()
    assert difference <= allowed * largest, (
        f"max|difference| {difference:.3g} > {allowed:g} * max|reference| {largest:.3g}:\n"
        f"{values}\n{reference}"
    )
