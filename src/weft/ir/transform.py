"""Passes: functions from module to module, composed, configured and observed.

A pass is pure: it returns a new module and does not change its input. ``Pass.__call__`` runs the
instruments of the current ``PassContext`` around it; if it fails, a note with the names of the pass
and the function is added to the exception, whose class stays.
"""

from __future__ import annotations

import difflib
import functools
import inspect
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Concatenate, Final, ParamSpec, Self, TypeVar

from weft.ir.expr import GlobalVar
from weft.ir.function import BaseFunc
from weft.ir.module import IRModule
from weft.ir.pass_options import (
    CHANGES_NOTHING,
    PASS_NAMES,
    check_kind,
    check_opt_level,
    checked_instruments,
    checked_names,
)
from weft.support import slots
from weft.support.errors import PassError
from weft.support.events import happened
from weft.support.garbage import rare_collections
from weft.support.parameters import mismatch
from weft.support.recursion import deep_recursion
from weft.support.registration import refuse_second
from weft.support.scopes import Scopes

P = ParamSpec("P")
Subject = TypeVar("Subject")
Result = TypeVar("Result")
SomePass = TypeVar("SomePass")
Decorated = Callable[..., Any]
"""What the decorators of passes take: a function, or a class with a method."""


@dataclass(frozen=True)
class PassInfo:
    """What a context knows of a pass: its name, its level, the passes required before it."""

    opt_level: int
    name: str
    required: tuple[str, ...] = ()
    traceable: bool = False

    def __post_init__(self) -> None:
        PASS_NAMES.add(self.name)


class PassContext:
    """Options and observers for the passes run under ``with PassContext(...)``.

    ``opt_level`` (default 2) switches off passes above it unless required by name;
    ``config`` maps option names (``tir.UnrollLoop``) to values; unknown names of options and of
    passes raise PassError.
    ``verify=True`` runs every function in the reference interpreters before and after each pass and
    names the first pass, function and binding whose result changes. PrimFuncs of more than
    ``config={"verify.max_operations": n}`` operations run as compiled code, with a VerifyWarning.
    """

    _options: ClassVar[dict[str, str]] = {
        **CHANGES_NOTHING,
        "relax.lift_transform_params.consume_params": "True: weights are let go of once read",
        "relax.narrow_weights": "bfloat16 or float16: see relax.transform.weights.narrow_weights",
        "relax.transform.apply_legalize_ops": "False: LegalizeOps changes nothing",
        "relax.winograd": "False: no convolution uses Winograd's algorithm",
        "tir.HoistExpression": "{'hoisted_conditionals': n, 'hoisted_let_bindings': n}",
        "tir.HoistIfThenElse": "{'support_block_scope_hoisting': bool}",
        "tir.InjectDoubleBuffer": "{'split_loop': n}: the pipelined loop unrolls n times",
        "tir.LoopPartition": "{name: bool}: see weft.tir.transform.loop_partition",
        "tir.Simplify": "{name: bool}: see weft.tir.transform.simplify",
        "tir.UnrollLoop": "{'auto_max_step': n}: serial loops of at most n steps unroll too",
        "tir.disable_assert": "True: asserts are left out",
        "tir.disable_storage_rewrite": "True: buffers share no memory",
        "tir.disable_vectorize": "True: vectorized loops run serially",
        "verify.max_operations": "n: verify=True compiles PrimFuncs of more operations",
    }
    _open: ClassVar[Scopes[PassContext]] = Scopes("pass_contexts")

    def __init__(
        self,
        opt_level: int = 2,
        required_pass: Sequence[str] | None = None,
        disabled_pass: Sequence[str] | None = None,
        instruments: Sequence[object] | None = None,
        config: Mapping[str, Any] | None = None,
        trace: object = None,
        trace_stack: object = None,
        make_traceable: object = None,
        num_evals: int = 0,
        tuning_api_database: object = None,
        *,
        verify: bool = False,
    ) -> None:
        check_opt_level(opt_level)
        for what, value, kind in (
            ("required_pass", required_pass, Iterable),
            ("disabled_pass", disabled_pass, Iterable),
            ("instruments", instruments, Iterable),
            ("config", config, Mapping),
        ):
            check_kind(what, value, kind)
        self.opt_level = opt_level
        self.required_pass = checked_names("required_pass", required_pass)
        self.disabled_pass = checked_names("disabled_pass", disabled_pass)
        self.instruments = checked_instruments(instruments)
        if verify:
            self.instruments.append(slots.reference.get()())
        self.config = dict(config or {})
        for name in self.config:
            if name not in self._options:
                known = ", ".join(sorted(self._options))
                nearest = difflib.get_close_matches(str(name), self._options, n=1)
                hint = f"did you mean {nearest[0]!r}? " if nearest else ""
                raise PassError(
                    f"PassContext: no pass has the option {name!r}; {hint}there are: {known}"
                )

    def __repr__(self) -> str:
        shown = {
            "opt_level": self.opt_level,
            "required_pass": list(self.required_pass),
            "disabled_pass": list(self.disabled_pass),
            "config": self.config,
            "instruments": self.instruments,
        }
        text = ", ".join([f"{name}={value}" for name, value in shown.items() if value != []])
        return f"PassContext({text})"

    @classmethod
    def register_option(cls, name: str, description: str, *, override: bool = False) -> None:
        """Declare an option of ``config``; IRValueError if there is one and not ``override``."""
        is_taken = cls._options.get(name, description) != description
        refuse_second("the option", name, is_taken, override)
        cls._options[name] = description

    @classmethod
    def current(cls) -> PassContext:
        """The innermost context, or the default one."""
        return cls._open.innermost or _DEFAULT

    def __enter__(self) -> Self:
        self._open.push(self)
        try:
            self._call_all("enter_pass_ctx")
        except BaseException:
            self._open.pop()
            raise
        return self

    def __exit__(self, *exc_info: object) -> None:
        try:
            self._call_all("exit_pass_ctx")
        finally:
            self._open.pop()

    def _call_all(self, hook: str) -> None:
        for instrument in self.instruments:
            _hook(instrument, hook)

    def override_instruments(self, instruments: Sequence[object] | None) -> None:
        """Replace the instruments of a running context."""
        checked = checked_instruments(instruments)
        self._call_all("exit_pass_ctx")
        self.instruments = checked
        self._call_all("enter_pass_ctx")

    def pass_enabled(self, info: PassInfo) -> bool:
        """Whether a pass runs here."""
        if info.name in self.disabled_pass:
            return False
        return info.name in self.required_pass or info.opt_level <= self.opt_level

    @staticmethod
    def list_configs() -> dict[str, str]:
        """Every option and what it does."""
        return dict(PassContext._options)


