"""Pictures of models from files: the compilation is repeated where the file has the module."""

from __future__ import annotations

from weft.driver.compile import compile_imported
from weft.driver.recording import Recording, recording
from weft.driver.sources import Imported
from weft.ir.module import IRModule
from weft.ir.transform import PassContext
from weft.runtime.model.compiled_model import CompiledModel
from weft.support.errors import UnsupportedError
from weft.target.target import Target, target_meant
from weft.viz.collect import Call
from weft.viz.picture import Picture


def picture_of_file(model: CompiledModel, title: str, call: Call | None = None) -> Picture:
    """A picture of a model that ``weft.load`` gave.

    A file whose weights are stored as its code takes them has no module any more; it still says
    which memory, weights and functions there are.
    """
    try:
        module = model.mod
    except UnsupportedError:
        return Picture(Recording(target_meant(None), PassContext.current()), title, model, call)
    return picture_again(module, model, title, call, target_of(model))


def picture_again(
    module: IRModule,
    model: CompiledModel,
    title: str,
    call: Call | None,
    target: Target,
) -> Picture:
    """A picture of a model whose module is compiled again, for the same signature."""
    imported = Imported(module, model.signature, model.states, model.entry)
    with recording(target) as record:
        again = compile_imported(imported, target, ("weft", "default"))
    again.num_threads = model.num_threads
    return Picture(record, title, again, call)


def target_of(model: CompiledModel) -> Target:
    """The target of a model's code: this machine, or the system and processor that it names."""
    here = target_meant(None)
    code = model.code
    if code is None:
        return here
    return Target(f"llvm -mtriple={code.triple} -mcpu={code.cpu}") if code.cpu else here
