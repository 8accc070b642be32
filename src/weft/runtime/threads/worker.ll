; Workers: the threads that help the leader of a team (team.ll).
;
; A worker looks for a new loop for a while, then lets others run between its looks, then sleeps
; until the leader wakes it. Before it sleeps it says so and looks once more, and the leader gives
; a loop out before it looks who sleeps, each in the one order that all threads see (Dekker's
; algorithm), so that no call is missed.

%worker = type {
  ptr,         ; 0 of: the team
  i64,         ; 1 index
  i64,         ; 2 thread: pthread_t
  i32,         ; 3 sleeping
  [16 x i64],  ; 4 mutex: room for a pthread_mutex_t of any system
  [16 x i64]   ; 5 called: room for a pthread_cond_t
}

@stopping = internal global i32 0

declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_join(i64, ptr)
declare i32 @pthread_mutex_init(ptr, ptr)
declare i32 @pthread_mutex_lock(ptr)
declare i32 @pthread_mutex_unlock(ptr)
declare i32 @pthread_cond_init(ptr, ptr)
declare i32 @pthread_cond_wait(ptr, ptr)
declare i32 @pthread_cond_signal(ptr)
declare ptr @calloc(i64, i64)
declare void @free(ptr)

; one look more at a place that has not changed; lets others run after many
define internal i32 @rest(i32 %looks) {
entry:
  call void @pause()                      ; the processor's own, which parallel_ir.py adds
  %more = add i32 %looks, 1
  %long = icmp ugt i32 %more, 4000      ; looks: some tens of microseconds
  br i1 %long, label %yield, label %done
yield:
  %ignored = call i32 @sched_yield()
  br label %done
done:
  ret i32 %more
}

; where a team's worker of that index stands
define internal ptr @place_of(ptr %team, i32 %index32) {
  %workers.at = getelementptr %team, ptr %team, i32 0, i32 15 ; workers
  %index = zext i32 %index32 to i64
  %worker.at = getelementptr ptr, ptr %workers.at, i64 %index
  ret ptr %worker.at
}

; let a team have workers for so many threads, or as many as can be had
define internal void @hire(ptr %team, i32 %threads) {
entry:
  %hired.at = getelementptr %team, ptr %team, i32 0, i32 10 ; hired
  br label %look
look:
  %hired = load i32, ptr %hired.at
  %index32 = add i32 %hired, 1
  %enough = icmp uge i32 %index32, %threads
  br i1 %enough, label %done, label %make
make:
  %size = ptrtoint ptr getelementptr (%worker, ptr null, i32 1) to i64
  %worker = call ptr @calloc(i64 1, i64 %size)
  %none = icmp eq ptr %worker, null
  br i1 %none, label %done, label %start
start:
  %index = zext i32 %index32 to i64
  %of.at = getelementptr %worker, ptr %worker, i32 0, i32 0 ; of
  store ptr %team, ptr %of.at
  %index.at = getelementptr %worker, ptr %worker, i32 0, i32 1 ; index
  store i64 %index, ptr %index.at
  %mutex = getelementptr %worker, ptr %worker, i32 0, i32 4 ; mutex
  %made.mutex = call i32 @pthread_mutex_init(ptr %mutex, ptr null)
  %called = getelementptr %worker, ptr %worker, i32 0, i32 5 ; called
  %made.called = call i32 @pthread_cond_init(ptr %called, ptr null)
  %thread.at = getelementptr %worker, ptr %worker, i32 0, i32 2 ; thread
  %status = call i32 @pthread_create(ptr %thread.at, ptr null, ptr @serve, ptr %worker)
  %refused = icmp ne i32 %status, 0
  br i1 %refused, label %dismiss, label %keep
dismiss:
  call void @free(ptr %worker)
  br label %done
keep:
  %worker.at = call ptr @place_of(ptr %team, i32 %index32)
  store ptr %worker, ptr %worker.at
  store i32 %index32, ptr %hired.at
  br label %look
done:
  ret void
}

