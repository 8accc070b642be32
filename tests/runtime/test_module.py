import pytest

from weft import nd
from weft.runtime import BenchmarkResult, Executable, Module, PackedFunc
from weft.runtime.call.spec import FunctionSpec, ParamSpec
from weft.runtime.module import system_lib


@pytest.fixture
def rt():
    return Executable(
        {"main": lambda x: x + 1, "other": lambda x: x + 2},
        sources={"ll": "define", "asm": lambda: "mov"},
    )


def test_functions_are_reached_in_every_spelling(rt):
    assert (
        rt["main"](1) == rt.main(1) == rt.get_function("main")(1) == rt.entry_func(1) == rt(1) == 2
    )
    assert rt.mod["other"](1) == rt.jit()["other"](1) == rt.mod.other(1) == 3
    assert isinstance(rt["main"], PackedFunc)
    assert isinstance(rt, Module)
    assert "other" in dir(rt)
    assert rt.is_runnable
    assert set(rt.functions) == {"main", "other"}


def test_a_missing_function_is_an_error_of_every_expected_class(rt):
    for error in (AttributeError, LookupError, RuntimeError):
        with pytest.raises(error, match=r"Module has no function 'mian'; did you mean 'main'"):
            rt["mian"]
    with pytest.raises(AttributeError, match=r"has no function 'zzz'; it has main, other"):
        rt.zzz
    assert not hasattr(rt, "zzz")
    assert not hasattr(rt, "_zzz")
    with pytest.raises(TypeError, match=r"expected the name of a function, got int"):
        rt[3]


def test_the_entry_is_main_or_the_only_one():
    assert Module({"f": lambda: 5})() == 5
    assert Module({"f": lambda: 5, "g": lambda: 6}, entry="g")() == 6
    with pytest.raises(ValueError, match=r"expected a module with an entry function.* f, g"):
        Module({"f": len, "g": len})()
    with pytest.raises(ValueError, match=r"got one with none"):
        Module({})()


def test_imports_are_searched_on_request(rt):
    outer = Module({"f": len}, imports=[rt])
    assert outer["other"](1) == 3
    with pytest.raises(AttributeError, match=r"no function 'other'"):
        outer.get_function("other")
    assert outer.get_function("other", query_imports=True)(1) == 3
    assert outer.implements_function("other", True)
    assert not outer.implements_function("other")
    extra = Module({"h": len})
    outer.import_module(extra)
    assert outer.imported_modules == outer.imports == [rt, extra]
    with pytest.raises(TypeError, match=r"expected a runtime Module, got int"):
        outer.import_module(3)


def test_sources_are_made_at_the_first_wish(rt):
    assert rt.get_source() == rt.get_source("ll") == rt.inspect_source() == "define"
    assert rt.get_source("asm") == "mov"
    assert rt.format == "ll"
    with pytest.raises(ValueError, match=r"expected a source format of ll, asm, got 'ptx'"):
        rt.get_source("ptx")
    with pytest.raises(ValueError, match=r"this module keeps no source"):
        Module({}).get_source()


def test_what_is_not_there_says_so(rt):
    for call in (
        lambda: rt.save("m.ll"), system_lib,
        lambda: rt.time_evaluator("main", nd.cpu(), cache_flush_bytes=1),
    ):  # fmt: skip
        with pytest.raises(NotImplementedError, match=r"not available"):
            call()
    with pytest.raises(NotImplementedError, match=r"expected a CPU device, got cuda:0"):
        rt.time_evaluator("main", nd.cuda())


def test_an_executable_of_a_module_has_its_functions(rt):
    again = Executable(rt)
    assert again.mod is rt
    assert again.functions == rt.functions
    assert again.jit()["main"] is rt["main"]
    assert (again.entry_name, again.format) == (rt.entry_name, rt.format)


def test_repr_names_the_functions(rt):
    assert repr(rt) == "Executable(type_key='llvm', functions=[main, other])"


# timing


def test_time_evaluator_counts_calls():
    calls = []
    module = Module({"f": calls.append})
    result = module.time_evaluator("f", nd.cpu(), number=3, repeat=2)(7)
    assert calls == [7] * (1 + 3 * 2)
    assert len(result.results) == 2
    assert result.min <= result.median <= result.max
    assert 0 < result.mean


def test_time_evaluator_grows_to_the_least_time():
    calls = []
    Module({"f": calls.append}).time_evaluator("f", nd.cpu(), number=1, min_repeat_ms=2)(7)
    assert len(calls) > 10


def test_time_evaluator_of_native_code_checks_the_arguments(load):
    ir = """
define i32 @f(ptr %x) {
  %v = load float, ptr %x
  %w = fadd float %v, 1.0
  store float %w, ptr %x
  ret i32 0
}
"""
    spec = FunctionSpec("f", (ParamSpec("buffer", "x", "float32", (1,)),))
    module = Module({"f": load(ir).function(spec)})
    x = nd.array([0.0]).copyto(nd.empty((1,)))
    module.time_evaluator("f", number=5, repeat=2)(x)
    assert x[0] == 11
    with pytest.raises(ValueError, match=r"expected shape \(1,\), got \(2,\)"):
        module.time_evaluator("f")(nd.empty((2,)))
    with pytest.raises(ValueError, match=r"number and repeat of at least 1, got 0 and 1"):
        module.time_evaluator("f", number=0)


def test_time_evaluator_of_native_code_with_a_result(load):
    ir = "define i32 @f(ptr %out) {\nstore i64 5, ptr %out\nret i32 0\n}"
    f = load(ir).function(FunctionSpec("f", ret="int64"))
    assert Module({"f": f}).time_evaluator("f", number=3)().mean > 0


def test_benchmark_result_prints_a_table():
    result = BenchmarkResult([0.001, 0.003])
    assert str(result).splitlines()[0] == "Execution time summary:"
    assert str(result).splitlines()[2].split() == ["2.0000", "2.0000", "3.0000", "1.0000", "1.0000"]
    assert repr(result).startswith("BenchmarkResult(min=0.001, mean=0.002, median=0.002, max=0.003")
    assert result.results == (0.001, 0.003)
    with pytest.raises(ValueError, match=r"at least one measured time"):
        BenchmarkResult([])
