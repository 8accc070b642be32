"""Underlining and remarks, by object and by path."""

import weft
from tests.lib.programs import matmul
from weft.ir.functor import collect
from weft.runtime import ObjectPath
from weft.script import ir as I  # noqa: N812 - the script's prefix
from weft.script import tir as T  # noqa: N812 - the script's prefix
from weft.script.printer.doc import ExprStmtDoc, IdDoc, StmtBlockDoc
from weft.script.printer.doc_printer import to_python_script
from weft.script.printer.entry import underlined_heads
from weft.tir.stmt import Block, For

ROOT = ObjectPath.root()


@T.prim_func
def scale(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i in range(8):
        B[i] = A[i] * T.float32(2.0)
    T.evaluate(7)


def test_a_path_underlines_what_it_leads_to():
    path = ROOT.attr("body").attr("seq").array_index(0).attr("body").attr("value").attr("b")
    text = scale.script(path_to_underline=[path])
    line = text.split("\n").index("        B[i] = A[i] * T.float32(2.0)")
    assert text.split("\n")[line + 1] == " " * 22 + "^" * 14
    assert text.count("^") == 14


def test_a_path_to_a_field_underlines_the_node_around():
    path = ROOT.attr("body").attr("seq").array_index(1).attr("value").attr("value")
    assert scale.script(path_to_underline=[path]).endswith("    T.evaluate(7)\n               ^")


def test_a_path_into_a_module():
    @I.ir_module
    class Module:
        @T.prim_func
        def f():
            T.evaluate(1)

        @T.prim_func
        def g():
            T.evaluate(2)

    path = ROOT.attr("functions").map_value(Module.get_global_var("g")).attr("body")
    assert Module.script(path_to_underline=[path]).endswith(
        "        T.evaluate(2)\n        ^^^^^^^^^^^^^"
    )


def test_the_longest_prefix_among_docs_wins():
    outer, inner = IdDoc("outer"), IdDoc("inner")
    outer.source_paths, inner.source_paths = [ROOT.attr("a")], [ROOT.attr("a").attr("b")]
    doc = StmtBlockDoc([ExprStmtDoc(outer), ExprStmtDoc(inner)])
    asked = [ROOT.attr("a").attr("b").attr("c")]
    assert to_python_script(doc, path_to_underline=asked) == "outer\ninner\n^^^^^"
    assert to_python_script(doc, path_to_underline=[ROOT.attr("a")]) == "outer\n^^^^^\ninner"


def test_remarks_by_object_and_by_path():
    by_path = scale.script(path_to_annotate={ROOT.attr("body").attr("seq").array_index(1): "end"})
    assert by_path.endswith("    T.evaluate(7)  # end")
    assert scale.script(obj_to_annotate={scale.body.seq[1]: "end"}) == by_path


def test_a_remark_gives_a_scope_its_own_with():
    @T.prim_func
    def f():
        x = 1
        y = x + 1
        T.evaluate(y)

    lines = f.script(obj_to_annotate={f.body.body: "two"}).split("\n")
    assert lines[-3:] == ["    # two", "    with T.LetStmt(x + 1) as y:", "        T.evaluate(y)"]


def test_first_structural_mismatch_is_a_pair_of_paths():
    x, y = weft.tir.Var("x", "int32"), weft.tir.Var("y", "int32")
    shorter = weft.tir.PrimFunc([x], weft.tir.Evaluate(x))
    longer = weft.tir.PrimFunc([x, y], weft.tir.Evaluate(x))
    left, right = weft.ir.get_first_structural_mismatch(shorter, longer)
    assert left == ROOT.attr("params").missing_array_element(1)
    assert right == ROOT.attr("params").array_index(1)
    assert weft.ir.get_first_structural_mismatch(shorter, shorter) is None


def test_the_head_of_a_loop_inside_a_grid_and_of_a_block():
    loops = collect(matmul.body, For)
    blocks = [block for block in collect(matmul.body, Block) if block.name_hint == "C"]
    middle = next(loop for loop in loops if loop.loop_var.name == "j")
    assert underlined_heads(matmul, [middle, *blocks]).split("\n") == [
        "    for i, j, k in T.grid(32, 24, 20):",
        "           ^                  ^^",
        '        with T.block("C"):',
        "             ^^^^^^^^^^^^",
    ]
    assert underlined_heads(matmul, []) == ""
