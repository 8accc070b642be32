"""Functions of code that this process cannot run: code for another system or processor.

They say how they are called, so that such code is compiled, saved and exported as any other is; the
code itself is never loaded.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

from weft.runtime.call.spec import FunctionSpec
from weft.runtime.native.native_library import NativeFunction
from weft.runtime.registry import PackedFunc
from weft.support.errors import ArtifactTargetError


class ForeignFunction(PackedFunc):
    """A compiled function that this process cannot run; ``obstacle`` says why, ``advice``
    where it can be run.
    """

    __slots__ = ("advice", "obstacle", "spec")

    def __init__(self, spec: FunctionSpec, obstacle: str, advice: str) -> None:
        super().__init__(self._refuse, spec.name)
        self.spec = spec
        self.obstacle, self.advice = obstacle, advice

    @property
    def address(self) -> int:
        """There is none: ArtifactTargetError says why."""
        self._refuse()

    def bind(self, *args: object) -> Callable[[], None]:
        """Nothing can be timed here: ArtifactTargetError says why."""
        self._refuse(*args)

    def _refuse(self, *args: object) -> NoReturn:
        del args
        raise ArtifactTargetError(f"{self.obstacle}: it cannot be called here; {self.advice}")


CompiledFunction = NativeFunction | ForeignFunction
"""A function of compiled code, whether this process can run it or not."""
