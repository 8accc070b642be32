"""torch.export, called for the user: its errors in few lines, its warnings kept quiet."""

from __future__ import annotations

import contextlib
import functools
import inspect
import io
import linecache
import logging
import sys
import threading
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, Final

import sympy
import torch
from torch._dynamo.exc import UserError, UserErrorType
from torch._subclasses import FakeTensor
from torch.export.graph_signature import InputKind
from torch.fx.experimental import _config as symbolic_config
from torch.fx.experimental.sym_node import SymNode
from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode

from weft.relax.frontend.torch.assigned_data import assigned_data
from weft.relax.frontend.torch.assignments import Assignments
from weft.relax.frontend.torch.data_checks import erase_unused_reads, passed_checks
from weft.relax.frontend.torch.deferred_guards import may_be_ignored
from weft.relax.frontend.torch.derivatives import (
    differentiates,
    exported_below_autograd,
    has_derivatives,
)
from weft.relax.frontend.torch.example_inputs import prepared
from weft.relax.frontend.torch.forgotten import changes_what_it_holds, warn_of_forgotten
from weft.relax.frontend.torch.kept_tensors import written
from weft.relax.frontend.torch.known_numbers import erase_reads, known_numbers, numbers_of
from weft.relax.frontend.torch.reshapes import copied_reshapes
from weft.relax.frontend.torch.stand_ins import stand_ins
from weft.relax.frontend.torch.told_shapes import told_shapes
from weft.relax.frontend.torch.untouched import untouched
from weft.support.errors import TVMError
from weft.support.forks import hold_over_forks
from weft.support.progress import phase

_SHOWN: Final = 4
_WIDTH: Final = 240
_NOISE: Final = (
    "TORCHDYNAMO", 'File "/', "Caused by:", "For more information", "For extended logs",
    "The error above occurred when calling torch.export", "Use tlparse", "Original traceback:",
    "While executing %", "None", "If you suspect the guard", "For more debugging help",
    "frame #", "Exception raised from",
)  # fmt: skip
"""Beginnings of lines of torch's reports that tell a user of weft nothing."""
_STACK: Final = "User stack:"
"""The beginning of a paragraph that begins in torch; what stops is told by ``stopping_place``."""
_NOT_MODELS: Final = tuple(Path(file).parent for file in (torch.__file__, sympy.__file__, __file__))
"""Folders of torch, of what it reasons with, and of what calls it."""
_STANDARD: Final = Path(contextlib.__file__).parent
"""The folder of Python's own modules; packages may lie in folders within."""
_ON_DATA: Final = ("data-dependent", "Data dependent", "data dependent", "zuf0", "u0")
_REWRITE: Final = (
    "rewrite what depends on the values of tensors (torch.cond, torch.where), or use "
    'torch.compile(model, backend="weft"), which splits the model there'
)
_EXPERTS: Final = (
    "torch.export captures no loop over the experts that were chosen; call "
    'model.set_experts_implementation("grouped_mm") first'
)
_INPUTS: Final = "check the example inputs against the parameters of the model's forward"
_DYNAMIC: Final = (
    "check the example inputs and dynamic_shapes: a tuple like the arguments, or a dict by their "
    "names, of {axis: torch.export.Dim(name)}"
)
_OTHER_SIZES: Final = (
    "the model does something else for other sizes: give the axis a range (Dim(name, min=, max=)) "
    "or a divisor (4 * Dim(name)) with which this holds, or leave it out of dynamic_shapes and "
    "compile once for each size"
)
_NO_SYMBOLS: Final = (
    "torch has no code of symbolic sizes for what this line calls: leave the axes out of "
    "dynamic_shapes and compile once for each size"
)
_SPECIALIZED: Final = "your code specialized it to be a constant"
_CONSTANT: Final = (
    "this line needs a plain number, as range(size), int(size) and float(size) do: leave the axis "
    "out of dynamic_shapes and compile once for each size, or compute it with torch (torch.arange, "
    "torch.while_loop)"
)
_RESULTS: Final = (
    "return tensors, in tuples, lists and dicts; of a cache of keys and values, "
    "model.config.use_cache = False rids the results"
)
_RUN: Final = "check that the model runs in PyTorch on these example inputs, on the CPU"
_UNTRACEABLE: Final = (
    "the line may run in PyTorch and not while torch.export traces it: rewrite it, or use "
    'torch.compile(model, backend="weft"), which splits the model there'
)
_IN_TRACES: Final = ("AttributeError", "TypeError", "DynamicOutputShapeException")
"""Errors of what stands for tensors while torch traces, where the tensors themselves have none."""
EXPORTING: Final = threading.RLock()
"""Held wherever torch traces a model: torch keeps what it traces, Python's filters of warnings and
standard error for the whole process, so two threads that export at once both fail."""
hold_over_forks(EXPORTING, is_outer=True)


