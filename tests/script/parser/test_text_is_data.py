"""A text is data: whatever it says, parsing has no effects, ends soon, and fails as a TVMError."""

from __future__ import annotations

import types
from typing import Any

import numpy as np
import pytest

from weft.ir.functor import collect
from weft.ir.node import Node
from weft.ir.structural import structural_equal
from weft.runtime.ndarray import NDArray
from weft.script import from_source
from weft.script import tir as T
from weft.script.parser.scope import PLAIN_BUILTINS
from weft.script.parser.text_evaluator import FORBIDDEN, METHODS, STATIC, allowed_attribute
from weft.script.parser.text_names import Namespace, namespaces, relax_nodes, tir_names
from weft.support.errors import DiagnosticError, TVMError
from weft.tir.expr import Mul

PROGRAM = '\n@T.prim_func\ndef f(A: T.Buffer((1,), "int32")):\n    A[0] = 1\n'

ESCAPES = {
    "a module below the package": "weft.codegen.cache.os",
    "a module below T": "T.sys.modules",
    "a module below R": "R.sys.modules",
    "a module below I": "I.sys.modules",
    "a module below the operators of T": "T.builtins.exec",
    "numpy below T": "T.np.savetxt",
    "Python's functions of R": "R.importlib.import_module('os')",
    "a private name": "T._names",
    "a module of relax": "relax.op",
    "the module of a function": "T.exp.__module__",
    "the globals of a function": "T.exp.__globals__",
    "the code of a lambda": "(lambda x: x).__code__",
    "the globals of a lambda": "(lambda x: x).__globals__",
    "a function behind its wrapper": "T.exp.__wrapped__",
    "the classes below object": "().__class__.__base__.__subclasses__()",
    "the class of a node": "T.int32(1).__class__",
    "a class of Python": "type(1)",
    "a class that is built": "type('X', (), {})",
    "Python's import": "__import__('os')",
    "Python's open": "open('/dev/null')",
    "Python's getattr": "getattr(T, 'sys')",
    "Python's eval": "eval('1')",
    "Python's exec": "exec('1')",
    "Python's globals": "globals()",
    "Python's print": "print('x')",
    "a format that reads attributes": "'{0.__class__}'.format(T)",
    "a format of a mapping": "'{x.__class__}'.format_map({'x': T})",
    "a method without a call": "str.format",
    "a method of str": "''.join",
    "an array's writer": "weft.nd.array([1.0]).numpy().tofile('x')",
    "the data of a constant": "relax.const(1.0, 'float32').data",
    "the data of a constant of R": "R.const(1.0).data.numpy()",
    "a registered function": "weft.get_global_func('runtime.ModuleLoadFromFile')",
    "a registration": "weft.register_func('hostile', lambda: 1)",
    "a registration of operators": "T.register_reducers(lambda: 1)",
    "a file": "weft.load('x')",
    "a context of passes": "weft.transform.PassContext.current()",
    "an operator's registry": "T.Op.get('tir.exp')",
    "the script of a node": "T.int32(1).script()",
    "a node's show": "T.int32(1).show()",
    "the slots of a node": "T.int32(1)._cache",
    "the prefix of operators": "R.nn.prefix_.__class__",
    "a private attribute of operators": "R.nn._x",
    "the parts of a namespace": "T.find",
    "what a namespace holds": "T.holds",
    "a walrus": "(x := 1)",
    "an await": "await T.exp",
    "a yield": "(yield 1)",
    "an attribute in an f-string": "f'{T.__class__}'",
    "a conversion in an f-string": "f'{T.sys!r}'",
    "a comprehension": "[y.sys for y in [T]]",
    "a condition of a comprehension": "[1 for y in [T] if y.sys]",
    "a lambda's body": "(lambda y: y.sys)(R)",
    "a sort key": "sorted([T], key=lambda y: y.sys)",
    "a function over a list": "list(map(lambda y: y.sys, [T]))",
    "a spread": "max(*[y.sys for y in [T]], 1)",
    "a keyword": "dict(x=T.sys)",
    "a subscript": "[T][0].sys",
    "a slice": "(1, 2)[T.sys:]",
    "a choice": "T.sys if True else 0",
    "the mapping of an object": "vars(T)",
    "the codec of a text": "str(b'', 'idna')",
    "an alias of a list": "list[int]().__class__",
    "the text of another macro": "T.macro.__globals__",
    "a caller's frame": "(lambda: 1).__closure__",
}  # fmt: skip

