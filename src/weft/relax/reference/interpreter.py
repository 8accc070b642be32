"""The Relax interpreter, which defines what a graph means.

``run(mod, "main", *arguments)`` executes a function of a module: every operator by its numpy
reference, every PrimFunc by the TensorIR interpreter, every registered function by calling it.
Every value is compared with the struct info of its binding, so wrong inference is an error that
names the binding. Lowered modules run too (explicit memory, shape heaps, ``vm.builtin``).

Each operator rounds its floats once, from float64 to the dtype of its result.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from weft.ir.expr import GlobalVar, PrimExpr, RelaxExpr
from weft.ir.function import BaseFunc
from weft.ir.module import IRModule
from weft.ir.node import expect
from weft.ir.op import Op
from weft.relax.analysis.tail_calls import last_binding, tail_calls
from weft.relax.distributed.execution import refuse_distributed_function
from weft.relax.expr import (
    Binding,
    Call,
    Constant,
    DataflowVar,
    DataTypeImm,
    ExternFunc,
    Function,
    If,
    MatchCast,
    PrimValue,
    SeqExpr,
    ShapeExpr,
    StringImm,
    Tuple,
    TupleGetItem,
    Var,
    VarBinding,
)
from weft.relax.ir.shape_arith import constant_value
from weft.relax.op.reference.rule import is_float
from weft.relax.reference.forms import FORMS, LIBRARY
from weft.relax.reference.frame import Frame, Value, as_value
from weft.relax.reference.operators import reference_of
from weft.relax.reference.packed import call_packed
from weft.relax.reference.tail import Chain, TailCall, duty_key
from weft.relax.struct_info import StructInfo, TensorStructInfo, TupleStructInfo
from weft.runtime.vm.builtins import BUILTINS
from weft.support.dtype import DataType
from weft.support.errors import (
    IRKeyError,
    IRTypeError,
    IRValueError,
    TVMError,
    UnsupportedError,
    VerifyError,
    wrong_type,
)
from weft.support.recursion import deep_recursion
from weft.tir.function import PrimFunc
from weft.tir.interp.machine import run as run_prim_func

Observe = Callable[[str, Binding, Value], None]
"""Called with the function's name, a binding and its value, after each binding."""

Runner = Callable[[str, PrimFunc, list[Value], IRModule], Value]
"""(name, PrimFunc, arguments, module) -> its result; it writes into the arguments."""

VOID = DataType("void")
_OURS = ("vm.builtin.", "relax.run.")
"""Prefixes of registered functions that weft's lowering calls: a closed interpreter allows them."""


@deep_recursion
def run(
    mod: IRModule | Function, name: str = "main", *arguments: Value, observe: Observe | None = None
) -> Any:
    """Execute a Relax function on arrays, numbers, shapes and tuples; the arguments stay as given.

    Returns numpy arrays (tuples of them, numbers, shapes). ``observe(function, binding, value)`` is
    called with every value. Raises what the program raises, such as an error with both shapes for
    an argument or a match_cast that does not fit; VerifyError if a value contradicts struct info.
    """
    module = IRModule({name: mod}) if isinstance(mod, Function) else mod
    values = [as_value(argument) for argument in arguments]
    return Interpreter(module, observe).call_function(name, values)


def _interpreted(_name: str, func: PrimFunc, values: list[Value], mod: IRModule) -> Value:
    return run_prim_func(func, *values, module=mod)


