"""What tensor_call.ll, the call of a compiled function with a framework's tensors, is given.

The fields here are those of the types ``%call`` and ``%expected`` of that file, in order.
"""

from __future__ import annotations

from typing import Final

from weft.runtime.native.ir_files import ir_file

TENSOR_CALL: Final = "weft_tensor_call"
"""The name of the function in that file."""
MOST_ARGUMENTS: Final = 16
"""Inputs, outputs and handles of a function that can be called so, at most."""

CALL_FIELDS: Final = {
    "function": "ptr",
    "inputs": "i64",
    "outputs": "i64",
    "handles": "i64",  # arguments beside tensors: how many words there are
    "expected": "ptr",  # an %expected for each input, then for each output
    "prototypes": "ptr",  # a %tensor for each output
    "arena": "ptr",  # working memory, unless a call has it
    "has_arena": "i64",
    "words": "ptr",  # the handles; working memory, where there is any, takes the place of the first
    "threads": "i32",  # of parallel loops; 0: as the process has it
    "count_key": "i32",  # pthread key of the address of a thread's own number
    "type_offset": "i64",  # of an object's class in the object
    "tensor_class": "ptr",
    "negated": "ptr",  # the name of the method that says whether a tensor's memory is negated
    "read": "ptr",
    "allocate": "ptr",
    "wrap": "ptr",
    "refused": "ptr",  # NotImplemented
    "false": "ptr",
    "fail": "ptr",  # a Python function of the fault code, which raises
    "bare": "i64",  # the one output is the result; else a tuple of them
}
"""What ``weft_tensor_call`` knows of a function; weft.runtime.call.tensor_call fills it."""

EXPECTED_FIELDS: Final = {
    "ndim": "i32",
    "dtype": "i32",  # code, bits and lanes of DLPack
    "shape": "ptr",
    "strides": "ptr",
    "mask": "i64",  # bits of the address that are 0
}


def tensor_call_ir() -> str:
    """The module text."""
    return ir_file("call/tensor_call.ll")
