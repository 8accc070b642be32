import gc
import threading
import weakref

import numpy as np
import pytest

from weft import nd
from weft.runtime.call.arguments import encode_float
from weft.runtime.call.spec import FunctionSpec, ParamSpec
from weft.runtime.call.wrapper import make_binder
from weft.support.dtype import DataType
from weft.support.errors import RuntimeFault, TVMError, UnsupportedError

torch = pytest.importorskip("torch")


def buffer(name, shape, dtype="float32", **options):
    return ParamSpec("buffer", name, dtype, shape, **options)


def scalar(name, dtype):
    return ParamSpec("scalar", name, dtype)


# y[i] = x[i] + k for i < n, both compact
ADD = """
define i32 @add(ptr %x, float %k, ptr %y, i64 %n) {
entry:
  %some = icmp sgt i64 %n, 0
  br i1 %some, label %loop, label %done
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %x.at = getelementptr float, ptr %x, i64 %i
  %value = load float, ptr %x.at
  %sum = fadd float %value, %k
  %y.at = getelementptr float, ptr %y, i64 %i
  store float %sum, ptr %y.at
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %done
done:
  ret i32 0
}
"""
ADD_SPEC = FunctionSpec(
    "add",
    (
        buffer("x", ("n", 2), is_output=False, noalias=True),
        scalar("k", "float32"),
        buffer("y", ("n", 2), is_output=True, noalias=True),
    ),
    implicit=("n",),
)


@pytest.fixture
def add(load):
    return load(ADD).function(ADD_SPEC)


def ones(*shape, dtype="float32"):
    return np.ones(shape, dtype)


@pytest.mark.parametrize("kind", ["nd", "numpy", "torch"])
def test_every_kind_of_array_is_taken(add, kind):
    make = {"nd": nd.array, "numpy": np.array, "torch": torch.tensor}[kind]
    x, y = make(ones(3, 2)), make(ones(3, 2) * 0)
    assert add(x, 2.5, y) is None
    assert np.asarray(y)[0].tolist() == [3.5, 3.5]


def test_kinds_mix_and_subclasses_are_taken(add):
    y = nd.empty((2, 2))
    add(torch.nn.Parameter(torch.ones(2, 2)), 1, y)
    assert y.numpy()[0].tolist() == [2, 2]
    add(ones(2, 2).view(np.matrix), np.float64(3), y)
    assert y.numpy()[0].tolist() == [4, 4]


def test_zero_extent_is_taken(add):
    add(nd.empty((0, 2)), 1.0, nd.empty((0, 2)))


@pytest.mark.parametrize(
    ("args", "error", "message"),
    [
        ((), TypeError, r"add: expected 3 arguments \(x, k, y\), got 0"),
        ((1, 2, 3, 4), TypeError, r"add: expected 3 arguments \(x, k, y\), got 4"),
        (([1.0], 1.0, ones(3, 2)), TypeError,
         r"argument 0 \(x\): expected a tensor \(NDArray, numpy array or torch tensor\), got list"),
        ((None, 1.0, ones(3, 2)), TypeError, r"argument 0 \(x\): expected a tensor .* NoneType"),
        ((ones(3, 2, dtype="float64"), 1.0, ones(3, 2)), TypeError,
         r"add: argument 0 \(x\): expected dtype float32, got float64"),
        ((nd.array([[1, 2]]), 1.0, ones(3, 2)), TypeError,
         r"argument 0 \(x\): expected dtype float32, got int64"),
        ((torch.ones(3, 2).double(), 1.0, ones(3, 2)), TypeError,
         r"argument 0 \(x\): expected dtype float32, got torch.float64"),
        ((torch.ones(3, 2).to(torch.complex64), 1.0, ones(3, 2)), TypeError,
         r"expected dtype float32, got torch.complex64"),
        ((ones(3, 2).astype(">f4"), 1.0, ones(3, 2)), TypeError, r"native byte order, got .* >f4"),
        ((ones(3, 3), 1.0, ones(3, 2)), ValueError,
         r"add: argument 0 \(x\): expected shape \(3, 2\), that is \(n, 2\), got \(3, 3\)"),
        ((ones(3), 1.0, ones(3, 2)), ValueError,
         r"argument 0 \(x\): expected shape \(n, 2\), got \(3,\)"),
        ((ones(3, 2), 1.0, ones(4, 2)), ValueError,
         r"argument 2 \(y\): expected shape \(3, 2\), that is \(n, 2\), got \(4, 2\)"),
        ((ones(2, 3).T, 1.0, ones(3, 2)), ValueError,
         r"argument 0 \(x\): expected contiguous row-major data, got shape \(3, 2\) with strides "
         r"\(1, 3\)"),
        ((torch.ones(2, 3).T, 1.0, ones(3, 2)), ValueError,
         r"expected contiguous row-major data, got shape \(3, 2\) with strides \(1, 3\)"),
        ((nd.array(ones(2, 3)).T, 1.0, ones(3, 2)), ValueError, "expected contiguous row-major"),
        ((ones(3, 2), "1", ones(3, 2)), TypeError,
         r"argument 1 \(k\): expected a number \(float32\), got str '1'"),
        ((torch.ones(3, 2, device="meta"), 1.0, ones(3, 2)), ValueError,
         r"argument 0 \(x\): expected a tensor on the CPU, got one on meta"),
        ((torch.ones(3, 2).to_sparse(), 1.0, ones(3, 2)), TVMError,
         r"argument 0 \(x\): expected a tensor with data"),
    ],
)  # fmt: skip
def test_wrong_arguments_are_refused(add, args, error, message):
    with pytest.raises(error, match=message) as caught:
        add(*args)
    assert isinstance(caught.value, TVMError)
    assert len(str(caught.value).splitlines()) <= 3


