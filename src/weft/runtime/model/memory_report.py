"""What memory a compiled model uses: working memory of a call, constants, outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from weft.runtime.extent import evaluate
from weft.runtime.memory.plan import plan_offsets
from weft.runtime.ndarray import storage_dtype
from weft.runtime.vm.bytecode import NativeEntry, Program, VMFunction
from weft.runtime.vm.patterns import bind
from weft.runtime.weight_names import weight_label
from weft.support.errors import IRValueError


@dataclass(frozen=True)
class MemoryReport:
    """Bytes. None: not known without inputs (sizes have symbols without a limit).

    ``arena`` is the working memory of one call; ``constants`` are shared by all calls; ``outputs``
    are fresh at each call. ``bound`` tells that symbols were taken at their upper limits.
    ``weights`` are the constants by themselves, the largest first: name with type and shape, bytes.
    """

    arena: int | None
    constants: int
    outputs: int | None
    bound: bool = False
    weights: tuple[tuple[str, int], ...] = ()

    @property
    def total(self) -> int | None:
        """The sum, where all parts are known."""
        if self.arena is None or self.outputs is None:
            return None
        return self.arena + self.constants + self.outputs

    def __str__(self) -> str:
        limit = " (at most)" if self.bound else ""
        return "\n".join(
            [
                f"arena     {_shown(self.arena)}{limit}",
                f"constants {_shown(self.constants)}",
                f"outputs   {_shown(self.outputs)}{limit}",
            ]
        )


def _shown(size: int | None) -> str:
    return "depends on the inputs" if size is None else f"{size:,} bytes"


def report_memory(
    program: Program, name: str, limits: Mapping[str, int | None], values: Sequence[object] | None
) -> MemoryReport:
    """The memory of one function: for the given inputs, else static or from the limits."""
    function = program.functions[name]
    sizes = [constant._array.nbytes for constant in program.constants]
    labels = [weight_label(constant, at) for at, constant in enumerate(program.constants)]
    weights = tuple(sorted(zip(labels, sizes, strict=True), key=lambda weight: -weight[1]))
    constants = sum(sizes)
    entry = function.native
    if entry is None:
        return MemoryReport(None, constants, None, weights=weights)
    symbols = _symbols(function, entry, limits, values)
    arena, outputs = _arena(entry, symbols), _outputs(entry, symbols)
    has_symbols = entry.planned is not None or any(
        isinstance(extent, str) for _, shape in entry.outputs for extent in shape
    )
    bound = values is None and (has_symbols or bool(entry.limits))
    is_bound = bound and None not in (arena, outputs)
    return MemoryReport(arena, constants, outputs, is_bound, weights)


def _symbols(
    function: VMFunction,
    entry: NativeEntry,
    limits: Mapping[str, int | None],
    values: Sequence[object] | None,
) -> dict[str, int]:
    symbols: dict[str, int] = {}
    if values is None:
        symbols.update({key: high for key, high in limits.items() if high is not None})
        symbols.update(entry.limits)
        return symbols
    for value, (_, pattern) in zip(values, function.params, strict=True):
        bind(value, pattern, symbols)
    leaves = _flat(values)
    for value, param in zip(leaves, entry.spec.params, strict=False):
        for extent, size in zip(param.shape, getattr(value, "shape", ()), strict=False):
            if isinstance(extent, str) and extent.isidentifier():
                symbols.setdefault(extent, int(size))
        if param.kind == "scalar" and isinstance(value, int):
            symbols.setdefault(param.name, value)
    return symbols


def _flat(values: Sequence[object]) -> list[object]:
    leaves: list[object] = []
    for value in values:
        leaves.extend(_flat(value) if isinstance(value, tuple) else [value])
    return leaves


def _arena(entry: NativeEntry, symbols: dict[str, int]) -> int | None:
    if entry.planned is None:
        return entry.arena
    try:
        sizes = [evaluate(size, symbols) for size in entry.planned.sizes]
    except IRValueError:
        return None
    return plan_offsets(sizes, entry.planned.lives)[1]


def _outputs(entry: NativeEntry, symbols: dict[str, int]) -> int | None:
    total = 0
    for dtype, shape in entry.outputs:
        size = storage_dtype(dtype).itemsize
        try:
            for extent in shape:
                size *= evaluate(extent, symbols)
        except IRValueError:
            return None
        total += size
    return total