class Interpreter:
    """Runs functions of one module.

    If ``is_closed``, effects and functions from outside of the module raise ClosedError.
    ``runner(name, func, arguments, mod)`` runs PrimFuncs (default: the interpreter of TensorIR).
    """

    def __init__(
        self,
        mod: IRModule,
        observe: Observe | None = None,
        *,
        is_closed: bool = False,
        runner: Runner | None = None,
    ) -> None:
        self.mod = mod
        self.runner = runner or _interpreted
        self.observe = observe
        self.is_closed = is_closed
        self._accepted: set[str] = set()
        self._tail_calls: dict[int, tuple[Function, frozenset[int]]] = {}
        self.functions: Mapping[str, BaseFunc] = {
            var.name_hint: func for var, func in mod.functions.items()
        }

    # ---- functions

    def call_function(self, name: str, values: list[Value]) -> Value:
        """Call a function of the module: a graph, or a PrimFunc on all its buffers."""
        func = self.functions.get(name)
        if isinstance(func, Function):
            self.accept(name, func)
            return self.apply(name, func, values, None)
        if isinstance(func, PrimFunc):
            return self.call_prim_func(name, values)
        if isinstance(func, ExternFunc):
            return self.call_extern(func.global_symbol, values)
        names = ", ".join(list(self.functions)[:8]) or "none"
        raise IRKeyError(f"the module has no function {name!r} to run; it has: {names}")

    def accept(self, name: str, func: Function) -> None:
        """Refuse a function of distributed tensors."""
        if name not in self._accepted:
            refuse_distributed_function(name, func, "the interpreter")
            self._accepted.add(name)

    def apply(self, name: str, func: Function, values: list[Value], outer: Frame | None) -> Value:
        """Run the body of a function on values, and the functions that it ends with a call of."""
        chain = Chain()
        while True:
            frame = self.activation(name, func, values, outer)
            chain.calls = self.tail_calls(name, func, outer)
            result = self.sequence(func.body, frame, chain)
            info, what = func.ret_struct_info, f"{name}: the result"
            if not isinstance(result, TailCall):
                if info is not None:
                    frame.check(result, info, what)
                chain.settle(result)
                return result
            if info is not None:
                chain.owe(partial(frame.check, info=info, what=what), duty_key(frame, info))
            chain.leave()
            name, func, values, outer = result.name, result.func, result.values, result.outer

    def activation(
        self, name: str, func: Function, values: list[Value], outer: Frame | None
    ) -> Frame:
        """A frame with the arguments of a function, which are checked."""
        frame = Frame(name, outer)
        if len(values) != len(func.params):
            names = ", ".join([param.name_hint for param in func.params])
            raise IRTypeError(
                f"{name}: expected {len(func.params)} arguments ({names}), got {len(values)}"
            )
        for param, value in zip(func.params, values, strict=True):
            frame.values[param] = value
            if param.struct_info is not None:
                frame.define(value, param.struct_info)
        for number, (param, value) in enumerate(zip(func.params, values, strict=True)):
            if param.struct_info is not None:
                what = f"{name}: argument {number} ({param.name_hint})"
                frame.check(value, param.struct_info, what)
        return frame

    def tail_calls(self, name: str, func: Function, outer: Frame | None) -> frozenset[int]:
        """The ids of the bindings whose calls may take the place of a function."""
        known = self._tail_calls.get(id(func))
        if known is None:

            def is_itself(callee: RelaxExpr) -> bool:
                if isinstance(callee, GlobalVar):
                    return callee.name_hint == name and self.functions.get(name) is func
                local = outer.values.get(callee) if outer and isinstance(callee, Var) else None
                return isinstance(local, Closure) and local.func is func

            known = func, frozenset([id(call) for call in tail_calls(func, is_itself)])
            self._tail_calls[id(func)] = known
        return known[1]

    def call_prim_func(self, name: str, values: list[Value]) -> Value:
        """Run a PrimFunc; it writes into the arrays that it is given."""
        func = expect(self.functions[name], PrimFunc)
        result = self.runner(name, func, values, self.mod)
        return () if result is None else result

    # ---- bindings

    def sequence(self, expr: Value, frame: Frame, chain: Chain | None = None) -> Value:
        """The bindings of a sequence in order, then its value.

        With ``chain`` it is all that is left of a function: its value may be a TailCall.
        """
        if not isinstance(expr, SeqExpr):
            return self.evaluate(expr, frame)
        last = None if chain is None else last_binding(expr)
        call: TailCall | None = None
        for block in expr.blocks:
            for binding in block.bindings:
                if chain is not None and call is not None:  # another name, or nothing to do
                    self.owe(binding, frame, chain)
                    continue
                if binding is not last:
                    self.bind(binding, frame)
                    continue
                value = self._computed(binding, frame, chain)
                if chain is not None and isinstance(value, TailCall):
                    call = value
                    self.owe(binding, frame, chain)
                else:
                    self.keep(binding, value, frame)
        return self.evaluate(expr.body, frame) if call is None else call

    def owe(self, binding: Binding, frame: Frame, chain: Chain) -> None:
        """Keep the value of a binding when it is there; what kills a value has nothing to do."""
        info, value = binding.var.struct_info, binding.value
        if isinstance(value, Call) and isinstance(value.op, Op):
            return
        key = None if info is None or self.observe is not None else duty_key(frame, info)
        chain.owe(partial(self.keep, binding, frame=frame), key)

    def bind(self, binding: Binding, frame: Frame) -> None:
        """Compute one binding and check the value against its struct info."""
        self.keep(binding, self._computed(binding, frame, None), frame)

    def keep(self, binding: Binding, value: Value, frame: Frame) -> None:
        """Check the value of a binding against its struct info, and enter it."""
        if isinstance(binding, MatchCast):
            what = f"{frame.function}: match_cast {binding.var.name_hint}"
            frame.match(value, binding.struct_info, what)
        elif binding.var.struct_info is not None:
            where = f"{frame.function}: {binding.var.name_hint}"
            try:
                frame.check(value, binding.var.struct_info, where)
            except (IRTypeError, IRValueError) as error:
                raise VerifyError(
                    f"{error}: the struct info of {_text(binding.value)} is not true of its value"
                ) from error
        frame.values[binding.var] = value
        if self.observe is not None:
            self.observe(frame.function, binding, value)

    def _computed(self, binding: Binding, frame: Frame, chain: Chain | None) -> Value:
        value = binding.value
        if isinstance(value, Function) and isinstance(binding, VarBinding):
            return Closure(self, binding.var.name_hint, value, frame, binding.var)
        try:
            if chain is not None and isinstance(value, If):
                return self.branch(value, frame, chain)
            if chain is not None and isinstance(value, SeqExpr):
                return self.sequence(value, frame, chain)
            if chain is not None and id(binding) in chain.calls:
                return self.tail_call(expect(value, Call), frame)
            return self.evaluate(value, frame, binding.var.struct_info)
        except TVMError as error:
            error.add_note(f"in {frame.function}: {binding.var.name_hint} = {_text(value)}")
            raise

    def tail_call(self, call: Call, frame: Frame) -> Value:
        """A call of a graph function as a TailCall; the value of any other."""
        callee = call.op
        function = None if isinstance(callee, ExternFunc) else self.evaluate(callee, frame)
        if isinstance(function, GlobalFunction):
            func, name = self.functions.get(function.name), function.name
            if isinstance(func, Function):
                self.accept(name, func)
                values = [self.evaluate(argument, frame) for argument in call.args]
                return TailCall(name, func, values, None)
        elif isinstance(function, Closure):
            values = [self.evaluate(argument, frame) for argument in call.args]
            return TailCall(function.name, function.func, values, function.entered())
        return self.evaluate(call, frame)

    # ---- expressions

    def evaluate(self, expr: Value, frame: Frame, info: StructInfo | None = None) -> Value:
        """The value of an expression; ``info`` is the struct info of its binding."""
        method = _EVALUATE.get(type(expr))
        if method is None:
            raise UnsupportedError(
                f"the interpreter of graphs does not know {type(expr).__name__}: {expr}"
            )
        if isinstance(expr, Call):
            return self.call(expr, frame, expr.struct_info or info)
        return method(self, expr, frame)

    def branch(self, expr: If, frame: Frame, chain: Chain | None = None) -> Value:
        """The branch that the condition chooses; ``chain`` is as in ``sequence``."""
        condition = self.evaluate(expr.cond, frame)
        if isinstance(condition, np.ndarray) and condition.ndim:
            raise IRValueError(
                f"{frame.function}: a condition must be a scalar, got shape {condition.shape}"
            )
        return self.sequence(expr.true_branch if condition else expr.false_branch, frame, chain)

    def field(self, expr: TupleGetItem, frame: Frame) -> Value:
        """A field of a tuple."""
        return BUILTINS["tuple_getitem"](self.evaluate(expr.tuple_value, frame), expr.index)

    def scalar(self, expr: PrimValue, frame: Frame) -> Value:
        """A number: Python's for int64, bool and floats, numpy's for narrower integers."""
        value, dtype = frame.number(expr.value), expr.value.dtype
        if dtype.is_bool:
            return bool(value)
        if dtype.is_float:
            return float(value)
        return int(value) if dtype == DataType("int64") else dtype.numpy.type(value)

    def call(self, call: Call, frame: Frame, info: StructInfo | None) -> Value:
        """The value of a call."""
        callee = call.op
        if isinstance(callee, Op):
            form = FORMS.get(callee.name)
            if form is not None:
                return form(self, call, frame)
            return self.operator(call, frame, info)
        values = [self.evaluate(argument, frame) for argument in call.args]
        if isinstance(callee, GlobalVar):
            return self.call_function(callee.name_hint, values)
        if isinstance(callee, ExternFunc):
            return self.call_extern(callee.global_symbol, values)
        function = self.evaluate(callee, frame)
        if not callable(function):
            raise wrong_type("expected a function to call", function)
        return function(*values)

    def call_extern(self, name: str, values: list[Value]) -> Value:
        """Call a registered function; those of ``LIBRARY`` run in this interpreter."""
        self.refuse(name)
        own = LIBRARY.get(name)
        return call_packed(name, values) if own is None else own(*values)

    def refuse(self, name: str) -> None:
        """Raise ClosedError if the interpreter is closed: ``name`` is no part of the module."""
        if self.is_closed and not name.startswith(_OURS):
            raise ClosedError(f"it calls {name}, which is not of the module")

    def operator(self, call: Call, frame: Frame, info: StructInfo | None) -> Value:
        """Compute an operator by its numpy reference, rounded to the dtype of its result."""
        reference = reference_of(call.op)
        if reference is None:
            raise NoReferenceError(
                f"{call.op.name} has no numpy reference to run it with; give it one: "
                f"relax.register_reference({call.op.name!r}, function of arrays)"
            )
        values = [self.evaluate(argument, frame) for argument in call.args]
        with np.errstate(all="ignore"):
            result = reference(*values, **self.attributes(call, frame))
            floats = [
                value.dtype for value in values if isinstance(value, np.ndarray) and is_float(value)
            ]
            return finished(result, info, floats[0] if floats else None)

    def attributes(self, call: Call, frame: Frame) -> dict[str, Value]:
        """The attributes of a call as plain Python values."""
        attributes = {name: _plain(value, frame) for name, value in call.attrs.items()}
        if call.op.name == "relax.squeeze" and attributes["axis"] is None:
            # Only extents that are the constant 1 are removed: the rank must not depend on symbols.
            extents = getattr(getattr(call.args[0].struct_info, "shape", None), "values", None)
            if extents is not None:
                ones = [i for i, dim in enumerate(extents) if constant_value(dim) == 1]
                attributes["axis"] = ones
        return attributes