WORK = {
    "a power": "10**10**8",
    "a power by name": "pow(10, 10**8)",
    "a shift": "1 << 10**12",
    "products": "[x for x in [2**4000 * 2**4000]]",
    "a long text": "'a' * 2**60",
    "a long tuple": "2**60 * (1,)",
    "a long list": "[0] * 10**9",
    "a long comprehension": "[0 for i in range(10**12)]",
    "a nested comprehension": "[0 for i in range(10**6) for j in range(10**6)]",
    "many long texts": "['a' * 10**6 for i in range(10**6)]",
    "a list of a range": "list(range(10**12))",
    "a sum": "sum(range(10**12))",
    "a sum of lists": "sum([[1] * 1000] * 100000, [])",
    "a maximum": "max(range(10**12))",
    "a search": "'a' in range(10**12)",
    "a search with a step": "'a' in range(0, 10**12, 3)",
    "a spread": "T.max(*range(10**12))",
    "a spread of a range": "[*range(10**12)]",
    "a dict": "dict(zip(range(10**12), range(10**12)))",
    "an enumeration": "enumerate(range(10**12))",
    "a shape": "R.shape(range(10**12))",
    "a constant": "R.const([range(10**10)])",
    "a shared list": (
        "str((lambda s: s(s, 40))(lambda s, n: [1] if n == 0 else [s(s, n - 1)] * 9))"
    ),
    "a doubled list": "(lambda f: f(f(f(f(f(f([1] * 100)))))))(lambda x: [x] * 100)",
    "a width": "f'{1:1000000000}'",
    "a precision": "f'{1.0:.1000000000f}'",
    "a width by name": "f'{1:{10**9}}'",
    "a format of old": "'%1000000000d' % 1",
    "a lambda that calls itself": "(lambda s: s(s))(lambda s: s(s))",
    "a lambda that calls itself by map": "(lambda s: s(s))(lambda s: map(s, [s]))",
    "a tree of calls": (
        "(lambda s: s(s, 60))(lambda s, n: 0 if n == 0 else s(s, n - 1) + s(s, n - 1))"
    ),
}  # fmt: skip

