"""IRBuilder: builds statements imperatively; each call adds a loop, a branch or a store.

The bodies of ``te.extern``, and topi's sort and scan, are written so::

    ib = create()
    out = ib.buffer_ptr(buffer)
    with ib.for_range(0, n, "i") as i:
        with ib.if_scope(i > 0):
            out[i] = out[i - 1] + 1
    stmt = ib.get()
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Final, NoReturn

from weft.ir.expr import ExprLike, IntImm, PrimExpr, as_prim_expr
from weft.ir.type import PointerType, PrimType
from weft.support.dtype import DataType
from weft.support.errors import IRTypeError, IRValueError, wrong_type
from weft.tir import op
from weft.tir.buffer import Buffer, BufferLoad, decl_buffer
from weft.tir.expr import IterType, IterVar, Var
from weft.tir.stmt import (
    Allocate,
    AttrStmt,
    BufferStore,
    DeclBuffer,
    Evaluate,
    For,
    ForKind,
    IfThenElse,
    LetStmt,
    Stmt,
    While,
    seq,
)

KINDS: Final = {
    "serial": ForKind.SERIAL, "parallel": ForKind.PARALLEL, "vectorize": ForKind.VECTORIZED,
    "vectorized": ForKind.VECTORIZED, "unroll": ForKind.UNROLLED, "unrolled": ForKind.UNROLLED,
}  # fmt: skip

Wrap = Callable[[Stmt], Stmt]


class WithScope:
    """A scope for ``with``; ``as`` binds the variable that the scope defines, such as a loop's."""

    def __init__(self, value: object, on_exit: Callable[[], None]) -> None:
        self._value = value
        self._on_exit = on_exit

    def __enter__(self) -> Any:
        return self._value

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            self._on_exit()


class BufferVar:
    """A buffer whose elements are read by ``b[i]`` and written by ``b[i] = value``.

    One index on a buffer of several dimensions counts elements in row-major order.
    """

    def __init__(self, builder: IRBuilder, buffer: Buffer, content_type: str) -> None:
        self._builder = builder
        self._buffer = buffer
        self._content_type = DataType(content_type)

    @property
    def dtype(self) -> DataType:
        """The type of the elements."""
        return self._content_type

    @property
    def buffer(self) -> Buffer:
        """The buffer itself."""
        return self._buffer

    def asobject(self) -> Buffer:
        """The buffer itself, as a parameter of a PrimFunc."""
        return self._buffer

    def __getitem__(self, index: object) -> BufferLoad:
        return BufferLoad(self._buffer, self._indices(index))

    def __iter__(self) -> NoReturn:
        raise IRTypeError(f"a buffer is not iterable; read {self._buffer.name} by index")

    def __setitem__(self, index: ExprLike | tuple[ExprLike, ...], value: ExprLike) -> None:
        if isinstance(value, (bool, int, float)):
            value = op.const(value, self._content_type.element)
        expr = as_prim_expr(value)
        if expr.dtype.element is not self._content_type.element:
            raise IRTypeError(
                f"{self._buffer.name} holds {self._content_type}, the value is {expr.dtype}; "
                "cast it with astype"
            )
        self._builder.emit(BufferStore(self._buffer, expr, self._indices(index)))

    def _indices(self, index: object) -> list[PrimExpr]:
        given = index if isinstance(index, (tuple, list)) else (index,)
        indices = [as_prim_expr(item) for item in given]
        shape = self._buffer.shape
        if len(indices) == 1 and len(shape) > 1:
            rest = indices[0]
            indices = []
            for extent in reversed(shape[1:]):
                if op.is_const_int(extent, 0):
                    extent = IntImm(extent.dtype, 1)  # the code never runs; avoid a division by 0
                indices.append(op.floormod(rest, extent))
                rest = op.floordiv(rest, extent)
            indices = [rest, *reversed(indices)]
        if not shape and len(indices) == 1 and op.is_const_int(indices[0], 0):
            return []
        return indices