def test_the_fast_way_of_torch_tensors_checks_too(add, load):
    y = torch.empty(3, 2)
    for x in (torch.ones(3, 2), torch.ones(3, 2)):
        add(x, 1.0, y)
    with pytest.raises(ValueError, match=r"expected shape \(3, 2\), .* got \(3, 3\)"):
        add(torch.ones(3, 3), 1.0, y)
    with pytest.raises(ValueError, match="expected contiguous row-major data"):
        add(torch.ones(2, 3).T, 1.0, y)
    with pytest.raises(ValueError, match="expected a tensor on the CPU, got one on meta"):
        add(torch.ones(3, 2, device="meta"), 1.0, y)
    spec = FunctionSpec("f", (buffer("x", (2,), "int8"),))
    f = load("define i32 @f(ptr %x) {\nret i32 0\n}").function(spec)
    f(torch.ones(2, dtype=torch.int8))
    with pytest.raises(ValueError, match="expected a tensor on the CPU, got one on meta"):
        f(torch.ones(2, dtype=torch.int8, device="meta"))


def test_unaligned_memory_is_refused(add):
    raw = np.zeros(25, "uint8")[1:].view("float32").reshape(3, 2)
    with pytest.raises(ValueError, match=r"\(x\): expected memory aligned to 4 bytes, .* float32"):
        add(raw, 1.0, ones(3, 2))
    halves = torch.zeros(28, dtype=torch.uint8)
    with pytest.raises(ValueError, match=r"expected memory aligned to 4 bytes"):
        add(torch.from_numpy(halves.numpy()[1:25].view("float32").reshape(3, 2)), 1.0, ones(3, 2))


def test_read_only_memory_is_an_input_only(add):
    fixed = ones(3, 2)
    fixed.flags.writeable = False
    add(fixed, 1.0, ones(3, 2))
    with pytest.raises(ValueError, match=r"\(y\): expected writable memory"):
        add(ones(3, 2), 1.0, fixed)


def test_overlapping_outputs_are_refused(add):
    x = nd.array(ones(4, 2))
    with pytest.raises(ValueError, match=r"argument 2 \(y\): .* overlaps argument 0 \(x\)"):
        add(x, 1.0, x)
    with pytest.raises(ValueError, match=r"shares no memory"):
        add(x[:3], 1.0, x[1:])
    add(x[:2], 1.0, x[2:])
    add(x[:0], 1.0, x[:0])


def test_overlap_is_allowed_where_the_code_allows_it(load):
    spec = FunctionSpec(
        "add", (buffer("x", ("n", 2)), scalar("k", "float32"), buffer("y", ("n", 2))), ("n",)
    )
    x = nd.array(ones(2, 2))
    load(ADD).function(spec)(x, 1.0, x)
    assert x.numpy()[0].tolist() == [2, 2]


def test_symbols_are_bound_checked_and_passed(load):
    ir = """
define i32 @f(ptr %a, i32 %k, ptr %b, i64 %n, i64 %m, ptr %out) {
  %thousands = mul i64 %n, 1000
  %most = add i64 %thousands, %m
  %wide = sext i32 %k to i64
  %sum = add i64 %most, %wide
  store i64 %sum, ptr %out
  ret i32 0
}
"""
    spec = FunctionSpec(
        "f",
        (
            buffer("a", ("n*2", "m"), "int8"), scalar("k", "int32"),
            buffer("b", ("n", "k", "min(n, m) + 1"), "int8"),
        ),
        ("n", "m"), "int64",
    )  # fmt: skip
    f = load(ir).function(spec)
    assert f(nd.empty((6, 5), "int8"), 7, nd.empty((3, 7, 4), "int8")) == 3000 + 5 + 7
    with pytest.raises(ValueError, match=r"\(a\): expected shape \(6, 5\), that is \(n\*2, m\)"):
        f(nd.empty((5, 5), "int8"), 7, nd.empty((3, 7, 4), "int8"))
    with pytest.raises(ValueError, match=r"\(b\): expected shape \(3, 8, 4\), that is \(n, k, min"):
        f(nd.empty((6, 5), "int8"), 8, nd.empty((3, 7, 4), "int8"))


