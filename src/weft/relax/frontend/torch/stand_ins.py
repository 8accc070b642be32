"""Functions of libraries that torch.export cannot capture, exchanged while it captures a model."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from weft.relax.frontend.torch import (
    attention_masks,
    caught_errors,
    detectors,
    keypoints,
    longformer,
    one_hot,
    packed_sequences,
    short_spectra,
    symbolic_numbers,
    take_along,
)

_BOXES: Final = "torchvision.ops.boxes"
_UTILS: Final = "torchvision.models.detection._utils"
_POOLERS: Final = "torchvision.ops.poolers"
_HEADS: Final = "torchvision.models.detection.roi_heads"
_MASKS: Final = "transformers.masking_utils"
_LAYERS: Final = "torch.nn.modules.transformer"
_LONGFORMER: Final = "transformers.models.longformer.modeling_longformer"
_PACKING: Final = "torch.nn.utils.rnn"
_RECURRENT: Final = "torch.nn.modules.rnn"
_OWN: Final = "weft."
"""The beginning of the names of modules that keep the functions themselves."""
_STAND_INS: Final[tuple[tuple[str, str, str, Callable[..., object]], ...]] = (
    (_BOXES, "", "batched_nms", detectors.batched_nms),
    (_UTILS, "", "_topk_min", detectors.topk_min),
    (_UTILS, "BoxCoder", "decode", detectors.decode),
    (_POOLERS, "", "_multiscale_roi_align", detectors.multiscale_roi_align),
    (_HEADS, "", "paste_masks_in_image", detectors.paste_masks_in_image),
    (_HEADS, "", "heatmaps_to_keypoints", keypoints.heatmaps_to_keypoints),
    (
        _MASKS,
        "",
        "_ignore_bidirectional_mask_sdpa",
        attention_masks.ignore_bidirectional_mask_sdpa,
    ),
    (_LAYERS, "", "_detect_is_causal_mask", attention_masks.told_causal),
    (_LONGFORMER, "", "_get_question_end_index", longformer.question_end),
    (_LONGFORMER, "LongformerModel", "_merge_to_attention_mask", longformer.merged_mask),
    (_LONGFORMER, "LongformerEncoder", "forward", longformer.encoded),
    (_LONGFORMER, "LongformerSelfAttention", "forward", longformer.attended),
    ("torch.fx", "Tracer", "call_module", caught_errors.call_module),
    ("torch.nn.functional", "", "one_hot", one_hot.one_hot),
    *(("math", "", name, symbolic_numbers.of_symbols(name)) for name in symbolic_numbers.UNARY),
    ("math", "", "sqrt", symbolic_numbers.sqrt),
    ("math", "", "log", symbolic_numbers.log),
    ("torch", "SymInt", "__divmod__", symbolic_numbers.divide),
    ("torch", "SymInt", "__rdivmod__", symbolic_numbers.divide_number),
    ("torch", "SymInt", "__floordiv__", symbolic_numbers.floor_divided),
    ("torch", "SymFloat", "__round__", symbolic_numbers.rounded),
    ("torch", "", "linspace", symbolic_numbers.linspace),
    ("torch.fft", "", "fftfreq", symbolic_numbers.fftfreq),
    ("torch.fft", "", "rfftfreq", symbolic_numbers.rfftfreq),
    ("torch", "", "take_along_dim", take_along.take_along_dim),
    ("torch", "Tensor", "take_along_dim", take_along.take_along_dim),
    ("torch", "", "istft", short_spectra.istft),
    ("torch.backends", "opt_einsum", "get_opt_einsum", symbolic_numbers.get_opt_einsum),
    ("torch", "", "as_tensor", symbolic_numbers.as_tensor),
    ("torch", "Tensor", "new_tensor", symbolic_numbers.new_tensor),
    (_PACKING, "", "pack_padded_sequence", packed_sequences.pack_padded_sequence),
    (_PACKING, "", "pad_packed_sequence", packed_sequences.pad_packed_sequence),
    (_RECURRENT, "LSTM", "forward", packed_sequences.lstm),
    (_RECURRENT, "GRU", "forward", packed_sequences.gru),
    (_RECURRENT, "RNN", "forward", packed_sequences.plain),
)
"""(module, class or "", name, what stands for it)."""
_MISSING: Final = ("__divmod__", "__rdivmod__")
"""Methods that torch's classes lack."""


@contextmanager
def stand_ins() -> Iterator[None]:
    """Within, functions of imported libraries are ones that torch.export can capture.

    This changes modules for the whole process: hold ``EXPORTING``.
    """
    functions: dict[int, Callable[..., object]] = {}
    places: list[tuple[object, str, Callable[..., object]]] = []
    for module, owner, name, stand_in in _STAND_INS:
        home: object = sys.modules.get(module)
        home = getattr(home, owner, None) if owner else home
        original = getattr(home, name, None)
        if home is not None and owner and (original is not None or name in _MISSING):
            places.append((home, name, stand_in))
        elif original is not None:
            functions[id(original)] = stand_in
    places += _holders(functions)
    replaced: list[tuple[object, str, object]] = []
    try:
        for holder, name, stand_in in places:
            replaced.append((holder, name, vars(holder).get(name)))
            setattr(holder, name, stand_in)
        yield
    finally:
        for holder, name, own in replaced:
            if own is None:  # a class has it of a base
                delattr(holder, name)
            else:
                setattr(holder, name, own)


def _holders(
    functions: Mapping[int, Callable[..., object]],
) -> list[tuple[object, str, Callable[..., object]]]:
    """(module, name, stand-in) wherever modules have functions of these ids, under any name."""
    return [
        (module, name, functions[id(value)])
        for module in list(sys.modules.values())
        if not getattr(module, "__name__", "").startswith(_OWN)
        for name, value in list(getattr(module, "__dict__", {}).items())
        if id(value) in functions
    ]
