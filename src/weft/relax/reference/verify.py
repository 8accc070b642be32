"""``VerifyGraphs`` checks after every pass that graphs and PrimFuncs compute the same as before.

The instrument behind ``PassContext(verify=True)``. Each graph function runs in the interpreter on
random arguments, drawn from the struct info of its parameters, before and after a pass. The error
names the first pass that changes a result, the function, and the first binding whose value differs
from that of the binding with the same name before. PrimFuncs are compared as in ``VerifyResults``.

A function is not compared if it has side effects, calls functions from outside of the module, takes
functions or objects, or raises an error on the arguments; if a pass changes its parameters; if it
calls a PrimFunc that is too large for the interpreter and cannot be compiled as it is
(weft.tir.interp.limited); or if an operator has no numpy reference, for which a VerifyWarning is
issued once an operator. ``left_out`` says which functions and why, ``no_reference`` lists these
operators (``relax.register_reference`` adds a reference).
"""

from __future__ import annotations

import warnings
import zlib
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from weft.ir.functor import collect
from weft.ir.module import IRModule
from weft.ir.op import Op
from weft.ir.transform import PassInfo
from weft.relax.analysis.types import type_problem
from weft.relax.expr import Binding, Call, Function
from weft.relax.op.reference.rule import is_float
from weft.relax.reference.forms import FORMS
from weft.relax.reference.frame import Frame, Value
from weft.relax.reference.interpreter import ClosedError, Interpreter, NoReferenceError
from weft.relax.reference.operators import reference_of
from weft.relax.struct_info import (
    PrimStructInfo,
    ShapeStructInfo,
    StructInfo,
    TensorStructInfo,
    TupleStructInfo,
)
from weft.relax.transform.memory.upper_bound import UpperBounds
from weft.runtime.native.object_code import obstacle_of
from weft.runtime.ndarray import NDArray, array
from weft.runtime.vm.executable import Executable
from weft.runtime.vm.virtual_machine import VirtualMachine
from weft.support import slots
from weft.support.dtype import DataType
from weft.support.errors import TVMError, UnsupportedError, VerifyError
from weft.support.recursion import deep_recursion
from weft.tir.expr import Var as SizeVar
from weft.tir.interp.arguments import random_values
from weft.tir.interp.code_check import TOLERANCE
from weft.tir.interp.limited import TooMuchWorkError, VerifyWarning
from weft.tir.interp.verify import VerifyResults


class Outcome:
    """One run of a function: its arguments, its result or error, and each binding's value."""

    __slots__ = ("arguments", "error", "result", "steps")

    def __init__(self, arguments: list[Value]) -> None:
        self.arguments = arguments
        self.result: Value = None
        self.error: TVMError | None = None
        self.steps: list[tuple[Binding, Value]] = []


@dataclass(frozen=True)
class Verification:
    """What ``verify=True`` did not compare, and how it compared native code.

    Args:
        no_reference: operators that have no numpy reference.
        left_out: function -> why it was not compared for some pass.
        code: function -> how its native code was compared; ``not: reason`` if it was not.
    """

    no_reference: tuple[str, ...]
    left_out: Mapping[str, str]
    code: Mapping[str, str]


