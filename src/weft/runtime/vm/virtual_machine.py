"""VirtualMachine: runs the functions of an Executable (design.md 3.9).

A function that has a native entry runs as one native call; every other runs as bytecode
(weft.runtime.vm.bytecode). Both give equal results; ``exec_mode="bytecode"`` chooses the second for
all. A machine holds no state between calls but its stateful inputs, so threads may share it.
"""

from __future__ import annotations

import difflib
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from weft.runtime.call.native_entry import make_entry
from weft.runtime.call.tensor_call import TensorCall, make_tensor_call
from weft.runtime.containers import ShapeTuple
from weft.runtime.device import Device, require_cpu
from weft.runtime.profiling import Recorder, Report
from weft.runtime.registry import PackedFunc, get_global_func
from weft.runtime.timing import Evaluator
from weft.runtime.vm import (  # noqa: F401 - they register what compiled code calls
    data_dependent,
    interrupts,
    rows,
    sequences,
)
from weft.runtime.vm.bytecode import VMFunction
from weft.runtime.vm.executable import Executable, first_names
from weft.runtime.vm.frames import Prepared
from weft.runtime.vm.interpreter import (
    Closure,
    Interpreted,
    checked_arguments,
)
from weft.support.errors import (
    IRIndexError,
    IRKeyError,
    IRTypeError,
    IRValueError,
    TVMError,
    UnsupportedError,
    wrong_type,
)
from weft.support.public_entry import public_entry

METHODS: Final = frozenset(
    "get_function_arity get_function_param_name get_output get_output_arity invoke_closure "
    "invoke_stateful save_function set_input".split()
)
"""What a machine gives under these names, as TVM's does."""


