"""Search for schedules, with the interface of TVM's MetaSchedule."""

from weft.support.facade import module_getattr

_NAMES = {
    "ExtractedTask": "weft.meta_schedule.extracted_task",
    "Profiler": "weft.meta_schedule.profiler",
    "TuneContext": "weft.meta_schedule.tune_context",
    "compile_relax": "weft.meta_schedule.relax_integration",
    "compile_tir": "weft.meta_schedule.tir_integration",
    "derived_object": "weft.meta_schedule.utils",
    "extract_tasks": "weft.meta_schedule.relax_integration",
    "tune_relax": "weft.meta_schedule.relax_integration",
    "tune_tasks": "weft.meta_schedule.tune",
    "tune_tir": "weft.meta_schedule.tir_integration",
}
_ROOMS = (
    "arg_info", "builder", "cost_model", "database", "feature_extractor", "measure_callback",
    "mutator", "postproc", "relax_integration", "runner", "schedule_rule", "search_strategy",
    "space_generator",
    "task_scheduler", "testing", "tir_integration", "trace_apply", "utils",
)  # fmt: skip
__getattr__, __dir__ = module_getattr(__name__, _NAMES, _ROOMS)
