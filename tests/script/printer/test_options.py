"""Every option of ``script()``, the short texts of nodes, and names of all kinds."""

from __future__ import annotations

import keyword

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.lib.round_trip import assert_round_trip
from weft import relax, tir
from weft.ir.expr import FloatImm, GlobalVar, IntImm, Range, StringImm
from weft.ir.module import IRModule
from weft.ir.node import Array, Node, node
from weft.ir.op import Op
from weft.ir.type import FuncType, PointerType, PrimType, TupleType
from weft.runtime import ObjectPath
from weft.script import from_source
from weft.script.printer.docsifier import Docsifier, PrinterConfig, clean_name
from weft.support.errors import IRTypeError

PRIM = from_source("""
@T.prim_func
def f(A: T.Buffer((8, 8), "float32"), n: T.int32):
    for i, j in T.grid(8, 8):
        with T.block("b"):
            vi, vj = T.axis.remap("SS", [i, j])
            A[vi, vj] = A[vi, vj] + T.float32(1)
""")
GRAPH = from_source(
    """
@I.ir_module
class Module:
    @T.prim_func(private=True)
    def f(x: T.Buffer((4,), "float32"), y: T.Buffer((4,), "float32")):
        T.evaluate(0)

    @R.function
    def main(x: R.Tensor((4,), "float32"), c: R.Tensor((), "bool")):
        cls = Module
        y = R.call_tir(cls.f, (x,), out_sinfo=R.Tensor((4,), "float32"))
        z = R.add(y, x)
        w = (z, y)
        return w
""",
    check_well_formed=False,
)


# ---- options


def test_prefixes_of_the_three_languages():
    text = GRAPH.script(ir_prefix="J", tir_prefix="TT", relax_prefix="RR")
    assert "# from tvm.script import ir as J" in text
    assert "# from tvm.script import tir as TT" in text
    assert "# from tvm.script import relax as RR" in text
    assert "@J.ir_module" in text
    assert "@TT.prim_func(private=True)" in text
    assert "RR.call_tir(" in text
    for old in ("I.", "T.", "R."):
        assert f" {old}" not in text
        assert f"({old}" not in text
    names = {"J": "ir", "TT": "tir", "RR": "relax"}
    head = "".join(f"from tvm.script import {module} as {name}\n" for name, module in names.items())
    assert_same(from_source(head + text), GRAPH)


def assert_same(given, wanted):
    assert given.script() == wanted.script()


def test_a_prefix_is_no_name_of_the_program():
    x = tir.Var("Q", "int32")
    func = tir.PrimFunc([x], tir.Evaluate(x))
    assert "def main(Q_1: Q.int32)" in func.script(tir_prefix="Q")
    assert "def main(Q: T.int32)" in func.script()


@pytest.mark.parametrize(("alias", "line", "use"), [
    ("cls", "cls = Module", "cls.f"), ("self", "self = Module", "self.f"), ("", None, "Module.f"),
])  # fmt: skip
def test_the_alias_of_the_module(alias, line, use):
    text = GRAPH.script(module_alias=alias)
    assert f"R.call_tir({use}, (x,)" in text
    if line is None:
        assert " = Module" not in text
    else:
        assert f"        {line}\n" in text


def test_the_alias_stands_once_and_only_where_it_is_used():
    text = from_source("""
@I.ir_module
class Module:
    @R.function
    def a(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        return x

    @R.function
    def b(x: R.Tensor((4,), "float32")):
        y = Module.a(x)
        z = Module.a(y)
        return z
""").script()
    assert text.count("cls = Module") == 1
    assert text.index("def b") < text.index("cls = Module")


def test_types_that_need_no_prefix():
    B = tir.decl_buffer((8,), "int8", "B")
    handle = tir.Var("b", "handle")
    store = tir.BufferStore(B, IntImm("int8", 1), [IntImm("int64", 2)])
    func = tir.PrimFunc([handle], store, None, {handle: B})
    assert 'T.Buffer((8,), "int8")' in func.script()
    assert "B[T.int64(2)] = T.int8(1)" in func.script()
    assert "B[2] = T.int8(1)" in func.script(int_dtype="int64")
    assert "B[T.int64(2)] = 1" in func.script(int_dtype="int8")