_DEFAULT = PassContext()


def _hook(instrument: object, name: str, *args: object) -> object:
    method = getattr(instrument, name, None)
    return None if method is None else method(*args)


class Pass:
    """The base of passes; subclasses define ``transform_module(mod, ctx)``."""

    info: PassInfo

    def __call__(self, mod: IRModule) -> IRModule:
        """Run the pass on a module under the current context."""
        if not isinstance(mod, IRModule):
            raise PassError(
                f"{self.info.name}: expected an IRModule, got {type(mod).__name__}; wrap a "
                "function with IRModule.from_expr"
            )
        with rare_collections:
            return self._observed(mod, PassContext.current())

    def _observed(self, mod: IRModule, context: PassContext) -> IRModule:
        """Run the pass between the hooks of the instruments."""
        for instrument in context.instruments:
            wanted = _hook(instrument, "should_run", mod, self.info)
            if wanted is False and self.info.name not in context.required_pass:
                return mod
        for instrument in context.instruments:
            _hook(instrument, "run_before_pass", mod, self.info)
        happened("pass", self.info.name, mod)
        begin = time.perf_counter()
        result = self._run(mod, context)
        happened("passed", self.info.name, result, time.perf_counter() - begin)
        for instrument in context.instruments:
            _hook(instrument, "run_after_pass", result, self.info)
        return result

    def _run(self, mod: IRModule, context: PassContext) -> IRModule:
        try:
            result = self.transform_module(mod, context)
        except Exception as error:
            error.add_note(f"in pass {self.info.name}")
            raise
        if not isinstance(result, IRModule):
            kind = type(result).__name__
            raise PassError(f"{self.info.name}: a pass returns an IRModule, this one gave {kind}")
        return result

    def transform_module(self, mod: IRModule, ctx: PassContext) -> IRModule:
        """The transformation itself."""
        raise PassError(f"{type(self).__name__} does not define transform_module")

    def __repr__(self) -> str:
        return f"Pass({self.info.name}, opt_level={self.info.opt_level})"


