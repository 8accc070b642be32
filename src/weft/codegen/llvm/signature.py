"""How a compiled PrimFunc is called: its FunctionSpec, for callers, and its LLVM parameters."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from weft.codegen.llvm.types import element_bytes, llvm_type
from weft.ir.expr import IntImm, PrimExpr, StringImm
from weft.ir.functor import collect
from weft.ir.op import Op
from weft.runtime.call.spec import FunctionSpec, ParamSpec
from weft.runtime.extent import FUNCTIONS, Extent
from weft.support.dtype import DataType
from weft.support.errors import CodegenError
from weft.support.free_name import free_name
from weft.tir import expr as e
from weft.tir.buffer import Buffer
from weft.tir.extent_text import extent_text
from weft.tir.function import PrimFunc
from weft.tir.implicit_symbols import implicit_symbols
from weft.tir.lowering.effects import effects_of, has_noalias, return_type

SYMBOL_PREFIX: Final = "weft__"
"""The start of every function's name in object code, so that none is taken for one of C."""


@dataclass(frozen=True)
class Signature:
    """How a function is called in LLVM.

    ``kinds`` are the LLVM types of the declared parameters, ``implicit`` the symbols that follow
    them as i64 (``n`` of an argument of shape ``(n,)``), ``ret`` the type of the result, which is
    stored through a last parameter.
    """

    operand: str
    kinds: tuple[str, ...]
    implicit: tuple[e.Var, ...]
    ret: DataType | None
    spec: FunctionSpec


def signature_of(func: PrimFunc, name: str) -> Signature:
    """Read the signature of a lowered PrimFunc."""
    names = _Names(func)
    effects = effects_of(func)
    noalias = has_noalias(func)
    params = []
    for param in func.params:
        buffer = func.buffer_map.get(param)
        if buffer is None:
            if param.dtype.is_handle:
                params.append(ParamSpec("handle", names.of(param)))
            else:
                params.append(ParamSpec("scalar", names.of(param), str(param.dtype)))
            continue
        key = id(buffer.data)
        output = True if key in effects.written else None if key in effects.unknown else False
        params.append(_buffer_param(buffer, names, output, noalias))
    kinds = tuple(
        "ptr" if p in func.buffer_map or p.dtype.is_handle else llvm_type(p.dtype)
        for p in func.params
    )
    ret = return_type(func, effects)
    spec = FunctionSpec(
        name,
        tuple(params),
        tuple(names.of(var) for var in names.implicit),
        None if ret is None else str(ret),
        _symbol(name),
        effects.calls_packed and _hands_out_memory(func),
    )
    return Signature("@" + _symbol(name), kinds, tuple(names.implicit), ret, spec)


def _symbol(name: str) -> str:
    """The name in object code; characters but for letters, digits, ``_`` and ``.`` as numbers.

    ``a-b`` → ``weft__a_u2d_b``, and what looks like that already has its underscore as a number.
    """
    name = re.sub(r"_(?=u[0-9a-f]+_)", "_u5f_", name)
    plain = [c if c.isascii() and (c.isalnum() or c in "_.") else f"_u{ord(c):x}_" for c in name]
    return SYMBOL_PREFIX + "".join(plain)


def _buffer_param(buffer: Buffer, names: _Names, output: bool | None, noalias: bool) -> ParamSpec:
    offset = buffer.elem_offset
    start = 0 if offset is None else names.extent(offset)
    return ParamSpec(
        "buffer",
        names.of(buffer.data, buffer.name),
        str(buffer.dtype),
        tuple(names.extent(extent) for extent in buffer.shape),
        tuple(names.extent(stride) for stride in buffer.strides) if buffer.strides else None,
        start,
        output,
        noalias,
    )


class _Names:
    """Names of a function's variables that Python takes too, no two alike.

    Callers' checks and messages use them.
    """

    def __init__(self, func: PrimFunc) -> None:
        self.name = func.attrs.get("global_symbol", "")
        self.taken: set[str] = set(FUNCTIONS)
        self.known: dict[int, str] = {}
        self.implicit = implicit_symbols(func)
        scalars = [p for p in func.params if p not in func.buffer_map]
        for param in scalars:
            self.of(param)
        self.scalars = {id(param) for param in scalars}

    def of(self, var: e.Var, wanted: str | None = None) -> str:
        """The name of a variable: ``wanted`` or its own, with a number if that is taken."""
        name = self.known.get(id(var))
        if name is None:
            stem = wanted or var.name
            clean = "".join([c if c.isalnum() and c.isascii() else "_" for c in stem]) or "v"
            if clean[0].isdigit() or not clean.isidentifier() or clean in _KEYWORDS:
                clean = f"v_{clean}"
            name = self.known[id(var)] = free_name(clean, self.taken)
        return name

    def extent(self, expr: PrimExpr | None) -> Extent:
        """An extent as callers see it: a number, or a text over names such as ``n * 4``."""
        if isinstance(expr, IntImm):
            return expr.value
        return self._text(expr)

    def _text(self, expr: PrimExpr | None) -> str:
        text = extent_text(expr, self.of, lambda var: id(var) in self.scalars)
        if text is None:
            raise CodegenError(
                f"{self.name}: expected integer arithmetic over symbols in a buffer's shape that "
                f"its caller can check, got {str(expr)[:200]}; compute that number before the call "
                "and pass it as a symbol of its own"
            )
        return text


_KEYWORDS: Final = frozenset(
    "and as assert async await break class continue def del elif else except finally for from "
    "global if import in is lambda nonlocal not or pass raise return try while with yield None "
    "True False".split()
)


def _hands_out_memory(func: PrimFunc) -> bool:
    """Whether a packed function that it calls is given a buffer or a pointer, which it may keep."""
    return any(
        not isinstance(arg, StringImm) and (isinstance(arg, Buffer) or arg.dtype.is_handle)
        for call in collect(func.body, e.Call)
        if isinstance(call.op, Op) and call.op.name.endswith("packed")
        for arg in call.args
    )


def parameter_texts(func: PrimFunc, signature: Signature) -> list[str]:
    """The LLVM parameters: ``%p0`` ... as declared, ``%s0`` ... the symbols, ``%out`` the place of
    the result.
    """
    noalias = has_noalias(func)
    texts = []
    for position, param in enumerate(func.params):
        kind = signature.kinds[position]
        buffer = func.buffer_map.get(param)
        extra = ""
        if buffer is not None:
            extra = " noalias" if noalias else ""
            nbytes = _constant_bytes(buffer)
            extra += f" dereferenceable({nbytes})" if nbytes > 0 else ""
        elif kind == "i1":
            extra = " zeroext"
        texts.append(f"{kind}{extra} %p{position}")
    texts += [f"i64 %s{position}" for position in range(len(signature.implicit))]
    if signature.ret is not None:
        texts.append("ptr %out")
    return texts


def _constant_bytes(buffer: Buffer) -> int:
    """How many bytes a compact buffer of constant shape has; 0 for any other."""
    if buffer.strides:
        return 0
    total = element_bytes(buffer.dtype) * buffer.dtype.lanes
    for extent in buffer.shape:
        if not isinstance(extent, IntImm):
            return 0
        total *= extent.value
    return total
