"""A call of a compiled function with a framework's own tensors, in LLVM IR text.

``weft_tensor_call`` is a Python function in native code (``METH_FASTCALL``). Its ``self`` is a
tuple whose first item is the address of a ``%call``, which says all of one compiled function. It
reads the tensors through the exchange functions of their class (DLPack's
``__dlpack_c_exchange_api__``), compares them with what is expected, has the outputs allocated
there, gives the interpreter free while the compiled function runs, and wraps the outputs.

Whatever is not as expected, also a failure of those functions, ends in ``NotImplemented`` before
anything has run; the caller then goes the way through Python (weft.runtime.call.native_entry),
which explains. The one block of working memory is taken by an exchange, so of two threads that call
at once one goes that way too.
"""

from __future__ import annotations

from typing import Final

from weft.runtime.native.ir_text import expanded

TENSOR_CALL: Final = "weft_tensor_call"
"""The name of the function in this text."""
MOST_ARGUMENTS: Final = 16
"""Inputs, outputs and handles of a function that can be called so, at most."""

CALL_FIELDS: Final = {
    "function": "ptr",
    "inputs": "i64",
    "outputs": "i64",
    "handles": "i64",  # working memory, constants: those that there are, in this order
    "expected": "ptr",  # an %expected for each input, then for each output
    "prototypes": "ptr",  # a %tensor for each output
    "arena": "ptr",  # working memory, unless a call has it
    "has_arena": "i64",
    "constants": "ptr",
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

_TENSOR_FIELDS: Final = {  # DLPack's DLTensor
    "data": "ptr", "device": "i32", "device_id": "i32", "ndim": "i32", "dtype": "i32",
    "shape": "ptr", "strides": "ptr", "offset": "i64",
}  # fmt: skip
_MANAGED_FIELDS: Final = {  # DLPack's DLManagedTensorVersioned
    "version": "i64", "context": "ptr", "deleter": "ptr", "flags": "i64", "tensor": "%tensor",
}  # fmt: skip

_TEXT: Final = """
declare ptr @PyTuple_GetItem(ptr, i64)
declare ptr @PyLong_AsVoidPtr(ptr)
declare ptr @PyLong_FromLong(i64)
declare ptr @PyObject_CallOneArg(ptr, ptr)
declare ptr @PyObject_VectorcallMethod(ptr, ptr, i64, ptr)
declare ptr @PyTuple_New(i64)
declare i32 @PyTuple_SetItem(ptr, i64, ptr)
declare void @PyErr_Clear()
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)
declare void @Py_IncRef(ptr)
declare void @Py_DecRef(ptr)
declare ptr @pthread_getspecific(i32)

; what an allocator that fails calls; the way through Python will say it again
define internal void @ignore(ptr %context, ptr %kind, ptr %message) {
  ret void
}

; whether a tensor's memory holds its values as they are
define internal i1 @is_plain(ptr %call, ptr %object) {
entry:
  %name = read call.negated
  %any = icmp ne ptr %name, null
  br i1 %any, label %ask, label %plain
ask:
  %self = alloca ptr
  store ptr %object, ptr %self
  %answer = call ptr @PyObject_VectorcallMethod(ptr %name, ptr %self, i64 1, ptr null)
  %failed = icmp eq ptr %answer, null
  br i1 %failed, label %clear, label %compare
clear:
  call void @PyErr_Clear()
  ret i1 false
compare:
  %false = read call.false
  %same = icmp eq ptr %answer, %false
  call void @Py_DecRef(ptr %answer)
  ret i1 %same
plain:
  ret i1 true
}

; the address of a tensor's first element; null unless all is as expected
define internal ptr @data_of(ptr %tensor, ptr %expected) {
entry:
  %device = read tensor.device
  %on.cpu = icmp eq i32 %device, 1
  %ndim = read tensor.ndim
  %wanted.ndim = read expected.ndim
  %same.ndim = icmp eq i32 %ndim, %wanted.ndim
  %dtype = read tensor.dtype
  %wanted.dtype = read expected.dtype
  %same.dtype = icmp eq i32 %dtype, %wanted.dtype
  %first = and i1 %on.cpu, %same.ndim
  %fits = and i1 %first, %same.dtype
  %shape = read tensor.shape
  %strides = read tensor.strides
  %wanted.shape = read expected.shape
  %wanted.strides = read expected.strides
  br i1 %fits, label %axes, label %refuse
axes:
  %axis = phi i32 [ 0, %entry ], [ %axis.next, %next ]
  %end = icmp eq i32 %axis, %ndim
  br i1 %end, label %memory, label %look
look:
  %extent.at = getelementptr i64, ptr %shape, i32 %axis
  %extent = load i64, ptr %extent.at
  %wanted.extent.at = getelementptr i64, ptr %wanted.shape, i32 %axis
  %wanted.extent = load i64, ptr %wanted.extent.at
  %same.extent = icmp eq i64 %extent, %wanted.extent
  %no.strides = icmp eq ptr %strides, null ; compact, before DLPack 1.2
  %no.step = icmp eq i64 %extent, 1 ; its stride means nothing
  %free = or i1 %no.strides, %no.step
  %known = select i1 %free, ptr %wanted.strides, ptr %strides
  %stride.at = getelementptr i64, ptr %known, i32 %axis
  %stride = load i64, ptr %stride.at
  %wanted.stride.at = getelementptr i64, ptr %wanted.strides, i32 %axis
  %wanted.stride = load i64, ptr %wanted.stride.at
  %same.stride = icmp eq i64 %stride, %wanted.stride
  %same = and i1 %same.extent, %same.stride
  br i1 %same, label %next, label %refuse
next:
  %axis.next = add i32 %axis, 1
  br label %axes
memory:
  %base = read tensor.data
  %none = icmp eq ptr %base, null
  br i1 %none, label %refuse, label %aligned
aligned:
  %offset = read tensor.offset
  %data = getelementptr i8, ptr %base, i64 %offset
  %address = ptrtoint ptr %data to i64
  %mask = read expected.mask
  %rest = and i64 %address, %mask
  %fine = icmp eq i64 %rest, 0
  br i1 %fine, label %take, label %refuse
take:
  ret ptr %data
refuse:
  ret ptr null
}

; the address of an argument's first element; null unless it is a tensor as expected
define internal ptr @read_input(ptr %call, ptr %object, ptr %expected) {
entry:
  %tensor = alloca %tensor
  %type.offset = read call.type_offset
  %type.at = getelementptr i8, ptr %object, i64 %type.offset
  %type = load ptr, ptr %type.at
  %class = read call.tensor_class
  %is.tensor = icmp eq ptr %type, %class
  br i1 %is.tensor, label %read, label %refuse
read:
  %reader = read call.read
  %status = call i32 %reader(ptr %object, ptr %tensor)
  %failed = icmp ne i32 %status, 0
  br i1 %failed, label %clear, label %compare
clear:
  call void @PyErr_Clear()
  br label %refuse
compare:
  %data = call ptr @data_of(ptr %tensor, ptr %expected)
  %unfit = icmp eq ptr %data, null
  br i1 %unfit, label %refuse, label %values
values:
  %plain = call i1 @is_plain(ptr %call, ptr %object)
  %result = select i1 %plain, ptr %data, ptr null
  ret ptr %result
refuse:
  ret ptr null
}

; give the first outputs back
define internal void @release(ptr %made, i64 %count) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %next ]
  %end = icmp eq i64 %i, %count
  br i1 %end, label %done, label %one
one:
  %managed.at = getelementptr ptr, ptr %made, i64 %i
  %managed = load ptr, ptr %managed.at
  %deleter = read managed.deleter
  %none = icmp eq ptr %deleter, null
  br i1 %none, label %next, label %delete
delete:
  call void %deleter(ptr %managed)
  br label %next
next:
  %i.next = add i64 %i, 1
  br label %loop
done:
  ret void
}

; fresh memory for all outputs: managed tensors, and their addresses among the arguments
define internal i1 @allocate(ptr %call, ptr %made, ptr %arguments) {
entry:
  %allocator = read call.allocate
  %inputs = read call.inputs
  %outputs = read call.outputs
  %all.expected = read call.expected
  %prototypes = read call.prototypes
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %keep ]
  %i.next = add i64 %i, 1
  %end = icmp eq i64 %i, %outputs
  br i1 %end, label %done, label %one
one:
  %prototype = getelementptr %tensor, ptr %prototypes, i64 %i
  %managed.at = getelementptr ptr, ptr %made, i64 %i
  %status = call i32 %allocator(ptr %prototype, ptr %managed.at, ptr null, ptr @ignore)
  %failed = icmp ne i32 %status, 0
  br i1 %failed, label %clear, label %look
look:
  %managed = load ptr, ptr %managed.at
  %tensor = field managed.tensor
  %place = add i64 %inputs, %i
  %expected = getelementptr %expected, ptr %all.expected, i64 %place
  %data = call ptr @data_of(ptr %tensor, ptr %expected)
  %unfit = icmp eq ptr %data, null
  br i1 %unfit, label %refuse, label %keep
keep:
  %argument.at = getelementptr ptr, ptr %arguments, i64 %place
  store ptr %data, ptr %argument.at
  br label %loop
clear:
  call void @PyErr_Clear()
  br label %refuse
refuse:
  %begun = select i1 %failed, i64 %i, i64 %i.next
  call void @release(ptr %made, i64 %begun)
  ret i1 false
done:
  ret i1 true
}

; a Python object for each output: the one itself, or a tuple; null where one cannot be made
define internal ptr @wrap(ptr %call, ptr %made) {
entry:
  %object.at = alloca ptr
  %wrapper = read call.wrap
  %outputs = read call.outputs
  %bare = read call.bare
  %single = icmp ne i64 %bare, 0
  br i1 %single, label %one, label %several
one:
  %only = load ptr, ptr %made
  %one.status = call i32 %wrapper(ptr %only, ptr %object.at)
  %one.failed = icmp ne i32 %one.status, 0
  %one.object = load ptr, ptr %object.at
  %one.result = select i1 %one.failed, ptr null, ptr %one.object
  ret ptr %one.result
several:
  %tuple = call ptr @PyTuple_New(i64 %outputs)
  %no.tuple = icmp eq ptr %tuple, null
  br i1 %no.tuple, label %rest, label %loop
loop:
  %i = phi i64 [ 0, %several ], [ %i.next, %keep ]
  %end = icmp eq i64 %i, %outputs
  br i1 %end, label %done, label %item
item:
  %managed.at = getelementptr ptr, ptr %made, i64 %i
  %managed = load ptr, ptr %managed.at
  %status = call i32 %wrapper(ptr %managed, ptr %object.at)
  %failed = icmp ne i32 %status, 0
  %i.next = add i64 %i, 1
  br i1 %failed, label %drop, label %keep
keep:
  %object = load ptr, ptr %object.at
  %set = call i32 @PyTuple_SetItem(ptr %tuple, i64 %i, ptr %object)
  br label %loop
drop:
  call void @Py_DecRef(ptr %tuple)
  br label %rest
rest:
  %left = phi i64 [ 0, %several ], [ %i.next, %drop ]
  %left.at = getelementptr ptr, ptr %made, i64 %left
  %left.count = sub i64 %outputs, %left
  call void @release(ptr %left.at, i64 %left.count)
  ret ptr null
done:
  ret ptr %tuple
}

; call a function with so many pointers
define internal i32 @invoke(ptr %function, ptr %arguments, i64 %count) {
entry:
@LOADS@
  switch i64 %count, label %none [ @CASES@ ]
none:
  ret i32 -1
@CALLS@
}

; run on the arguments, without the interpreter's lock, with that many threads in the word at
; `count.at`; the fault code
define internal i32 @run(ptr %call, ptr %arguments, ptr %arena, ptr %count.at) {
entry:
  %function = read call.function
  %inputs = read call.inputs
  %outputs = read call.outputs
  %handles = read call.handles
  %constants = read call.constants
  %tensors = add i64 %inputs, %outputs
  %all = add i64 %tensors, %handles
  %no.arena = icmp eq ptr %arena, null
  %first = select i1 %no.arena, ptr %constants, ptr %arena
  %first.at = getelementptr ptr, ptr %arguments, i64 %tensors
  store ptr %first, ptr %first.at
  %second.at = getelementptr ptr, ptr %first.at, i64 1
  store ptr %constants, ptr %second.at
  %threads = read call.threads
  %before = load i32, ptr %count.at
  store i32 %threads, ptr %count.at
  %state = call ptr @PyEval_SaveThread()
  %code = call i32 @invoke(ptr %function, ptr %arguments, i64 %all)
  call void @PyEval_RestoreThread(ptr %state)
  store i32 %before, ptr %count.at
  ret i32 %code
}

define ptr @weft_tensor_call(ptr %self, ptr %given, i64 %count) {
entry:
  %arguments = alloca [@ROOM@ x ptr]
  %made = alloca [@ROOM@ x ptr]
  %unused = alloca i32
  %number = call ptr @PyTuple_GetItem(ptr %self, i64 0)
  %call = call ptr @PyLong_AsVoidPtr(ptr %number)
  %inputs = read call.inputs
  %outputs = read call.outputs
  %all.expected = read call.expected
  %arena.at = field call.arena
  %has.arena.at = field call.has_arena
  %same.count = icmp eq i64 %count, %inputs
  br i1 %same.count, label %read, label %refuse
read:
  %i = phi i64 [ 0, %entry ], [ %i.next, %keep ]
  %end = icmp eq i64 %i, %inputs
  br i1 %end, label %thread, label %one
one:
  %object.at = getelementptr ptr, ptr %given, i64 %i
  %object = load ptr, ptr %object.at
  %expected = getelementptr %expected, ptr %all.expected, i64 %i
  %data = call ptr @read_input(ptr %call, ptr %object, ptr %expected)
  %unfit = icmp eq ptr %data, null
  br i1 %unfit, label %refuse, label %keep
keep:
  %argument.at = getelementptr ptr, ptr %arguments, i64 %i
  store ptr %data, ptr %argument.at
  %i.next = add i64 %i, 1
  br label %read
thread:
  %key = read call.count_key
  %own.at = call ptr @pthread_getspecific(i32 %key)
  %threads = read call.threads
  %as.told = icmp eq i32 %threads, 0
  %told.at = select i1 %as.told, ptr %unused, ptr %own.at
  %no.count = icmp eq ptr %told.at, null ; the way through Python makes a new thread's
  br i1 %no.count, label %refuse, label %working
working:
  %arena = atomicrmw xchg ptr %arena.at, ptr null acquire, align 8
  %has.arena = load i64, ptr %has.arena.at
  %wants.arena = icmp ne i64 %has.arena, 0
  %no.arena = icmp eq ptr %arena, null
  %taken = and i1 %wants.arena, %no.arena
  br i1 %taken, label %refuse, label %allocate
allocate:
  %allocated = call i1 @allocate(ptr %call, ptr %made, ptr %arguments)
  br i1 %allocated, label %run, label %return
return:
  store atomic ptr %arena, ptr %arena.at release, align 8
  br label %refuse
run:
  %code = call i32 @run(ptr %call, ptr %arguments, ptr %arena, ptr %told.at)
  store atomic ptr %arena, ptr %arena.at release, align 8
  %fault = icmp ne i32 %code, 0
  br i1 %fault, label %fail, label %wrap
wrap:
  %result = call ptr @wrap(ptr %call, ptr %made)
  ret ptr %result
fail:
  call void @release(ptr %made, i64 %outputs)
  %raise = read call.fail
  %code64 = sext i32 %code to i64
  %code.object = call ptr @PyLong_FromLong(i64 %code64)
  %no.object = icmp eq ptr %code.object, null
  br i1 %no.object, label %failed, label %raising
raising:
  %raised = call ptr @PyObject_CallOneArg(ptr %raise, ptr %code.object)
  call void @Py_DecRef(ptr %code.object)
  ret ptr %raised
failed:
  ret ptr null
refuse:
  %refused = read call.refused
  call void @Py_IncRef(ptr %refused)
  ret ptr %refused
}
"""


def tensor_call_ir() -> str:
    """The module text."""
    structs = {
        "tensor": _TENSOR_FIELDS, "managed": _MANAGED_FIELDS, "expected": EXPECTED_FIELDS,
        "call": CALL_FIELDS,
    }  # fmt: skip
    types = [f"%{name} = type {{ {', '.join(of.values())} }}" for name, of in structs.items()]

    values = {"ROOM": MOST_ARGUMENTS + 1, **_invocations()}
    return "\n".join(types) + "\n" + expanded(_TEXT, structs, values)


def _invocations() -> dict[str, str]:
    """A call for each number of arguments."""
    loads, cases, calls = [], [], []
    for i in range(MOST_ARGUMENTS):
        loads.append(f"  %at{i} = getelementptr ptr, ptr %arguments, i64 {i}")
    for count in range(1, MOST_ARGUMENTS + 1):
        cases.append(f"i64 {count}, label %with{count}")
        calls.append(f"with{count}:")
        calls += [f"  %a{count}.{i} = load ptr, ptr %at{i}" for i in range(count)]
        passed = ", ".join([f"ptr %a{count}.{i}" for i in range(count)])
        calls += [f"  %r{count} = call i32 %function({passed})", f"  ret i32 %r{count}"]
    return {"LOADS": "\n".join(loads), "CASES": " ".join(cases), "CALLS": "\n".join(calls)}
