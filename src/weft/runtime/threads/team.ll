; Teams: a thread that starts parallel loops and those that help it.
;
; A team has workers, threads that live as long as the process (worker.ll). Who starts a parallel
; loop takes a free team, and leads it: for one loop, or, through ``weft_team``, for all of a
; call. A loop's range is cut in a part for each thread, and each part in pieces, which the
; threads claim one by one, their own first, then those that others have not begun (Blumofe and
; Leiserson, "Scheduling Multithreaded Computations by Work Stealing", 1999). The leader waits for
; pieces that others hold, never for a thread: one that the operating system keeps from running
; costs a loop at most a piece, and a loop that nobody came to help with is run by its leader.
;
; A part's word is ``loop number << 32 | pieces that are left``, a claim one compare-and-swap on
; it. Who is late and still holds the fields of an earlier loop finds another number there, or
; nothing left, so that what it read belongs to the loop of which it claims a piece.

%team = type {
  ptr,                ; 0 body
  ptr,                ; 1 context
  i64,                ; 2 n
  i64,                ; 3 parts
  i64,                ; 4 pieces: of a part
  i32,                ; 5 number: of the loop
  i32,                ; 6 left: pieces that are not done
  i32,                ; 7 fault
  i32,                ; 8 busy: its leader is in a loop
  i32,                ; 9 threads: that take part
  i32,                ; 10 hired: workers that there are
  i32,                ; 11 taken
  i32,                ; 12 skipped: brief loops for which nobody was woken
  [8 x i32],          ; 13 line: so that what is claimed begins on a cache line
  [256 x [8 x i64]],  ; 14 claimed: of each part, on a cache line of its own
  [256 x ptr]         ; 15 workers: the first is the leader, who is none of them
}

@weft_team_key = global i32 -1            ; pthread key: the team that a thread leads, or @serving
@serving = internal global i8 0           ; stands for the team of a worker
@teams = internal global [16 x %team] zeroinitializer, align 64

declare i32 @sched_yield()
declare ptr @pthread_getspecific(i32)
declare i32 @pthread_setspecific(i32, ptr)

; the team that the calling thread leads, @serving in a worker, or null
define internal ptr @own_team() {
entry:
  %key = load i32, ptr @weft_team_key
  %none = icmp slt i32 %key, 0
  br i1 %none, label %no, label %look
look:
  %team = call ptr @pthread_getspecific(i32 %key)
  ret ptr %team
no:
  ret ptr @serving
}

; a team of so many threads that the calling thread leads from now on; null where all are taken
define internal ptr @take_team(i32 %threads) {
entry:
  br label %look
look:
  %i = phi i64 [ 0, %entry ], [ %next, %other ]
  %team = getelementptr [16 x %team], ptr @teams, i64 0, i64 %i
  %taken.at = getelementptr %team, ptr %team, i32 0, i32 11 ; taken
  %swap = cmpxchg ptr %taken.at, i32 0, i32 1 seq_cst seq_cst
  %won = extractvalue { i32, i1 } %swap, 1
  br i1 %won, label %take, label %other
other:
  %next = add i64 %i, 1
  %last = icmp eq i64 %next, 16
  br i1 %last, label %none, label %look
none:
  ret ptr null
take:
  %threads.at = getelementptr %team, ptr %team, i32 0, i32 9 ; threads
  store atomic i32 %threads, ptr %threads.at monotonic, align 4
  call void @hire(ptr %team, i32 %threads)
  %key = load i32, ptr @weft_team_key
  %set = call i32 @pthread_setspecific(i32 %key, ptr %team)
  ret ptr %team
}

define internal void @give_back(ptr %team) {
  %key = load i32, ptr @weft_team_key
  %unset = call i32 @pthread_setspecific(i32 %key, ptr null)
  %taken.at = getelementptr %team, ptr %team, i32 0, i32 11 ; taken
  store atomic i32 0, ptr %taken.at release, align 4
  ret void
}

