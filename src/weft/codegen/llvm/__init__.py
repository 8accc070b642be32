"""LLVM IR text from lowered PrimFuncs, and its compilation to object code."""
