"""The text of one LLVM function: LLVM reads and verifies each, and exits free what is held."""

from __future__ import annotations

import re

import llvmlite.binding as llvm
import pytest

from weft.codegen.llvm.builder import FunctionBuilder
from weft.codegen.llvm.context import ModuleContext
from weft.support.errors import CodegenError

COLD = """!0 = !{!"branch_weights", i32 1000, i32 1}
!1 = !{!"branch_weights", i32 1, i32 1000}"""
"""What modules say of branches to faults: which side is taken a thousand times as often."""


@pytest.fixture
def builder():
    return FunctionBuilder(ModuleContext())


def body_of(builder):
    """The instructions so far, without indentation."""
    return [line.strip() for line in builder.lines]


def test_values_and_blocks_have_names_of_their_own(builder):
    names = [builder.name(), builder.op("add i32 1, 2"), builder.name(), builder.label("then")]
    assert len(set(names)) == 4
    assert re.fullmatch(r"then\d+", names[3])
    assert body_of(builder) == [f"{names[1]} = add i32 1, 2"]


def test_an_instruction_without_result(builder):
    builder.do("store i32 1, ptr %p")
    assert builder.lines == ["  store i32 1, ptr %p"]


def test_a_block_ends_once(builder):
    builder.branch("a")
    builder.branch("b")
    builder.branch_if("%c", "d", "e")
    assert body_of(builder) == ["br label %a"]
    builder.start("a")
    assert builder.block == "a"
    builder.branch_if("%c", "d", "e")
    assert body_of(builder) == ["br label %a", "a:", "br i1 %c, label %d, label %e"]


@pytest.mark.parametrize(
    ("options", "tail"),
    [
        ({}, ""), ({"weights": "!3"}, ", !prof !3"), ({"loop": "!4"}, ", !llvm.loop !4"),
        ({"weights": "!3", "loop": "!4"}, ", !prof !3, !llvm.loop !4"),
    ],
)  # fmt: skip
def test_metadata_of_a_branch(builder, options, tail):
    builder.branch_if("%c", "a", "b", **options)
    assert body_of(builder) == [f"br i1 %c, label %a, label %b{tail}"]


def test_a_phi_joins_values_of_blocks(builder):
    value = builder.phi("i32", [("1", "a"), ("%x", "b")])
    assert body_of(builder) == [f"{value} = phi i32 [ 1, %a ], [ %x, %b ]"]


def test_memory_of_the_stack_is_in_the_entry_block(builder):
    builder.start("later")
    name = builder.alloca("i32, align 4")
    assert builder.allocas == [f"  {name} = alloca i32, align 4"]
    assert body_of(builder) == ["later:"]


def test_calls_declare_what_they_call(builder):
    value = builder.call("f", "i32", [("i32", "1"), ("ptr", "%p")])
    assert builder.call("g", "void", []) == ""
    again = builder.call("f", "i32", [("i32", "2"), ("ptr", "%p")])
    assert body_of(builder) == [
        f"{value} = call i32 @f(i32 1, ptr %p)", "call void @g()",
        f"{again} = call i32 @f(i32 2, ptr %p)",
    ]  # fmt: skip


def test_a_failure_leaves_through_one_block(builder):
    builder.check_code("%first")
    builder.check_code("%second")
    text = "\n".join(builder.lines)
    assert text.count("icmp ne i32 %first, 0") == text.count("icmp ne i32 %second, 0") == 1
    (held,) = builder.held
    assert [code for code, _ in held.exits] == ["%first", "%second"]
    assert len({block for _, block in held.exits}) == 2
    assert held.label
    assert text.count(f"label %{held.label}") == 2


def test_nothing_follows_an_exit(builder):
    builder.exit_with("1")
    before = list(builder.lines)
    builder.exit_with("2")
    builder.branch("somewhere")
    assert builder.lines == before
    assert [code for code, _ in builder.held[0].exits] == ["1"]


def test_llvm_reads_straight_code(builder):
    pointer = builder.alloca("i32")
    total = builder.op("add i32 %x, 1")
    builder.do(f"store i32 {total}, ptr {pointer}")
    again = builder.op(f"load i32, ptr {pointer}")
    lines = [*builder.allocas, *builder.lines, f"  ret i32 {again}"]
    text = "define i32 @f(i32 %x) {\nentry:\n" + "\n".join(lines) + "\n}"
    module = llvm.parse_assembly(text)
    module.verify()
    assert "add i32 %x, 1" in str(module.get_function("f"))