class ClosedError(UnsupportedError):
    """A closed interpreter met an effect or a function from outside."""


class NoReferenceError(UnsupportedError):
    """An operator has no numpy reference: what its function means is not known."""


class Closure:
    """A local function with the frame it was defined in, as a value."""

    def __init__(
        self,
        interpreter: Interpreter,
        name: str,
        func: Function,
        frame: Frame,
        var: Var | None = None,
    ) -> None:
        self.interpreter, self.name, self.func = interpreter, name, func
        self.frame, self.var = frame, var

    def entered(self) -> Frame:
        """The frame around the function, in which its own name stands for it."""
        if self.var is not None:
            self.frame.values[self.var] = self
        return self.frame

    def __call__(self, *values: Value) -> Value:
        return self.interpreter.apply(self.name, self.func, list(values), self.entered())


class GlobalFunction:
    """A function of the module as a value."""

    def __init__(self, interpreter: Interpreter, name: str) -> None:
        self.interpreter, self.name = interpreter, name

    def __call__(self, *values: Value) -> Value:
        return self.interpreter.call_function(self.name, list(values))


def finished(result: Value, info: StructInfo | None, floats: np.dtype | None) -> Value:
    """Copy what a reference returned, and round floats to the dtype in ``info``.

    ``floats`` is the dtype for floats where ``info`` has none.
    """
    if isinstance(result, tuple | list):
        fields: Sequence[StructInfo | None] = (
            info.fields if isinstance(info, TupleStructInfo) else [None] * len(result)
        )
        return tuple(
            [finished(item, field, floats) for item, field in zip(result, fields, strict=True)]
        )
    values = np.asarray(result)
    target = values.dtype
    if is_float(values):
        if not isinstance(info, TensorStructInfo) or info.dtype == VOID:
            target = floats or target
        elif DataType(info.dtype).is_float:
            target = DataType(info.dtype).numpy
    return np.array(values, target, order="C")


