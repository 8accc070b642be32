"""``install_as_tvm``: each program runs in a process of its own."""

from __future__ import annotations

import textwrap

import pytest

from tests.lib.python_process import output_of


@pytest.fixture
def run_program(pytestconfig):
    """``run_program(text)``: what a program prints; its failure is the test's."""

    def run(text: str) -> str:
        return output_of(textwrap.dedent(text), cwd=pytestconfig.rootpath).strip()

    return run


def test_the_course_imports_give_the_same_objects(run_program):
    run_program("""
        from __future__ import annotations
        import weft
        weft.install_as_tvm()
        import tvm
        from tvm import relax, te, tir, topi
        from tvm.ir.module import IRModule
        from tvm.script import ir as I, relax as R, tir as T
        import tvm.testing, tvm.relax.expr, weft.relax.expr, weft.script.tir
        assert tvm is weft and relax is weft.relax and te is weft.te
        assert tvm.relax.expr is weft.relax.expr and T is weft.script.tir
        assert IRModule is weft.IRModule and isinstance(weft.IRModule(), tvm.IRModule)
        assert tvm.testing.assert_allclose is weft.testing.assert_allclose
        assert weft.relax.expr.__spec__.name == weft.relax.expr.__name__ == "weft.relax.expr"
    """)


def test_modules_have_the_names_that_are_elsewhere_in_weft(run_program):
    run_program("""
        import weft
        weft.install_as_tvm()
        weft.install_as_tvm()
        import tvm
        from tvm.runtime.module import enabled, load_module, num_threads
        from tvm.runtime.ndarray import array, cpu, cuda, device
        from tvm.runtime.params import load_param_dict, save_param_dict
        from tvm.tir.block_scope import BlockScope, StmtSRef
        from tvm.tir.expr import BinaryOpExpr, CallEffectKind, CmpExpr, IntImm, StringImm
        from tvm.tir.function import IndexMap, PrimFunc, TensorIntrin
        from tvm.tir.op import exp, get_vscale_expr, tvm_access_ptr
        from tvm.tir.pipeline import get_tir_pipeline
        assert tvm_access_ptr is tvm.tir.tvm_access_ptr and exp is tvm.tir.exp
        assert cpu(0) == tvm.cpu() and enabled("llvm") and not enabled("cuda")
        assert isinstance(tvm.tir.Var("x", "int32") + 1, BinaryOpExpr)
        assert str(tvm.tir.get_vscale_expr("int8")) == "T.vscale() * 16"
        assert isinstance(get_tir_pipeline(target="llvm"), tvm.transform.Sequential)
        text = "T.tvm_load_matrix_sync(A, 16, 16, 16, 0, A, 16, 'row_major', dtype='handle')"
        tvm.script.from_source(
            f"@T.prim_func\\ndef f(A: T.handle('float16')):\\n    T.evaluate({text})"
        )
        try:
            tvm.tir.expr.Nonsense
        except AttributeError as error:
            assert "Nonsense" in str(error)
    """)


PATHS = {
    "tvm.relax.struct_info": "weft.relax.struct_info",
    "tvm.relax.block_builder": "weft.relax.block_builder",
    "tvm.relax.expr_functor": "weft.relax.expr_functor",
    "tvm.relax.transform": "weft.relax.transform",
    "tvm.relax.analysis": "weft.relax.analysis",
    "tvm.relax.vm_build": "weft.relax.vm",
    "tvm.relax.ty": "weft.compat.types",
    "tvm.ir.transform": "weft.ir.transform",
    "tvm.transform": "weft.ir.transform",
    "tvm.ir.container": "weft.ir.node",
    "tvm.runtime.ndarray": "weft.runtime.ndarray",
    "tvm.runtime.module": "weft.runtime.module",
    "tvm.runtime.relax_vm": "weft.runtime.vm.virtual_machine",
    "tvm.nd": "weft.nd",
    "tvm.error": "weft.error",
    "tvm.target": "weft.target",
    "tvm.tir.stmt_functor": "weft.tir.stmt_functor",
    "tvm.tir.transform": "weft.tir.transform",
    "tvm.relax.transform.legalize_ops": "weft.relax.transform.legalize.legalize_ops",
    "tvm.tir.expr": "weft.tir.expr",
    "tvm.te.operation": "weft.te.operation",
    "tvm.topi.nn": "weft.topi.nn",
    "tvm.script.parser": "weft.script.parser",
    "tvm.script.parser.tir": "weft.script.tir",
    "tvm.script.parser.core.evaluator": "weft.script.parser.evaluator",
    "tvm.script.ir_builder": "weft.script.ir_builder",
    "tvm.driver.build_module": "weft.driver.build",
    "tvm.tirx": "weft.tir",
    "tvm.s_tir": "weft.tir",
    "tvm.testing.plugin": "weft.testing.plugin",
}


def test_module_paths_of_tvm(run_program):
    out = run_program(f"""
        import importlib, weft
        weft.install_as_tvm()
        for theirs, ours in {PATHS!r}.items():
            found, expected = importlib.import_module(theirs), importlib.import_module(ours)
            if found is not expected:
                print(theirs, found)
    """)
    assert out == ""


