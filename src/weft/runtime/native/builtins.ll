; Conversions that compilers expect from their support library, for systems whose own lacks them.
;
; LLVM calls these by name where the processor has no instruction for it. Rounding is to nearest
; even.

define bfloat @__truncsfbf2(float %x) {
  %bits = bitcast float %x to i32
  %nan = fcmp uno float %x, %x
  %high = lshr i32 %bits, 16
  %odd = and i32 %high, 1
  %half = add i32 %odd, 32767
  %rounded = add i32 %bits, %half
  %number = lshr i32 %rounded, 16
  %quiet = or i32 %high, 64
  %chosen = select i1 %nan, i32 %quiet, i32 %number
  %short = trunc i32 %chosen to i16
  %result = bitcast i16 %short to bfloat
  ret bfloat %result
}

; round to odd on the way through float, so that rounding twice is rounding once
define bfloat @__truncdfbf2(double %x) {
  %near = fptrunc double %x to float
  %back = fpext float %near to double
  %inexact = fcmp one double %back, %x
  %near.bits = bitcast float %near to i32
  %x.size = call double @llvm.fabs.f64(double %x)
  %back.size = call double @llvm.fabs.f64(double %back)
  %over = fcmp ogt double %back.size, %x.size
  %one.less = sub i32 %near.bits, 1
  %toward.zero = select i1 %over, i32 %one.less, i32 %near.bits
  %odd = or i32 %toward.zero, 1
  %bits = select i1 %inexact, i32 %odd, i32 %near.bits
  %single = bitcast i32 %bits to float
  %result = call bfloat @__truncsfbf2(float %single)
  ret bfloat %result
}

declare double @llvm.fabs.f64(double)
