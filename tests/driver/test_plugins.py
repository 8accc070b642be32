"""A package outside of weft: built, installed, found by its entry points, and used."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PACKAGE = Path(__file__).with_name("acme_weft")


@pytest.fixture(scope="session")
def site(tmp_path_factory) -> Path:
    """A folder in which pip has installed the package."""
    folder = tmp_path_factory.mktemp("plugin")
    shutil.copytree(PACKAGE, folder / "source")
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "-q", "--no-build-isolation", "--no-deps",
         "--no-index", "--disable-pip-version-check", "--target", folder / "site",
         folder / "source"],
        check=True, capture_output=True, timeout=600,
    )  # fmt: skip
    return folder / "site"


def run(arguments: list[str], site: Path, **environment: str) -> subprocess.CompletedProcess:
    """Run Python in a process that finds the package, as after an installation."""
    folders = [str(site), str(site.parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    return subprocess.run(
        [sys.executable, *arguments],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(folders), **environment},
        capture_output=True, text=True, check=False, timeout=600,
    )  # fmt: skip


def run_program(program: str, site: Path, **environment: str) -> subprocess.CompletedProcess:
    """Run a program from a file, so that scripts in it have a source."""
    file = site.parent / "program.py"
    file.write_text(program, encoding="utf-8")
    return run([str(file)], site, **environment)


def told(program: str, site: Path, **environment: str) -> Any:
    """What a program prints as JSON."""
    done = run_program(program, site, **environment)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


USE = """
import json, sys
import numpy as np
import weft
from weft import relax
from weft.driver import pipeline
from weft.script import ir as I, relax as R

loaded = [name for name in sys.modules if name.startswith("acme_weft")]

@I.ir_module
class Net:
    @R.function
    def main(x: R.Tensor((64,), "float32")) -> R.Tensor((64,), "float32"):
        with R.dataflow():
            y = R.nn.relu(R.acme.soft_sign(x))
            R.output(y)
        return y

x = np.linspace(-3, 3, 64, dtype="float32")
wanted = np.maximum(x / (1 + np.abs(x)), 0)
step = pipeline.insert(after="FuseTIR", pass_="acme.CountCalls")
rule = pipeline.insert(before="Default", pass_="acme.Serial")
errors = [float(np.abs(weft.compile(Net)(x) - wanted).max())]
from acme_weft import passes, schedules
seen, counts = len(schedules.SEEN), list(passes.COUNTS)
pipeline.remove(rule), pipeline.remove("acme.CountCalls")
errors.append(float(np.abs(weft.compile(Net)(x) - wanted).max()))
after = len(schedules.SEEN)
errors.append(float(np.abs(weft.compile(Net, target="acme")(x) - wanted).max()))
by_target = schedules.SEEN[after:]
print(json.dumps({
    "loaded": loaded, "errors": errors, "seen": seen, "counts": counts, "after": after,
    "by_target": by_target, "kinds": weft.target.Target.list_kinds(),
}))
"""


def test_an_operator_a_pass_a_rule_and_a_target_of_a_package_are_used(site):
    found = told(USE, site, WEFT_NO_CACHE="1")
    assert found["loaded"] == []  # nothing before it is asked for
    assert max(found["errors"]) < 1e-6
    assert (found["seen"], found["counts"], found["after"]) == (1, [1], 1)
    assert set(found["by_target"]) == {"acme"}
    assert "acme" in found["kinds"]


@pytest.mark.parametrize("name", ["acme.soft_sign", "nn.soft_sign"])
def test_an_operator_of_a_package_is_in_relax_op(site, tmp_path, name):
    folder = tmp_path / "site"
    shutil.copytree(site, folder)
    file = folder / "acme_weft/operators.py"
    file.write_text(file.read_text().replace("relax.acme.soft_sign", f"relax.{name}"))
    program = f"""
import json, sys
from weft import relax
loaded = "acme_weft" in sys.modules
print(json.dumps([loaded, relax.op.{name}.__module__]))
"""
    assert told(program, folder) == [False, "acme_weft.operators"]


def test_an_entry_point_may_be_a_pass_itself(site, tmp_path):
    shutil.copytree(site, tmp_path / "site")
    with (tmp_path / "site/acme_weft/passes.py").open("a") as file:
        file.write("\ncount_calls = count_calls()\n")
    program = """
import json
from weft.driver import pipeline
print(json.dumps(pipeline.insert(after="FuseTIR", pass_="acme.CountCalls").info.name))
"""
    assert told(program, tmp_path / "site") == "acme.CountCalls"


CACHED = """
import json
import weft
from weft.codegen.cache import cache_folder
from weft.driver import pipeline
from weft.script import ir as I, relax as R

@I.ir_module
class Net:
    @R.function
    def main(x: R.Tensor((64,), "float32")) -> R.Tensor((64,), "float32"):
        with R.dataflow():
            y = R.acme.soft_sign(x)
            R.output(y)
        return y

def entries():
    folder = cache_folder("models")
    return len(list(folder.iterdir())) if folder.exists() else 0

counts = []
def compiled(**options):
    for _ in range(2):
        weft.compile(Net, **options)
    counts.append(entries())

