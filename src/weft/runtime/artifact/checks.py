"""What must hold of the parts of a ``.weft`` file together, before anything of it is run.

Digests find damage. They do not find that somebody edited a file and put the right digests in.
Such a file is refused, or does what it now says and touches no memory but its own, as long as its
machine code is what weft wrote. So the description of how native code is called has a digest of its
own, the *interface*, which is kept with the code: the code relies on every number in it (the sizes
of arenas, the shapes of constants), and no other check could find a wrong one. Whoever writes both
the code and the interface may do anything, as with a shared library.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from weft.runtime.artifact.stored_types import check_stored
from weft.runtime.call.spec import FunctionSpec
from weft.runtime.model.signature import Signature, Tree, fields_of
from weft.runtime.ndarray import NDArray
from weft.runtime.vm.bytecode import Program
from weft.runtime.vm.bytecode_checks import check_program
from weft.support.errors import IRValueError

_DEEPEST = 200
_KEYS = (str, int, float, bool, type(None))


def interface_of(
    specs: Sequence[object], program: Mapping[str, Any], tensors: Sequence[NDArray]
) -> str:
    """The digest of how native code is called.

    ``specs`` and ``program`` are as JSON has them; of ``tensors`` count type and shape.
    """
    described = {
        "specs": list(specs),
        "natives": {name: item["native"] for name, item in program.items()},
        "tensors": [[str(tensor.dtype), list(tensor.shape)] for tensor in tensors],
    }
    text = json.dumps(described, sort_keys=True, separators=(",", ":"))
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def check_manifest(manifest: Mapping[str, Any]) -> None:
    """Raise IRValueError for a field of the manifest of another type than ``save`` writes."""
    wanted: dict[str, tuple[type, ...]] = {
        "entry": (str,),
        "kernels": (list,),
        "states": (int,),
        "code": (dict, type(None)),
        "signature": (dict,),
        "dtypes": (list,),
        "interface": (str,),
        "flops": (dict,),
    }
    for name, kinds in wanted.items():
        _expect(isinstance(manifest.get(name), kinds), f"its manifest's {name}")
    for name in ("kernels", "dtypes"):
        _expect(all(isinstance(item, str) for item in manifest[name]), f"its manifest's {name}")
    names = manifest.get("names")
    _expect(names is None or _are_names(names), "its manifest's names")
    code = manifest["code"]
    if code is not None:
        for name in ("triple", "cpu"):
            _expect(isinstance(code.get(name), str), f"its code's {name}")
        features = code.get("features")
        _expect(isinstance(features, list), "its code's features")
        _expect(all(isinstance(item, str) for item in features), "its code's features")
        _expect(isinstance(code.get("specs"), list), "its code's specs")


def _are_names(names: object) -> bool:
    """Whether these are texts, or None, as for each tensor; how many is seen where tensors are."""
    return isinstance(names, list) and all(isinstance(name, str | None) for name in names)


def check_parts(
    signature: Signature,
    program: Program,
    specs: Sequence[FunctionSpec],
    kernels: Sequence[str],
    entry: str,
) -> None:
    """Raise a TVMError where the parts of a file contradict each other."""
    for spec in specs:
        check_stored(spec)
    check_program(program, kernels)
    check_stored(signature)
    function = program.functions[entry]
    count = len(function.params)
    if len(signature.inputs) != count:
        raise IRValueError(
            f"its signature has {len(signature.inputs)} inputs, and {entry[:60]} has {count}"
        )
    for parameter in signature.parameters:
        _check_tree(parameter.tree, count)
        if parameter.default is not None:
            _check_tree(parameter.default, 0)
    _check_tree(signature.result, None)
    places = [state.input for state in signature.states]
    places += [source for source, _ in signature.written]
    _expect(all(0 <= place < count for place in places), "its states and written inputs")
    _expect(all(0 <= place < count for place, _ in signature.texts), "its texts")
    outputs = [state.output for state in signature.states]
    outputs += [output for _, output in signature.written]
    _expect(all(output >= 0 for output in outputs), "its states and written outputs")


def _check_tree(tree: Tree, leaves: int | None, depth: int = 0) -> None:
    """Raise IRValueError for what is no tree, or names a leaf that does not exist."""
    kind = tree[0] if isinstance(tree, tuple) and tree else None
    sizes = {"leaf": 2, "value": 2, "absent": 1, "tuple": 2, "list": 2, "dict": 3, "object": 4,
             "texts": 3, "maps": 3}  # fmt: skip
    _expect(isinstance(kind, str) and sizes.get(kind) == len(tree) and depth < _DEEPEST,
            "a tree of its signature")  # fmt: skip
    if kind == "leaf":
        number = tree[1]
        _expect(type(number) is int and number >= 0, "a leaf of its signature")
        _expect(leaves is None or number < leaves, "a leaf of its signature")
    elif kind == "value":
        _expect(isinstance(tree[1], _KEYS), "a value of its signature")
    elif kind != "absent":
        keys = tree[-2] if kind in ("dict", "object", "texts", "maps") else ()
        _expect(isinstance(tree[-1], tuple) and isinstance(keys, tuple), "a tree of its signature")
        _expect(all(isinstance(key, _KEYS) for key in keys), "a key of its signature")
        if kind == "object":
            _expect(all(isinstance(key, str) for key in (tree[1], *keys)), "a class it names")
        if kind in ("texts", "maps"):  # of one output
            _expect(leaves is None and bool(keys) and len(tree[-1]) == 1, "texts of its results")
            _expect(kind == "maps" or all(isinstance(key, str) for key in keys), "texts")
        else:
            _expect((not keys and kind in ("tuple", "list")) or len(keys) == len(tree[-1]),
                    "the keys of its signature")  # fmt: skip
        for _, _, item in fields_of(tree):
            _check_tree(item, leaves, depth + 1)


def _expect(holds: bool, what: str) -> None:
    if not holds:
        raise IRValueError(f"{what} cannot be what was written")
