; A call of a compiled function with a framework's own tensors.
;
; ``weft_tensor_call`` is a Python function in native code (``METH_FASTCALL``). Its ``self`` is a
; tuple whose first item is the address of a ``%call``, which says all of one compiled function.
; It reads the tensors through the exchange functions of their class (DLPack's
; ``__dlpack_c_exchange_api__``), compares them with what is expected, has the outputs allocated
; there, gives the interpreter free while the compiled function runs, and wraps the outputs.
;
; Whatever is not as expected, also a failure of those functions, ends in ``NotImplemented``
; before anything has run; the caller then goes the way through Python
; (weft.runtime.call.native_entry), which explains. The one block of working memory is taken by an
; exchange, so of two threads that call at once one goes that way too.

%tensor = type {
  ptr,  ; 0 data
  i32,  ; 1 device
  i32,  ; 2 device_id
  i32,  ; 3 ndim
  i32,  ; 4 dtype
  ptr,  ; 5 shape
  ptr,  ; 6 strides
  i64   ; 7 offset
}

%managed = type {
  i64,      ; 0 version
  ptr,      ; 1 context
  ptr,      ; 2 deleter
  i64,      ; 3 flags
  %tensor   ; 4 tensor
}

%expected = type {
  i32,  ; 0 ndim
  i32,  ; 1 dtype: code, bits and lanes of DLPack
  ptr,  ; 2 shape
  ptr,  ; 3 strides
  i64   ; 4 mask: bits of the address that are 0
}

%call = type {
  ptr,  ; 0 function
  i64,  ; 1 inputs
  i64,  ; 2 outputs
  i64,  ; 3 handles: arguments beside tensors: how many words there are
  ptr,  ; 4 expected: an %expected for each input, then for each output
  ptr,  ; 5 prototypes: a %tensor for each output
  ptr,  ; 6 arena: working memory, unless a call has it
  i64,  ; 7 has_arena
  ptr,  ; 8 words: the handles; working memory, where there is any, takes the place of the first
  i32,  ; 9 threads: of parallel loops; 0: as the process has it
  i32,  ; 10 count_key: pthread key of the address of a thread's own number
  i64,  ; 11 type_offset: of an object's class in the object
  ptr,  ; 12 tensor_class
  ptr,  ; 13 negated: the name of the method that says whether a tensor's memory is negated
  ptr,  ; 14 read
  ptr,  ; 15 allocate
  ptr,  ; 16 wrap
  ptr,  ; 17 refused: NotImplemented
  ptr,  ; 18 false
  ptr,  ; 19 fail: a Python function of the fault code, which raises
  i64   ; 20 bare: the one output is the result; else a tuple of them
}

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
  %name.at = getelementptr %call, ptr %call, i32 0, i32 13 ; negated
  %name = load ptr, ptr %name.at
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
  %false.at = getelementptr %call, ptr %call, i32 0, i32 18 ; false
  %false = load ptr, ptr %false.at
  %same = icmp eq ptr %answer, %false
  call void @Py_DecRef(ptr %answer)
  ret i1 %same
plain:
  ret i1 true
}

