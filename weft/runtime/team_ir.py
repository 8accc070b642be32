"""Teams: threads that stay together for a whole call of a model, in LLVM IR text (design.md 3.8).

``weft_team(body, context, 1, threads)`` runs ``body(context, 0, 1)`` in the calling thread while
the other threads of one parallel region wait for work. A parallel loop that the body starts
(``weft_parallel``) is then not a region of its own: its range is cut in a part for each thread, and
each part in pieces, which the threads claim one by one, their own first, then those that others
have not begun (Blumofe and Leiserson, "Scheduling Multithreaded Computations by Work Stealing",
1999). A thread that the operating system keeps from running so delays a loop by no more than a
piece; the end of the region still waits for it.

A claim is one compare-and-swap on ``loop number << 32 | pieces claimed``. Who is late and still
holds the fields of an earlier loop finds another number there, and claims nothing.
"""

from __future__ import annotations

import platform
import re
from typing import Final

MOST_THREADS: Final = 256
"""Threads of a team at most."""
_PIECES: Final = 4
"""Pieces of a part at most."""
_SPINS: Final = 4000
"""Looks at a place before the thread lets others run: some tens of microseconds."""

_FIELDS: Final = {
    "body": "ptr",
    "context": "ptr",
    "n": "i64",
    "parts": "i64",
    "pieces": "i64",  # of a part
    "number": "i32",  # of the loop
    "stop": "i32",
    "left": "i32",  # pieces that are not done
    "fault": "i32",
    "busy": "i32",
    "threads": "i32",
    "result": "i32",
    "line": "[7 x i64]",  # so that what is claimed begins on a cache line
    "claimed": f"[{MOST_THREADS} x [8 x i64]]",  # of each part, on a cache line of its own
}
"""What a team holds, with the types; ``%x.at = field x`` in the text is where ``x`` is."""

