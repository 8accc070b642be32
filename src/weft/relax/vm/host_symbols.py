"""The symbols of a host function: the value of each, and which extents have to be compared.

A callee's symbols and those of a match_cast get their value where they stand alone; every other
extent must be equal to what is there. What is not equal as it is written becomes a ``ShapeCheck``
for the entry, with the error of the bytecode and the names that the function has there; inside of
a branch or of a function that calls itself, a comparison in the code.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence

from weft.ir.expr import PrimExpr, StringImm
from weft.ir.functor import substitute
from weft.ir.structural import structural_equal
from weft.relax.expr import Function
from weft.relax.ir.lattice import defining_vars, symbolic_vars
from weft.relax.struct_info import (
    PrimStructInfo,
    ShapeStructInfo,
    StructInfo,
    TensorStructInfo,
    TupleStructInfo,
)
from weft.relax.transform.memory.upper_bound import UpperBounds
from weft.relax.vm.extents import Symbols
from weft.relax.vm.host_parts import (
    HostValue,
    LocalFunction,
    NotNative,
    Shape,
    ShapeCheck,
    State,
    Step,
    packed_call,
)
from weft.support.dtype import DataType
from weft.tir import op
from weft.tir.buffer import Buffer
from weft.tir.expr import Var as TirVar
from weft.tir.stmt import IfThenElse, Stmt


class HostSymbols:
    """The symbols of one function in a host, those of the functions around it among them."""

    def __init__(
        self,
        function: Function,
        label: str,
        state: State,
        known: Mapping[TirVar, PrimExpr] | None = None,
    ) -> None:
        self.label, self.state = label, state
        self.known: dict[TirVar, PrimExpr] = dict(known or {})
        self.names = Symbols()
        for param in function.params:
            self.names.pattern(param.struct_info)

    def define(self, infos: Sequence[StructInfo | None]) -> None:
        """The symbols that parameters of the host define stand for themselves."""
        for info in infos:
            self.known.update({var: var for var in defining_vars(info)})

    def resolved(self, values: Iterable[PrimExpr]) -> list[PrimExpr]:
        """Expressions with each symbol replaced by its value over the symbols of the inputs."""
        return [substitute(value, self.known) for value in values]

    def called(self, local: LocalFunction, arguments: Sequence[HostValue]) -> HostSymbols:
        """The symbols of a callee: an extent ``n`` is bound to the argument's; all are compared."""
        function, label = local.function, local.label
        if UpperBounds(function).limits:
            raise NotNative(f"{label} has upper bounds of its own")
        inner = HostSymbols(function, label, self.state, local.known)
        for param in function.params:
            for var in defining_vars(param.struct_info):
                inner.known.pop(var, None)
        pairs = list(zip(function.params, arguments, strict=True))
        parts = [
            part
            for position, (param, argument) in enumerate(pairs)
            for part in _parts(
                param.struct_info, argument, f"{label}: argument {position} ({param.name_hint})"
            )
        ]
        for _, wanted, actual, _ in parts:
            inner.bind(wanted, actual)
        for kind, wanted, actual, what in parts:
            inner.compare(kind, wanted, actual, what, inner.known)
        return inner

    def match_cast(self, info: StructInfo | None, value: HostValue, what: str) -> None:
        """Compare a value with a struct info, which may define symbols."""
        before = dict(self.known)
        parts = _parts(info, value, f"{self.label}: {what}")
        for _, wanted, actual, _ in parts:
            self.bind(wanted, actual)
        if isinstance(info, TupleStructInfo):
            before = self.known
        for kind, wanted, actual, what in parts:
            self.compare(kind, wanted, actual, what, before)

    def bind(self, wanted: Sequence[PrimExpr], actual: Sequence[PrimExpr]) -> None:
        """Give symbols that stand alone their values."""
        for mine, its in zip(wanted, actual, strict=True):
            if isinstance(mine, TirVar):
                self.known.setdefault(mine, its)

    def compare(
        self,
        kind: str,
        wanted: list[PrimExpr],
        actual: list[PrimExpr],
        what: str,
        before: Mapping[TirVar, PrimExpr],
    ) -> None:
        """Compare extents: where they are not the same expressions, a check is added.

        ``before`` are the values of symbols that the check's error shows.
        """
        used = symbolic_vars(wanted)
        if any(var not in self.known for var in used):
            raise NotNative(f"{what}: an expression over a symbol without a value")
        resolved = self.resolved(wanted)
        pairs = zip(resolved, actual, strict=True)
        if all(structural_equal(mine, its) for mine, its in pairs):
            return
        if any(not var.dtype.is_int for var in used):
            raise NotNative(f"{what}: an expression that is no integer")
        written = {id(var) for var in used}
        shown = {var: value for var, value in before.items() if id(var) in written}
        check = ShapeCheck(kind, what, wanted, resolved, actual, shown, self.names)
        if self.state.is_late:
            self.state.steps.append(Step(_compared(check), []))
        else:
            self.state.checks.append(check)


