"""The builder and its frames: a stack that exists while one function or module is built.

A frame is entered by ``with``, or by ``enter_rest``; then it lasts until the frame around it ends
(``x = T.allocate(...)`` as a statement). When a frame is left, its node is built and added to the
frame around it; a frame that is left by an exception is dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Self, TypeVar

from weft.ir.global_info import GlobalInfo
from weft.ir.module import IRModule
from weft.support.errors import IRTypeError, IRValueError, UnsupportedError
from weft.support.scopes import Scopes
from weft.support.span import Span

V = TypeVar("V")
F = TypeVar("F", bound="IRBuilderFrame")


_OPEN: Final[Scopes[IRBuilder]] = Scopes("ir_builders")


class IRBuilder:
    """A stack of frames and, once the outermost one is left, its result."""

    def __init__(self) -> None:
        self.frames: list[IRBuilderFrame] = []
        self.result: object = None
        self.span: Span | None = None
        self.local_function: object = None
        self.global_infos: Mapping[str, Sequence[GlobalInfo]] = {}
        self.emitted: IRModule | None = None
        self.reserved: tuple[str, ...] = ()

    def __enter__(self) -> Self:
        _OPEN.push(self)
        return self

    def __exit__(self, *error: object) -> None:
        _OPEN.pop()

    @staticmethod
    def current() -> IRBuilder:
        """The innermost active builder."""
        builder = _OPEN.innermost
        if builder is None:
            raise IRValueError(
                "no IRBuilder is active: this belongs inside a script, or inside "
                "`with IRBuilder():`"
            )
        return builder

    @staticmethod
    def is_in_scope() -> bool:
        """Whether a builder is active in this thread."""
        return _OPEN.innermost is not None

    def get(self) -> Any:
        """The result of the outermost frame."""
        if self.result is None:
            raise IRValueError("the IRBuilder has no result: no outermost frame was completed")
        return self.result

    def finish(self, result: object) -> None:
        """What the outermost frame made; a builder makes one thing."""
        if self.result is not None:
            raise IRValueError(
                "the IRBuilder has a result already; use another builder, or I.ir_module() around "
                "several functions"
            )
        self.result = result

    def find(self, kind: type[F]) -> F | None:
        """The innermost frame of a class, or None."""
        for frame in reversed(self.frames):
            if isinstance(frame, kind):
                return frame
        return None

    def last(self, kind: type[F]) -> F | None:
        """The innermost frame if it is of that class, or None."""
        frame = self.frames[-1] if self.frames else None
        return frame if isinstance(frame, kind) else None

    @staticmethod
    def name(name: str, value: V) -> V:
        """Name a variable or buffer that was just created."""
        rename = getattr(value, "name_", None)
        if rename is not None:
            rename(name)
            return value
        for kind, function in NAMERS.items():
            if isinstance(value, kind):
                function(value, name)
                break
        return value

    @staticmethod
    def name_many(names: Sequence[str], values: Sequence[Any]) -> list[Any]:
        """``name`` for each of several values."""
        if len(names) != len(values):
            raise IRValueError(f"name_many: {len(names)} names for {len(values)} values")
        return [IRBuilder.name(name, value) for name, value in zip(names, values, strict=True)]


NAMERS: dict[type, Callable[[Any, str], None]] = {}
"""Class -> function that names a new object of it. An object that has a name keeps it."""


class IRBuilderFrame:
    """The base of frames. ``_enter`` returns what ``with`` gives, ``_exit`` builds the node."""

    def __init__(self) -> None:
        self.callbacks: list[Callable[[], None]] = []
        self.builder: IRBuilder | None = None
        self.span: Span | None = None

    def __enter__(self) -> Any:
        self.builder = IRBuilder.current()
        self.span = self.builder.span
        self.builder.frames.append(self)
        return self._enter()

    def __exit__(self, kind: object, *rest: object) -> None:
        assert self.builder is not None
        if kind is not None:
            while self.builder.frames.pop() is not self:
                pass
            return
        while self.callbacks:
            self.callbacks.pop()()
        frame = self.builder.frames.pop()
        if frame is not self:
            raise UnsupportedError("frames of an IRBuilder must be left in the order of entering")
        self._exit()

    def add_callback(self, callback: Callable[[], None]) -> None:
        """Call ``callback`` when the innermost active frame is left (TVM's signature)."""
        IRBuilder.current().frames[-1].callbacks.append(callback)

    def enter_rest(self) -> Any:
        """Enter until the frame around this one ends."""
        frames = IRBuilder.current().frames
        if not frames:
            raise IRValueError("this statement belongs inside a function")
        frames[-1].callbacks.append(lambda: self.__exit__(None))
        return self.__enter__()

    def _enter(self) -> Any:
        return self

    def _exit(self) -> None:
        raise NotImplementedError


def as_attributes(what: str, attrs: object) -> dict[str, object]:
    """Attributes by name; ``what`` takes them."""
    if not isinstance(attrs, Mapping) or not all(isinstance(name, str) for name in attrs):
        raise IRTypeError(f"{what}: expected a dict of values by name, got {attrs!r}")
    return dict(attrs)
