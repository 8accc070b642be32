"""Search for schedules, with the interface of TVM's MetaSchedule."""

from weft.support.facade import module_getattr

_NAMES = {
    "ArgInfo": "weft.meta_schedule.arg_info",
    "Builder": "weft.meta_schedule.builder.base",
    "CostModel": "weft.meta_schedule.cost_model.base",
    "Database": "weft.meta_schedule.database.base",
    "FeatureExtractor": "weft.meta_schedule.feature_extractor.base",
    "Profiler": "weft.meta_schedule.profiler",
    "Runner": "weft.meta_schedule.runner.base",
    "derived_object": "weft.meta_schedule.utils",
}
_ROOMS = (
    "arg_info", "builder", "cost_model", "database", "feature_extractor", "logging", "profiler",
    "runner", "schedule_rule", "utils",
)  # fmt: skip
__getattr__, __dir__ = module_getattr(__name__, _NAMES, _ROOMS)
