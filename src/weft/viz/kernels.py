"""Kernels: their forms from the schedule to assembly, linked line by line."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from weft.codegen.llvm.compile import begin_translation, compiled_together
from weft.codegen.llvm.debug_lines import DebugLines
from weft.codegen.llvm.emit import emit_module
from weft.ir.functor import collect
from weft.ir.module import IRModule
from weft.script.printed import Printed
from weft.support.errors import TVMError
from weft.target.host import LLVMOptions, llvm_options
from weft.target.target import Target
from weft.tir.printed_lines import line_of
from weft.tir.stmt import Stmt
from weft.viz.assembly import Located, facts_of, read_assembly, read_llvm
from weft.viz.loops import loop_rows
from weft.viz.lowering import Lowering
from weft.viz.texts import Texts

Row = dict[str, object]
Link = tuple[int, int, int, int, int]
"""Lines of the scheduled program, the lowered one, LLVM IR before and after optimisation, assembly;
0: none is known."""
NO_TEXT = Located("", ())


@dataclass(frozen=True)
class Code:
    """The code of a kernel as texts: LLVM IR before and after optimisation, assembly."""

    before: Located
    after: Callable[[], bytes]
    assembly: Callable[[], bytes]
    error: str = ""


def kernel_rows(lowering: Lowering, target: Target, texts: Texts) -> list[Row]:
    """A row for each kernel, without its schedule and its weights."""
    options = llvm_options(target)
    printed = {name: Printed.of(func, name) for name, func in lowering.lowered().items()}
    with compiled_together():
        codes = {name: _begun(item, name, target, options) for name, item in printed.items()}
        return [
            _row(name, lowering.scheduled[name], printed[name], codes[name], options, texts)
            for name in lowering.scheduled
        ]


def _begun(printed: Printed, name: str, target: Target, options: LLVMOptions) -> Code | None:
    """The code of a lowered kernel; LLVM is at work at it."""
    module = IRModule({name: printed.marked()})
    try:
        text, _ = emit_module(module, target, debug=DebugLines())
    except TVMError:
        return None
    after, assembly = [begin_translation(text, options, form) for form in ("ir", "assembly")]
    return Code(read_llvm(text), after, assembly)


def _row(
    name: str,
    scheduled: Printed,
    lowered: Printed,
    code: Code | None,
    options: LLVMOptions,
    texts: Texts,
) -> Row:
    before = NO_TEXT if code is None else code.before
    llvm = NO_TEXT if code is None else read_llvm(code.after().decode())
    assembly = NO_TEXT if code is None else read_assembly(code.assembly().decode())
    facts = facts_of(assembly.text, options.triple)

    def stored(text: str) -> str | None:
        return texts.put(text) if text else None

    return {
        "name": name,
        "scheduled": stored(scheduled.text),
        "lowered": stored(lowered.text),
        "llvm_before": stored(before.text),
        "llvm": stored(llvm.text),
        "assembly": stored(assembly.text),
        "links": links_of(_origins(lowered), (before, llvm, assembly)),
        "loops": loop_rows(scheduled),
        "vector_bits": facts.vector_bits,
        "registers": facts.registers,
        "spills": facts.spills,
    }


def _origins(lowered: Printed) -> Mapping[int, int]:
    """Line of the lowered program -> line of the scheduled one that it comes from."""
    origins: dict[int, int] = {}
    for stmt in collect(lowered.func.body, Stmt):
        line = lowered.lines.get(id(stmt))
        if line is not None and line_of(stmt):
            origins.setdefault(line, line_of(stmt))
    return origins


def links_of(origins: Mapping[int, int], codes: tuple[Located, Located, Located]) -> list[Link]:
    r"""The lines that belong together; a line of ``codes`` is in one link at most.

    Args:
        origins: line of the lowered program -> line of the scheduled one.
        codes: LLVM IR before and after optimisation, and assembly.

    >>> links_of({4: 2}, (Located("x", (4,)), Located("a", (4,)), Located("b\nc", (0, 4))))
    [(2, 4, 0, 0, 2), (2, 4, 0, 1, 0), (2, 4, 1, 0, 0)]
    """
    links: set[Link] = set()
    for place, code in enumerate(codes):
        for at, line in enumerate(code.lines, 1):
            if line:
                before, after, assembly = (at if place == other else 0 for other in range(3))
                links.add((origins.get(line, 0), line, before, after, assembly))
    present = {link[1] for link in links}
    links |= {(above, line, 0, 0, 0) for line, above in origins.items() if line not in present}
    return sorted(links)
