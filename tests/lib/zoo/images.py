"""Rows of the zoo whose models take images and videos: torchvision and timm."""

from __future__ import annotations

import importlib
from typing import Final

import torch

from tests.lib.zoo.architecture import (
    Architecture,
    image,
    import_torchvision,
    of_timm,
    of_torchvision,
    video,
)


def _maxvit() -> torch.nn.Module:
    """maxvit_t with one layer a block and windows of 2, since those of 7 want images of 224."""
    import_torchvision()
    models = importlib.import_module("torchvision.models")
    found: torch.nn.Module = models.MaxVit(
        input_size=(64, 64), stem_channels=64, partition_size=2, head_dim=32,
        block_channels=[64, 128, 256, 512], block_layers=[1, 1, 1, 1], stochastic_depth_prob=0.2,
    )  # fmt: skip
    return found


def _s3d() -> torch.nn.Module:
    """s3d whose last pool is as large as what videos of 64 leave, where its own wants 224."""
    import_torchvision()
    found: torch.nn.Module = importlib.import_module("torchvision.models.video").s3d(weights=None)
    found.avgpool = torch.nn.AvgPool3d((2, 2, 2), stride=1)
    return found


IMAGES: Final = (
    # Classification, of torchvision
    of_torchvision("alexnet", image(64)),
    of_torchvision("vgg11", image(32)),
    of_torchvision("vgg16_bn", image(32)),
    of_torchvision("resnet18", image()),
    of_torchvision("resnet50", image()),
    of_torchvision("wide_resnet50_2", image(32)),
    of_torchvision("resnext50_32x4d", image(32)),
    of_torchvision("densenet121", image(32)),
    of_torchvision("inception_v3", image(96), init_weights=False, aux_logits=True),
    of_torchvision("googlenet", image(64), init_weights=False, aux_logits=True),
    of_torchvision("mobilenet_v2", image()),
    of_torchvision("mobilenet_v3_small", image()),
    of_torchvision("efficientnet_b0", image()),
    of_torchvision("efficientnet_v2_s", image()),  # with 32 pixels rounding grows to a thousandth
    of_torchvision("shufflenet_v2_x0_5", image()),
    of_torchvision("squeezenet1_1", image()),
    of_torchvision("convnext_tiny", image(32)),
    of_torchvision("regnet_y_400mf", image()),
    of_torchvision("mnasnet0_5", image()),
    of_torchvision("swin_t", image()),
    of_torchvision("swin_v2_t", image()),
    of_torchvision("vit_b_16", image(32), image_size=32),
    Architecture("maxvit_t", "torchvision", _maxvit, image(64)),
    # Segmentation and video, of torchvision
    of_torchvision("fcn_resnet50", image(32), weights_backbone=None),
    of_torchvision("deeplabv3_resnet50", image(32), weights_backbone=None),
    of_torchvision("lraspp_mobilenet_v3_large", image(32), weights_backbone=None),
    of_torchvision("r3d_18", video()),
    of_torchvision("mc3_18", video()),
    of_torchvision("r2plus1d_18", video()),
    Architecture("s3d", "torchvision", _s3d, video(16, 64)),
    # Classification, of timm
    of_timm("mixer_s32_224", image(64), img_size=64),
    of_timm("deit_tiny_patch16_224", image(32), img_size=32, depth=3),
    of_timm("cait_xxs24_224", image(32), img_size=32, depth=3),
    of_timm("beit_base_patch16_224", image(32), img_size=32, depth=2,
          head_init_scale=1.0),
    of_timm("poolformer_s12", image(64)),
    of_timm("pvt_v2_b0", image(64), depths=(1, 1, 1, 1)),
    of_timm("levit_128s", image(224), depth=(1, 1, 1)),
    of_timm("mobilevit_xxs", image(64)),
    of_timm("edgenext_xx_small", image(64)),
    of_timm("ghostnet_100", image(64)),
    of_timm("repvgg_a0", image(64)),
    of_timm("res2net50_26w_4s", image(32)),
    of_timm("hrnet_w18_small", image(64)),
    of_timm("dla34", image(64)),
    of_timm("xception41", image(64)),
    of_timm("convmixer_768_32", image(32)),
    of_timm("coatnet_nano_rw_224", image(64), img_size=64),
    of_timm("twins_pcpvt_small", image(64), img_size=64, depths=(1, 1, 1, 1)),
)  # fmt: skip
"""Classification, segmentation, video."""