class ModulePass(Pass):
    """A pass from a function ``(mod, ctx) -> mod``."""

    def __init__(
        self, function: Callable[[IRModule, PassContext], IRModule], info: PassInfo
    ) -> None:
        self.function, self.info = function, info

    def transform_module(self, mod: IRModule, ctx: PassContext) -> IRModule:
        """Call the function."""
        return self.function(mod, ctx)


class FunctionPass(Pass):
    """A pass over every function of one class: ``(func, mod, ctx) -> func``.

    It returns the same module if nothing changes. It cannot remove functions; a module pass can.
    """

    def __init__(self, function: Decorated, info: PassInfo, kind: type = BaseFunc) -> None:
        self.function, self.info, self.kind = function, info, kind

    def transform_module(self, mod: IRModule, ctx: PassContext) -> IRModule:
        """Apply the function to each function of the class."""
        functions: dict[GlobalVar, BaseFunc] = {}
        changed = False
        for var, func in mod.functions.items():
            new = func
            if isinstance(func, self.kind):
                new = self._apply(var.name_hint, func, mod, ctx)
            changed = changed or new is not func
            functions[var] = new
        if not changed:
            return mod
        return IRModule(functions, None, mod.attrs, mod.global_infos)

    def _apply(self, name: str, func: BaseFunc, mod: IRModule, ctx: PassContext) -> BaseFunc:
        try:
            result = self.function(func, mod, ctx)
            if result is None:
                raise PassError(
                    f"{self.info.name}: expected a function, got None: end the pass with "
                    "'return func'; to remove a function write a module pass with 'del mod[name]' "
                    "on a clone of the module"
                )
            if not isinstance(result, BaseFunc):
                kind = type(result).__name__
                raise PassError(f"{self.info.name}: expected a function, got {kind}")
        except Exception as error:
            error.add_note(f"in function {name}")
            raise
        return result


class Sequential(Pass):
    """Passes in order; each is skipped where the context's ``opt_level`` is below its own."""

    def __init__(
        self,
        passes: Sequence[Pass] | None = None,
        opt_level: int = 0,
        name: str = "sequential",
        required: Sequence[str] | None = None,
        traceable: bool = False,
    ) -> None:
        if passes is not None and not isinstance(passes, Iterable):
            raise PassError(f"Sequential: expected a list of passes, got {type(passes).__name__}")
        self.passes = tuple(passes or ())
        for item in self.passes:
            if not callable(item):
                raise PassError(f"Sequential: expected passes, got {type(item).__name__}")
        self.info = PassInfo(opt_level, name, tuple(required or ()), traceable)

    def transform_module(self, mod: IRModule, ctx: PassContext) -> IRModule:
        """Run the passes."""
        for item in self.passes:
            info = getattr(item, "info", None)
            if info is None or ctx.pass_enabled(info):
                mod = item(mod)
        return mod

    def _run(self, mod: IRModule, context: PassContext) -> IRModule:
        return self.transform_module(mod, context)


_TAKEN: Final[Mapping[str, Sequence[str]]] = {
    "transform_module": ["mod", "ctx"], "transform_function": ["func", "mod", "ctx"],
}  # fmt: skip
"""What the function of a pass is called with, by the method of a class that stands for it."""


def _check_takes(name: str, function: Decorated, args: Sequence[str]) -> None:
    wrong = mismatch(function, args)
    if wrong is not None:
        raise PassError(f"{name}: {wrong}")


def _decorate(
    target: Decorated, info: PassInfo, make: Callable[[Decorated, PassInfo], Pass], method: str
) -> Pass | Callable[..., Pass]:
    """A pass from a function, or a pass class from a class with the method."""
    if not inspect.isclass(target):
        _check_takes(info.name, target, _TAKEN[method])
        return make(target, info)
    if not hasattr(target, method):
        raise PassError(f"{info.name}: expected a class with the method {method}, it has none")
    _check_takes(f"{info.name}.{method}", getattr(target, method), ["self", *_TAKEN[method]])

    @functools.wraps(target, updated=())
    def create(*args: object, **kwargs: object) -> Pass:
        instance = target(*args, **kwargs)
        instance_pass = make(getattr(instance, method), info)
        instance_pass.instance = instance  # type: ignore[attr-defined] # a class of the user
        return instance_pass

    return create


