"""The runtime's LLVM IR files: LLVM reads them for every processor, and Python agrees with them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import weft
from weft.backends.cpu.isa import architecture_of
from weft.runtime.call.tensor_call_ir import (
    CALL_FIELDS,
    EXPECTED_FIELDS,
    MOST_ARGUMENTS,
    tensor_call_ir,
)
from weft.runtime.native.builtins_ir import BUILTINS, builtins_ir
from weft.runtime.native.elf import read_object
from weft.runtime.native.ir_files import ir_file
from weft.runtime.native.llvm import object_from_ir
from weft.runtime.threads.parallel_ir import parallel_ir
from weft.runtime.threads.watched import FIELDS, ROWS, WATCHED, watched_ir
from weft.support.llvm_binding import binding

TRIPLES = ["x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"]
ROOT = Path(weft.__file__).parent / "runtime"


@pytest.mark.parametrize("triple", [*TRIPLES, "riscv64-unknown-linux-gnu"])
def test_a_module_is_llvm_ir(triple):
    for text in (parallel_ir(triple), builtins_ir(), tensor_call_ir(), watched_ir()):
        llvm = binding()
        module = llvm.parse_assembly(text)
        module.verify()


@pytest.mark.parametrize("triple", TRIPLES)
def test_a_module_becomes_code_that_defines_its_functions(triple):
    names = set()
    for text in (parallel_ir(triple), builtins_ir(), tensor_call_ir(), watched_ir()):
        file = read_object(object_from_ir(text, triple))
        assert file is not None
        names |= set(file.symbol_names()[0])
    assert names >= BUILTINS | {"weft_parallel", "weft_parallel_brief", "weft_team"}
    assert names >= {"weft_stop_workers", "weft_tensor_call"}


@pytest.mark.parametrize("triple", TRIPLES)
def test_a_thread_that_waits_tells_its_processor(triple):
    pause = architecture_of(triple).pause.call
    assert pause
    assert pause in parallel_ir(triple)


def test_every_file_is_part_of_a_module():
    joined = parallel_ir() + builtins_ir() + tensor_call_ir() + watched_ir()
    for path in ROOT.rglob("*.ll"):
        assert ir_file(str(path.relative_to(ROOT))) in joined


def fields_of(struct, text):
    """The names and types of a struct, as its comments and lines say."""
    body = re.search(rf"%{struct} = type {{\n(.*?)\n}}", text, re.DOTALL)[1]
    lines = re.finditer(r"^  ([^,;]+?),? *; \d+ (\w+)", body, re.MULTILINE)
    return {line[2]: line[1] for line in lines}


def test_python_and_the_file_agree_on_what_a_call_knows():
    text = tensor_call_ir()
    for struct, fields in (("call", CALL_FIELDS), ("expected", EXPECTED_FIELDS)):
        assert list(fields_of(struct, text).items()) == list(fields.items())


def test_python_and_the_file_agree_on_the_table_of_parts():
    text = watched_ir()
    assert f"@parts_table = global [{ROWS} x [{FIELDS} x i64]]" in text
    assert f"and i64 %number, {ROWS - 1}\n" in text
    assert all(f"define i32 @watched_{name}(" in text for name in WATCHED)


@pytest.mark.parametrize("name", ["threads/team.ll", "threads/worker.ll", "call/tensor_call.ll"])
def test_fields_have_the_numbers_that_their_comments_say(name):
    text = ir_file(name)
    every = ir_file("threads/team.ll") + ir_file("threads/worker.ll") + tensor_call_ir()
    uses = re.findall(r"getelementptr %(\w+), ptr %\w+, i32 0, i32 (\d+) ; (\w+)", text)
    assert uses
    for struct, number, field in uses:
        assert list(fields_of(struct, every))[int(number)] == field


def test_there_is_room_for_the_arguments_of_a_call():
    text = tensor_call_ir()
    assert text.count(f"alloca [{MOST_ARGUMENTS + 1} x ptr]") == 2
    assert f"with{MOST_ARGUMENTS}:" in text
    assert f"with{MOST_ARGUMENTS + 1}:" not in text
