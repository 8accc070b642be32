"""What every importer's users do with its result."""

from __future__ import annotations

from weft.ir.module import IRModule
from weft.runtime.ndarray import NDArray
from weft.support.errors import IRTypeError


def detach_params(mod: IRModule) -> tuple[IRModule, dict[str, list[NDArray]]]:
    """Take the attribute ``params`` off the functions of a module.

    Returns:
        The module without the arrays, and the arrays by the name of their function, in the order
        of the parameters they belong to.

    >>> import numpy as np, weft
    >>> from weft import relax
    >>> w = relax.Var("w", relax.TensorStructInfo((2,), "float32"))
    >>> bb = relax.BlockBuilder()
    >>> with bb.function("main", [w], attrs={"params": [weft.nd.array(np.ones(2, "float32"))]}):
    ...     main = bb.emit_func_output(w)
    >>> mod, params = detach_params(bb.get())
    >>> params["main"][0].shape, "params" in mod["main"].attrs
    ((2,), False)
    """
    detached = mod.clone()
    params: dict[str, list[NDArray]] = {}
    for gvar, func in mod.functions.items():
        if "params" not in func.attrs:
            continue
        arrays = list(func.attrs["params"])
        wrong = [type(item).__name__ for item in arrays if not isinstance(item, NDArray)]
        if wrong:
            raise IRTypeError(
                f"detach_params: {gvar.name_hint}: expected NDArrays in its attribute params, got "
                f"{', '.join(sorted(set(wrong)))}"
            )
        params[gvar.name_hint] = arrays
        detached.update_func(gvar, func.without_attr("params"))
    return detached, params
