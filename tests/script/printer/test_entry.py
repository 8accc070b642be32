"""script(), repr(), show(), HTML, underlining and metadata: what users see."""

import numpy as np
import pytest

from weft.ir.expr import FloatImm, IntImm
from weft.ir.global_info import DummyGlobalInfo, VDevice
from weft.ir.module import IRModule
from weft.ir.structural import assert_structural_equal
from weft.relax import expr as rx
from weft.relax.struct_info import TensorStructInfo
from weft.runtime.ndarray import array
from weft.script import metadata
from weft.script.parser.entry import from_source
from weft.script.printer import underlined
from weft.support.errors import TVMError
from weft.target.target import Target
from weft.tir.expr import Add, Var
from weft.tir.function import PrimFunc
from weft.tir.stmt import Evaluate, For, ForKind, SeqStmt

SOURCE = """\
# from tvm.script import tir as T

@T.prim_func
def mm(A: T.Buffer((8, 8), "float32"), C: T.Buffer((8, 8), "float32")):
    T.func_attr({"tir.noalias": T.bool(True)})
    # with T.block("root"):
    for i, j, k in T.grid(8, 8, 8):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            T.reads(A[vi, vk])
            T.writes(C[vi, vj])
            with T.init():
                C[vi, vj] = T.float32(0.0)
            C[vi, vj] = C[vi, vj] + A[vi, vk]"""


def test_golden_prim_func():
    func = from_source(SOURCE)
    assert func.script() == SOURCE


def test_repr_is_cut_at_ten_lines():
    text = repr(from_source(SOURCE))
    assert text.splitlines()[-1] == "... (4 more lines; show() prints all)"
    assert len(text.splitlines()) == 11


def test_options():
    func = from_source(SOURCE)
    assert "@Q.prim_func" in func.script(tir_prefix="Q")
    assert "def other(" in func.script(name="other")
    assert "  A = T" not in func.script(indent_spaces=2)
    assert 'with T.block("root"):' in func.script(syntax_sugar=False).replace("# with", "#")
    assert "    return" not in func.script()
    with pytest.raises(TypeError, match="no option colour; there are: "):
        func.script(colour=True)


def test_int_dtype_and_float_dtype_print_bare():
    node = Add(IntImm("int64", 1), IntImm("int64", 2))
    assert node.script(int_dtype="int64") == "T.Add(1, 2)"
    assert FloatImm("float32", 0.5).script(float_dtype="float32") == "0.5"


def test_show_is_plain_where_stdout_is_no_terminal(capsys):
    from_source(SOURCE).show()
    assert capsys.readouterr().out == SOURCE + "\n"


def test_html_is_highlighted_and_escaped():
    text = from_source(SOURCE)._repr_html_()
    assert "prim_func" in text
    assert "<span" in text
    assert 'class="highlight"' in text


def test_underlined_shows_the_node_and_its_surroundings():
    func = from_source(SOURCE)
    block = func.body.block.body.body.body.body.block
    text = underlined(func, [block.init], context_lines=1)
    assert text.splitlines()[-4:] == [
        "            with T.init():",
        "                C[vi, vj] = T.float32(0.0)",
        "                ^^^^^^^^^^^^^^^^^^^^^^^^^^",
        "            C[vi, vj] = C[vi, vj] + A[vi, vk]",
    ]


def test_remarks_stand_at_their_statements():
    func = from_source(SOURCE)
    loop = func.body.block.body
    text = func.script(obj_to_annotate={loop: "the loops"})
    assert "    # the loops\n    for i, j, k in T.grid(8, 8, 8):" in text


def test_a_symbol_that_is_no_python_name_stays_an_attribute():
    func = PrimFunc([], Evaluate(0), attrs={"global_symbol": "fused/add.1"})
    assert "def fused_add_1():" in func.script()
    assert_structural_equal(from_source(func.script()), func)


def test_external_functions_of_a_module():
    module = IRModule({"ext": rx.ExternFunc("env.f"), "g": from_source(SOURCE)})
    assert 'ext = R.ExternFunc("env.f")' in module.script()
    assert_structural_equal(from_source(module.script()), module)


