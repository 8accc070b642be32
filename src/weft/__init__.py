"""weft: a machine-learning compiler in Python. Tensor programs in, native code out.

The public face, with the names of TVM 0.20's Python API: one table, name -> defining module, read
at first use (``weft.support.facade``). ``install_as_tvm()`` makes ``import tvm`` mean this package.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from weft.support.facade import module_getattr

if TYPE_CHECKING:
    from weft import arith as arith
    from weft import error as error
    from weft import ir as ir
    from weft import nd as nd
    from weft import relax as relax
    from weft import runtime as runtime
    from weft import script as script
    from weft import target as target
    from weft import te as te
    from weft import testing as testing
    from weft import tir as tir
    from weft import topi as topi
    from weft.compat.install import install_as_tvm as install_as_tvm
    from weft.driver.build import build as build
    from weft.driver.compile import compile as compile
    from weft.driver.quantization.quantize import quantize as quantize
    from weft.ir import instrument as instrument
    from weft.ir import transform as transform
    from weft.ir.module import IRModule as IRModule
    from weft.ir.node import Array as Array
    from weft.ir.node import Map as Map
    from weft.ir.node import Node as Object
    from weft.runtime.device import Device as Device
    from weft.runtime.device import cpu as cpu
    from weft.runtime.device import cuda as cuda
    from weft.runtime.device import device as device
    from weft.runtime.model.compiled_model import CompiledModel as CompiledModel
    from weft.runtime.model.compiled_model import load as load
    from weft.runtime.model.load_module import load_module as load_module
    from weft.runtime.module import Executable as Executable
    from weft.runtime.module import Module as Module
    from weft.runtime.ndarray import NDArray as NDArray
    from weft.runtime.registry import PackedFunc as PackedFunc
    from weft.runtime.registry import convert as convert
    from weft.runtime.registry import get_global_func as get_global_func
    from weft.runtime.registry import register_func as register_func
    from weft.support.dtype import DataType as DataType
    from weft.support.dtype import DataTypeCode as DataTypeCode
    from weft.support.errors import DiagnosticError as DiagnosticError
    from weft.support.errors import InternalError as InternalError
    from weft.support.errors import ScheduleError as ScheduleError
    from weft.support.errors import ScriptWarning as ScriptWarning
    from weft.support.errors import TVMError as TVMError
    from weft.target.target import Target as Target
    from weft.tir.op import const as const

__version__ = "0.1.0"

_NAMES = {
    "Array": "weft.ir.node",
    "CodegenError": "weft.support.errors",
    "CompiledModel": "weft.runtime.model.compiled_model",
    "DataType": "weft.support.dtype",
    "DataTypeCode": "weft.support.dtype",
    "Device": "weft.runtime.device",
    "DiagnosticError": "weft.support.errors",
    "Executable": "weft.runtime.module",
    "IRModule": "weft.ir.module",
    "InternalError": "weft.support.errors",
    "LegalizeError": "weft.support.errors",
    "Map": "weft.ir.node",
    "Module": "weft.runtime.module",
    "NDArray": "weft.runtime.ndarray",
    "Object": "weft.ir.node:Node",
    "PackedFunc": "weft.runtime.registry",
    "PassError": "weft.support.errors",
    "RuntimeFault": "weft.support.errors",
    "ScheduleError": "weft.support.errors",
    "ScriptWarning": "weft.support.errors",
    "TVMError": "weft.support.errors",
    "Target": "weft.target.target",
    "UnsupportedError": "weft.support.errors",
    "VerifyError": "weft.support.errors",
    "build": "weft.driver.build",
    "cl": "weft.runtime.device:opencl",
    "compile": "weft.driver.compile",
    "const": "weft.tir.op",
    "convert": "weft.runtime.registry",
    "cpu": "weft.runtime.device",
    "cuda": "weft.runtime.device",
    "device": "weft.runtime.device",
    "get_global_func": "weft.runtime.registry",
    "gpu": "weft.runtime.device:cuda",
    "install_as_tvm": "weft.compat.install",
    "instrument": "weft.ir:instrument",
    "load": "weft.runtime.model.compiled_model",
    "load_module": "weft.runtime.model.load_module",
    "metal": "weft.runtime.device",
    "mtl": "weft.runtime.device:metal",
    "opencl": "weft.runtime.device",
    "quantize": "weft.driver.quantization.quantize",
    "tune": "weft.driver.tuning.tune",
    "register_func": "weft.runtime.registry",
    "rocm": "weft.runtime.device",
    "transform": "weft.ir:transform",
    "vulkan": "weft.runtime.device",
}
_ROOMS = (
    "arith", "codegen", "compat", "data", "dlight", "driver", "error", "ir", "meta_schedule", "nd",
    "random", "relax", "runtime", "script", "support", "target", "te", "testing", "tir", "topi",
)  # fmt: skip
_PLANNED = {
    "rpc": "measurement on other machines",
}
__getattr__, __dir__ = module_getattr(__name__, _NAMES, _ROOMS, _PLANNED)
