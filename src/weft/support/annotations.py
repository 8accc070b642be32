"""Annotations as they are spelled, whether Python keeps them as text or evaluates them.

>>> spelled("BlockRV | str"), spelled(int | None), spelled(list[int])
('BlockRV | str', 'int | None', 'list')
"""

from __future__ import annotations

import inspect
import types
from typing import Annotated, Union, get_args, get_origin


def spelled(annotation: object) -> str:
    """The text of an annotation: names of classes without their modules, no type arguments.

    ``Annotated[Any, "Shape"]`` is spelled as its note, ``Shape``; no annotation as ``nothing``.
    """
    if isinstance(annotation, str):
        return annotation
    if get_origin(annotation) in (Union, types.UnionType):
        return " | ".join([spelled(part) for part in get_args(annotation)])
    if get_origin(annotation) is Annotated:
        return str(get_args(annotation)[1])
    if annotation is None or annotation is types.NoneType:
        return "None"
    if annotation is inspect.Parameter.empty:
        return "nothing"
    return getattr(annotation, "__name__", None) or str(annotation)