class VerifyGraphs(VerifyResults):
    """Compares the results of graph functions and of PrimFuncs before and after each pass.

    Args:
        seed: the seed of the random arguments.
        size: the value of every symbolic extent.
        rtol: the relative tolerance for floats of PrimFuncs; for graphs it is ``TOLERANCE``.
    """

    def __init__(self, seed: int = 0, size: int = 5, rtol: float = 1e-5) -> None:
        super().__init__(seed, size, rtol)
        self.left_out: dict[str, str] = {}
        self.no_reference: set[str] = set()
        self._graphs: list[tuple[IRModule, Mapping[str, Outcome]]] = []
        self._latest: tuple[IRModule | None, Mapping[str, Outcome]] = (None, {})

    def enter_pass_ctx(self) -> None:
        """Start afresh."""
        super().enter_pass_ctx()
        self.left_out.clear()
        self.no_reference.clear()
        self._graphs.clear()
        self._latest = (None, {})

    def verification(self) -> Verification:
        """What was compared since the context began."""
        return Verification(tuple(sorted(self.no_reference)), dict(self.left_out), dict(self.code))

    def run_before_pass(self, mod: IRModule, info: PassInfo) -> None:
        """Compute every function's result."""
        super().run_before_pass(mod, info)
        self._graphs.append((mod, self._outcomes(mod)))

    @deep_recursion
    def run_after_pass(self, mod: IRModule, info: PassInfo) -> None:
        """Compute every function's result again and compare."""
        given, before = self._graphs.pop()
        super().run_after_pass(mod, info)
        problem = None if mod is given else type_problem(mod, reinfer=True)
        if problem is not None and type_problem(given, reinfer=True) is None:
            raise VerifyError(f"pass {info.name} leaves types that disagree: {problem}")
        after = self._outcomes(mod)
        for name, new in after.items():
            old = before.get(name)
            if old is None or new is old or self._is_left_out(name, old, new):
                continue
            difference = _fault(new) or _difference(old.result, new.result)
            if difference:
                self.blame_code()
                raise VerifyError(
                    f"pass {info.name} changes what {name} computes: {difference}"
                    f"{_first_step(old, new)} (arguments of seed {self.seed}, symbolic extents "
                    f"{self.size})"
                ) from new.error

    @deep_recursion
    def run_after_build(self, mod: IRModule, executable: Executable) -> None:
        """Compare the virtual machine's result for each graph function with the interpreter's."""
        obstacle = "" if executable.code is None else obstacle_of(executable.code)
        if obstacle:
            self.left_out.update(dict.fromkeys(self._outcomes(mod), obstacle))
            return
        machine = VirtualMachine(executable)
        for name, outcome in self._outcomes(mod).items():
            if outcome.error is not None or not _is_of_arrays(outcome.arguments):
                self.left_out.setdefault(name, str(outcome.error or "it takes more than tensors"))
                continue
            try:
                given = [_outward(_copied(argument)) for argument in outcome.arguments]
                difference = _difference(outcome.result, _inward(machine[name](*given)))
            except TVMError as error:
                difference = f"it faults: {error}"
            if difference:
                raise VerifyError(
                    f"the virtual machine computes {name} otherwise than the graph it was lowered "
                    f"from: {difference} (arguments of seed {self.seed}, symbolic extents "
                    f"{self.size})"
                )

    def _is_left_out(self, name: str, old: Outcome, new: Outcome) -> bool:
        reason = None
        if isinstance(old.error, UnsupportedError) or isinstance(
            new.error, ClosedError | TooMuchWorkError | NoReferenceError
        ):
            reason = str(new.error or old.error)
        elif old.error is not None:
            reason = f"it faults on random arguments: {old.error}"
        elif _difference(old.arguments, new.arguments):
            reason = "a pass changed its parameters"
        if reason is not None:
            self.left_out[name] = reason
        return reason is not None

    def _outcomes(self, mod: IRModule) -> Mapping[str, Outcome]:
        """The runs of all graph functions; those of the latest module are remembered."""
        if self._latest[0] is mod:
            return self._latest[1]
        outcomes = {
            var.name_hint: self._outcome(mod, var.name_hint, func)
            for var, func in mod.functions.items()
            if isinstance(func, Function)
        }
        if any(isinstance(outcome.error, NoReferenceError) for outcome in outcomes.values()):
            self._say_without_reference(mod)
        self._latest = (mod, outcomes)
        return outcomes

    def _say_without_reference(self, mod: IRModule) -> None:
        """Warn, once for each operator, that it has no numpy reference."""
        new = {
            call.op.name
            for func in mod.functions.values()
            if isinstance(func, Function)
            for call in collect(func, Call)
            if isinstance(call.op, Op) and not reference_of(call.op) and call.op.name not in FORMS
        } - self.no_reference
        self.no_reference |= new
        if new:
            warnings.warn(
                f"verify: no numpy reference of {', '.join(sorted(new))}: functions that call them "
                "are not compared; relax.register_reference(name, function of arrays) gives one",
                VerifyWarning,
                stacklevel=2,
            )

    @deep_recursion
    def _outcome(self, mod: IRModule, name: str, func: Function) -> Outcome:
        outcome = Outcome([])

        def observe(function: str, binding: Binding, value: Value) -> None:
            if function == name:
                outcome.steps.append((binding, _copied(value)))

        try:
            outcome.arguments = self._arguments(name, func)
            given = [_copied(argument) for argument in outcome.arguments]
            machine = Interpreter(mod, observe, is_closed=True, runner=self.runner)
            outcome.result = _copied(machine.call_function(name, given))
        except TVMError as error:
            outcome.error = error
        return outcome

    def _arguments(self, name: str, func: Function) -> list[Value]:
        """Random arguments; every symbol is ``size``, or its upper bound if that is smaller."""
        random = np.random.default_rng([self.seed, zlib.crc32(name.encode())])
        frame = Frame(name)
        infos = [param.struct_info for param in func.params]
        for var in _symbols(infos):
            frame.state.values[id(var)] = self.size
        for var, limit in UpperBounds(func).limits:
            frame.state.values[id(var)] = min(self.size, limit)
        return [self._argument(random, info, frame) for info in infos]

    def _argument(self, random: np.random.Generator, info: StructInfo, frame: Frame) -> Value:
        if isinstance(info, TupleStructInfo):
            return tuple([self._argument(random, field, frame) for field in info.fields])
        if isinstance(info, PrimStructInfo):
            if info.value is not None:
                return frame.number(info.value)
            return float(self.size) if info.dtype.is_float else self.size
        if isinstance(info, ShapeStructInfo):
            if info.values is None:
                return (self.size,) * max(info.ndim, 1)
            return frame.dims(info.values)
        if isinstance(info, TensorStructInfo):
            extents = frame.extents(info)
            rank = 2 if info.ndim == -1 else info.ndim
            shape = (self.size,) * rank if extents is None else frame.dims(extents)
            dtype = DataType("float32" if info.dtype == "void" else info.dtype)
            return random_values(random, dtype, shape)
        raise UnsupportedError(f"it takes a {type(info).__name__.removesuffix('StructInfo')}")


