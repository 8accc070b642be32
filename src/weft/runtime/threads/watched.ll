; Between code and the services that run parallel loops: which thread runs which part, and when.
;
; Code that calls watched_weft_parallel in the place of weft_parallel has it run a body that notes
; thread, begin and end in a row of a table, around the body that was given (weft.runtime.threads
; .watched). A row: seconds and nanoseconds of the begin, the same of the end, the thread. The table
; has 16384 rows; later parts overwrite the first.

declare i32 @weft_parallel(ptr, ptr, i64, i32)
declare i32 @weft_parallel_brief(ptr, ptr, i64, i32)
declare i32 @clock_gettime(i32, ptr)
declare i64 @pthread_self()

@parts_table = global [16384 x [5 x i64]] zeroinitializer, align 64
@parts_count = global i64 0, align 64

define internal i32 @part(ptr %context, i64 %begin, i64 %end) {
  %body = load ptr, ptr %context
  %at = getelementptr ptr, ptr %context, i64 1
  %frame = load ptr, ptr %at
  %number = atomicrmw add ptr @parts_count, i64 1 monotonic
  %index = and i64 %number, 16383
  %row = getelementptr [5 x i64], ptr @parts_table, i64 %index
  %until = getelementptr i64, ptr %row, i64 2
  %who = getelementptr i64, ptr %row, i64 4
  %thread = call i64 @pthread_self()
  store i64 %thread, ptr %who
  call i32 @clock_gettime(i32 1, ptr %row) ; CLOCK_MONOTONIC
  %code = call i32 %body(ptr %frame, i64 %begin, i64 %end)
  call i32 @clock_gettime(i32 1, ptr %until)
  ret i32 %code
}

define i32 @watched_weft_parallel(ptr %body, ptr %frame, i64 %n, i32 %threads) {
  %context = alloca [2 x ptr], align 64
  store ptr %body, ptr %context
  %at = getelementptr ptr, ptr %context, i64 1
  store ptr %frame, ptr %at
  %code = call i32 @weft_parallel(ptr @part, ptr %context, i64 %n, i32 %threads)
  ret i32 %code
}

define i32 @watched_weft_parallel_brief(ptr %body, ptr %frame, i64 %n, i32 %threads) {
  %context = alloca [2 x ptr], align 64
  store ptr %body, ptr %context
  %at = getelementptr ptr, ptr %context, i64 1
  store ptr %frame, ptr %at
  %code = call i32 @weft_parallel_brief(ptr @part, ptr %context, i64 %n, i32 %threads)
  ret i32 %code
}
