"""The cache of whole models, level 2 (docs/design/0004): files that ``save`` writes, named by keys.

A key is a digest of everything that decides the result: the model with its weights, the example
inputs, the target, the sources of weft, the versions of LLVM and of the framework, options, and the
pass context. The cache is not used if there is something that a key cannot contain: the user's own
passes, instruments, or converters and legalisations from outside of weft. An entry is written under
another name and then renamed. A damaged entry counts as a miss.
"""

from __future__ import annotations

import hashlib
import logging
import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from weft.codegen.backend import backend_of, sources_of
from weft.codegen.cache import cache_folder, lines_key, source_digest, sweep
from weft.codegen.generator_digest import generator_digest
from weft.codegen.llvm.compile import llvm_version
from weft.dlight.decisions import tuned_key
from weft.driver import insertions
from weft.driver.module_keys import digest_of_rules, key_of_ir
from weft.driver.pipeline import is_ours
from weft.driver.sources import Request, function_of, source_of
from weft.ir.module import IRModule
from weft.ir.transform import PassContext
from weft.relax.op.lowering import legalisations
from weft.runtime.artifact.weft_file import read_file, write_file
from weft.runtime.model.compiled_model import CompiledModel, from_artifact
from weft.support.config import environment_int
from weft.support.errors import ArtifactError, TVMError
from weft.target.target import Target

_DEFAULT_MIB: Final = 4096
_LOG: Final = logging.getLogger(__name__)
SOURCE: Final = "-source"
"""The end of the name of a file that has the imported model, not the compiled one."""
_ROOMS: Final = (
    "support", "ir", "target", "arith", "tir", "te", "topi", "relax", "dlight", "codegen",
    "runtime", "script", "driver", "backends",
)  # fmt: skip
"""The packages whose sources are part of every key."""


_CONVERTERS: Final = (
    ("weft.relax.frontend.torch.registry", "CONVERTERS"),
    ("weft.relax.frontend.torch.translate", "HIGHER_ORDER"),
    ("weft.relax.frontend.onnx.registry", "_TABLE"),
)
"""(module, table) of converters, to which users may add their own."""


class _NoKeyError(Exception):
    """Something decides the result that no key can contain; the message says what."""


def key_of(request: Request, target: Target, *settings: object) -> str | None:
    """The key of a model; None if something decides the result that no key can contain.

    ``settings`` are further options; an option that is no plain value makes the result None.
    """
    try:
        return _key_of(request, target, settings)
    except _NoKeyError as reason:
        _LOG.info("this model is not in the cache of models: %s", reason)
        return None


def _check_keyed(request: Request, context: PassContext, settings: tuple[object, ...]) -> None:
    """Raise _NoKeyError for what can be said without the model."""
    if cache_folder("models") is None:
        raise _NoKeyError("there is none (WEFT_NO_CACHE, or its folder cannot be used)")
    if context.instruments:
        raise _NoKeyError("the pass context has instruments")
    plain = (*settings, *request.options.values())
    is_plain = all(isinstance(item, str | int | None) for item in plain)
    if not is_plain or not _is_plain(context.config):
        raise _NoKeyError("an option is no plain value")
    pipelines = [item for item in settings if isinstance(item, str)]
    if not all(item == "default" or is_ours(item) for item in pipelines):
        raise _NoKeyError("a pipeline is not weft's own")


def _key_of(request: Request, target: Target, settings: tuple[object, ...]) -> str:
    context = PassContext.current()
    _check_keyed(request, context, settings)
    added = (*additions(target), _converters_key(), tuned_key())
    if None in added:
        raise _NoKeyError("a converter, operator or pass cannot be identified by its source")
    name, described = _described(request)
    if described is None:
        raise _NoKeyError(f"parts of the {name} cannot be identified")
    digest = hashlib.blake2b(_origin(), digest_size=20)
    config = sorted((name, repr(value)) for name, value in context.config.items())
    parts = (
        name,
        settings,
        sorted(request.options.items()),
        sorted(request.size_hints.items()),
        llvm_version(),
        target.structural_bytes(),
        tuple(backend_of(target).options(target)),
        context.opt_level,
        config,
        sorted(context.required_pass),
        sorted(context.disabled_pass),
        added,
    )
    digest.update(repr(parts).encode())
    digest.update(described)
    return digest.hexdigest()


