; The native side of parallel loops (docs/design/0012-teams.md).
;
; ``weft_parallel(body, context, n, threads)`` hands contiguous parts of ``0 .. n`` to a team
; (team.ll); ``weft_parallel_brief`` does so too, and does not wait for sleepers; ``weft_team``
; takes a team for a function with several such loops. Exported C programs carry the same code.
; Threading state is in globals that Python sets: ``weft_thread_count``, ``weft_fork_state`` (0
; threads, 1 serial, 2 serial and say so once), and two pthread keys (-1: none):
; ``weft_own_count_key``, the address of the calling thread's count, and ``weft_team_key``, the
; team that it leads.

@weft_thread_count = global i32 1
@weft_fork_state = global i32 0
@weft_own_count_key = global i32 -1

declare i32 @weft_fork_notice()
declare i64 @llvm.umin.i64(i64, i64)
declare i32 @llvm.umin.i32(i32, i32)

; the number of threads that the calling thread asks for, else that of the process
define internal i32 @wanted_threads() {
entry:
  %all = load atomic i32, ptr @weft_thread_count monotonic, align 4
  %key = load i32, ptr @weft_own_count_key
  %none = icmp slt i32 %key, 0
  br i1 %none, label %shared, label %own
own:
  %at = call ptr @pthread_getspecific(i32 %key)
  %unknown = icmp eq ptr %at, null
  br i1 %unknown, label %shared, label %read
read:
  %count = load i32, ptr %at
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


; threads of a loop or team that asks for `threads` (0: as is configured, -k: at most k of those)
define internal i32 @allowed_threads(i32 %threads) {
  %configured = call i32 @wanted_threads()
  %given = icmp sgt i32 %threads, 0
  %limited = icmp slt i32 %threads, 0
  %limit = sub i32 0, %threads
  %smaller = call i32 @llvm.umin.i32(i32 %limit, i32 %configured)
  %default = select i1 %limited, i32 %smaller, i32 %configured
  %wanted = select i1 %given, i32 %threads, i32 %default
  %allowed = call i32 @llvm.umin.i32(i32 %wanted, i32 256) ; the room in a team (team.ll)
  ret i32 %allowed
}

define i32 @weft_parallel(ptr %body, ptr %context, i64 %n, i32 %threads) {
  %code = call i32 @run_loop(ptr %body, ptr %context, i64 %n, i32 %threads, i1 false)
  ret i32 %code
}

define i32 @weft_parallel_brief(ptr %body, ptr %context, i64 %n, i32 %threads) {
  %code = call i32 @run_loop(ptr %body, ptr %context, i64 %n, i32 %threads, i1 true)
  ret i32 %code
}

define internal i32 @run_loop(ptr %body, ptr %context, i64 %n, i32 %threads, i1 %brief) {
entry:
  %some = icmp sgt i64 %n, 0
  br i1 %some, label %count, label %empty
empty:
  ret i32 0
count:
  %allowed32 = call i32 @allowed_threads(i32 %threads)
  %allowed = zext i32 %allowed32 to i64
  %parts = call i64 @llvm.umin.i64(i64 %allowed, i64 %n)
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
  %own = call ptr @own_team()
  %leads = icmp ne ptr %own, null
  br i1 %leads, label %check.nested, label %alone
check.nested:
  %serves = icmp eq ptr %own, @serving
  br i1 %serves, label %serial, label %in.team
in.team:
  %team.code = call i32 @run_in_team(ptr %own, ptr %body, ptr %context, i64 %n, i64 %parts,
                                     i64 4, i1 %brief)
  ret i32 %team.code
alone:
  %parts32 = trunc i64 %parts to i32
  %team = call ptr @take_team(i32 %parts32)
  %none = icmp eq ptr %team, null
  br i1 %none, label %serial, label %run
serial:
  %serial.code = call i32 %body(ptr %context, i64 0, i64 %n)
  ret i32 %serial.code
run:
  %code = call i32 @run_in_team(ptr %team, ptr %body, ptr %context, i64 %n, i64 %parts, i64 1,
                                i1 %brief)
  call void @give_back(ptr %team)
  ret i32 %code
}

define i32 @weft_team(ptr %body, ptr %context, i64 %n, i32 %threads) {
entry:
  %allowed = call i32 @allowed_threads(i32 %threads)
  %one = icmp ule i32 %allowed, 1
  %fork = load atomic i32, ptr @weft_fork_state monotonic, align 4
  %forked = icmp ne i32 %fork, 0
  %own = call ptr @own_team()
  %nested = icmp ne ptr %own, null
  %alone.0 = or i1 %one, %forked
  %alone = or i1 %alone.0, %nested
  br i1 %alone, label %serial, label %take
take:
  %team = call ptr @take_team(i32 %allowed)
  %none = icmp eq ptr %team, null
  br i1 %none, label %serial, label %run
serial:
  %serial.code = call i32 %body(ptr %context, i64 0, i64 1)
  ret i32 %serial.code
run:
  call void @announce(ptr %team)
  %code = call i32 %body(ptr %context, i64 0, i64 1)
  call void @give_back(ptr %team)
  ret i32 %code
}