def _compared(check: ShapeCheck) -> Stmt:
    """The statement that compares extents in the host; its error is that of the bytecode."""
    names = [check.names.name(var) for var in check.known]
    wanted = check.names.extents(check.wanted)
    text = StringImm(json.dumps([check.kind, wanted, check.what, names]))
    numbers = [op.cast("int64", value) for value in [*check.actual, *check.known.values()]]
    differs = op.const(False, "bool")
    for mine, its in zip(check.resolved, check.actual, strict=True):
        differ = op.not_equal(op.cast("int64", mine), op.cast("int64", its))
        differs = op.logical_or(differs, differ)
    return IfThenElse(differs, packed_call("vm.builtin.mismatch", [text, *numbers]))


Part = tuple[str, list[PrimExpr], list[PrimExpr], str]
"""What to compare: ``shape`` or ``prim``, wanted and actual extents, the place in an error."""


def _parts(info: StructInfo | None, value: HostValue, what: str) -> list[Part]:
    """The comparisons that a struct info asks for; NotNative where one always fails."""
    if isinstance(info, TensorStructInfo):
        return _tensor(info, value, what)
    if isinstance(info, ShapeStructInfo):
        if not isinstance(value, Shape):
            raise NotNative(f"{what}: no shape")
        rank = info.ndim if info.values is None else len(info.values)
        if rank not in (-1, len(value.values)):
            raise NotNative(f"{what}: a shape of another number of dimensions")
        return [] if info.values is None else [("shape", list(info.values), value.values, what)]
    if isinstance(info, PrimStructInfo):
        if not isinstance(value, PrimExpr) or value.dtype != info.dtype:
            raise NotNative(f"{what}: no number of type {info.dtype}")
        if info.value is None:
            return []
        if not DataType(info.dtype).is_int:
            raise NotNative(f"{what}: a number of type {info.dtype} that has a value")
        return [("prim", [info.value], [value], what)]
    if isinstance(info, TupleStructInfo):
        if not isinstance(value, list) or len(value) != len(info.fields):
            raise NotNative(f"{what}: no tuple of {len(info.fields)}")
        pairs = zip(info.fields, value, strict=True)
        return [
            part
            for index, (field, item) in enumerate(pairs)
            for part in _parts(field, item, f"{what}[{index}]")
        ]
    return []


def _tensor(info: TensorStructInfo, value: HostValue, what: str) -> list[Part]:
    if not isinstance(value, Buffer):
        raise NotNative(f"{what}: no tensor")
    if info.dtype not in (value.dtype, "void"):
        raise NotNative(f"{what}: {value.dtype} where {info.dtype} is expected always fails")
    wanted = None if info.shape is None else getattr(info.shape, "values", None)
    rank = info.ndim if wanted is None else len(wanted)
    if rank not in (-1, len(value.shape)):
        raise NotNative(f"{what}: another number of dimensions always fails")
    return [] if wanted is None else [("shape", list(wanted), list(value.shape), what)]
