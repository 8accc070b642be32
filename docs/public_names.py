"""The reference's pages of public names, written from signatures and docstrings.

mkdocs calls ``on_files`` when it builds the site (``make site``); nothing of it is kept in the
tree. ``PACKAGES`` says which packages have a page. A public name is one that the package lists
(``__all__``, or ``dir`` of a facade), does not begin with an underscore and is weft's own.
"""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from types import ModuleType
from typing import Any, Final

PACKAGES: Final[dict[str, str]] = {
    "weft": "compile, build, load, tune, quantize; arrays, devices, errors",
    "weft.ir": "nodes, modules, equality, JSON",
    "weft.ir.transform": "passes and the pass context",
    "weft.ir.instrument": "observers of passes",
    "weft.arith": "bounds, simplification, integer sets",
    "weft.tir": "TensorIR: expressions, statements, functions",
    "weft.tir.transform": "passes over TensorIR",
    "weft.tir.analysis": "questions about TensorIR",
    "weft.tir.schedule": "schedules, traces, references",
    "weft.te": "tensor expressions",
    "weft.topi": "operators as tensor expressions",
    "weft.topi.nn": "those of neural networks",
    "weft.relax": "graphs: expressions, builder, virtual machine",
    "weft.relax.op": "operators of graphs",
    "weft.relax.op.nn": "those of neural networks",
    "weft.relax.op.image": "those of images",
    "weft.relax.transform": "passes over graphs",
    "weft.relax.analysis": "questions about graphs",
    "weft.relax.dpl": "patterns of graphs",
    "weft.relax.backend": "patterns of libraries",
    "weft.relax.frontend.nn": "models as Python classes",
    "weft.relax.frontend.torch": "the importer of PyTorch",
    "weft.relax.frontend.onnx": "the importer of ONNX",
    "weft.script": "TVMScript: reading and printing",
    "weft.script.tir": "what T. has",
    "weft.script.relax": "what R. has",
    "weft.script.ir": "what I. has",
    "weft.dlight": "default schedules",
    "weft.meta_schedule": "tuning, with TVM's names",
    "weft.target": "targets",
    "weft.runtime": "arrays, modules and models at run time",
    "weft.nd": "arrays",
    "weft.driver.pipeline": "pipelines, and places for passes of your own",
    "weft.codegen.backend": "what a backend is",
    "weft.testing": "for tests of your own",
}
"""Package -> what is in it."""

FOLDER: Final = "reference/names"
SECTION: Final = re.compile(r"(Args|Returns|Raises|Yields|Attributes|Requires|Note|Example)s?:$")


def public_names(package: str) -> dict[str, Any]:
    """The public names of a package and what they stand for, in the order of the alphabet."""
    module = importlib.import_module(package)
    listed = vars(module).get("__all__") or dir(module)
    values = {name: getattr(module, name, None) for name in sorted(listed) if name[0] != "_"}
    return {name: value for name, value in values.items() if is_ours(value)}


def is_ours(value: object) -> bool:
    """Whether a value is a function or a class that weft defines."""
    origin = getattr(value, "__module__", None) or ""
    return callable(value) and not isinstance(value, ModuleType) and origin.startswith("weft")


def page(package: str) -> str:
    """The page of a package, in Markdown."""
    parts = [f"# {package}\n\n{PACKAGES[package].capitalize()}.\n"]
    parts += [entry(package, name, value) for name, value in public_names(package).items()]
    return "\n".join(parts)


def entry(package: str, name: str, value: Any) -> str:
    """A name with its signature, its docstring and, of a class, its methods."""
    text = f"## {name}\n\n```text\n{package}.{name}{signature(value)}\n```\n\n{prose(value)}\n"
    return "\n".join([text, *methods(value)]) if inspect.isclass(value) else text


def methods(cls: type) -> Iterator[str]:
    """The public methods and properties that a class itself has, each with its docstring."""
    for name, member in vars(cls).items():
        function = member.fget if isinstance(member, property) else member
        function = getattr(function, "__func__", function)
        if name[0] != "_" and inspect.isfunction(function) and function.__doc__:
            call = "" if isinstance(member, property) else signature(function)
            yield f"**`{name}{call}`**\n\n{prose(function)}\n"


def signature(value: Any) -> str:
    """The signature on one line; empty where Python does not know it."""
    try:
        text = re.sub(r" at 0x[0-9a-f]+", "", str(inspect.signature(value)))
    except (TypeError, ValueError):
        return ""
    return re.sub(r"(: |-> )'([^']*)'", r"\1\2", text.replace("<object object>", "..."))


def prose(value: object) -> str:
    """The docstring of a value in Markdown."""
    lines = inspect.cleandoc(getattr(value, "__doc__", None) or "").split("\n")
    return "\n".join(markdown(lines))


def markdown(lines: list[str]) -> Iterator[str]:
    """A docstring's lines as Markdown's: examples fenced, arguments as a list."""
    at, in_section = 0, False
    while at < len(lines):
        line = lines[at]
        if line.lstrip().startswith(">>>"):
            end = end_of(lines, at, lambda text: not text.strip())
            yield from fenced("pycon", lines[at:end])
            at = end
        elif line.endswith("::"):
            end = end_of(lines, at + 1, lambda text: bool(text.strip()) and text[0] != " ")
            yield escaped(line[:-1]) if line.strip() != "::" else ""
            yield from fenced("text", lines[at + 1 : end])
            at = end
        else:
            at += 1
            in_section = (in_section or bool(SECTION.match(line))) and (
                not line or line[0] == " " or bool(SECTION.match(line))
            )
            yield in_list(line) if in_section else escaped(line)


def end_of(lines: list[str], start: int, is_end: Any) -> int:
    """The first line from ``start`` on that ends a block; the number of lines if none does."""
    return next((at for at in range(start, len(lines)) if is_end(lines[at])), len(lines))


def fenced(language: str, lines: list[str]) -> list[str]:
    """A block of code, without its own indentation."""
    code = inspect.cleandoc("\n".join(["", *lines]))
    return ["", f"```{language}", code, "```", ""]


def in_list(line: str) -> str:
    """A line of a section: its title, an item ``name: text``, or the rest of one."""
    if SECTION.match(line):
        return f"\n**{line[:-1]}**\n"
    name, colon, text = line.strip().partition(": ")
    is_item = line.startswith("    ") and line[4:5] not in ("", " ")
    if is_item and colon and " " not in name:
        return f"- `{name}`: {escaped(text)}"
    return escaped(line[4:])


def escaped(line: str) -> str:
    """A line of prose: code as Markdown writes it, nothing that reads as HTML or as a link."""
    parts = re.split(r"(``.+?``|`[^`]+`)", line)
    for at in range(0, len(parts), 2):
        parts[at] = re.sub(r"([<*\[])", r"\\\1", parts[at])
    parts[1::2] = [f"`{part.strip('`')}`" for part in parts[1::2]]
    return "".join(parts)


def index() -> str:
    """The page that lists the packages."""
    rows = [f"| [{package}]({package}.md) | {text} |" for package, text in PACKAGES.items()]
    head = ["# Public names", "", "Each from its docstring.", ""]
    return "\n".join([*head, "| package | what is there |", "|---|---|", *rows, ""])


def on_files(files: Any, config: Any) -> Any:
    """mkdocs' hook: adds the pages to the site."""
    from mkdocs.structure.files import File

    pages = {"index": index()} | {package: page(package) for package in PACKAGES}
    for name, text in pages.items():
        files.append(File.generated(config, f"{FOLDER}/{name}.md", content=text))
    return files