; a loop without parts: workers that sleep wake up, since others will follow soon
define internal void @announce(ptr %team) {
  %parts.at = getelementptr %team, ptr %team, i32 0, i32 3 ; parts
  store atomic i64 0, ptr %parts.at monotonic, align 8
  %number.at = getelementptr %team, ptr %team, i32 0, i32 5 ; number
  %last = load atomic i32, ptr %number.at monotonic, align 4
  %number = add i32 %last, 1
  store atomic i32 %number, ptr %number.at seq_cst, align 4
  %threads.at = getelementptr %team, ptr %team, i32 0, i32 9 ; threads
  %threads = load atomic i32, ptr %threads.at monotonic, align 4
  call void @wake(ptr %team, i32 %threads)
  ret void
}

; run pieces of the loop `number` until none is left to claim
define internal void @claim_pieces(ptr %team, i64 %index, i32 %number) {
entry:
  %body.at = getelementptr %team, ptr %team, i32 0, i32 0 ; body
  %body = load atomic ptr, ptr %body.at monotonic, align 8
  %context.at = getelementptr %team, ptr %team, i32 0, i32 1 ; context
  %context = load atomic ptr, ptr %context.at monotonic, align 8
  %n.at = getelementptr %team, ptr %team, i32 0, i32 2 ; n
  %n = load atomic i64, ptr %n.at monotonic, align 8
  %parts.at = getelementptr %team, ptr %team, i32 0, i32 3 ; parts
  %parts = load atomic i64, ptr %parts.at monotonic, align 8
  %pieces.at = getelementptr %team, ptr %team, i32 0, i32 4 ; pieces
  %pieces = load atomic i64, ptr %pieces.at monotonic, align 8
  %left.at = getelementptr %team, ptr %team, i32 0, i32 6 ; left
  %fault.at = getelementptr %team, ptr %team, i32 0, i32 7 ; fault
  %number.64 = zext i32 %number to i64
  %tag = shl i64 %number.64, 32
  %first = call i64 @llvm.umin.i64(i64 %index, i64 %parts)
  br label %part
part:
  %step = phi i64 [ 0, %entry ], [ %step.next, %next.part ]
  %over = icmp uge i64 %step, %parts
  br i1 %over, label %done, label %find
find:
  %sum = add i64 %first, %step
  %wraps = icmp uge i64 %sum, %parts
  %wrapped = sub i64 %sum, %parts
  %which = select i1 %wraps, i64 %wrapped, i64 %sum
  %claimed.at = getelementptr %team, ptr %team, i32 0, i32 14 ; claimed
  %word.at = getelementptr [8 x i64], ptr %claimed.at, i64 %which
  br label %claim
claim:
  %word = load atomic i64, ptr %word.at acquire, align 8
  %remaining = sub i64 %word, %tag
  %before.last = sub i64 %remaining, 1
  %some = icmp ult i64 %before.last, 4
  br i1 %some, label %try, label %next.part
try:
  %taken = sub i64 %word, 1
  %swap = cmpxchg ptr %word.at, i64 %word, i64 %taken seq_cst seq_cst
  %won = extractvalue { i64, i1 } %swap, 1
  br i1 %won, label %run, label %claim
run:
  %piece = sub i64 %pieces, %remaining
  %part.begin = call i64 @part_begin(i64 %n, i64 %parts, i64 %which)
  %after = add i64 %which, 1
  %part.end = call i64 @part_begin(i64 %n, i64 %parts, i64 %after)
  %length = sub i64 %part.end, %part.begin
  %piece.begin = call i64 @part_begin(i64 %length, i64 %pieces, i64 %piece)
  %piece.after = add i64 %piece, 1
  %piece.end = call i64 @part_begin(i64 %length, i64 %pieces, i64 %piece.after)
  %begin = add i64 %part.begin, %piece.begin
  %end = add i64 %part.begin, %piece.end
  %code = call i32 %body(ptr %context, i64 %begin, i64 %end)
  %failed = icmp ne i32 %code, 0
  br i1 %failed, label %fail, label %finished
fail:
  %swapped = cmpxchg ptr %fault.at, i32 0, i32 %code seq_cst seq_cst
  br label %finished
finished:
  %before = atomicrmw sub ptr %left.at, i32 1 seq_cst
  br label %claim
next.part:
  %step.next = add i64 %step, 1
  br label %part
done:
  ret void
}