; what a worker does
define internal ptr @serve(ptr %worker) {
entry:
  %key = load i32, ptr @weft_team_key
  %set = call i32 @pthread_setspecific(i32 %key, ptr @serving)
  %team.at = getelementptr %worker, ptr %worker, i32 0, i32 0 ; of
  %team = load ptr, ptr %team.at
  %index.at = getelementptr %worker, ptr %worker, i32 0, i32 1 ; index
  %index = load i64, ptr %index.at
  %number.at = getelementptr %team, ptr %team, i32 0, i32 5 ; number
  %threads.at = getelementptr %team, ptr %team, i32 0, i32 9 ; threads
  br label %wait
wait:
  %seen = phi i32 [ 0, %entry ], [ %seen, %rest ], [ %seen, %sleep ], [ %number, %work ],
                  [ %number, %superfluous ]
  %looks = phi i32 [ 0, %entry ], [ %looks.next, %rest ], [ 0, %sleep ], [ 0, %work ],
                   [ 5000, %superfluous ]
  %number = load atomic i32, ptr %number.at acquire, align 4
  %fresh = icmp ne i32 %number, %seen
  br i1 %fresh, label %check, label %look
check:
  %threads32 = load atomic i32, ptr %threads.at monotonic, align 4
  %threads = zext i32 %threads32 to i64
  %wanted = icmp ult i64 %index, %threads
  br i1 %wanted, label %work, label %superfluous
superfluous:
  br label %wait
work:
  call void @claim_pieces(ptr %team, i64 %index, i32 %number)
  br label %wait
look:
  %stopping = load atomic i32, ptr @stopping acquire, align 4
  %stopped = icmp ne i32 %stopping, 0
  br i1 %stopped, label %leave, label %again
again:
  %tired = icmp uge i32 %looks, 5000    ; 1000 times others ran: less than a millisecond
  br i1 %tired, label %sleep, label %rest
rest:
  %looks.next = call i32 @rest(i32 %looks)
  br label %wait
sleep:
  call void @sleep_until_called(ptr %worker, i32 %seen)
  br label %wait
leave:
  ret ptr null
}

; sleep unless there is a loop after the one `seen`, or all workers are to stop
define internal void @sleep_until_called(ptr %worker, i32 %seen) {
entry:
  %mutex = getelementptr %worker, ptr %worker, i32 0, i32 4 ; mutex
  %called = getelementptr %worker, ptr %worker, i32 0, i32 5 ; called
  %sleeping.at = getelementptr %worker, ptr %worker, i32 0, i32 3 ; sleeping
  %team.at = getelementptr %worker, ptr %worker, i32 0, i32 0 ; of
  %team = load ptr, ptr %team.at
  %number.at = getelementptr %team, ptr %team, i32 0, i32 5 ; number
  %locked = call i32 @pthread_mutex_lock(ptr %mutex)
  store atomic i32 1, ptr %sleeping.at seq_cst, align 4
  %number = load atomic i32, ptr %number.at seq_cst, align 4
  %stopping = load atomic i32, ptr @stopping seq_cst, align 4
  %same = icmp eq i32 %number, %seen
  %going = icmp eq i32 %stopping, 0
  %idle = and i1 %same, %going
  br i1 %idle, label %sleep, label %awake
sleep:
  %woken = call i32 @pthread_cond_wait(ptr %called, ptr %mutex)
  br label %awake
awake:
  store atomic i32 0, ptr %sleeping.at seq_cst, align 4
  %unlocked = call i32 @pthread_mutex_unlock(ptr %mutex)
  ret void
}

