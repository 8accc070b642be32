"""Frames of graph functions and modules, built by hand: equal to their scripts, or refused."""

from __future__ import annotations

import pytest

from weft.ir.structural import assert_structural_equal
from weft.relax.expr import DataflowVar, Var, VarBinding
from weft.relax.struct_info import FuncStructInfo, ObjectStructInfo, TensorStructInfo
from weft.script import from_source
from weft.script.ir_builder import IRBuilder
from weft.script.ir_builder import ir as I
from weft.script.ir_builder import relax as R
from weft.script.ir_builder import tir as T
from weft.script.ir_builder.base import IRBuilderFrame, as_attributes
from weft.support.errors import IRTypeError, IRValueError

INFO = TensorStructInfo((4,), "float32")
BOOL = TensorStructInfo((), "bool")


def graph(body, **options):
    """The function of frames that ``body`` opens; it takes the builder, and returns the result."""
    with IRBuilder() as builder:
        with R.function(**options):
            R.func_name("main")
            R.func_ret_value(body(builder))
    return builder.get()


def same(func, text):
    assert_structural_equal(func, from_source(text))


def test_a_choice_by_hand_equals_its_script():
    def body(builder):
        c, x = R.arg("c", BOOL), R.arg("x", INFO)
        with R.If(c) as choice:
            with R.Then():
                y = builder.name("y", R.emit(R.exp(x)))
                builder.name("z", R.emit(R.add(y, y)))
            with R.Else():
                builder.name("z", R.emit(R.negative(x)))
        return choice.var

    same(graph(body), """
@R.function
def main(c: R.Tensor((), "bool"), x: R.Tensor((4,), "float32")):
    if c:
        y = R.exp(x)
        z = R.add(y, y)
    else:
        z = R.negative(x)
    return z
""")  # fmt: skip


def test_a_cast_by_hand_equals_its_script():
    def body(builder):
        x = R.arg("x", R.Tensor(dtype="float32", ndim=1))
        return builder.name("y", R.emit_match_cast(x, R.Tensor(("n",), "float32")))

    with IRBuilder() as builder:
        with R.function():
            R.func_name("main")
            x = R.arg("x", R.Tensor(dtype="float32", ndim=1))
            info = R.Tensor(("n",), "float32")
            R.func_ret_value(builder.name("y", R.emit_match_cast(x, info)))
    assert builder.get().body.blocks[0].bindings[0].struct_info.shape.values[0].name == "n"
    assert_structural_equal(graph(body), builder.get(), map_free_vars=True)


def test_a_value_that_is_no_leaf_is_bound_before_a_cast():
    func = graph(lambda builder: R.emit_match_cast(R.exp(R.arg("x", INFO)), INFO))
    kinds = [type(binding).__name__ for binding in func.body.blocks[0].bindings]
    assert kinds == ["VarBinding", "MatchCast"]


def test_a_binding_is_added_as_it_is():
    def body(builder):
        x = R.arg("x", INFO)
        mine = Var("mine", INFO)
        assert R.emit_var_binding(VarBinding(mine, R.exp(x))) is mine
        return mine

    same(graph(body), """
@R.function
def main(x: R.Tensor((4,), "float32")):
    mine = R.exp(x)
    return mine
""")  # fmt: skip


def test_a_result_that_is_no_variable_is_bound():
    func = graph(lambda builder: R.exp(R.arg("x", INFO)))
    assert func.body.body is func.body.blocks[0].bindings[0].var
    assert func.body.body.name_hint == "gv"


def test_what_a_function_says_about_itself():
    def body(builder):
        R.func_attr({"a": 1})
        R.func_attr({"b": 2})
        R.func_ret_struct_info(R.Tensor(ndim=1))
        R.is_impure()
        return R.arg("x", R.Tensor("float32", ndim=1))

    func = graph(body, is_private=True)
    assert dict(func.attrs) == {"a": 1, "b": 2}
    assert not func.is_pure
    assert not graph(lambda b: R.arg("x", INFO), is_pure=False).is_pure

    def pure(builder):
        R.is_pure()
        return R.arg("x", INFO)

    assert graph(pure, is_pure=False).is_pure


