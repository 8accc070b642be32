"""Feature extractors: they describe candidates by numbers."""

from weft.support.facade import module_getattr

_NAMES = {
    "FeatureExtractor": "weft.meta_schedule.feature_extractor.base",
    "PerStoreFeature": "weft.meta_schedule.feature_extractor.per_store_feature",
    "PyFeatureExtractor": "weft.meta_schedule.feature_extractor.base",
    "RandomFeatureExtractor": "weft.meta_schedule.feature_extractor.random_feature_extractor",
    "create": "weft.meta_schedule.feature_extractor.base",
}
__getattr__, __dir__ = module_getattr(__name__, _NAMES)
