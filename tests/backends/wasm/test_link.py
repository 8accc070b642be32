"""weft's linker for WebAssembly, on bytes and on small objects that LLVM makes."""

from __future__ import annotations

import pytest

from tests.lib.node import missing, node
from weft.backends.wasm import binary
from weft.backends.wasm.code import Variants, options_of, unpacked
from weft.backends.wasm.instructions import instructions, made_exact
from weft.backends.wasm.link import PAGE, STACK, link
from weft.backends.wasm.object_file import FUNCTION_SYMBOL, read_object
from weft.backends.wasm.package import runtime_objects
from weft.codegen.llvm.compile import compile_text
from weft.support.errors import ArtifactFormatError, CodegenError, InternalError
from weft.target.target import Target

needs_node = pytest.mark.skipif(bool(missing()), reason=missing() or "none")


def compiled(text):
    return compile_text(text, options_of(Target("wasm")))


FIRST = """
declare i32 @second(i32)
define i32 @first(i32 %x) {
  %y = call i32 @second(i32 %x)
  %z = add i32 %y, 1
  ret i32 %z
}
define i32 @unused() { ret i32 7 }
"""
SECOND = """
@table = internal constant [3 x i32] [i32 10, i32 20, i32 30]
@chosen = internal global ptr @double
define internal i32 @double(i32 %x) { %y = mul i32 %x, 2 ret i32 %y }
define i32 @second(i32 %x) {
  %at = getelementptr i32, ptr @table, i32 %x
  %value = load i32, ptr %at
  %f = load volatile ptr, ptr @chosen
  %result = call i32 %f(i32 %value)
  ret i32 %result
}
"""


@pytest.mark.parametrize("value", [0, 1, 63, 64, 127, 128, 300, 2**31, 2**32 - 1])
def test_numbers_are_read_as_they_are_written(value):
    assert binary.Reader(binary.unsigned(value)).number() == value
    for number in (value, -value, -value - 1):
        assert binary.Reader(binary.signed(number)).signed() == number


def test_padded_numbers_are_read():
    assert binary.Reader(bytes.fromhex("8180808000")).number() == 1
    assert binary.Reader(bytes.fromhex("ffffffff7f")).signed() == -1


def test_the_symbols_of_an_object():
    symbols = {s.name: s for s in read_object(compiled(FIRST)).symbols if s.kind == FUNCTION_SYMBOL}
    assert set(symbols) == {"first", "second", "unused"}
    assert symbols["first"].is_defined
    assert not symbols["second"].is_defined


def sections_of(module):
    return dict(binary.sections(module))


def test_only_what_is_reached_is_kept():
    module = link([compiled(FIRST), compiled(SECOND)], ["first"]).code
    assert sections_of(module)[binary.CODE].number() == 3  # first, second, double; not unused
    assert b"unused" not in module
    assert binary.IMPORT not in sections_of(module)


def test_memory_is_the_stack_and_then_data():
    module = link([compiled(FIRST), compiled(SECOND)], ["first"]).code
    memory = sections_of(module)[binary.MEMORY]
    assert memory.number() == 1
    assert (memory.byte(), memory.number()) == (1, STACK // PAGE + 1)
    data = sections_of(module)[binary.DATA]
    data.number(), data.byte(), data.byte()
    assert data.signed() >= STACK


@needs_node
def test_calls_between_objects_and_by_address(tmp_path):
    (tmp_path / "m.wasm").write_bytes(link([compiled(FIRST), compiled(SECOND)], ["first"]).code)
    script = """
import { readFileSync } from "node:fs";
const { exports } = (await WebAssembly.instantiate(readFileSync("m.wasm"))).instance;
console.log([0, 1, 2].map((x) => exports.first(x)).join());
"""
    (tmp_path / "run.mjs").write_text(script, encoding="utf-8")
    assert node(["run.mjs"], tmp_path).strip() == "21,41,61"


HEAP = """
import { readFileSync } from "node:fs";
const { exports: e } = (await WebAssembly.instantiate(readFileSync("m.wasm"))).instance;
const first = e.aligned_alloc(64n, 100n), second = e.aligned_alloc(64n, 1n << 21n);
const bytes = e.memory.buffer.byteLength;
e.free(second);
const again = e.aligned_alloc(64n, 5n);
console.log(first % 64, second - first, again === second, bytes >= second + (1 << 21),
            e.aligned_alloc(64n, 1n << 32n), e.aligned_alloc(64n, 4294000000n));
"""


@needs_node
def test_the_heap_grows_and_is_a_stack(tmp_path):
    module = link(runtime_objects(), ["aligned_alloc", "free"]).code
    (tmp_path / "m.wasm").write_bytes(module)
    (tmp_path / "run.mjs").write_text(HEAP, encoding="utf-8")
    assert node(["run.mjs"], tmp_path).strip() == "0 128 true true 0 0"


def test_functions_of_math_are_imported():
    text = "declare double @sin(double)\ndefine double @f(double %x) {\n" \
           "  %y = call double @sin(double %x)\n  ret double %y\n}\n"  # fmt: skip
    module = link([compiled(text)], ["f"]).code
    assert b"\x04Math\x03sin" in module


@needs_node
def test_a_call_by_address_is_valid_where_no_address_is_taken(tmp_path):
    text = "define i32 @f(ptr %g) {\n  %x = call i32 %g()\n  ret i32 %x\n}\n"
    (tmp_path / "m.wasm").write_bytes(link([compiled(text)], ["f"]).code)
    script = """
import { readFileSync } from "node:fs";
console.log(WebAssembly.validate(readFileSync("m.wasm")));
"""
    (tmp_path / "run.mjs").write_text(script, encoding="utf-8")
    assert node(["run.mjs"], tmp_path).strip() == "true"


def test_a_missing_function_is_named():
    with pytest.raises(
        CodegenError, match=r"no C library, and the model's code calls second; cast"
    ):
        link([compiled(FIRST)], ["first"])


def test_an_export_that_no_object_has_is_an_error():
    with pytest.raises(InternalError, match="expected an object to define the function third"):
        link([compiled(FIRST)], ["third"])


@pytest.mark.parametrize("data", [b"", b"\x7fELF", binary.MAGIC + b"\x01\x7f\x00"])
def test_what_is_no_object_is_an_error(data):
    with pytest.raises(InternalError, match=r"expected (a WebAssembly object|127 more bytes)"):
        read_object(data)


def test_variants_are_unpacked_as_they_were_packed():
    variants = Variants(b"one", b"another", 3)
    assert unpacked(variants.packed()) == variants
    for damaged in (b"", variants.packed()[:-1], b"x" + variants.packed()):
        with pytest.raises(
            ArtifactFormatError, match="expected code for WebAssembly, got .* other"
        ):
            unpacked(damaged)


def test_relaxed_extremes_become_exact_and_constants_stay():
    relaxed = bytes([0xFD]) + binary.unsigned(0x10E)
    exact = bytes([0xFD]) + binary.unsigned(0xEB)
    constant = bytes([0xFD, 12]) + (relaxed + bytes(13))
    access = bytes([0xFD, 0, 4]) + binary.unsigned(0x87FD)
    loop = bytes([0x03, 0x40, 0x43]) + relaxed + bytes([0, 0x0E, 1, 0, 0, 0x0B])
    body = bytes([1, 2, 0x7B]) + constant + access + loop + relaxed + bytes([0x0B])
    assert made_exact(body) == body[:-4] + exact + bytes([0x0B])
    assert [number for _, number in instructions(body)] == [12, 0, 0x10E]
