"""``weft compare MODEL``: finds where a model's results in weft differ from its framework's.

It compares three things. First code generation: every kernel of the compiled model, native against
interpreted, since the other two run native code. Then the operators: every intermediate tensor of
weft against that of the framework, on the same inputs. Then the passes: the results of the whole
model after each pass.
"""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

import weft
from weft import relax
from weft.cli.models import Subject, add_model_arguments, subject_of
from weft.driver.pipeline import get_pipeline, relax_pipeline_of
from weft.ir.module import IRModule
from weft.ir.transform import PassContext
from weft.support.errors import UnsupportedError
from weft.tir.interp.code_check import HANDS_BUFFERS, WHOLE, CodeReport, Native, check_code

TOLERANCE: Final = 1e-4
"""Larger differences count, as a share of the largest magnitude in a tensor."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of this subcommand."""
    add_model_arguments(parser)
    parser.add_argument(
        "--tolerance",
        type=float,
        default=TOLERANCE,
        metavar="SHARE",
        help=f"of a tensor's largest magnitude (default {TOLERANCE:g})",
    )
    parser.add_argument("--all", action="store_true", help="print every operator, not the worst")


@dataclass(frozen=True)
class Trace:
    """One run of a model in its framework, with every intermediate tensor.

    ``rows`` are (operator, place in the source) for each tensor; ``module`` is a module that
    returns all these tensors in order. ``model`` is the module of the model itself, and ``results``
    are the framework's results for it.
    """

    rows: Sequence[tuple[str, str]]
    expected: Sequence[np.ndarray]
    module: IRModule
    model: IRModule
    results: Sequence[np.ndarray]
    inputs: Sequence[np.ndarray]


def run(options: argparse.Namespace) -> int:
    """Print what differs; the exit status is 1 if anything does."""
    trace = trace_of(subject_of(options))
    first_kernel = compare_code(trace, options.seed)
    first_operator = compare_operators(trace, options.tolerance, options.all)
    first_pass = compare_passes(trace, options.tolerance)
    return 1 if first_kernel or first_operator or first_pass else 0


class _CodeInstrument:
    """Compares the code of every build with the interpreter."""

    def __init__(self, seed: int) -> None:
        self.seed, self.reports = seed, list[CodeReport]()

    def run_after_codegen(
        self,
        mod: IRModule,
        native: Callable[[], Native],
        compile_module: Callable[[IRModule], Native],
    ) -> None:
        """Called by a build with the lowered module (weft.ir.instrument)."""
        self.reports.append(check_code(mod, native, compile_module, seed=self.seed))


def compare_code(trace: Trace, seed: int) -> str | None:
    """Print how the kernels agree with the interpreter; returns the first one that does not."""
    instrument = _CodeInstrument(seed)
    with weft.target.Target("llvm"):
        module = relax_pipeline_of("weft")(trace.model)
    with PassContext(instruments=[instrument]):
        relax.build(module, relax_pipeline="default")
    report = instrument.reports[-1] if instrument.reports else CodeReport()
    short = sum([extent != WHOLE for extent in report.compared.values()])
    kernels = len(report.compared)
    print(f"code generation: {kernels} kernels interpreted and native, {short} cut short")
    for name, reason in report.left_out.items():
        if reason != HANDS_BUFFERS:
            print(f"  not compared: {name}: {reason}")
    for name, problem in report.problems.items():
        print(f"  first to differ: {name}: {problem}")
        print("  what follows runs such code, too: mend this first")
        return name
    print("  all agree")
    return None


def difference(actual: object, expected: object) -> float:
    """The largest difference as a share of the expected tensor's largest magnitude."""
    actual, expected = np.asarray(actual), np.asarray(expected)
    if actual.shape != expected.shape or actual.dtype != expected.dtype:
        return float("inf")
    if actual.size == 0:
        return 0.0
    mine, its = actual.astype("float64"), expected.astype("float64")
    same = (mine == its) | (np.isnan(mine) & np.isnan(its))
    if same.all():
        return 0.0
    finite = np.abs(its[np.isfinite(its)])
    scale = float(finite.max()) if finite.size and finite.max() > 0 else 1.0
    apart = np.where(same, 0.0, np.abs(mine - its)) / scale
    return float("inf") if np.isnan(apart).any() else float(apart.max())


def compare_operators(trace: Trace, tolerance: float, every: bool) -> str | None:
    """Print the operators' differences; returns the first operator that exceeds ``tolerance``."""
    actual = _run(trace.module, trace.inputs, "default")
    apart = [difference(a, b) for a, b in zip(actual, trace.expected, strict=True)]
    print(f"{len(apart)} tensors on the way, operator by operator")
    order = range(len(apart)) if every else sorted(range(len(apart)), key=lambda i: -apart[i])[:5]
    for i in order:
        what, where = trace.rows[i]
        print(f"  {apart[i]:9.2e}  {what}" + (f"  {where}" if where else ""))
    wrong = [i for i, share in enumerate(apart) if share > tolerance]
    if not wrong:
        print(f"  all within {tolerance:g} of their scale")
        return None
    what, where = trace.rows[wrong[0]]
    print(f"  first to differ: {what}, by {apart[wrong[0]]:.2e} of its scale  {where}".rstrip())
    return what


def compare_passes(trace: Trace, tolerance: float) -> str | None:
    """Print the difference after each pass; returns the first pass after which it is too large."""
    print("the whole model, pass by pass")
    first = None
    for name, module in _stages(trace.model):
        actual = _run(module, trace.inputs, "default")
        apart = max(
            [difference(a, b) for a, b in zip(actual, trace.results, strict=True)], default=0.0
        )
        print(f"  {apart:9.2e}  {name}")
        if first is None and apart > tolerance:
            first = name
    print(f"  first to differ: {first}" if first else f"  all within {tolerance:g} of their scale")
    return first


def _stages(module: object) -> Iterator[tuple[str, object]]:
    yield "as imported", module
    with weft.target.Target("llvm"):
        for step in get_pipeline("weft").passes:
            changed = step(module)
            if changed is not module:
                yield step.info.name, changed
            module = changed


def _run(module: object, inputs: Sequence[object], pipeline: str) -> list[object]:
    machine = relax.VirtualMachine(relax.build(module, relax_pipeline=pipeline), weft.cpu())
    results = machine["main"](*[weft.nd.array(value) for value in inputs])
    results = results if isinstance(results, list | tuple) else [results]
    return [value.numpy() for value in results]


def trace_of(subject: Subject) -> Trace:
    """Run a model in the framework that it comes from."""
    if isinstance(subject.model, Path) and subject.model.suffix == ".onnx":
        of_onnx: Trace = importlib.import_module("weft.cli.compare_onnx").trace_of(subject)
        return of_onnx
    if subject.is_torch or isinstance(subject.model, Path):
        of_torch: Trace = importlib.import_module("weft.cli.compare_torch").trace_of(subject)
        return of_torch
    raise UnsupportedError(f"{subject.name}: only models of PyTorch and ONNX can be compared")
