"""What a builder is: it compiles scheduled modules into files that a runner can load."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from weft.ir.module import IRModule
from weft.meta_schedule.kinds import class_of_kind
from weft.meta_schedule.protocols import Part
from weft.runtime.ndarray import NDArray
from weft.support.errors import UnsupportedError
from weft.target import Target

_KINDS: Final = {
    "local": "weft.meta_schedule.builder.local_builder:LocalBuilder",
    "ray": "weft.meta_schedule.builder.ray_builder:RayBuilder",
}


class BuilderInput(NamedTuple):
    """A scheduled module, and the target to compile it for."""

    mod: IRModule
    target: Target
    params: Mapping[str, NDArray] | None = None


class BuilderResult(NamedTuple):
    """The file of a compiled module, or why there is none."""

    artifact_path: str | None
    error_msg: str | None


class Builder(Part):
    """Compiles modules. A class of the user derives from it (``PyBuilder``) and overrides build."""

    @abstractmethod
    def build(self, build_inputs: Sequence[BuilderInput]) -> list[BuilderResult]:
        """Compile each module; a failure is a result, not an error."""
        raise UnsupportedError(f"{type(self).__name__}.build: override it in a class of your own")

    @staticmethod
    def create(kind: str = "local", *args: Any, **kwargs: Any) -> Builder:
        """A builder of a kind: "local", or "ray" for the machines of a cluster."""
        if kind == "ray":
            kwargs.pop("max_workers", None)  # a machine has as many as it has processors
        return class_of_kind(Builder, _KINDS, kind)(*args, **kwargs)


create = Builder.create
PyBuilder: TypeAlias = Builder
"""TVM's name of the class that users derive from."""