PLACES = {
    "beside": "x = {}" + PROGRAM,
    "body": '@T.prim_func\ndef f(A: T.Buffer((1,), "int32")):\n    A[0] = {}\n',
    "annotation": "@T.prim_func\ndef f(A: T.Buffer(({},), 'int32')):\n    A[0] = 1\n",
    "option": "@T.prim_func(private={})\ndef f(A: T.Buffer((1,), 'int32')):\n    A[0] = 1\n",
    "result": "@T.prim_func\ndef f(A: T.Buffer((1,), 'int32')) -> {}:\n    A[0] = 1\n",
    "graph": "@R.function\ndef f(x: R.Tensor((1,), 'int32')):\n    y = {}\n    return x\n",
    "class": (
        "@I.ir_module\nclass M:\n    x = {}\n    @R.function\n"
        "    def f(x: R.Tensor((1,), 'int32')):\n        return x\n"
    ),
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("way", ESCAPES)
def test_no_way_out_of_the_language(way: str, place: str) -> None:
    with pytest.raises(DiagnosticError, match=r"--> <str>:\d+:\d+"):
        from_source(PLACES[place].replace("{}", ESCAPES[way]))


@pytest.mark.parametrize("way", WORK)
def test_work_and_sizes_are_limited(way: str) -> None:
    with pytest.raises(DiagnosticError, match=r"--> <str>:1:\d+"):
        from_source(f"x = {WORK[way]}{PROGRAM}")


@pytest.mark.parametrize(
    "value",
    [
        "[*R.ceil(x)]", "list(R.ceil(x))", "R.Shape(R.ceil(x))", "max(R.ceil(x))",
        "[1 for y in R.ceil(x)]", "zip(R.ceil(x), R.ceil(x))",
    ],
)  # fmt: skip
def test_a_graph_value_of_unknown_length_is_not_gone_through(value: str) -> None:
    text = f"@R.function\ndef f(x: R.Tensor((1,), 'int32')):\n    y = {value}\n    return x\n"
    with pytest.raises(DiagnosticError, match=r"(known length|works on numbers)(.|\n)*<str>:3"):
        from_source(text)


SQUARES = "(lambda f: " + "f(" * 60 + "x" + ")" * 60 + ")(lambda v: v * v)"


def test_graph_expressions_that_share_parts_are_limited() -> None:
    text = PLACES["graph"].replace("{}", SQUARES)
    with pytest.raises(DiagnosticError, match=r"too large when it is written out(.|\n)*<str>:3"):
        from_source(text)


def test_expressions_of_tensorir_that_share_parts_are_as_large_as_their_objects() -> None:
    text = PLACES["body"].replace("A: T.Buffer", "x: T.int32, A: T.Buffer")
    func = from_source(text.replace("{}", SQUARES))
    assert len(collect(func, Mul)) == 60
    assert structural_equal(from_source(func.script()), func)
    assert len(func.script()) < 4000


@pytest.mark.parametrize(
    "statement",
    [
        "import os", "import numpy as np", "from os import system", "from weft import nd",
        "from weft.support.recursion import sys", "from weft.codegen.cache import os",
        "from weft.script.tir import sys", "from weft.script import sys", "from . import tir",
        "from weft.script import *", "import weft.runtime as r",
        "from tvm.script.parser import core",
    ],
)  # fmt: skip
def test_imports_reach_the_language_only(statement: str) -> None:
    with pytest.raises(DiagnosticError, match=r"--> <str>:1:1"):
        from_source(statement + PROGRAM)


def test_imports_of_the_language() -> None:
    for line in (
        "from tvm.script import tir as T, ir as I, relax as R", "from weft.script import tir as T",
        "import tvm", "import tvm.script", "from __future__ import annotations",
    ):  # fmt: skip
        from_source(line + PROGRAM)


def test_default_arguments_and_decorators_are_not_evaluated_freely() -> None:
    for text in (
        "@T.prim_func\ndef f(A: T.Buffer((1,), 'int32') = T.sys):\n    A[0] = 1\n",
        "@T.sys.settrace\n@T.prim_func\ndef f(A: T.Buffer((1,), 'int32')):\n    A[0] = 1\n",
        "@T.macro\ndef f(A):\n    A[0] = 1\n",
        "class A(T.sys.x):\n    pass\n",
        "@I.ir_module\nclass A:\n    T.sys.exit()\n",
    ):
        with pytest.raises(DiagnosticError, match=r"--> <str>:\d+:\d+"):
            from_source(text)


def test_a_lone_surrogate() -> None:
    with pytest.raises(DiagnosticError, match="half character") as caught:
        from_source(PROGRAM + "# \ud800\n")
    assert "<str>:5:3" in str(caught.value)


def test_what_the_caller_passes_is_the_callers() -> None:
    text = '@T.prim_func\ndef f(A: T.Buffer((o.size * o.half(4),), "int32")):\n    A[0] = 1\n'
    with pytest.raises(DiagnosticError, match="undefined name 'o'"):
        from_source(text)
    own = types.SimpleNamespace(size=3, half=lambda n: n // 2)
    made = from_source(text, {"o": own, "T": T})
    assert made.buffer_map[made.params[0]].shape[0].value == 6
    with pytest.raises(DiagnosticError, match="T.sys"):
        from_source("x = T.sys" + PROGRAM, {"T": T})


def test_ordinary_expressions_of_texts() -> None:
    text = """
sizes = [n * 2 for n in range(1, 3) if n > 0]
total = sum(sizes) + max(1, 2) + len("ab") + pow(2, 3) + int(abs(-1))
name = f"buffer_{total:04d}"

@T.prim_func
def f(a: T.handle, B: T.Buffer((sizes[0], sizes[1]), "float32")):
    A = T.match_buffer(a, B.shape, dtype=B.dtype)
    for i, j in T.grid(B.shape[0], B.shape[1]):
        A[i, j] = B.vload([i, j]) + T.Cast("float32", i).astype("float32") * T.float32(total)
"""
    assert from_source(text).params[0].name == "a"


def _all_values() -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = [(name, PLAIN_BUILTINS[name]) for name in PLAIN_BUILTINS]
    return [(n, v) for n, v in found if n not in FORBIDDEN] + list(namespaces().items())


def _names_of(value: Any) -> set[str]:
    """Every name that might be an attribute of a value: what Python says, and the tables."""
    names = set(dir(value)) | {name for _, group in (*METHODS, *STATIC) for name in group}
    if isinstance(value, Namespace):
        modules = ("weft.script.tir", "weft.script.relax", "weft.script.ir", "weft", "weft.tir")
        names |= {name for m in modules for name in dir(__import__(m, fromlist=["x"]))}
        names |= tir_names() | relax_nodes() | set(namespaces())
        names |= set(dir(__import__("weft.tir.op", fromlist=["x"]))) | set(dir(T._names))
        names |= set(dir(__import__("weft.script.ir_builder.relax", fromlist=["x"])))
    return {name for name in names if not name.startswith("_")}


def test_walk_over_all_that_a_text_reaches() -> None:
    """Breadth first over the attributes: no module, no array, no function with effects.

    Nodes of each kind that the functions make stand beside the names.
    """
    made = from_source(
        "@I.ir_module\nclass M:\n    @T.prim_func\n    def g(A: T.Buffer((4,), 'float32')):\n"
        "        for i in range(4):\n            with T.block('b'):\n"
        "                A[i] = A[i] + T.exp(A[i])\n    @R.function\n"
        "    def f(x: R.Tensor((4,), 'float32')):\n        y = R.add(x, R.const(1.0))\n"
        "        return y\n"
    )
    waiting = [*_all_values(), *[(var.name_hint, func) for var, func in made.functions.items()]]
    seen: dict[int, Any] = {}
    functions = 0
    while waiting:
        path, value = waiting.pop(0)
        if id(value) in seen:
            continue
        seen[id(value)] = value
        assert not isinstance(value, types.ModuleType | np.ndarray | np.generic | NDArray), path
        if callable(value) and not isinstance(value, Node):
            functions += 1
            home = getattr(value, "__module__", None) or type(value).__module__
            known = any(value is item for item in PLAIN_BUILTINS.values())
            method = isinstance(getattr(value, "__self__", None), str | tuple | list | dict)
            assert known or method or home.partition(".")[0] == "weft", path
        for name in _names_of(value):
            try:
                waiting.append((f"{path}.{name}", allowed_attribute(value, name)))
            except (AttributeError, TVMError):
                continue
    assert functions > 300