def test_variables_of_a_dataflow_block_are_replaced_by_its_outputs():
    kinds = []

    def body(builder):
        x = R.arg("x", INFO)
        with R.dataflow() as block:
            y = builder.name("y", R.emit(R.exp(x)))
            kinds.append(type(y))
            R.output(y)
        (shown,) = block.output_vars
        kinds.append(type(shown))
        return shown

    func = graph(body)
    assert kinds == [DataflowVar, Var]
    assert func.body.blocks[0].bindings[0].var.name_hint == "y"


def test_an_annotation_must_fit_the_value():
    def body(builder):
        return R.emit(R.exp(R.arg("x", INFO)), TensorStructInfo((5,), "float32"))

    with pytest.raises(IRTypeError, match="does not fit the value's R.Tensor"):
        graph(body)


def branch(*kinds, name="z", value=True):
    def body(builder):
        c, x = R.arg("c", BOOL), R.arg("x", INFO)
        with R.If(c) as choice:
            for number, kind in enumerate(kinds):
                with kind():
                    if value:
                        builder.name(name if isinstance(name, str) else name[number],
                                     R.emit(R.exp(x)))  # fmt: skip
        return choice.var

    return body


WRONG = [
    (branch(R.Then), "a choice in a graph function needs both branches"),
    (branch(), "a choice in a graph function needs both branches"),
    (branch(R.Then, R.Then), "R.If has two R.Then"),
    (branch(R.Then, R.Else, R.Else), "R.If has two R.Else"),
    (branch(R.Then, R.Else, name=("a", "b")), "the same variable, got 'a' and 'b'"),
    (branch(R.Then, R.Else, value=False), "a branch must end with a binding"),
]


@pytest.mark.parametrize(("body", "message"), WRONG, ids=[message for _, message in WRONG])
def test_a_wrong_choice(body, message):
    with pytest.raises(IRValueError, match=message):
        graph(body)


def opened(make):
    def body(builder):
        with make():
            pass
        return R.arg("x", INFO)

    return body


OUTSIDE = [
    (opened(R.Then), "R.Then belongs inside R.If"),
    (opened(R.Else), "R.Else belongs inside R.If"),
]


@pytest.mark.parametrize(("body", "message"), OUTSIDE, ids=[message for _, message in OUTSIDE])
def test_a_branch_outside_of_a_choice(body, message):
    with pytest.raises(IRValueError, match=message):
        graph(body)


NEEDS = [
    (lambda: R.arg("x", INFO), "R.arg"), (lambda: R.func_name("f"), "R.func_name"),
    (lambda: R.func_attr({}), "R.func_attr"), (lambda: R.is_pure(), "R.is_pure"),
    (lambda: R.is_impure(), "R.is_impure"), (lambda: R.func_ret_value(1), "R.func_ret_value"),
    (lambda: R.func_ret_struct_info(INFO), "R.func_ret_struct_info"),
    (lambda: R.emit(R.const(1)), "R.emit"), (lambda: R.emit_te(None), "R.emit_te"),
    (lambda: R.emit_match_cast(R.const(1), BOOL), "R.emit_match_cast"),
    (lambda: R.emit_var_binding(None), "R.emit_var_binding"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "name"), NEEDS, ids=[name for _, name in NEEDS])
def test_what_belongs_inside_of_a_function(call, name):
    with IRBuilder(), pytest.raises(IRValueError, match=f"{name} belongs inside an R.function"):
        call()
    with pytest.raises(IRValueError, match="no IRBuilder is active"):
        call()


MODULE = [
    (lambda: I.module_attrs({}), "I.module_attrs"), (lambda: I.module_get_attrs(), ""),
    (lambda: I.module_get_attr("a"), "I.module_get_attr"),
    (lambda: I.module_set_attr("a", 1), "I.module_set_attr"),
    (lambda: I.module_global_infos({}), "I.module_global_infos"),
    (lambda: I.lookup_vdevice(), "I.lookup_vdevice"),
    (lambda: I.current_ir_module(), "I.current_ir_module"),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(MODULE)))
def test_what_belongs_inside_of_a_module(number):
    call, name = MODULE[number]
    with IRBuilder(), pytest.raises(IRValueError, match=f"{name}.* belongs inside an I.ir_module"):
        call()


def test_module_statements_of_python_outside_of_a_builder_do_nothing():
    assert I.module_attrs({"a": 1}) is None
    assert I.module_global_infos({"vdevice": []}) is None