def test_packages_that_only_tvm_has(run_program):
    run_program("""
        import weft
        weft.install_as_tvm()
        from tvm._ffi.base import TVMError
        from tvm._ffi import get_global_func, register_func
        from tvm.script.parser import ir as I, relax as R, tir as T
        from tvm.script.ir_builder import ir as Ib
        assert TVMError is weft.TVMError and register_func is weft.register_func
        assert T is weft.script.tir and R is weft.script.relax and I is weft.script.ir
        import tvm
        from tvm.contrib import cblas, cc, clang, utils
        assert tvm._ffi.base.TVMError is TVMError and tvm.contrib.utils is utils
        assert tvm.contrib is weft.contrib
    """)


def test_installing_twice_and_early_import(run_program):
    run_program("""
        import sys, weft
        weft.install_as_tvm()
        before = list(sys.meta_path)
        weft.install_as_tvm()
        assert sys.meta_path == before
        import tvm.relax as theirs
        weft.install_as_tvm()
        assert theirs is weft.relax
    """)


def test_refused_once_the_real_tvm_is_there(run_program):
    out = run_program("""
        import sys, types, weft
        real = types.ModuleType("tvm")
        real.__file__ = "site-packages/tvm/__init__.py"
        sys.modules["tvm"] = real
        try:
            weft.install_as_tvm()
        except weft.TVMError as error:
            print(error)
        assert sys.modules["tvm"] is real
    """)
    assert "the real tvm is already imported (from site-packages/tvm/__init__.py)" in out
    assert "before the first `import tvm`" in out


MISSING = [
    (
        "import tvm.relax.exprs",
        "tvm.relax has no module or name 'exprs'; did you mean tvm.relax.ex",
    ),
    ("from tvm import topic", "tvm has no module or name 'topic'; did you mean tvm.topi?"),
    ("import tvm.tir.stmt_functors", "did you mean tvm.tir.stmt_functor?"),
    ("import tvm.relay", "relay is gone (last in TVM v0.19); use weft.relax"),
    ("from tvm import autotvm", "autotvm is gone (last in TVM v0.19); use weft.meta_schedule"),
    ("import tvm.rpc", "TVM 0.20 that weft does not have yet (part of: measurement"),
    ("from tvm.relax import nothing_like_it", "tvm.relax has no module or name 'nothing_like_it'"),
]


@pytest.mark.parametrize(("statement", "message"), MISSING)
def test_a_module_that_is_not_there_names_the_nearest(run_program, statement, message):
    out = run_program(f"""
        import weft
        weft.install_as_tvm()
        try:
            {statement}
        except ModuleNotFoundError as error:
            print(error)
    """)
    assert message in out
    assert len(out.splitlines()) == 1


def test_an_unknown_name_of_nn_is_an_error(run_program):
    out = run_program("""
        import weft
        weft.install_as_tvm()
        from tvm.relax.frontend import nn
        try:
            nn.Lineer
        except AttributeError as error:
            print(error)
    """)
    assert "module 'weft.relax.frontend.nn' has no attribute 'Lineer'; did you mean Linear" in out


def test_an_unknown_operator_is_an_error(run_program):
    """The finder of TVM's paths looks in the namespace that asks it for a module of that name."""
    out = run_program("""
        import weft
        weft.install_as_tvm()
        from tvm import relax
        for namespace in (relax.op, relax.op.nn):
            try:
                namespace.softmix
            except AttributeError as error:
                print(error)
    """)
    assert out.splitlines() == [
        "there is no graph operator 'softmix'",
        "there is no graph operator nn.softmix; did you mean relax.op.nn.softmax, "
        "relax.op.nn.softsign, relax.op.nn.log_softmax?",
    ]


def test_without_install_nothing_is_hooked(run_program):
    run_program("""
        import sys
        before = list(sys.meta_path)
        import weft, weft.relax, weft.compat.install
        assert sys.meta_path == before and "tvm" not in sys.modules
    """)


PLANNED = {
    "import tvm.dlight.gpu": "code generation for GPUs",
    "from tvm.dlight import gpu": "code generation for GPUs",
    "from tvm.dlight.gpu import Matmul": "code generation for GPUs",
    "import tvm; tvm.dlight.gpu.Matmul": "code generation for GPUs",
    "from tvm.relax.backend import cuda": "code generation for GPUs",
    "from tvm.relax.backend.cuda.cublas import partition_for_cublas": "code generation for GPUs",
    "from tvm.relax.frontend.nn.llm.kv_cache import PagedKVCache": "paged caches",
    "from tvm.relax.frontend.nn.llm import tree_attn": "paged caches",
    "from tvm.contrib import cublas": "code generation for GPUs",
    "import tvm.contrib.cutlass": "code generation for GPUs",
}


def test_planned_names_say_so_however_they_are_imported(run_program):
    out = run_program(f"""
        import weft
        weft.install_as_tvm()
        for statement, part in {PLANNED!r}.items():
            try:
                exec(statement, {{}})
            except (ImportError, AttributeError, weft.TVMError) as error:
                if "that weft does not have yet" not in str(error) or part not in str(error):
                    print(statement, "says", error)
            else:
                print(statement, "says nothing")
    """)
    assert out == ""
