"""Module and Executable: named functions with their sources, what ``weft.build`` returns.

``Executable`` is the name of 0.20 for a built program; it is a Module too, so ``lib["f"]``,
``lib.mod["f"]``, ``lib.jit()["f"]`` and ``lib.f`` all work.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from weft.runtime.device import Device, require_cpu
from weft.runtime.registry import PackedFunc
from weft.runtime.timing import BenchmarkResult, Evaluator
from weft.support.errors import (
    IRAttributeError,
    IRValueError,
    UnsupportedError,
    wrong_type,
)
from weft.support.files import write_whole

__all__ = ["BenchmarkResult", "Executable", "Module", "system_lib"]

Source = str | Callable[[], str]


class MissingFunctionError(IRAttributeError, LookupError):
    """A module has no function of that name."""


class Module:
    """Functions by name.

    ``sources`` maps a format (``ll``, ``asm`` …) to its text, or to a function that makes it at the
    first wish; the first format is the default one. ``entry`` names what ``module(...)`` calls.
    ``exported`` gives the content of a file for ``load_module``.
    """

    def __init__(
        self,
        functions: Mapping[str, Callable[..., object]],
        *,
        type_key: str = "llvm",
        entry: str | None = None,
        sources: Mapping[str, Source] | None = None,
        imports: Sequence[Module] = (),
        exported: Callable[[], bytes] | None = None,
    ) -> None:
        self._functions = {
            name: function if isinstance(function, PackedFunc) else PackedFunc(function, name)
            for name, function in functions.items()
        }
        self._sources = dict(sources or {})
        self._imports = list(imports)
        self._exported = exported
        self.type_key = type_key
        self.entry_name = entry if entry is not None else self._default_entry()

    def _default_entry(self) -> str | None:
        for name in ("__tvm_main__", "main"):
            if name in self._functions:
                return name
        return next(iter(self._functions)) if len(self._functions) == 1 else None

    @property
    def functions(self) -> Mapping[str, PackedFunc]:
        """The functions of this module by name, without those of its imports."""
        return self._functions

    @property
    def imports(self) -> list[Module]:
        """The modules whose functions can be reached through this one."""
        return self._imports

    @property
    def imported_modules(self) -> list[Module]:
        """0.20's name of ``imports``."""
        return self._imports

    def import_module(self, module: Module) -> None:
        """Make the functions of ``module`` reachable through this one."""
        if not isinstance(module, Module):
            raise wrong_type("expected a runtime Module", module)
        self._imports.append(module)

    @property
    def format(self) -> str:
        """The default format of ``get_source``."""
        return next(iter(self._sources), "")

    @property
    def is_runnable(self) -> bool:
        """Whether functions can be called: always."""
        return True

    @property
    def entry_func(self) -> PackedFunc:
        """The function that calling the module calls."""
        if self.entry_name is None:
            raise IRValueError(
                "expected a module with an entry function (named main, or the only one), got one "
                f"with {self._names()}; pick one, as in module['name']"
            )
        return self.get_function(self.entry_name)

    def implements_function(self, name: str, query_imports: bool = False) -> bool:
        """Whether there is a function of that name."""
        return self._find(name, query_imports) is not None

    def get_function(self, name: str, query_imports: bool = False) -> PackedFunc:
        """The function of that name; of an imported module only if ``query_imports``."""
        function = self._find(name, query_imports)
        if function is None:
            nearest = difflib.get_close_matches(name, self._functions, n=1)
            hint = f"; did you mean {nearest[0]!r}?" if nearest else f"; it has {self._names()}"
            raise MissingFunctionError(f"Module has no function {name!r}{hint}")
        return function

    def _find(self, name: str, query_imports: bool) -> PackedFunc | None:
        if not isinstance(name, str):
            raise wrong_type("expected the name of a function", name)
        function = self._functions.get(name)
        if function is None and query_imports:
            for module in self._imports:
                function = module._find(name, True)
                if function is not None:
                    break
        return function

    def _names(self) -> str:
        names = sorted(self._functions)
        return ", ".join(names[:8]) + (" …" if len(names) > 8 else "") if names else "none"

    def __getitem__(self, name: str) -> PackedFunc:
        return self.get_function(name, query_imports=True)

    def __getattr__(self, name: str) -> PackedFunc:
        if name.startswith("_"):
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
        return self.get_function(name, query_imports=True)

    def __call__(self, *args: object) -> Any:
        return self.entry_func(*args)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._functions})

    def get_source(self, fmt: str = "") -> str:
        """The code in one format (``ll``: LLVM IR, ``asm``: assembly …); "" is the default one."""
        source = self._sources.get(fmt or self.format)
        if source is None:
            known = ", ".join(self._sources) or "none: this module keeps no source"
            raise IRValueError(f"expected a source format of {known}, got {fmt!r}")
        if not isinstance(source, str):
            source = self._sources[fmt or self.format] = source()
        return source

    def set_sources(self, sources: Mapping[str, Source]) -> None:
        """Say where the code in each format can be had."""
        self._sources = dict(sources)

    def inspect_source(self, fmt: str = "") -> str:
        """The name of ``get_source`` in newer releases."""
        return self.get_source(fmt)

    def time_evaluator(
        self,
        func_name: str,
        dev: Device | str | None = None,
        number: int = 10,
        repeat: int = 1,
        min_repeat_ms: int = 0,
        limit_zero_time_iterations: int = 100,
        cooldown_interval_ms: int = 0,
        repeats_to_cooldown: int = 1,
        cache_flush_bytes: int = 0,
        f_preproc: str = "",
    ) -> Evaluator:
        """A measuring function: called with the arguments, it returns a BenchmarkResult.

        Each of ``repeat`` times is the mean of ``number`` calls after one warm-up call; ``number``
        grows until a repeat takes ``min_repeat_ms``. A compiled function is timed without the
        checks of its wrapper.
        """
        require_cpu(dev)
        if cache_flush_bytes or f_preproc:
            raise UnsupportedError(
                "time_evaluator: cache_flush_bytes and f_preproc are not available yet"
            )
        return Evaluator(
            self.get_function(func_name, query_imports=True),
            number,
            repeat,
            min_repeat_ms,
            limit_zero_time_iterations,
            cooldown_interval_ms,
            repeats_to_cooldown,
        )

    def save(self, file_name: str, fmt: str = "") -> None:
        """Not available: ``export_library`` writes compiled modules."""
        raise UnsupportedError(
            f"cannot write {file_name!r}: save is not available; export_library writes a compiled "
            f"module, get_source({fmt!r}) gives the code"
        )

    def export_library(self, file_name: str, **kwargs: object) -> None:
        """Write the compiled functions to a file, which ``runtime.load_module`` reads.

        The file is weft's own, whatever its suffix; options for a linker (``fcompile``, ``cc``) are
        not needed. Raises UnsupportedError for a module that was not compiled by ``weft.build``.
        """
        del kwargs
        if self._exported is None:
            raise UnsupportedError(
                f"cannot write {str(file_name)!r}: expected a module that weft.build compiled, "
                f"found one of Python functions ({self._names()}); build the program where it runs"
            )
        write_whole(Path(file_name), self._exported(), durable=False)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(type_key={self.type_key!r}, functions=[{self._names()}])"


class Executable(Module):
    """A built program, ready to run: functions by name, or those of a module."""

    def __init__(
        self, functions: Module | Mapping[str, Callable[..., object]], **options: Any
    ) -> None:
        # None: itself. A reference to it would be a circle, which keeps code until a collection.
        self._of = functions if isinstance(functions, Module) else None
        if not isinstance(functions, Module):
            super().__init__(functions, **options)
            return
        of = functions
        super().__init__(
            of._functions, type_key=of.type_key, entry=of.entry_name, sources=of._sources,
            imports=of._imports, exported=of._exported,
        )  # fmt: skip

    @property
    def mod(self) -> Module:
        """The runtime module: the one that was given, or the executable itself."""
        return self if self._of is None else self._of

    def jit(self, **options: object) -> Executable:
        """The loaded program: the executable itself, whose code is in memory already."""
        del options
        return self


def system_lib(symbol_prefix: str = "") -> Module:
    """Not available: weft links no functions into the process."""
    del symbol_prefix
    raise UnsupportedError("a system library is not available: build the module in this process")