class VirtualMachine:
    """Runs an Executable on a device: ``vm["main"](x, w)``.

    ``exec_mode`` is ``"native"`` (``"compiled"`` means the same), or ``"bytecode"`` for all
    functions. Raises an error with the argument's position and name, the expected and the found
    shape or dtype where an argument does not fit.
    """

    NAIVE_ALLOCATOR = 1
    POOLED_ALLOCATOR = 2

    def __init__(
        self,
        rt_mod: Executable,
        device: Device | Sequence[Device] | None = None,
        memory_cfg: object = None,
        profile: bool = False,
        *,
        exec_mode: str = "native",
    ) -> None:
        if not isinstance(rt_mod, Executable):
            raise wrong_type("VirtualMachine: expected what relax.build returns", rt_mod)
        if exec_mode not in ("native", "bytecode", "compiled"):
            raise IRValueError(
                f"exec_mode: expected 'native', 'compiled' or 'bytecode', got {exec_mode!r}"
            )
        _check_memory(memory_cfg)
        devices: list[Any] = (
            list(device) if isinstance(device, list | tuple) else [device or Device(1, 0)]
        )
        for item in devices:
            require_cpu(item)
        self.executable = rt_mod
        self.instrument: Callable[..., object] | None = None
        self.recorder: Recorder | None = None
        self._saved: dict[str, tuple[str, tuple[object, ...], bool]] = {}
        self._prepared: dict[str, Prepared] = {}
        self._inputs: dict[str, tuple[object, ...]] = {}
        self._outputs: dict[str, object] = {}
        self._callables: dict[str, Callable[..., object]] = {}
        self._native = exec_mode != "bytecode"

    def __repr__(self) -> str:
        names = first_names(self.executable.program.functions)
        return f"{type(self).__name__}(functions=[{names}])"

    @property
    def module(self) -> VirtualMachine:
        """The machine as a module of functions (TVM's name): the machine itself.

        So ``vm.module["main"](x)`` and ``vm.module.time_evaluator("main", dev)(x)`` work.
        """
        return self

    def __getitem__(self, name: str) -> PackedFunc:
        """The function of that name; IRKeyError with the names there are.

        Where the module has no such function, the names of ``METHODS`` are the machine's own, so
        that ``vm.time_evaluator("invoke_stateful", dev)("main")`` times a stateful call.
        """
        if not isinstance(name, str):
            raise wrong_type("expected the name of a function", name)
        if name in self._saved:
            return PackedFunc(partial(self._call_saved, *self._saved[name]), name)
        if name in METHODS and name not in self.executable.program.functions:
            return PackedFunc(getattr(self, name), name)
        return PackedFunc(self.callable_of(name), name)

    def _function(self, name: str) -> VMFunction:
        functions = self.executable.program.functions
        if not isinstance(name, str):
            raise wrong_type("expected the name of a function", name)
        function = functions.get(name)
        if function is None:
            nearest = difflib.get_close_matches(name, functions, n=1)
            names = ", ".join(list(functions)[:8]) or "none"
            hint = f"; did you mean {nearest[0]!r}?" if nearest else f"; it has: {names}"
            raise IRKeyError(f"the virtual machine has no function {name!r}{hint}")
        return function

    def callable_of(self, name: str) -> Callable[..., Any]:
        """What runs the function of that name: natively or as bytecode."""
        runner = self._callables.get(name)
        if runner is None:
            function = self._function(name)
            if function.native is None or not self._native or self.instrument is not None:
                return Interpreted(self, function)  # not kept: it has the machine
            host = self.executable.hosts[name]
            runner = make_entry(function.native, host, self.executable.program.constants)
            if function.native.layout is not None:
                runner = _explained(runner, function)
            self._callables[name] = runner
        return runner

    def prepared(self, function: VMFunction) -> Prepared:
        """The instructions of a function of this machine, prepared at the first call of it."""
        known = self._prepared.get(function.name)
        if known is None:
            constants, kernels = self.executable.program.constants, self.executable.kernels
            known = self._prepared[function.name] = Prepared(function, constants, kernels)
        return known

    def make_tensor_call(
        self,
        name: str,
        tensor_class: type,
        threads: int | None,
        ranges: Mapping[str, tuple[int | None, int | None]] | None = None,
    ) -> TensorCall | None:
        """The native call of a function on a framework's tensors (runtime.call.tensor_call)."""
        entry = self._function(name).native
        if entry is None or not self._native or self.instrument is not None:
            return None
        executable = self.executable
        constants, host = executable.program.constants, executable.hosts[name]
        return make_tensor_call(entry, host, constants, tensor_class, threads, ranges)

    @public_entry("the call of a virtual machine")
    def run(self, name: str, arguments: Sequence[object]) -> Any:
        """Call a function by name."""
        return self.callable_of(name)(*arguments)

    def save_function(
        self,
        func_name: str,
        saved_name: str,
        *args: object,
        include_return: bool = True,
        **kwargs: object,
    ) -> None:
        """Keep a call under a new name, which takes no arguments.

        ``include_return=False`` drops the result, for timing. The arguments are checked now.
        Raises IRTypeError where ``saved_name`` is no text, IRValueError where it names a function
        of the module, which it would hide.
        """
        function = self._function(func_name)
        if not isinstance(saved_name, str) or not isinstance(include_return, bool):
            raise IRTypeError(
                "save_function: expected a new name and include_return True or False, got "
                f"{saved_name!r:.60} and {include_return!r:.60}"
            )
        if not saved_name or saved_name in self.executable.program.functions:
            raise IRValueError(
                "save_function: expected a new name, got "
                + (f"that of the function {saved_name!r}" if saved_name else "''")
            )
        arguments = (*args, *self._named(function, len(args), kwargs))
        checked_arguments(function, arguments, {})
        self._saved[saved_name] = func_name, arguments, include_return

    def _call_saved(self, name: str, arguments: tuple[object, ...], include_return: bool) -> object:
        result = self.run(name, arguments)
        return result if include_return else None

    def _named(
        self, function: VMFunction, given: int, kwargs: dict[str, object]
    ) -> tuple[object, ...]:
        names = [name for name, _ in function.params[given:]]
        unknown = set(kwargs) - set(names)
        if unknown:
            raise IRValueError(
                f"{function.name}: there is no parameter {', '.join(sorted(unknown))}; "
                f"the parameters are {', '.join(name for name, _ in function.params)}"
            )
        return tuple([kwargs[name] for name in names if name in kwargs])

    def set_input(self, func_name: str, *args: object, **kwargs: object) -> None:
        """Keep the arguments of the next ``invoke_stateful``; they are checked now."""
        function = self._function(func_name)
        arguments = (*args, *self._named(function, len(args), kwargs))
        self._inputs[func_name] = tuple(checked_arguments(function, arguments, {}))

    def invoke_stateful(self, func_name: str) -> None:
        """Run a function on the inputs that ``set_input`` kept; ``get_outputs`` has the result."""
        self._function(func_name)
        if func_name not in self._inputs:
            raise IRValueError(f"{func_name}: no inputs are set; call set_input first")
        self._outputs[func_name] = self.run(func_name, self._inputs[func_name])

    def get_outputs(self, func_name: str) -> Any:
        """The result of the last ``invoke_stateful``."""
        if func_name not in self._outputs:
            raise IRValueError(f"{func_name}: there is no output; call invoke_stateful first")
        return self._outputs[func_name]

    def get_output(self, func_name: str, *indices: int) -> Any:
        """A field of the last ``invoke_stateful``'s result: ``indices`` lead down nested tuples."""
        value = self.get_outputs(func_name)
        for depth, index in enumerate(indices):
            if not _is_fields(value) or not 0 <= index < len(value):
                kind = f"a tuple of {len(value)}" if _is_fields(value) else type(value).__name__
                raise IRIndexError(
                    f"{func_name}: expected a field at {indices[: depth + 1]} of the output, found "
                    f"{kind}"
                )
            value = value[index]
        return value

    def get_output_arity(self, func_name: str, *indices: int) -> int:
        """How many fields the result of the last ``invoke_stateful`` has, or that field of it.

        -1 where it is no tuple (a shape is none).
        """
        value = self.get_output(func_name, *indices)
        return len(value) if _is_fields(value) else -1

    def get_function_arity(self, func_name: str) -> int:
        """How many parameters a function has."""
        return len(self._function(func_name).params)

    def get_function_param_name(self, func_name: str, index: int) -> str:
        """The name of a parameter; IRIndexError where there is no such parameter."""
        params = self._function(func_name).params
        if not isinstance(index, int):
            raise wrong_type(f"{func_name}: expected a number", index)
        if not 0 <= index < len(params):
            raise IRIndexError(f"{func_name}: expected a parameter of {len(params)}, got {index}")
        return params[index][0]

    def invoke_closure(self, closure: Closure, *args: object) -> Any:
        """Call a closure."""
        if not callable(closure):
            raise wrong_type("expected a closure", closure)
        return closure(*args)

    def set_instrument(self, instrument: Callable[..., object] | str) -> None:
        """Call ``instrument(func, name, before_run, ret_value, *args)`` around every call.

        Functions then run as bytecode, so that each kernel is seen.
        """
        function = get_global_func(instrument) if isinstance(instrument, str) else instrument
        if not callable(function):
            raise wrong_type("set_instrument: expected a function or its name", function)
        self.instrument = function
        self._callables.clear()

    def profile(self, func_name: str, *args: object) -> Report:
        """Run a function once as bytecode and report what each operator took.

        Without arguments it runs on those that ``set_input`` kept. A run before it warms up.
        """
        arguments = self._inputs[func_name] if not args and func_name in self._inputs else args
        observed = VirtualMachine(self.executable, exec_mode="bytecode")
        observed.run(func_name, arguments)
        observed.recorder = recorder = Recorder(self.executable.flop_counts)
        start = time.perf_counter()
        observed.run(func_name, arguments)
        return recorder.report((time.perf_counter() - start) * 1e6)

    def time_evaluator(
        self,
        func_name: str,
        dev: Device | None = None,
        number: int = 10,
        repeat: int = 1,
        min_repeat_ms: int = 0,
        cooldown_interval_ms: int = 0,
        repeats_to_cooldown: int = 1,
        f_preproc: str = "",
    ) -> Evaluator:
        """A function that times calls of ``func_name`` and returns a BenchmarkResult."""
        require_cpu(dev)
        if f_preproc:
            raise UnsupportedError("time_evaluator: f_preproc is not available yet")
        return Evaluator(
            self[func_name],
            number,
            repeat,
            min_repeat_ms,
            cooldown_interval_ms=cooldown_interval_ms,
            repeats_to_cooldown=repeats_to_cooldown,
        )