_IGNORES_GUARDS: Final = "prefer_deferred_runtime_asserts_over_guards"
"""A parameter of ``torch.export.export``, which releases before 2.8 lack."""


_GENERAL: Final = "backed_size_oblivious"
"""A setting of torch's, which releases before 2.7 lack."""
_LOST: Final = "fake tensor in the exported program constant's list"
"""What torch.export says where a tensor came from a call that it does not trace."""


class CaptureError(TVMError):
    """torch.export could not capture the model: control flow on data, an untraceable call ..."""


def capture(
    model: torch.nn.Module,
    args: Sequence[object],
    kwargs: Mapping[str, object] | None = None,
    dynamic_shapes: object = None,
) -> torch.export.ExportedProgram:
    """``torch.export.export`` of a model in the state it is in (``model.eval()`` is the caller's).

    Raises CaptureError with the head of torch's own report; warns of what a compiled model forgets.
    """
    args, kwargs = prepared(model, args, kwargs or {}, dynamic_shapes)
    program, others = _captured(model, args, kwargs, dynamic_shapes)
    with EXPORTING, torch.no_grad():
        warn_of_forgotten(model, args, kwargs, others)
    return program


def _captured(
    model: torch.nn.Module,
    args: tuple[object, ...],
    kwargs: dict[str, object],
    dynamic_shapes: object,
) -> tuple[torch.export.ExportedProgram, list[str]]:
    """The program, and the paths of what the model changes and the program does not."""
    with (
        phase("capture"), EXPORTING, warnings.catch_warnings(), torch.no_grad(),
        _made_constant() as places,
    ):  # fmt: skip
        warnings.simplefilter("ignore")
        try:
            with stand_ins(), passed_checks() as passed:
                assignments = Assignments(model)
                with untouched(model) as restore, assignments.noted():
                    program = _exported(model, args, kwargs, dynamic_shapes, restore)
                if changed := assignments.changed(program):
                    with untouched(model) as restore, assignments.written_back(changed):
                        program = _exported(model, args, kwargs, dynamic_shapes, restore)
            if passed:
                erase_unused_reads(program)
        except TVMError:
            raise
        except Exception as error:
            raise CaptureError(_report(model, error, dynamic_shapes is not None, places)) from error
    return program, assignments.others


def _exported(
    model: torch.nn.Module,
    args: tuple[object, ...],
    kwargs: dict[str, object],
    dynamic_shapes: object,
    restore: Callable[[], None],
) -> torch.export.ExportedProgram:
    """The exported program; of a model that differentiates by a trace of another kind.

    ``restore`` undoes before another trace what a trace did.
    """
    options: dict[str, object] = {"dynamic_shapes": dynamic_shapes, "strict": False}
    export = functools.partial(_export_quietly, torch.export.export, model, args, kwargs, **options)
    try:
        with told_shapes():
            program = _exported_by(export, model, restore)
        if not has_derivatives(program):
            return program
    except TVMError:
        raise
    except Exception as error:
        restore()
        if not differentiates(error, _LOST):
            is_readable = isinstance(error, GuardOnDataDependentSymNode) or _is_of_sizes(error)
            if not is_readable or changes_what_it_holds(model, args, kwargs):
                raise  # torch's reader of bytecode forgets what a model holds
            with told_shapes():
                return _exported_from_bytecode(export, error)
        try:
            return _export_quietly(exported_below_autograd, model, args, kwargs, dynamic_shapes)
        except Exception:  # noqa: BLE001 - whatever fails now, the first error is the one to tell
            raise error from None
    restore()
    return _export_quietly(exported_below_autograd, model, args, kwargs, dynamic_shapes)