STRIDED = """
define i32 @pick(ptr %a, ptr %out, i64 %s) {
  %at = getelementptr float, ptr %a, i64 %s
  %value = load float, ptr %at
  store float %value, ptr %out
  ret i32 0
}
"""


def test_strides_are_bound_or_compared(load):
    lib = load(STRIDED)
    bound = lib.function(
        FunctionSpec(
            "pick",
            (buffer("a", (2, 3), strides=("s", 1), elem_offset="o"), buffer("y", ())),
            ("s",),
        )
    )
    wide, out = nd.array(np.arange(8, dtype="float32").reshape(2, 4)), nd.empty(())
    bound(wide[:, :3], out)
    assert out.item() == 4
    bound(torch.arange(8.0).reshape(2, 4)[:, :3], out)
    assert out.item() == 4
    with pytest.raises(
        ValueError, match=r"\(a\): expected strides \(1, 1\), that is \(s, 1\).*\(1, 2"
    ):
        bound(nd.array(np.ones((3, 2), "float32")).T, out)
    fixed = lib.function(
        FunctionSpec(
            "pick", (buffer("a", (2, 3), strides=(4, 1)), buffer("y", ()), scalar("s", "int64"))
        )
    )
    fixed(wide[:, :3], out, 4)
    with pytest.raises(
        ValueError, match=r"\(a\): expected strides \(4, 1\) \(in elements\), got \(3"
    ):
        fixed(nd.array(np.ones((2, 3), "float32")), out, 4)


def test_overlap_of_strided_arguments_is_measured_by_their_reach(load):
    lib = load(STRIDED)
    spec = FunctionSpec(
        "pick",
        (
            buffer("a", (2, 3), strides=("s", 1), is_output=False, noalias=True),
            buffer("y", (), is_output=True, noalias=True),
        ),
        ("s",),
    )
    pick, wide = lib.function(spec), nd.array(np.zeros((2, 4), "float32"))
    pick(wide[:, :3], NDArrayView(wide, (1, 3)))
    with pytest.raises(ValueError, match=r"overlaps argument 0"):
        pick(wide[:, :3], NDArrayView(wide, (1, 0)))


def test_overlap_with_reversed_data_is_found(load):
    spec = FunctionSpec(
        "pick",
        (
            buffer("a", (4,), strides=("s",), is_output=False, noalias=True),
            buffer("y", (), is_output=True, noalias=True),
        ),
        ("s",),
    )
    pick, data = load(STRIDED).function(spec), nd.array(np.arange(6, dtype="float32"))
    out = nd.empty(())
    pick(data[3::-1], out)
    assert out.item() == 2
    with pytest.raises(ValueError, match="overlaps argument 0"):
        pick(data[3::-1], data[0:1]._create_view(()))
    pick(data[3::-1], data[4:5]._create_view(()))


def NDArrayView(array, index):  # noqa: N802 - reads as a class
    row, column = index
    return array[row, column : column + 1]._create_view(())


def test_nonzero_element_offset_is_not_there(load):
    spec = FunctionSpec("pick", (buffer("a", (2,), elem_offset=4), buffer("y", ())))
    with pytest.raises(UnsupportedError, match=r"expected element offset 0 or a symbol, got 4"):
        load(STRIDED).function(spec)


# scalars: (data type, LLVM type, value passed, value back)
ECHO = [
    ("bool", "i1", True, True), ("int8", "i8", -128, -128), ("int16", "i16", -5, -5),
    ("int32", "i32", 2**31 - 1, 2**31 - 1), ("int64", "i64", -(2**63), -(2**63)),
    ("uint8", "i8", 255, 255), ("uint16", "i16", 65535, 65535),
    ("uint32", "i32", 2**32 - 1, 2**32 - 1),
    ("uint64", "i64", 2**64 - 1, 2**64 - 1), ("float32", "float", 0.1, np.float32(0.1)),
    ("float64", "double", 0.1, 0.1), ("float16", "half", 0.1, np.float16(0.1)),
    ("bfloat16", "i16", 3.140625, 3.140625), ("float8_e4m3fn", "i8", 1.5, 1.5),
    ("float8_e5m2", "i8", -2.0, -2.0),
]  # fmt: skip


