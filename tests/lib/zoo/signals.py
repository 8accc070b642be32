"""Rows of the zoo for speech, images with transformers, text beside images, and time series."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any, Final

import torch

from tests.lib.zoo.architecture import (
    Architecture,
    Inputs,
    image,
    import_torchvision,
    of_transformers,
)
from tests.lib.zoo.language import ENCODER_DECODER, SMALL

SMALL_VISION: Final = {
    "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64,
    "image_size": 32, "patch_size": 8,
}  # fmt: skip
_WAVES: Final[Mapping[str, Any]] = {
    "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64,
    "conv_dim": (16, 16, 16), "conv_stride": (5, 2, 2), "conv_kernel": (10, 3, 3),
    "num_conv_pos_embeddings": 16, "num_conv_pos_embedding_groups": 4,
}  # fmt: skip
_LAGGED: Final[Mapping[str, Any]] = {
    "prediction_length": 4, "context_length": 12, "lags_sequence": [1, 2], "d_model": 16,
    "encoder_layers": 2, "decoder_layers": 2, "encoder_ffn_dim": 32, "decoder_ffn_dim": 32,
    "encoder_attention_heads": 2, "decoder_attention_heads": 2, "num_time_features": 1,
    "scaling": "std",
    "use_cache": False,
}  # fmt: skip
_PATCHES: Final = {
    "num_input_channels": 3, "context_length": 32, "patch_length": 8, "patch_stride": 8,
    "d_model": 16, "prediction_length": 8,
}  # fmt: skip


def _speech() -> Mapping[str, torch.Tensor]:
    """Features of speech, and the words so far."""
    return {
        "input_features": torch.randn(1, 16, 64),
        "decoder_input_ids": torch.randint(3, 96, (1, 7)),
    }


def _text_and_image() -> Mapping[str, torch.Tensor]:
    """Captions and images."""
    return {
        "input_ids": torch.randint(3, 90, (2, 9)),
        "pixel_values": torch.randn(2, 3, 32, 32),
        "attention_mask": torch.ones(2, 9, dtype=torch.int64),
    }


def _wave(length: int = 800) -> Inputs:
    return lambda: (torch.randn(1, length),)


def _series() -> Mapping[str, torch.Tensor]:
    return {"past_values": torch.randn(2, 32, 3)}


def _detr() -> torch.nn.Module:
    """Carion et al., "End-to-End Object Detection with Transformers" (2020), on a small ResNet."""
    import_torchvision()
    library = importlib.import_module("transformers")
    backbone = library.ResNetConfig(
        embedding_size=8, hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 1, 1],
        out_features=["stage4"],
    )  # fmt: skip
    sizes = {name: value for name, value in ENCODER_DECODER.items() if name != "vocab_size"}
    configuration = library.DetrConfig(
        use_timm_backbone=False, use_pretrained_backbone=False, backbone=None,
        backbone_config=backbone, num_queries=10, num_labels=5, **sizes,
    )  # fmt: skip
    found: torch.nn.Module = library.DetrForObjectDetection(configuration)
    return found


def _rt_detr() -> torch.nn.Module:
    """Zhao et al., "DETRs Beat YOLOs on Real-time Object Detection" (2024), on a small ResNet."""
    import_torchvision()
    library = importlib.import_module("transformers")
    backbone = library.RTDetrResNetConfig(
        embedding_size=8, hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 1, 1], layer_type="basic",
        out_features=["stage2", "stage3", "stage4"],
    )  # fmt: skip
    configuration = library.RTDetrConfig(
        backbone_config=backbone, encoder_in_channels=[16, 24, 32], encoder_hidden_dim=32,
        encoder_ffn_dim=32, encoder_attention_heads=2, d_model=32, num_queries=10,
        decoder_in_channels=[32, 32, 32], decoder_ffn_dim=32, decoder_layers=2,
        decoder_attention_heads=2, num_denoising=0, num_labels=5, anchor_image_size=None,
    )  # fmt: skip
    found: torch.nn.Module = library.RTDetrForObjectDetection(configuration)
    return found


def _past_and_future() -> Mapping[str, torch.Tensor]:
    """Values of a series with one feature of their times: 12 and two more before, 4 after."""
    return {
        "past_values": torch.randn(2, 14), "past_time_features": torch.randn(2, 14, 1),
        "past_observed_mask": torch.ones(2, 14), "future_values": torch.randn(2, 4),
        "future_time_features": torch.randn(2, 4, 1),
    }  # fmt: skip


SIGNALS: Final = (
    # Speech
    of_transformers("whisper", "WhisperModel", "WhisperConfig", _speech, **ENCODER_DECODER,
                 num_mel_bins=16, max_source_positions=32, max_target_positions=32,
                 pad_token_id=1, bos_token_id=1, eos_token_id=1, decoder_start_token_id=1),
    of_transformers("wav2vec2", "Wav2Vec2Model", "Wav2Vec2Config", lambda: (torch.randn(1, 800),),
                 hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
                 conv_dim=(16, 16, 16), conv_stride=(5, 2, 2), conv_kernel=(10, 3, 3),
                 num_conv_pos_embeddings=16, num_conv_pos_embedding_groups=4),
    of_transformers("hubert", "HubertModel", "HubertConfig", _wave(), **_WAVES),
    of_transformers("wavlm", "WavLMModel", "WavLMConfig", _wave(), **_WAVES, num_buckets=16,
                    max_bucket_distance=40),
    of_transformers("wav2vec2-conformer", "Wav2Vec2ConformerModel", "Wav2Vec2ConformerConfig",
                    _wave(), **_WAVES, conv_depthwise_kernel_size=5),
    of_transformers("audio-spectrogram", "ASTModel", "ASTConfig",
                    lambda: (torch.randn(1, 48, 32),), hidden_size=32, num_hidden_layers=2,
                    num_attention_heads=4, intermediate_size=64, patch_size=8,
                    frequency_stride=4, time_stride=4, max_length=48, num_mel_bins=32),
    # Text and images, images
    of_transformers("clip", "CLIPModel", "CLIPConfig", _text_and_image, projection_dim=16,
                 text_config={**SMALL, "attn_implementation": None},
                 vision_config=SMALL_VISION),
    of_transformers("hf-vit", "ViTModel", "ViTConfig", image(32), **SMALL_VISION),
    of_transformers("hf-deit", "DeiTModel", "DeiTConfig", image(32), **SMALL_VISION),
    of_transformers("segformer", "SegformerModel", "SegformerConfig", image(64),
                 hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 1, 1]),
    Architecture("detr", "transformers", _detr, image(64)),
    Architecture("rt-detr", "transformers", _rt_detr, image(64)),
    of_transformers("siglip", "SiglipVisionModel", "SiglipVisionConfig", image(32),
                    **SMALL_VISION),
    of_transformers("dinov2", "Dinov2Model", "Dinov2Config", image(32), hidden_size=32,
                    num_hidden_layers=2, num_attention_heads=4, image_size=32, patch_size=8),
    of_transformers("yolos", "YolosForObjectDetection", "YolosConfig", image(32), hidden_size=32,
                    num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
                    image_size=[32, 32], patch_size=8, num_detection_tokens=5),
    of_transformers("perceiver", "PerceiverModel", "PerceiverConfig",
                    lambda: {"inputs": torch.randn(2, 9, 16)}, d_model=16, num_latents=8,
                    d_latents=16, num_self_attends_per_block=2, num_self_attention_heads=2,
                    num_cross_attention_heads=2),
    of_transformers("videomae", "VideoMAEModel", "VideoMAEConfig",
                    lambda: (torch.randn(1, 4, 3, 32, 32),), **SMALL_VISION, num_frames=4),
    # Time series
    of_transformers("patchtst", "PatchTSTForPrediction", "PatchTSTConfig", _series, **_PATCHES,
                    num_hidden_layers=2, num_attention_heads=2, ffn_dim=32),
    of_transformers("patchtsmixer", "PatchTSMixerForPrediction", "PatchTSMixerConfig", _series,
                    **_PATCHES, num_layers=2),
    of_transformers("informer", "InformerModel", "InformerConfig", _past_and_future, **_LAGGED),
    of_transformers("autoformer", "AutoformerModel", "AutoformerConfig", _past_and_future,
                    **_LAGGED),
)  # fmt: skip
"""Models of speech, images and time series, of transformers."""