; wake the first workers of a team of so many threads, where they sleep
define internal void @wake(ptr %team, i32 %threads) {
entry:
  %hired.at = getelementptr %team, ptr %team, i32 0, i32 10 ; hired
  %hired = load i32, ptr %hired.at
  br label %look
look:
  %i = phi i32 [ 1, %entry ], [ %next, %one ], [ %next, %call ]
  %next = add i32 %i, 1
  %far = icmp uge i32 %i, %threads
  %absent = icmp ugt i32 %i, %hired
  %over = or i1 %far, %absent
  br i1 %over, label %done, label %one
one:
  %worker.at = call ptr @place_of(ptr %team, i32 %i)
  %worker = load ptr, ptr %worker.at
  %sleeping.at = getelementptr %worker, ptr %worker, i32 0, i32 3 ; sleeping
  %sleeping = load atomic i32, ptr %sleeping.at seq_cst, align 4
  %asleep = icmp ne i32 %sleeping, 0
  br i1 %asleep, label %call, label %look
call:
  call void @call_worker(ptr %worker)
  br label %look
done:
  ret void
}

; wake the workers of a team of so many threads at every 16th brief loop at which they sleep:
; then loops in quick succession find them awake, and a single one is not kept waiting
define internal void @wake_seldom(ptr %team, i32 %threads) {
entry:
  %hired.at = getelementptr %team, ptr %team, i32 0, i32 10 ; hired
  %hired = load i32, ptr %hired.at
  %alone = icmp eq i32 %hired, 0
  br i1 %alone, label %done, label %look
look:
  %worker.at = call ptr @place_of(ptr %team, i32 1)
  %worker = load ptr, ptr %worker.at
  %sleeping.at = getelementptr %worker, ptr %worker, i32 0, i32 3 ; sleeping
  %sleeping = load atomic i32, ptr %sleeping.at seq_cst, align 4
  %awake = icmp eq i32 %sleeping, 0
  br i1 %awake, label %done, label %count
count:
  %skipped.at = getelementptr %team, ptr %team, i32 0, i32 12 ; skipped
  %skipped = load i32, ptr %skipped.at
  %more = add i32 %skipped, 1
  store i32 %more, ptr %skipped.at
  %rest = urem i32 %more, 16
  %due = icmp eq i32 %rest, 0
  br i1 %due, label %call, label %done
call:
  call void @wake(ptr %team, i32 %threads)
  br label %done
done:
  ret void
}

define internal void @call_worker(ptr %worker) {
  %mutex = getelementptr %worker, ptr %worker, i32 0, i32 4 ; mutex
  %called = getelementptr %worker, ptr %worker, i32 0, i32 5 ; called
  %locked = call i32 @pthread_mutex_lock(ptr %mutex)
  %signalled = call i32 @pthread_cond_signal(ptr %called)
  %unlocked = call i32 @pthread_mutex_unlock(ptr %mutex)
  ret void
}

; end all workers: before the code that they run leaves memory
define void @weft_stop_workers() {
entry:
  store atomic i32 1, ptr @stopping seq_cst, align 4
  br label %team.loop
team.loop:
  %t = phi i64 [ 0, %entry ], [ %t.next, %team.done ]
  %team = getelementptr [16 x %team], ptr @teams, i64 0, i64 %t
  %hired.at = getelementptr %team, ptr %team, i32 0, i32 10 ; hired
  %hired = load i32, ptr %hired.at
  store i32 0, ptr %hired.at
  br label %worker.loop
worker.loop:
  %i = phi i32 [ 1, %team.loop ], [ %i.next, %end ]
  %over = icmp ugt i32 %i, %hired
  br i1 %over, label %team.done, label %end
end:
  %worker.at = call ptr @place_of(ptr %team, i32 %i)
  %worker = load ptr, ptr %worker.at
  call void @call_worker(ptr %worker)
  %thread.at = getelementptr %worker, ptr %worker, i32 0, i32 2 ; thread
  %thread = load i64, ptr %thread.at
  %joined = call i32 @pthread_join(i64 %thread, ptr null)
  call void @free(ptr %worker)
  %i.next = add i32 %i, 1
  br label %worker.loop
team.done:
  %t.next = add i64 %t, 1
  %last = icmp eq i64 %t.next, 16
  br i1 %last, label %done, label %team.loop
done:
  ret void
}