_TEXT: Final = """
@TYPE@
@weft_team_key = global i32 -1            ; pthread key, the team that a thread leads

declare i32 @sched_yield()
declare i32 @pthread_setspecific(i32, ptr)
@DECLARE@declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)

; the team that the calling thread leads, or null
define internal ptr @own_team() {
entry:
  %key = load i32, ptr @weft_team_key
  %none = icmp slt i32 %key, 0
  br i1 %none, label %no, label %look
look:
  %team = call ptr @pthread_getspecific(i32 %key)
  ret ptr %team
no:
  ret ptr null
}

; one look more at a place that has not changed; lets others run after many
define internal i32 @rest(i32 %looks) {
entry:
@PAUSE@  %more = add i32 %looks, 1
  %long = icmp ugt i32 %more, @SPINS@
  br i1 %long, label %yield, label %done
yield:
  %ignored = call i32 @sched_yield()
  ret i32 %looks
done:
  ret i32 %more
}

define i32 @weft_team(ptr %body, ptr %context, i64 %n, i32 %threads) {
entry:
  %configured = call i32 @wanted_threads()
  %limited = icmp slt i32 %threads, 0
  %limit = sub i32 0, %threads
  %smaller = call i32 @llvm.umin.i32(i32 %limit, i32 %configured)
  %allowed = select i1 %limited, i32 %smaller, i32 %configured
  %wanted32 = call i32 @llvm.umin.i32(i32 %allowed, i32 @MOST@)
  %wanted = zext i32 %wanted32 to i64
  %one = icmp ule i64 %wanted, 1
  %fork = load atomic i32, ptr @weft_fork_state monotonic, align 4
  %forked = icmp ne i32 %fork, 0
  %key = load i32, ptr @weft_team_key
  %keyless = icmp slt i32 %key, 0
  %alone.0 = or i1 %one, %forked
  %alone = or i1 %alone.0, %keyless
  br i1 %alone, label %direct, label %check.nested
check.nested:
  %nested = call i1 @is_nested()
  br i1 %nested, label %direct, label %start
direct:
  %direct.code = call i32 %body(ptr %context, i64 0, i64 1)
  ret i32 %direct.code
start:
  %team = alloca %team, align 64
  call void @llvm.memset.p0.i64(ptr align 64 %team, i8 0, i64 72, i1 false)
  store ptr %body, ptr %team
  %context.at = field context
  store ptr %context, ptr %context.at
  %crew = alloca %crew
  store ptr @member, ptr %crew
  %what.at = getelementptr %crew, ptr %crew, i32 0, i32 1
  store ptr %team, ptr %what.at
  %optional.at = getelementptr %crew, ptr %crew, i32 0, i32 2
  store i32 1, ptr %optional.at
  call void @run_all(ptr %crew, i64 %wanted)
  %result.at = field result
  %result = load i32, ptr %result.at
  ret i32 %result
}

; what each thread of a team does: the first runs the body, the others serve
define internal void @member(ptr %team, i64 %index, i64 %threads) {
entry:
  %stop.at = field stop
  %leads = icmp eq i64 %index, 0
  br i1 %leads, label %lead, label %serve
lead:
  %body = load ptr, ptr %team
  %context.at = field context
  %context = load ptr, ptr %context.at
  %threads.at = field threads
  %threads32 = trunc i64 %threads to i32
  store i32 %threads32, ptr %threads.at
  %key = load i32, ptr @weft_team_key
  %set = call i32 @pthread_setspecific(i32 %key, ptr %team)
  %code = call i32 %body(ptr %context, i64 0, i64 1)
  %unset = call i32 @pthread_setspecific(i32 %key, ptr null)
  %result.at = field result
  store i32 %code, ptr %result.at
  store atomic i32 1, ptr %stop.at release, align 4
  ret void
serve:
  %number.at = field number
  br label %wait
wait:
  %seen = phi i32 [ 0, %serve ], [ %seen, %again ], [ %number, %work ]
  %looks = phi i32 [ 0, %serve ], [ %looks.next, %again ], [ 0, %work ]
  %number = load atomic i32, ptr %number.at acquire, align 4
  %fresh = icmp ne i32 %number, %seen
  br i1 %fresh, label %work, label %look
look:
  %stop = load atomic i32, ptr %stop.at acquire, align 4
  %stopped = icmp ne i32 %stop, 0
  br i1 %stopped, label %leave, label %again
again:
  %looks.next = call i32 @rest(i32 %looks)
  br label %wait
work:
  call void @claim_pieces(ptr %team, i64 %index, i32 %number)
  br label %wait
leave:
  ret void
}

; run pieces of the loop `number` until none is left to claim
define internal void @claim_pieces(ptr %team, i64 %index, i32 %number) {
entry:
  %body = load atomic ptr, ptr %team monotonic, align 8
  %context.at = field context
  %context = load atomic ptr, ptr %context.at monotonic, align 8
  %n.at = field n
  %n = load atomic i64, ptr %n.at monotonic, align 8
  %parts.at = field parts
  %parts = load atomic i64, ptr %parts.at monotonic, align 8
  %pieces.at = field pieces
  %pieces = load atomic i64, ptr %pieces.at monotonic, align 8
  %left.at = field left
  %fault.at = field fault
  %tag.64 = zext i32 %number to i64
  %tag = shl i64 %tag.64, 32
  %end.of.tag = add i64 %tag, %pieces
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
  %word.at = getelementptr %team, ptr %team, i32 0, i32 @CLAIMED@, i64 %which
  br label %claim
claim:
  %word = load atomic i64, ptr %word.at acquire, align 8
  %early = icmp ult i64 %word, %tag
  %late = icmp uge i64 %word, %end.of.tag
  %nothing = or i1 %early, %late
  br i1 %nothing, label %next.part, label %try
try:
  %taken = add i64 %word, 1
  %swap = cmpxchg ptr %word.at, i64 %word, i64 %taken seq_cst seq_cst
  %won = extractvalue { i64, i1 } %swap, 1
  br i1 %won, label %run, label %claim
run:
  %piece = sub i64 %word, %tag
  %part.begin = call i64 @part_begin(i64 %n, i64 %parts, i64 %which)
  %after = add i64 %which, 1
  %part.end = call i64 @part_begin(i64 %n, i64 %parts, i64 %after)
  %length = sub i64 %part.end, %part.begin
  %piece.begin = call i64 @part_begin(i64 %length, i64 %pieces, i64 %piece)
  %piece.after = add i64 %piece, 1
  %piece.end = call i64 @part_begin(i64 %length, i64 %pieces, i64 %piece.after)
  %begin = add i64 %part.begin, %piece.begin
  %end = add i64 %part.begin, %piece.end
  %empty = icmp uge i64 %begin, %end
  br i1 %empty, label %finished, label %call
call:
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

; a parallel loop in a team: the leader gives it out, takes part, and waits for what others claimed
define internal i32 @run_in_team(ptr %team, ptr %body, ptr %context, i64 %n, i64 %wanted) {
entry:
  %busy.at = field busy
  %threads.at = field threads
  %busy = load i32, ptr %busy.at
  %inside = icmp ne i32 %busy, 0
  %threads32 = load i32, ptr %threads.at
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
  %pieces = call i64 @llvm.umin.i64(i64 %chunk, i64 @PIECES@)
  store atomic ptr %body, ptr %team monotonic, align 8
  %context.at = field context
  store atomic ptr %context, ptr %context.at monotonic, align 8
  %n.at = field n
  store atomic i64 %n, ptr %n.at monotonic, align 8
  %parts.at = field parts
  store atomic i64 %parts, ptr %parts.at monotonic, align 8
  %pieces.at = field pieces
  store atomic i64 %pieces, ptr %pieces.at monotonic, align 8
  %all = mul i64 %parts, %pieces
  %all32 = trunc i64 %all to i32
  %left.at = field left
  store atomic i32 %all32, ptr %left.at monotonic, align 4
  %number.at = field number
  %last = load atomic i32, ptr %number.at monotonic, align 4
  %number = add i32 %last, 1
  %tag.64 = zext i32 %number to i64
  %tag = shl i64 %tag.64, 32
  br label %reset
reset:
  %i = phi i64 [ 0, %give ], [ %i.next, %reset ]
  %word.at = getelementptr %team, ptr %team, i32 0, i32 @CLAIMED@, i64 %i
  store atomic i64 %tag, ptr %word.at release, align 8
  %i.next = add i64 %i, 1
  %last.word = icmp eq i64 %i.next, %parts
  br i1 %last.word, label %start, label %reset
start:
  store atomic i32 %number, ptr %number.at release, align 4
  call void @claim_pieces(ptr %team, i64 0, i32 %number)
  br label %wait
wait:
  %looks = phi i32 [ 0, %start ], [ %looks.next, %again ]
  %left = load atomic i32, ptr %left.at acquire, align 4
  %complete = icmp eq i32 %left, 0
  br i1 %complete, label %end, label %again
again:
  %looks.next = call i32 @rest(i32 %looks)
  br label %wait
end:
  store i32 0, ptr %busy.at
  %fault.at = field fault
  %code = load atomic i32, ptr %fault.at acquire, align 4
  store atomic i32 0, ptr %fault.at monotonic, align 4
  ret i32 %code
}
"""


_PAUSES: Final = {
    "x86_64": ("declare void @llvm.x86.sse2.pause()\n", "  call void @llvm.x86.sse2.pause()\n"),
    "aarch64": (
        "declare void @llvm.aarch64.hint(i32)\n", "  call void @llvm.aarch64.hint(i32 1)\n"
    ),
}  # fmt: skip
"""How a processor is told that a thread waits; others are not told."""


def team_ir() -> str:
    """The text, which belongs to a module with ``wanted_threads``, ``part_begin``, ``run_all``."""
    declared, pause = _PAUSES.get(platform.machine(), ("", ""))
    order = list(_FIELDS)
    values = {"MOST": MOST_THREADS, "PIECES": _PIECES, "SPINS": _SPINS, "DECLARE": declared,
              "PAUSE": pause, "TYPE": f"%team = type {{ {', '.join(_FIELDS.values())} }}",
              "CLAIMED": order.index("claimed")}  # fmt: skip
    text = _TEXT
    for name, value in values.items():
        text = text.replace(f"@{name}@", str(value))
    return re.sub(
        r"field (\w+)",
        lambda found: f"getelementptr %team, ptr %team, i32 0, i32 {order.index(found[1])}", text,
    )  # fmt: skip
