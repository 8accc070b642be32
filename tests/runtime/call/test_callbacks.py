import ctypes

import numpy as np
import pytest

from weft import nd
from weft.runtime import registry
from weft.runtime.call.abi import DLDataType, DLTensor, ValueKind, WeftValue
from weft.runtime.call.callbacks import holding, tensor_view
from weft.runtime.call.spec import FunctionSpec, ParamSpec
from weft.runtime.ndarray import NDArray
from weft.runtime.registry import register_func
from weft.support.errors import TVMError

torch = pytest.importorskip("torch")

TYPES = """
%value = type { i32, i32, i64 }
%tensor = type { ptr, i32, i32, i32, i8, i8, i16, ptr, ptr, i64 }
@name = private constant [10 x i8] c"test.call\\00"
@text = private constant [7 x i8] c"h\\c3\\a9llo\\00"
"""

# test.call(tensor x of shape (2, 3), int n, float 2.5, "héllo", None, handle 77, True) -> result
CALL = (
    TYPES
    + """
define i32 @f(ptr %x, i64 %n, ptr %result) {
  %shape = alloca [2 x i64]
  store i64 2, ptr %shape
  %shape.1 = getelementptr i64, ptr %shape, i64 1
  store i64 3, ptr %shape.1
  %t = alloca %tensor
  store %tensor {
    ptr null, i32 1, i32 0, i32 2, i8 2, i8 32, i16 1, ptr null, ptr null, i64 0 }, ptr %t
  store ptr %x, ptr %t
  %t.shape = getelementptr %tensor, ptr %t, i32 0, i32 7
  store ptr %shape, ptr %t.shape
  %t.int = ptrtoint ptr %t to i64
  %text.int = ptrtoint ptr @text to i64
  %args = alloca [7 x %value]
  %v0 = insertvalue %value { i32 2, i32 0, i64 0 }, i64 %t.int, 2
  store %value %v0, ptr %args
  %a1 = getelementptr %value, ptr %args, i64 1
  %v1 = insertvalue %value { i32 0, i32 0, i64 0 }, i64 %n, 2
  store %value %v1, ptr %a1
  %a2 = getelementptr %value, ptr %args, i64 2
  store %value { i32 1, i32 0, i64 4612811918334230528 }, ptr %a2
  %a3 = getelementptr %value, ptr %args, i64 3
  %v3 = insertvalue %value { i32 3, i32 0, i64 0 }, i64 %text.int, 2
  store %value %v3, ptr %a3
  %a4 = getelementptr %value, ptr %args, i64 4
  store %value { i32 4, i32 0, i64 0 }, ptr %a4
  %a5 = getelementptr %value, ptr %args, i64 5
  store %value { i32 5, i32 0, i64 77 }, ptr %a5
  %a6 = getelementptr %value, ptr %args, i64 6
  store %value { i32 6, i32 0, i64 1 }, ptr %a6
  %out = alloca %value
  %code = call i32 @weft_call_packed(ptr @name, ptr %args, i32 7, ptr %out)
  %failed = icmp ne i32 %code, 0
  br i1 %failed, label %fail, label %fine
fail:
  ret i32 %code
fine:
  %kind = load i32, ptr %out
  %k64 = zext i32 %kind to i64
  %payload.at = getelementptr %value, ptr %out, i32 0, i32 2
  %payload = load i64, ptr %payload.at
  %shifted = shl i64 %payload, 3
  %both = or i64 %shifted, %k64
  store i64 %both, ptr %result
  ret i32 0
}
"""
)
SPEC = FunctionSpec(
    "f",
    (ParamSpec("buffer", "x", "float32", (2, 3)), ParamSpec("scalar", "n", "int64")),
    ret="int64", calls_packed=True,
)  # fmt: skip

# test.call(tensor on the stack)
TEMPORARY = (
    TYPES
    + """
define i32 @g() {
  %data = alloca [4 x float]
  store [4 x float] [float 1.0, float 2.0, float 3.0, float 4.0], ptr %data
  %shape = alloca i64
  store i64 4, ptr %shape
  %t = alloca %tensor
  store %tensor {
    ptr null, i32 1, i32 0, i32 1, i8 2, i8 32, i16 1, ptr null, ptr null, i64 0 }, ptr %t
  store ptr %data, ptr %t
  %t.shape = getelementptr %tensor, ptr %t, i32 0, i32 7
  store ptr %shape, ptr %t.shape
  %arg = alloca %value
  %t.int = ptrtoint ptr %t to i64
  %v = insertvalue %value { i32 2, i32 0, i64 0 }, i64 %t.int, 2
  store %value %v, ptr %arg
  %code = call i32 @weft_call_packed(ptr @name, ptr %arg, i32 1, ptr null)
  ret i32 %code
}
"""
)


@pytest.fixture(autouse=True)
def own_table(monkeypatch):
    monkeypatch.setattr(registry, "_TABLE", {})


@pytest.fixture
def f(load):
    return load(CALL).function(SPEC)


@pytest.fixture
def g(load):
    return load(TEMPORARY).function(FunctionSpec("g", calls_packed=True))


def test_arguments_arrive_with_their_types(f):
    seen = []
    register_func("test.call", lambda *args: seen.extend(args))
    x = nd.array(np.arange(6, dtype="float32").reshape(2, 3))
    f(x, -5)
    assert isinstance(seen[0], NDArray)
    assert (seen[0].shape, seen[0].dtype, seen[0]._address) == ((2, 3), "float32", x._address)
    assert seen[1:] == [-5, 2.5, "héllo", None, 77, True]