; the address of a tensor's first element; null unless all is as expected
define internal ptr @data_of(ptr %tensor, ptr %expected) {
entry:
  %device.at = getelementptr %tensor, ptr %tensor, i32 0, i32 1 ; device
  %device = load i32, ptr %device.at
  %on.cpu = icmp eq i32 %device, 1
  %ndim.at = getelementptr %tensor, ptr %tensor, i32 0, i32 3 ; ndim
  %ndim = load i32, ptr %ndim.at
  %wanted.ndim.at = getelementptr %expected, ptr %expected, i32 0, i32 0 ; ndim
  %wanted.ndim = load i32, ptr %wanted.ndim.at
  %same.ndim = icmp eq i32 %ndim, %wanted.ndim
  %dtype.at = getelementptr %tensor, ptr %tensor, i32 0, i32 4 ; dtype
  %dtype = load i32, ptr %dtype.at
  %wanted.dtype.at = getelementptr %expected, ptr %expected, i32 0, i32 1 ; dtype
  %wanted.dtype = load i32, ptr %wanted.dtype.at
  %same.dtype = icmp eq i32 %dtype, %wanted.dtype
  %first = and i1 %on.cpu, %same.ndim
  %fits = and i1 %first, %same.dtype
  %shape.at = getelementptr %tensor, ptr %tensor, i32 0, i32 5 ; shape
  %shape = load ptr, ptr %shape.at
  %strides.at = getelementptr %tensor, ptr %tensor, i32 0, i32 6 ; strides
  %strides = load ptr, ptr %strides.at
  %wanted.shape.at = getelementptr %expected, ptr %expected, i32 0, i32 2 ; shape
  %wanted.shape = load ptr, ptr %wanted.shape.at
  %wanted.strides.at = getelementptr %expected, ptr %expected, i32 0, i32 3 ; strides
  %wanted.strides = load ptr, ptr %wanted.strides.at
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
  %base.at = getelementptr %tensor, ptr %tensor, i32 0, i32 0 ; data
  %base = load ptr, ptr %base.at
  %none = icmp eq ptr %base, null
  br i1 %none, label %refuse, label %aligned
aligned:
  %offset.at = getelementptr %tensor, ptr %tensor, i32 0, i32 7 ; offset
  %offset = load i64, ptr %offset.at
  %data = getelementptr i8, ptr %base, i64 %offset
  %address = ptrtoint ptr %data to i64
  %mask.at = getelementptr %expected, ptr %expected, i32 0, i32 4 ; mask
  %mask = load i64, ptr %mask.at
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
  %type.offset.at = getelementptr %call, ptr %call, i32 0, i32 11 ; type_offset
  %type.offset = load i64, ptr %type.offset.at
  %type.at = getelementptr i8, ptr %object, i64 %type.offset
  %type = load ptr, ptr %type.at
  %class.at = getelementptr %call, ptr %call, i32 0, i32 12 ; tensor_class
  %class = load ptr, ptr %class.at
  %is.tensor = icmp eq ptr %type, %class
  br i1 %is.tensor, label %read, label %refuse
read:
  %reader.at = getelementptr %call, ptr %call, i32 0, i32 14 ; read
  %reader = load ptr, ptr %reader.at
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
  %deleter.at = getelementptr %managed, ptr %managed, i32 0, i32 2 ; deleter
  %deleter = load ptr, ptr %deleter.at
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
  %allocator.at = getelementptr %call, ptr %call, i32 0, i32 15 ; allocate
  %allocator = load ptr, ptr %allocator.at
  %inputs.at = getelementptr %call, ptr %call, i32 0, i32 1 ; inputs
  %inputs = load i64, ptr %inputs.at
  %outputs.at = getelementptr %call, ptr %call, i32 0, i32 2 ; outputs
  %outputs = load i64, ptr %outputs.at
  %all.expected.at = getelementptr %call, ptr %call, i32 0, i32 4 ; expected
  %all.expected = load ptr, ptr %all.expected.at
  %prototypes.at = getelementptr %call, ptr %call, i32 0, i32 5 ; prototypes
  %prototypes = load ptr, ptr %prototypes.at
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
  %tensor = getelementptr %managed, ptr %managed, i32 0, i32 4 ; tensor
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
  %wrapper.at = getelementptr %call, ptr %call, i32 0, i32 16 ; wrap
  %wrapper = load ptr, ptr %wrapper.at
  %outputs.at = getelementptr %call, ptr %call, i32 0, i32 2 ; outputs
  %outputs = load i64, ptr %outputs.at
  %bare.at = getelementptr %call, ptr %call, i32 0, i32 20 ; bare
  %bare = load i64, ptr %bare.at
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

; call a function with so many pointers, of the 16 that there is room for
define internal i32 @invoke(ptr %function, ptr %arguments, i64 %count) {
entry:
  %at0 = getelementptr ptr, ptr %arguments, i64 0
  %a0 = load ptr, ptr %at0
  %at1 = getelementptr ptr, ptr %arguments, i64 1
  %a1 = load ptr, ptr %at1
  %at2 = getelementptr ptr, ptr %arguments, i64 2
  %a2 = load ptr, ptr %at2
  %at3 = getelementptr ptr, ptr %arguments, i64 3
  %a3 = load ptr, ptr %at3
  %at4 = getelementptr ptr, ptr %arguments, i64 4
  %a4 = load ptr, ptr %at4
  %at5 = getelementptr ptr, ptr %arguments, i64 5
  %a5 = load ptr, ptr %at5
  %at6 = getelementptr ptr, ptr %arguments, i64 6
  %a6 = load ptr, ptr %at6
  %at7 = getelementptr ptr, ptr %arguments, i64 7
  %a7 = load ptr, ptr %at7
  %at8 = getelementptr ptr, ptr %arguments, i64 8
  %a8 = load ptr, ptr %at8
  %at9 = getelementptr ptr, ptr %arguments, i64 9
  %a9 = load ptr, ptr %at9
  %at10 = getelementptr ptr, ptr %arguments, i64 10
  %a10 = load ptr, ptr %at10
  %at11 = getelementptr ptr, ptr %arguments, i64 11
  %a11 = load ptr, ptr %at11
  %at12 = getelementptr ptr, ptr %arguments, i64 12
  %a12 = load ptr, ptr %at12
  %at13 = getelementptr ptr, ptr %arguments, i64 13
  %a13 = load ptr, ptr %at13
  %at14 = getelementptr ptr, ptr %arguments, i64 14
  %a14 = load ptr, ptr %at14
  %at15 = getelementptr ptr, ptr %arguments, i64 15
  %a15 = load ptr, ptr %at15
  switch i64 %count, label %none [
    i64 1, label %with1
    i64 2, label %with2
    i64 3, label %with3
    i64 4, label %with4
    i64 5, label %with5
    i64 6, label %with6
    i64 7, label %with7
    i64 8, label %with8
    i64 9, label %with9
    i64 10, label %with10
    i64 11, label %with11
    i64 12, label %with12
    i64 13, label %with13
    i64 14, label %with14
    i64 15, label %with15
    i64 16, label %with16
  ]
none:
  ret i32 -1
with1:
  %r1 = call i32 %function(ptr %a0)
  ret i32 %r1
with2:
  %r2 = call i32 %function(ptr %a0, ptr %a1)
  ret i32 %r2
with3:
  %r3 = call i32 %function(ptr %a0, ptr %a1, ptr %a2)
  ret i32 %r3
with4:
  %r4 = call i32 %function(ptr %a0, ptr %a1, ptr %a2, ptr %a3)
  ret i32 %r4
with5:
  %r5 = call i32 %function(ptr %a0, ptr %a1, ptr %a2, ptr %a3, ptr %a4)
  ret i32 %r5
with6:
  %r6 = call i32 %function(ptr %a0, ptr %a1, ptr %a2, ptr %a3, ptr %a4, ptr %a5)
  ret i32 %r6
with7:
  %r7 = call i32 %function(ptr %a0, ptr %a1, ptr %a2, ptr %a3, ptr %a4, ptr %a5, ptr %a6)
  ret i32 %r7
with8:
  %r8 = call i32 %function(ptr %a0, ptr %a1, ptr %a2, ptr %a3, ptr %a4, ptr %a5, ptr %a6, ptr %a7)
  ret i32 %r8
with9:
  %r9 = call i32 %function(ptr %a0, ptr %a1, ptr %a2, ptr %a3, ptr %a4, ptr %a5, ptr %a6, ptr %a7,
                           ptr %a8)
  ret i32 %r9
with10:
  %r10 = call i32 %function(ptr %a0, ptr %a1, ptr %a2, ptr %a3, ptr %a4, ptr %a5, ptr %a6,
                            ptr %a7, ptr %a8, ptr %a9)
  ret i32 %r10
with11:
  %r11 = call i32 %function(ptr %a0, ptr %a1, ptr %a2, ptr %a3, ptr %a4, ptr %a5, ptr %a6,
                            ptr %a7, ptr %a8, ptr %a9, ptr %a10)
  ret i32 %r11
with12:
  %r12 = call i32 %function(ptr %a0, ptr %a1, ptr %a2, ptr %a3, ptr %a4, ptr %a5, ptr %a6,
                            ptr %a7, ptr %a8, ptr %a9, ptr %a10, ptr %a11)
  ret i32 %r12
with13:
  %r13 = call i32 %function(ptr %a0, ptr %a1, ptr %a2, ptr %a3, ptr %a4, ptr %a5, ptr %a6,
                            ptr %a7, ptr %a8, ptr %a9, ptr %a10, ptr %a11, ptr %a12)
  ret i32 %r13
with14:
  %r14 = call i32 %function(ptr %a0, ptr %a1, ptr %a2, ptr %a3, ptr %a4, ptr %a5, ptr %a6,
                            ptr %a7, ptr %a8, ptr %a9, ptr %a10, ptr %a11, ptr %a12, ptr %a13)
  ret i32 %r14
with15:
  %r15 = call i32 %function(ptr %a0, ptr %a1, ptr %a2, ptr %a3, ptr %a4, ptr %a5, ptr %a6,
                            ptr %a7, ptr %a8, ptr %a9, ptr %a10, ptr %a11, ptr %a12, ptr %a13,
                            ptr %a14)
  ret i32 %r15
with16:
  %r16 = call i32 %function(ptr %a0, ptr %a1, ptr %a2, ptr %a3, ptr %a4, ptr %a5, ptr %a6,
                            ptr %a7, ptr %a8, ptr %a9, ptr %a10, ptr %a11, ptr %a12, ptr %a13,
                            ptr %a14, ptr %a15)
  ret i32 %r16
}

; run on the arguments, without the interpreter's lock, with that many threads in the word at
; `count.at`; the fault code
define internal i32 @run(ptr %call, ptr %arguments, ptr %arena, ptr %count.at) {
entry:
  %function.at = getelementptr %call, ptr %call, i32 0, i32 0 ; function
  %function = load ptr, ptr %function.at
  %inputs.at = getelementptr %call, ptr %call, i32 0, i32 1 ; inputs
  %inputs = load i64, ptr %inputs.at
  %outputs.at = getelementptr %call, ptr %call, i32 0, i32 2 ; outputs
  %outputs = load i64, ptr %outputs.at
  %handles.at = getelementptr %call, ptr %call, i32 0, i32 3 ; handles
  %handles = load i64, ptr %handles.at
  %words.at = getelementptr %call, ptr %call, i32 0, i32 8 ; words
  %words = load ptr, ptr %words.at
  %tensors = add i64 %inputs, %outputs
  %all = add i64 %tensors, %handles
  %first.at = getelementptr ptr, ptr %arguments, i64 %tensors
  br label %copy
copy:
  %i = phi i64 [ 0, %entry ], [ %i.next, %word ]
  %end = icmp eq i64 %i, %handles
  br i1 %end, label %memory, label %word
word:
  %word.at = getelementptr ptr, ptr %words, i64 %i
  %word.value = load ptr, ptr %word.at
  %handle.at = getelementptr ptr, ptr %first.at, i64 %i
  store ptr %word.value, ptr %handle.at
  %i.next = add i64 %i, 1
  br label %copy
memory:
  %no.arena = icmp eq ptr %arena, null
  br i1 %no.arena, label %start, label %place
place:
  store ptr %arena, ptr %first.at
  br label %start
start:
  %threads.at = getelementptr %call, ptr %call, i32 0, i32 9 ; threads
  %threads = load i32, ptr %threads.at
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
  %arguments = alloca [17 x ptr]
  %made = alloca [17 x ptr]
  %unused = alloca i32
  %number = call ptr @PyTuple_GetItem(ptr %self, i64 0)
  %call = call ptr @PyLong_AsVoidPtr(ptr %number)
  %inputs.at = getelementptr %call, ptr %call, i32 0, i32 1 ; inputs
  %inputs = load i64, ptr %inputs.at
  %outputs.at = getelementptr %call, ptr %call, i32 0, i32 2 ; outputs
  %outputs = load i64, ptr %outputs.at
  %all.expected.at = getelementptr %call, ptr %call, i32 0, i32 4 ; expected
  %all.expected = load ptr, ptr %all.expected.at
  %arena.at = getelementptr %call, ptr %call, i32 0, i32 6 ; arena
  %has.arena.at = getelementptr %call, ptr %call, i32 0, i32 7 ; has_arena
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
  %key.at = getelementptr %call, ptr %call, i32 0, i32 10 ; count_key
  %key = load i32, ptr %key.at
  %own.at = call ptr @pthread_getspecific(i32 %key)
  %threads.at = getelementptr %call, ptr %call, i32 0, i32 9 ; threads
  %threads = load i32, ptr %threads.at
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
  %raise.at = getelementptr %call, ptr %call, i32 0, i32 19 ; fail
  %raise = load ptr, ptr %raise.at
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
  %refused.at = getelementptr %call, ptr %call, i32 0, i32 17 ; refused
  %refused = load ptr, ptr %refused.at
  call void @Py_IncRef(ptr %refused)
  ret ptr %refused
}
