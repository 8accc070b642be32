; Faults, memory and loops of a model whose parallel loops run on several threads.
;
; Every thread is an instance of the module: it has its own stack (link.py), and shares the memory.
; The thread of the caller, the first one, opens a loop; the others, which are in weft_serve, join it,
; and all take parts of it by a counter until none is left. A thread says that it is in (weft_inside)
; before it looks whether a loop is open; the first one closes the loop before it looks whether anybody
; is in. All of these are sequentially consistent, so either the first one waits for the other, or the
; other finds the loop closed and reads nothing of it.
;
; The first thread waits by looking, since a page's own thread may not sleep.

; All variables begin as zero, which no instance writes: the linker leaves zeros out of a module.

%fault = type { i32, ptr, i64, i64 }

@__heap_base = external global i8
@weft_top = internal global i32 0
@weft_last_fault = internal global %fault zeroinitializer
@weft_faulted = internal global i32 0

@weft_workers = internal global i32 0 ; the other threads
@weft_inside = internal global i32 0 ; those of them that may run parts
@weft_open = internal global i32 0 ; whether parts may be taken
@weft_running = internal global i32 0 ; from before a loop opens until all have left it
@weft_loops = internal global i32 0 ; how many loops there were: what idle threads wait for
@weft_next = internal global i32 0 ; the next part of the loop
@weft_parts = internal global i32 0
@weft_body = internal global ptr null
@weft_context = internal global ptr null
@weft_extent = internal global i64 0
@weft_code = internal global i32 0 ; what a part has failed with

@trapped = internal constant [38 x i8] c"a thread of the model ran into a trap\00"

declare i32 @llvm.wasm.memory.size.i32(i32)
declare i32 @llvm.wasm.memory.grow.i32(i32, i32)
declare i32 @llvm.wasm.memory.atomic.wait32(ptr, i32, i64)
declare i32 @llvm.wasm.memory.atomic.notify(ptr, i32)

; Keeps what went wrong for weft_fault: the first fault, where several threads have one.
define i32 @weft_raise(i32 %kind, ptr %text, i64 %a, i64 %b) noinline {
  %claim = cmpxchg ptr @weft_faulted, i32 0, i32 1 seq_cst seq_cst
  %is.first = extractvalue { i32, i1 } %claim, 1
  br i1 %is.first, label %keep, label %done
keep:
  store i32 %kind, ptr @weft_last_fault
  store ptr %text, ptr getelementptr (%fault, ptr @weft_last_fault, i32 0, i32 1)
  store i64 %a, ptr getelementptr (%fault, ptr @weft_last_fault, i32 0, i32 2)
  store i64 %b, ptr getelementptr (%fault, ptr @weft_last_fault, i32 0, i32 3)
  br label %done
done:
  ret i32 1
}

; The last fault: its kind, the address of its text, two numbers that the text shows. The next one
; may take its place.
define ptr @weft_fault() {
  store atomic i32 0, ptr @weft_faulted seq_cst, align 4
  ret ptr @weft_last_fault
}