; a parallel loop: the leader gives it out, takes part, and waits for what others claimed
define internal i32 @run_in_team(ptr %team, ptr %body, ptr %context, i64 %n, i64 %wanted,
                                i64 %most, i1 %brief) {
entry:
  %busy.at = getelementptr %team, ptr %team, i32 0, i32 8 ; busy
  %threads.at = getelementptr %team, ptr %team, i32 0, i32 9 ; threads
  %busy = load i32, ptr %busy.at
  %inside = icmp ne i32 %busy, 0
  %threads32 = load atomic i32, ptr %threads.at monotonic, align 4
  %threads = zext i32 %threads32 to i64
  %parts = call i64 @llvm.umin.i64(i64 %wanted, i64 %threads)
  %single = icmp ule i64 %parts, 1
  %serially = or i1 %inside, %single
  br i1 %serially, label %serial, label %give
serial:
  %serial.code = call i32 %body(ptr %context, i64 0, i64 %n)
  ret i32 %serial.code
give:
  store i32 1, ptr %busy.at
  %chunk = udiv i64 %n, %parts
  %pieces = call i64 @llvm.umin.i64(i64 %chunk, i64 %most)
  %body.at = getelementptr %team, ptr %team, i32 0, i32 0 ; body
  store atomic ptr %body, ptr %body.at monotonic, align 8
  %context.at = getelementptr %team, ptr %team, i32 0, i32 1 ; context
  store atomic ptr %context, ptr %context.at monotonic, align 8
  %n.at = getelementptr %team, ptr %team, i32 0, i32 2 ; n
  store atomic i64 %n, ptr %n.at monotonic, align 8
  %parts.at = getelementptr %team, ptr %team, i32 0, i32 3 ; parts
  store atomic i64 %parts, ptr %parts.at monotonic, align 8
  %pieces.at = getelementptr %team, ptr %team, i32 0, i32 4 ; pieces
  store atomic i64 %pieces, ptr %pieces.at monotonic, align 8
  %all = mul i64 %parts, %pieces
  %all32 = trunc i64 %all to i32
  %left.at = getelementptr %team, ptr %team, i32 0, i32 6 ; left
  store atomic i32 %all32, ptr %left.at monotonic, align 4
  %number.at = getelementptr %team, ptr %team, i32 0, i32 5 ; number
  %last = load atomic i32, ptr %number.at monotonic, align 4
  %number = add i32 %last, 1
  %number.64 = zext i32 %number to i64
  %tag = shl i64 %number.64, 32
  %full = or i64 %tag, %pieces
  %claimed.at = getelementptr %team, ptr %team, i32 0, i32 14 ; claimed
  br label %reset
reset:
  %i = phi i64 [ 0, %give ], [ %i.next, %reset ]
  %word.at = getelementptr [8 x i64], ptr %claimed.at, i64 %i
  store atomic i64 %full, ptr %word.at release, align 8
  %i.next = add i64 %i, 1
  %last.word = icmp eq i64 %i.next, %parts
  br i1 %last.word, label %start, label %reset
start:
  store atomic i32 %number, ptr %number.at seq_cst, align 4
  %parts32 = trunc i64 %parts to i32
  br i1 %brief, label %seldom, label %always
seldom:
  call void @wake_seldom(ptr %team, i32 %parts32)
  br label %help
always:
  call void @wake(ptr %team, i32 %parts32)
  br label %help
help:
  call void @claim_pieces(ptr %team, i64 0, i32 %number)
  br label %wait
wait:
  %looks = phi i32 [ 0, %help ], [ %looks.next, %again ]
  %left = load atomic i32, ptr %left.at acquire, align 4
  %complete = icmp eq i32 %left, 0
  br i1 %complete, label %end, label %again
again:
  %looks.next = call i32 @rest(i32 %looks)
  br label %wait
end:
  store i32 0, ptr %busy.at
  %fault.at = getelementptr %team, ptr %team, i32 0, i32 7 ; fault
  %code = load atomic i32, ptr %fault.at acquire, align 4
  store atomic i32 0, ptr %fault.at monotonic, align 4
  ret i32 %code
}
