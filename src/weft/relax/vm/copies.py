"""Takes the copies between registers out of bytecode.

Before: ``%2 = call builtin identity(%1)``, then instructions that read ``%2``. After: they read
``%1``. Lowering writes such copies where a variable gets the value of another one, or of an output
that a kernel has filled. A copy stays if one of the two registers is written in several places, as
the result of an ``if`` is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Final

from weft.runtime.vm.bytecode import CALLS, Instruction, Operand

_IDENTITY: Final = ("builtin", "identity")


def without_copies(code: Sequence[Instruction], params: int) -> tuple[Instruction, ...]:
    """The code without copies that nothing needs; the first ``params`` registers are parameters.

    >>> copy = ("call", 1, ("builtin", "identity"), (("reg", 0),))
    >>> without_copies([copy, ("ret", ("reg", 1))], 1)
    (('ret', ('reg', 0)),)
    """
    writes = Counter(range(params))
    writes.update(instruction[1] for instruction in code if instruction[0] in CALLS)
    sources: dict[int, int] = {}
    kept = []
    for instruction in code:
        source = _source(instruction)
        is_needless = source is not None and writes[instruction[1]] == writes[source] == 1
        if source is not None and is_needless:
            sources[instruction[1]] = sources.get(source, source)
        kept.append(not is_needless)
    places = [0, *accumulate(kept)]
    return tuple(
        _moved(_renamed(instruction, sources), at, places)
        for at, instruction in enumerate(code)
        if kept[at]
    )


def _source(instruction: Instruction) -> int | None:
    """The register that an instruction copies; None for any other instruction."""
    if instruction[0] != "call" or instruction[2] != _IDENTITY or instruction[1] < 0:
        return None
    [operand] = instruction[3]
    return operand[1] if operand[0] == "reg" else None


def _moved(instruction: Instruction, at: int, places: Sequence[int]) -> Instruction:
    """A jump from the place ``at``, over as many instructions as are left of those between."""
    if instruction[0] not in ("if", "goto"):
        return instruction
    *rest, offset = instruction
    return (*rest, places[at + 1 + offset] - places[at + 1])


def _renamed(instruction: Instruction, sources: Mapping[int, int]) -> Instruction:
    """An instruction that reads the sources of copies instead of the copies."""
    opcode = instruction[0]
    if opcode in CALLS:
        _, target, (kind, name), operands = instruction
        callee = (kind, sources.get(name, name)) if kind == "register" else (kind, name)
        return (opcode, target, callee, tuple([_operand(item, sources) for item in operands]))
    if opcode == "match":
        return (opcode, sources.get(instruction[1], instruction[1]), *instruction[2:])
    if opcode == "goto":
        return instruction
    return (opcode, _operand(instruction[1], sources), *instruction[2:])


def _operand(operand: Operand, sources: Mapping[int, int]) -> Operand:
    kind, content = operand
    if kind == "reg":
        return (kind, sources.get(content, content))
    if kind == "tuple":
        return (kind, tuple([_operand(item, sources) for item in content]))
    return operand