def _export_quietly(
    export: Callable[..., torch.export.ExportedProgram], *args: Any, **kwargs: Any
) -> torch.export.ExportedProgram:
    """An exported program; a call that fails says nothing but its error, as another may follow.

    Where it fails, torch prints the graph that it has so far, and logs what it was about to do.
    """
    printed = io.StringIO()
    handlers = logging.getLogger("torch").handlers
    for handler in handlers:
        handler.addFilter(_is_asked_for)
    try:
        with redirect_stderr(printed):
            program = export(*args, **kwargs)
    finally:
        for handler in handlers:
            handler.removeFilter(_is_asked_for)
    sys.stderr.write(printed.getvalue())
    return program


def _is_asked_for(record: logging.LogRecord) -> bool:
    """Whether a message of torch is one that only users who ask for them get (``TORCH_LOGS``)."""
    return record.levelno <= logging.INFO


def _exported_by(
    export: Callable[..., torch.export.ExportedProgram],
    model: torch.nn.Module,
    restore: Callable[[], None],
) -> torch.export.ExportedProgram:
    """The exported program.

    Where torch stopped at values, it is asked again with those of small buffers; where it lost
    sight of a tensor, with what follows ``tensor.data``.
    """
    try:
        return _deferring_guards(export)
    except GuardOnDataDependentSymNode as error:
        restore()
        return _exported_past_values(export, model, restore, error)
    except RuntimeError as error:
        if _LOST not in str(error):
            raise
    restore()
    with assigned_data(model):
        return export()


def _deferring_guards(
    export: Callable[..., torch.export.ExportedProgram],
) -> torch.export.ExportedProgram:
    """The exported program; torch need not look at guards that hold or become checks.

    Where others remain, torch is asked for a trace that takes the general way wherever it may ask
    which of two ways is shorter at the sizes of the example: whether padding was cut off.
    """
    try:
        return _without_proved_guards(export)
    except UserError as error:
        if not _is_of_sizes(error) or not hasattr(symbolic_config, _GENERAL):
            raise
        try:
            with symbolic_config.patch({_GENERAL: True}), copied_reshapes():
                return _without_proved_guards(export)
        except Exception:  # noqa: BLE001 - the first error says what to do
            raise error from None


def _without_proved_guards(
    export: Callable[..., torch.export.ExportedProgram],
) -> torch.export.ExportedProgram:
    """The exported program, if all guards hold for all sizes or become checks."""
    try:
        return export()
    except UserError as error:
        can_ignore = _IGNORES_GUARDS in inspect.signature(torch.export.export).parameters
        if not (can_ignore and _is_of_sizes(error) and may_be_ignored(str(error))):
            raise
        try:
            return export(**{_IGNORES_GUARDS: True})
        except Exception:  # noqa: BLE001 - the first error says what to do
            raise error from None


def _exported_past_values(
    export: Callable[..., torch.export.ExportedProgram],
    model: torch.nn.Module,
    restore: Callable[[], None],
    stop: GuardOnDataDependentSymNode,
) -> torch.export.ExportedProgram:
    """The exported program, of a model in which ``stop`` says that torch stopped at values."""
    try:
        numbers = numbers_of(model)
        with known_numbers(model, numbers):
            program = export()
        if not written(program, InputKind.BUFFER) & numbers.keys():  # the next call has the same
            erase_reads(program)
            return program
    except GuardOnDataDependentSymNode as error:
        stop = error
    raise stop


def _exported_from_bytecode(
    export: Callable[..., torch.export.ExportedProgram], stop: Exception
) -> torch.export.ExportedProgram:
    """The exported program of a model in which a trace stopped, or made a constant of an extent.

    Python's ``int(x)``, ``float(x)`` and ``len(x)`` have plain numbers for results, which a trace
    does not know: torch's reader of bytecode takes such a call for the number itself. Where it
    stops, too, ``stop`` is the error to tell, unless only sizes are left to complain of.
    """
    try:
        program = _deferring_guards(functools.partial(export, strict=True))
        if any(isinstance(value, FakeTensor) for value in program.constants.values()):
            raise stop  # of a number of numpy, np.log(2), it keeps what stands for it in a trace
        return program
    except Exception as error:  # noqa: BLE001 - whatever fails now, the first error stands
        raise (error if _is_of_sizes(stop) and _is_of_sizes(error) else stop) from None


