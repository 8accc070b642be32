; Faults, memory and loops of a model that runs on one thread.
;
; Memory is given back in the opposite order of its taking: compiled code holds memory by scopes, and
; model.js takes the arguments of a call before it and gives all back after it. So the heap is a
; stack, and its top is all that there is to know of it.

%fault = type { i32, ptr, i64, i64 }

@__heap_base = external global i8
@weft_top = internal global i32 0
@weft_last_fault = internal global %fault zeroinitializer

declare i32 @llvm.wasm.memory.size.i32(i32)
declare i32 @llvm.wasm.memory.grow.i32(i32, i32)

; Keeps what went wrong for weft_fault; the code that a failed function returns is 1.
define i32 @weft_raise(i32 %kind, ptr %text, i64 %a, i64 %b) noinline {
  store i32 %kind, ptr @weft_last_fault
  store ptr %text, ptr getelementptr (%fault, ptr @weft_last_fault, i32 0, i32 1)
  store i64 %a, ptr getelementptr (%fault, ptr @weft_last_fault, i32 0, i32 2)
  store i64 %b, ptr getelementptr (%fault, ptr @weft_last_fault, i32 0, i32 3)
  ret i32 1
}

; The last fault: its kind, the address of its text, two numbers that the text shows.
define ptr @weft_fault() {
  ret ptr @weft_last_fault
}

; The next size bytes of the heap; null where memory cannot grow so far.
define noalias ptr @aligned_alloc(i64 %alignment, i64 %size) noinline {
entry:
  %old = load i32, ptr @weft_top
  %unused = icmp eq i32 %old, 0
  %base = ptrtoint ptr @__heap_base to i32
  %top = select i1 %unused, i32 %base, i32 %old
  %wide = zext i32 %top to i64
  %less = sub i64 %alignment, 1
  %past = add i64 %wide, %less
  %mask = sub i64 0, %alignment
  %at = and i64 %past, %mask
  %end = add i64 %at, %size
  %far = icmp ugt i64 %size, 4294901760
  %further = icmp ugt i64 %end, 4294901760
  %never = or i1 %far, %further
  br i1 %never, label %full, label %look
look:
  %pages = call i32 @llvm.wasm.memory.size.i32(i32 0)
  %pages.wide = zext i32 %pages to i64
  %up = add i64 %end, 65535
  %needed = lshr i64 %up, 16
  %enough = icmp ule i64 %needed, %pages.wide
  br i1 %enough, label %take, label %grow
grow:
  %lacking = sub i64 %needed, %pages.wide
  %more = trunc i64 %lacking to i32
  %grown = call i32 @llvm.wasm.memory.grow.i32(i32 0, i32 %more)
  %refused = icmp eq i32 %grown, -1
  br i1 %refused, label %full, label %take
take:
  %new = trunc i64 %end to i32
  store i32 %new, ptr @weft_top
  %result = inttoptr i64 %at to ptr
  ret ptr %result
full:
  ret ptr null
}

; Gives back this memory and all that was taken after it.
define void @free(ptr %memory) {
  %at = ptrtoint ptr %memory to i32
  store i32 %at, ptr @weft_top
  ret void
}

; There is one thread: a parallel loop is one part.
define i32 @weft_parallel(ptr %body, ptr %context, i64 %n, i32 %threads) {
  %code = call i32 %body(ptr %context, i64 0, i64 %n)
  ret i32 %code
}

define i32 @weft_parallel_brief(ptr %body, ptr %context, i64 %n, i32 %threads) {
  %code = call i32 %body(ptr %context, i64 0, i64 %n)
  ret i32 %code
}

define i32 @weft_team(ptr %body, ptr %context, i64 %n, i32 %threads) {
  %code = call i32 %body(ptr %context, i64 0, i64 %n)
  ret i32 %code
}