def _plain(value: Value, frame: Frame) -> Value:
    if isinstance(value, DataType):
        return None if value == VOID else str(value)
    if isinstance(value, tuple):
        return [_plain(item, frame) for item in value]
    if isinstance(value, PrimValue):
        value = value.value
    return frame.number(value) if isinstance(value, PrimExpr) else value


def _text(expr: Value) -> str:
    text = str(expr).strip()
    last = text.splitlines()[-1] if text else ""
    return last if len(last) <= 200 else last[:200] + " ..."


_EVALUATE: dict[type, Callable[[Interpreter, Any, Frame], Value]] = {
    Call: lambda self, expr, frame: self.call(expr, frame, expr.struct_info),
    Constant: lambda _self, expr, _frame: expr.data.numpy(),
    DataTypeImm: lambda _self, expr, _frame: str(expr.value),
    ExternFunc: lambda self, expr, _frame: (
        lambda *values: self.call_extern(expr.global_symbol, list(values))
    ),
    Function: lambda self, expr, frame: Closure(self, "a local function", expr, frame),
    GlobalVar: lambda self, expr, _frame: GlobalFunction(self, expr.name_hint),
    If: Interpreter.branch,
    PrimValue: Interpreter.scalar,
    SeqExpr: Interpreter.sequence,
    ShapeExpr: lambda _self, expr, frame: frame.dims(expr.values),
    StringImm: lambda _self, expr, _frame: expr.value,
    Tuple: lambda self, expr, frame: tuple([self.evaluate(item, frame) for item in expr.fields]),
    TupleGetItem: Interpreter.field,
}
_EVALUATE[Var] = _EVALUATE[DataflowVar] = lambda _self, expr, frame: frame.value(expr)