def test_the_default_type_of_buffers():
    B = tir.decl_buffer((8,), "int8", "B", scope="shared")
    assert B.script() == 'B = T.Buffer((8,), "int8", scope="shared")\nB'
    assert B.script(buffer_dtype="int8") == 'B = T.Buffer((8,), scope="shared")\nB'


def test_sugar_is_left_out():
    plain = PRIM.script(syntax_sugar=False)
    assert "T.grid" not in plain
    assert "T.axis.remap" not in plain
    assert 'with T.block("root"):' in plain
    assert '# with T.block("root"):' not in plain
    assert_same(from_source(plain), PRIM)


def test_addresses_tell_variables_apart():
    i, j = tir.Var("i", "int32"), tir.Var("i", "int32")
    func = tir.PrimFunc([i, j], tir.Evaluate(i + j))
    text = func.script(show_object_address=True)
    assert f"i_{id(i):#x}: T.int32, i_{id(j):#x}: T.int32" in text
    assert "i: T.int32, i_1: T.int32" in func.script()


def test_struct_infos_that_follow_are_left_out():
    full, short = GRAPH.script(), GRAPH.script(show_all_struct_info=False)
    assert 'z: R.Tensor((4,), dtype="float32") = R.add(y, x)' in full
    assert "        z = R.add(y, x)" in short
    assert "        w = z, y" in short
    assert_same(from_source(short, check_well_formed=False), GRAPH)


def test_a_struct_info_that_says_less_than_the_value_is_never_left_out():
    func = from_source("""
@R.function
def main(x: R.Tensor((4,), "float32")):
    y: R.Tensor(ndim=1) = R.exp(x)
    return y
""")
    assert "y: R.Tensor(ndim=1) = R.exp(x)" in func.script(show_all_struct_info=False)


def test_line_numbers_stand_in_a_column():
    lines = PRIM.script(print_line_numbers=True).split("\n")
    assert lines[0].startswith(" 1 # from")
    assert lines[9].startswith("10 ")
    assert [line[3:] for line in lines] == [line.rstrip() for line in PRIM.script().split("\n")]


def test_lines_far_from_what_is_underlined_are_skipped():
    path = ObjectPath.root().attr("body").attr("block").attr("body").attr("extent")
    text = PRIM.script(path_to_underline=path, num_context_lines=1)
    lines = text.split("\n")
    assert lines[0] == "(... 4 lines skipped ...)"
    assert [line for line in lines if "^" in line]
    assert lines[-1].startswith("(... ")
    assert PRIM.script(path_to_underline=path, num_context_lines=0).count("\n") == 3


def test_several_objects_are_underlined():
    size = PRIM.params[1]
    store = PRIM.body.block.body.body.body.block.body
    single = PRIM.script(obj_to_underline=size)
    several = PRIM.script(obj_to_underline=[size, store])
    assert single.count("^") == len("n")
    assert several.count("^") == len("n") + len("A[vi, vj] = A[vi, vj] + T.float32(1.0)")


def test_a_remark_on_a_path_that_leads_nowhere_is_left_out():
    path = ObjectPath.root().attr("nothing")
    assert PRIM.script(path_to_annotate={path: "here"}) == PRIM.script()


def test_an_unknown_option_names_all():
    with pytest.raises(IRTypeError, match="script.. has no option color, size; there are: buffer"):
        PRIM.script(size=3, color="red")


def test_every_option_has_the_default_of_the_text():
    config = PrinterConfig()
    options = {name: getattr(config, name) for name in config.__slots__}
    assert PRIM.script(**options) == PRIM.script()
    assert GRAPH.script(**options) == GRAPH.script()


# ---- short texts


