"""CompiledModel: an Executable that is called like the model it was compiled from (design.md 3.9).

A call binds its arguments by the model's signature (weft.runtime.model.signature), hands the memory
of tensors and arrays to the native entry without a copy, and gives results back in the model's own
structure: as torch tensors if one went in, else as numpy arrays. Any number of threads may call.
"""

from __future__ import annotations

import os
import sys
import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, Final, NoReturn

import numpy as np

from weft.runtime.artifact import weft_file
from weft.runtime.artifact.weft_file import Artifact, as_path
from weft.runtime.call.tensor_call import TensorCall
from weft.runtime.model.hot_shapes import HotShapes
from weft.runtime.model.memory_report import MemoryReport, report_memory
from weft.runtime.model.misfits import explain
from weft.runtime.model.result_memory import may_return_foreign_memory, own_results
from weft.runtime.model.signature import Signature, Tree, check_range, rebuild
from weft.runtime.model.values import (
    as_array,
    converted,
    holds_any,
    readable,
    to_numpy,
    to_torch,
    write_into,
)
from weft.runtime.module import Module
from weft.runtime.native.object_code import check_processor
from weft.runtime.ndarray import NDArray
from weft.runtime.profiling import Report
from weft.runtime.providers import provide_for
from weft.runtime.registry import PackedFunc
from weft.runtime.threads.parallel import exchange_own_count, own_num_threads
from weft.runtime.timing import BenchmarkResult, Evaluator
from weft.runtime.vm.bytecode import Pattern
from weft.runtime.vm.executable import Executable
from weft.runtime.vm.patterns import symbol_axes
from weft.runtime.vm.virtual_machine import VirtualMachine
from weft.support import slots
from weft.support.errors import IRValueError, TVMError, UnsupportedError
from weft.support.public_entry import public_entry, tell_fault

FOREIGN_FORMATS: Final = (".onnx", ".pt", ".pt2", ".pth", ".safetensors", ".so", ".py")
"""The ends of names under which a user expects another format than weft's."""
MANY_THREADS: Final = max(256, 8 * (os.cpu_count() or 1))
"""More threads than that are taken for a slip of the hand."""


