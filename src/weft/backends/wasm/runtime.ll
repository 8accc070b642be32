; What compiled code calls in WebAssembly, on one thread (serial.ll) or on several (threads.ll).

declare i32 @weft_raise(i32, ptr, i64, i64)

; There is no Python to call.
define i32 @weft_call_packed(ptr %name, ptr %arguments, i32 %count, ptr %result) {
  %code = call i32 @weft_raise(i32 0, ptr %name, i64 0, i64 0)
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
