"""Module paths of TVM that weft names otherwise, for ``install_as_tvm``: two literal tables.

A path in neither table means the same path under ``weft``.
"""

from __future__ import annotations

from typing import Final

ALIASES: Final[dict[str, str]] = {
    "contrib.cblas": "weft.compat.cblas",
    "contrib.cc": "weft.compat.toolchain",
    "contrib.clang": "weft.compat.toolchain",
    "contrib.pickle_memoize": "weft.compat.contrib",
    "contrib.tvmjs": "weft.runtime.param_folder",
    "contrib.utils": "weft.compat.contrib",
    "driver.build_module": "weft.driver.build",
    "ir.attrs": "weft.ir.attrs",
    "ir.base": "weft.ir",
    "ir.container": "weft.ir.node",
    "ir.global_info": "weft.ir.module",
    "ndarray": "weft.nd",
    "relax.analysis.analysis": "weft.relax.analysis",
    "relax.exec_builder": "weft.relax.vm.exec_builder",
    "relax.ir.instrument": "weft.relax.analysis.instrument",
    "relax.op.builtin.builtin": "weft.relax.op.builtin",
    "relax.op.memory.memory": "weft.relax.op.memory",
    "relax.op.nn.nn": "weft.relax.op.nn",
    "relax.pipeline": "weft.driver.pipeline",
    "relax.type_converter": "weft.relax.args_converter",
    "relax.op.vm.vm": "weft.relax.op.vm",
    "relax.transform.legalize_ops": "weft.relax.transform.legalize.legalize_ops",
    "relax.transform.transform": "weft.relax.transform",
    "relax.ty": "weft.compat.types",
    "relax.vm_build": "weft.relax.vm",
    "runtime.container": "weft.runtime.containers",
    "runtime.executable": "weft.runtime.module",
    "runtime.object": "weft.ir.node",
    "runtime.object_path": "weft.support.object_path",
    "runtime.packed_func": "weft.runtime.registry",
    "runtime.params": "weft.runtime.param_file",
    "runtime.relax_vm": "weft.runtime.vm.virtual_machine",
    "s_tir": "weft.tir",
    "s_tir.analysis": "weft.tir.analysis",
    "s_tir.dlight": "weft.dlight",
    "s_tir.meta_schedule": "weft.meta_schedule",
    "s_tir.schedule": "weft.tir.schedule",
    "s_tir.tensor_intrin": "weft.tensor_intrin",
    "s_tir.tensor_intrin.arm_cpu": "weft.tensor_intrin.arm_cpu",
    "s_tir.tensor_intrin.cuda": "weft.tensor_intrin.cuda",
    "s_tir.tensor_intrin.dot_product_common": "weft.tensor_intrin.dot_product_common",
    "s_tir.tensor_intrin.hexagon": "weft.tensor_intrin.hexagon",
    "s_tir.tensor_intrin.rocm": "weft.tensor_intrin.rocm",
    "s_tir.tensor_intrin.x86": "weft.tensor_intrin.x86",
    "s_tir.transform": "weft.tir.transform",
    "script.ir_builder.ir.frame": "weft.script.ir_builder.ir",
    "script.ir_builder.ir.ir": "weft.script.ir_builder.ir",
    "script.ir_builder.relax.frame": "weft.script.ir_builder.relax_frame",
    "script.ir_builder.relax.ir": "weft.script.ir_builder.relax",
    "script.ir_builder.tir.frame": "weft.script.ir_builder.tir_frame",
    "script.ir_builder.tir.ir": "weft.script.ir_builder.tir",
    "script.parser.core.entry": "weft.script.parser.entry",
    "script.parser.core.evaluator": "weft.script.parser.evaluator",
    "script.parser.core.parser": "weft.script.parser.core",
    "script.parser.ir": "weft.script.ir",
    "script.parser.ir.entry": "weft.script.ir",
    "script.parser.relax": "weft.script.relax",
    "script.parser.relax.entry": "weft.script.relax",
    "script.parser.tir": "weft.script.tir",
    "script.parser.tir.entry": "weft.script.tir",
    "script.tirx": "weft.script.tir",
    "target.tag": "weft.target",
    "te.operation": "weft.te.operation",
    "testing.utils": "weft.testing",
    "tir.analysis.analysis": "weft.tir.analysis",
    "tir.block_scope": "weft.tir.schedule",
    "tir.generic": "weft.tir.op",
    "tir.pipeline": "weft.compat.names",
    "tir.schedule.schedule": "weft.tir.schedule",
    "tir.tensor_intrin": "weft.tensor_intrin",
    "tir.tensor_intrin.arm_cpu": "weft.tensor_intrin.arm_cpu",
    "tir.tensor_intrin.cuda": "weft.tensor_intrin.cuda",
    "tir.tensor_intrin.dot_product_common": "weft.tensor_intrin.dot_product_common",
    "tir.tensor_intrin.hexagon": "weft.tensor_intrin.hexagon",
    "tir.tensor_intrin.rocm": "weft.tensor_intrin.rocm",
    "tir.tensor_intrin.x86": "weft.tensor_intrin.x86",
    "tir.transform.function_pass": "weft.tir.transform.prim_func_pass",
    "tir.transform.transform": "weft.tir.transform",
    "tirx": "weft.tir",
    "transform": "weft.ir.transform",
    "instrument": "weft.ir.instrument",
}  # fmt: skip
"""TVM's path -> weft's module. The same module object answers to both names."""

SHELLS: Final[dict[str, tuple[str, ...]]] = {
    "_ffi": ("weft.runtime", "weft.support.errors", "weft.support.dtype"),
    "_ffi.base": ("weft.support.errors",),
    "_ffi.registry": ("weft.runtime.registry",),
    "_ffi.runtime_ctypes": ("weft.support.dtype", "weft.runtime.device"),
    "contrib": (),
    "relax.ir": (),
    "script.ir_builder.ir": ("weft.script.ir_builder.ir",),
    "script.ir_builder.relax": ("weft.script.ir_builder.relax",),
    "script.ir_builder.tir": ("weft.script.ir_builder.tir",),
    "script.parser.core": ("weft.script.parser.core",),
}
"""Packages of TVM that weft does not have -> the modules from which a ``Shell`` takes names."""

FURTHER_NAMES: Final[dict[str, tuple[str, ...]]] = {
    "weft.runtime.module": (
        "weft.runtime.model.load_module", "weft.runtime.threads.parallel", "weft.compat.names",
    ),
    "weft.runtime.ndarray": ("weft.runtime.device",),
    "weft.tir.expr": ("weft.ir.expr", "weft.tir.intrinsic", "weft.compat.names"),
    "weft.tir.function": ("weft.tir.tensor_intrinsic", "weft.tir.index_map"),
    "weft.tir.op": ("weft.tir.device_intrinsic", "weft.compat.names"),
}  # fmt: skip
"""Modules that TVM has with more names than weft -> where those names are."""

GPU_LIBRARIES: Final[frozenset[str]] = frozenset(
    f"contrib.{name}"
    for name in (
        "cublas",
        "cublaslt",
        "cuda_graph",
        "cudnn",
        "cutlass",
        "hipblas",
        "miopen",
        "mps",
        "nvcc",
        "rocblas",
        "thrust",
    )
)
"""Modules of TVM for GPUs and their libraries."""