def _symbols(infos: list[Value]) -> list[SizeVar]:
    """The symbols of struct infos in order of their appearance."""
    symbols: dict[SizeVar, None] = {}
    for info in infos:
        for extent in _expressions(info):
            symbols.update(dict.fromkeys(collect(extent, SizeVar)))
    return list(symbols)


def _expressions(info: Value) -> list[Value]:
    if isinstance(info, TupleStructInfo):
        return [item for field in info.fields for item in _expressions(field)]
    if isinstance(info, PrimStructInfo):
        return [] if info.value is None else [info.value]
    values = getattr(info, "values", None) or getattr(getattr(info, "shape", None), "values", None)
    return list(values or ())


def _is_of_arrays(value: Value) -> bool:
    if isinstance(value, list | tuple):
        return all(map(_is_of_arrays, value))
    return isinstance(value, np.ndarray)


def _outward(value: Value) -> Value:
    if isinstance(value, tuple):
        return tuple([_outward(item) for item in value])
    return array(value)


def _inward(value: Value) -> Value:
    if isinstance(value, list | tuple):
        return tuple([_inward(item) for item in value])
    return value.numpy() if isinstance(value, NDArray) else value


def _copied(value: Value) -> Value:
    if isinstance(value, tuple):
        return tuple([_copied(item) for item in value])
    return value.copy() if isinstance(value, np.ndarray) else value


def _fault(new: Outcome) -> str:
    return "" if new.error is None else f"it faults now: {new.error}"


def _difference(old: Value, new: Value) -> str:
    """A text that says how two values differ; empty if they agree."""
    if isinstance(old, tuple | list):
        if not isinstance(new, tuple | list) or len(old) != len(new):
            return f"a tuple of {len(old)} became {_kind(new)}"
        pairs = enumerate(zip(old, new, strict=True))
        parts = [(number, _difference(earlier, later)) for number, (earlier, later) in pairs]
        return next((f"field {number}: {text}" for number, text in parts if text), "")
    if isinstance(old, np.ndarray) and isinstance(new, np.ndarray):
        return _array_difference(old, new)
    if isinstance(old, np.ndarray) or isinstance(new, np.ndarray):
        return f"{_kind(old)} became {_kind(new)}"
    is_number = isinstance(old, int | float | np.generic)
    return f"{old} became {new}" if is_number and old != new and old == old else ""


def _array_difference(old: np.ndarray, new: np.ndarray) -> str:
    if old.shape != new.shape or old.dtype != new.dtype:
        return f"{_kind(old)} became {_kind(new)}"
    if not is_float(old):
        same = old == new
        return "" if same.all() else f"{np.count_nonzero(~same)} of {same.size} elements differ"
    before, after = old.astype("float64"), new.astype("float64")
    finite = np.isfinite(before)
    same = np.array_equal(finite, np.isfinite(after)) and np.array_equal(
        before[~finite], after[~finite], equal_nan=True
    )
    if not same:
        return "NaN or infinities stand elsewhere"
    if not finite.any():
        return ""
    allowed = TOLERANCE.get(old.dtype.name, 0.5) * np.abs(before[finite]).max()
    distance = np.abs(before[finite] - after[finite])
    wrong = np.count_nonzero(distance > allowed)
    if not wrong:
        return ""
    return f"{wrong} of {before.size} elements differ, by up to {distance.max():.3g}"


def _kind(value: Value) -> str:
    if isinstance(value, np.ndarray):
        return f"{value.dtype.name}{list(value.shape)}"
    return type(value).__name__


def _first_step(old: Outcome, new: Outcome) -> str:
    """A text that names the first binding whose value differs from that of its name before."""
    known = {binding.var.name_hint: value for binding, value in reversed(old.steps)}
    for binding, value in new.steps:
        call = binding.value
        if isinstance(call, Call) and "alloc" in str(call.op):
            continue  # memory that is written later
        name = binding.var.name_hint
        if name in known and _difference(known[name], value):
            text = str(binding.value).strip().splitlines()[-1]
            return f"; the first binding that differs: {name} = {text:.120}"
    return ""


slots.reference.fill(VerifyGraphs)