class CompiledModel(Executable):
    """What ``weft.compile`` returns for a model, and ``weft.load`` for a file.

    Args:
        executable: the built program.
        signature: how the model is called.
        entry: the function of the program that a call runs.
        num_threads: threads of parallel loops in this model's calls; None: the process's number.
        states: the tensors that calls change, as ``signature.states`` lists them.
        module: gives the IRModule after import; None where it is not known any more.
        text: gives that module's text; None likewise.
        stored: the module as a file has it, of a model that comes from one.
    """

    def __init__(
        self,
        executable: Executable,
        signature: Signature,
        *,
        entry: str = "main",
        num_threads: int | None = None,
        states: Sequence[object] = (),
        module: Callable[[], object] | None = None,
        text: Callable[[], str] | None = None,
        stored: str | None = None,
    ) -> None:
        super().__init__(
            executable.program, executable.kernels, executable.hosts,
            lambda: executable.flop_counts, executable.code,
        )  # fmt: skip
        self.signature = signature
        self.entry = entry
        self.verification: object = None  # what verify=True compared (weft.relax.reference.verify)
        self.tuning: object = None  # what a search did (weft.driver.tuning.report.TuningReport)
        self._tensor_call: TensorCall | None
        self.compiled_as: object = None  # how the driver compiled it (weft.driver.compile)
        self.hot_shapes: HotShapes[CompiledModel] | None = None
        """Programs for sizes that most calls have (``weft.driver.specialization`` sets it)."""
        self.num_threads = num_threads
        self.states = list(states)
        self.machine = VirtualMachine(executable)  # not this object: it would keep itself alive
        self._module, self._text, self._stored = module, text, stored
        self._lock = threading.Lock()
        function = executable.program.functions[entry]
        self._ranges = _range_checks(signature, function.params)
        self._returns_foreign_memory = may_return_foreign_memory(function)
        self._plain = signature.is_plain
        self._writes = bool(signature.states or signature.written)
        self._is_direct = self._plain and not self._writes
        states_at = {state.input for state in signature.states}
        self._given_at = [i for i in range(len(signature.inputs)) if i not in states_at]

    @property
    def num_threads(self) -> int | None:
        """Threads of parallel loops in this model's calls; None: the process's number."""
        return self._num_threads

    @num_threads.setter
    def num_threads(self, count: int | None) -> None:
        if isinstance(count, int) and count > MANY_THREADS:
            warnings.warn(
                f"num_threads={count}: this machine has {os.cpu_count()} cores; more threads than "
                "cores slow every call down. None uses the process's number",
                stacklevel=2,
            )
        self._num_threads = count
        self._tensor_call = None  # one has the number in it
        if self.hot_shapes is not None:
            self.hot_shapes.set_num_threads(count)

    def __call__(self, *args: object, **kwargs: object) -> Any:
        """Run the model; see the class."""
        hot = self.hot_shapes
        if hot is None or self.machine.instrument is not None:
            return self.run_as_compiled(args, kwargs)
        return hot.call(self, args, kwargs)

    def run_as_compiled(self, args: Sequence[object], kwargs: Mapping[str, object]) -> Any:
        """A call of the program that the model was compiled to, whatever the sizes."""
        try:
            if self._is_direct and not kwargs and self.machine.instrument is None:
                call = self._tensor_call or self._make_tensor_call
                result = call(*args)  # most calls
                if result is not NotImplemented:
                    return result
            given = self.given_inputs(args, kwargs)
            if self.signature.states:
                with self._lock:  # a state is read, computed and written as one step
                    return self._run(given)
            return self._run(given)
        except Exception as error:
            tell_fault(error, f"the call of {self.signature.name}")
            raise

    def _make_tensor_call(self, *args: object) -> object:
        """Run a first call; one on tensors of torch decides how such calls run from now on."""
        torch = sys.modules.get("torch")
        if torch is None or not args or type(args[0]) is not torch.Tensor:
            return NotImplemented
        machine, tree = self.machine, self.signature.result
        ranges = {name: (low, high) for name, low, high in self.signature.ranges}
        call = machine.make_tensor_call(self.entry, torch.Tensor, self.num_threads, ranges)
        if call is None:
            self._is_direct = False
            return NotImplemented
        self._tensor_call = call if tree == ("leaf", 0) else _rebuilding(call, tree)
        return self._tensor_call(*args)

    def given_inputs(
        self, args: Sequence[object], kwargs: Mapping[str, object]
    ) -> Sequence[object]:
        """The inputs of ``main`` as the caller and the model hold them."""
        signature = self.signature
        if self._plain and not kwargs and len(args) == len(signature.inputs):
            return args
        given = signature.flatten(args, kwargs)
        for state, tensor in zip(signature.states, self.states, strict=True):
            given[state.input] = tensor
        return given

    def _values(self, args: Sequence[object], kwargs: Mapping[str, object]) -> list[object]:
        return [readable(value) for value in self.given_inputs(args, kwargs)]

    def _run(self, given: Sequence[object]) -> Any:
        values = [readable(value) for value in given]
        outputs = self._outputs(values)
        if self._writes:
            self._write_back(given, outputs)
        return self._returned(outputs, to_torch if self._wants_torch(values) else to_numpy)

    def _outputs(self, values: Sequence[object]) -> Sequence[NDArray]:
        """What the entry gives for inputs whose memory it can read."""
        try:
            if self._ranges:
                self._check_ranges(values)
            result = self._call_entry(values)
        except (TVMError, AttributeError, IndexError):
            self._explain(values)
            raise
        outputs = result if self.signature.unpacked else (result,)
        if self._returns_foreign_memory:
            outcome: Sequence[NDArray] = own_results(outputs, values, self.program.constants)
            return outcome
        return outputs

    def _returned(self, outputs: Sequence[object], convert: Callable[[NDArray], object]) -> Any:
        """Outputs in the model's own structure."""
        return rebuild(self.signature.result, [converted(item, convert) for item in outputs])

    def _call_entry(self, values: Sequence[object]) -> Any:
        entry = self.machine.callable_of(self.entry)
        if self.num_threads is None:
            return entry(*values)
        before = exchange_own_count(self.num_threads)
        try:
            return entry(*values)
        finally:
            exchange_own_count(before)

    def _write_back(self, given: Sequence[object], outputs: Sequence[NDArray]) -> None:
        """Give states, and inputs that the model writes, their new content."""
        for state, tensor in zip(self.signature.states, self.states, strict=True):
            write_into(tensor, outputs[state.output])
        for source, output in self.signature.written:
            write_into(given[source], outputs[output])  # a value may be a compact copy

    def _check_ranges(self, values: Sequence[Any]) -> None:
        for where, source, axis, low, high in self._ranges:
            check_range(where, values[source].shape[axis], low, high)

    def _threads(self) -> AbstractContextManager[object]:
        return nullcontext() if self.num_threads is None else own_num_threads(self.num_threads)

    def _wants_torch(self, values: Sequence[object]) -> bool:
        torch = sys.modules.get("torch")
        if torch is None:
            return False
        given = [values[place] for place in self._given_at]
        if torch.Tensor in [type(value) for value in given] or holds_any(given, torch.Tensor):
            return True
        return self.signature.source == "torch" and not holds_any(given, (np.ndarray, NDArray))

    def _explain(self, values: Sequence[object]) -> None:
        """Raise the error of the first input that does not fit, by its place in the arguments."""
        explain(self.signature, self.program.functions[self.entry].params, values)

    @property
    def mod(self) -> Any:
        """The IRModule after import; UnsupportedError where a file does not hold it."""
        if self._module is None:
            raise UnsupportedError(
                f"{self.signature.name}: this file keeps the weights in the form that the compiled "
                "code uses, so the imported module cannot be had back; show() prints its text"
            )
        return self._module()

    def set_module(self, module: Callable[[], object]) -> None:
        """Say where the imported module can be had."""
        self._module = module

    def show(self) -> None:
        """Print the imported module as a script."""
        print(self.script())  # noqa: T201 - show prints

    def script(self) -> str:
        """The imported module as a script, without the content of its constants."""
        return self._text() if self._text is not None else str(self.mod.script())

    def profile(self, *args: object, **kwargs: object) -> Report:
        """Run once as bytecode after a run to warm up: what each kernel took."""
        values = self._values(args, kwargs)
        self._explain(values)
        self._check_ranges(values)
        with self._threads():
            return self._program_for(args, kwargs).machine.profile(self.entry, *values)

    def viz(self, *args: object, **kwargs: object) -> Any:
        """What the compiler did, as a page: a notebook shows it, ``.save(path)`` writes it.

        The model is compiled once more to see it. Arguments are those of a call, which is measured
        for the page's times; without any there are no times.
        """
        return slots.picture.get()(self, args, kwargs)

    def benchmark(
        self,
        *args: object,
        number: int = 1,
        repeat: int = 20,
        min_repeat_ms: int = 10,
        **kwargs: object,
    ) -> BenchmarkResult:
        """Seconds of a call on these inputs: median, mean, spread; see ``BenchmarkResult``.

        Each of ``repeat`` times is the mean of ``number`` calls, or of as many as take
        ``min_repeat_ms``. A model's own keyword arguments of these names are given by position.
        """
        program = self._program_for(args, kwargs)
        values = self._values(args, kwargs)
        program._run(values)  # checks, warms up
        entry = program.machine.callable_of(self.entry)
        with self._threads():
            return Evaluator(PackedFunc(entry, self.entry), number, repeat, min_repeat_ms)(*values)

    def specialize(self, *args: object, **kwargs: object) -> None:
        """Compile a program for the sizes of these inputs, which calls of these sizes run then.

        Sizes that calls spend much time on get one by themselves, in the background
        (``weft.compile(hot_shapes=)``); this method waits for it. UnsupportedError for a model that
        was not compiled for symbolic sizes, or not in this process.
        """
        if self.hot_shapes is None:
            raise UnsupportedError(
                f"{self.signature.name}: only a model that weft.compile gave for symbolic sizes, "
                "with a cache and with hot_shapes above 0, can have programs for single sizes"
            )
        extents = self.hot_shapes.extents_of(self, args, kwargs)
        if extents is None:
            self._explain(self._values(args, kwargs))
            raise IRValueError(f"{self.signature.name}: expected inputs of a call")
        self.run_as_compiled(args, kwargs)  # raises where a call would
        self.hot_shapes.compile(extents)

    def _program_for(self, args: Sequence[object], kwargs: Mapping[str, object]) -> CompiledModel:
        """This model, or the program for the sizes of these inputs."""
        hot = self.hot_shapes
        return self if hot is None else hot.program_for(self, args, kwargs)

    def constant_bytes(self) -> int:
        """How many bytes the weights have."""
        return sum([constant._array.nbytes for constant in self.program.constants])

    def memory(self, *args: object, **kwargs: object) -> MemoryReport:
        """Bytes of working memory, constants and outputs; for inputs of these shapes if given."""
        values = self._values(args, kwargs) if args or kwargs else None
        if values is not None:
            self._explain(values)
            self._check_ranges(values)
        limits = {name: high for name, _, high in self.signature.ranges}
        return report_memory(self.program, self.entry, limits, values)

    @public_entry("save")
    def save(self, path: str | Path) -> None:
        """Write the model to one file, which ``weft.load`` reads (weft.runtime.artifact.weft_file).

        A model for the target ``wasm`` becomes a folder, which node and browsers run.

        Raises ArtifactError where the file cannot be written, UnsupportedError where the model
        holds something that has no form on disk.
        """
        target = as_path(path)
        if target.suffix in FOREIGN_FORMATS:
            raise IRValueError(
                f"save: a compiled model is no {target.suffix} file, and weft would write its own "
                f"format under that name; write {target.with_suffix('.weft').name}"
            )
        weft_file.write_model(self.to_artifact(), target)

    def to_bytes(self) -> bytes:
        """What ``save`` writes."""
        return self.to_artifact().to_bytes()

    def __reduce__(self) -> tuple[Callable[..., CompiledModel], tuple[bytes, str, int | None]]:
        """Pickled as what ``save`` writes; so is a copy, whose states and weights are its own."""
        return _from_bytes, (self.to_bytes(), self.signature.name, self.num_threads)

    def to_artifact(self) -> Artifact:
        """The model as files hold it."""
        module = self._module_json() if self._stored is None else self._stored
        states = [as_array(state) for state in self.states]
        return self._artifact(
            self.signature, self.entry, states=states, module=module, text=self.script()
        )

    def _module_json(self) -> str:
        """The imported module with its arrays by their numbers among the constants.

        Empty where one is not among them: weights are stored once, in the form that the code uses.
        """
        if self._module is None:
            return ""
        numbers = {id(constant): i for i, constant in enumerate(self.program.constants)}
        text: str = slots.module_json.get()[0](self._module(), numbers)
        return text

    def close(self) -> None:
        """Let go of code, weights and working memory now; IRValueError where it is used later.

        Calls that are under way in other threads end as usual.
        """
        self._is_direct, self._tensor_call, self.hot_shapes = False, None, None
        closed: Any = _Closed(self.signature.name)
        self.machine = self.program = self.kernels = self.hosts = self.code = closed
        self._flops = self._module = self._text = closed
        self.states, self._stored = [], None
        self.__dict__.pop("flop_counts", None)

    def __repr__(self) -> str:
        names = ", ".join(self.signature.inputs)
        return f"CompiledModel({self.signature.name}({names}))"


