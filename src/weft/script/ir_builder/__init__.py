"""IRBuilder: frames that build functions and modules statement by statement (TVM's ir_builder).

The TVMScript parser is one user: it evaluates the script's calls, and these functions, finding the
innermost frame, add to it. They can be called by hand as well::

    with IRBuilder() as builder:
        with tir.prim_func():
            tir.func_name("main")
            tir.evaluate(0)
    func = builder.get()
"""

from weft.script.ir_builder.base import IRBuilder, IRBuilderFrame

__all__ = ["IRBuilder", "IRBuilderFrame"]
