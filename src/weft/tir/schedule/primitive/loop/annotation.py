"""Annotations of loops and blocks, which passes, code generation and search read."""

from __future__ import annotations

from collections.abc import Mapping

from weft.ir.expr import FloatImm, IntImm, PrimExpr
from weft.support.errors import wrong_type
from weft.tir.schedule import tree
from weft.tir.schedule.define import primitive
from weft.tir.schedule.errors import ScheduleFailure, name_of
from weft.tir.schedule.random_variable import BlockRV, LoopRV
from weft.tir.schedule.session import Session


class AnnotationError(ScheduleFailure):
    """The annotation is there already, or is not there."""


@primitive("Annotate", "block_or_loop ann_val")
def annotate(self: Session, block_or_loop: BlockRV | LoopRV, ann_key: str, ann_val: object) -> None:
    """Attach a value to a loop or block, for passes to read.

    Args:
        block_or_loop: the loop or block.
        ann_key: the name of the annotation.
        ann_val: a str, a number (a sampled one too), or lists and dicts of these.

    Raises:
        AnnotationError: there is an annotation of that name already.

    >>> from weft import te, tir
    >>> A = te.placeholder((8, 32), name="A")
    >>> B = te.compute((8, 32), lambda i, j: A[i, j] * 2.0, name="B")
    >>> sch = tir.Schedule(te.create_prim_func([A, B]))
    >>> sch.annotate(sch.get_loops("B")[0], "remark", "rows")
    >>> sch.get(sch.get_loops("B")[0]).annotations["remark"]
    'rows'
    """
    sref = self._sref(block_or_loop)
    stmt = tree.stmt_of(sref)
    if ann_key in stmt.annotations:
        raise AnnotationError(
            self.state,
            f"{name_of(sref)} has {ann_key!r} = {stmt.annotations[ann_key]} already",
            sref,
            "unannotate it first",
        )
    changed = {**stmt.annotations, ann_key: _value(self, ann_val)}
    self.state.replace(sref, stmt.with_(annotations=changed))


@primitive("Unannotate", "block_or_loop")
def unannotate(self: Session, block_or_loop: BlockRV | LoopRV, ann_key: str) -> None:
    """Remove an annotation from a loop or block.

    Args:
        block_or_loop: the loop or block.
        ann_key: the name of the annotation.

    Raises:
        AnnotationError: there is no annotation of that name.

    >>> from weft import te, tir
    >>> A = te.placeholder((8, 32), name="A")
    >>> B = te.compute((8, 32), lambda i, j: A[i, j] * 2.0, name="B")
    >>> sch = tir.Schedule(te.create_prim_func([A, B]))
    >>> sch.annotate("B", "remark", "doubles")
    >>> sch.unannotate("B", "remark")
    >>> dict(sch.get(sch.get_block("B")).annotations)
    {}
    """
    sref = self._sref(block_or_loop)
    stmt = tree.stmt_of(sref)
    if ann_key not in stmt.annotations:
        names = ", ".join(stmt.annotations) or "none"
        raise AnnotationError(
            self.state, f"{name_of(sref)} has no annotation {ann_key!r}; it has {names}", sref
        )
    kept = {key: value for key, value in stmt.annotations.items() if key != ann_key}
    self.state.replace(sref, stmt.with_(annotations=kept))


def _value(self: Session, value: object) -> object:
    """The value with sampled numbers in place of their variables."""
    if isinstance(value, (bool, str, int, float, IntImm, FloatImm)):
        return value
    if isinstance(value, (list, tuple)):
        return [_value(self, item) for item in value]
    if isinstance(value, Mapping):
        return {str(key): _value(self, item) for key, item in value.items()}
    if isinstance(value, PrimExpr):
        return self._evaluated(value)
    raise wrong_type(
        "sch.annotate: ann_val: expected a str, a number, or lists and dicts of such", value
    )