class _Closed:
    """Stands for the parts of a model that is closed."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, _: str) -> NoReturn:
        raise IRValueError(f"{self._name}: the model is closed; compile or load it again")

    __call__ = __getitem__ = __iter__ = lambda self, *_: self.machine


def _range_checks(
    signature: Signature, params: Sequence[tuple[str, Pattern]]
) -> list[tuple[str, int, int, int | None, int | None]]:
    """Which axis of which input says what a symbol with a range is."""
    checks, places = [], symbol_axes([pattern for _, pattern in params])
    for name, low, high in signature.ranges:
        if name in places:
            source, axis = places[name]
            where = f"{signature.name}: argument {signature.inputs[source]}: the extent of axis"
            checks.append((f"{where} {axis} ({name})", source, axis, low, high))
    return checks


def _rebuilding(call: TensorCall, tree: Tree) -> TensorCall:
    """A native call whose outputs are given in the model's own structure."""

    def rebuilt(*args: object) -> object:
        outputs = call(*args)
        if outputs is NotImplemented:
            return outputs
        return rebuild(tree, outputs if type(outputs) is tuple else (outputs,))

    return rebuilt


@public_entry("weft.load")
def load(path: str | Path, *, num_threads: int | None = None) -> CompiledModel:
    """The model in a ``.weft`` file, or in a library that ``export_library`` wrote.

    The file holds machine code, which calls of the model run with the rights of this process: load
    it only from where you would load a shared library. Damage is found, a stranger's intent is not.

    Args:
        path: the file.
        num_threads: as for ``weft.compile``.

    Raises ArtifactError where the file cannot be read; its subclasses tell a damaged or foreign
    file (ArtifactFormatError), one of a later weft (ArtifactVersionError) and one for another
    machine (ArtifactTargetError).
    """
    place = as_path(path)
    return _loaded(weft_file.read_file(place), place, num_threads)