def _decorator(
    target: Decorated | None,
    opt_level: int | None,
    name: str | None,
    required: Sequence[str] | None,
    traceable: bool,
    make: Callable[[Decorated, PassInfo], Pass],
    method: str,
) -> Pass | Callable[..., Pass] | Callable[[Decorated], Pass | Callable[..., Pass]]:
    if opt_level is None:
        raise PassError("the decorator of a pass needs opt_level=, as in @module_pass(opt_level=0)")

    def apply(given: Decorated) -> Pass | Callable[..., Pass]:
        info = PassInfo(opt_level, name or given.__name__, tuple(required or ()), traceable)
        return _decorate(given, info, make, method)

    return apply if target is None else apply(target)


def module_pass(
    pass_func: Decorated | None = None,
    opt_level: int | None = None,
    name: str | None = None,
    required: Sequence[str] | None = None,
    traceable: bool = False,
) -> Any:
    """Make a pass of ``(mod, ctx) -> mod``, or of a class with ``transform_module``."""
    return _decorator(
        pass_func, opt_level, name, required, traceable, ModulePass, "transform_module"
    )


def function_pass_decorator(kind: type, method: str = "transform_function") -> Any:
    """The decorator of passes over functions of one class (tir.transform, relax.transform)."""

    def decorator(
        pass_func: Decorated | None = None,
        opt_level: int | None = None,
        name: str | None = None,
        required: Sequence[str] | None = None,
        traceable: bool = False,
    ) -> Any:
        """Make a pass over functions of ``(func, mod, ctx) -> func``, or of a class with a method.

        The method of a class is ``transform_function``. As a decorator: ``@...(opt_level=0)``.
        """

        def make(function: Decorated, info: PassInfo) -> Pass:
            return FunctionPass(function, info, kind)

        return _decorator(pass_func, opt_level, name, required, traceable, make, method)

    return decorator


def pass_constructor(
    name: str,
    function: Callable[Concatenate[Subject, P], Result],
    as_pass: Callable[[Callable[[Subject], Result]], SomePass],
) -> Callable[P, SomePass]:
    """The function of that name which makes a pass of ``function``, a recursive walk.

    It takes the arguments of ``function`` after the first, and has its docstring. ``as_pass`` makes
    the pass from the function of what is walked alone.
    """
    walk, signature = deep_recursion(function), inspect.signature(function)
    options = signature.replace(parameters=list(signature.parameters.values())[1:])

    def construct(*args: P.args, **kwargs: P.kwargs) -> SomePass:
        try:
            options.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{name}() {error}") from None
        return as_pass(lambda subject: walk(subject, *args, **kwargs))

    construct.__name__ = construct.__qualname__ = name
    construct.__module__, construct.__doc__ = function.__module__, function.__doc__
    vars(construct)["__signature__"] = options
    return construct


def define_module_pass(
    name: str, function: Callable[Concatenate[IRModule, P], IRModule], opt_level: int = 0
) -> Callable[P, ModulePass]:
    """The constructor of the pass that runs ``function(mod, ...)`` on the module."""

    def as_pass(run: Callable[[IRModule], IRModule]) -> ModulePass:
        return ModulePass(lambda mod, _ctx: run(mod), PassInfo(opt_level, name))

    return pass_constructor(name, function, as_pass)


def ApplyPassToFunction(  # noqa: N802 - TVM's name
    transform: Pass, func_name_regex: str, error_if_no_function_matches_regex: bool = False
) -> Pass:
    """Run a pass on the functions whose whole name matches a regular expression."""
    pattern = re.compile(func_name_regex)

    def run(mod: IRModule, ctx: PassContext) -> IRModule:
        chosen = {v: f for v, f in mod.functions.items() if pattern.fullmatch(v.name_hint)}
        if not chosen:
            if error_if_no_function_matches_regex:
                raise PassError(f"no function matches {func_name_regex!r}")
            return mod
        part = transform(IRModule(chosen, None, mod.attrs, mod.global_infos))
        result = mod.clone()
        result.update(part)
        return result

    return ModulePass(run, PassInfo(0, f"ApplyPassToFunction({transform.info.name})"))


def PrintIR(header: str = "") -> Pass:  # noqa: N802 - TVM's name
    """A pass that prints the module."""

    def run(mod: IRModule, ctx: PassContext) -> IRModule:
        print(f"{header}\n{mod.script()}" if header else mod.script())  # noqa: T201 - its purpose
        return mod

    return ModulePass(run, PassInfo(0, "PrintIR"))
