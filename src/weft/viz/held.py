"""What a model holds of which there is no module: as files with packed weights give it."""

from __future__ import annotations

from typing import Any

from weft.runtime.model.compiled_model import CompiledModel
from weft.viz.memory import label_of, size_of, weight_bytes
from weft.viz.texts import Texts, without_header

Row = dict[str, object]


def with_held(data: Row, model: CompiledModel) -> Row:
    """The data of a page of which nothing was compiled, with what the model itself tells."""
    texts, memory = Texts(), memory_held(model)
    summary: Any = data["summary"]
    return {
        **data,
        "summary": {
            **summary,
            "weight_bytes": weight_bytes(memory),
            "arena_bytes": memory["arena_bytes"],
        },
        "states": [state_held(model, texts)],
        "texts": texts.by_digest,
        "memory": memory,
        "report": report_held(model),
    }


def memory_held(model: CompiledModel) -> Row:
    """The constants, and the size of the working memory where it is a number."""
    weights: list[Row] = [
        {
            "name": label_of(constant, at),
            "bytes": size_of(constant),
            "kind": "as given",
            "kernel": None,
        }
        for at, constant in enumerate(model.program.constants)
    ]
    return {
        "arena_bytes": model.memory().arena or 0,
        "live_bound_bytes": 0,
        "steps": [],
        "buffers": [],
        "weights": weights,
    }


def state_held(model: CompiledModel, texts: Texts) -> Row:
    """The program as it was imported, and what the machine runs, as texts."""
    bytecode = str(model.as_text())
    return {
        "functions": {
            model.signature.name: texts.put(without_header(model.script())),
            "bytecode": texts.put(bytecode),
        }
    }


def report_held(model: CompiledModel) -> list[Row]:
    """Why there is no more, and which functions there are."""
    names = ", ".join(model.kernels.functions)
    return [
        {
            "topic": "file",
            "text": "The file keeps weights as its code takes them, so that the module cannot be "
            "compiled again: passes, kernels and times are not known. Save the page where the "
            "model is compiled.",
            "kernel": None,
        },
        {"topic": "kernels", "text": f"its kernels: {names}", "kernel": None},
    ]
