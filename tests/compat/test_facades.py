"""Every name that a facade's table promises is there, and is what the table says."""

from __future__ import annotations

import importlib
import pkgutil
from types import ModuleType

import pytest

import weft
from weft.support.facade import MissingPackageError


def facades() -> list[str]:
    """The packages whose names are imported at first use."""
    packages = ["weft"] + [
        entry.name for entry in pkgutil.walk_packages(weft.__path__, "weft.") if entry.ispkg
    ]
    return [name for name in packages if "__getattr__" in vars(importlib.import_module(name))]


def tables() -> list[tuple[str, str, str]]:
    """``(package, name, target)`` of every table of the package."""
    found = []
    for package in facades():
        module = importlib.import_module(package)
        table = getattr(module, "_NAMES", None) or vars(module).get("NAMES")
        if isinstance(table, dict):
            found += [(package, name, str(target)) for name, target in table.items()]
    return found


@pytest.mark.parametrize(("package", "name", "target"), tables(), ids=lambda part: part)
def test_the_name_is_there(package, name, target):
    module, _, attribute = target.partition(":")
    try:
        found = getattr(importlib.import_module(package), name)
    except MissingPackageError as error:  # an extra that is not installed here
        pytest.skip(str(error))
    expected = getattr(importlib.import_module(module), attribute or name)
    assert found is expected
    if isinstance(found, ModuleType):
        assert attribute, f"{package}.{name} is the module of that name, not what it defines"


def test_dir_lists_the_names():
    assert {"build", "relax", "te", "IRModule", "install_as_tvm"} <= set(dir(weft))


@pytest.mark.parametrize("package", facades())
def test_what_dir_lists_is_there(package):
    module = importlib.import_module(package)
    missing = [name for name in dir(module) if not is_there(module, name)]
    assert missing == []


def is_there(module, name):
    try:
        return hasattr(module, name)
    except MissingPackageError:  # an extra that is not installed here
        return True