SHORT = [
    (Op.get("tir.exp"), "Op(tir.exp)"), (GlobalVar("f"), 'I.GlobalVar("f")'),
    (Range(0, 8), "I.Range(0, 8)"), (PrimType("float32"), "T.float32"), (PrimType("void"), "None"),
    (TupleType([]), "None"), (PointerType(PrimType("int8"), "local"), 'T.handle("int8", "local")'),
    (PointerType(PrimType("int8"), ""), 'T.handle("int8")'),
    (TupleType([PrimType("int8"), PrimType("bool")]), "T.Tuple(T.int8, T.bool)"),
    (FuncType([PrimType("int8")], PrimType("int32")), "T.FuncType([T.int8], T.int32)"),
    (Array([1, 2]), "[1, 2]"), (IntImm("int32", 3), "3"), (IntImm("int64", 3), "T.int64(3)"),
    (StringImm("a"), '"a"'), (FloatImm("float32", 2), "T.float32(2.0)"),
    (tir.Var("n", "int32") + 1, "n + 1"), (relax.Var("x", relax.ObjectStructInfo()), "x"),
    (relax.ShapeExpr([2, 3]), "R.shape([2, 3])"),
    (tir.decl_buffer((4,), "float32", "A")[0], "A[0]"),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(SHORT)), ids=[text for _, text in SHORT])
def test_the_short_text_of_a_node(number):
    value, text = SHORT[number]
    assert repr(value).split("\n")[-1] == text
    assert str(value).split("\n")[-1] == text


def test_a_node_without_a_form_prints_its_fields():
    @node
    class Pair(Node):
        first: int
        second: str

    assert repr(Pair(1, "x")).endswith("Pair(first=1, second='x')")
    with pytest.raises(IRTypeError, match="Pair has no printed form"):
        Pair(1, "x").script()


def test_a_long_text_is_cut():
    body = tir.SeqStmt([tir.Evaluate(number) for number in range(30)])
    lines = repr(body).split("\n")
    assert lines[:2] == ["T.evaluate(0)", "T.evaluate(1)"]
    assert len(lines) == 11
    assert lines[-1] == "... (20 more lines; show() prints all)"
    assert body.script().count("\n") == 29


# ---- names


@settings(max_examples=50)
@given(st.text(max_size=12))
def test_any_hint_becomes_a_name(hint):
    name = clean_name(hint)
    assert name.isidentifier()
    assert name.isascii()
    assert not keyword.iskeyword(name)


@pytest.mark.parametrize(("hint", "name"), [
    ("x", "x"), ("", "v"), ("a.b", "a_b"), ("1x", "_1x"), ("for", "for_"), ("None", "None_"),
    ("ä", "_"), ("x y-z", "x_y_z"), ("_", "_"), ("match", "match"),
])  # fmt: skip
def test_a_name_of_a_hint(hint, name):
    assert clean_name(hint) == name


@settings(max_examples=60)
@given(st.lists(st.sampled_from(["i", "i_1", "i_2", "T", "range", "for", "", "tvm"]), max_size=12))
def test_names_in_one_scope_differ_and_are_free_after_it(hints):
    d = Docsifier(PrinterConfig())
    before = set(d.names)
    frame = d.push("tir")
    nodes = [tir.Var(hint, "int32") for hint in hints]
    names = [d.define(var, var.name, frame).name for var in nodes]
    assert len(set(names)) == len(names)
    assert before.isdisjoint(names)
    d.pop()
    assert d.names == before
    assert not any(d.defined(var) for var in nodes)


@settings(max_examples=40)
@given(st.lists(st.sampled_from(["i", "i_1", "j", "n", "A", "v", ""]), min_size=4, max_size=4),
       st.booleans())  # fmt: skip
def test_programs_with_equal_names_come_back(hints, nested):
    outer, inner, bound, size = (tir.Var(hint, "int32") for hint in hints)
    body = tir.LetStmt(bound, outer + inner, tir.Evaluate(bound + size))
    loop = tir.For(inner, 0, outer if nested else 4, tir.ForKind.SERIAL, body)
    assert_round_trip(tir.PrimFunc([size], tir.For(outer, 0, size, tir.ForKind.PARALLEL, loop)))


def test_a_module_takes_the_name_that_is_asked_for():
    assert "class Mine:" in GRAPH.script(name="Mine")
    assert "cls = Mine" in GRAPH.script(name="Mine")
    assert "def mine(" in PRIM.script(name="mine")


def test_a_function_named_as_the_module_is_told_apart():
    module = IRModule({"Module": PRIM.with_attr("global_symbol", "Module")})
    assert_round_trip(module)
    assert "Module" in [var.name_hint for var in from_source(module.script()).functions]