VirtualMachine.__module__ = "weft.relax.vm"


def _check_memory(memory_cfg: object) -> None:
    """Raise for what is no allocator by TVM's names: a text, or one for each device in a dict.

    All of them get weft's own memory plan: there is one device, and memory is planned at build.
    """
    if memory_cfg is None:
        return
    if not isinstance(memory_cfg, str | dict):
        raise IRTypeError(
            "memory_cfg: expected None, 'naive', 'pooled' or a dict from devices to them, got "
            f"{memory_cfg!r:.60}"
        )
    for name in memory_cfg.values() if isinstance(memory_cfg, dict) else [memory_cfg]:
        if name not in ("naive", "pooled"):
            raise IRValueError(f"memory_cfg: expected 'naive' or 'pooled', got {name!r:.60}")
    for device in memory_cfg if isinstance(memory_cfg, dict) else ():
        require_cpu(device)


def _is_fields(value: object) -> bool:
    return isinstance(value, tuple) and not isinstance(value, ShapeTuple)


def _explained(entry: Callable[..., object], function: VMFunction) -> Callable[..., object]:
    """The entry of a function with nested parameters; its errors name the place in the argument."""

    def call(*arguments: object) -> object:
        try:
            return entry(*arguments)
        except TVMError:
            checked_arguments(function, arguments, {})
            raise

    return call
