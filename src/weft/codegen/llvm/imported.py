"""LLVM IR that a program brings with it (the annotation ``pragma_import_llvm`` of a loop).

A kernel that clang compiled from C is linked into the module that calls it by ``T.call_extern``,
so LLVM may inline it. Its functions are private to that module afterwards: the same kernel may be
imported by other parts of the program. As with any C function, what it does to memory is trusted.
"""

from __future__ import annotations

from collections.abc import Iterable
from types import ModuleType
from typing import Any, Final

from weft.codegen.llvm.worker import target_machine
from weft.ir.expr import StringImm
from weft.support.errors import CodegenError
from weft.support.llvm_binding import binding
from weft.target.host import LLVMOptions

IMPORT: Final = "pragma_import_llvm"
_PRIVATE: Final = frozenset({"internal", "private"})
_CONSTRUCTORS: Final = ("llvm.global_ctors", "llvm.global_dtors")


def import_text(value: object) -> str:
    """The LLVM IR of an annotation; CodegenError where it is none, such as a path."""
    text = value.value if isinstance(value, StringImm) else value
    if isinstance(text, str) and text.strip() and "\n" not in text.strip():
        raise CodegenError(
            f"{IMPORT}: expected the text of LLVM IR, got one line, {text!r:.80}; of a file write "
            "open(path).read()"
        )
    if not isinstance(text, str) or not text.strip():
        raise CodegenError(
            f"{IMPORT}: expected the text of LLVM IR, which tvm.contrib.clang.create_llvm makes of "
            f"C, got {text!r:.80}"
        )
    return text


def linked(text: str, imports: Iterable[str], options: LLVMOptions) -> str:
    """The LLVM IR ``text`` with the definitions of the imports in it.

    Raises CodegenError for an import that LLVM cannot read, that is for another processor, or of
    which a function is called with arguments of other types.
    """
    llvm = binding()
    machine = target_machine(llvm, *options[:4])
    with llvm.create_context() as context, llvm.parse_assembly(text, context) as module:
        module.triple, module.data_layout = machine.triple, str(machine.target_data)
        for item in imports:
            with _read(llvm, item, context) as part:
                _check_origin(part, machine.triple)
                part.triple, part.data_layout = module.triple, module.data_layout
                _link(module, part)
        return str(module)


def _read(llvm: ModuleType, text: str, context: object) -> Any:
    try:
        part = llvm.parse_assembly(text, context)
        try:
            part.verify()
        except RuntimeError:
            part.close()
            raise
        return part
    except RuntimeError as error:
        version = llvm.llvm_version_info[0]
        reason = str(error).strip().splitlines()[0][:200]
        raise CodegenError(
            f"{IMPORT}: LLVM {version} cannot read the imported LLVM IR: {reason}\n"
            f"give it what clang wrote, of a version up to {version}"
        ) from error


def _check_origin(part: Any, triple: str) -> None:
    """Refuse code for another processor."""
    made_for = part.triple.partition("-")[0]
    if made_for and made_for != triple.partition("-")[0]:
        raise CodegenError(
            f"{IMPORT}: the imported LLVM IR is for {part.triple}, the program for {triple}; "
            f"give clang the option --target={triple}"
        )


def _link(module: Any, part: Any) -> None:
    """Move the definitions of ``part`` into ``module`` and make them private to it."""
    defined = [
        item.name
        for item in (*part.functions, *part.global_variables)
        if not item.is_declaration and item.linkage.name not in _PRIVATE
    ]
    for name in defined:
        if name in _CONSTRUCTORS:
            raise CodegenError(
                f"{IMPORT}: the imported LLVM IR has code that runs when it is loaded (a C++ "
                "constructor of a global variable), which weft does not run; make it a function"
            )
        _check_use(module, part, name)
    try:
        module.link_in(part)
    except RuntimeError as error:
        reason = str(error).strip().splitlines()[0][:200]
        raise CodegenError(f"{IMPORT}: the imported LLVM IR does not link: {reason}") from error
    for name in defined:
        _global(module, name).linkage = "internal"


def _check_use(module: Any, part: Any, name: str) -> None:
    """Refuse arguments or a result of other types than those of the imported function."""
    try:
        used = _global(module, name)
    except NameError:
        return
    expected, given = str(_global(part, name).global_value_type), str(used.global_value_type)
    if expected != given:
        raise CodegenError(
            f"{name}: the imported function is {expected}, T.call_extern calls it as {given}; "
            "give T.call_extern the same types (a pointer is ptr, int is i32, float is float)"
        )


def _global(module: Any, name: str) -> Any:
    """A function or a variable by name; NameError where there is none."""
    try:
        return module.get_function(name)
    except NameError:
        return module.get_global_variable(name)
