"""Search for schedules, with the interface of TVM's MetaSchedule."""

from weft.support.facade import module_getattr

_NAMES = {
    "ArgInfo": "weft.meta_schedule.arg_info",
    "Builder": "weft.meta_schedule.builder.base",
    "CostModel": "weft.meta_schedule.cost_model.base",
    "Database": "weft.meta_schedule.database.base",
    "ExtractedTask": "weft.meta_schedule.extracted_task",
    "FeatureExtractor": "weft.meta_schedule.feature_extractor.base",
    "MeasureCallback": "weft.meta_schedule.task_scheduler.base",
    "MeasureCandidate": "weft.meta_schedule.candidate",
    "Profiler": "weft.meta_schedule.profiler",
    "Mutator": "weft.meta_schedule.mutator.base",
    "Postproc": "weft.meta_schedule.postproc.base",
    "Runner": "weft.meta_schedule.runner.base",
    "ScheduleRule": "weft.meta_schedule.schedule_rule.base",
    "SearchStrategy": "weft.meta_schedule.search_strategy.base",
    "SpaceGenerator": "weft.meta_schedule.space_generator.base",
    "TaskScheduler": "weft.meta_schedule.task_scheduler.base",
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
    "arg_info", "builder", "candidate", "cost_model", "database", "feature_extractor", "logging",
    "measure_callback", "mutator", "postproc", "profiler", "relax_integration", "runner",
    "schedule_rule", "search_strategy", "space_generator", "task_scheduler", "testing",
    "tir_integration", "trace_apply", "tune_context", "utils",
)  # fmt: skip
__getattr__, __dir__ = module_getattr(__name__, _NAMES, _ROOMS)
