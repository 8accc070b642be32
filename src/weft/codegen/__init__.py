"""Native code from lowered TensorIR: LLVM IR, vector mathematics, object cache, workers."""