class IRBuilder:
    """Collects statements; scopes nest them."""

    def __init__(self) -> None:
        self._sequences: list[list[Stmt | Wrap]] = [[]]
        self._unnamed = 0

    def _loop_name(self, name: str) -> str:
        """The default name ``i`` becomes the next of i, j, k, i_0, i_1, ...; others stay."""
        if name != "i":
            return name
        number, self._unnamed = self._unnamed, self._unnamed + 1
        return "ijk"[number] if number < 3 else f"i_{number - 3}"

    def _close(self) -> Stmt:
        """Leave the innermost scope, and return its statements as one."""
        body: list[Stmt] = []
        for item in reversed(self._sequences.pop()):
            if isinstance(item, Stmt):
                body.insert(0, item)
            else:
                body = [item(seq(*body))]
        return seq(*body)

    def emit(self, stmt: object) -> None:
        """Add a statement, an expression to evaluate, or a function that wraps what follows."""
        if isinstance(stmt, PrimExpr):
            stmt = Evaluate(stmt)
        if not isinstance(stmt, Stmt) and not callable(stmt):
            raise wrong_type("emit: expected a statement", stmt)
        self._sequences[-1].append(stmt)

    def scope_attr(self, node: object, attr_key: str, value: ExprLike) -> None:
        """Wrap the rest of this scope in an attribute.

        A ``thread_extent`` is raised to at least 1, since an extent of a dynamic shape may be 0.
        """
        owner = as_prim_expr(node) if isinstance(node, (str, int)) else node
        if isinstance(node, BufferVar):
            owner = node.buffer
        setting = as_prim_expr(value)
        if attr_key == "thread_extent":
            setting = op.max(1, setting)
        self.emit(lambda body: AttrStmt(owner, attr_key, setting, body))

    def for_range(
        self,
        begin: ExprLike,
        end: ExprLike,
        name: str = "i",
        dtype: str | None = None,
        kind: str = "serial",
        annotations: Mapping[str, object] | None = None,
    ) -> WithScope:
        """A loop over [begin, end); the scope's value is the loop variable.

        Loops without a name are called i, j, k, i_0, i_1 and so on.
        """
        if kind not in KINDS:
            raise IRValueError(f"for_range: expected one of {', '.join(KINDS)}, got {kind!r}")
        low, high = op.match_types(begin, end)
        if dtype is not None:
            low, high = op.cast(dtype, low), op.cast(dtype, high)
        variable = Var(self._loop_name(name), low.dtype)
        extent = high if op.is_const_int(low, 0) else op.subtract(high, low)
        self._sequences.append([])

        def close() -> None:
            marks = dict(annotations or {})
            self.emit(For(variable, low, extent, KINDS[kind], self._close(), annotations=marks))

        return WithScope(variable, close)

    def while_loop(self, condition: ExprLike) -> WithScope:
        """Repeat while the condition holds."""
        self._sequences.append([])
        return WithScope(None, lambda: self.emit(While(as_prim_expr(condition), self._close())))

    def if_scope(self, cond: ExprLike) -> WithScope:
        """A scope that runs if the condition holds."""
        self._sequences.append([])
        test = as_prim_expr(cond)
        return WithScope(None, lambda: self.emit(IfThenElse(test, self._close())))

    def else_scope(self) -> WithScope:
        """A scope that runs if the condition of the if_scope directly before it does not hold."""
        last = self._sequences[-1][-1] if self._sequences[-1] else None
        if not isinstance(last, IfThenElse) or last.else_case is not None:
            raise IRValueError("else_scope: it must follow an if_scope")
        self._sequences[-1].pop()
        self._sequences.append([])
        return WithScope(
            None, lambda: self.emit(IfThenElse(last.condition, last.then_case, self._close()))
        )

    def new_scope(self) -> WithScope:
        """A scope of its own: allocations and attributes end with it."""
        self._sequences.append([])
        return WithScope(None, lambda: self.emit(self._close()))

    def let(self, var_name: str, value: ExprLike) -> Var:
        """A variable bound to ``value`` for the rest of this scope."""
        expr = as_prim_expr(value)
        variable = Var(var_name, expr.dtype)
        self.emit(lambda body: LetStmt(variable, expr, body))
        return variable

    def allocate(
        self,
        dtype: str,
        shape: ExprLike | Sequence[ExprLike],
        name: str = "buf",
        axis_separators: Sequence[int] | None = None,
        scope: str = "",
    ) -> BufferVar:
        """Memory of ``shape`` elements for the rest of this scope."""
        extents = list(shape) if isinstance(shape, (list, tuple)) else [shape]
        element = DataType(dtype)
        data = Var(name, PointerType(PrimType(element), scope or "global"))
        buffer = decl_buffer(
            extents, element, name, data, scope=scope, axis_separators=axis_separators
        )
        always = IntImm(DataType("bool"), 1)

        def wrap(body: Stmt) -> Stmt:
            return Allocate(data, element, buffer.shape, always, DeclBuffer(buffer, body))

        self.emit(wrap)
        return BufferVar(self, buffer, element)

    def pointer(self, content_type: str, name: str = "ptr", scope: str = "") -> BufferVar:
        """A buffer over memory that is passed in as the variable ``name``."""
        return BufferVar(self, decl_buffer([1], content_type, name, scope=scope), content_type)

    def buffer_ptr(self, buf: Buffer, shape: object = None) -> BufferVar:
        """Access to a buffer by index; ``shape`` views it with another shape."""
        if shape is not None:
            buf = decl_buffer(shape, buf.dtype, buf.name, buf.data, scope=buf.scope())
        return BufferVar(self, buf, buf.dtype)

    def likely(self, expr: ExprLike) -> PrimExpr:
        """The condition, marked as mostly true."""
        return op.likely(expr)

    def thread_axis(self, dom: object, tag: str, name: str = "") -> IterVar:
        """An axis for ``scope_attr(axis, "thread_extent", n)``."""
        return IterVar(dom, Var(name or tag, "int32"), IterType.ThreadIndex, tag)

    def get(self) -> Stmt:
        """The statement built; every scope must have ended."""
        if len(self._sequences) != 1:
            raise IRValueError(f"get: {len(self._sequences) - 1} scopes are still open")
        result = self._close()
        self._sequences = [[]]
        return result


def create() -> IRBuilder:
    """A new builder."""
    return IRBuilder()