def _from_bytes(data: bytes, name: str, num_threads: int | None) -> CompiledModel:
    """The model that ``CompiledModel.to_bytes`` gave; errors call it ``name``."""
    return _loaded(weft_file.read_bytes(data, name), Path(name), num_threads)


def _loaded(artifact: Artifact, place: Path, num_threads: int | None) -> CompiledModel:
    try:
        if artifact.code is not None:
            check_processor(artifact.code)
        return from_artifact(artifact, num_threads=num_threads)
    except (TVMError, MemoryError):
        raise
    except Exception as error:  # what a reader did not stumble over
        raise weft_file.damage_of(place, error) from error


def from_artifact(artifact: Artifact, *, num_threads: int | None = None) -> CompiledModel:
    """The model that an artefact holds, its code loaded if this processor can run it."""
    provide_for(artifact.program.functions.values())
    functions = {} if artifact.code is None else artifact.code.load()
    by_symbol = {function.spec.native_symbol: function for function in functions.values()}
    hosts = {
        name: by_symbol[function.native.spec.native_symbol]
        for name, function in artifact.program.functions.items()
        if function.native is not None
    }
    kernels = Module({name: functions[name] for name in artifact.kernels})
    executable = Executable(
        artifact.program, kernels, hosts, lambda: artifact.flops, code=artifact.code
    )
    constants = artifact.program.constants

    def module() -> Any:
        return slots.module_json.get()[1](artifact.module, constants)

    return CompiledModel(
        executable, artifact.signature, entry=artifact.entry, num_threads=num_threads,
        states=artifact.states, module=module if artifact.module else None,
        text=lambda: artifact.text, stored=artifact.module,
    )  # fmt: skip
