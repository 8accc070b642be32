"""``TensorIntrin``: the meaning of a machine instruction, and the code that calls it.

``desc`` computes the result with plain loops, ``impl`` with instructions. ``tensorize`` matches
``desc`` in a program and replaces it by ``impl``. Both take the same buffers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from weft.ir.node import Node, node
from weft.support.errors import IRValueError, wrong_type
from weft.support.registration import refuse_second
from weft.tir.function import PrimFunc
from weft.tir.stmt import BlockRealize

Maker = Callable[[], tuple[PrimFunc, PrimFunc]]


@node
class TensorIntrin(Node):
    """A description and an implementation of the same computation.

    Source: TVM's ``tir.TensorIntrin`` (Feng et al., "TensorIR", ASPLOS 2023, section 4.1).
    """

    desc: PrimFunc
    impl: PrimFunc

    REGISTRY: ClassVar[dict[str, TensorIntrin | Maker]] = {}
    """Name -> the intrinsic, or the function that creates it at its first use."""

    def _check_(self) -> None:
        for part, func in (("desc", self.desc), ("impl", self.impl)):
            if not isinstance(func, PrimFunc):
                raise wrong_type(f"TensorIntrin: {part}: expected a PrimFunc", func)
            for param in func.params:
                if param not in func.buffer_map:
                    raise IRValueError(
                        f"TensorIntrin: parameter {param.name} of the {part} is no buffer; a "
                        "tensor intrinsic takes buffers only"
                    )
            if not isinstance(func.body, BlockRealize):
                raise IRValueError(
                    f"TensorIntrin: the body of the {part} is a {type(func.body).__name__}, "
                    'expected one block: with T.block("root")'
                )
        if len(self.desc.params) != len(self.impl.params):
            raise IRValueError(
                f"TensorIntrin: the desc has {len(self.desc.params)} parameters, the impl "
                f"{len(self.impl.params)}; they must be the same buffers"
            )

    @staticmethod
    def register(name: str, desc: PrimFunc, impl: PrimFunc, override: bool = False) -> None:
        """Register an intrinsic under a name; ``override`` allows to replace an existing one."""
        TensorIntrin._enter(name, TensorIntrin(desc, impl), override)

    @staticmethod
    def register_maker(name: str, maker: Maker, override: bool = False) -> None:
        """As ``register``; ``maker`` returns desc and impl when the intrinsic is first used."""
        TensorIntrin._enter(name, maker, override)

    @staticmethod
    def _enter(name: str, entry: TensorIntrin | Maker, override: bool) -> None:
        refuse_second("the tensor intrinsic", name, name in TensorIntrin.REGISTRY, override)
        TensorIntrin.REGISTRY[name] = entry

    @staticmethod
    def get(name: str, allow_missing: bool = False) -> TensorIntrin | None:
        """The intrinsic of that name; None if there is none and that is allowed."""
        intrin = TensorIntrin.REGISTRY.get(name)
        if intrin is not None and not isinstance(intrin, TensorIntrin):
            intrin = TensorIntrin.REGISTRY[name] = TensorIntrin(*intrin())
        if intrin is None and not allow_missing:
            names = ", ".join(sorted(TensorIntrin.REGISTRY)[:8]) or "none"
            raise IRValueError(
                f"TensorIntrin {name!r} is not registered; there are {names}. "
                "Those that come with weft are known after: import weft.tensor_intrin"
            )
        return intrin