def _origin() -> bytes:
    return source_digest(_ROOMS) + generator_digest() + lines_key()


def additions(target: Target) -> tuple[bytes | None, ...]:
    """What identifies the parts of the compiler behind the importers that are not weft's own.

    None stands for a part that cannot be identified.
    """
    rules: list[object] = []
    for operator, rule in legalisations().items():
        rules += [rule, operator.get_attr("te"), operator.get_attr("numpy")]
    return sources_of(backend_of(target)), insertions.key(), digest_of_rules(rules)


def _described(request: Request) -> tuple[str, bytes | None]:
    """(kind of model, bytes that identify it among models of its kind, or None)."""
    if isinstance(request.model, IRModule):
        is_plain = request.dynamic_shapes is None and not request.options  # else compile raises
        return "IRModule", key_of_ir(request.model) if is_plain else None
    source = source_of(request.model)
    return source.name, function_of(source.key)(request)


def _is_plain(value: object) -> bool:
    """Whether the ``repr`` of a value identifies it."""
    if isinstance(value, Mapping):
        return all(_is_plain(item) for pair in value.items() for item in pair)
    if isinstance(value, list | tuple):
        return all(map(_is_plain, value))
    return isinstance(value, str | int | float | None)


def _converters_key() -> bytes | None:
    """Bytes that identify the converters from outside of weft; None if one cannot be identified.

    Those of plug-ins are identified by their sources.
    """
    rules: list[object] = []
    for name, table in _CONVERTERS:
        loaded = sys.modules.get(name)  # to register a converter one must have loaded the module
        for row in () if loaded is None else getattr(loaded, table).values():
            rules.extend([item.function for item in row] if isinstance(row, list) else [row])
    return digest_of_rules(rules)


def load(key: str, num_threads: int | None) -> CompiledModel | None:
    """The model that is stored under a key, or None."""
    path = _path(key)
    if path is None or not path.exists():
        _LOG.info("the cache of models has no %s", key)
        return None
    try:
        model = from_artifact(read_file(path), num_threads=num_threads)
        os.utime(path)
    except (TVMError, OSError) as error:
        _LOG.info("%s in the cache of models is damaged, and deleted: %s", key, error)
        _forget(path)
        return None
    _LOG.info("%s is in the cache of models", key)
    return model


def store(key: str, model: CompiledModel) -> None:
    """Store a model; nothing is stored if it cannot be saved or is too large."""
    path, limit = _path(key), _limit()
    if path is None or sum([array._array.nbytes for array in model.program.constants]) > limit // 2:
        return
    try:
        write_file(path, model.to_artifact().writer(), durable=False)
    except (ArtifactError, NotImplementedError):
        return
    sweep(path.parent, limit)


def store_source(key: str, data: bytes) -> None:
    """Keep the bytes of an imported model; nothing is stored if they are too many."""
    path, limit = _path(key + SOURCE), _limit()
    if path is None or len(data) > limit // 2:
        return
    with suppress(ArtifactError):
        write_file(path, data, durable=False)
        sweep(path.parent, limit)


def source_path(key: str) -> Path | None:
    """The file that ``store_source`` wrote, if it is there."""
    path = _path(key + SOURCE)
    return path if path is not None and path.exists() else None


def _limit() -> int:
    return (environment_int("WEFT_MODEL_CACHE_SIZE", minimum=1) or _DEFAULT_MIB) << 20


def _path(key: str) -> Path | None:
    folder = cache_folder("models")
    return None if folder is None else folder / key


def _forget(path: Path) -> None:
    try:
        path.unlink()
    except OSError:
        return  # another process has removed it, or the folder is read-only
