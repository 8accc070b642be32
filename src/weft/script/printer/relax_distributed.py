"""Docs of distributed tensors: device meshes, placements, ``R.DTensor``, ``R.dist.const``."""

from __future__ import annotations

from weft.ir.structural import structural_equal
from weft.relax.distributed.global_info import DeviceMesh
from weft.relax.distributed.struct_info import DTensorStructInfo, Placement, PlacementSpec
from weft.script.printer.attributes import attribute_doc
from weft.script.printer.doc import CallDoc, Doc, ExprDoc, LiteralDoc, TupleDoc
from weft.script.printer.docsifier import Docsifier, prints
from weft.script.printer.relax_info import shape_doc


@prints("DeviceMesh")
def _device_mesh(node: DeviceMesh, d: Docsifier) -> Doc:
    """``"mesh[0]"`` if it is in the module's global infos, else ``R.device_mesh((2, 2), ...)``."""
    in_module = bool(d.frames) and d.frames[-1].kind == "ir"
    if not in_module:
        name = _listed(node, d)
        if name is not None:
            return LiteralDoc(name)
    ids = attribute_doc(node.device_ids, d)
    if node.device_range is not None:
        first = node.device_ids[0] if node.device_ids else 0
        ends = LiteralDoc(first), LiteralDoc(first + len(node.device_ids))
        ids = CallDoc(d.ir("Range") if in_module else d.relax("Range"), ends)
    shape = TupleDoc([LiteralDoc(extent) for extent in node.shape])
    return CallDoc(d.relax("device_mesh"), (shape, ids))


def _listed(mesh: DeviceMesh, d: Docsifier) -> str | None:
    equal = None
    for name, infos in (d.global_infos or {}).items():
        for index, info in enumerate(infos):
            if info is mesh:
                return f"{name}[{index}]"
            if equal is None and structural_equal(info, mesh):
                equal = f"{name}[{index}]"
    return equal


@prints("Placement")
def _placement(node: Placement, d: Docsifier) -> Doc:  # noqa: ARG001 - a printer
    return LiteralDoc(node.to_text())


@prints("PlacementSpec")
def _placement_spec(node: PlacementSpec, d: Docsifier) -> Doc:  # noqa: ARG001 - a printer
    return LiteralDoc(Placement([node]).to_text())


@prints("DTensorStructInfo")
def _dtensor(node: DTensorStructInfo, d: Docsifier) -> Doc:
    """``R.DTensor((32, 32), "float32", "mesh[0]", "S[1], R")``.

    After an argument that is left out, the others are keyword arguments.
    """
    info = node.tensor_sinfo
    parts: list[tuple[str, ExprDoc]] = []
    if info.shape is not None:
        parts.append(("shape", shape_doc(info.shape, d)))
    if info.dtype != "void":
        parts.append(("dtype", LiteralDoc(str(info.dtype))))
    parts += [("device_mesh", d.doc(node.device_mesh)), ("placement", d.doc(node.placement))]
    if info.shape is None and info.ndim != -1:
        parts.append(("ndim", LiteralDoc(int(info.ndim))))
    order = ("shape", "dtype", "device_mesh", "placement")
    first = 0
    while first < len(parts) and first < len(order) and parts[first][0] == order[first]:
        first += 1
    args = [doc for _, doc in parts[:first]]
    keys = [name for name, _ in parts[first:]]
    return CallDoc(d.relax("DTensor"), args, keys, [doc for _, doc in parts[first:]])
