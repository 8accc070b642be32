"""PrimFunc: a function of loops over buffers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NoReturn, Self

from weft.ir.attrs import Attrs
from weft.ir.expr import FloatImm, IntImm, PrimExpr
from weft.ir.function import BaseFunc
from weft.ir.functor import rewrite, substitute
from weft.ir.node import Array, Map, Node, field, node
from weft.ir.type import TupleType, Type
from weft.support import slots
from weft.support.dtype import DataType
from weft.support.errors import IRTypeError, IRValueError, wrong_type
from weft.support.span import Span
from weft.tir import op
from weft.tir.buffer import Buffer
from weft.tir.expr import Var
from weft.tir.stmt import DeclBuffer, LetStmt, Stmt


@node
class PrimFunc(BaseFunc):
    """A function of loops over buffers.

    ``params`` are scalars and handles; ``buffer_map`` maps each handle to its buffer. The
    constructor also takes buffers among ``params`` and creates handles for them, as TVM does.
    """

    params: Array[Var] = field(defines=True)
    body: Stmt
    ret_type: Type | None = None
    buffer_map: Map[Var, Buffer] = field(default=None)
    attrs: Attrs = field(default=None)

    STRUCTURE = (
        ("params", True), ("buffer_map", True), ("ret_type", False), ("attrs", False),
        ("body", False),
    )  # fmt: skip

    def __init__(
        self,
        params: object,
        body: Stmt,
        ret_type: Type | None = None,
        buffer_map: Mapping[Var, Buffer] | None = None,
        attrs: Mapping[str, object] | None = None,
        span: Span | None = None,
    ) -> None:
        if not isinstance(params, Iterable) or not isinstance(body, Stmt):
            wrong = params if isinstance(body, Stmt) else body
            raise wrong_type(
                "PrimFunc: expected a list of parameters and a statement as its body", wrong
            )
        mapping: dict[Var, Buffer] = dict(buffer_map or {})
        handles = []
        for given in params:
            param = given
            if not isinstance(given, Node) and hasattr(given, "asobject"):
                param = given.asobject()  # a buffer of tir.ir_builder
            if isinstance(param, Buffer):
                handle = Var(f"{param.name}_handle", "handle")
                mapping[handle] = param
                handles.append(handle)
            elif isinstance(param, Var):
                handles.append(param)
            else:
                raise wrong_type("PrimFunc: a parameter must be a Var or a Buffer", param)
        if len({id(buffer) for buffer in mapping.values()}) != len(mapping):
            names = [buffer.name for buffer in mapping.values()]
            twice = next(name for name in names if names.count(name) > 1)
            raise IRValueError(
                f"PrimFunc: buffer {twice} stands for two parameters; declare one for each"
            )
        self.params, self.body = Array(handles), body
        self.ret_type = TupleType(()) if ret_type is None else ret_type
        if not isinstance(buffer_map, Map) or len(buffer_map) != len(mapping):
            buffer_map = Map(mapping)
        self.buffer_map = buffer_map
        self.attrs = attrs if isinstance(attrs, Attrs) else Attrs(dict(attrs or {}))
        self.provenance = None
        self.span, self._cache, self._summary = span, None, 0

    @property
    def struct_info(self) -> Any:
        """The FuncStructInfo of a graph's call of this function: its buffers are tensors.

        >>> from weft.script import tir as T
        >>> @T.prim_func
        ... def scale(a: T.Buffer((4,), "float32"), by: T.float32):
        ...     for i in range(4):
        ...         a[i] = a[i] * by
        >>> scale.struct_info
        R.Callable((R.Tensor((4,), dtype="float32"), R.Prim("float32")), R.Tuple, False)
        """
        return slots.prim_func_info.get()(self)

    def __call__(self, *arguments: object) -> NoReturn:
        """Raise an IRTypeError: a program is built before it is called."""
        name = str(self.attrs.get("global_symbol") or "main")
        raise IRTypeError(
            f"{name} is a program, not a Python function: build it, then call what that gives: "
            f'built = weft.build({name}, target="llvm"); built["{name}"](...)'
        )

    def with_body(self, new_body: Stmt, span: Span | None = None) -> Self:
        """The function with another body."""
        return self.with_(body=new_body)

    def specialize(self, param_map: Mapping[Var, object]) -> PrimFunc:
        """The function with some parameters fixed: scalars to numbers, handles to buffers.

        A pointer may become an expression: buffers in its memory are declared in that of a
        variable which holds it.

        Raises IRValueError when a buffer's rank or a constant extent does not match.
        """
        if not param_map:
            return self
        mapping: dict[object, object] = {}
        for param, value in param_map.items():
            if param not in self.params:
                raise IRValueError(f"specialize: {param.name} is not a parameter of the function")
            if isinstance(value, Buffer):
                mapping.update(_match_buffers(self.buffer_map[param], value))
            else:
                mapping[param] = _as_constant(value, param.dtype)
        kept = [param for param in self.params if param not in mapping]
        new_map = {var: substitute(buf, mapping) for var, buf in self.buffer_map.items()}
        mapping.update({old: new_map[var] for var, old in self.buffer_map.items()})
        body = substitute(_with_pointers(self.body, mapping), mapping)
        specialized = self.with_(params=Array(kept), body=body, buffer_map=Map(new_map))
        return rewrite(specialized, _folded)


def _with_pointers(body: Stmt, mapping: Mapping[object, object]) -> Stmt:
    """The body with a variable for each pointer in whose memory a buffer is declared."""

    def named(item: Node) -> Node | None:
        pointer = mapping.get(item.buffer.data) if isinstance(item, DeclBuffer) else None
        if not isinstance(item, DeclBuffer) or pointer is None or isinstance(pointer, Var):
            return None
        data = item.buffer.data
        variable = Var(data.name, data.type_annotation)
        buffer = item.buffer.with_(data=variable)
        inner = substitute(item.body, {item.buffer: buffer})
        return LetStmt(variable, pointer, DeclBuffer(buffer, inner))

    return rewrite(body, named)


def _folded(item: Node) -> Node | None:
    """The value of an operator whose operands became constants; None for anything else."""
    function = OPERATORS.get(item.KIND)
    if function is None:
        return None
    a, b = item.a, item.b  # type: ignore[attr-defined] # every kind of OPERATORS has both
    if not isinstance(a, (IntImm, FloatImm)) or not isinstance(b, (IntImm, FloatImm)):
        return None
    return function(a, b)


OPERATORS: Final[dict[str, Callable[[PrimExpr, PrimExpr], PrimExpr]]] = {
    "Add": op.add, "Sub": op.subtract, "Mul": op.multiply, "FloorDiv": op.floordiv,
    "FloorMod": op.floormod, "Div": op.truncdiv, "Mod": op.truncmod, "Min": op.minimum,
    "Max": op.maximum,
}  # fmt: skip


def _as_constant(value: object, dtype: DataType) -> object:
    if isinstance(value, PrimExpr):
        return value
    return IntImm(dtype, value) if dtype.is_integral else FloatImm(dtype, value)


def _match_buffers(old: Buffer, new: Buffer) -> dict[object, object]:
    if len(old.shape) != len(new.shape) or old.dtype != new.dtype:
        raise IRValueError(
            f"specialize: {old.name} is {old.dtype} of {len(old.shape)} dimensions, got "
            f"{new.dtype} of {len(new.shape)}"
        )
    mapping: dict[object, object] = {}
    pairs: list[tuple[object, object]] = list(zip(old.shape, new.shape, strict=True))
    if len(old.strides) == len(new.strides):
        pairs += list(zip(old.strides, new.strides, strict=True))
    pairs += [(old.elem_offset, new.elem_offset), (old.data, new.data)]
    for mine, its in pairs:
        if isinstance(mine, Var):
            mapping[mine] = its
        elif mine is not its and not bool(mine == its):
            raise IRValueError(f"specialize: {old.name} has an extent {mine}, got {its}")
    return mapping