; The next size bytes of the heap, for any thread; null where memory cannot grow so far.
define noalias ptr @aligned_alloc(i64 %alignment, i64 %size) noinline {
entry:
  %less = sub i64 %alignment, 1
  %mask = sub i64 0, %alignment
  %far = icmp ugt i64 %size, 4294901760
  br i1 %far, label %full, label %again
again:
  %old = load atomic i32, ptr @weft_top seq_cst, align 4
  %unused = icmp eq i32 %old, 0
  %base = ptrtoint ptr @__heap_base to i32
  %top = select i1 %unused, i32 %base, i32 %old
  %wide = zext i32 %top to i64
  %past = add i64 %wide, %less
  %at = and i64 %past, %mask
  %end = add i64 %at, %size
  %further = icmp ugt i64 %end, 4294901760
  br i1 %further, label %full, label %look
look:
  %up = add i64 %end, 65535
  %needed = lshr i64 %up, 16
  %pages = call i32 @llvm.wasm.memory.size.i32(i32 0)
  %pages.wide = zext i32 %pages to i64
  %enough = icmp ule i64 %needed, %pages.wide
  br i1 %enough, label %take, label %grow
grow:
  %lacking = sub i64 %needed, %pages.wide
  %more = trunc i64 %lacking to i32
  %grown = call i32 @llvm.wasm.memory.grow.i32(i32 0, i32 %more)
  %refused = icmp eq i32 %grown, -1
  br i1 %refused, label %look.again, label %take
look.again: ; another thread may have grown it
  %pages.now = call i32 @llvm.wasm.memory.size.i32(i32 0)
  %pages.now.wide = zext i32 %pages.now to i64
  %enough.now = icmp ule i64 %needed, %pages.now.wide
  br i1 %enough.now, label %take, label %full
take:
  %new = trunc i64 %end to i32
  %swap = cmpxchg ptr @weft_top, i32 %old, i32 %new seq_cst seq_cst
  %is.taken = extractvalue { i32, i1 } %swap, 1
  br i1 %is.taken, label %give, label %again
give:
  %result = inttoptr i64 %at to ptr
  ret ptr %result
full:
  ret ptr null
}

; Gives back this memory and all that was taken after it. What the parts of a loop take is given back
; at its end: the memory of other threads may lie behind it.
define void @free(ptr %memory) {
  %running = load atomic i32, ptr @weft_running seq_cst, align 4
  %is.running = icmp ne i32 %running, 0
  br i1 %is.running, label %done, label %give
give:
  %at = ptrtoint ptr %memory to i32
  store atomic i32 %at, ptr @weft_top seq_cst, align 4
  br label %done
done:
  ret void
}

; Runs parts of the open loop until none is left.
define internal void @run_parts() noinline {
entry:
  %body = load ptr, ptr @weft_body
  %context = load ptr, ptr @weft_context
  %extent = load i64, ptr @weft_extent
  %parts = load i32, ptr @weft_parts
  %parts.wide = zext i32 %parts to i64
  br label %next
next:
  %part = atomicrmw add ptr @weft_next, i32 1 seq_cst
  %is.part = icmp ult i32 %part, %parts
  br i1 %is.part, label %run, label %done
run:
  %number = zext i32 %part to i64
  %after = add i64 %number, 1
  %low = mul i64 %extent, %number
  %begin = udiv i64 %low, %parts.wide
  %high = mul i64 %extent, %after
  %end = udiv i64 %high, %parts.wide
  %code = call i32 %body(ptr %context, i64 %begin, i64 %end)
  %failed = icmp ne i32 %code, 0
  br i1 %failed, label %fault, label %next
fault:
  store atomic i32 %code, ptr @weft_code seq_cst, align 4
  br label %next
done:
  ret void
}

; A thread is there: loops count on it from now on.
define void @weft_enter() {
  %before = atomicrmw add ptr @weft_workers, i32 1 seq_cst
  ret void
}

; What the other threads do: they run parts of loops, and look for the next loop for a while
; before they sleep. It never returns.
define void @weft_serve() noreturn {
entry:
  br label %serve
serve:
  %loops = load atomic i32, ptr @weft_loops seq_cst, align 4
  %in = atomicrmw add ptr @weft_inside, i32 1 seq_cst
  %open = load atomic i32, ptr @weft_open seq_cst, align 4
  %is.open = icmp ne i32 %open, 0
  br i1 %is.open, label %join, label %leave
join:
  call void @run_parts()
  br label %leave
leave:
  %out = atomicrmw sub ptr @weft_inside, i32 1 seq_cst
  br label %look
look:
  %looks = phi i32 [ 0, %leave ], [ %more, %patient ]
  %now = load atomic i32, ptr @weft_loops seq_cst, align 4
  %same = icmp eq i32 %now, %loops
  br i1 %same, label %patient, label %serve
patient:
  %more = add i32 %looks, 1
  %tired = icmp ugt i32 %more, 20000
  br i1 %tired, label %sleep, label %look
sleep:
  %woken = call i32 @llvm.wasm.memory.atomic.wait32(ptr @weft_loops, i32 %loops, i64 -1)
  br label %serve
}