compiled()
step = pipeline.insert(after="FuseTIR", pass_="acme.CountCalls")
compiled()
rule = pipeline.insert(before="Default", pass_="acme.Serial")
compiled()
pipeline.remove(step), pipeline.remove(rule)
compiled()
compiled(target="acme")
from acme_weft import passes
print(json.dumps([counts, len(passes.COUNTS)]))
"""


def test_what_is_inserted_is_part_of_the_key_of_models(site, tmp_path):
    counts, runs = told(CACHED, site, WEFT_CACHE_DIR=str(tmp_path))
    assert counts == [1, 2, 3, 3, 4]  # each a model of its own, found again the second time
    assert runs == 2
    other = tmp_path / "site"
    shutil.copytree(site, other)
    with (other / "acme_weft/schedules.py").open("a") as file:
        file.write("\n# changed\n")
    counts, runs = told(CACHED, other, WEFT_CACHE_DIR=str(tmp_path))
    assert counts == [5, 6, 7, 7, 8]  # another package: none of the old ones


def broken(site: Path, folder: Path, module: str) -> Path:
    """The package with a module that fails when it is imported."""
    shutil.copytree(site, folder / "site")
    (folder / "site/acme_weft" / f"{module}.py").write_text("import no_such_package\n")
    return folder / "site"


@pytest.mark.parametrize(
    ("module", "program", "name"),
    [
        ("target", "weft.target.Target('acme')", "'acme' of acme-weft 1.0 (weft.targets: "),
        ("operators", "weft.ir.Op.get('relax.acme.soft_sign')", "(weft.operators: "),
        ("passes", "pipeline.insert(after='FuseTIR', pass_='acme.CountCalls')",
         "'acme.CountCalls' of acme-weft 1.0 (weft.passes: "),
    ],
)  # fmt: skip
def test_a_broken_plugin_is_named(site, tmp_path, module, program, name):
    whole = f"import weft\nfrom weft.driver import pipeline\n{program}"
    done = run_program(whole, broken(site, tmp_path, module))
    last = done.stderr.splitlines()[-1]
    assert "PluginError: the plug-in " in last
    assert name in last
    assert "No module named 'no_such_package'; mend or uninstall its package" in last


def test_a_module_that_fails_after_it_registered_tells_its_first_failure_again(site, tmp_path):
    shutil.copytree(site, tmp_path / "site")
    with (tmp_path / "site/acme_weft/operators.py").open("a") as file:
        file.write("import no_such_package\n")
    program = """
import json, weft
told = []
for _ in range(2):
    try:
        weft.ir.Op.get("relax.acme.other")
    except ImportError as error:
        told.append(str(error))
print(json.dumps(told))
"""
    first, second = told(program, tmp_path / "site")
    assert "cannot be loaded: ModuleNotFoundError: No module named 'no_such_package'; mend" in first
    assert "is already registered" in second
    assert "(the first time: ModuleNotFoundError: No module named 'no_such_package')" in second


def test_a_plugin_that_gives_no_pass_is_refused(site, tmp_path):
    shutil.copytree(site, tmp_path / "site")
    [entries] = (tmp_path / "site").glob("acme_weft-*/entry_points.txt")
    text = entries.read_text().replace("acme_weft.passes:count_calls", "acme_weft.passes")
    entries.write_text(text.replace("acme_weft.schedules:Serial", "acme_weft.operators:soft_sign"))
    program = """
import json
from weft.driver import pipeline
told = []
for name in ("acme.CountCalls", "acme.Serial"):
    try:
        pipeline.insert(after="FuseTIR", pass_=name)
    except ImportError as error:
        told.append(str(error))
print(json.dumps(told))
"""
    module, operator = told(program, tmp_path / "site")
    assert "is the module acme_weft.passes; name a pass of it: 'acme_weft.passes:name'" in module
    assert "called without arguments; missing a required argument: 'x'" in operator


def test_what_does_not_need_a_broken_plugin_works(site, tmp_path):
    folder = broken(site, tmp_path, "operators")
    program = "import weft; print(weft.target.Target('llvm').kind, weft.relax.op.add)"
    assert run_program(program, folder).stdout.split()[0] == "llvm"


def test_kinds_of_plugins_are_listed_before_they_are_loaded(site):
    program = """
import json, sys, weft
try:
    weft.target.Target("acmee")
except ValueError as error:
    print(json.dumps([str(error), weft.target.Target.list_kinds(), "acme_weft" in sys.modules]))
"""
    message, kinds, is_loaded = told(program, site)
    assert "did you mean acme" in message
    assert "acme" in kinds
    assert not is_loaded


def test_a_target_that_is_no_backend_is_refused(site, tmp_path):
    shutil.copytree(site, tmp_path / "site")
    (tmp_path / "site/acme_weft/target.py").write_text("class BACKEND: kind = None\n")
    done = run_program("import weft; weft.target.Target('acme')", tmp_path / "site")
    assert "PluginError: the plug-in 'acme' of weft.targets is no backend" in done.stderr
    assert "it has no features, options, graph, lower, schedules, emit" in done.stderr


@pytest.mark.torch
def test_a_converter_of_a_package_imports_an_operator_of_torch(site):
    program = """
import json, torch, weft

@torch.library.custom_op("acme::soft_sign", mutates_args=())
def soft_sign(x: torch.Tensor) -> torch.Tensor:
    return x / (1 + x.abs())

soft_sign.register_fake(lambda x: torch.empty_like(x))

class Net(torch.nn.Module):
    def forward(self, x):
        return torch.ops.acme.soft_sign(x) * 2

x = torch.linspace(-2, 2, 7)
print(json.dumps(float((weft.compile(Net(), (x,))(x) - Net()(x)).abs().max())))
"""
    assert told(program, site, WEFT_NO_CACHE="1") < 1e-6


def test_the_command_line_takes_modules_that_register(site):
    (site.parent / "mine.py").write_text(
        "from weft.driver import pipeline\n"
        "pipeline.insert(after='FuseTIR', pass_='acme.CountCalls')\n"
        "print('registered')\n"
    )
    done = run(["-m", "weft", "doctor", "--plugin", "mine"], site)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("registered\n")
    done = run(["-m", "weft", "doctor", "--plugin", "nothing"], site)
    assert done.returncode == 2
    assert "weft: the plug-in 'nothing' cannot be imported: ModuleNotFoundError" in done.stderr
