"""``save_json`` and ``load_json``: everything comes back, nothing else is built or run."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

import weft
from tests.lib.generate import random_prim_func
from tests.lib.python_process import output_of
from weft import ir, nd, relax, te, tir, topi
from weft.ir import json_text
from weft.ir.field_types import checks_of, classes_named
from weft.ir.functor import collect
from weft.ir.json_text import FORMAT
from weft.ir.node import NODE_CLASSES
from weft.script import tir as tir_script
from weft.support.span import SourceName, Span


def again(value):
    return ir.load_json(ir.save_json(value))


def conv_graph():
    x = relax.Var("x", relax.TensorStructInfo((1, 3, tir.Var("n", "int64"), 8), "float32"))
    weight = relax.const(np.random.default_rng(0).standard_normal((4, 3, 3, 3)).astype("float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        with builder.dataflow():
            hidden = builder.emit(relax.op.nn.conv2d(x, weight, padding=1))
            out = builder.emit_output(relax.op.nn.relu(hidden))
        builder.emit_func_output(out)
    return builder.get()


def test_graphs_with_constants_come_back_equal_and_run_alike():
    module = conv_graph()
    back = again(module)
    ir.assert_structural_equal(back, module)
    assert back.script(show_meta=True) == module.script(show_meta=True)


@pytest.mark.parametrize("seed", range(8))
def test_random_functions_come_back_equal(seed):
    with np.errstate(over="ignore"):
        func = random_prim_func(seed).func
    ir.assert_structural_equal(again(func), func)


def test_module_attributes_targets_and_global_infos_come_back():
    func = tir.PrimFunc([], tir.Evaluate(0)).with_attr("target", weft.Target("llvm -num-cores=2"))
    module = ir.IRModule(
        {"f": func},
        attrs={"list": [1, 2.5, None, "t"], "map": {"k": True}},
        global_infos={"vdevice": [ir.VDevice(weft.Target("llvm"), 1, "global")]},
    )
    back = again(module)
    ir.assert_structural_equal(back, module)
    assert back["f"].attrs["target"] == weft.Target("llvm -num-cores=2")
    assert type(back.attrs["list"]) is ir.Array


@pytest.mark.parametrize(
    "value",
    [
        None, True, 3, -(2**70), "text", 1.5, float("inf"), -0.0, b"bytes", [1, [2]], (1,),
        {"a": 1},
        np.float32(1.5), np.arange(6, dtype="int16").reshape(2, 3), weft.DataType("float32x4"),
        tir.ForKind.PARALLEL,
    ],
    ids=repr,
)  # fmt: skip
def test_values_come_back_with_their_type(value):
    back = again(value)
    assert type(back) is type(value)
    assert repr(back) == repr(value)


def test_nan_comes_back():
    assert np.isnan(again(float("nan")))
    assert np.isnan(again(ir.FloatImm("float32", float("nan"))).value)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "bool", "uint8", "int64"])
def test_arrays_come_back_bit_for_bit(dtype):
    value = nd.array(np.array([[0, 1, 2]]).astype(weft.DataType(dtype).numpy))
    assert again(value).structural_bytes() == value.structural_bytes()


def test_variables_that_are_shared_stay_shared():
    x, y = tir.Var("x", "int32"), tir.Var("x", "int32")
    back = again([x, y, x + y])
    assert back[2].a is back[0]
    assert back[2].b is back[1]
    assert back[0] is not back[1]


def test_operators_are_found_not_copied_and_spans_are_left_out():
    span = Span(SourceName("f.py"), 1, 1, 2, 3)
    back = again(tir.Call("float32", "tir.exp", [tir.FloatImm("float32", 1.0, span)], span))
    assert back.op is ir.Op.get("tir.exp")
    assert back.span is None


def test_depth_is_no_limit():
    x = expr = tir.Var("x", "int32")
    for _ in range(20_000):
        expr = tir.Add(expr, x)
    assert again(expr).a.b.name == "x"


def test_tensor_expressions_are_kept_as_long_as_they_are_functions():
    x = te.placeholder((4,), name="x")
    ir.assert_structural_equal(
        again(te.create_prim_func([x, topi.exp(x)])), te.create_prim_func([x, topi.exp(x)])
    )


def test_what_cannot_be_written_is_named():
    with pytest.raises(TypeError, match=r"builtins\.object cannot be written as JSON; expected"):
        ir.save_json({"a": object()})
    loop = []
    loop.append(loop)
    with pytest.raises(TypeError, match="a list that contains itself"):
        ir.save_json(loop)


def text(*entries, root=(0,)):
    return json.dumps({"format": FORMAT, "root": list(root), "entries": list(entries)})


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("{", "expected the JSON of save_json"),
        ("[]", "expected format 'weft-ir-1', got 'list'"),
        ('{"format": "other"}', "got 'other'"),
        ('{"format": "weft-ir-1"}', "the text is damaged"),
        (text(["node", "os:system", {}]), "'os:system' is no class of weft"),
        (text(["node", "weft.nowhere:For", {}]), "no module weft.nowhere"),
        (text(["node", "weft.ir.json_text:load_json", {}]), "is no Node of this weft"),
        (text(["node", "weft.tir.stmt:Evaluate", {"__class__": 1}]), "has no field '__class__'"),
        (text(["value", "weft.ir.node:Array", []]), "nothing reads values of kind"),
        (text(["nothing", 1]), "unknown kind of entry 'nothing'"),
        (text(["Array", [[7]]]), "the text is damaged"),
        (text(["Op", "tir.nothing"]), "tir.nothing"),
    ],
)
def test_other_texts_are_refused(given, message):
    with pytest.raises(ValueError, match=message):
        ir.load_json(given)


def test_values_that_are_kept_elsewhere():
    const, save_json, load_json = relax.const, json_text.save_json, json_text.load_json
    kept = const(np.arange(3, dtype="float32"))
    arrays = [kept.data]

    def aside(value):
        return 0 if value is arrays[0] else None

    text = save_json([kept, kept, const(1.0)], aside=aside)
    assert "aside" in text
    first, second, other = load_json(text, aside=arrays.__getitem__)
    assert first.data is arrays[0]
    assert second is first
    assert isinstance(other.data, nd.NDArray)
    with pytest.raises(ValueError, match="the text leaves out values that stand elsewhere"):
        load_json(text)


def changed(program, kind, fields):
    """The JSON of a program with fields of its first node of a class changed."""
    content = json.loads(ir.save_json(program))
    entry = next(e for e in content["entries"] if e[0] == "node" and e[1].endswith(f":{kind}"))
    for name, value in fields.items():
        if value is None:
            del entry[2][name]
        else:
            entry[2][name] = value
    return json.dumps(content)


@tir_script.prim_func
def doubled(a: tir_script.Buffer((4,), "float32"), b: tir_script.Buffer((4,), "float32")):
    for i in range(4):
        b[i] = a[i] + a[i]


@pytest.mark.parametrize(
    ("kind", "fields", "message"),
    [
        ("Buffer", {"strides": 2**70}, r"Buffer: expected Array\[PrimExpr\] in its field strides"),
        ("Buffer", {"elem_offset": "x"}, "PrimExpr in its field elem_offset, got str 'x'"),
        ("Buffer", {"data": [0]}, "Buffer: expected Var in its field data, got"),
        ("Buffer", {"name": 5}, "Buffer: expected str in its field name, got int 5"),
        ("Buffer", {"shape": None}, "Buffer: its field shape is missing"),
        ("PrimFunc", {"buffer_map": [[]]}, "the text is damaged"),
        ("PrimFunc", {"params": 7}, r"PrimFunc: expected Array\[Var\] in its field params"),
        ("For", {"kind": 1}, "For: expected ForKind in its field kind, got int 1"),
        ("IntImm", {"value": 2**40}, "does not fit int32"),
        ("IntImm", {"value": "1"}, "IntImm: expected int in its field value, got str '1'"),
        ("Var", {"dtype": "int32"}, "Var: expected DataType in its field dtype, got str 'int32'"),
    ],
)
def test_fields_are_checked_by_their_annotations(kind, fields, message):
    text = changed(doubled, kind, fields)
    with pytest.raises(ValueError, match=f"load_json: .*{message}"):
        ir.load_json(text)


def test_a_derived_field_follows_from_the_others():
    other = json.loads(ir.save_json(doubled))
    place = next(n for n, e in enumerate(other["entries"]) if e == ["DataType", "int32"])
    with pytest.raises(ValueError, match="Add: expected float32 in its field dtype, which follows"):
        ir.load_json(changed(doubled, "Add", {"dtype": [place]}))


def every_class():
    for kind in NODE_CLASSES[1:]:
        if kind.__module__.startswith("weft.") and "testing" not in kind.__module__:
            yield kind


def test_every_class_that_an_annotation_names_is_there():
    """A name that nothing has would hold for no value, as one of a level that is not loaded."""
    unknown = []
    for kind in every_class():
        modules = {base.__module__ for base in kind.__mro__ if base is not object}
        for field, (text, _) in checks_of(kind).items():
            for name in set(re.findall(r"\w+", text)) - {"Any", "Callable", "Array", "Map"}:
                if not any(classes_named(name, module) for module in modules):
                    unknown.append(f"{kind.__name__}.{field}: {name}")
    assert not unknown


def test_a_function_is_read_where_graphs_are_not_loaded(tmp_path):
    """``struct_info: StructInfo | None`` of an expression names a class of a higher level."""
    x = te.placeholder((4,), "float32", "x")
    func = te.create_prim_func([x, topi.nn.relu(x)])
    (tmp_path / "func.json").write_text(ir.save_json(func), encoding="utf-8")
    program = (
        "import sys, weft.ir; func = weft.ir.load_json(open('func.json').read());"
        "assert 'weft.relax.struct_info' not in sys.modules;"
        "import weft.relax; print(weft.ir.structural_equal(func, func), func.script())"
    )
    printed = output_of(program, cwd=tmp_path)
    assert printed == f"True {func.script()}\n"


def test_a_graph_is_read_where_nothing_else_was_imported(tmp_path):
    """Its first entries may be operators, before any class of a graph."""
    builder, x = relax.BlockBuilder(), relax.Var("x", relax.TensorStructInfo((2, 3), "float32"))
    with builder.function("main", [x]):
        builder.emit_func_output(builder.emit(relax.op.nn.relu(x)))
    calls = list(collect(builder.get()["main"], relax.Call))
    (tmp_path / "graph.json").write_text(ir.save_json([calls[0].op, builder.get()]), "utf-8")
    program = (
        "import weft.ir; operator, mod = weft.ir.load_json(open('graph.json').read());"
        "print(operator.name, mod.script())"
    )
    printed = output_of(program, cwd=tmp_path)
    assert printed == f"relax.nn.relu {builder.get().script()}\n"


def test_every_annotation_is_understood_and_says_something():
    """What says nothing is te's graph, which no program has once it is lowered."""
    silent = set()
    for kind in every_class():
        for name, (text, _) in checks_of(kind).items():
            shown = text.replace("dict[str, Any]", "").replace("Map[str, Array[Any]]", "")
            if name not in json_text.HIDDEN and "Any" in shown:
                silent.add(f"{kind.__module__.removeprefix('weft.')}.{kind.__name__}.{name}")
    assert not [name for name in silent if not name.startswith("te.")]


def test_a_field_that_is_missing_is_an_error_or_not_needed():
    """Each field of each node of a graph and a PrimFunc in turn: also those that no one gives."""
    builder, x = relax.BlockBuilder(), relax.Var("x", relax.TensorStructInfo((2, 3), "float32"))
    with builder.function("main", [x]):
        y = builder.emit_te(topi.add, x, x)
        builder.emit_func_output(builder.emit(relax.op.nn.relu(y)))
    text = weft.ir.save_json(builder.get())
    entries = json.loads(text)["entries"]
    left_out = [
        (place, name)
        for place, entry in enumerate(entries)
        if isinstance(entry[-1], dict)
        for name in entry[-1]
    ]
    assert {"struct_info", "provenance", "dtype"} <= {name for _, name in left_out}
    for place, name in left_out:
        damaged = json.loads(text)
        del damaged["entries"][place][-1][name]
        try:
            relax.build(weft.ir.load_json(json.dumps(damaged)))
        except weft.TVMError as error:
            refusal = error
        else:
            continue
        assert not isinstance(refusal, weft.InternalError), f"{entries[place][1]}.{name}: {refusal}"
