"""``weft.compile``: compiles a model of any supported kind to a CompiledModel, in one call."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, NamedTuple

from weft.dlight.apply import ScheduleRule
from weft.driver import model_cache, specialization
from weft.driver.build import SOURCE_FORMATS, as_module, build, relax_build
from weft.driver.pipeline import Pipeline, relax_pipeline_of, with_rules
from weft.driver.progress import Progress
from weft.driver.size_hints import checked_size_hints, with_size_hints
from weft.driver.sources import Imported, Request, import_model, request_of
from weft.driver.training import warn_of_training
from weft.ir.module import IRModule
from weft.ir.transform import PassContext
from weft.relax.analysis.types import verify_calls
from weft.relax.distributed.execution import refuse_distributed
from weft.relax.expr import Function
from weft.relax.transform.weights.narrow_weights import OPTION as NARROW_WEIGHTS
from weft.relax.transform.weights.narrow_weights import checked_type
from weft.runtime.model.compiled_model import CompiledModel
from weft.runtime.threads.parallel import own_num_threads
from weft.support.errors import IRTypeError, IRValueError
from weft.support.garbage import rare_collections
from weft.support.progress import listening, phase, tell
from weft.support.public_entry import public_entry
from weft.target.target import Target, target_meant
from weft.tir.analysis.axis_domains import check_axis_domains
from weft.tir.analysis.intrinsic_calls import check_intrinsic_calls
from weft.tir.function import PrimFunc

_UNSET: Final = object()
_NARROWING: Final = ("weft", "unscheduled")
"""The pipelines that narrow weights."""


class CompiledAs(NamedTuple):
    """How a model was compiled, so that it can be compiled again to see how."""

    target: Target
    pipelines: tuple[Pipeline, Pipeline]
    context: PassContext


@public_entry("weft.compile")
def compile(  # noqa: A001 - TVM's name
    model: Any,
    example_inputs: Any = None,
    *,
    target: Any = _UNSET,
    dynamic_shapes: Any = None,
    size_hints: Mapping[str, int] | None = None,
    num_threads: int | None = None,
    dtype: str | None = None,
    verify: bool = False,
    cache: bool = True,
    hot_shapes: int = 4,
    relax_pipeline: Pipeline = "weft",
    tir_pipeline: Pipeline = "default",
    rules: Sequence[ScheduleRule] = (),
    **options: object,
) -> Any:
    """Compile a model to something that is called like it and runs without its framework.

    Args:
        model: a ``torch.nn.Module`` (also a ``torch.fx.GraphModule``), a
            ``torch.export.ExportedProgram`` or the path of one (``.pt2``), an ONNX ``ModelProto``
            or the path of one, a ``relax.frontend.nn.Module``, an IRModule. A module of PrimFuncs
            only, or one PrimFunc, becomes a runtime module, as ``weft.build`` makes it.
        example_inputs: arguments of a call, for models from torch and nn modules: one tensor, a
            tuple of arguments by position, or a dict of arguments by name; for nn modules also
            specs (``nn.spec.Tensor``). A target here means ``target``, as TVM has it.
        target: as for ``weft.build``; default: this machine's CPU.
        dynamic_shapes: which dimensions of the example inputs vary, as ``torch.export.export``
            takes them.
        size_hints: what dynamic dimensions usually are, ``{"batch": 8}``, by the names that
            ``dynamic_shapes`` or the model gives them; default: what they are in the example
            inputs. Tiles and prefetches are chosen for these sizes; others give the same results.
        num_threads: threads of parallel loops in this model's calls; None: the process's number.
        dtype: ``"bfloat16"`` or ``"float16"``: the weights of float32 products, convolutions and
            large tables are stored in this type, and all else is computed in the model's types.
            None: as the model is.
        verify: run every function in the reference interpreters around every pass, and compare
            native code with them; ``verification`` of the model lists what was not compared.
        cache: whether whole models are kept on disk and found again; their object code is in
            any case (``WEFT_NO_CACHE=1`` turns both off).
        hot_shapes: for a model of symbolic sizes, how many combinations of sizes on which calls
            spend long get programs of their own, compiled in the background (0: none). It needs
            the cache of models.
        relax_pipeline: passes on the graph: a name, a pass, or None.
        tir_pipeline: passes on kernels: ``"default"`` or a pass.
        rules: schedule rules (``dlight.ScheduleRule``) that are asked for each kernel before the
            defaults; of those that fit, the first counts. Such a model is not kept on disk.
        options: what the importer takes beside (``custom_converters=`` for torch).

    Returns:
        A CompiledModel, which is an Executable too. What takes over a second says at a terminal
        what it is doing, if rich is installed.

    >>> import numpy as np, weft
    >>> from weft import relax
    >>> x = relax.Var("x", relax.TensorStructInfo((3,), "float32"))
    >>> builder = relax.BlockBuilder()
    >>> with builder.function("main", [x]):
    ...     main = builder.emit_func_output(builder.emit(relax.op.nn.relu(x)))
    >>> model = weft.compile(builder.get())
    >>> model(np.array([-1, 0, 2], "float32"))
    array([0., 0., 2.], dtype=float32)
    """
    if _is_target(example_inputs):
        if target is not _UNSET:
            raise IRTypeError("compile: the target is given twice, by position and as target=")
        example_inputs, target = None, example_inputs
    warn_of_training(model)
    if num_threads is not None:
        own_num_threads(num_threads)  # raises for an invalid number of threads
    resolved = target_meant(None if target is _UNSET else target)
    request = request_of(_as_module(model), example_inputs, dynamic_shapes, options)
    request = replace(request, size_hints=checked_size_hints(size_hints))
    if _has_no_graph(request.model):
        if request.size_hints or rules:
            what = "size_hints" if request.size_hints else "rules"
            raise IRValueError(f"compile: {what} are for models; PrimFuncs are built as they are")
        return build(request.model, resolved, pipeline=tir_pipeline)
    graph_pipeline = with_rules(relax_pipeline, rules)
    with (
        Progress(_name_of(request.model)) as progress,
        _narrow(dtype, relax_pipeline),
        rare_collections,
    ):
        key = None
        if cache and not verify:
            progress.stage("looking it up")
            with phase("cache"):
                key = model_cache.key_of(request, resolved, graph_pipeline, tir_pipeline)
                stored = None if key is None else model_cache.load(key, num_threads)
            if stored is not None and key is not None:
                specialization.attach(stored, key, hot_shapes)
                return _revived(stored, request, resolved, (graph_pipeline, tir_pipeline))
        with _verified(verify) as verification, listening(progress.stage):
            # torch keeps some errors while it exports, and with them the local variables of this
            # function. So the model must not be one of these.
            pipelines = (graph_pipeline, tir_pipeline)
            return _finished(
                _compiled(request, resolved, pipelines),
                num_threads,
                verification,
                lambda model: _keep(model, key, resolved, pipelines, hot_shapes),
            )


def _finished(
    model: CompiledModel,
    num_threads: int | None,
    verification: Callable[[], object],
    keep: Callable[[CompiledModel], None],
) -> CompiledModel:
    """The model with its number of threads and what was verified, after it is kept."""
    model.num_threads, model.verification = num_threads, verification()
    keep(model)
    return model


def _keep(
    model: CompiledModel,
    key: str | None,
    target: Target,
    pipelines: tuple[Pipeline, Pipeline],
    hot_shapes: int,
) -> None:
    """Store a model in the cache, and what its programs for hot sizes are compiled from."""
    if key is None:
        return
    tell("writing it to the cache")
    with phase("cache"):
        model_cache.store(key, model)
        if hot_shapes > 0:
            specialization.keep_source(key, model, target, pipelines)
            specialization.attach(model, key, hot_shapes)


def _compiled(
    request: Request, target: Target, pipelines: tuple[Pipeline, Pipeline]
) -> CompiledModel:
    """The model, compiled stage by stage."""
    tell("importing")
    with phase("import"):
        imported = import_model(request)
        module = with_size_hints(imported, request)
    return compile_imported(replace(imported, module=module), target, pipelines)


def compile_imported(
    imported: Imported, target: Target, pipelines: tuple[Pipeline, Pipeline]
) -> CompiledModel:
    """Compile an imported model, without any cache of models."""
    refuse_distributed(imported.module, "weft.compile")
    tell("passes on the graph")
    with (
        phase("graph"),
        target,
        listening(None),
    ):  # progress is not shown for kernels that only fold constants
        verify_calls(imported.module)
        check_intrinsic_calls(imported.module)
        check_axis_domains(imported.module)
        module = relax_pipeline_of(pipelines[0])(imported.module)
    executable = relax_build(module, target, None, None, pipelines[1])
    model = CompiledModel(
        executable,
        imported.signature,
        entry=imported.entry,
        states=imported.states,
        module=lambda: imported.module,
    )
    model.compiled_as = CompiledAs(target, pipelines, PassContext.current())
    return model


def _name_of(model: object) -> str:
    """The name of a model that is shown while it is compiled."""
    return Path(model).name if isinstance(model, str | Path) else type(model).__name__


def _revived(
    model: CompiledModel, request: Request, target: Target, pipelines: tuple[Pipeline, Pipeline]
) -> CompiledModel:
    """A model from the cache, connected to the tensors of the model that the user gave.

    A cached model has no IRModule and no source texts; if these are asked for, the model is
    imported or compiled again.
    """
    imported: list[Imported] = []
    request.intermediate.clear()  # free what was only needed for the key

    def module() -> IRModule:
        if not imported:
            imported.append(import_model(request))
        return imported[0].module

    find = getattr(request.model, "get_buffer", None)
    if model.signature.states and find is not None:
        tensors = dict(request.model.named_parameters()) | dict(request.model.named_buffers())
        model.states = [tensors[state.name].detach() for state in model.signature.states]

    context = PassContext.current()

    def source(fmt: str) -> Callable[[], str]:
        def compiled_again() -> str:
            with context:
                return _compiled(request, target, pipelines).kernels.get_source(fmt)

        return compiled_again

    model.compiled_as = CompiledAs(target, pipelines, context)
    model.set_module(module)
    model.kernels.set_sources({fmt: source(fmt) for fmt in SOURCE_FORMATS})
    return model


def _is_target(value: object) -> bool:
    """Whether the second argument is a target, where TVM has it, and not example inputs."""
    if isinstance(value, Mapping):
        return isinstance(value.get("kind"), str)
    return isinstance(value, Target | str)


def _as_module(model: Any) -> Any:
    """An IRModule of a function or a collection of functions; any other model itself."""
    items = model.values() if isinstance(model, dict) else model
    if isinstance(model, dict | list | tuple):
        return as_module(model) if all(isinstance(x, Function | PrimFunc) for x in items) else model
    return as_module(model) if isinstance(model, Function | PrimFunc) else model


def _has_no_graph(model: object) -> bool:
    return isinstance(model, IRModule) and not any(
        isinstance(func, Function) for func in model.functions.values()
    )


@contextmanager
def _narrow(dtype: str | None, pipeline: Pipeline) -> Iterator[None]:
    """The current pass context, with the option that narrows weights if there is a dtype."""
    if dtype is None:
        yield
        return
    name = checked_type(dtype)
    if pipeline not in _NARROWING:
        names = " or ".join(map(repr, _NARROWING))
        raise IRValueError(
            f"compile: dtype= is for the pipelines {names}; relax.transform.ToMixedPrecision() "
            "narrows a module for others"
        )
    now = PassContext.current()
    config = {**now.config, NARROW_WEIGHTS: name}
    with PassContext(now.opt_level, now.required_pass, now.disabled_pass, now.instruments, config):
        yield


@contextmanager
def _verified(verify: bool) -> Iterator[Callable[[], object]]:
    """The current pass context, with the reference interpreters as instruments if ``verify``.

    Yields a function that returns what was compared, or None without ``verify``.
    """
    if not verify:
        yield lambda: None
        return
    now = PassContext.current()
    with PassContext(
        now.opt_level,
        now.required_pass,
        now.disabled_pass,
        now.instruments,
        now.config,
        verify=True,
    ) as context:
        yield context.instruments[-1].verification
