"""``CompareBeforeAfter``: a pass as a class with ``before``, ``transform`` and ``expected``."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from typing import Any, Final, TypeGuard, TypeVar

import pytest

from weft.ir.function import BaseFunc
from weft.ir.module import IRModule
from weft.ir.structural import assert_structural_equal
from weft.ir.transform import Pass
from weft.script.parser.entry import parse_definition
from weft.support.errors import wrong_type

SYMBOL: Final = "global_symbol"


class CompareBeforeAfter:
    """The base of tests that a pass turns ``before`` into ``expected``.

    - ``transform``: a pass, or a method or fixture that gives a pass or a function of modules;
    - ``before``: a function or module, a method or fixture that gives one, or the bare text of one:
      a function without a decorator is read as TensorIR, a class as a module, whose functions may
      lack decorators, too (they are then independent TensorIR functions);
      ``Before`` and ``Expected`` mean the same;
    - ``expected``: the same, or an exception class that the pass must raise.
    """

    transform: Any
    check_well_formed = True

    def __init_subclass__(cls) -> None:
        """Make fixtures of the three attributes that the class itself defines."""
        own = dict(cls.__dict__)
        for name in ("Before", "before", "Expected", "expected"):
            if name in own:
                setattr(cls, name.lower(), _program(own[name]))
        if "transform" in own:
            cls.transform = _transform(own["transform"])

    _normalize_before = classmethod(lambda cls, given: _program(given))
    _normalize_expected = _normalize_before
    _normalize_transform = classmethod(lambda cls, given: _transform(given))

    def test_compare(self, before: IRModule | BaseFunc, expected: Any, transform: object) -> None:
        """Run the pass and compare."""
        run = _applied(transform)
        if isinstance(expected, type) and issubclass(expected, Exception):
            with pytest.raises(expected):
                run(before)
            return
        after = run(before)
        if isinstance(after, BaseFunc) and isinstance(expected, BaseFunc):
            after, expected = after.with_attr(SYMBOL, "main"), expected.with_attr(SYMBOL, "main")
        try:
            assert_structural_equal(after, expected)
        except ValueError as error:
            texts = [f"{error}"]
            for name, program in (("before", before), ("after", after), ("expected", expected)):
                texts.append(f"# {name}\n{program.script()}")
            raise AssertionError("\n\n".join(texts)) from None


Program = TypeVar("Program")


def _is_fixture(value: object) -> bool:
    return type(value).__name__ == "FixtureFunctionDefinition" or hasattr(
        value, "_pytestfixturefunction"
    )


def _is_method(value: object) -> TypeGuard[Callable[..., object]]:
    return inspect.isfunction(value) and "self" in inspect.signature(value).parameters


def _program(given: object) -> object:
    """A fixture that gives the program, or the exception class."""
    if _is_fixture(given):
        return given
    if _is_method(given):

        @functools.wraps(given)
        def named(*args: object, **kwargs: object) -> object:
            return _named(given(*args, **kwargs))

        return pytest.fixture(named)

    def value(self: CompareBeforeAfter) -> object:
        if isinstance(given, IRModule | BaseFunc):
            return _named(given)
        if inspect.isclass(given) and issubclass(given, Exception):
            return given
        if inspect.isclass(given):
            methods = _undecorated(given)
            if methods:
                return _module_of(given, methods, self.check_well_formed)
        if inspect.isclass(given) or inspect.isfunction(given):
            token = "ir" if inspect.isclass(given) else "tir"
            check = self.check_well_formed
            return _named(parse_definition(given, sys._getframe(), token, {}, check))
        raise wrong_type(
            "CompareBeforeAfter: expected a function, a module or the text of one", given
        )

    return pytest.fixture(value)


def _undecorated(given: type) -> list[str]:
    """The names of functions in a class's body that have no decorator of weft."""
    return [name for name, value in vars(given).items() if inspect.isfunction(value)]


def _module_of(given: type, methods: list[str], check: bool) -> IRModule:
    """A module of bare TensorIR functions (and of any finished ones between them)."""
    functions: dict[str, BaseFunc] = {}
    for name, value in vars(given).items():
        if name in methods:
            function = parse_definition(value, sys._getframe(), "tir", {}, check)
        elif isinstance(value, BaseFunc):
            function = value
        else:
            continue
        functions[name] = function.with_attr(SYMBOL, name)
    return IRModule(functions)


def _named(program: Program) -> Program:
    """Rename a function that is called by its role in the class (``before``) to ``main``."""
    if isinstance(program, BaseFunc) and program.attrs.get(SYMBOL) in ("before", "expected"):
        return program.with_attr(SYMBOL, "main")
    return program


def _transform(given: object) -> object:
    """A fixture that gives the pass or function of modules."""
    if _is_fixture(given):
        return given
    if _is_method(given):
        return pytest.fixture(given)
    return pytest.fixture(lambda self: given)


def _applied(transform: object) -> Callable[[Any], Any]:
    """Apply the pass to a module, or to a single function as a module of one function."""
    if not isinstance(transform, Pass) and not callable(transform):
        raise wrong_type("transform: expected a pass", transform)

    def run(program: IRModule | BaseFunc) -> Any:
        if not isinstance(program, BaseFunc):
            return transform(program)
        return transform(IRModule({"main": program}))["main"]

    return run