def test_module_attributes_and_virtual_devices():
    device = VDevice(Target("llvm"), 0, "global")
    info = TensorStructInfo((2,), "float32", device)
    x = rx.Var("x", info)
    func = rx.Function([x], x, attrs={"global_symbol": "main"})
    module = IRModule(
        {"main": func},
        attrs={"system_lib_prefix": "a_", "flag": True, "n": 3},
        global_infos={"vdevice": [device], "mine": [DummyGlobalInfo()]},
    )
    text = module.script()
    assert 'I.module_attrs({"flag": T.bool(True), "n": 3, "system_lib_prefix": "a_"})' in text
    assert '"mine": [I.dummy_global_info()]' in text
    assert 'dtype="float32", vdevice="llvm:0:global")' in text
    assert_structural_equal(from_source(text), module)


def test_a_target_attribute():
    func = PrimFunc([], Evaluate(0), attrs={"global_symbol": "main", "target": Target("llvm")})
    assert "T.target({" in func.script()
    assert_structural_equal(from_source(func.script()), func)


def test_a_very_deep_program_prints():
    body = Evaluate(0)
    expr = Var("x", "int32")
    for _ in range(5000):
        expr = expr + 1
    for _ in range(500):
        body = For(Var("i", "int32"), 0, 2, ForKind.PARALLEL, body)
    text = SeqStmt([body, Evaluate(expr)]).script()
    assert text.count("T.parallel") == 500
    assert text.count("+ 1") == 5000


ARRAYS = [
    np.array([[1.5, -0.0], [np.inf, np.nan]], "float32"),
    np.array([], "int64"),
    np.array(7, "uint8"),
    np.array([True, False]),
    np.arange(24, dtype="float16").reshape(2, 3, 4),
]


@pytest.mark.parametrize("value", ARRAYS, ids=[str(item.dtype) for item in ARRAYS])
def test_metadata_is_exact(value):
    back = metadata.from_json(metadata.to_json({"a": [array(value)]}))["a"][0]
    assert back.structural_bytes() == array(value).structural_bytes()


def test_metadata_keeps_bfloat16_and_nested_values():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    value = array(np.array([1.5, -2], ml_dtypes.bfloat16))
    content = {"k": [value, float("nan"), {"x": [1, None, "s"]}]}
    back = metadata.from_json(metadata.to_json(content))["k"]
    assert back[0].dtype == "bfloat16"
    assert back[0].structural_bytes() == value.structural_bytes()
    assert np.isnan(back[1])
    assert back[2] == {"x": [1, None, "s"]}


def test_metadata_of_another_kind_is_refused():
    with pytest.raises(ValueError, match="expected the JSON of save_json"):
        metadata.from_json("{")
    with pytest.raises(ValueError, match="expected format 'weft-ir-1', got None"):
        metadata.from_json("{}")
    with pytest.raises(TVMError, match=r"builtins\.object cannot be written as JSON"):
        metadata.to_json({"a": [object()]})


def test_constants_come_back_with_metadata_only():
    info = TensorStructInfo((2,), "float32")
    x = rx.Var("x", info)
    shared = rx.const(np.array([1, 2], "float32"))
    func = rx.Function([x], rx.Tuple([shared, shared, rx.const([3.0], "float32")]),
                       attrs={"global_symbol": "main"})  # fmt: skip
    module = IRModule({"main": func})
    text = module.script(show_meta=True)
    assert text.startswith('metadata = tvm.ir.load_json("""')
    assert 'metadata["relax.expr.Constant"][1]' in text
    assert 'metadata["relax.expr.Constant"][2]' not in text
    assert_structural_equal(from_source(text), module)
    with pytest.raises(TVMError, match="metadata"):
        from_source(module.script())


def test_attributes_without_literal_come_back():
    attrs = {"global_symbol": "main", "inf": float("inf"), "array": array(np.array([1, 2])),
             "typed": IntImm("int64", 3), "nested": {"k": [1, None, "s", True, 0.5]}}  # fmt: skip
    func = PrimFunc([], Evaluate(0), attrs=attrs)
    assert_structural_equal(from_source(func.script(show_meta=True)), func)
