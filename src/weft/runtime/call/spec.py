"""FunctionSpec: how a compiled function is called. The contract of codegen with the runtime.

Codegen writes one for each function it emits; the runtime generates the checked Python wrapper from
it (``weft.runtime.call.wrapper``). Specs are plain data and go to JSON and back, since compile
workers and artefacts carry them. The native calling convention itself stands in
``weft.runtime.call.abi``.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from weft.runtime.extent import Extent, names_in
from weft.support.errors import IRValueError


@dataclass(frozen=True)
class ParamSpec:
    """One declared parameter.

    ``shape`` is for buffers. A bare name that no earlier parameter mentions is *bound* from the
    argument; every other entry is computed and compared. A scalar parameter binds its own name.
    ``strides`` (in elements) likewise; ``None`` demands compact row-major data. ``elem_offset`` is
    0 or a name, which is bound to 0. ``is_output``: whether the function writes the buffer
    (``None``: not known). ``noalias``: the function is compiled on the promise that no other
    argument overlaps what it writes here.
    """

    kind: Literal["buffer", "scalar", "handle"]
    name: str
    dtype: str = "handle"
    shape: tuple[Extent, ...] = ()
    strides: tuple[Extent, ...] | None = None
    elem_offset: Extent = 0
    is_output: bool | None = None
    noalias: bool = False

    def __post_init__(self) -> None:
        """Check what a wrong code generator would get wrong."""
        if self.kind not in ("buffer", "scalar", "handle"):
            raise IRValueError(f"expected kind buffer, scalar or handle, got {self.kind!r}")
        if self.strides is not None and len(self.strides) != len(self.shape):
            raise IRValueError(
                f"parameter {self.name}: expected {len(self.shape)} strides for shape "
                f"{self.shape}, got {len(self.strides)}"
            )


@dataclass(frozen=True)
class FunctionSpec:
    """The signature of one compiled function.

    ``implicit`` names the symbols that are passed as i64 after the declared parameters; each must
    be bound by a shape, a stride, an element offset or a scalar. ``ret`` is the data type of the
    returned scalar. ``symbol`` is the name in the object code when it is not ``name``.
    ``calls_packed`` tells that the code may hand memory to Python functions that it calls back,
    ``launches`` that it runs parts of a loop on other threads.
    """

    name: str
    params: tuple[ParamSpec, ...] = ()
    implicit: tuple[str, ...] = ()
    ret: str | None = None
    symbol: str | None = None
    calls_packed: bool = False
    launches: bool = False

    def __post_init__(self) -> None:
        """Check that every symbol that is used is bound by some parameter."""
        unbound = self._used_names() - self.bound_names()
        if unbound:
            raise IRValueError(
                f"{self.name}: expected every symbol to be bound by a bare entry of a shape or by "
                f"a scalar parameter, found no binding for {', '.join(sorted(unbound))}"
            )

    @property
    def native_symbol(self) -> str:
        """The name of the function in the object code."""
        return self.symbol or self.name

    def bound_names(self) -> set[str]:
        """All names that a call binds: bare names of shapes, strides, offsets, and scalars."""
        names = {param.name for param in self.params if param.kind == "scalar"}
        for param in self.params:
            for entry in (*param.shape, *(param.strides or ()), param.elem_offset):
                if isinstance(entry, str) and entry.isidentifier():
                    names.add(entry)
        return names

    def _used_names(self) -> set[str]:
        used = set(self.implicit)
        for param in self.params:
            for entry in (*param.shape, *(param.strides or ()), param.elem_offset):
                if isinstance(entry, str):
                    used |= names_in(entry)
        return used

    def to_json(self) -> dict[str, object]:
        """A dictionary of lists, strings, numbers, booleans and None."""
        return asdict(self)

    @staticmethod
    def from_json(data: dict[str, Any]) -> FunctionSpec:
        """The spec that ``to_json`` made, also after a trip through JSON text."""
        params = tuple(
            ParamSpec(
                **{
                    **item,
                    "shape": tuple(item["shape"]),
                    "strides": None if item["strides"] is None else tuple(item["strides"]),
                }
            )
            for item in data["params"]
        )
        return FunctionSpec(**{**data, "params": params, "implicit": tuple(data["implicit"])})
