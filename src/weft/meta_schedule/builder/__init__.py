"""Builders: they compile scheduled modules into files."""

from weft.support.facade import module_getattr

_NAMES = {
    "Builder": "weft.meta_schedule.builder.base",
    "BuilderInput": "weft.meta_schedule.builder.base",
    "BuilderResult": "weft.meta_schedule.builder.base",
    "LocalBuilder": "weft.meta_schedule.builder.local_builder",
    "RayBuilder": "weft.meta_schedule.builder.ray_builder",
    "PyBuilder": "weft.meta_schedule.builder.base",
    "create": "weft.meta_schedule.builder.base",
    "default_build": "weft.meta_schedule.builder.local_builder",
    "default_export": "weft.meta_schedule.builder.local_builder",
}
__getattr__, __dir__ = module_getattr(__name__, _NAMES)
