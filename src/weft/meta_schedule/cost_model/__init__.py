"""Cost models: they rank candidates before they are measured."""

from weft.support.facade import module_getattr

_NAMES = {
    "CostModel": "weft.meta_schedule.cost_model.base",
    "MLPModel": "weft.meta_schedule.cost_model.mlp_model",
    "PyCostModel": "weft.meta_schedule.cost_model.base",
    "RandomModel": "weft.meta_schedule.cost_model.random_model",
    "XGBModel": "weft.meta_schedule.cost_model.xgb_model",
    "create": "weft.meta_schedule.cost_model.base",
}
__getattr__, __dir__ = module_getattr(__name__, _NAMES)
