"""What a builder is: it compiles scheduled modules into files that a runner can load."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from weft.ir.module import IRModule
from weft.meta_schedule.protocols import Part
from weft.runtime.ndarray import NDArray
from weft.target import Target


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
    """Compiles modules."""

    @abstractmethod
    def build(self, build_inputs: Sequence[BuilderInput]) -> list[BuilderResult]:
        """Compile each module; a failure is a result, not an error."""


PyBuilder = Builder
"""TVM's name of the class that users derive from."""
