"""Every registry: a second entry under a name is an error that says how to replace the first."""

import ctypes
import importlib

import pytest

import weft
from weft import relax, tir
from weft.driver import pipeline
from weft.ir.op import Op
from weft.ir.transform import PassContext
from weft.relax.backend import pattern_registry
from weft.relax.dpl import is_op, wildcard
from weft.relax.frontend.onnx import registry as onnx_registry
from weft.relax.op.definition import FUNCTIONS, operator
from weft.relax.transform.legalize import register_legalize
from weft.runtime.native.externals import BOUND
from weft.runtime.native.native_library import register_extern
from weft.runtime.registry import get_global_func

NAME = "tests.twice"
TWICE = ("tests", "Twice")
"""The key of the converter of ONNX."""


PATTERNS = [is_op("relax.add")(wildcard(), wildcard()), is_op("relax.exp")(wildcard())]
CALLBACKS = [ctypes.CFUNCTYPE(None)(lambda: None) for _ in range(2)]


def first(*args):
    return args


def second(*args):
    return args[::-1]


def torch_registry(name):
    pytest.importorskip("torch")
    return importlib.import_module(f"weft.relax.frontend.torch.{name}")


def onnx_converter(function, **options):
    onnx_registry.converter("Twice", domain="tests", since=3, **options)(function)


REGISTRIES = {
    "global functions": (
        lambda f, **options: weft.register_func(NAME, f, **options),
        lambda: get_global_func(NAME)._call,
    ),
    "attributes of operators": (
        lambda f, **options: Op.register(NAME, rule=f, **options),
        lambda: Op.get(NAME).get_attr("rule"),
    ),
    "one attribute of an operator": (
        lambda f, **options: weft.ir.register_op_attr(NAME, "another", f, **options),
        lambda: Op.get(NAME).get_attr("another"),
    ),
    "operators": (
        lambda f, **options: operator(f"relax.{NAME}", f, **options)(lambda: None),
        lambda: Op.get(f"relax.{NAME}").get_attr("infer_struct_info"),
    ),
    "legalisations": (
        lambda f, **options: register_legalize(NAME, f, **options),
        lambda: Op.get(NAME).get_attr("FLegalize"),
    ),
    "references": (
        lambda f, **options: relax.register_reference(NAME, f, **options),
        lambda: Op.get(NAME).get_attr("numpy"),
    ),
    "pipelines": (
        lambda f, **options: relax.register_pipeline(NAME, **options)(f),
        lambda: pipeline._PIPELINES[NAME],
    ),
    "converters of torch": (
        lambda f, **options: torch_registry("registry").converter(NAME, **options)(f),
        lambda: torch_registry("registry").CONVERTERS[NAME],
    ),
    "handlers of torch": (
        lambda f, **options: torch_registry("operators.control_flow").handles(NAME, **options)(f),
        lambda: torch_registry("translate").HIGHER_ORDER[NAME],
    ),
    "converters of ONNX": (
        onnx_converter, lambda: onnx_registry.find_converter("tests", "Twice", 3).function,
    ),
    "tensor intrinsics": (
        lambda f, **options: tir.TensorIntrin.register_maker(NAME, f, **options),
        lambda: tir.TensorIntrin.REGISTRY[NAME],
    ),
    "patterns of backends": (
        lambda f, **options: pattern_registry.register_patterns(
            [(NAME, PATTERNS[f is second])], **options
        ),
        lambda: (first, second)[PATTERNS.index(pattern_registry.get_pattern(NAME).pattern)],
    ),
    "options of passes": (
        lambda f, **options: PassContext.register_option(NAME, f.__name__, **options),
        lambda: globals()[PassContext.list_configs()[NAME]],
    ),
    "native functions": (
        lambda f, **options: register_extern(NAME, CALLBACKS[f is second], **options),
        lambda: (first, second)[
            BOUND[NAME] == ctypes.cast(CALLBACKS[1], ctypes.c_void_p).value
        ],
    ),
}  # fmt: skip


@pytest.fixture
def no_traces(monkeypatch):
    """What the tests register is gone after them."""
    from weft.runtime import registry
    from weft.runtime.native.externals import _bound

    Op.register(NAME)
    tables = [registry._TABLE, pipeline._PIPELINES, onnx_registry._TABLE,
              tir.TensorIntrin.REGISTRY, PassContext._options, _bound]  # fmt: skip
    try:
        tables += [torch_registry("registry").CONVERTERS, torch_registry("translate").HIGHER_ORDER]
    except pytest.skip.Exception:
        pass
    kept = [dict(table) for table in tables]
    yield
    for table, content in zip(tables, kept, strict=True):
        table.update(content)
        for key in [key for key in table if NAME in str(key) or key == TWICE]:
            del table[key]  # others may have come with a module that a test was the first to import
    pattern_registry.remove_patterns([NAME])
    Op.get(NAME).attributes.clear()
    FUNCTIONS.pop(NAME, None)
    Op._registry.pop(f"relax.{NAME}", None)


@pytest.mark.usefixtures("no_traces")
@pytest.mark.parametrize("what", REGISTRIES)
def test_a_second_entry_needs_override(what):
    register, registered = REGISTRIES[what]
    register(first)
    with pytest.raises(weft.TVMError, match=r"is already registered; pass override=True to repl"):
        register(second)
    assert registered() is first
    register(second, override=True)
    assert registered() is second


def test_weft_s_own_entries_are_kept_as_well():
    for register in (
        lambda: relax.register_pipeline("zero")(first),
        lambda: register_legalize("relax.add", first),
        lambda: weft.ir.register_op_attr("relax.add", "params", ()),
        lambda: operator("relax.add", first)(lambda: None),
        lambda: onnx_registry.converter("Relu", since=1)(first),
    ):
        with pytest.raises(weft.TVMError, match="is already registered; pass override=True"):
            register()


def test_the_same_value_again_is_no_second_one():
    Op.register(NAME, kept=first)
    assert Op.register(NAME, kept=first).get_attr("kept") is first
    Op.get(NAME).reset_attr("kept")


def test_the_attribute_of_a_user_goes_before_weft_s_own_legalisation(monkeypatch):
    """As in TVM: ``register_op_attr(name, "FLegalize", rule)`` needs no override."""
    from weft.relax.transform import FoldConstant, LegalizeOps

    exp = Op.get("relax.exp")
    monkeypatch.setitem(exp.attributes, "FLegalize", exp.get_attr("FLegalize"))

    def negated(bb, call):
        return bb.call_te(weft.topi.negative, call.args[0])

    weft.ir.register_op_attr("relax.exp", "FLegalize", negated)
    assert exp.get_attr("FLegalize") is negated
    builder = relax.BlockBuilder()
    with builder.function("main", []):
        builder.emit_func_output(builder.emit(relax.op.exp(relax.const(2.0))))
    for step in (LegalizeOps(), FoldConstant()):
        machine = relax.VirtualMachine(relax.build(step(builder.get()), "llvm"), weft.cpu())
        assert machine["main"]().numpy() == -2.0
