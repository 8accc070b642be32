"""Tensor intrinsics that come with weft, in TVMScript: importing the package registers them.

``x86``, ``arm_cpu``, ``hexagon``, ``rocm``: dot products; ``dot_product_common``: dp4a; ``cuda``:
wmma and mma fragments. The names are TVM 0.20's (``tvm.tir.tensor_intrin``).
"""

from weft.backends.cpu.tensor_intrin import arm_cpu as arm_cpu
from weft.backends.cpu.tensor_intrin import x86 as x86
from weft.tensor_intrin import cuda as cuda
from weft.tensor_intrin import dot_product_common as dot_product_common
from weft.tensor_intrin import hexagon as hexagon
from weft.tensor_intrin import rocm as rocm