def test_wrong_functions_of_a_module():
    with IRBuilder(), I.ir_module():
        with pytest.raises(IRTypeError, match="I.decl_function: expected a function, got int"):
            I.decl_function("f", 3)
        I.module_attrs({"a": 1})
        with pytest.raises(IRValueError, match="I.module_attrs: 'a' is already set"):
            I.module_attrs({"a": 2})


def test_a_function_of_a_module_has_its_signature():
    with IRBuilder() as builder:
        with I.ir_module():
            with R.function():
                R.func_name("main")
                R.func_ret_value(R.arg("x", INFO))
    (var,) = builder.get().functions
    assert isinstance(var.struct_info, FuncStructInfo)


@pytest.mark.parametrize("names", [{"a b": "c"}, {"a": ""}, {"a": 3}, {3: "c"}])
def test_names_of_functions_are_identifiers_and_texts(names):
    with pytest.raises(IRValueError, match="I.function_names: expected identifiers of functions"):
        I.function_names(names)
    assert I.function_names({"a_b": "a.b"}) == {"a_b": "a.b"}


def test_devices_are_described_by_text_dict_or_target():
    assert I.vdevice("llvm").target.kind.name == "llvm"
    assert I.vdevice({"kind": "cuda"}, 1, "shared").memory_scope == "shared"
    assert I.vdevice().target is None
    assert int(I.vdevice("llvm", 3).vdevice_id) == 3


# ---- the base of frames


def test_a_callback_runs_when_its_frame_ends_last_first():
    order = []
    with IRBuilder():
        with T.prim_func() as frame:
            frame.add_callback(lambda: order.append("first"))
            frame.add_callback(lambda: order.append("second"))
            T.evaluate(0)
            assert order == []
    assert order == ["second", "first"]


def test_a_frame_that_lasts_needs_one_around_it():
    with IRBuilder(), pytest.raises(IRValueError, match="this statement belongs inside a function"):
        T.allocate([4], "float32").enter_rest()


def test_frames_that_last_end_in_the_order_that_closes_them():
    with IRBuilder() as builder:
        with T.prim_func():
            first = builder.name("first", T.allocate([4], "int8").enter_rest())
            second = builder.name("second", T.allocate([4], "int16").enter_rest())
            T.evaluate(first)
            T.evaluate(second)
    body = builder.get().body
    assert (body.buffer_var.name, body.body.buffer_var.name) == ("first", "second")
    assert len(body.body.body.seq) == 2


def test_a_frame_without_a_meaning_has_none():
    with IRBuilder(), pytest.raises(NotImplementedError), IRBuilderFrame():
        pass


def test_names_are_given_once():
    var = T.int32()
    assert IRBuilder.name("first", var) is var
    IRBuilder.name("second", var)
    assert var.name == "first"
    assert IRBuilder.name("x", 3) == 3
    buffer = T.Buffer((T.int32(), 4), "float32", strides=[T.int32(), 1], offset_factor=2)
    IRBuilder.name("A", buffer)
    assert (buffer.data.name, buffer.strides[0].name) == ("A", "A_s0")
    assert buffer.elem_offset.name == "A_elem_offset"


@pytest.mark.parametrize("attrs", [3, None, [1], {1: 2}, "a"])
def test_attributes_are_a_mapping_by_name(attrs):
    with pytest.raises(IRTypeError, match="here: expected a dict of values by name, got"):
        as_attributes("here", attrs)


@pytest.mark.parametrize(("form", "part"), [
    (lambda: R.nn, "R.nn"), (lambda: R.image, "R.image"), (lambda: R.nn.attention, "attention"),
])  # fmt: skip
def test_operators_below_a_prefix(form, part):
    value = form()
    assert part in (repr(value), getattr(value, "__name__", ""))
    assert R.nn.relu(Var("x", INFO)).op.name == "relax.nn.relu"


def test_a_registered_operator_without_a_function_is_a_plain_call():
    from weft.ir.op import Op

    op = Op.register("relax.acme_plain")
    call = R.acme_plain(Var("x", INFO), sinfo_args=INFO, axis=1)
    assert call.op is op
    assert dict(call.attrs) == {"axis": 1}
    assert list(call.sinfo_args) == [INFO]
    assert list(R.acme_plain(Var("x", ObjectStructInfo())).sinfo_args) == []


def test_an_unknown_operator_suggests_one():
    with pytest.raises(AttributeError, match="R.addd is neither an operator nor.*R.add"):
        R.addd
    with pytest.raises(AttributeError, match="R.nn.reluu is neither"):
        R.nn.reluu
