import pickle

import pytest

from weft.runtime.device import CPU, Device, cpu, cuda, device, require_cpu
from weft.support.errors import IRValueError


def test_cpu_has_number_name_and_index():
    assert (cpu().device_type, cpu().device_id, cpu().index, cpu().type) == (1, 0, 0, "cpu")
    assert str(cpu(0)) == repr(cpu(0)) == "cpu:0"


@pytest.mark.parametrize("name", ["cpu", "llvm", "cpu:0", "c", 1, cpu(0)])
def test_device_of_every_spelling_is_the_cpu(name):
    assert device(name) == CPU
    assert hash(device(name)) == hash(CPU)


def test_device_number_comes_from_the_name_or_the_argument():
    assert device("cuda:1") == cuda(1) == device("cuda", 1)
    assert device("cuda", 1) != cuda(0)
    assert cpu() != "cpu:0"


def test_only_the_cpu_exists():
    assert cpu(0).exist
    assert not cuda(0).exist
    assert not cpu(1).exist


def test_device_survives_pickle():
    assert pickle.loads(pickle.dumps(cuda(3))) == cuda(3)


def test_unknown_device_lists_the_known_ones():
    with pytest.raises(ValueError, match=r"expected a device such as cpu, .* got 'tpu'"):
        device("tpu")
    with pytest.raises(ValueError, match=r"expected a device type of .* got 99"):
        Device(99)
    with pytest.raises(TypeError, match=r"expected a device name or number, got list"):
        device([])


def test_other_devices_cannot_be_used():
    with pytest.raises(NotImplementedError, match=r"expected a CPU device, got cuda:0"):
        require_cpu(cuda())
    with pytest.raises(NotImplementedError, match=r"expected device cpu:0, .* got cpu:1"):
        require_cpu(cpu(1))
    assert require_cpu(None) is CPU


@pytest.mark.parametrize("number", [-1, 1.5, "0", None])
def test_the_number_of_a_device_is_not_negative(number):
    """``cpu(-1)`` once existed, and held arrays."""
    with pytest.raises(IRValueError, match="expected the number of a device, 0 or more, got"):
        Device(1, number)


@pytest.mark.parametrize("name", ["cpu:-1", "cpu:²", "cpu:x", ":0", "", "cpu:0:1"])
def test_names_that_are_no_devices(name):
    with pytest.raises(IRValueError, match="expected a device such as cpu, cuda"):
        device(name)
