"""``weft ops MODEL``: lists the operators of a model and says which of them weft supports."""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from weft.cli.models import Subject, add_model_arguments, subject_of
from weft.cli.tables import print_table
from weft.driver.sources import function_of
from weft.support.errors import TVMError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of this subcommand."""
    add_model_arguments(parser)


def run(options: argparse.Namespace) -> int:
    """Print a row for each operator; the exit status is 1 if the model cannot be imported."""
    subject = subject_of(options)
    rows = list(coverage(subject))
    cells = [(str(row.count), row.name, _state(row)) for row in rows]
    print_table("", ("times", "operator", "state"), cells, text=(1, 2))
    missing = [row for row in rows if row.status == "missing"]
    print(f"{len(rows)} operators, {len(missing)} missing")
    refusal = "" if missing else why_not_imported(subject)
    if refusal:
        print(f"not imported: {refusal}")
    return 1 if missing or refusal else 0


def _state(row: Any) -> str:
    return f"{row.status}  (nearest: {row.nearest})" if row.nearest else str(row.status)


def why_not_imported(subject: Subject) -> str:
    """Why an ONNX file cannot be imported though it lacks no operator; nothing if it can."""
    if not (isinstance(subject.model, Path) and subject.model.suffix == ".onnx"):
        return ""
    try:
        importlib.import_module("weft.relax.frontend.onnx").from_onnx(subject.model)
    except TVMError as error:
        return str(error)
    return ""


def coverage(subject: Subject) -> Iterable[Any]:
    """The rows of the table, from the frontend for this kind of model."""
    if isinstance(subject.model, Path) and subject.model.suffix == ".onnx":
        onnx = importlib.import_module("weft.relax.frontend.onnx.coverage")
        rows: Iterable[object] = onnx.operator_coverage(subject.model)
        return rows
    torch = importlib.import_module("weft.relax.frontend.torch.coverage")
    rows = torch.operator_coverage(exported(subject))
    return rows


def exported(subject: Subject) -> Any:
    """The ExportedProgram of a PyTorch model."""
    if isinstance(subject.model, Path):
        return function_of("weft.driver.torch_models:load_program")(subject.model)
    capture = importlib.import_module("weft.relax.frontend.torch.capture").capture
    examples = subject.examples
    if isinstance(examples, dict):
        return capture(subject.model, (), examples, subject.dynamic_shapes)
    return capture(subject.model, examples, None, subject.dynamic_shapes)