def _is_of_sizes(error: Exception) -> bool:
    """Whether torch complains that a model does not take all sizes that it was to take."""
    if not isinstance(error, UserError):
        return False
    return bool(error.error_type is UserErrorType.CONSTRAINT_VIOLATION)


@contextmanager
def _made_constant() -> Iterator[list[StoppingPlace]]:
    """Within, the places where a model makes a plain number of a symbol: ``range(length)``."""
    places: list[StoppingPlace] = []
    numbers = {name: getattr(SymNode, name) for name in ("guard_int", "guard_float")}

    def noted(number: Callable[..., float]) -> Callable[..., float]:
        def guard(self: SymNode, *where: Any) -> float:
            if self.expr.free_symbols:
                place = _place_of(traceback.walk_stack(sys._getframe(1)))
                places.extend([] if place is None else [place])
            return number(self, *where)

        return guard

    try:
        for name, number in numbers.items():
            setattr(SymNode, name, noted(number))
        yield places
    finally:
        for name, number in numbers.items():
            setattr(SymNode, name, number)


def _report(
    model: torch.nn.Module, error: Exception, dynamic: bool, places: Sequence[StoppingPlace]
) -> str:
    paragraphs = [part for part in str(error).split("\n\n") if not part.startswith(_STACK)]
    lines = [line.strip() for part in paragraphs for line in part.splitlines() if line.strip()]
    lines = [line for line in lines if not line.startswith(_NOISE)]
    shown = "\n".join(f"  {line[:_WIDTH]}" for line in lines[:_SHOWN])
    name, kind = type(model).__name__, type(error).__name__
    stop = stopping_place(error)
    where = "" if stop is None else f"at {stop.place}: {stop.line}\n"
    if stop is None and places and _SPECIALIZED in str(error):
        place = f"at {places[0].place}: {places[0].line}\n"
        return f"torch.export cannot capture {name} ({kind}):\n{shown}\n{place}{_CONSTANT}"
    head = f"torch.export cannot capture {name} ({kind}):\n{shown}\n{where}"
    on_data = "DataDependent" in kind or any(word in str(error) for word in _ON_DATA)
    if on_data and stop is not None and "expert" in stop.owner.lower():
        if any(hasattr(part, "set_experts_implementation") for part in model.modules()):
            return head + _EXPERTS
    if on_data:
        return head + _REWRITE
    return head + _advice(kind, str(error), dynamic, stop is not None)


@dataclass(frozen=True)
class StoppingPlace:
    """The line of a model's code at which torch.export stopped, and the class of its method."""

    place: str
    line: str
    owner: str


def stopping_place(error: Exception) -> StoppingPlace | None:
    """The innermost frame of an error outside of torch; None if there is none of a model."""
    return _place_of(reversed(list(traceback.walk_tb(error.__traceback__))))


def _place_of(frames: Iterable[tuple[FrameType, int]]) -> StoppingPlace | None:
    """The first of these frames, each with its line, that is not torch's."""
    for frame, number in frames:
        file, function = Path(frame.f_code.co_filename), frame.f_code.co_name
        if file.parent == _STANDARD or any(map(file.is_relative_to, _NOT_MODELS)):
            continue
        line = linecache.getline(str(file), number).strip()
        if line:
            owner = type(frame.f_locals.get("self")).__name__
            return StoppingPlace(f"{file.name}:{number} in {function}", line[:_WIDTH], owner)
    return None


def _advice(kind: str, text: str, dynamic: bool, is_within: bool) -> str:
    """What to do about an error of torch.export that is not about control flow on data.

    ``is_within``: a line of the model's own code failed, not the call of the model.
    """
    if "is not a known type" in text:
        return _RESULTS
    if is_within and kind in _IN_TRACES:
        return f"{_RUN}; {_UNTRACEABLE}"
    if dynamic and "tensor with symbolic sizes" in text:
        return _NO_SYMBOLS
    if dynamic:
        return _OTHER_SIZES if "generated guard" in text else _DYNAMIC
    if kind == "TypeError" and "argument" in text:
        return _INPUTS
    return _RUN
