"""What a model holds of which there is no module: as files with packed weights give it."""

from __future__ import annotations

from typing import Any

from weft.runtime.model.compiled_model import CompiledModel
from weft.runtime.weight_names import weight_label
from weft.script.printed import without_header
from weft.support.errors import UnsupportedError
from weft.viz.assembly import facts_of
from weft.viz.disassembly import disassembled, kernel_of_symbol
from weft.viz.memory import size_of, weight_bytes
from weft.viz.texts import Texts

Row = dict[str, object]


def with_held(data: Row, model: CompiledModel) -> Row:
    """The data of a page of which nothing was compiled, with what the model itself tells."""
    texts, memory = Texts(), memory_held(model)
    summary: Any = data["summary"]
    kernels, obstacle = kernels_held(model, texts)
    return {
        **data,
        "kernels": kernels,
        "summary": {
            **summary,
            "kernels": len(kernels),
            "weight_bytes": weight_bytes(memory),
            "arena_bytes": memory["arena_bytes"],
            "compile_seconds": None,
        },
        "states": [state_held(model, texts)],
        "texts": texts.by_digest,
        "memory": memory,
        "report": report_held(model, obstacle),
    }


def kernels_held(model: CompiledModel, texts: Texts) -> tuple[list[Row], str]:
    """The kernels with their assembly alone, or none and the reason."""
    code = model.code
    if code is None:
        return [], "the model has no native code"
    try:
        symbols = disassembled(code)
    except UnsupportedError as error:
        return [], str(error)
    rows = []
    for name in model.kernels.functions:
        parts = [text for symbol, text in symbols.items() if kernel_of_symbol(symbol) == name]
        if parts:
            rows.append(_kernel_row(name, "\n".join(parts), code.triple, texts))
    return rows, ""


def _kernel_row(name: str, assembly: str, triple: str, texts: Texts) -> Row:
    facts = facts_of(assembly, triple)
    unknown: Row = dict.fromkeys(("scheduled", "lowered", "llvm_before", "llvm"))
    return {
        "name": name,
        **unknown,
        "assembly": texts.put(assembly),
        "links": [],
        "loops": [],
        "vector_bits": facts.vector_bits,
        "registers": facts.registers,
        "spills": facts.spills,
        "weights": [],
        "schedule": {"rule": None, "refused": [], "start": None, "steps": []},
    }


def memory_held(model: CompiledModel) -> Row:
    """The constants, and the size of the working memory where it is a number."""
    weights: list[Row] = [
        {
            "name": weight_label(constant, at),
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


def report_held(model: CompiledModel, obstacle: str) -> list[Row]:
    """Why there is no more, and which functions there are; ``obstacle``: why no assembly."""
    names = ", ".join(model.kernels.functions)
    shown = f"there is no assembly: {obstacle}" if obstacle else "their assembly is disassembled"
    return [
        {
            "topic": "file",
            "text": "The file keeps weights as its code takes them, so that the module cannot be "
            "compiled again: passes, schedules, the texts before the assembly and times are not "
            "known. Save the page where the model is compiled.",
            "kernel": None,
        },
        {"topic": "kernels", "text": f"its kernels: {names}; {shown}", "kernel": None},
    ]