def verified(builder, header="define i32 @f(i32 %x)"):
    """The function's text, in a module that LLVM has verified."""
    context = builder.context
    text = builder.finish(header, "f")
    context.functions.append(text)
    llvm.parse_assembly(context.text(COLD)).verify()
    return text


def test_a_function_without_failures_returns_zero(builder):
    assert verified(builder).endswith("entry:\n  ret i32 0\n}")


def test_every_exit_from_a_scope_frees_what_it_holds(builder):
    """Inner memory before outer, and on the straight way too."""
    outer = builder.call("outer", "ptr", [])
    builder.hold(outer)
    builder.check_code("%x")
    inner = builder.call("inner", "ptr", [])
    builder.hold(inner)
    builder.raise_unless("true", 1, "it is not so")
    builder.release()
    builder.check_code("%x")
    builder.release()
    text = verified(builder)
    freed = re.findall(r"call void @free\(ptr (%v\d+)\)", text)
    assert freed == [inner, inner, outer, outer]
    assert text.count("ret i32") == 2


def test_a_scope_without_exits_frees_once(builder):
    builder.hold(builder.call("memory", "ptr", []))
    builder.release()
    assert verified(builder).count("@free") == 1


def test_a_scope_that_ends_with_an_exit_frees_in_that_block_alone(builder):
    builder.hold(builder.call("memory", "ptr", []))
    builder.exit_with("7")
    builder.release()
    text = verified(builder)
    assert text.count("@free") == 1
    assert "phi i32 [ 7, %entry ]" in text


def test_a_fault_says_its_text_and_its_numbers(builder):
    builder.raise_unless("%c", 3, "index {a} beyond {b}", "%i", "16")
    text = verified(builder, "define i32 @f(i1 %c, i64 %i)")
    assert re.search(r"call i32 @\w+\(i32 3, ptr @\.str\.0, i64 %i, i64 16\)", text)
    assert 'c"index {a} beyond {b}\\00"' in builder.context.text("")


@pytest.mark.parametrize(
    ("text", "data"),
    [("plain", 'c"plain\\00"'), ('a "b" \\ c', 'c"a \\22b\\22 \\5C c\\00"'),
     ("line\nnext", 'c"line\\0Anext\\00"'), ("ü", 'c"\\C3\\BC\\00"'), ("", 'c"\\00"')],
)  # fmt: skip
def test_texts_are_bytes_that_llvm_reads(text, data):
    context = ModuleContext()
    first, again, other = context.string(text), context.string(text), context.string(text + "!")
    assert first == again != other
    written = context.text("")
    assert data in written
    llvm.parse_assembly(written).verify()


@pytest.mark.parametrize(
    ("text", "message"),
    [("a\0b", "a text without NUL bytes, got 'a\\\\x00b' with one at 1"),
     ("\ud800", "expected a text that UTF-8 can write")],
)  # fmt: skip
def test_texts_that_c_cannot_hold(text, message):
    with pytest.raises(CodegenError, match=message):
        ModuleContext().string(text)


@pytest.mark.parametrize(
    ("name", "operand"),
    [("f", "@f"), ("a.b_c$d", "@a.b_c$d"), ("1st", '@"1st"'), ("a b", '@"a b"'),
     ('say "x"', '@"say \\22x\\22"'), ("ä", '@"\\C3\\A4"')],
)  # fmt: skip
def test_names_of_functions_are_quoted_where_llvm_needs_it(name, operand):
    context = ModuleContext()
    assert context.declare(name, "void", "") == operand
    context.declare(name, "void", "")
    text = context.text("")
    assert text.count("declare") == 1
    llvm.parse_assembly(text).verify()


def test_a_function_has_a_name():
    with pytest.raises(CodegenError, match="expected the name of a function, got an empty text"):
        ModuleContext().declare("", "void", "")


def test_equal_tables_are_one():
    context = ModuleContext()
    table = "[2 x i32] [i32 1, i32 2]"
    assert context.constant(table) == context.constant(table)
    assert context.constant("[1 x i8] zeroinitializer") != context.constant(table)
    text = context.text("")
    assert text.count("align 64") == 2
    llvm.parse_assembly(text).verify()


def test_each_loop_has_its_own_metadata(builder):
    context = builder.context
    full, enabled = context.loop("full"), context.loop("enable")
    assert full != enabled
    text = context.text("")
    assert '!"llvm.loop.unroll.full"' in text
    assert f"{enabled} = distinct" in text
