"""The native side of parallel loops, in LLVM IR text (design.md 3.8).

``weft_parallel(body, context, n, threads)`` hands equal contiguous parts of ``0 .. n`` to OpenMP's
``GOMP_parallel`` when one was found, else to threads of its own that it creates and joins. The text
is also what exported C programs carry. Threading state is in globals that Python sets:
``weft_thread_count``, ``weft_fork_state`` (0 threads, 1 serial, 2 serial and say so once), and
``weft_own_count_key``, a pthread key (-1: none) whose value is the count of the calling thread.
"""

from __future__ import annotations

from typing import Final

from weft.runtime.team_ir import team_ir

_COMMON: Final = """
%job = type { ptr, ptr, i64, i32 }        ; body, context, n, first fault code
%crew = type { ptr, ptr, i32 }            ; what each thread runs, run(what, index, threads);
                                          ; what; whether a thread that cannot be had is left out

@weft_thread_count = global i32 1
@weft_fork_state = global i32 0
@weft_own_count_key = global i32 -1

declare i32 @weft_fork_notice()
declare ptr @pthread_getspecific(i32)

; the number of threads that the calling thread asks for, else that of the process
define internal i32 @wanted_threads() {
entry:
  %all = load atomic i32, ptr @weft_thread_count monotonic, align 4
  %key = load i32, ptr @weft_own_count_key
  %none = icmp slt i32 %key, 0
  br i1 %none, label %shared, label %own
own:
  %value = call ptr @pthread_getspecific(i32 %key)
  %wide = ptrtoint ptr %value to i64
  %count = trunc i64 %wide to i32
  %unset = icmp eq i32 %count, 0
  br i1 %unset, label %shared, label %found
found:
  ret i32 %count
shared:
  ret i32 %all
}

; where part `index` of `parts` of 0 .. n begins; the first ones are longer by one
define internal i64 @part_begin(i64 %n, i64 %parts, i64 %index) {
  %chunk = udiv i64 %n, %parts
  %rest = urem i64 %n, %parts
  %shift = call i64 @llvm.umin.i64(i64 %index, i64 %rest)
  %base = mul i64 %index, %chunk
  %begin = add i64 %base, %shift
  ret i64 %begin
}

; run part `index` of `parts` of a job; the first fault code stays
define internal void @run_part(ptr %job, i64 %index, i64 %parts) {
entry:
  %body = load ptr, ptr %job
  %context.at = getelementptr %job, ptr %job, i32 0, i32 1
  %context = load ptr, ptr %context.at
  %n.at = getelementptr %job, ptr %job, i32 0, i32 2
  %n = load i64, ptr %n.at
  %begin = call i64 @part_begin(i64 %n, i64 %parts, i64 %index)
  %after = add i64 %index, 1
  %end = call i64 @part_begin(i64 %n, i64 %parts, i64 %after)
  %nothing = icmp uge i64 %begin, %end
  br i1 %nothing, label %done, label %run
run:
  %code = call i32 %body(ptr %context, i64 %begin, i64 %end)
  %failed = icmp ne i32 %code, 0
  br i1 %failed, label %fail, label %done
fail:
  %code.at = getelementptr %job, ptr %job, i32 0, i32 3
  %swapped = cmpxchg ptr %code.at, i32 0, i32 %code seq_cst seq_cst
  br label %done
done:
  ret void
}

; what a thread of a crew does
define internal void @run_as(ptr %crew, i64 %index, i64 %threads) {
  %run = load ptr, ptr %crew
  %what.at = getelementptr %crew, ptr %crew, i32 0, i32 1
  %what = load ptr, ptr %what.at
  call void %run(ptr %what, i64 %index, i64 %threads)
  ret void
}

declare i64 @llvm.umin.i64(i64, i64)
declare i32 @llvm.umin.i32(i32, i32)

define i32 @weft_parallel(ptr %body, ptr %context, i64 %n, i32 %threads) {
entry:
  %some = icmp sgt i64 %n, 0
  br i1 %some, label %count, label %empty
empty:
  ret i32 0
count:
  %configured = call i32 @wanted_threads()
  %given = icmp sgt i32 %threads, 0
  %limited = icmp slt i32 %threads, 0
  %limit = sub i32 0, %threads
  %smaller = call i32 @llvm.umin.i32(i32 %limit, i32 %configured)
  %default = select i1 %limited, i32 %smaller, i32 %configured
  %wanted32 = select i1 %given, i32 %threads, i32 %default
  %wanted = zext i32 %wanted32 to i64
  %parts = call i64 @llvm.umin.i64(i64 %wanted, i64 %n)
  %one = icmp ule i64 %parts, 1
  br i1 %one, label %serial, label %check.fork
check.fork:
  %fork = load atomic i32, ptr @weft_fork_state monotonic, align 4
  %forked = icmp ne i32 %fork, 0
  br i1 %forked, label %after.fork, label %check.team
after.fork:
  %silent = icmp eq i32 %fork, 1
  br i1 %silent, label %serial, label %notice
notice:
  store atomic i32 1, ptr @weft_fork_state monotonic, align 4
  %notice.code = call i32 @weft_fork_notice()
  %stop = icmp ne i32 %notice.code, 0
  br i1 %stop, label %stopped, label %serial
stopped:
  ret i32 %notice.code
check.team:
  %team = call ptr @own_team()
  %leads = icmp ne ptr %team, null
  br i1 %leads, label %in.team, label %check.nested
in.team:
  %team.code = call i32 @run_in_team(ptr %team, ptr %body, ptr %context, i64 %n, i64 %parts)
  ret i32 %team.code
check.nested:
  %nested = call i1 @is_nested()
  br i1 %nested, label %serial, label %start
serial:
  %serial.code = call i32 %body(ptr %context, i64 0, i64 %n)
  ret i32 %serial.code
start:
  %job = alloca %job
  store ptr %body, ptr %job
  %context.at = getelementptr %job, ptr %job, i32 0, i32 1
  store ptr %context, ptr %context.at
  %n.at = getelementptr %job, ptr %job, i32 0, i32 2
  store i64 %n, ptr %n.at
  %code.at = getelementptr %job, ptr %job, i32 0, i32 3
  store i32 0, ptr %code.at
  %crew = alloca %crew
  store ptr @run_part, ptr %crew
  %what.at = getelementptr %crew, ptr %crew, i32 0, i32 1
  store ptr %job, ptr %what.at
  %optional.at = getelementptr %crew, ptr %crew, i32 0, i32 2
  store i32 0, ptr %optional.at
  call void @run_all(ptr %crew, i64 %parts)
  %code = load atomic i32, ptr %code.at seq_cst, align 4
  ret i32 %code
}
"""

