"""weft's loader of object code, beside LLVM's."""

import ctypes
import platform
import re
import sys
from dataclasses import replace

import numpy as np
import pytest

from tests.lib.python_process import output_of
from weft.backends.cpu.isa import architecture_of
from weft.runtime.native.elf import RELA, RELOCATION, SECTION, SYMBOL, SYMTAB, read_object
from weft.runtime.native.externals import BOUND, bind_external
from weft.runtime.native.llvm import Engine, object_from_ir
from weft.runtime.native.loader import load_object
from weft.runtime.native.parts import load_code
from weft.runtime.native.processor import surely_has, this_processor
from weft.runtime.native.relocations import check_relocations
from weft.support.errors import CodegenError

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() != "x86_64", reason="LLVM loads code elsewhere"
)

TEXT = """
@table = private unnamed_addr constant [4 x double] [double 1.5, double 2.5, double 3.5, double 4.5]
@count = global i64 5
@zeros = global [1000 x i64] zeroinitializer
@at = global ptr @count
declare double @log2(double)
define double @part(i64 %i) {
  %at = getelementptr [4 x double], ptr @table, i64 0, i64 %i
  %value = load double, ptr %at
  ret double %value
}
define double @f(i64 %i) {
  %value = call double @part(i64 %i)
  %log = call double @log2(double %value)
  %place = load ptr, ptr @at
  %count = load i64, ptr %place
  %more = add i64 %count, 1
  store i64 %more, ptr %place
  %last = getelementptr [1000 x i64], ptr @zeros, i64 0, i64 999
  store i64 %count, ptr %last
  %number = sitofp i64 %count to double
  %sum = fadd double %log, %number
  ret double %sum
}
"""


def loaded():
    bind_external("log2")
    return load_object(read_object(object_from_ir(TEXT)), BOUND)


@pytest.mark.parametrize("load", [loaded, lambda: Engine(object_from_ir(TEXT))])
def test_code_constants_variables_and_external_functions(load):
    bind_external("log2")
    code = load()
    function = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_int64)(code.address("f"))
    assert [function(i) for i in range(4)] == [np.log2(i + 1.5) + 5 + i for i in range(4)]
    assert ctypes.c_int64.from_address(code.address("count")).value == 9
    assert ctypes.c_int64.from_address(code.address("zeros") + 8 * 999).value == 8
    assert code.address("nothing") == 0


def test_memory_goes_with_the_object():
    first = loaded()
    place = first.address("f")
    assert _mapped(place)
    del first
    assert not _mapped(place)


def _mapped(address):
    spans = [line.split()[0].split("-") for line in open_maps()]
    return any(int(begin, 16) <= address < int(end, 16) for begin, end in spans)


def open_maps():
    with open("/proc/self/maps", encoding="utf-8") as maps:
        return maps.readlines()


def test_no_part_is_both_writable_and_executable():
    code = loaded()
    for name, expected in (("f", "r-xp"), ("count", "rw-p")):
        place = code.address(name)
        [rights] = [
            line.split()[1] for line in open_maps()
            if int(line.split("-")[0], 16) <= place < int(line.split()[0].split("-")[1], 16)
        ]  # fmt: skip
        assert rights == expected


def test_a_name_without_an_address_is_an_error():
    text = (
        "declare void @nobody_has_this()\n"
        "define void @g() {\ncall void @nobody_has_this()\nret void\n}"
    )
    with pytest.raises(CodegenError, match="no address is known of nobody_has_this"):
        load_object(read_object(object_from_ir(text)), {})


def _of_relocation(kind):
    """The object code whose first relocation is of another type."""
    code = bytearray(object_from_ir(TEXT))
    section = next(item for item in read_object(bytes(code)).sections if item["type"] == RELA)
    code[int(section["offset"]) + 8] = kind
    return bytes(code)


def test_relocations_that_it_does_not_know_are_left_to_llvm():
    code = _of_relocation(24)  # a distance of 64 bits, as large code has it
    assert load_object(read_object(code), BOUND) is None
    check_relocations(read_object(code))


@pytest.mark.parametrize("kind", [3, 7, 23, 38, 43, 255])
def test_relocations_that_weft_does_not_write_are_refused(kind):
    """Of thread-local storage, of indirect functions, of no meaning: LLVM would end the process."""
    bind_external("log2")
    with pytest.raises(CodegenError, match=f"found relocations of type {kind} in its section"):
        load_code(_of_relocation(kind))


def test_code_for_another_processor_is_refused():
    code = bytearray(object_from_ir(TEXT))
    code[18] = 183
    bind_external("log2")
    with pytest.raises(CodegenError, match=r"for x86_64 \(ELF machine 62\), got machine 183"):
        load_code(bytes(code))


def test_relocations_without_addends_are_refused():
    file = read_object(object_from_ir(TEXT))
    sections = file.sections.copy()
    sections["type"][sections["type"] == RELA] = 9
    with pytest.raises(CodegenError, match="found addends in the code in its section"):
        check_relocations(replace(file, sections=sections))


def test_all_that_weft_loads_itself_is_known():
    check_relocations(read_object(object_from_ir(TEXT)))


