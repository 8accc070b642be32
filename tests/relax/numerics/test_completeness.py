"""Every operator has a numerical row in a table of this folder and a reference, or a reason."""

import importlib.util
from pathlib import Path

import weft.relax.op  # noqa: F401 - registers the operators
from tests.lib.operator_cases import Table
from weft.ir.op import Op
from weft.relax.op.definition import FUNCTIONS
from weft.relax.op.lowering import legalisations
from weft.relax.reference.forms import FORMS

CALLS = "a call form; tests/relax/vm runs it"
MEMORY = "memory of the virtual machine; tests/relax/vm runs it"
EFFECT = "an effect or an object without a numerical result; tests/relax/vm runs it"
WORKERS = "runs on several workers, by functions that a program brings; ../op/test_ccl_rules.py"
COLLECTIVE = dict.fromkeys(
    ("ccl.allgather", "ccl.allreduce", "ccl.broadcast_from_worker0", "ccl.scatter_from_worker0"),
    WORKERS,
)  # fmt: skip
REASONS = {
    **COLLECTIVE,
    "call_builtin_with_ctx": CALLS, "call_dps_packed": CALLS, "call_inplace_packed": CALLS,
    "call_packed": CALLS, "call_pure_packed": CALLS, "call_tir": CALLS, "call_tir_inplace": CALLS,
    "call_tir_with_grad": CALLS, "invoke_closure": CALLS, "invoke_pure_closure": CALLS,
    "make_closure": CALLS, "builtin.alloc_tensor": MEMORY, "memory.alloc_storage": MEMORY,
    "memory.alloc_tensor": MEMORY, "memory.ensure_zero_offset": MEMORY,
    "memory.kill_storage": MEMORY, "memory.kill_tensor": MEMORY, "memory.view": MEMORY,
    "vm.alloc_storage": MEMORY, "vm.alloc_tensor": MEMORY, "vm.call_tir_dyn": MEMORY,
    "vm.kill_object": MEMORY, "assert_op": EFFECT, "print": EFFECT, "null_value": EFFECT,
    "builtin.stop_lift_params": EFFECT, "hint_on_device": EFFECT, "to_vdevice": EFFECT,
    "shape_of": EFFECT, "shape_to_tensor": EFFECT, "tensor_to_shape": EFFECT,
}  # fmt: skip


SHARDED = dict.fromkeys(
    (
        "dist.annotate_sharding", "dist.call_tir_local_view", "dist.redistribute",
        "dist.redistribute_replica_to_shard",
    ),
    "nothing places tensors on several devices yet",
)  # fmt: skip
NOT_LEGALIZED = {**SHARDED, "wrap_param": "ToMixedPrecision removes it"}
NO_REFERENCE = {**COLLECTIVE, **SHARDED}


def tabled():
    """The operators of all tables, by import of the files beside this one."""
    found = set()
    for path in sorted(Path(__file__).parent.glob("test_*.py")):
        if path.name == Path(__file__).name:
            continue
        spec = importlib.util.spec_from_file_location(f"numerics_{path.stem}", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        for value in vars(module).values():
            if isinstance(value, Table):
                found |= {case.op for case in value.cases}
    return found


def test_every_operator_has_a_row_or_a_reason():
    missing = sorted(set(FUNCTIONS) - tabled() - set(REASONS) - set(NOT_LEGALIZED))
    assert not missing, f"operators without a numerical row or a reason: {missing}"


def test_no_legalised_operator_hides_behind_a_reason():
    legalised = {op.name.removeprefix("relax.") for op in legalisations()} & set(FUNCTIONS)
    reasons = set(REASONS) - set(COLLECTIVE)
    assert not legalised & (reasons | set(NOT_LEGALIZED))
    assert not sorted(legalised - tabled() - set(COLLECTIVE))


def test_reasons_are_of_operators_that_exist():
    assert not set(REASONS) - set(FUNCTIONS)


def is_known(name):
    """Whether the operator has a numpy reference."""
    return name != "call_packed" and Op.get(f"relax.{name}").has_attr("numpy")


def test_every_operator_has_a_reference_a_form_of_the_interpreter_or_a_reason():
    calls = {"call_packed"}  # no operator: a call of an ExternFunc
    known = {name for name in FUNCTIONS if is_known(name)}
    forms = {name.removeprefix("relax.") for name in FORMS}
    missing = sorted(set(FUNCTIONS) - known - forms - set(NO_REFERENCE) - calls)
    assert not missing, f"operators without a numpy reference or a reason: {missing}"
    assert not known & set(NO_REFERENCE)
    assert not set(NO_REFERENCE) - set(FUNCTIONS)
