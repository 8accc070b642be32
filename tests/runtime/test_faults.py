import pytest

from weft.runtime import faults
from weft.runtime.call.abi import FaultKind
from weft.runtime.call.spec import FunctionSpec, ParamSpec
from weft.support.errors import RuntimeFault


@pytest.mark.parametrize(
    ("kind", "error"),
    [
        (FaultKind.ASSERTION, RuntimeFault), (FaultKind.INDEX, IndexError),
        (FaultKind.ALLOCATION, MemoryError), (FaultKind.DIVISION, ZeroDivisionError),
    ],
)  # fmt: skip
def test_native_code_raises_every_kind(load, kind, error):
    text = "β: index {a} is not below {b}"
    raw = text.encode()
    escaped = "".join(f"\\{byte:02x}" for byte in raw)
    ir = f"""
@text = private constant [{len(raw) + 1} x i8] c"{escaped}\\00"
define i32 @f(i64 %i) {{
  %code = call i32 @weft_raise(i32 {kind.value}, ptr @text, i64 %i, i64 10)
  ret i32 %code
}}
"""
    f = load(ir).function(FunctionSpec("f", (ParamSpec("scalar", "i", "int64"),)))
    with pytest.raises(error, match=r"β: index 33 is not below 10") as caught:
        f(33)
    assert isinstance(caught.value, RuntimeFault)
    with pytest.raises(error, match=r"index -1 is"):
        f(-1)


def test_codes_are_fresh_and_pop_once():
    first, second = ValueError("a"), ValueError("b")
    one, two = faults.store_fault(first), faults.store_fault(second)
    assert one != two
    assert one > 0
    assert faults.pop_fault(two, "f") is second
    assert faults.pop_fault(one, "f") is first
    assert "f: the compiled code failed with the unknown code" in str(faults.pop_fault(one, "f"))


def test_faults_that_nobody_pops_are_bounded():
    codes = [faults.store_fault(ValueError(str(i))) for i in range(3000)]
    assert len(faults._pending) <= faults._KEPT
    assert str(faults.pop_fault(codes[-1], "f")) == "2999"


def test_braces_of_a_users_message_stay():
    assert str(faults.make_fault(0, "{x} and {a}", 1)) == "{x} and 1"
