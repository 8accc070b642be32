"""Marks, parameters, targets: small test files run in a pytest of their own."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest


@pytest.fixture
def run_pytest(tmp_path, pytestconfig):
    """``run_pytest(text)``: outcomes line and output of a test file with that text."""

    def run(text: str) -> str:
        path = tmp_path / "test_inner.py"
        path.write_text(textwrap.dedent(text), encoding="utf-8")
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-p", "weft.testing.plugin", "-p", "no:cacheprovider",
             "-c", "/dev/null", "--rootdir", str(tmp_path), "-rA", "-q", str(path)],
            cwd=pytestconfig.rootpath, capture_output=True, text=True, timeout=600, check=False,
        )  # fmt: skip
        return done.stdout + done.stderr

    return run


def test_parameters_go_together_and_targets_are_given(run_pytest):
    out = run_pytest("""
        import pytest, weft.testing as wt
        size = wt.parameter(1, 2)
        kind = wt.parameter(by_dict={"one": 1, "two": 2})
        low, high = wt.parameters((1, 10), (2, 20))
        class TestInside:
            width = wt.parameter(3, 4)
            a, b = wt.parameters((5, 50), (6, 60), ids=["five", "six"])
            def test_in_class(self, width, a, b): assert b == 10 * a and width in (3, 4)
        def test_single(size): assert size in (1, 2)
        def test_ids(kind): pass
        def test_tied(low, high): assert high == 10 * low
        def test_target(target, dev): assert target == "llvm" and str(dev) == "cpu:0"
        @wt.parametrize_targets("llvm", "cuda")
        def test_two(target, dev): assert target == "llvm"
        @wt.exclude_targets("llvm")
        def test_none(target, dev): assert False
        @wt.known_failing_targets("llvm")
        def test_fails(target): assert False
        @pytest.mark.parametrize("target", ["a", "b"])
        def test_own(target): assert target in "ab"
    """)
    assert "test_ids[one]" in out
    assert "test_in_class[five-3]" in out or "test_in_class[3-five]" in out
    assert "14 passed, 2 skipped, 1 xfailed" in out, out


def test_kept_fixture_is_computed_once_and_copied(run_pytest):
    out = run_pytest("""
        import weft.testing as wt
        calls = []
        size = wt.parameter(1, 2)
        @wt.fixture(cache_return_value=True)
        def table(size):
            calls.append(size)
            return [size]
        def test_one(table): table.append("changed")
        def test_two(table): assert len(table) == 1
        def test_calls(): assert sorted(calls) == [1, 2]
    """)
    assert "5 passed" in out, out


def test_features(run_pytest):
    out = run_pytest("""
        import weft.testing as wt
        @wt.requires_llvm
        def test_llvm(): pass
        @wt.requires_llvm()
        def test_llvm_called(): pass
        @wt.requires_cuda
        def test_cuda(): assert False
        @wt.requires_package("numpy")
        def test_numpy(): pass
        @wt.requires_package("no_such_package_at_all")
        def test_nothing(): assert False
        @wt.requires_cuda_compute_version(8)
        def test_compute(): assert False
        @wt.uses_gpu
        def test_uses(): pass
        class TestMarks:
            pytestmark = wt.requires_cuda.marks()
            def test_in(self): assert False
    """)
    assert "4 passed, 4 skipped" in out, out
    assert "this machine has no CUDA that weft can use" in out


def test_features_of_users_and_marks(run_pytest):
    out = run_pytest("""
        import pytest, weft.testing as wt
        old = wt.Feature("old_board", "old board", run_time_check=lambda: "the board is away")
        new = wt.Feature("new_board", compile_time_check=lambda: False, parent_features="old_board")
        built = wt.Feature("built", cmake_flag="USE_LLVM", target_kind_enabled="llvm")
        @old
        def test_old(): assert False
        @new(support_required="compile-only")
        def test_new(): assert False
        @new(support_required="optional")
        def test_optional(request):
            assert {mark.name for mark in request.node.iter_markers()} == {"new_board", "old_board"}
        @wt.Feature.require("built")
        def test_built(): pass
        def test_refused():
            with pytest.raises(ValueError, match="expected one of compile-and-run, compile-only"):
                built(support_required="always")
            with pytest.raises(ValueError, match="Feature.require: expected one of AArch64.*'no'"):
                wt.Feature.require("no")
            assert "no NVPTX that weft can use" in wt.requires_nvptx.marks()[0].kwargs["reason"]
        @wt.requires_llvm_minimum_version(99)
        def test_minimum(): assert False
        @wt.requires_cublas
        def test_library(): assert False
    """)
    assert "3 passed, 4 skipped" in out, out
    assert "the board is away" in out
    assert "weft cannot compile for new_board" in out
    assert "weft has no cuBLAS support (USE_CUBLAS)" in out


def test_features_need_no_plugin(tmp_path, pytestconfig):
    path = tmp_path / "test_inner.py"
    path.write_text(
        "import weft.testing as wt\n"
        "@wt.requires_llvm\ndef test_llvm(): pass\n"
        "@wt.uses_gpu\ndef test_uses(): pass\n"
        "@wt.requires_cuda\ndef test_cuda(): assert False\n"
        "mine = wt.Feature('mine')\n@mine\ndef test_mine(): pass\n",
        encoding="utf-8",
    )
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--strict-markers", "-W", "error", "-q", "-c", "/dev/null",
         "-p", "no:cacheprovider", "--rootdir", str(tmp_path), str(path)],
        cwd=pytestconfig.rootpath, capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert "3 passed, 1 skipped" in done.stdout, done.stdout


def test_rows_of_targets_are_skipped_where_they_cannot_run(run_pytest):
    out = run_pytest("""
        import pytest, weft
        @pytest.mark.parametrize("target,n", [("llvm", 1), ("cuda", 2), pytest.param("vulkan", 3)])
        def test_rows(target, n): assert n == 1
        @pytest.mark.parametrize("target", [weft.target.Target("llvm"), {"kind": "metal"}])
        def test_objects(target): assert isinstance(target, weft.target.Target)
        @pytest.mark.parametrize("target", ("llvm",))
        def test_tuple(target, dev): assert str(dev) == "cpu:0"
    """)
    assert "3 passed, 3 skipped" in out, out


def test_fixtures_of_wider_scope_take_parameters(run_pytest):
    out = run_pytest("""
        import pytest, weft.testing as wt
        size = wt.parameter(1, 2)
        @pytest.fixture(scope="module")
        def made(size): return 2 * size
        def test_first(size, made): assert made == 2 * size
        def test_second(size, made): pass
        class TestInside:
            width = wt.parameter(3, 4)
            def test_in(self, width, made): assert width in (3, 4)
    """)
    assert "8 passed" in out, out
    assert "Warning" not in out
    order = [line.rpartition("::")[2] for line in out.splitlines() if line.startswith("PASSED")]
    assert [name.partition("[")[0] for name in order] == [
        "test_first", "test_first", "test_second", "test_second", *["test_in"] * 4
    ]  # fmt: skip


def test_kept_fixtures_are_dropped_after_their_last_use(run_pytest):
    out = run_pytest("""
        import gc, weakref, weft.testing as wt
        class Table:
            def __deepcopy__(self, memo): return Table()
        alive = weakref.WeakSet()
        @wt.fixture(cache_return_value=True)
        def table():
            alive.add(made := Table())
            return made
        def test_one(table): assert len(alive) == 1
        def test_two(table): assert len(alive) == 1
        def test_after():
            gc.collect()
            assert not alive
        @wt.fixture(cache_return_value=True)
        def broken(): raise RuntimeError("no table")
        def test_broken(broken): pass
    """)
    assert "3 passed, 1 error" in out, out
    assert "no table" in out


def test_parameter_sets_can_be_skipped_or_expected_to_fail(run_pytest):
    out = run_pytest("""
        import weft.testing as wt
        size = wt.parameter(1, 2, 3)
        @wt.skip_parameterizations("2", reason="two is slow")
        @wt.xfail_parameterizations("3", reason="three fails")
        def test_size(request, size): assert size == 1
    """)
    assert "1 passed, 1 skipped, 1 xfailed" in out, out
    assert "two is slow" in out


def test_compare_before_after(run_pytest):
    out = run_pytest("""
        import pytest, weft, weft.testing as wt
        from weft.script import tir as T, ir as I
        class Base(wt.CompareBeforeAfter):
            def transform(self):
                return weft.tir.transform.Simplify()
        class TestBare(Base):
            def before(A: T.Buffer(4, "int32")):
                A[0] = 1 + 2 * 3
            def expected(A: T.Buffer(4, "int32")):
                A[0] = 7
        class TestMethod(Base):
            def before(self):
                @T.prim_func(private=True)
                def func(A: T.Buffer(4, "int32")):
                    A[0] = 1
                return func
            expected = before
        class TestModule(Base):
            @I.ir_module
            class before:
                @T.prim_func
                def main(A: T.Buffer(4, "int32")):
                    A[0] = 3
            expected = before
        class TestCapitals(Base):
            @I.ir_module
            class Before:
                @T.prim_func
                def main(A: T.Buffer(4, "int32")):
                    A[0] = 1 + 3
            @I.ir_module
            class Expected:
                @T.prim_func
                def main(A: T.Buffer(4, "int32")):
                    A[0] = 4
        class TestWrong(Base):
            def before(A: T.Buffer(4, "int32")):
                A[0] = 1
            def expected(A: T.Buffer(4, "int32")):
                A[0] = 2
        def refuse(mod):
            raise ValueError("no")
        class TestRaises(wt.CompareBeforeAfter):
            transform = lambda self: refuse
            def before(A: T.Buffer(4, "int32")):
                A[0] = 1
            expected = ValueError
    """)
    assert "5 passed" in out, out
    assert "1 failed" in out, out
    assert "# expected" in out


def test_compare_before_after_of_bare_modules_and_of_fixtures(run_pytest):
    out = run_pytest("""
        import weft, weft.testing as wt
        from weft.script import tir as T
        class Base(wt.CompareBeforeAfter):
            transform = weft.tir.transform.Simplify()
        class TestBareModule(Base):
            class before:
                def one(A: T.Buffer(4, "int32")):
                    A[0] = 1 + 1
                def two(A: T.Buffer(4, "int32")):
                    A[0] = 2 + 2
            class expected:
                def one(A: T.Buffer(4, "int32")):
                    A[0] = 2
                def two(A: T.Buffer(4, "int32")):
                    A[0] = 4
        class TestFixture(Base):
            n = wt.parameter(1, 8)
            @wt.fixture
            def before(self, n):
                @T.prim_func
                def func(A: T.Buffer(n, "float32")):
                    for i in T.serial(n):
                        A[i] = T.float32(0)
                return func
            expected = before
    """)
    assert "3 passed" in out, out
