"""Models compiled here for another system, linked by its C compiler, and run by an emulator."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import weft
from tests.backends.platforms import AARCH64, HASWELL, platform_params, run_exported
from tests.lib.small_networks import Bert, Cnn
from weft.support.errors import ArtifactTargetError

pytestmark = pytest.mark.torch
PLATFORMS = platform_params(AARCH64)
BOTH = platform_params(AARCH64, HASWELL)


@pytest.fixture(autouse=True)
def same_weights():
    torch.manual_seed(0)


def check(model, platform, folder, *inputs):
    """The exported model agrees with PyTorch to 1e-4."""
    model.eval()
    compiled = weft.compile(model, inputs, target=platform.target)
    with torch.no_grad():
        expected = model(*inputs)
    outputs = run_exported(compiled, platform, folder, *[x.numpy() for x in inputs])
    for found, wanted in zip(
        outputs, expected if isinstance(expected, tuple) else [expected], strict=True
    ):
        np.testing.assert_allclose(found, wanted.numpy(), atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("platform", BOTH)
def test_an_mlp(platform, tmp_path):
    model = torch.nn.Sequential(
        torch.nn.Linear(784, 128), torch.nn.ReLU(), torch.nn.Linear(128, 64), torch.nn.GELU(),
        torch.nn.Linear(64, 10), torch.nn.LogSoftmax(-1),
    )  # fmt: skip
    check(model, platform, tmp_path, torch.randn(33, 784))


@pytest.mark.parametrize("platform", BOTH)
def test_a_cnn(platform, tmp_path):
    check(Cnn(), platform, tmp_path, torch.randn(2, 1, 28, 28))


@pytest.mark.slow
@pytest.mark.parametrize("platform", PLATFORMS)
def test_resnet_18(platform, tmp_path):
    from tests.lib.zoo import import_torchvision

    resnet = import_torchvision().models.resnet18()
    check(resnet, platform, tmp_path, torch.randn(1, 3, 224, 224))


@pytest.mark.slow
@pytest.mark.parametrize("platform", PLATFORMS)
def test_bert(platform, tmp_path):
    check(Bert(), platform, tmp_path, torch.randint(0, 1000, (1, 128)))


def foreign(**options):
    """A small model for another system than this one."""
    model, x = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU()).eval(), torch.ones(2, 3)
    return weft.compile(model, x, target=AARCH64.target, **options), x


MESSAGE = (
    "this code is for aarch64-linux-gnu, and this process runs on .*: it cannot be called here; "
    "write the model with export_library .*copy that .*run it there"
)


def test_a_model_for_another_system_is_not_called_here():
    for _ in range(2):  # the second one comes from the cache
        model, x = foreign()
        for argument in (x, x.numpy()):
            with pytest.raises(ArtifactTargetError, match=MESSAGE):
                model(argument)
    with pytest.raises(ArtifactTargetError, match=MESSAGE):
        weft.relax.VirtualMachine(model, weft.cpu())["main"](x.numpy())


def test_its_file_is_refused_where_it_cannot_run(tmp_path):
    model, _ = foreign()
    model.save(tmp_path / "net.weft")
    with pytest.raises(ArtifactTargetError, match=r"for aarch64.* runs on .*; compile the model"):
        weft.load(tmp_path / "net.weft")


def test_constants_of_it_are_folded_here():
    x = torch.ones(2, 3)

    class Scaled(torch.nn.Module):
        def forward(self, x):
            return x + torch.arange(6.0).reshape(2, 3).exp()

    program = weft.compile(Scaled(), x, target=AARCH64.target).script()
    assert "exp" in program  # of the module as it was imported
    compiled = weft.compile(Scaled(), x, target=AARCH64.target)
    wanted = torch.arange(6.0).reshape(2, 3).exp().numpy()
    constants = [array.numpy() for array in compiled.program.constants]
    assert any(array.shape == (2, 3) and np.allclose(array, wanted) for array in constants)


def test_verify_lists_its_code_as_not_compared():
    model, _ = foreign(verify=True)
    assert "this code is for aarch64-linux-gnu" in str(model.verification)