_OPENMP: Final = """
declare void @weft_gomp_parallel(ptr, ptr, i32, i32)
declare i32 @weft_omp_get_thread_num()
declare i32 @weft_omp_get_num_threads()
declare i32 @weft_omp_in_parallel()

define internal i1 @is_nested() {
  %inside = call i32 @weft_omp_in_parallel()
  %nested = icmp ne i32 %inside, 0
  ret i1 %nested
}

define internal void @worker(ptr %crew) {
  %index32 = call i32 @weft_omp_get_thread_num()
  %parts32 = call i32 @weft_omp_get_num_threads()
  %index = zext i32 %index32 to i64
  %parts = zext i32 %parts32 to i64
  call void @run_as(ptr %crew, i64 %index, i64 %parts)
  ret void
}

define internal void @run_all(ptr %crew, i64 %parts) {
  %parts32 = trunc i64 %parts to i32
  call void @weft_gomp_parallel(ptr @worker, ptr %crew, i32 %parts32, i32 0)
  ret void
}
"""

_PTHREAD: Final = """
%task = type { ptr, i64, i64, i64 }       ; crew, index, parts, pthread_t

@weft_inside_key = global i32 0           ; pthread key, not null inside a worker

declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_join(i64, ptr)

define internal i1 @is_nested() {
  %key = load i32, ptr @weft_inside_key
  %mark = call ptr @pthread_getspecific(i32 %key)
  %nested = icmp ne ptr %mark, null
  ret i1 %nested
}

define internal void @run_task(ptr %task) {
  %key = load i32, ptr @weft_inside_key
  %marked = call i32 @pthread_setspecific(i32 %key, ptr %task)
  %crew = load ptr, ptr %task
  %index.at = getelementptr %task, ptr %task, i32 0, i32 1
  %index = load i64, ptr %index.at
  %parts.at = getelementptr %task, ptr %task, i32 0, i32 2
  %parts = load i64, ptr %parts.at
  call void @run_as(ptr %crew, i64 %index, i64 %parts)
  %unmarked = call i32 @pthread_setspecific(i32 %key, ptr null)
  ret void
}

define internal ptr @worker(ptr %task) {
  call void @run_task(ptr %task)
  ret ptr null
}

define internal void @run_all(ptr %crew, i64 %parts) {
entry:
  %optional.at = getelementptr %crew, ptr %crew, i32 0, i32 2
  %optional = load i32, ptr %optional.at
  %must = icmp eq i32 %optional, 0
  %tasks = alloca %task, i64 %parts
  br label %create
create:
  %i = phi i64 [ 0, %entry ], [ %i.next, %created ]
  %task = getelementptr %task, ptr %tasks, i64 %i
  store ptr %crew, ptr %task
  %index.at = getelementptr %task, ptr %task, i32 0, i32 1
  %i.next = add i64 %i, 1
  %index = sub i64 %parts, %i.next        ; this thread, which comes last, is the first of them
  store i64 %index, ptr %index.at
  %parts.at = getelementptr %task, ptr %task, i32 0, i32 2
  store i64 %parts, ptr %parts.at
  %thread.at = getelementptr %task, ptr %task, i32 0, i32 3
  store i64 0, ptr %thread.at
  %last = icmp eq i64 %i.next, %parts
  br i1 %last, label %here, label %spawn
spawn:
  %status = call i32 @pthread_create(ptr %thread.at, ptr null, ptr @worker, ptr %task)
  %refused = icmp ne i32 %status, 0
  br i1 %refused, label %instead, label %created
instead:                                  ; no more threads: this one does the part
  store i64 0, ptr %thread.at
  br i1 %must, label %here.too, label %created
here.too:
  call void @run_task(ptr %task)
  br label %created
created:
  br label %create
here:
  call void @run_task(ptr %task)
  br label %join
join:
  %k = phi i64 [ 0, %here ], [ %k.next, %joined ]
  %join.task = getelementptr %task, ptr %tasks, i64 %k
  %join.at = getelementptr %task, ptr %join.task, i32 0, i32 3
  %thread = load i64, ptr %join.at
  %running = icmp ne i64 %thread, 0
  br i1 %running, label %wait, label %joined
wait:
  %ignored = call i32 @pthread_join(i64 %thread, ptr null)
  br label %joined
joined:
  %k.next = add i64 %k, 1
  %end = icmp eq i64 %k.next, %parts
  br i1 %end, label %done, label %join
done:
  ret void
}
"""

OPENMP_SYMBOLS: Final = {
    "weft_gomp_parallel": "GOMP_parallel",
    "weft_omp_get_thread_num": "omp_get_thread_num",
    "weft_omp_get_num_threads": "omp_get_num_threads",
    "weft_omp_in_parallel": "omp_in_parallel",
}
"""The names in the IR and those of the OpenMP library that they are bound to."""


def parallel_ir(openmp: bool) -> str:
    """The module text: on OpenMP, or with threads of its own."""
    return _COMMON + team_ir() + (_OPENMP if openmp else _PTHREAD)
