"""The table of names of other releases: old name, what it means now, the releases that had it.

``NAMES`` are names of modules, ``MEMBERS`` attributes of objects, ``KEYWORDS`` and ``CALLS`` forms
of calls, ``PARTS`` a renaming inside of names, ``REMOVED`` what was removed and what to use
instead. ``weft.compat.adapt`` looks things up here; what a row names is imported when it is asked
for. Releases: "2022" is the state of the relax branch that the course's first texts used.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from weft.support import slots


class Spelling(NamedTuple):
    """One old name. ``new`` is ``module``, ``module:name``, or an adapter in this package."""

    owner: str
    old: str
    new: str
    first: str
    last: str


class Removed(NamedTuple):
    """A name that was removed: the last release that had it, and what to use."""

    owner: str
    old: str
    last: str
    instead: str


_TYPES = "weft.compat.types"
_CALLS = "weft.compat.calls"
_NAMES = "weft.compat.names"

NAMES: Final = (
    # the root
    Spelling("weft", "_ffi", "weft.compat.shell:ffi", "v0.1", "v0.21"),
    Spelling("weft", "container", "weft.ir.node", "v0.8", "v0.21"),
    Spelling("weft", "contrib", "weft.compat.shell:contrib", "v0.1", ""),
    Spelling("weft", "lower", "weft.driver.build:lower", "v0.1", "v0.19"),
    Spelling("weft", "ndarray", "weft.nd", "v0.1", "v0.21"),
    Spelling("weft", "register_global_func", "weft.runtime.registry:register_func", "v0.22", ""),
    Spelling("weft", "s_tir", "weft.tir", "v0.24", ""),
    Spelling("weft", "tirx", "weft.tir", "v0.24", ""),
    # runtime
    Spelling("weft.runtime", "Object", "weft.ir.node:Node", "v0.7", ""),
    Spelling("weft.runtime", "Tensor", "weft.runtime.ndarray:NDArray", "v0.22", ""),
    Spelling("weft.runtime", "cl", "weft.runtime.device:opencl", "v0.7", "v0.21"),
    Spelling("weft.runtime", "const", "weft.tir.op:const", "v0.7", ""),
    Spelling("weft.runtime", "gpu", "weft.runtime.device:cuda", "v0.7", "v0.21"),
    Spelling("weft.runtime", "mtl", "weft.runtime.device:metal", "v0.7", "v0.21"),
    Spelling(
        "weft.runtime", "register_global_func", "weft.runtime.registry:register_func", "v0.22", ""
    ),
    Spelling("weft.runtime", "relax_vm", "weft.runtime.vm.virtual_machine", "v0.16", "v0.21"),
    Spelling("weft.runtime", "tensor", "weft.runtime.ndarray:array", "v0.22", ""),
    Spelling("weft.runtime", "container", "weft.runtime.containers", "v0.7", "v0.21"),
    Spelling("weft.runtime", "enabled", f"{_NAMES}:enabled", "v0.1", ""),
    # ir
    Spelling("weft.ir", "Call", "weft.relax.expr:Call", "v0.26", ""),
    Spelling("weft.ir", "Expr", "weft.ir.expr:BaseExpr", "v0.26", ""),
    Spelling("weft.ir", "Var", "weft.relax.expr:Var", "v0.26", ""),
    Spelling("weft.ir", "container", "weft.ir.node", "v0.7", "v0.21"),
    # tir
    Spelling("weft.tir", "CallEffectKind", "weft.tir.intrinsic:CallEffectKind", "v0.8", ""),
    Spelling("weft.tir", "build", "weft.driver.build:build", "v0.20", ""),
    Spelling(
        "weft.tir", "get_default_tir_pipeline", f"{_NAMES}:get_default_tir_pipeline", "v0.20", ""
    ),
    Spelling("weft.tir", "get_tir_pipeline", f"{_NAMES}:get_tir_pipeline", "v0.20", ""),
    Spelling("weft.tir", "get_vscale_expr", f"{_NAMES}:get_vscale_expr", "v0.17", ""),
    # relax
    Spelling("weft.relax", "AnyType", f"{_TYPES}:ObjectType", "v0.26", ""),
    Spelling("weft.relax", "DynTensorType", f"{_TYPES}:DynTensorType", "2022", "2023-05"),
    Spelling("weft.relax", "FuncType", f"{_TYPES}:FuncType", "2022", ""),
    Spelling("weft.relax", "ObjectType", f"{_TYPES}:ObjectType", "2022", ""),
    Spelling("weft.relax", "PackedFuncType", f"{_TYPES}:PackedFuncType", "2023", ""),
    Spelling("weft.relax", "ShapeType", f"{_TYPES}:ShapeType", "2022", ""),
    Spelling("weft.relax", "TensorType", f"{_TYPES}:TensorType", "2023", ""),
    Spelling("weft.relax", "TupleType", f"{_TYPES}:TupleType", "2022", ""),
    Spelling("weft.relax", "Type", "weft.relax.struct_info:StructInfo", "v0.26", ""),
    Spelling("weft.relax", "convert_to_expr", "weft.relax.utils:convert_to_expr", "2023", ""),
    Spelling("weft.relax", "exec_builder", "weft.relax.vm.exec_builder", "2022", ""),
    Spelling("weft.relax", "prim_value", "weft.relax.expr:PrimValue", "v0.26", ""),
    Spelling("weft.relax", "ty", _TYPES, "2022", ""),
    Spelling("weft.relax", "vm_build", "weft.relax.vm", "2023", ""),
    Spelling("weft.relax.transform", "FunctionPass", "weft.ir.transform:FunctionPass", "2022", ""),
    Spelling("weft.relax.vm", "build", "weft.driver.build:relax_build", "2022", "2023-05"),
    # scripts
    Spelling("weft.script", "tirx", "weft.script.tir", "v0.24", ""),
)

MEMBERS: Final = (
    # class, attribute, adapter of the object
    Spelling("weft.relax.expr.Expr", "shape_", f"{_CALLS}:shape_of", "2022", "2023-05"),
    Spelling("weft.relax.expr.Expr", "_checked_type_", f"{_CALLS}:info_of", "2022", "v0.25"),
    Spelling("weft.relax.expr.Expr", "checked_type_", f"{_CALLS}:info_of", "2022", "v0.25"),
    Spelling("weft.ir.expr.RelaxExpr", "struct_info_", f"{_CALLS}:info_of", "2022", "v0.25"),
    Spelling("weft.ir.expr.RelaxExpr", "checked_type", f"{_CALLS}:info_of", "2022", "v0.25"),
    Spelling("weft.ir.expr.RelaxExpr", "ty", f"{_CALLS}:info_of", "v0.26", ""),
    Spelling("weft.ir.node.Node", "astext", f"{_CALLS}:astext_of", "v0.6", "v0.19"),
    Spelling("weft.ir.expr.PrimExpr", "ty", f"{_CALLS}:prim_type_of", "v0.26", ""),
    Spelling("weft.relax.expr.MatchCast", "ty", f"{_CALLS}:info_of", "v0.26", ""),
    Spelling("weft.relax.expr.Function", "ret_ty", f"{_CALLS}:ret_info_of", "v0.26", ""),
    Spelling("weft.relax.expr.Call", "ty_args", f"{_CALLS}:info_args_of", "v0.26", ""),
)

CALLS: Final[dict[str, tuple[str, str, str]]] = {
    # what -> adapter, first and last release
    "relax.Var": (f"{_CALLS}:var", "2022", "2023-05"),
    "relax.op.call_tir": (f"{_CALLS}:call_tir", "2022", "2023-05"),
    "relax.op.call_dps_packed": (f"{_CALLS}:call_tir", "2022", "2023-05"),
}

KEYWORDS: Final[dict[str, str]] = {
    # v0.26 -> 0.20, of any call
    "out_ty": "out_sinfo",
    "ty": "struct_info",
    "ty_args": "sinfo_args",
    "ret_ty": "ret_struct_info",
}

PARTS: Final = (
    # v0.24: block -> sblock, in names of classes, functions and methods
    ("SBlock", "Block"),
    ("sblock", "block"),
)

REMOVED: Final = (
    Removed("weft", "auto_scheduler", "v0.19", "weft.meta_schedule, or tir.Schedule by hand"),
    Removed("weft", "autotvm", "v0.19", "weft.meta_schedule, or tir.Schedule by hand"),
    Removed("weft", "micro", "v0.19", "weft.build and Executable.export_library"),
    Removed("weft", "parser", "v0.19", "weft.script.from_source"),
    Removed("weft", "relay", "v0.19", "weft.relax, whose frontends import models"),
    Removed("weft", "hybrid", "v0.7", "weft.script.tir"),
    Removed("weft", "register_extension", "v0.21", "a class with __dlpack__"),
    Removed("weft.te", "create_schedule", "v0.19", "te.create_prim_func and tir.Schedule"),
    Removed("weft.te", "hybrid", "v0.19", "weft.script.tir"),
    Removed("weft.te", "Schedule", "v0.19", "te.create_prim_func and tir.Schedule"),
    Removed("weft.tir", "hybrid", "v0.7", "weft.script.tir"),
    Removed("weft.relax", "RuntimeDepShape", "2023-01", "TensorStructInfo(None, dtype, ndim=n)"),
    Removed("weft.relax", "parser", "2023-01", "weft.script.relax"),
    Removed("weft.runtime", "vm", "v0.19", "weft.relax.VirtualMachine"),
    Removed(
        "weft.meta_schedule",
        "TuneConfig",
        "v0.10",
        "max_trials_global= and num_trials_per_iter= of tune_tir, whose database compile_tir takes",
    ),
)


def old_attributes(owner: str) -> dict[str, str]:
    """Attribute -> adapter, of the class of that name.

    >>> old_attributes("weft.relax.expr.Function")
    {'ret_ty': 'weft.compat.calls:ret_info_of'}
    """
    return {row.old: row.new for row in MEMBERS if row.owner == owner}


slots.old_attributes.fill(old_attributes)
