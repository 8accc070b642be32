; What compiled code asks of its surroundings, for a model in WebAssembly: faults and memory.
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

define i32 @weft_call_packed(ptr %name, ptr %arguments, i32 %count, ptr %result) {
  %code = call i32 @weft_raise(i32 0, ptr %name, i64 0, i64 0)
  ret i32 %code
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

; a * b + c, rounded once (S. Boldo and G. Melquiond, "Emulation of a FMA and correctly rounded sums:
; proved algorithms using rounding to odd", 2008). Where a product of halves of numbers would leave
; the range of double, which formulas of functions do not, it is rounded twice.
declare double @llvm.fabs.f64(double)

define internal { double, double } @two_sum(double %a, double %b) alwaysinline {
  %sum = fadd double %a, %b
  %b.part = fsub double %sum, %a
  %a.part = fsub double %sum, %b.part
  %b.rest = fsub double %b, %b.part
  %a.rest = fsub double %a, %a.part
  %rest = fadd double %a.rest, %b.rest
  %one = insertvalue { double, double } poison, double %sum, 0
  %both = insertvalue { double, double } %one, double %rest, 1
  ret { double, double } %both
}

; the upper 26 bits of a number: its rest has 26 bits, too
define internal double @upper(double %x) alwaysinline {
  %scaled = fmul double %x, 134217729.0
  %less = fsub double %scaled, %x
  %high = fsub double %scaled, %less
  ret double %high
}

define double @fma(double %a, double %b, double %c) {
entry:
  %product = fmul double %a, %b
  %twice = fadd double %product, %c
  %a.size = call double @llvm.fabs.f64(double %a)
  %b.size = call double @llvm.fabs.f64(double %b)
  %c.size = call double @llvm.fabs.f64(double %c)
  %p.size = call double @llvm.fabs.f64(double %product)
  %a.good = fcmp olt double %a.size, 0x7DD0000000000000
  %b.good = fcmp olt double %b.size, 0x7DD0000000000000
  %c.good = fcmp olt double %c.size, 0x7DD0000000000000
  %p.good = fcmp olt double %p.size, 0x7DD0000000000000
  %p.large = fcmp ogt double %p.size, 0x0500000000000000
  %ab = and i1 %a.good, %b.good
  %cp = and i1 %c.good, %p.good
  %abcp = and i1 %ab, %cp
  %good = and i1 %abcp, %p.large
  br i1 %good, label %exact, label %plain
plain:
  ret double %twice
exact:
  %a.high = call double @upper(double %a)
  %b.high = call double @upper(double %b)
  %a.low = fsub double %a, %a.high
  %b.low = fsub double %b, %b.high
  %hh = fmul double %a.high, %b.high
  %hl = fmul double %a.high, %b.low
  %lh = fmul double %a.low, %b.high
  %ll = fmul double %a.low, %b.low
  %e1 = fsub double %hh, %product
  %e2 = fadd double %e1, %hl
  %e3 = fadd double %e2, %lh
  %rest = fadd double %e3, %ll
  %s = call { double, double } @two_sum(double %c, double %rest)
  %s.high = extractvalue { double, double } %s, 0
  %s.low = extractvalue { double, double } %s, 1
  %v = call { double, double } @two_sum(double %product, double %s.high)
  %v.high = extractvalue { double, double } %v, 0
  %v.low = extractvalue { double, double } %v, 1
  %t = call { double, double } @two_sum(double %v.low, double %s.low)
  %t.high = extractvalue { double, double } %t, 0
  %t.low = extractvalue { double, double } %t, 1
  ; to odd: a sum that is not exact gets an odd last bit, on the side where the exact one is
  %inexact = fcmp one double %t.low, 0.0
  %bits = bitcast double %t.high to i64
  %last = and i64 %bits, 1
  %even = icmp eq i64 %last, 0
  %moves = and i1 %inexact, %even
  %rest.up = fcmp ogt double %t.low, 0.0
  %is.up = fcmp ogt double %t.high, 0.0
  %away = icmp eq i1 %rest.up, %is.up
  %step = select i1 %away, i64 1, i64 -1
  %moved = add i64 %bits, %step
  %odd.bits = select i1 %moves, i64 %moved, i64 %bits
  %odd = bitcast i64 %odd.bits to double
  %result = fadd double %v.high, %odd
  ret double %result
}

; float16 to and from float32, by which LLVM moves float16 in places (weft.codegen.llvm.half_bits
; has the algorithms, of F. Giesen; compiled code converts by itself). A float16 is the low half of x.
define float @__extendhfsf2(i32 %x) {
  %sign.bit = and i32 %x, 32768
  %sign = shl i32 %sign.bit, 16
  %rest = and i32 %x, 32767
  %size = shl i32 %rest, 13
  %small = bitcast i32 %size to float
  %scaled = fmul float %small, 0x46F0000000000000
  %finite = bitcast float %scaled to i32
  %largest = or i32 %size, 2139095040
  %is.largest = icmp uge i32 %size, 260046848
  %whole = select i1 %is.largest, i32 %largest, i32 %finite
  %bits = or i32 %whole, %sign
  %result = bitcast i32 %bits to float
  ret float %result
}

define i32 @__truncsfhf2(float %x) {
  %bits = bitcast float %x to i32
  %size = and i32 %bits, 2147483647
  %sign.bit = xor i32 %bits, %size
  %sign = lshr i32 %sign.bit, 16
  %last = lshr i32 %size, 13
  %odd = and i32 %last, 1
  %moved = add i32 %size, -939520001
  %rounded = add i32 %moved, %odd
  %normal = lshr i32 %rounded, 13
  %positive = bitcast i32 %size to float
  %raised = fadd float %positive, 0.5
  %raised.bits = bitcast float %raised to i32
  %small = sub i32 %raised.bits, 1056964608
  %is.nan = icmp ugt i32 %size, 2139095040
  %nan = and i32 %last, 1023
  %quiet = or i32 %nan, 32256
  %large = select i1 %is.nan, i32 %quiet, i32 31744
  %is.small = icmp ult i32 %size, 947912704
  %finite = select i1 %is.small, i32 %small, i32 %normal
  %is.large = icmp uge i32 %size, 1199570944
  %whole = select i1 %is.large, i32 %large, i32 %finite
  %result = or i32 %whole, %sign
  ret i32 %result
}