@pytest.mark.parametrize("section", [0xFF00, 0xFFF2, 0xFFFF])
def test_symbols_of_no_section_are_refused(section):
    file = read_object(object_from_ir(TEXT))
    symbols = file.sections[_number(file, lambda s: s["type"] == SYMTAB)]
    number = file.names.index("count")
    code = _patched(lambda _: int(symbols["offset"]), SYMBOL, number, "section", section)
    with pytest.raises(CodegenError, match="symbol 'count' lies in section .*there is not"):
        load_object(read_object(code), BOUND)


@pytest.mark.parametrize("field", ["offset", "addend", "symbol"])
def test_places_outside_of_the_code_are_an_error(field):
    code = bytearray(object_from_ir(TEXT))
    section = next(item for item in read_object(bytes(code)).sections if item["type"] == RELA)
    table = np.frombuffer(code, RELOCATION, 1, int(section["offset"])).copy()
    table[field] = 2**31 + 5
    code[int(section["offset"]) : int(section["offset"]) + RELOCATION.itemsize] = table.tobytes()
    with pytest.raises(CodegenError, match="expected object code, got a damaged ELF file"):
        load_object(read_object(bytes(code)), BOUND)


def _patched(table, entry, number, field, value):
    """The object code with one field of one table changed."""
    code = bytearray(object_from_ir(TEXT))
    at = table(read_object(bytes(code))) + entry.itemsize * number + entry.fields[field][1]
    size = entry.fields[field][0].itemsize
    code[at : at + size] = value.to_bytes(size, "little")
    return bytes(code)


def _sections_at(file):
    return int.from_bytes(file.code[40:48], "little")


def _number(file, matches):
    return next(n for n, section in enumerate(file.sections) if matches(section))


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("size", 1 << 20, "ends beyond the file"),
        ("offset", 1 << 62, "ends beyond the file"),
        ("align", 3, "is aligned to 3"),
        ("align", 1 << 40, "is aligned to"),
        ("size", 1, "outside of its section"),
        ("flags", 2, "lies outside of the code"),
    ],
)
def test_sections_are_compared_with_the_file_before_anything_is_mapped(field, value, message):
    file = read_object(object_from_ir(TEXT))
    number = _number(file, lambda s: s["type"] == 1 and s["flags"] & 4 and s["size"])
    code = _patched(_sections_at, SECTION, number, field, value)
    with pytest.raises(CodegenError, match=message):
        load_object(read_object(code), BOUND)


def test_functions_outside_of_their_section_are_refused():
    file = read_object(object_from_ir(TEXT))
    symbols = file.sections[_number(file, lambda s: s["type"] == SYMTAB)]
    number = file.names.index("f")
    code = _patched(lambda _: int(symbols["offset"]), SYMBOL, number, "value", 1 << 30)
    with pytest.raises(CodegenError, match="symbol 'f' lies outside of its section"):
        load_object(read_object(code), BOUND)


def test_programs_are_no_objects():
    code = bytearray(object_from_ir(TEXT))
    code[16] = 2
    with pytest.raises(CodegenError, match="no relocatable object"):
        load_object(read_object(bytes(code)), BOUND)


@pytest.mark.parametrize("seed", range(20))
def test_random_damage_does_not_end_the_process(seed):
    """Only loaded, not called; tables of sections and symbols are hit, too."""
    rng = np.random.default_rng(seed)
    code = np.frombuffer(object_from_ir(TEXT), np.uint8).copy()
    start = int.from_bytes(bytes(code[40:48]), "little")
    last = start + SECTION.itemsize * int.from_bytes(bytes(code[60:62]), "little")
    for place in rng.integers(start, last, 5):
        code[place] = rng.integers(0, 256)
    try:
        file = read_object(bytes(code))
        if file is not None:
            load_object(file, BOUND)
    except CodegenError:
        pass


def test_a_process_that_runs_a_model_imports_no_llvm(tmp_path):
    program = f"""
import sys, numpy as np, weft
from weft import relax
x = relax.Var("x", relax.TensorStructInfo((64, 512), "float32"))
builder = relax.BlockBuilder()
with builder.function("main", [x]):
    builder.emit_func_output(builder.emit(relax.op.nn.softmax(relax.op.exp(x))))
model = weft.compile(builder.get(), cache=False)
assert "weft_parallel" in model.get_source("ll")
model.save({str(tmp_path / "m.weft")!r})
"""
    run = f"""
import sys, numpy as np, weft.runtime
model = weft.runtime.load({str(tmp_path / "m.weft")!r})
print(model(np.zeros((64, 512), "float32")).sum().round())
assert not [name for name in sys.modules if name.startswith("llvmlite")]
"""
    for text in (program, run):
        printed = output_of(text, env={"WEFT_NUM_THREADS": "2"})
    assert printed == "64.0\n"


def test_linux_and_llvm_agree_on_this_processor():
    triple, _, features = this_processor()
    has = [name for name, there in features.items() if there]
    bundles = architecture_of(triple).bundles  # of which a processor may have every part
    lacks = [
        name for name, there in features.items()
        if not there and re.sub(r"[._-]", "", name) not in bundles
    ]  # fmt: skip
    confirmed = [name for name in has if surely_has(triple, [name])]
    assert len(confirmed) > len(has) // 2
    assert not [name for name in lacks if surely_has(triple, [name])]
    assert not surely_has("aarch64-unknown-linux-gnu", [])