; A thread leaves for good, since a part that it ran has trapped: the loop fails.
define void @weft_leave() {
  %code = call i32 @weft_raise(i32 0, ptr @trapped, i64 0, i64 0)
  store atomic i32 %code, ptr @weft_code seq_cst, align 4
  %workers = atomicrmw sub ptr @weft_workers, i32 1 seq_cst
  %inside = atomicrmw sub ptr @weft_inside, i32 1 seq_cst
  ret void
}

; Closes the loop, and waits until all others have left it. The caller does so after a trap, too.
define void @weft_close() noinline {
entry:
  store atomic i32 0, ptr @weft_open seq_cst, align 4
  br label %wait
wait:
  %inside = load atomic i32, ptr @weft_inside seq_cst, align 4
  %is.used = icmp ne i32 %inside, 0
  br i1 %is.used, label %wait, label %done
done:
  store atomic i32 0, ptr @weft_running seq_cst, align 4
  ret void
}

; Up to four parts for each thread: one that is late has fewer of them.
define internal i32 @shared_loop(ptr %body, ptr %context, i64 %n, i32 %woken) noinline {
entry:
  %workers = load atomic i32, ptr @weft_workers seq_cst, align 4
  %running = load atomic i32, ptr @weft_running seq_cst, align 4
  %is.nested = icmp ne i32 %running, 0
  %is.alone = icmp eq i32 %workers, 0
  %is.short = icmp slt i64 %n, 2
  %either = or i1 %is.nested, %is.alone
  %is.serial = or i1 %either, %is.short
  br i1 %is.serial, label %serial, label %parallel
serial:
  %plain = call i32 %body(ptr %context, i64 0, i64 %n)
  ret i32 %plain
parallel:
  store atomic i32 1, ptr @weft_running seq_cst, align 4
  %top = load atomic i32, ptr @weft_top seq_cst, align 4
  %threads = add i32 %workers, 1
  %four = mul i32 %threads, 4
  %most = zext i32 %four to i64
  %is.few = icmp ult i64 %n, %most
  %parts = select i1 %is.few, i64 %n, i64 %most
  %count = trunc i64 %parts to i32
  store ptr %body, ptr @weft_body
  store ptr %context, ptr @weft_context
  store i64 %n, ptr @weft_extent
  store i32 %count, ptr @weft_parts
  store atomic i32 0, ptr @weft_code seq_cst, align 4
  store atomic i32 0, ptr @weft_next seq_cst, align 4
  store atomic i32 1, ptr @weft_open seq_cst, align 4
  %loops = atomicrmw add ptr @weft_loops, i32 1 seq_cst
  %asleep = call i32 @llvm.wasm.memory.atomic.notify(ptr @weft_loops, i32 %woken)
  call void @run_parts()
  call void @weft_close()
  store atomic i32 %top, ptr @weft_top seq_cst, align 4
  %code = load atomic i32, ptr @weft_code seq_cst, align 4
  ret i32 %code
}

define i32 @weft_parallel(ptr %body, ptr %context, i64 %n, i32 %threads) {
  %code = call i32 @shared_loop(ptr %body, ptr %context, i64 %n, i32 -1)
  ret i32 %code
}

; A short loop, for threads that are awake.
define i32 @weft_parallel_brief(ptr %body, ptr %context, i64 %n, i32 %threads) {
  %code = call i32 @shared_loop(ptr %body, ptr %context, i64 %n, i32 0)
  ret i32 %code
}

define i32 @weft_team(ptr %body, ptr %context, i64 %n, i32 %threads) {
  %code = call i32 %body(ptr %context, i64 0, i64 %n)
  ret i32 %code
}
