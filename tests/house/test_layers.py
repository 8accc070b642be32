"""Import levels (the design's table), import cycles, and the slots as the only upward calls.

Every import statement counts, inside functions and under TYPE_CHECKING too. A room is one entry
of LEVEL; a module imports from its own room and from rooms of lower levels.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.lib.syntax import nodes_of

# The longest matching prefix decides. Several prefixes that form one room share its name.
LEVEL: dict[str, tuple[int, str]] = {
    "weft.support": (0, "support"),
    "weft.error": (0, "support"),
    "weft.__main__": (11, "cli"),
    "weft.backends.cpu.isa": (0, "instruction sets"),  # data alone
    "weft.backends.cpu.device": (1, "runtime"),  # what its protocol DeviceAPI has first
    "weft.backends.cpu.vectors": (5, "cpu vectors"),
    "weft.backends": (9, "backends"),
    "weft.data": (1, "data"),
    "weft.runtime": (1, "runtime"),
    "weft.nd": (1, "runtime"),
    "weft.random": (1, "runtime"),
    "weft.ir": (1, "ir"),
    "weft.target": (2, "target"),
    "weft.tir.expr": (2, "tir expressions"),
    "weft.tir.op": (2, "tir expressions"),
    "weft.tir.access": (2, "tir expressions"),
    "weft.tir.arithmetic": (2, "tir expressions"),
    "weft.tir.constant": (2, "tir expressions"),
    "weft.tir.buffer": (2, "tir expressions"),
    "weft.tir.device_intrinsic": (2, "tir expressions"),
    "weft.tir.intrinsic": (2, "tir expressions"),
    "weft.tir.linear_difference": (2, "tir expressions"),
    "weft.arith": (3, "arith"),
    "weft.tir": (4, "tir"),
    "weft.te": (5, "te"),
    "weft.tir.schedule": (5, "schedule"),
    "weft.topi": (6, "topi"),
    "weft.relax": (7, "relax"),
    "weft.relax.transform": (8, "relax transform"),
    "weft.relax.backend": (8, "relax transform"),
    "weft.relax.reference": (8, "relax transform"),
    "weft.script": (8, "script"),
    "weft.codegen": (8, "codegen"),
    "weft.relax.vm": (9, "relax vm"),
    "weft.relax.frontend": (9, "frontend"),
    "weft.relax.frontend.onnx.backend": (10, "driver"),  # builds and runs what it imports
    "weft.relax.testing": (9, "relax testing"),
    "weft.dlight": (6, "dlight"),
    "weft.tensor_intrin": (10, "tensor_intrin"),
    "weft.driver": (10, "driver"),
    "weft.cli": (11, "cli"),
    "weft.compat": (11, "compat"),
    "weft.dynamo": (11, "torch backend"),
    "weft.meta_schedule": (11, "meta_schedule"),
    "weft.testing": (11, "testing"),
    "weft.viz": (10, "driver"),  # records what the driver does
}
# Outside of the levels: one table of names each (weft/support/facade.py), nothing else executed.
FACADES = {
    "weft", "weft.ir", "weft.tir", "weft.relax", "weft.script", "weft.arith", "weft.dlight",
    "weft.dlight.cpu", "weft.tensor_intrin.arm_cpu", "weft.tensor_intrin.x86",
    "weft.relax.frontend", "weft.relax.frontend.torch",
}  # fmt: skip
# Rooms that are users of weft themselves, and so speak to it through its facades.
FACADE_USERS = {"cli"}
# Late-bound references to higher rooms: slot name -> the module that fills it.
SLOTS = {
    "text": "weft.script.printer",
    "backend_of": "weft.codegen.backend",
    "package_writer": "weft.codegen.backend",
    "plugin_kind": "weft.codegen.backend",
    "operators": "weft.tir.op",
    "relax_operators": "weft.relax.op",
    "evaluate": "weft.driver.evaluate",
    "relax_build": "weft.driver.build",
    "prim_func_info": "weft.relax.ir.prim_func_info",
    "reference": "weft.relax.reference.verify",
    "legacy": "weft.compat.adapt",
    "old_attributes": "weft.compat.spellings",
    "module_json": "weft.tir.array_json",
    "tell_tools": "weft.runtime.native.debugging.tell",
    "written_with_lines": "weft.backends.cpu.lines",
    "pass_names": "weft.driver.pass_names",
    "picture": "weft.viz.stored",
    "torch_fallback": "weft.relax.frontend.torch.fallback",
}


def place(module: str) -> tuple[int, str] | None:
    """Level and room of a module: the entry with the longest matching prefix."""
    parts = module.split(".")
    for length in range(len(parts), 1, -1):
        found = LEVEL.get(".".join(parts[:length]))
        if found is not None:
            return found
    return None


def imports(source, modules) -> Iterator[tuple[str, int, bool]]:
    """(imported first-party module, line, whether only for the type checker) of one file."""
    checked_only = {
        id(inner)
        for node in nodes_of(source.tree)
        if isinstance(node, ast.If)
        and "TYPE_CHECKING" in source.text
        and ast.unparse(node.test).endswith("TYPE_CHECKING")
        for inner in ast.walk(node)
    }
    for node in nodes_of(source.tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names = [
                submodule
                if (submodule := f"{node.module}.{alias.name}") in modules
                else node.module
                for alias in node.names
            ]
        else:
            continue
        for name in names:
            if name == "weft" or name.startswith("weft."):
                yield name, node.lineno, id(node) in checked_only


def test_every_module_has_a_level(weft_sources):
    lost = [
        s.module for s in weft_sources
        if s.module not in FACADES and place(s.module) is None
    ]  # fmt: skip
    assert not lost, f"not in LEVEL (give them one, by the design's table): {lost}"


def test_modules_import_only_from_lower_levels(weft_sources):
    modules = {s.module for s in weft_sources}
    wrong = []
    for source in weft_sources:
        if source.module in FACADES or place(source.module) is None:
            continue
        level, room = place(source.module)
        for name, line, _ in imports(source, modules):
            where = f"{source.path}:{line}: "
            if name in FACADES:
                if room not in FACADE_USERS:
                    wrong.append(f"{where}imports the facade {name}; name the defining module")
            elif place(name) is None:
                wrong.append(f"{where}{name} has no level")
            elif place(name)[1] != room and place(name)[0] >= level:
                their_level, their_room = place(name)
                wrong.append(
                    f"{where}{room} ({level}) imports {name} of {their_room} ({their_level})"
                )
    assert not wrong, "\n" + "\n".join(wrong)


def test_facades_hold_only_their_table(weft_sources):
    allowed = {"weft.support.facade", "weft.support.slots"}
    modules = {s.module for s in weft_sources}
    wrong = []
    for source in weft_sources:
        if source.module in FACADES:
            wrong += [
                f"{source.path}:{line}: a facade imports {name} at run time"
                for name, line, checked_only in imports(source, modules)
                if not checked_only and name not in allowed
            ]
    assert not wrong, "\n" + "\n".join(wrong)


def test_no_import_cycles(weft_sources):
    modules = {s.module for s in weft_sources}
    graph = {
        s.module: {name for name, _, checked_only in imports(s, modules) if not checked_only}
        for s in weft_sources
        if s.module not in FACADES
    }
    cycles = [sorted(c) for c in strong_components(graph) if len(c) > 1]
    assert not cycles, f"import cycles: {cycles}"


def test_only_facades_import_for_the_type_checker_alone(weft_sources):
    """A module that names a type imports it: what is above speaks to it by a Protocol below."""
    modules = {s.module for s in weft_sources}
    wrong = [
        f"{source.path}:{line}: {name}"
        for source in weft_sources if not source.is_package
        for name, line, checked_only in imports(source, modules) if checked_only
    ]  # fmt: skip
    assert not wrong, "\n" + "\n".join(wrong)


def test_tests_import_no_test_module(sources):
    """What two of them share lies in tests/lib: a module of tests may be skipped as a whole."""
    wrong = [
        f"{source.path}:{node.lineno}: {node.module}; move what is shared to tests/lib"
        for source in sources
        for node in nodes_of(source.tree)
        if isinstance(node, ast.ImportFrom) and node.module
        and node.module.startswith("tests.") and ".test_" in node.module
    ]  # fmt: skip
    assert not wrong, "\n" + "\n".join(wrong)


LATE_IMPORTS = {
    "weft.cli": "a command loads what it needs, and engines that may not be installed",
    "weft.codegen.backend": "a backend is named in a table, or by a plug-in",
    "weft.compat": "names of other years are rows of a table",
    "weft.driver.sources": "an importer is loaded for the first model of its kind",
    "weft.ir.json_text": "a file names classes, which lie in weft",
    "weft.ir.node": "JSON imports nodes",
    "weft.ir.reflection": "files name the classes of nodes",
    "weft.meta_schedule.kinds": "a part of tuning is named by its kind",
    "weft.relax.frontend.nn.torch": "PyTorch may not be installed",
    "weft.relax.frontend.onnx.operators": "a family of converters is loaded when it is asked for",
    "weft.relax.op": "operators that need more than relax has",
    "weft.runtime.device_api": "a device is named in a table, or by a plug-in",
    "weft.script.ir_builder": "builders of a dialect ask for its operators by name",
    "weft.script.parser.text_names": "what a text may name is a table",
    "weft.support.facade": "a facade is a table of names",
    "weft.support.plugins": "a plug-in is another package",
    "weft.support.slots": "a slot is filled by its owner",
}
"""Modules and packages that import by name, which no level sees, each with its reason."""


def test_only_tables_import_by_name(weft_sources):
    by_name = set()
    for source in weft_sources:
        for node in nodes_of(source.tree):
            if (
                isinstance(node, ast.Call)
                and ast.unparse(node.func) in ("importlib.import_module", "__import__")
            ):  # fmt: skip
                by_name.add(source.module)
    allowed = {
        module: name for module in by_name for name in LATE_IMPORTS
        if module == name or module.startswith(f"{name}.")
    }  # fmt: skip
    assert by_name == set(allowed), f"import statements do: {sorted(by_name - set(allowed))}"
    assert set(LATE_IMPORTS) == set(allowed.values()), "no such import any more: delete its line"


def test_slots_are_the_listed_ones_and_each_is_filled_by_its_owner(weft_sources):
    by_module = {s.module: s for s in weft_sources}
    declared = {}
    for node in nodes_of(by_module["weft.support.slots"].tree):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id == "Slot"
        ):
            name, owner = (argument.value for argument in node.args)
            declared[name] = owner
    assert declared == SLOTS
    for source in weft_sources:
        for node in nodes_of(source.tree):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr == "fill"
                and ast.unparse(node.func.value).startswith("slots.")
            ):
                name = ast.unparse(node.func.value).removeprefix("slots.")
                assert name in SLOTS, f"{source.path}:{node.lineno}: no slot {name}"
                owner = SLOTS[name]
                inside = source.module == owner or source.module.startswith(f"{owner}.")
                assert inside, f"{source.path}:{node.lineno}: {name} is filled by {owner} alone"


def strong_components(graph: dict[str, set[str]]) -> list[set[str]]:
    """Tarjan's strongly connected components, without recursion."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[set[str]] = []
    for start in graph:
        if start in index:
            continue
        work = [(start, iter(sorted(graph[start])))]
        index[start] = low[start] = len(index)
        stack.append(start)
        while work:
            node, edges = work[-1]
            target = next(edges, None)
            if target is None:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    component = set(stack[stack.index(node) :])
                    del stack[stack.index(node) :]
                    found.append(component)
            elif target in graph and target not in index:
                index[target] = low[target] = len(index)
                stack.append(target)
                work.append((target, iter(sorted(graph[target]))))
            elif target in stack:
                low[node] = min(low[node], index[target])
    return found


def test_strong_components_finds_a_cycle_and_only_that():
    graph = {"a": {"b"}, "b": {"c"}, "c": {"b", "d"}, "d": set(), "e": {"a"}}
    assert sorted(map(sorted, strong_components(graph))) == [["a"], ["b", "c"], ["d"], ["e"]]