def test_tensors_are_views_that_write_through(f):
    def write(x, *_):
        torch.from_dlpack(x)[1, 2] = 9

    register_func("test.call", write)
    x = nd.empty((2, 3))
    f(x, 0)
    assert x.numpy()[1, 2] == 9


@pytest.mark.parametrize(
    ("result", "kind", "payload"),
    [
        (None, ValueKind.NULL, 0), (7, ValueKind.INT, 7), (True, ValueKind.INT, 1),
        (np.int32(5), ValueKind.INT, 5),
    ],
)  # fmt: skip
def test_results_go_back(f, result, kind, payload):
    register_func("test.call", lambda *_: result)
    assert f(nd.empty((2, 3)), 0) == payload << 3 | kind


def test_other_results_are_refused(f):
    register_func("test.call", lambda *_: "text")
    with pytest.raises(
        TypeError, match=r"test.call: expected .* None, an int or a float .* got str"
    ):
        f(nd.empty((2, 3)), 0)


def test_the_same_exception_object_is_raised(f):
    class Mine(BaseException):
        pass

    error = Mine("mine")

    def fail(*_):
        raise error

    register_func("test.call", fail)
    with pytest.raises(Mine) as caught:
        f(nd.empty((2, 3)), 0)
    assert caught.value is error
    assert "fail" in [entry.name for entry in caught.traceback]


def test_a_missing_function_is_an_error_and_a_new_one_counts_at_once(f):
    register_func("test.cal", print)
    with pytest.raises(ValueError, match=r"cannot find global function 'test.call'; did you mean"):
        f(nd.empty((2, 3)), 0)
    register_func("test.call", lambda *_: 1)
    first = f(nd.empty((2, 3)), 0)
    register_func("test.call", lambda *_: 2, override=True)
    assert (first >> 3, f(nd.empty((2, 3)), 0) >> 3) == (1, 2)


def test_a_kept_argument_keeps_the_callers_memory(f):
    kept = []
    register_func("test.call", lambda x, *_: kept.append(x))
    f(nd.array(np.full((2, 3), 4, "float32")), 0)
    junk = [np.zeros((2, 3), "float32") for _ in range(50)]
    assert kept[0].numpy().sum() == 24
    del junk


def test_temporary_memory_is_lent_as_a_copy_that_may_be_kept(g):
    kept = []
    register_func("test.call", kept.append)
    g()
    register_func("test.call", lambda x: kept.append(torch.from_dlpack(x)), override=True)
    g()
    assert [x.tolist() for x in kept] == [[1, 2, 3, 4]] * 2


def test_changes_of_temporary_memory_are_written_back(load):
    ir = TEMPORARY.replace("ret i32 %code", "%v2 = load float, ptr %data").replace(
        "define i32 @g()", "define i32 @g(ptr %out)"
    )
    ir = ir[: ir.rindex("}")] + "  store float %v2, ptr %out\n  ret i32 %code\n}"
    g = load(ir).function(FunctionSpec("g", ret="float32", calls_packed=True))

    def change(x):
        x[0] = 50

    register_func("test.call", change)
    assert g() == 50


def test_constant_memory_may_be_lent(load):
    ir = (
        TEMPORARY.replace("%data = alloca [4 x float]", "")
        .replace("store [4 x float] [float 1.0, float 2.0, float 3.0, float 4.0], ptr %data", "")
        .replace("%data", "@data")
        + """
@data = private constant [4 x float] [float 1.0, float 2.0, float 3.0, float 4.0]
"""
    )
    seen = []
    register_func("test.call", lambda x: seen.append(x.tolist()))
    load(ir).function(FunctionSpec("g", calls_packed=True))()
    assert seen == [[1, 2, 3, 4]]


def test_callbacks_may_call_compiled_code(f, load):
    inner = load("define i32 @h(ptr %out) {\nstore i64 3, ptr %out\nret i32 0\n}").function(
        FunctionSpec("h", ret="int64")
    )
    depth = []

    def again(x, n, *_):
        depth.append(n)
        return f(x, n - 1) if n else inner()

    register_func("test.call", again)
    f(nd.empty((2, 3)), 3)
    assert depth == [3, 2, 1, 0]


def test_strided_and_offset_tensors():
    data = np.arange(12, dtype="int16")
    shape, strides = (ctypes.c_int64 * 2)(2, 3), (ctypes.c_int64 * 2)(1, 2)
    header = DLTensor(
        data=data.ctypes.data, ndim=2, dtype=DLDataType(0, 16, 1),
        shape=ctypes.addressof(shape), strides=ctypes.addressof(strides), byte_offset=4,
    )  # fmt: skip
    with holding(data):
        view = tensor_view(ctypes.addressof(header))
    assert view.tolist() == [[2, 4, 6], [3, 5, 7]]
    header.dtype = DLDataType(5, 16, 1)
    with pytest.raises(TVMError, match=r"expected a DLPack type code that weft has, got 5"):
        tensor_view(ctypes.addressof(header))


def test_layouts_are_those_of_the_manual():
    assert ctypes.sizeof(WeftValue) == 16
    assert ctypes.sizeof(DLTensor) == 48
    assert [getattr(DLTensor, n).offset for n in ("dtype", "shape", "strides", "byte_offset")] == [
        20, 24, 32, 40,
    ]  # fmt: skip
    assert WeftValue.payload.offset == 8