@pytest.mark.parametrize(("dtype", "llvm", "value", "expected"), ECHO)
def test_scalars_of_every_type_go_in_and_out(load, dtype, llvm, value, expected):
    store = (
        "%wide = zext i1 %x to i8\nstore i8 %wide, ptr %out"
        if llvm == "i1"
        else f"store {llvm} %x, ptr %out"
    )
    ir = f"define i32 @echo({llvm} %x, ptr %out) {{\n{store}\nret i32 0\n}}"
    echo = load(ir).function(FunctionSpec("echo", (scalar("x", dtype),), ret=dtype))
    assert echo(value) == expected
    assert type(echo(value)) is type(value)
    assert echo(np.array(value)) == expected


@pytest.mark.parametrize(
    ("dtype", "value", "message"),
    [
        ("int8", 128, r"\(x\): expected an integer from -128 to 127 \(int8\), got 128"),
        ("uint8", -1, "expected an integer from 0 to 255"),
        ("bool", 2, "expected an integer from 0 to 1"),
        ("int32", 1.0, r"expected an integer \(int32\), got float 1.0"),
        ("int32", "a", r"expected an integer \(int32\), got str 'a'"),
        ("int32", None, r"expected an integer \(int32\), got NoneType"),
        ("float64", 1j, r"expected a number \(float64\), got complex"),
        ("handle", "a", "expected an address, a tensor or None"),
    ],
)
def test_wrong_scalars_are_refused(load, dtype, value, message):
    llvm = {"int8": "i8", "uint8": "i8", "bool": "i1", "int32": "i32", "handle": "ptr"}
    ir = f"define i32 @f({llvm.get(dtype, 'double')} %x) {{\nret i32 0\n}}"
    with pytest.raises(TVMError, match=message):
        load(ir).function(FunctionSpec("f", (scalar("x", dtype),)))(value)


def test_numpy_and_bool_scalars_are_numbers(load):
    ir = "define i32 @f(i32 %x, ptr %out) {\nstore i32 %x, ptr %out\nret i32 0\n}"
    f = load(ir).function(FunctionSpec("f", (scalar("x", "int32"),), ret="int32"))
    assert [f(np.int64(3)), f(True), f(np.bool_(True)), f(nd.array(4))] == [3, 1, 1, 4]


def test_handles_take_addresses_and_arrays(load):
    ir = """
define i32 @f(ptr %x, ptr %out) {
  %i = ptrtoint ptr %x to i64
  store i64 %i, ptr %out
  ret i32 0
}
"""
    f = load(ir).function(FunctionSpec("f", (ParamSpec("handle", "x"),), ret="int64"))
    a, t, n = nd.array([1]), torch.ones(1), np.ones(1)
    assert f(None) == 0
    assert f(77) == 77
    assert f(a) == a._address
    assert f(t) == t.data_ptr()
    assert f(n) == n.ctypes.data


def test_float_encodings():
    assert encode_float(0.1, DataType("float32")) == 0.1
    assert encode_float(1.0, DataType("float8_e4m3fn")) == 0x38


def test_eight_threads_share_one_function(add):
    wrong = []

    def work(number):
        x, y = nd.array(ones(500, 2)), nd.empty((500, 2))
        for step in range(200):
            add(x, float(number + step), y)
            if y.numpy()[0, 0] != number + step + 1:
                wrong.append((number, step))

    threads = [threading.Thread(target=work, args=(1000 * i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_binder_checks_once_and_calls_often(add):
    x, y = nd.array(ones(2, 2)), nd.empty((2, 2))
    call = make_binder(add.spec, add.address, add)(x, 4.0, y)
    del x
    for _ in range(3):
        call()
    assert y.numpy()[0].tolist() == [5, 5]
    with pytest.raises(TypeError, match=r"expected 3 arguments"):
        add.bind(1)


def test_a_bound_call_keeps_its_code_alive(load):
    function = load("define i32 @f() {\nret i32 0\n}").function(FunctionSpec("f"))
    library = weakref.ref(function.library)
    call = function.bind()
    del function
    gc.collect()
    assert library() is not None
    call()
    del call
    gc.collect()
    assert library() is None


def test_unknown_codes_are_reported(load):
    f = load("define i32 @f() {\nret i32 -7\n}").function(FunctionSpec("f"))
    with pytest.raises(RuntimeFault, match=r"f: the compiled code failed with the unknown code -7"):
        f()
    with pytest.raises(TypeError, match=r"f: expected 0 arguments \(\), got 1"):
        f(1)
