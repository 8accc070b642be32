"""Level 1: what runs compiled programs. Devices, arrays, global functions, native code, threads.

It needs numpy, and llvmlite from the moment that code is loaded; of weft it needs ``weft.support``
alone. The names below are the public ones; the binary interface is described in
``runtime.call.abi``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

# Imported here, not by the table: it is the name of the submodule too, and the first import of a
# submodule sets the package's attribute.
from weft.runtime.device import device as device
from weft.support.facade import module_getattr

if TYPE_CHECKING:
    from weft.runtime.containers import ShapeTuple as ShapeTuple
    from weft.runtime.containers import String as String
    from weft.runtime.device import Device as Device
    from weft.runtime.device import cpu as cpu
    from weft.runtime.device import cuda as cuda
    from weft.runtime.model.compiled_model import CompiledModel as CompiledModel
    from weft.runtime.model.compiled_model import load as load
    from weft.runtime.model.load_module import load_module as load_module
    from weft.runtime.module import BenchmarkResult as BenchmarkResult
    from weft.runtime.module import Executable as Executable
    from weft.runtime.module import Module as Module
    from weft.runtime.native.native_library import FunctionSpec as FunctionSpec
    from weft.runtime.native.native_library import NativeLibrary as NativeLibrary
    from weft.runtime.native.native_library import ParamSpec as ParamSpec
    from weft.runtime.ndarray import NDArray as NDArray
    from weft.runtime.ndarray import from_dlpack as from_dlpack
    from weft.runtime.registry import PackedFunc as PackedFunc
    from weft.runtime.registry import convert as convert
    from weft.runtime.registry import get_global_func as get_global_func
    from weft.runtime.registry import register_func as register_func
    from weft.runtime.threads.parallel import set_num_threads as set_num_threads

NAMES: Final = {
    "ArtifactError": "weft.support.errors",
    "BenchmarkResult": "weft.runtime.module",
    "CompiledModel": "weft.runtime.model.compiled_model",
    "DataType": "weft.support.dtype",
    "DataTypeCode": "weft.support.dtype",
    "Device": "weft.runtime.device",
    "Executable": "weft.runtime.module",
    "FunctionSpec": "weft.runtime.call.spec",
    "Module": "weft.runtime.module",
    "NDArray": "weft.runtime.ndarray",
    "NativeFunction": "weft.runtime.native.native_library",
    "NativeLibrary": "weft.runtime.native.native_library",
    "ObjectPath": "weft.support.object_path",
    "PackedFunc": "weft.runtime.registry",
    "ParamSpec": "weft.runtime.call.spec",
    "ShapeTuple": "weft.runtime.containers",
    "String": "weft.runtime.containers",
    "array": "weft.runtime.ndarray",
    "convert": "weft.runtime.registry",
    "cpu": "weft.runtime.device",
    "cuda": "weft.runtime.device",
    "empty": "weft.runtime.ndarray",
    "from_dlpack": "weft.runtime.ndarray",
    "get_global_func": "weft.runtime.registry",
    "list_global_func_names": "weft.runtime.registry",
    "load": "weft.runtime.model.compiled_model",
    "load_library": "weft.runtime.native.native_library",
    "load_module": "weft.runtime.model.load_module",
    "load_param_dict": "weft.runtime.param_file",
    "load_param_dict_from_file": "weft.runtime.param_file",
    "metal": "weft.runtime.device",
    "num_threads": "weft.runtime.threads.parallel",
    "opencl": "weft.runtime.device",
    "register_extern": "weft.runtime.native.native_library",
    "register_func": "weft.runtime.registry",
    "remove_global_func": "weft.runtime.registry",
    "rocm": "weft.runtime.device",
    "save_param_dict": "weft.runtime.param_file",
    "save_param_dict_to_file": "weft.runtime.param_file",
    "set_num_threads": "weft.runtime.threads.parallel",
    "system_lib": "weft.runtime.module",
    "vulkan": "weft.runtime.device",
}

__getattr__, __dir__ = module_getattr(
    __name__,
    NAMES,
    (
        "artifact", "call", "export", "memory", "model", "module", "native", "ndarray",
        "profiling", "random", "registry", "threads", "vm",
    ),
)  # fmt: skip
