"""Runners: they measure programs."""

from weft.support.facade import module_getattr

_NAMES = {
    "EvaluatorConfig": "weft.meta_schedule.runner.config",
    "LocalRunner": "weft.meta_schedule.runner.local_runner",
    "LocalRunnerFuture": "weft.meta_schedule.runner.local_runner",
    "PyRunner": "weft.meta_schedule.runner.base",
    "PyRunnerFuture": "weft.meta_schedule.runner.base",
    "RayRunner": "weft.meta_schedule.runner.ray_runner",
    "RPCConfig": "weft.meta_schedule.runner.config",
    "RPCRunner": "weft.meta_schedule.runner.rpc_runner",
    "Runner": "weft.meta_schedule.runner.base",
    "RunnerFuture": "weft.meta_schedule.runner.base",
    "RunnerInput": "weft.meta_schedule.runner.base",
    "RunnerResult": "weft.meta_schedule.runner.base",
    "create": "weft.meta_schedule.runner.base",
    "default_alloc_argument": "weft.meta_schedule.runner.measurement",
    "default_cleanup": "weft.meta_schedule.runner.measurement",
    "default_run_evaluator": "weft.meta_schedule.runner.measurement",
}
__getattr__, __dir__ = module_getattr(__name__, _NAMES)
