"""Effects: state that a method reads and leaves changed, handed from call to call.

An effect is an argument of each exported method and an item of its result. ``_initialize_effect``,
a function that the exporter adds, makes the first state of all effects of a module.
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.ir.expr import Extent
from weft.ir.node import expect
from weft.relax import op as relax_op
from weft.relax.block_builder import BlockBuilder
from weft.relax.expr import PrimValue, ShapeExpr, Var
from weft.relax.frontend.nn import checks
from weft.relax.frontend.nn.spec import is_size
from weft.relax.frontend.nn.tensor import (
    Tensor,
    current_builder,
    emit,
    get_default_dtype,
)
from weft.relax.struct_info import ObjectStructInfo, TensorStructInfo
from weft.support.errors import IRTypeError, IRValueError


class Effect:
    """The base of effects. The exporter calls its methods; users subclass it."""

    def emit_init(self, name_hint: str, builder: BlockBuilder) -> list[Var]:
        """Emit the first state into ``_initialize_effect``: its variables."""
        raise NotImplementedError(f"{type(self).__name__} has no emit_init")

    def create(self, name_hint: str) -> list[Var]:
        """The parameters that carry the state into a method."""
        raise NotImplementedError(f"{type(self).__name__} has no create")

    def set_state(self, state_vars: list[Var]) -> None:
        """Take the variables that hold the state from here on."""
        raise NotImplementedError(f"{type(self).__name__} has no set_state")

    def finalize(self) -> list[Var]:
        """The variables that hold the state at the end of a method."""
        raise NotImplementedError(f"{type(self).__name__} has no finalize")

    def to(self, dtype: str | None = None) -> None:
        """Change the data type; nothing, for most effects."""


class IOEffect(Effect):
    """The order of prints and debug calls: a token that passes through them."""

    def __init__(self) -> None:
        self.effect: Var | None = None

    def emit_init(self, name_hint: str, builder: BlockBuilder) -> list[Var]:
        return [builder.emit(relax_op.null_value(), f"{name_hint}.io")]

    def create(self, name_hint: str) -> list[Var]:
        if self.effect is not None:
            raise IRValueError("IOEffect: create was called twice without finalize")
        return [Var(f"{name_hint}.io", ObjectStructInfo())]

    def set_state(self, state_vars: list[Var]) -> None:
        (self.effect,) = state_vars

    def finalize(self) -> list[Var]:
        result, self.effect = expect(self.effect, Var), None
        return [result]


class KVCache(Effect):
    """Rows that calls add at the end and read: keys and values of earlier tokens.

    Args:
        init_seq_len: rows that there is memory for at first; it grows as needed.
        unit_shape: the shape of one row, as (heads, head_dim).
        dtype: the data type; the default one if None.
    """

    def __init__(
        self, init_seq_len: int, unit_shape: Sequence[int], dtype: str | None = None
    ) -> None:
        if not isinstance(unit_shape, Sequence) or not all(
            is_size(extent) for extent in (init_seq_len, *unit_shape)
        ):
            raise IRTypeError(
                "KVCache: expected a number of rows and the shape of one, as KVCache(16, (4, 32)), "
                f"got {init_seq_len!r:.40} and {unit_shape!r:.40}"
            )
        self.init_seq_len, self.unit_shape = int(init_seq_len), [int(size) for size in unit_shape]
        checks.dtype(dtype, "KVCache: dtype", self)
        self.dtype = dtype or get_default_dtype()
        self.cache: Var | None = None

    def emit_init(self, name_hint: str, builder: BlockBuilder) -> list[Var]:
        shape = ShapeExpr([self.init_seq_len, *self.unit_shape])
        cache = relax_op.call_pure_packed(
            "vm.builtin.attention_kv_cache_create",
            relax_op.zeros(shape, self.dtype),
            shape,
            PrimValue(0),
            sinfo_args=ObjectStructInfo(),
        )
        return [builder.emit(cache, name_hint)]

    def create(self, name_hint: str) -> list[Var]:
        return [Var(name_hint, ObjectStructInfo())]

    def set_state(self, state_vars: list[Var]) -> None:
        (self.cache,) = state_vars

    def finalize(self) -> list[Var]:
        result, self.cache = expect(self.cache, Var), None
        return [result]

    def to(self, dtype: str | None = None) -> None:
        """Change the data type of the cache's rows."""
        if dtype is not None:
            self.dtype = dtype

    def view(self, seq_len: Extent) -> Tensor:
        """The first ``seq_len`` rows: a tensor (seq_len, *unit_shape)."""
        shape = ShapeExpr([seq_len, *self.unit_shape])
        return emit(
            relax_op.call_pure_packed(
                "vm.builtin.attention_kv_cache_view",
                self._state("view"),
                shape,
                sinfo_args=TensorStructInfo(shape, self.dtype),
            ),
            "",
        )

    def append(self, new_element: Tensor) -> None:
        """Add rows at the end; IRTypeError where the data types differ."""
        if new_element.dtype != self.dtype:
            raise IRTypeError(
                f'KVCache has been set to use dtype "{self.dtype}", but got "{new_element.dtype}"'
            )
        self.cache = current_builder("KVCache.append").emit(
            relax_op.call_inplace_packed(
                "vm.builtin.attention_kv_cache_append",
                self._state("append"),
                new_element._expr,
                inplace_indices=[0],
                sinfo_args=ObjectStructInfo(),
            )
        )

    def _state(self, what: str) -> Var:
        if self.cache is None:
            raise IRValueError(
                f"KVCache.{what}: the cache has no state here; it has one while an exported method "
                "of its module runs"
            )
        return self.cache
