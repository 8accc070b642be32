"""What the symbols of a model usually are: the user's size hints, and sizes of example inputs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress

from weft.driver.sources import Imported, Request
from weft.ir.functor import collect
from weft.ir.module import IRModule
from weft.relax.expr import Function
from weft.relax.ir.lattice import tensor_dims
from weft.support.errors import IRTypeError, IRValueError
from weft.tir.expr import Var
from weft.tir.size_hints import SIZE_HINTS


def checked_size_hints(hints: object) -> dict[str, int]:
    """The hints as a caller gave them; raises for other things than names with sizes from 1 on."""
    if hints is None:
        return {}
    example = "size_hints={'batch': 8}, the usual sizes of dynamic dimensions by their names"
    if not isinstance(hints, Mapping) or not all(isinstance(name, str) for name in hints):
        raise IRTypeError(f"compile: expected {example}; got {hints!r}"[:300])
    for name, size in hints.items():
        if not isinstance(size, int) or isinstance(size, bool) or not 0 < size < 1 << 31:
            raise IRValueError(
                f"compile: size_hints[{name!r}] must be an integer from 1 on, got {size!r}"[:300]
            )
    return dict(hints)


def with_size_hints(imported: Imported, request: Request) -> IRModule:
    """The imported module with what is known of its symbols' sizes as an attribute.

    Sizes of example inputs count where the user says nothing. Raises IRValueError for a hint about
    something that is no symbol of the model's inputs.
    """
    module = imported.module
    main = module.functions.get(module.get_global_var(imported.entry))
    symbols = _symbols(main) if isinstance(main, Function) else set()
    unknown = sorted(set(request.size_hints) - symbols)
    if unknown:
        known = f"the model has {', '.join(sorted(symbols))}" if symbols else "the model has none"
        raise IRValueError(
            f"compile: size_hints: no dynamic dimension is called {unknown[0]!r}; {known}"
        )
    sizes = dict(_sizes_of_examples(imported, request, main)) if symbols else {}
    hints = {name: size for name, size in sizes.items() if size > 0} | dict(request.size_hints)
    return module.with_attr(SIZE_HINTS, hints) if hints else module


def _symbols(function: Function) -> set[str]:
    """The names of the symbols in the shapes of a function's parameters."""
    return {var.name for param in function.params for var in collect(param.struct_info, Var)}


def _sizes_of_examples(
    imported: Imported, request: Request, main: object
) -> Iterator[tuple[str, int]]:
    """The symbols that are axes of example inputs by themselves, with their sizes there."""
    if not request.has_examples or not isinstance(main, Function):
        return
    examples: list[object] = []
    with suppress(IRTypeError):  # examples may be given for a part of the inputs
        examples = imported.signature.flatten(request.args, request.kwargs)
    for param, example in zip(main.params, examples, strict=False):
        dims, shape = tensor_dims(param.struct_info), getattr(example, "shape", ())
        for dim, size in zip(dims or (), shape, strict=False):
            if isinstance(dim, Var) and isinstance(size, int):
                yield dim.name, size
